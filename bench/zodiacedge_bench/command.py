"""`zodiac bench`: times of workloads with known counts, on our engines and on others."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.output import check_folder, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from zodiacedge.cli.console import Console
    from zodiacedge_bench.evaluation.compare import ComparedReport
    from zodiacedge_bench.fleet.report import FleetReport
    from zodiacedge_bench.life.report import EdgeReport, SoakReport, WindowsReport
    from zodiacedge_bench.measure.costs import Cost, StateSize
    from zodiacedge_bench.report.report import Report
    from zodiacedge_bench.spark.reads import Reads
    from zodiacedge_bench.spark.report import SparkReport
    from zodiacedge_bench.suites import Options

    AnyReport = Report | SparkReport | ComparedReport | SoakReport | WindowsReport | EdgeReport | FleetReport

_GRAPHS = ("closure-dense", "closure-sparse", "same-generation", "points-to")
_SMALL_CLOSURE = "closure"
_PEERS = ("clingo", "duckdb", "nemo", "swi-prolog", "souffle", "souffle-2-threads")
_PAPER = ("scratch", "memory", "insertion", "deletion", "rs3", "ds1", "data", "change")
_LUBM = ("scratch", "last", "publications", "rules")
_CHURN = ("rules", "lubm", "links")
_EXPLAIN = ("lubm", "closure", "class", "spark")
_WINDOWS = ("ticks", "readings", "spark")
_ON_SPARK = ("rs1", "rs2", "rs3", "lubm", "rounds", "leaf", "growth")
_SPARK = ("closure-dense", "closure-sparse", _SMALL_CLOSURE, *_ON_SPARK)


@click.group("bench")
def command() -> None:
    """Measure times: a table, JSON and plots; every count is checked before a time is printed.

    A figure is the best of 3 runs, of 5 below 0.1 s, each from facts in memory to all counts; `churn`
    prints percentiles instead. Results are written to bench/results, or to the folder of --out.

    \b
    Example:
      zodiac bench graphs --only closure-dense
      zodiac bench paper --only deletion
      zodiac bench peers
    """  # noqa: D301 - \b is click's mark for text that it must not wrap


_REPEATED_OPTIONS = (
    click.option("--runs", type=click.IntRange(min=1), help="Runs per figure, instead of 3 or 5."),
    click.option("--modules/--no-modules", default=None, help="Only with modules, or only without them."),
)
_OPTIONS = (
    click.option("--small", is_flag=True, help="A few thousand facts each, as a test."),
    click.option("--cold", is_flag=True, help="Measure also the cost of an empty compile cache."),
    click.option(
        "--out",
        type=Path,
        default=Path("bench/results"),
        show_default=True,
        help="The folder of JSON and plots.",
    ),
)


def _measured(
    *names: str, repeated: bool = True
) -> Callable[[Callable[..., AnyReport]], Callable[..., None]]:
    # A benchmark gets the common options as one argument, followed by its own. `names` are its workloads, for
    # `--only`. A benchmark that is not `repeated` measures everything once.
    def decorate(function: Callable[..., AnyReport]) -> Callable[..., None]:
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

            def progress(text: str) -> None:
                if sys.stderr.isatty():
                    console.note(text)

            partial = _PartialResults(out)
            options = Options(only, runs, modules, small, progress, partial.write)
            with partial.reported(console):
                _run(console, lambda: function(options, **own), out, cold=cold)
            partial.remove()

        decorated = common(call)
        for option in reversed((*_REPEATED_OPTIONS, *_OPTIONS) if repeated else _OPTIONS):
            decorated = option(decorated)
        if not names:
            return decorated
        only = click.option(
            "--only", multiple=True, type=click.Choice(names), help="Only this; may be repeated."
        )
        return only(decorated)

    return decorate


@command.command("graphs")
@_measured(*_GRAPHS, _SMALL_CLOSURE, "change")
def graphs(options: Options) -> Report:
    r"""Closures, same generation, points-to analysis from scratch; edges of closures inserted and deleted.

    `--only change` measures the edges, each beside evaluating the changed graph from scratch.

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
    r"""The paper's evaluation, beside the paper's own figures.

    Its experiments are names for --only:

    \b
      scratch    the three rule sets on growing data
      memory     bytes of RS2's facts and of their indexes, on growing data
      insertion  insert each rule of RS2, and two sets of three, into the others
      deletion   delete the same rules from RS2
      rs3        insert and delete the rules of RS3 that a negation depends on
      ds1        RS1 on growing chains: delete and insert a link, r1 and r2
      data       RS1 on 200 turbines: insert 10 to 50 % more, and delete them
      change     every single rule of RS1 to RS3, and facts, on 200 and 800
                 turbines; it takes long, and runs only if it is named

    Each change is compared with evaluating the changed program from scratch in the same run. Changes are
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
    help="Number of universities; may be repeated.",
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
      last          the 8 rules at the end of the file, deleted and inserted
      publications  the rules about publications, works, names and research interests, likewise
      rules         every single rule, likewise; the worst ten are shown, JSON has all; on more
                    than 10 universities it takes long, and runs only if it is named

    \b
    Example:
      zodiac bench lubm --universities 1 --universities 10 --only scratch
      zodiac bench lubm --only rules
      zodiac bench lubm --data lubm001
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    return suites.lubm(options, universities, data)


@command.command("churn")
@click.option("--changes", type=click.IntRange(min=1), help="Number per kind; 1,000 if not given.")
@click.option("--universities", type=click.IntRange(min=1), default=10, show_default=True, help="Of LUBM.")
@_measured(*_CHURN, repeated=False)
def churn(options: Options, *, changes: int | None, universities: int) -> Report:
    r"""Many small changes in sequence: the 50th, 95th and 99th percentiles of their times, and the worst.

    \b
      rules  delete and insert one rule, at random among 10,008: renamed copies of RS2
      lubm   delete and insert one fact, or insert and delete one, on LUBM-10
      links  the same on a relation with 10,000,000 facts that a few rules read

    Facts with more than 20 consequences are left out. In the end all tables are compared with an
    evaluation from scratch.

    \b
    Example:
      zodiac bench churn --only lubm
      zodiac bench churn --only rules --changes 100
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    return suites.churn(options, changes, universities)


def _on_spark(
    options: Options, measured: Callable[[Reads], Iterator[Cost | StateSize]]
) -> tuple[tuple[Cost, ...], tuple[StateSize, ...]]:
    """Return costs and sizes on Spark, if they are asked for by name."""
    if "spark" not in options.only:
        return (), ()
    from zodiacedge_bench.measure.costs import StateSize  # noqa: PLC0415 - only for this
    from zodiacedge_bench.spark.reads import reading_session  # noqa: PLC0415 - loads the engine

    costs: list[Cost] = []
    sizes: list[StateSize] = []
    with reading_session(options) as reads:
        for found in measured(reads):
            if isinstance(found, StateSize):
                sizes.append(found)
            else:
                costs.append(found)
    return tuple(costs), tuple(sizes)


@command.command("explain")
@click.option("--proofs", type=click.IntRange(min=1), help="Number per workload; 1,000 if not given.")
@click.option("--universities", type=click.IntRange(min=1), default=10, show_default=True, help="Of LUBM.")
@_measured(*_EXPLAIN, repeated=False)
def explain(options: Options, *, proofs: int | None, universities: int) -> Report:
    r"""Proofs of derived facts, one question after the other: percentiles of their times, and the worst.

    \b
      lubm     facts of all predicates of LUBM-10, and facts that a rule of five atoms lacks
      closure  facts of a closure of millions of facts
      class    two members of a class of 400 equal things, connected in a chain
      spark    jobs and rows read for one fact of several predicates of LUBM on Spark, in a session that
               has asked nothing, and for another one; bytes per fact with indexes and without; it runs
               only if it is named

    Every proof must be complete and known to be of least height.

    \b
    Example:
      zodiac bench explain --only class --proofs 100
      zodiac bench explain --only spark --universities 80
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    report = suites.explain(options, proofs, universities)
    costs, sizes = _on_spark(options, lambda reads: reads.of_proofs(universities))
    return replace(report, costs=costs, sizes=sizes)


@command.command("tables")
@click.option("--rows", type=click.IntRange(min=3), help="Number of rows; 1,000,000 if not given.")
@_measured()
def tables(options: Options, *, rows: int | None) -> Report:
    r"""Tables into a knowledge base and answers out of it: processor time per row, beside N-Triples.

    The same facts are loaded as N-Triples, CSV and Parquet, added as Arrow tables and data frames, and come
    out as answers and exports. The last column is the speed as a share of that of N-Triples.

    \b
    Example:
      zodiac bench tables
      zodiac bench tables --rows 100000 --runs 1
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    return suites.tables(options, rows)


@command.command("peers")
@click.option("--peer", "names", multiple=True, type=click.Choice(_PEERS), help="Only this; may be repeated.")
@click.option(
    "--universities",
    multiple=True,
    type=click.IntRange(min=1),
    default=(1, 10),
    show_default=True,
    help="Of LUBM; may be repeated.",
)
@_measured("rs1", "rs2", "rs3", *_GRAPHS, _SMALL_CLOSURE, "lubm")
def peers(options: Options, *, names: tuple[str, ...], universities: tuple[int, ...]) -> Report:
    r"""Other installed engines on the same facts in the same run, with ratios and targets.

    The ratio is an engine's time divided by ours. The optional dependencies `peers` install clingo, DuckDB
    and Nemo; SWI-Prolog and Soufflé are measured where they are on the path. Where Soufflé is not, its
    processor time is estimated by DuckDB's for the targets.

    \b
    Example:
      zodiac bench peers --only rs2 --peer clingo
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    return suites.peers(options, names, universities)


@command.command("soak")
@click.option("--readings", type=click.IntRange(min=100), help="Number of readings; 1,000,000 if not given.")
@click.option(
    "--batch", type=click.IntRange(min=1), default=50, show_default=True, help="Readings of a change."
)
@click.option("--folder", type=Path, help="A folder for the store; a temporary one if not given.")
@_measured(repeated=False)
def soak(options: Options, *, readings: int | None, batch: int, folder: Path | None) -> SoakReport:
    r"""A device that runs for ever: 1,000 sensors, readings that never repeat, a window of 10,000.

    For each tenth of the run: resident memory, open files, the files and bytes of the store, terms (means of
    samples), and percentiles of the times of changes. Old readings leave the window, rules come and go, the
    store keeps the versions that fit into 64 MB. The facts are compared with the reference evaluator on the
    way.

    \b
    Example:
      zodiac bench soak
      zodiac bench soak --readings 10000000 --folder /var/tmp
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    return suites.soak(options, readings, batch, folder)


@command.command("windows")
@_measured(*_WINDOWS, repeated=False)
def windows(options: Options) -> WindowsReport:
    r"""What windows cost: a tick with one row due, and 100,000 readings a second through 20 rules.

    The window of a tick holds ten thousand rows, then ten million. Each figure stands beside evaluating
    anew and beside DuckDB, which is asked the same. Needs 8 GB of memory, and DuckDB.

    \b
      ticks     ticks with one row due
      readings  many readings a second
      spark     jobs and rows read by a tick with one row due on Spark, of ten thousand and of a million rows
                in the window; it runs only if it is named

    \b
    Example:
      zodiac bench windows
      zodiac bench windows --only spark
      zodiac bench windows --small
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    report = suites.windows(options)
    costs, _ = _on_spark(options, lambda reads: reads.of_ticks())
    return replace(report, costs=costs)


@command.command("fleet")
@click.option("--devices", type=click.IntRange(min=4), help="Number of devices; 1,000 if not given.")
@click.option("--folder", type=Path, help="A folder for hub and devices; a temporary one if not given.")
@_measured(repeated=False)
def fleet(options: Options, *, devices: int | None, folder: Path | None) -> FleetReport:
    r"""Many devices against one hub, all on this machine: from publishing a pack to its being in force.

    For each step: percentiles over the devices, processor time of the hub and of the devices, and bytes per
    device. In the last, the hub was killed and all devices come back at once. Then one rule changes in a pack
    of 10,000: bytes on the wire, and processor time on the device.

    \b
    Example:
      zodiac bench fleet
      zodiac bench fleet --devices 100 --folder /dev/shm
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    return suites.fleet(options, devices, folder)


@command.command("edge")
@_measured(repeated=False)
def edge(options: Options) -> EdgeReport:
    r"""What a device pays: memory, time to the first answer, and the size of what is installed.

    \b
    Example:
      zodiac bench edge
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine

    return suites.edge(options)


@command.command("quick")
@click.option(
    "--baseline",
    type=Path,
    default=Path("bench/baseline"),
    show_default=True,
    help="The folder of the committed results.",
)
@_measured()
def quick(options: Options, *, baseline: Path) -> ComparedReport:
    r"""Compare with the committed results: each time as a ratio to DuckDB in the same run. Takes minutes.

    The last column is how many times the committed ratio the new one is: above 1 is slower.
    Beside evaluations from scratch each rule of RS2 is inserted and deleted.

    \b
    Example:
      zodiac bench quick
      zodiac bench quick --runs 1 --no-modules
    """
    from zodiacedge_bench import suites  # noqa: PLC0415 - loads the engine
    from zodiacedge_bench.evaluation.baseline import read_results  # noqa: PLC0415 - as above
    from zodiacedge_bench.evaluation.compare import ComparedReport, compare  # noqa: PLC0415 - as above

    committed = read_results(baseline).get("quick")
    report = suites.quick(options)
    return ComparedReport(report, compare(report.to_dict(), committed) if committed else ())


@command.command("accept")
@click.option(
    "--results",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path("bench/results"),
    show_default=True,
    help="The folder of new results; those of benchmarks that it lacks stay as they are.",
)
@click.option(
    "--repository", type=Path, default=Path(), help="The root of the repository, if not this folder."
)
@common
def accept(console: Console, *, results: Path, repository: Path) -> None:
    r"""Make new results the committed ones, and generate docs/evaluation.md from all committed results.

    \b
    Example:
      zodiac bench accept
      zodiac bench accept --results other-machine
    """
    from zodiacedge_bench.evaluation.accept import accept as accept_results  # noqa: PLC0415 - loads the engine

    for path in accept_results(results, repository):
        console.text(f"wrote {path}")


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
    r"""The engine spark beside loops in PySpark, in one session, with a profile of the time.

    \b
      closure-dense, closure-sparse  transitive closures, beside the usual loop and one that is tuned by
                                     hand
      rs1, rs2, rs3, lubm            the paper's rule sets and LUBM, with the embedded engine's counts
      rounds                         recursion that keeps no argument, nothing gathered in one task, beside
                                     the usual loop, and a fact deleted and inserted
      leaf                           delete and insert rules of LUBM whose facts no rule reads, beside
                                     materialising again
      growth                         LUBM on data that grows to eight times its size

    The ratio is an engine's time divided by ours on Spark. The profile is read from Spark's event log.
    It needs Java and the optional dependencies `spark`. All of it takes about an hour; results so far are
    written to spark-so-far.json until all are complete.

    \b
    Example:
      zodiac bench spark --only closure-dense
      zodiac bench spark --only leaf --only growth --start 5
    """
    from zodiacedge_bench.spark import suite  # noqa: PLC0415 - loads the engine

    return suite.spark(options, master, universities, start)


def _run(console: Console, bench: Callable[[], AnyReport], out: Path, *, cold: bool) -> None:
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


class _PartialResults:
    """The results so far of a long benchmark, in a file that survives an interruption."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._path: Path | None = None

    def write(self, document: Mapping[str, object]) -> None:
        path = self._out / f"{document['bench']}-so-far.json"
        # An interruption here keeps the previous file.
        fresh = path.with_suffix(".new")
        write_text(fresh, json.dumps(document, indent=1) + "\n")
        self._path = fresh.replace(path)

    @contextmanager
    def reported(self, console: Console) -> Iterator[None]:
        """Print the path of the file if the block fails."""
        try:
            yield
        except BaseException:
            if self._path is not None:
                console.note(f"the results until then are in {self._path}")
            raise

    def remove(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _write(report: AnyReport, document: dict[str, object], out: Path) -> list[Path | str]:
    from zodiacedge_bench.report.plots import can_plot  # noqa: PLC0415 - loads the engine

    path = out / f"{report.bench}.json"
    write_text(path, json.dumps(document, indent=1) + "\n")
    return [path, *report.draw(out)] if can_plot() else [path, "no plots: matplotlib is not installed"]


def _compiling() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as empty:
        return {
            "cold_seconds": _process_seconds(os.environ | {"NUMBA_CACHE_DIR": empty, "ZODIAC_JIT": "1"}),
            "warm_seconds": _process_seconds(os.environ | {"NUMBA_CACHE_DIR": empty, "ZODIAC_JIT": "1"}),
        }


def _process_seconds(environment: dict[str, str]) -> float:
    started = time.perf_counter()
    program = [sys.executable, "-m", "zodiacedge.engine.embedded.warm_up"]
    subprocess.run(program, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started
