"""`zodiac demo`: the wind farm of the paper, as a story."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.output import check_folder, write_text
from zodiacedge.graph.svg import to_svg
from zodiacedge.knowledge import KnowledgeBase, open_kb
from zodiacedge.maintenance.report import counted
from zodiacedge.terms import IRI
from zodiacedge.workloads.paper import ds1, rule_set, temperature

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.maintenance.report import ChangeReport

_TURBINES = 50
_BROKEN = 17
_ODD_READING = 41
_DAILY_RULES = """\
daily: Unusual(X) :- hasAirTemperatureMesurement(X, T), T > 35 .
"""


@click.command("demo")
@click.option("--turbines", default=_TURBINES, show_default=True, type=click.IntRange(_BROKEN + 2, 400))
@click.option("--out", default="out/demo", show_default=True, metavar="DIR", help="Where pictures go.")
@common
def command(console: Console, turbines: int, out: str) -> None:
    r"""Play the wind-farm scenario: an odd reading, rules that come to explain it, and go again.

    \b
    Example:
      zodiac demo
      zodiac demo --turbines 80 --json
    """
    folder = Path(out)
    check_folder(folder)
    kb = open_kb(progress=console.evaluating)
    console.text(f"A wind farm: {turbines} turbines in a row, each with an air temperature sensor.")
    with kb.change() as change:
        change.add_rules(_DAILY_RULES, "daily rules")
        change.add_facts([(f.relation, *f.args) for f in ds1(turbines)])
    _tell(console, "Day to day, one small rule watches the readings:", change.report)
    before = kb.facts()

    with kb.change() as change:
        change.remove_facts([_row(25)])
        change.add_facts([_row(_ODD_READING)])
    console.text(f"\nTurbine {_BROKEN} reads {_ODD_READING} degrees. A heat wave, or a broken sensor?")
    _tell(console, "The daily rule can only say that it is unusual:", change.report)
    odd = kb.facts()

    with console.progress(), kb.change() as change:
        change.add_rules(rule_set(1), "rs1.rules")
    report = change.report
    console.text("\nSix diagnosis rules arrive and are added while the engine runs.")
    _tell(console, "Who neighbours whom, how many of them measure, and their median:", report)
    suspects = [row[0] for row in kb.query("?- SensorAnomalyWindTurbine(X) .")]
    shown = ", ".join(s.value for s in suspects if isinstance(s, IRI)) or "nobody"
    console.text(f"  more than 5 degrees off the median of its neighbours: {shown}")
    console.text("  so the sensor is broken: the neighbours feel nothing of it.")
    picture = folder / "graph.svg"
    write_text(picture, to_svg(kb.graph(), sizes=_sizes(kb)))
    derived = kb.derived()

    with kb.change() as change:
        for label in ("r1", "r2", "r3", "r4", "r5", "r6"):
            change.remove_rules(label)
        change.remove_facts([_row(_ODD_READING)])
        change.add_facts([_row(25)])
    console.text("\nThe sensor is replaced and the diagnosis rules go again.")
    _tell(console, "What they derived goes with them:", change.report)
    same = kb.facts() == before
    console.text(f"  the farm knows exactly what it knew in the morning: {'yes' if same else 'NO'}")
    console.text(f"\nThe picture of the rules and what each node derived: {picture}")
    if console.as_json:
        console.json(
            {
                "turbines": turbines,
                "explicit": sum(kb.explicit_counts().values()),
                "derived": derived,
                "derived_total": sum(derived.values()),
                "unusual": counted(odd - before),
                "anomalies": [s.value for s in suspects if isinstance(s, IRI)],
                "seconds": report.seconds,
                "state_restored": same,
                "picture": str(picture),
            }
        )


def _row(degrees: int) -> tuple[object, ...]:
    reading = temperature(_BROKEN, degrees)
    return (reading.relation, *reading.args)


def _tell(console: Console, what: str, report: ChangeReport) -> None:
    console.text(f"  {what}")
    for sign, facts in (("+", report.inserted), ("-", report.deleted)):
        for name, count in counted(facts).items():
            console.text(f"    {sign}{count:>6,}  {name}")
    console.text(f"    in {report.seconds * 1000:,.0f} ms")


def _sizes(kb: KnowledgeBase) -> dict[int, int]:
    return {node.id: len(kb.state.segment(frozenset(node.rules))) for node in kb.graph().order}
