"""`zodiac plan`: the join order of each rule and delta, with estimates."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.options import DataOptions, EngineOptions, engine_options
from zodiacedge.cli.program_source import open_source, source_arguments
from zodiacedge.engine.api import MeasuresPlans, Progress
from zodiacedge.errors import counted
from zodiacedge.graph.draw.names import rule_name
from zodiacedge.plan.order import NoStatistics, PredicateCounts
from zodiacedge.plan.show import measured_dict, measured_text, off_estimates, to_dicts, to_text
from zodiacedge.plan.variants import plans, recursive_atoms

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.cli.program_source import ProgramSource
    from zodiacedge.language.ast import Rule
    from zodiacedge.plan.algebra import Plan
    from zodiacedge.plan.measurement import Measurement


@click.command("plan")
@source_arguments
@click.option("--rule", "label", metavar="LABEL", help="Only this rule.")
@click.option("--analyze", is_flag=True, help="Run each plan, and show its rows beside the estimates.")
@engine_options
@common
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    programs: tuple[str, ...],
    data: DataOptions,
    at: int | None,
    label: str | None,
    analyze: bool,
    on: EngineOptions,
) -> None:
    r"""Show how each rule is evaluated: as a whole, and for each conjunct whose facts may change.

    RULES are files, folders or globs, - is standard input; STORE is a store's folder or URI. With --facts the
    program is evaluated first. Then, and in a store, estimates come from the sizes of relations; without
    facts they are guesses.

    With --analyze each plan as a whole runs on all facts, explicit and derived, once to build what it needs
    and then to be measured. "estimated" and "actual" are rows for each row of the step before, "?" where the
    planner has no estimate; "seconds" is the time from the first step up to this one.

    \b
    Example:
      zodiac plan farm.rules
      zodiac plan farm.zodiac --rule r2
      zodiac plan farm.rules --facts readings.csv --rule r2 --analyze
    """
    if analyze and on.engine != "embedded":
        raise click.UsageError("--analyze runs plans on the embedded engine: leave out --engine.")
    with open_source(console, programs, data, at, on) as source:
        chosen = source.labelled(label) if label else source.rules
        if analyze:
            measurements = _measured(console, source, chosen)
            _show_measured(console, measurements, source.prefixes)
            return
        shown = [plan for rule in chosen for plan in _plans(rule, source)]
    console.text(to_text(shown, source.prefixes))
    if console.as_json:
        console.json({"plans": to_dicts(shown)})


def _plans(rule: Rule, source: ProgramSource) -> tuple[Plan, ...]:
    graph = source.graph
    node = next(node for node in graph.order if any(graph.rule(key) == rule for key in node.rules))
    heads = [graph.rule(key).head for key in node.rules]
    recursive = recursive_atoms(rule, heads)
    if source.kb is None:
        return plans(rule, recursive, NoStatistics())
    state = source.kb.state
    counts = PredicateCounts(Counter(state.explicit_counts()) + Counter(state.derived_counts()), heads)
    return tuple(
        replace(
            plan,
            steps=counts.without_assumptions(plan.steps),
            inner=counts.without_assumptions(plan.inner),
        )
        for plan in plans(rule, recursive, counts)
    )


def _measured(console: Console, source: ProgramSource, rules: tuple[Rule, ...]) -> list[Measurement]:
    kb = source.kb
    if kb is None:
        raise click.UsageError("--analyze runs the plans on facts: add --facts FILE, or name a store.")
    state = kb.state
    if not isinstance(state, MeasuresPlans):
        raise TypeError(state)
    measurements = []
    with console.progress("measuring plans"):
        for number, rule in enumerate(rules):
            console.evaluating(
                Progress(number, len(rules), (rule_name(rule, source.prefixes),), 0, 0, "measuring")
            )
            whole = next(plan for plan in _plans(rule, source) if plan.delta is None)
            measurements.append(state.measure(whole, kb.settings))
    return measurements


def _show_measured(console: Console, measurements: list[Measurement], prefixes: dict[str, str]) -> None:
    for measurement in measurements:
        console.text(measured_text(measurement, prefixes))
    console.text()
    rows = [
        (
            name,
            "?" if m.estimate is None else f"{m.estimate:,.0f}",
            f"{m.rows:,}",
            f"{m.facts:,}",
            f"{m.seconds:.4f}",
        )
        for m, name in ((m, rule_name(m.plan.rule, prefixes)) for m in measurements)
    ]
    console.table(("rule", "estimated rows", "actual rows", "facts", "seconds"), rows)
    off = off_estimates(measurements, prefixes)
    console.text(f"\n{counted(len(off), 'estimate')} off by a factor of 10 or more")
    for line in off:
        console.text(f"  {line}")
    if console.as_json:
        console.json({"measured": [measured_dict(measurement) for measurement in measurements]})
