"""`zodiac plan`: the join order of each rule and delta, with estimates."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.rule_files import read_rules
from zodiacedge.errors import CheckProblem, Diagnostic, UsageProblem, nearest
from zodiacedge.language.safety import resolve
from zodiacedge.opening import open_kb
from zodiacedge.plan.order import NoStatistics, PredicateCounts
from zodiacedge.plan.show import to_dicts, to_text
from zodiacedge.plan.variants import plans, recursive_atoms

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.cli.rule_files import CheckedProgram
    from zodiacedge.language.ast import Atom, Rule


@click.command("plan")
@click.argument("rules", nargs=-1, required=True, metavar="RULES...")
@click.option("--rule", "label", metavar="LABEL", help="Only this rule.")
@click.option("--facts", multiple=True, metavar="FILE", help="Data: files, folders, globs, URIs, p=FILE.")
@common
def command(console: Console, rules: tuple[str, ...], label: str | None, facts: tuple[str, ...]) -> None:
    """Show how each rule is evaluated: as a whole, and for each conjunct whose facts may change.

    RULES are files, folders or globs. With --facts the program is evaluated first and estimates come from
    the sizes of its relations; without, they are guesses.

    \b
    Example:
      zodiac plan farm.rules
      zodiac plan farm.rules --facts readings.csv --rule r2
    """  # noqa: D301 - \b is click's mark for text that it must not wrap
    reading = read_rules(rules)
    if reading.errors:
        raise CheckProblem(reading.findings)
    chosen = [rule for rule in map(resolve, reading.program.rules) if label in {None, rule.label}]
    if label and not chosen:
        raise _no_rule(label, reading)
    statistics = _sizes(console, reading, facts) if facts else NoStatistics()
    shown = [p for rule in chosen for p in plans(rule, _recursive(rule, reading), statistics)]
    console.text(to_text(shown))
    if console.as_json:
        console.json({"plans": to_dicts(shown)})


def _sizes(console: Console, reading: CheckedProgram, facts: tuple[str, ...]) -> PredicateCounts:
    with console.progress():
        kb = open_kb(progress=console.evaluating)
        with kb.change() as change:
            for file in reading.files:
                change.add_rules(file.text, file.name)
            change.load(*facts, progress=console.loading)
    return PredicateCounts(Counter(kb.state.explicit_counts()) + Counter(kb.state.derived_counts()))


def _recursive(rule: Rule, reading: CheckedProgram) -> dict[int, Atom]:
    graph = reading.graph
    node = next(node for node in graph.order if any(graph.rule(key) == rule for key in node.rules))
    return recursive_atoms(rule, [graph.rule(key).head for key in node.rules])


def _no_rule(label: str, reading: CheckedProgram) -> UsageProblem:
    near = nearest(label, [rule.label for rule in reading.program.rules if rule.label])
    hint = f"did you mean {near}?" if near else "only rules with a label can be chosen"
    return UsageProblem(Diagnostic("U006", f"there is no rule {label}", hint))
