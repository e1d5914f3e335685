"""`zodiac demo`: the wind farm of the paper, end to end, as a story."""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.console import many
from zodiacedge.cli.output import write_text
from zodiacedge.demo.diagnosis import (
    SLICES,
    air_nearby,
    devices,
    diagnose,
    load_farm,
    load_kernels,
    short,
)
from zodiacedge.demo.folder import DemoFolder
from zodiacedge.demo.map import farm_map
from zodiacedge.engine.select import STORE_ENGINES
from zodiacedge.errors import UsageProblem
from zodiacedge.graph.draw.svg import to_svg
from zodiacedge.opening import open_kb
from zodiacedge.pipeline.publish_slices import Published, publish
from zodiacedge.workloads import farm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.cli.console import Console
    from zodiacedge.demo.diagnosis import Diagnosis
    from zodiacedge.engine.spark.cluster.jobs import Jobs
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.terms import IRI
    from zodiacedge.workloads.farm import Noon

_TURBINES = 30
_STANDARD_ERROR = 2
# No Java, or no PySpark: the demo goes on without.
_NO_SPARK = {"U007", "U014"}


@click.command("demo")
@click.option("--turbines", default=_TURBINES, show_default=True, type=click.IntRange(12, 300))
@click.option(
    "--engine",
    type=click.Choice(STORE_ENGINES),
    default="spark",
    show_default=True,
    help="What the farm's centre runs on.",
)
@click.option(
    "--out", default="out/demo", show_default=True, metavar="DIR", help="Where stores and pictures go."
)
@common
def command(console: Console, turbines: int, engine: str, out: str) -> None:
    r"""Play the wind-farm scenario: a farm at the centre, a part of it on each turbine, and live rules.

    Two turbines read an odd temperature. Diagnosis rules come, find out that one is in a cold front and that
    the sensor of the other is broken, and go again. Stores and pictures stay in a folder to play with.

    \b
    Example:
      zodiac demo
      zodiac demo --turbines 60 --engine embedded --json
    """
    folder = DemoFolder(Path(out))
    folder.prepare()
    started = time.perf_counter()
    jobs, engine = _started(console, folder, engine)
    centre = _centre(console, folder, turbines, engine)
    slices = _publish(console, folder, turbines, jobs)
    noon = farm.noon(turbines)
    told = [noon.in_the_front, noon.broken]
    nearby = _noon(console, folder, noon, engine)
    load_kernels()
    found = [
        _turbine(console, folder, n, (one, noon.temperatures[one], nearby[one]))
        for n, one in enumerate(told, 5)
    ]
    pictures = _pictures(folder, turbines, noon, found)
    seconds = time.perf_counter() - started
    console.text(f"\nAll of it took {seconds:.0f} s. What is left to play with in {out}:")
    console.table(("what", "where"), _left(folder, found))
    document = centre | {
        "slices": len(slices),
        "turbines_told": [_told(one) for one in found],
        "anomalies": [short(farm.turbine(one.number)) for one in found if one.broken],
        "state_restored": all(one.restored for one in found),
        "pictures": [str(path) for path in pictures],
        "seconds": seconds,
    }
    write_text(folder.document, json.dumps(document, indent=1) + "\n")
    if console.as_json:
        console.json(document)


def _started(console: Console, folder: DemoFolder, engine: str) -> tuple[Jobs | None, str]:
    """Start Spark, if it is wanted and can be had."""
    if engine != "spark":
        return None, engine
    from zodiacedge.engine.spark.cluster.jobs import Jobs  # noqa: PLC0415 - only who uses Spark pays for it

    jobs = Jobs()
    started = time.perf_counter()
    try:
        with _errors_to(folder.log):
            cores = jobs.cores
    except UsageProblem as problem:
        if not {one.code for one in problem.diagnostics} <= _NO_SPARK:
            raise
        reason = problem.diagnostics[0].message
        console.text(f"Without Spark: {reason}. The embedded engine does the centre's work instead.")
        return None, "embedded"
    console.text(
        f"Spark, which the centre of the farm runs on, started in {_since(started)} on {many(cores, 'core')}."
    )
    return jobs, engine


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """Let what processes that are started here say go to a file: Java greets at length."""
    kept = os.dup(_STANDARD_ERROR)
    with path.open("wb") as file:
        os.dup2(file.fileno(), _STANDARD_ERROR)
        try:
            yield
        finally:
            os.dup2(kept, _STANDARD_ERROR)
            os.close(kept)


def _centre(console: Console, folder: DemoFolder, turbines: int, engine: str) -> dict[str, object]:
    lines = list(farm.triples(turbines))
    write_text(folder.data, "\n".join(lines) + "\n")
    rows, kinds = len(farm.rows(turbines)), sum(1 for _ in farm.kinds())
    _tell(
        console,
        f"1. A wind farm: {turbines} turbines in {rows} rows, {turbines * kinds:,} sensors of {kinds} kinds.",
        f"What they observed this morning is RDF in the words of SOSA: {many(len(lines), 'triple')}.",
    )
    started = time.perf_counter()
    opened = open_kb(folder.store, create=True, engine=engine, progress=console.evaluating)
    with console.progress(), opened as kb:
        load_farm(kb, folder.data, "the farm this morning")
        explicit, derived = sum(kb.explicit_counts().values()), kb.derived()
    seconds = time.perf_counter() - started
    total = sum(derived.values())
    place = "Spark" if engine == "spark" else "the embedded engine"
    _tell(
        console,
        f"2. The centre loads them with {many(len(kb.rules), 'rule')} on {place}, and keeps all in a store:",
        f"{many(explicit, 'explicit fact')}, {many(total, 'derived fact')}, in {seconds:.1f} s.",
    )
    write_text(folder.pictures / "farm-rules.svg", to_svg(kb.graph(), sizes=_sizes(kb)))
    return {
        "turbines": turbines,
        "engine": engine,
        "explicit": explicit,
        "derived": derived,
        "derived_total": total,
        "centre_seconds": seconds,
    }


def _publish(console: Console, folder: DemoFolder, turbines: int, jobs: Jobs | None) -> list[Published]:
    started = time.perf_counter()
    found = publish(folder.store, folder.turbines, SLICES, devices(turbines), jobs)
    one = found[0]
    who = "Tasks of Spark cut" if jobs else "It cuts"
    _tell(
        console,
        f"3. {who} a slice for each turbine, {many(len(found), 'store')} in {_since(started)}:",
        f"its own readings and the air where its neighbours are, {many(one.facts, 'fact')},",
        f"and of {many(one.rules + one.left_behind, 'rule')} the {one.rules} that concern them.",
    )
    return found


def _noon(console: Console, folder: DemoFolder, noon: Noon, engine: str) -> dict[int, dict[IRI, float]]:
    lines = list(farm.noon_triples(noon))
    write_text(folder.landing / "noon.nt", "\n".join(lines) + "\n")
    started = time.perf_counter()
    with open_kb(folder.store, engine=engine) as kb:
        if engine == "spark":
            from zodiacedge.pipeline.stream import Stream  # noqa: PLC0415 - only who uses Spark pays for it

            Stream(kb, folder.landing).follow()
        else:
            with kb.change("noon") as change:
                change.load(folder.landing)
        found = {number: air_nearby(kb, number) for number in (noon.in_the_front, noon.broken)}
    how = "and a stream takes them as one change" if engine == "spark" else "and are one change"
    _tell(
        console,
        f"4. Noon. {many(len(lines), 'triple')} about the air arrive in a folder, {how}:",
        f"version {kb.version} of the centre's store, in {_since(started)}. Turbines hear of the air around.",
    )
    return found


def _turbine(
    console: Console, folder: DemoFolder, step: int, given: tuple[int, float, dict[IRI, float]]
) -> Diagnosis:
    number, degrees, nearby = given
    name = short(farm.turbine(number))

    def look(kb: KnowledgeBase) -> None:
        write_text(folder.pictures / f"diagnosis-{name}.svg", to_svg(kb.graph(), sizes=_sizes(kb)))

    found = diagnose(folder.turbines / f"{name}.zodiac", number, degrees, nearby, look)
    before, after = found.before, found.after
    same = "exactly what it knew before" if found.restored else "NOT what it knew before"
    broken = "Confirmed: the sensor is broken, its neighbours feel nothing of the cold."
    cold = "Refuted: the sensor is right, a cold front is there."
    _tell(
        console,
        f"{step}. Turbine {name} opens its slice in {found.opened * 1000:.0f} ms, with the embedded engine",
        f"and without Java: {many(found.rules, 'rule')}, {many(found.facts, 'explicit fact')}.",
        f"Its sensor says {degrees} degrees; a daily rule finds that unusual: {', '.join(found.unusual)}.",
        "A cold front, or a broken sensor? One turbine alone cannot know.",
        f"It knows {before.facts:,} facts, digest {before.digest[:16]}.",
        f"The six diagnosis rules come, and are added while it runs: {_net(found.added)}.",
        f"{found.neighbours} neighbours have a median of {found.median} degrees; it is "
        f"{abs(degrees - found.median):.1f} off.",
        click.style(broken if found.broken else cold, bold=True),
        f"The rules go again: {_net(found.dropped)}.",
        f"It knows {after.facts:,} facts, digest {after.digest[:16]}: {same}.",
    )
    return found


def _pictures(folder: DemoFolder, turbines: int, noon: Noon, found: list[Diagnosis]) -> list[Path]:
    marked = {one.number: ("found", "broken") if one.broken else ("front", "cold front") for one in found}
    picture = farm_map(farm.rows(turbines), noon.temperatures, marked)
    write_text(folder.pictures / "farm-at-noon.svg", picture)
    return sorted(folder.pictures.iterdir())


def _left(folder: DemoFolder, found: list[Diagnosis]) -> list[tuple[str, str]]:
    name = short(farm.turbine(found[-1].number))
    return [
        ("the farm's store", f"zodiac log {folder.store}"),
        ("a turbine's store", f"zodiac query {folder.turbines / name}.zodiac '?- farm:unusual(T, P) .'"),
        ("pictures", f"{folder.pictures}/farm-at-noon.svg and others"),
        ("what to try", str(folder.notes)),
    ]


def _told(one: Diagnosis) -> dict[str, object]:
    return {
        "turbine": short(farm.turbine(one.number)),
        "degrees": one.degrees,
        "unusual": list(one.unusual),
        "neighbours": one.neighbours,
        "median": one.median,
        "broken": one.broken,
        "opened_seconds": one.opened,
        "added_seconds": one.added.seconds,
        "dropped_seconds": one.dropped.seconds,
        "digest_before": one.before.digest,
        "digest_after": one.after.digest,
        "facts_before": one.before.facts,
        "facts_after": one.after.facts,
    }


def _tell(console: Console, first: str, *others: str) -> None:
    console.text("\n" + "\n   ".join((first, *others)))


def _since(started: float) -> str:
    return f"{time.perf_counter() - started:.1f} s"


def _net(report: ChangeReport) -> str:
    came, went = len(report.inserted), len(report.deleted)
    return f"{f'+{came:,}' if came else f'-{went:,}'} facts in {report.seconds * 1000:.0f} ms"


def _sizes(kb: KnowledgeBase) -> dict[int, int]:
    return {node.id: kb.state.segment_size(frozenset(node.rules)) for node in kb.graph().order}
