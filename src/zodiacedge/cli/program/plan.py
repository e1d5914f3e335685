"""`zodiac plan`: the join order of each rule and delta, with estimates."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.options import EngineOptions, engine_options
from zodiacedge.cli.program_source import open_source, source_arguments
from zodiacedge.plan.order import NoStatistics, PredicateCounts
from zodiacedge.plan.show import to_dicts, to_text
from zodiacedge.plan.variants import plans, recursive_atoms

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.cli.program_source import Data
    from zodiacedge.graph import HyperGraph
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.language.ast import Atom, Rule


@click.command("plan")
@source_arguments
@click.option("--rule", "label", metavar="LABEL", help="Only this rule.")
@engine_options
@common
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    programs: tuple[str, ...],
    data: Data,
    at: int | None,
    label: str | None,
    on: EngineOptions,
) -> None:
    r"""Show how each rule is evaluated: as a whole, and for each conjunct whose facts may change.

    RULES are files, folders or globs, - is standard input; STORE is a store's folder or URI. With --facts the
    program is evaluated first. Then, and in a store, estimates come from the sizes of relations; without
    facts they are guesses.

    \b
    Example:
      zodiac plan farm.rules
      zodiac plan farm.zodiac --rule r2
      zodiac plan farm.rules --facts readings.csv --rule r2
    """
    with open_source(console, programs, data, at, on) as source:
        chosen = source.labelled(label) if label else source.rules
        statistics = _sizes(source.kb) if source.kb else NoStatistics()
        shown = [p for rule in chosen for p in plans(rule, _recursive(rule, source.graph), statistics)]
    console.text(to_text(shown, source.prefixes))
    if console.as_json:
        console.json({"plans": to_dicts(shown, source.prefixes)})


def _sizes(kb: KnowledgeBase) -> PredicateCounts:
    return PredicateCounts(Counter(kb.state.explicit_counts()) + Counter(kb.state.derived_counts()))


def _recursive(rule: Rule, graph: HyperGraph) -> dict[int, Atom]:
    node = next(node for node in graph.order if any(graph.rule(key) == rule for key in node.rules))
    return recursive_atoms(rule, [graph.rule(key).head for key in node.rules])
