"""The program that a command looks at: that of rule files, or of a version of a store.

With data, or in a store, the program is evaluated and has numbers of facts. Checks of rule files are left to
`rule_files`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.open_kb import fill, in_memory, reading
from zodiacedge.cli.options import FILE, at_option, data_options
from zodiacedge.cli.rule_files import is_store, sound_rules
from zodiacedge.errors import Diagnostic, UsageProblem, nearest
from zodiacedge.graph.draw.sketch import Details, FactCount
from zodiacedge.language.printer import abbreviated
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from zodiacedge.cli.console import Console
    from zodiacedge.cli.options import DataOptions, EngineOptions
    from zodiacedge.cli.rule_files import CheckedProgram
    from zodiacedge.engine.limits import Limits
    from zodiacedge.graph import HyperGraph
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.language.ast import Rule

    Command = Callable[..., None]


@dataclass(frozen=True, slots=True)
class ProgramSource:
    """Resolved rules, their graph and prefixes; and the knowledge base, where the program is evaluated."""

    rules: tuple[Rule, ...]
    graph: HyperGraph
    prefixes: dict[str, str]
    kb: KnowledgeBase | None

    def labelled(self, label: str) -> tuple[Rule, ...]:
        """Return the rules with a label, or raise."""
        chosen = tuple(rule for rule in self.rules if rule.label == label)
        if not chosen:
            near = nearest(label, [rule.label for rule in self.rules if rule.label])
            hint = f"did you mean {near}?" if near else "only rules with a label can be chosen"
            raise UsageProblem(Diagnostic("U006", f"there is no rule {label}", hint))
        return chosen


def source_arguments(function: Command) -> Command:
    """Add the arguments of `open_source`: `programs`, `data` and `at`."""
    programs = click.argument("programs", nargs=-1, required=True, type=FILE, metavar="RULES...|STORE")
    return programs(data_options(at_option(function)))


@contextmanager
def open_source(
    console: Console, programs: Sequence[str], data: DataOptions, at: int | None, on: EngineOptions
) -> Iterator[ProgramSource]:
    """Read rule files, with data to evaluate them on if given, or open a store for reading."""
    stores = [path for path in programs if is_store(path)]
    if not stores:
        if at is not None:
            raise click.UsageError("--at names a version of a store, and these are rule files.")
        checked = sound_rules(programs)
        prefixes = {**DEFAULT_PREFIXES, **dict(checked.program.prefixes)}
        kb = None
        if data.files:
            kb = evaluated(console, checked, data, on)
        else:
            console.findings(abbreviated(finding, prefixes) for finding in checked.findings)
        graph = kb.graph() if kb else checked.rules.graph
        # In the order of the files, not of the graph.
        keys = sorted(graph.homes, key=lambda key: graph.rules.shapes[key].serial)
        yield ProgramSource(tuple(graph.rule(key) for key in keys), graph, prefixes, kb)
        return
    if len(programs) > 1:
        raise click.UsageError(f"{stores[0]} is a store: name it alone, or rule files only.")
    if data.files:
        raise click.UsageError(f"{stores[0]} is a store and has its own facts: leave out --facts.")
    with reading(console, stores[0], at, on) as stored:
        yield ProgramSource(stored.rules, stored.graph(), {**DEFAULT_PREFIXES, **stored.prefixes}, stored)


def details_of(kb: KnowledgeBase) -> Details:
    """Return the numbers of facts and the prefixes of a knowledge base, for a drawing of its graph."""
    explicit, derived = kb.state.explicit_counts(), kb.state.derived_counts()
    return Details(
        {node.id: kb.state.segment_size(frozenset(node.rules)) for node in kb.graph().order},
        {p: FactCount(explicit.get(p, 0), derived.get(p, 0)) for p in {*explicit, *derived}},
        {**DEFAULT_PREFIXES, **kb.prefixes},
    )


def evaluated(
    console: Console,
    checked: CheckedProgram,
    data: DataOptions,
    on: EngineOptions,
    limits: Limits | None = None,
) -> KnowledgeBase:
    """Return a knowledge base in memory with a program and its data, and show the warnings of both."""
    kb = in_memory(console, on, strict=data.strict, limits=limits)
    with console.progress():
        fill(console, kb, checked, data)
    return kb
