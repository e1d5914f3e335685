"""The wind-farm scenario of the paper, step by step: each step prints its results."""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from zodiacedge.cli.console import bold
from zodiacedge.cli.output import write_text
from zodiacedge.cli.program_source import details_of
from zodiacedge.demo import farm
from zodiacedge.demo.diagnosis import (
    SLICES,
    air_nearby,
    devices,
    diagnose,
    load_farm,
    load_kernels,
    short,
)
from zodiacedge.demo.farm_map import farm_map
from zodiacedge.demo.folder import DemoFolder
from zodiacedge.errors import UsageProblem, counted
from zodiacedge.graph.draw.svg import to_svg
from zodiacedge.opening import open_kb
from zodiacedge.pipeline.publish_slices import Published, publish

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from zodiacedge.cli.console import Console
    from zodiacedge.demo.diagnosis import TurbineDiagnosis
    from zodiacedge.demo.farm import Noon
    from zodiacedge.engine.spark.cluster.jobs import Jobs
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.terms import IRI

_STANDARD_ERROR = 2
# No Java, or no PySpark: the demo continues without Spark.
_NO_SPARK = {"U007", "U014"}


def play(console: Console, out: Path, turbines: int, engine: str) -> dict[str, object]:
    """Play the scenario and return its results as plain values for JSON."""
    folder = DemoFolder(out)
    folder.prepare()
    started = time.perf_counter()
    jobs, engine = _start(console, folder, engine)
    centre = _centre(console, folder, turbines, engine)
    slices = _publish(console, folder, turbines, jobs)
    noon = farm.noon(turbines)
    nearby = _noon(console, folder, noon, engine)
    load_kernels()
    diagnoses = [
        _turbine(console, folder, step, (number, noon.temperatures[number], nearby[number]))
        for step, number in enumerate((noon.in_the_front, noon.broken), 5)
    ]
    pictures = _pictures(folder, turbines, noon, diagnoses)
    seconds = time.perf_counter() - started
    console.text(f"\nAll of it took {seconds:.0f} s. What is left to play with in {out}:")
    console.table(("what", "where"), _results(folder, diagnoses))
    document = centre | {
        "slices": len(slices),
        "diagnoses": [_document(diagnosis) for diagnosis in diagnoses],
        "anomalies": [short(farm.turbine(diagnosis.number)) for diagnosis in diagnoses if diagnosis.broken],
        "state_restored": all(diagnosis.restored for diagnosis in diagnoses),
        "pictures": [str(path) for path in pictures],
        "seconds": seconds,
    }
    write_text(folder.document, json.dumps(document, indent=1) + "\n")
    return document


def _start(console: Console, folder: DemoFolder, engine: str) -> tuple[Jobs | None, str]:
    """Start Spark if it is chosen and available; return the engine to use."""
    if engine != "spark":
        return None, engine
    from zodiacedge.engine.spark.cluster.jobs import Jobs  # noqa: PLC0415 - loads what Spark needs

    jobs = Jobs()
    started = time.perf_counter()
    try:
        with _errors_to(folder.log):
            cores = jobs.cores
    except UsageProblem as problem:
        if not {diagnostic.code for diagnostic in problem.diagnostics} <= _NO_SPARK:
            raise
        reason = problem.diagnostics[0].message
        console.text(f"Without Spark: {reason}. The embedded engine does the centre's work instead.")
        return None, "embedded"
    console.text(
        f"Spark, which the centre of the farm runs on, started in {_since(started)} "
        f"on {counted(cores, 'core')}."
    )
    return jobs, engine


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """Redirect standard error, with the start messages of Java and Spark, to a file."""
    original = os.dup(_STANDARD_ERROR)
    with path.open("wb") as file:
        os.dup2(file.fileno(), _STANDARD_ERROR)
        try:
            yield
        finally:
            os.dup2(original, _STANDARD_ERROR)
            os.close(original)


def _centre(console: Console, folder: DemoFolder, turbines: int, engine: str) -> dict[str, object]:
    lines = list(farm.triples(turbines))
    write_text(folder.data, "\n".join(lines) + "\n")
    rows, kinds = len(farm.rows(turbines)), sum(1 for _ in farm.kinds())
    _print(
        console,
        f"1. A wind farm: {turbines} turbines in {rows} rows, {turbines * kinds:,} sensors of {kinds} kinds.",
        f"What they observed this morning is RDF in the words of SOSA: {counted(len(lines), 'triple')}.",
    )
    started = time.perf_counter()
    opened = open_kb(folder.store, create=True, engine=engine, progress=console.evaluating)
    with console.progress(), opened as kb:
        load_farm(kb, folder.data, "the farm this morning")
        explicit, derived = sum(kb.explicit_counts().values()), kb.derived()
    seconds = time.perf_counter() - started
    total = sum(derived.values())
    name = "Spark" if engine == "spark" else "the embedded engine"
    _print(
        console,
        f"2. The centre loads them with {counted(len(kb.rules), 'rule')} on {name}, "
        "and keeps all in a store:",
        f"{counted(explicit, 'explicit fact')}, {counted(total, 'derived fact')}, in {seconds:.1f} s.",
    )
    write_text(folder.pictures / "farm-rules.svg", to_svg(kb.graph(), details_of(kb)))
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
    published = publish(folder.store, folder.turbines, SLICES, devices(turbines), jobs)
    first = published[0]
    actor = "Tasks of Spark cut" if jobs else "It cuts"
    _print(
        console,
        f"3. {actor} a slice for each turbine, {counted(len(published), 'store')} in {_since(started)}:",
        f"its own readings and the air where its neighbours are, {counted(first.facts, 'fact')},",
        f"and of {counted(first.rules + first.left_behind, 'rule')} the {first.rules} that concern them.",
    )
    return published


def _noon(console: Console, folder: DemoFolder, noon: Noon, engine: str) -> dict[int, dict[IRI, float]]:
    lines = list(farm.noon_triples(noon))
    write_text(folder.landing / "noon.nt", "\n".join(lines) + "\n")
    started = time.perf_counter()
    with open_kb(folder.store, engine=engine) as kb:
        if engine == "spark":
            from zodiacedge.pipeline.stream import Stream  # noqa: PLC0415 - loads what Spark needs

            Stream(kb, folder.landing).follow()
        else:
            with kb.change("noon") as change:
                change.load(folder.landing)
        nearby = {number: air_nearby(kb, number) for number in (noon.in_the_front, noon.broken)}
    how = "and a stream takes them as one change" if engine == "spark" else "and are one change"
    _print(
        console,
        f"4. Noon. {counted(len(lines), 'triple')} about the air arrive in a folder, {how}:",
        f"version {kb.version} of the centre's store, in {_since(started)}. Turbines hear of the air around.",
    )
    return nearby


def _turbine(
    console: Console, folder: DemoFolder, step: int, case: tuple[int, float, dict[IRI, float]]
) -> TurbineDiagnosis:
    number, degrees, nearby = case
    name = short(farm.turbine(number))

    def draw(kb: KnowledgeBase) -> None:
        write_text(folder.pictures / f"diagnosis-{name}.svg", to_svg(kb.graph(), details_of(kb)))

    diagnosis = diagnose(folder.turbines / f"{name}.zodiac", number, degrees, nearby, draw)
    write_text(folder.pictures / f"why-{name}.svg", diagnosis.why.to_svg())
    before, after = diagnosis.before, diagnosis.after
    opened, unusual = diagnosis.opened * 1000, ", ".join(diagnosis.unusual)
    same = "exactly what it knew before" if diagnosis.restored else "NOT what it knew before"
    broken = "Confirmed: the sensor is broken, its neighbours feel nothing of the cold."
    cold = "Refuted: the sensor is right, a cold front is there."
    _print(
        console,
        f"{step}. Turbine {name} opens its slice in {opened:.0f} ms, with the embedded engine",
        f"and without Java: {counted(diagnosis.rules, 'rule')}, {counted(diagnosis.facts, 'explicit fact')}.",
        f"Its sensor says {degrees} degrees; a daily rule finds that unusual: {unusual}.",
        "A cold front, or a broken sensor? One turbine alone cannot know.",
        f"It knows {before.facts:,} facts, digest {before.digest[:16]}.",
        f"The six diagnosis rules are inserted while it runs: {_net(diagnosis.added)}.",
        "Why is its sensor called broken?" if diagnosis.broken else "Why is its sensor not called broken?",
        *_tree(diagnosis),
        f"{diagnosis.neighbours} neighbours have a median of {diagnosis.median} degrees; it is "
        f"{abs(degrees - diagnosis.median):.1f} off.",
        bold(broken if diagnosis.broken else cold),
        f"The rules are deleted again: {_net(diagnosis.dropped)}.",
        f"It knows {after.facts:,} facts, digest {after.digest[:16]}: {same}.",
    )
    return diagnosis


def _tree(diagnosis: TurbineDiagnosis) -> list[str]:
    """Return the lines of the explanation, without the rules below it."""
    return diagnosis.why.to_text(1).partition("\n\n")[0].splitlines()


def _pictures(folder: DemoFolder, turbines: int, noon: Noon, diagnoses: list[TurbineDiagnosis]) -> list[Path]:
    marked = {
        diagnosis.number: ("broken", "broken") if diagnosis.broken else ("front", "cold front")
        for diagnosis in diagnoses
    }
    picture = farm_map(farm.rows(turbines), noon.temperatures, marked)
    write_text(folder.pictures / "farm-at-noon.svg", picture)
    return sorted(folder.pictures.iterdir())


def _results(folder: DemoFolder, diagnoses: list[TurbineDiagnosis]) -> list[tuple[str, str]]:
    name = short(farm.turbine(diagnoses[-1].number))
    return [
        ("the farm's store", f"zodiac log {folder.store}"),
        ("a turbine's store", f"zodiac query {folder.turbines / name}.zodiac '?- farm:unusual(T, P) .'"),
        ("pictures", f"{folder.pictures}/farm-at-noon.svg and others"),
        ("what to try", str(folder.notes)),
    ]


def _document(diagnosis: TurbineDiagnosis) -> dict[str, object]:
    return {
        "turbine": short(farm.turbine(diagnosis.number)),
        "degrees": diagnosis.degrees,
        "unusual": list(diagnosis.unusual),
        "neighbours": diagnosis.neighbours,
        "median": diagnosis.median,
        "broken": diagnosis.broken,
        "why": diagnosis.why.to_dict(),
        "opened_seconds": diagnosis.opened,
        "added_seconds": diagnosis.added.seconds,
        "dropped_seconds": diagnosis.dropped.seconds,
        "digest_before": diagnosis.before.digest,
        "digest_after": diagnosis.after.digest,
        "facts_before": diagnosis.before.facts,
        "facts_after": diagnosis.after.facts,
    }


def _print(console: Console, first: str, *rest: str) -> None:
    console.text("\n" + "\n   ".join((first, *rest)))


def _since(started: float) -> str:
    return f"{time.perf_counter() - started:.1f} s"


def _net(report: ChangeReport) -> str:
    inserted, deleted = len(report.inserted), len(report.deleted)
    return f"{f'+{inserted:,}' if inserted else f'-{deleted:,}'} facts in {report.seconds * 1000:.0f} ms"
