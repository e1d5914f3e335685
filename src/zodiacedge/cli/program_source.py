"""The program that a command looks at: that of rule files, or of a version of a store.

With data, or in a store, the program is evaluated and has numbers of facts. Checks of rule files are left to
`rule_files`.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.functions import registered
from zodiacedge.cli.open_store import reading
from zodiacedge.cli.options import FILE, at_option, delimiter_option, facts_option, header_option
from zodiacedge.cli.rule_files import is_store, read_rules
from zodiacedge.errors import CheckProblem, Diagnostic, UsageProblem, nearest
from zodiacedge.graph.draw.sketch import Details, FactCount
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.opening import open_kb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from zodiacedge.cli.console import Console
    from zodiacedge.cli.options import EngineOptions
    from zodiacedge.cli.rule_files import CheckedProgram
    from zodiacedge.cli.standard_input import Source
    from zodiacedge.graph import HyperGraph
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.language.ast import Rule

    Command = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Data:
    """Files of facts that rule files are evaluated on, and how to read the tables among them."""

    files: tuple[Source, ...]
    header: bool
    delimiter: str


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


def data_options(function: Command) -> Command:
    """Add the files of facts and their format as the argument `data`."""

    @facts_option
    @header_option
    @delimiter_option
    @functools.wraps(function)
    def call(
        *args: object, facts: tuple[Source, ...], header: bool, delimiter: str, **options: object
    ) -> None:
        function(*args, data=Data(facts, header, delimiter), **options)

    return call


@contextmanager
def open_source(
    console: Console, programs: Sequence[str], data: Data, at: int | None, on: EngineOptions
) -> Iterator[ProgramSource]:
    """Read rule files, with data to evaluate them on if given, or open a store for reading."""
    stores = [path for path in programs if is_store(path)]
    if not stores:
        if at is not None:
            raise click.UsageError("--at names a version of a store, and these are rule files.")
        checked = read_rules(programs)
        if checked.errors:
            raise CheckProblem(checked.findings)
        console.findings(checked.findings)
        prefixes = {**DEFAULT_PREFIXES, **dict(checked.program.prefixes)}
        kb = evaluated(console, checked, data, on) if data.files else None
        graph = kb.graph() if kb else checked.graph
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


def evaluated(console: Console, checked: CheckedProgram, data: Data, on: EngineOptions) -> KnowledgeBase:
    """Return a knowledge base in memory with a program and its data."""
    registry = registered(on.functions)
    with console.progress():
        kb = open_kb(
            functions=registry.functions.values(),
            aggregates=registry.folds.values(),
            engine=on.engine,
            master=on.master,
            scratch=on.scratch,
            seed=on.seed,
            progress=console.evaluating,
        )
        with kb.change() as change:
            change.add_program(checked.program)
            if data.files:
                change.load(
                    *data.files, header=data.header, delimiter=data.delimiter, progress=console.loading
                )
    console.findings(warning for load in change.loads for warning in load.warnings)
    return kb
