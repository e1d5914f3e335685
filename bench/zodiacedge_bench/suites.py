"""The benchmarks, one function each: from options to a report."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge_bench.changes import lubm as lubm_changes
from zodiacedge_bench.changes import paper as paper_changes
from zodiacedge_bench.changes.churn import (
    AnyFact,
    churn_facts,
    churn_rules,
    copies_task,
    links_drawn,
    links_task,
)
from zodiacedge_bench.changes.experiment import Changes, Experiment
from zodiacedge_bench.changes.graphs import edges
from zodiacedge_bench.changes.paper import SMALL_TURBINES
from zodiacedge_bench.fleet.report import FleetReport
from zodiacedge_bench.fleet.run import FleetSize, fleet_figures
from zodiacedge_bench.life import windows as window_figures
from zodiacedge_bench.life.footprint import footprints, installations
from zodiacedge_bench.life.idle_agent import idle_agent
from zodiacedge_bench.life.report import EdgeReport, SoakReport, WindowsReport
from zodiacedge_bench.life.soak import SMALL, Size
from zodiacedge_bench.life.soak import soak as run_soak
from zodiacedge_bench.measure.embedded import NO_MODULES, ON_ONE_CORE, OURS, EmbeddedTrial, Memory, memory
from zodiacedge_bench.measure.harness import Expected, measure
from zodiacedge_bench.measure.live import knowledge_base
from zodiacedge_bench.measure.machine import one_core, this_machine, usable_cores
from zodiacedge_bench.measure.proofs import class_of, miss, prove
from zodiacedge_bench.measure.tables import TableFigure, TableWays
from zodiacedge_bench.measure.task import (
    PAPER_SIZES,
    Task,
    graph_tasks,
    lubm_files_task,
    lubm_task,
    paper_task,
)
from zodiacedge_bench.peers import PEERS
from zodiacedge_bench.peers.portable import portable
from zodiacedge_bench.report.report import Figure, Report
from zodiacedge_bench.report.targets import (
    change_verdicts,
    latency_verdicts,
    memory_verdicts,
    speed_verdicts,
    table_verdicts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from zodiacedge_bench.measure.latency import Latencies
    from zodiacedge_bench.peers import Peer

PAPER_CHANGES = {
    "insertion": paper_changes.insertion,
    "deletion": paper_changes.deletion,
    "rs3": paper_changes.rs3,
    "ds1": paper_changes.ds1,
    "data": paper_changes.data,
    "change": paper_changes.change,
}
_CHANGES = 1000
# LUBM on more universities has its single rules changed only if that is named: it takes hours.
_SINGLE_RULES_UP_TO = 10
_MEMBERS = 400
_COPIES = 556
_LINKS = (1_000_000, 1000)
"""Nodes, and watched nodes."""
_TABLE_ROWS = 1_000_000
_SMALL_CHANGES = 10
_SMALL_COPIES = 3
_SMALL_LINKS = (100, 10)
_SMALL_TABLE_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Options:
    """The options of all benchmarks."""

    only: tuple[str, ...] = ()
    """Names of workloads or experiments; all if empty."""
    runs: int | None = None
    """Runs per figure, instead of the usual number."""
    modules: bool | None = None
    """Whether modules evaluate nodes of a known shape; both if None."""
    small: bool = False
    """Workloads of a few thousand facts, as a test."""
    progress: Callable[[str], None] = lambda _text: None
    """Called with the name of each measurement."""
    save: Callable[[Mapping[str, object]], None] = lambda _document: None
    """Called with the results so far of a long benchmark, as plain values for JSON."""

    def wants(self, name: str) -> bool:
        """Return whether a workload or experiment is selected."""
        return not self.only or name in self.only

    @property
    def modes(self) -> tuple[bool, ...]:
        """Modules on, off, or both."""
        return (True, False) if self.modules is None else (self.modules,)


def graphs(options: Options) -> Report:
    """Closures, same generation and points-to, from scratch; edges of closures inserted and deleted."""
    every = graph_tasks(small=options.small)
    tasks = [task for name, task in every.items() if options.wants(name)]
    closures = [task for name, task in every.items() if name.startswith("closure")]
    changed = (edges(task) for task in closures if options.wants("change"))
    return _with_changes(_from_scratch("graphs", tasks, options), changed, options)


def soak(options: Options, readings: int | None, batch: int, folder: Path | None) -> SoakReport:
    """A device that runs for ever."""
    size = SMALL if options.small else Size(batch=batch)
    size = replace(size, readings=readings) if readings else size
    with tempfile.TemporaryDirectory(dir=folder) as name:
        tenths = run_soak(size, Path(name) / "device.zodiac", options.progress)
    return SoakReport(this_machine(), size, tuple(tenths))


def windows(options: Options) -> WindowsReport:
    """Ticks."""
    size = window_figures.SMALL if options.small else window_figures.Size()
    size = replace(
        size,
        windows=size.windows if options.wants("ticks") else (),
        seconds=size.seconds if options.wants("readings") else 0,
    )
    return WindowsReport(this_machine(), tuple(window_figures.windows(size, options.progress)))


def fleet(options: Options, devices: int | None, folder: Path | None) -> FleetReport:
    """Many devices against one hub."""
    size = FleetSize(8, 50) if options.small else FleetSize()
    size = replace(size, devices=devices) if devices else size
    with tempfile.TemporaryDirectory(dir=folder) as name:
        return FleetReport(this_machine(), fleet_figures(size, Path(name), options.progress))


def edge(options: Options) -> EdgeReport:
    """What a device pays."""
    processes = tuple(footprints(small=options.small))
    return EdgeReport(this_machine(), processes, tuple(installations()), idle_agent())


def paper(options: Options) -> Report:
    """The paper's evaluation: its rule sets from scratch on growing data, memory, and changes."""
    sizes = PAPER_SIZES if not options.small else dict.fromkeys(PAPER_SIZES, (SMALL_TURBINES,))
    tasks = [paper_task(number, n) for number, turbines in sizes.items() for n in turbines]
    report = _from_scratch("paper", tasks if options.wants("scratch") else [], options)
    if options.wants("memory"):
        report = _with_memory(report, (paper_task(2, turbines) for turbines in sizes[2]), options)
    wanted = [name for name in PAPER_CHANGES if options.wants(name) and (options.only or name != "change")]
    changed = (PAPER_CHANGES[name](small=options.small) for name in wanted)
    return _with_changes(report, changed, options)


def lubm(options: Options, universities: Iterable[int] = (1,), data: Path | None = None) -> Report:
    """LUBM's 128 rules on generated universities or on a folder of CSV files: from scratch, and changes."""
    departments = 1 if options.small else None
    tasks = (
        [lubm_files_task(data)]
        if data
        else [lubm_task(count, departments=departments) for count in universities]
    )
    large = {f"lubm-{count}" for count in universities if count > _SINGLE_RULES_UP_TO}
    report = _from_scratch("lubm", tasks if options.wants("scratch") else [], options)
    makers: dict[str, Callable[[Task], Iterable[Experiment]]] = {
        "last": lubm_changes.last,
        "publications": lubm_changes.publications,
        "rules": partial(lubm_changes.rules, small=options.small),
    }
    changed = (
        make(task)
        for task in tasks
        for name, make in makers.items()
        if options.wants(name) and (options.only or name != "rules" or task.name not in large)
    )
    return _with_changes(report, changed, options)


def churn(options: Options, changes: int | None = None, universities: int = 10) -> Report:
    """Many small changes: a rule among ten thousand, a fact among millions."""
    small = options.small
    changes = changes or (_SMALL_CHANGES if small else _CHANGES)
    progress = options.progress
    machine = this_machine()
    latencies: list[Latencies] = []
    if options.wants("rules"):
        latencies += churn_rules(copies_task(_SMALL_COPIES if small else _COPIES), changes, progress)
    if options.wants("lubm"):
        task = lubm_task(1, departments=1) if small else lubm_task(universities)
        latencies += churn_facts(task, {"fact": AnyFact(task.loaded)}, changes, progress)
    if options.wants("links"):
        nodes, count = _SMALL_LINKS if small else _LINKS
        task = links_task(nodes, count)
        latencies += churn_facts(task, links_drawn(task, nodes, count), changes, progress)
    return Report("churn", machine, (), latencies=tuple(latencies), verdicts=latency_verdicts(latencies))


def explain(options: Options, proofs: int | None = None, universities: int = 10) -> Report:
    """Proofs of derived facts: on LUBM, in a large closure, and in a class of 400 equal things."""
    machine = this_machine()
    proofs = proofs or (_SMALL_CHANGES if options.small else _CHANGES)
    latencies: list[Latencies] = []
    if options.wants("lubm"):
        task = lubm_task(1, departments=1) if options.small else lubm_task(universities)
        options.progress(task.name)
        kb = knowledge_base(task, modules=True)
        latencies += [prove(task.name, kb, proofs), miss(task.name, kb, proofs)]
    if options.wants("closure"):
        name, task = next(t for t in graph_tasks(small=options.small).items() if t[0].startswith("closure"))
        options.progress(name)
        latencies.append(prove(name, knowledge_base(task, modules=True), proofs))
    if options.wants("class"):
        options.progress("class")
        latencies.append(prove("class", class_of(_SMALL_CHANGES if options.small else _MEMBERS), proofs))
    return Report("explain", machine, (), latencies=tuple(latencies))


def tables(options: Options, rows: int | None = None) -> Report:
    """Tables into a knowledge base and answers out of it, beside N-Triples of the same facts."""
    machine = this_machine()
    figures: list[TableFigure] = []
    with tempfile.TemporaryDirectory() as folder:
        options.progress("writing the files")
        bench = TableWays(Path(folder), rows or (_SMALL_TABLE_ROWS if options.small else _TABLE_ROWS))
        first, *others = bench.ways()
        triples = bench.measure(first, options.runs)
        figures.append(TableFigure(first.name, bench.total, triples, triples))
        for way in others:
            options.progress(way.name)
            runs = bench.measure(way, options.runs)
            figures.append(TableFigure(way.name, bench.total, runs, triples))
    return Report("tables", machine, (), ways=tuple(figures), verdicts=table_verdicts(figures))


def peers(
    options: Options,
    names: tuple[str, ...] = (),
    universities: Sequence[int] = (1,),
    *,
    one_core_too: bool = True,
) -> Report:
    """Other engines on the same facts, beside ours."""
    chosen = [peer for peer in PEERS if not names or peer.name in names]
    present = [peer for peer in chosen if peer.version()]
    figures: list[Figure] = []
    for task in _compared(options, universities):
        own = _own_figures(task, options, one_core_too=one_core_too)
        figures += own
        for peer in present:
            figures.append(_peer_figure(task, peer, own[0], options))
    return Report(
        "peers",
        this_machine(),
        tuple(figures),
        versions={peer.name: peer.version() for peer in present},
        not_installed=tuple(peer.name for peer in chosen if peer not in present),
        verdicts=speed_verdicts(figures),
    )


def quick(options: Options) -> Report:
    """What `make bench` compares with the committed results: ours beside DuckDB, and rules of RS2 changed."""
    report = peers(options, ("duckdb",), (1, 10), one_core_too=False)
    changed = (PAPER_CHANGES[name](small=options.small) for name in ("insertion", "deletion"))
    return replace(_with_changes(report, changed, options), bench="quick")


def _from_scratch(name: str, tasks: Iterable[Task], options: Options) -> Report:
    figures: list[Figure] = []
    sizes: list[Memory] = []
    machine = this_machine()
    for task in tasks:
        figures += _own_figures(task, options, one_core_too=True)
        options.progress(f"{task.name}: memory")
        sizes.append(_memory(task))
    verdicts = (*speed_verdicts(figures), *memory_verdicts(sizes))
    return Report(name, machine, tuple(figures), memory=tuple(sizes), verdicts=verdicts)


def _with_memory(report: Report, tasks: Iterable[Task], options: Options) -> Report:
    known = {memory.workload for memory in report.memory}
    more: list[Memory] = []
    for task in tasks:
        if task.name not in known:
            options.progress(f"{task.name}: memory")
            more.append(_memory(task))
    return replace(
        report, memory=(*report.memory, *more), verdicts=(*report.verdicts, *memory_verdicts(more))
    )


def _with_changes(report: Report, changed: Iterable[Iterable[Experiment]], options: Options) -> Report:
    # Changes are measured with modules, as users run them, unless modules are switched off.
    changes = Changes(options.progress, runs=options.runs, modules=options.modules is not False)
    figures = [figure for experiments in changed for figure in changes.measure(experiments)]
    verdicts = (*report.verdicts, *change_verdicts(figures))
    return replace(report, changes=tuple(figures), verdicts=verdicts)


def _own_figures(task: Task, options: Options, *, one_core_too: bool = False) -> list[Figure]:
    """Measure ours with all cores, and with one too where there are more."""
    figures: list[Figure] = []
    expected = task.expected
    several = [True, False] if one_core_too and usable_cores() > 1 else [True]
    for all_cores, modules in product(several, options.modes):
        name = OURS if modules else NO_MODULES
        engine = name if all_cores else ON_ONE_CORE[name]
        options.progress(f"{task.name}: {engine}")
        with nullcontext() if all_cores else one_core():
            measurement = measure(
                f"{engine} on {task.name}",
                lambda modules=modules: EmbeddedTrial(
                    task.loaded.store(), task.rules, task.graph, modules=modules
                ),  # type: ignore[misc]
                expected,
                options.runs,
            )
        # If no counts are known, all runs must at least agree.
        expected = Expected(measurement.counts)
        figures.append(Figure(task.name, engine, measurement, task.published))
    return figures


def _peer_figure(task: Task, peer: Peer, ours: Figure, options: Options) -> Figure:
    options.progress(f"{task.name}: {peer.name}")
    program = portable(task, peer.aggregates)
    expected = Expected(ours.measurement.counts).restricted(program.missing)
    name = f"{peer.name} on {task.name}"
    measurement = measure(name, lambda: peer.trial(program), expected, options.runs)
    return Figure(task.name, peer.name, measurement, left_out=tuple(sorted(program.missing)))


def _memory(task: Task) -> Memory:
    trial = EmbeddedTrial(task.loaded.store(), task.rules, task.graph, modules=True)
    trial.evaluate()
    task.expected.check(f"memory of {task.name}", trial.counts())
    return memory(task.name, trial.store)


def _compared(options: Options, universities: Sequence[int]) -> Iterable[Task]:
    for number, turbines in PAPER_SIZES.items():
        if options.wants(f"rs{number}"):
            yield paper_task(number, SMALL_TURBINES if options.small else turbines[-1])
    for name, task in graph_tasks(small=options.small).items():
        if options.wants(name):
            yield task
    if options.wants("lubm"):
        # Parts of universities are all alike.
        for count in universities[:1] if options.small else universities:
            yield lubm_task(count, departments=1 if options.small else None)
