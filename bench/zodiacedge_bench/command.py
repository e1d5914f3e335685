"""`zodiac bench`: workloads with known counts, how long they take, and what other engines take."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.output import check_folder, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from zodiacedge.cli.console import Console
    from zodiacedge_bench.report.report import Report
    from zodiacedge_bench.spark.report import SparkReport
    from zodiacedge_bench.suites import Options

    Found = Report | SparkReport

_GRAPHS = ("closure-dense", "closure-sparse", "same-generation", "points-to")
_SMALL_CLOSURE = "closure"
_PEERS = ("clingo", "duckdb", "nemo", "swi-prolog")
_PAPER = ("scratch", "memory", "insertion", "deletion", "rs3", "ds1", "data")
_LUBM = ("scratch", "last", "publications", "rules")
_CHURN = ("rules", "lubm", "links")
_SPARK = ("closure-dense", "closure-sparse", _SMALL_CLOSURE, "rs1", "rs2", "rs3", "lubm", "leaf", "growth")


@click.group("bench")
def command() -> None:
    """Measure: a table, JSON and plots; every count is checked before a time is told.

    A figure is the best of 3 runs, of 5 where it is below 0.1 s, each from facts in memory to all counts
    known; `churn` tells percentiles instead. Results go to bench/results, unless --out names another folder.

    \b
    Example:
      zodiac bench graphs --only closure-dense
      zodiac bench paper --only deletion
      zodiac bench peers
    """  # noqa: D301 - \b is click's mark for text that it must not wrap


_REPEATED_OPTIONS = (
    click.option("--runs", type=click.IntRange(min=1), help="Runs per figure, instead of 3 or 5."),
    click.option("--modules/--no-modules", default=None, help="Only with modules, or only without."),
)
_OPTIONS = (
    click.option("--small", is_flag=True, help="A few thousand facts each, to see that everything works."),
    click.option("--cold", is_flag=True, help="Tell also what an empty compile cache costs."),
    click.option(
        "--out", type=Path, default=Path("bench/results"), show_default=True, help="Where JSON and plots go."
    ),
)


def _measured(*names: str, repeated: bool = True) -> Callable[[Callable[..., Found]], Callable[..., None]]:
    # A benchmark gets the options of all of them as one argument, and its own beside it. `names` are those
    # of its workloads, if it can leave some out. One that is not `repeated` measures everything once.
    def decorate(function: Callable[..., Found]) -> Callable[..., None]:
        @functools.wraps(function)
        def call(  # noqa: PLR0913 - one argument per option
            console: Console,
            *,
            only: tuple[str, ...] = (),
            runs: int | None = None,
            modules: bool | None = None,
            small: bool,
            cold: bool,
            out: Path,
            **own: object,
        ) -> None:
            from zodiacedge_bench.suites import Options  # noqa: PLC0415 - loads the engine

            def tell(text: str) -> None:
                if sys.stderr.isatty():
                    console.note(text)

            kept = _Kept(out)
            options = Options(only, runs, modules, small, tell, kept.write)
            with kept.told(console):
                _run(console, lambda: function(options, **own), out, cold=cold)
            kept.remove()

        made = common(call)
        for option in reversed((*_REPEATED_OPTIONS, *_OPTIONS) if repeated else _OPTIONS):
            made = option(made)
        if not names:
            return made
        only = click.option("--only", multiple=True, type=click.Choice(names), help="Leave out the others.")
        return only(made)

    return decorate


@command.command("graphs")
@_measured(*_GRAPHS, _SMALL_CLOSURE, "change")
def graphs(options: Options) -> Report:
    r"""Closures, same generation and points-to analysis, from scratch; edges of the closures in and out.

    `--only change` is about the edges: each beside evaluating the changed graph from scratch.

    \b
    Example:
      zodiac bench graphs --only closure-dense --only closure-sparse
      zodiac bench graphs --only change
      zodiac bench graphs --no-modules --json
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    return suites.graphs(options)


@command.command("paper")
@_measured(*_PAPER)
def paper(options: Options) -> Report:
    r"""The paper's evaluation, beside the figures that the paper gives.

    Its experiments are names for --only:

    \b
      scratch    the three rule sets on growing data
      memory     bytes of RS2's facts and of their indexes, on growing data
      insertion  each rule of RS2, and two sets of three, into the others
      deletion   the same rules out of RS2
      rs3        the rules of RS3 that a negation depends on, in and out
      ds1        RS1 on growing chains: a link, r1 and r2 out and in
      data       RS1 on 200 turbines: 10 to 50 % more in, and out again

    A change stands beside evaluating the changed program from scratch in the same run. Changes are
    measured with modules, unless --no-modules is given.

    \b
    Example:
      zodiac bench paper --only scratch
      zodiac bench paper --only insertion --only deletion
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    return suites.paper(options)


@command.command("lubm")
@click.option(
    "--universities",
    multiple=True,
    type=click.IntRange(min=1),
    default=(1,),
    show_default=True,
    help="How many; may be given several times.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="A folder of CSV files instead; counts are checked against its expected.json.",
)
@_measured(*_LUBM)
def lubm(options: Options, *, universities: tuple[int, ...], data: Path | None) -> Report:
    r"""LUBM: 128 rules on universities, from scratch and under change.

    \b
      scratch       all rules
      last          the 8 rules at the end of the file, out and in again
      publications  the rules about publications, works, names and research interests, likewise
      rules         every single rule, likewise; the worst ten are shown, JSON has all

    \b
    Example:
      zodiac bench lubm --universities 1 --universities 10 --only scratch
      zodiac bench lubm --only rules
      zodiac bench lubm --data lubm001
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    return suites.lubm(options, universities, data)


@command.command("churn")
@click.option("--changes", type=click.IntRange(min=1), help="Of each kind, and back; 1,000 if not given.")
@click.option("--universities", type=click.IntRange(min=1), default=10, show_default=True, help="Of LUBM.")
@_measured(*_CHURN, repeated=False)
def churn(options: Options, *, changes: int | None, universities: int) -> Report:
    r"""Many small changes, one after the other: how long half of them take, 95 %, 99 %, and the worst.

    \b
      rules  one rule out and in again, picked at random among 10,008: renamed copies of RS2
      lubm   one fact out and in again, or in and out again, on LUBM-10
      links  the same on a relation with 10,000,000 facts that a few rules read

    Facts from which more than 20 others follow are left out. In the end every table must hold what an
    evaluation from nothing gives.

    \b
    Example:
      zodiac bench churn --only lubm
      zodiac bench churn --only rules --changes 100
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    return suites.churn(options, changes, universities)


@command.command("peers")
@click.option("--peer", "names", multiple=True, type=click.Choice(_PEERS), help="Leave out the others.")
@click.option("--universities", type=click.IntRange(min=1), default=1, show_default=True, help="Of LUBM.")
@_measured("rs1", "rs2", "rs3", *_GRAPHS, _SMALL_CLOSURE, "lubm")
def peers(options: Options, *, names: tuple[str, ...], universities: int) -> Report:
    r"""Other engines that are installed, on the same facts in the same run, with ratios and targets.

    The ratio is an engine's time divided by ours. The optional dependencies `peers` install them.

    \b
    Example:
      zodiac bench peers --only rs2 --peer clingo
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    return suites.peers(options, names, universities)


@command.command("spark")
@click.option("--master", default="local[*]", show_default=True, help="Where Spark runs.")
@click.option(
    "--universities",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Of LUBM, from scratch and for leaf rules.",
)
@click.option(
    "--start",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Universities from which LUBM grows to eight times as many.",
)
@_measured(*_SPARK)
def spark(options: Options, *, master: str, universities: int, start: int) -> SparkReport:
    r"""The engine spark beside loops in PySpark, all in one session, and where time goes.

    \b
      closure-dense, closure-sparse  transitive closures, beside the loop that most people write and one
                                     that is tuned by hand
      rs1, rs2, rs3, lubm            the paper's rule sets and LUBM, with the embedded engine's counts
      leaf                           rules that nobody reads out of LUBM and in again, beside
                                     materialising again
      growth                         LUBM on data that grows to eight times its size

    The ratio is an engine's time divided by ours on Spark. Where time goes is read from Spark's event log.
    It needs Java and the optional dependencies `spark`. All of it takes about an hour; what is measured is
    written as it goes, to spark-so-far.json, until all of it is there.

    \b
    Example:
      zodiac bench spark --only closure-dense
      zodiac bench spark --only leaf --only growth --start 5
    """
    from zodiacedge_bench.spark import suite  # noqa: PLC0415 - loads the engine

    return suite.spark(options, master, universities, start)


def _run(console: Console, bench: Callable[[], Found], out: Path, *, cold: bool) -> None:
    from zodiacedge.engine.embedded.warm_up import warm  # noqa: PLC0415 - as above
    from zodiacedge_bench.measure.harness import WrongCountError  # noqa: PLC0415 - loads the engine

    check_folder(out)
    compiling = _compiling() if cold else None
    warm()
    try:
        report = bench()
    except WrongCountError as problem:
        raise click.ClickException(str(problem)) from problem
    document = report.to_dict() | ({"cold": compiling} if compiling else {})
    for line in report.machine.lines():
        console.text(line)
    if compiling:
        console.text(
            f"a process that uses every kernel: {compiling['cold_seconds']:.1f} s with an empty compile "
            f"cache, {compiling['warm_seconds']:.1f} s with a full one"
        )
    for table in report.tables():
        console.text()
        console.table(table.columns, table.rows)
    console.text()
    if report.not_installed:
        console.text(f"not installed: {', '.join(report.not_installed)}")
    console.text(f"wrote {', '.join(map(str, _write(report, document, out)))}")
    if console.as_json:
        console.json(document)


class _Kept:
    """What is measured so far, in a file beside the results: whoever ends a long benchmark has that much."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._path: Path | None = None

    def write(self, document: Mapping[str, object]) -> None:
        path = self._out / f"{document['bench']}-so-far.json"
        # Whoever is interrupted here keeps what was there before.
        fresh = path.with_suffix(".new")
        write_text(fresh, json.dumps(document, indent=1) + "\n")
        self._path = fresh.replace(path)

    @contextmanager
    def told(self, console: Console) -> Iterator[None]:
        """Tell where it is if all of it is never there."""
        try:
            yield
        except BaseException:
            if self._path is not None:
                console.note(f"what was measured until then is in {self._path}")
            raise

    def remove(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _write(report: Found, document: dict[str, object], out: Path) -> list[Path | str]:
    from zodiacedge_bench.report.plots import can_plot  # noqa: PLC0415 - loads the engine

    path = out / f"{report.bench}.json"
    write_text(path, json.dumps(document, indent=1) + "\n")
    return [path, *report.draw(out)] if can_plot() else [path, "no plots: matplotlib is not installed"]


def _compiling() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as empty:
        return {
            "cold_seconds": _process_seconds(os.environ | {"NUMBA_CACHE_DIR": empty}),
            "warm_seconds": _process_seconds(os.environ | {"NUMBA_CACHE_DIR": empty}),
        }


def _process_seconds(environment: dict[str, str]) -> float:
    started = time.perf_counter()
    program = [sys.executable, "-m", "zodiacedge.engine.embedded.warm_up"]
    subprocess.run(program, env=environment, check=True)
    return time.perf_counter() - started
