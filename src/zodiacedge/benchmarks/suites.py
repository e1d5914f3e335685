"""The benchmarks, one function each: from options to a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.benchmarks.embedded import EmbeddedTrial, Memory, memory
from zodiacedge.benchmarks.harness import Expected, measure
from zodiacedge.benchmarks.machine import this_machine
from zodiacedge.benchmarks.peers import PEERS
from zodiacedge.benchmarks.peers.portable import portable
from zodiacedge.benchmarks.report import NO_MODULES, OURS, Figure, Report
from zodiacedge.benchmarks.targets import memory_verdicts, speed_verdicts
from zodiacedge.benchmarks.task import (
    PAPER_SIZES,
    Task,
    graph_tasks,
    lubm_files_task,
    lubm_task,
    paper_task,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from zodiacedge.benchmarks.peers import Peer

_SMALL_TURBINES = 50


@dataclass(frozen=True, slots=True)
class Options:
    """What every benchmark can be told."""

    only: tuple[str, ...] = ()
    """Names of workloads or experiments; all if empty."""
    runs: int | None = None
    """Runs per figure, instead of the usual number."""
    modules: bool | None = None
    """Whether nodes of a known shape go to the algorithm made for it; both ways if not said."""
    small: bool = False
    """Workloads of a few thousand facts, to see that everything works."""
    tell: Callable[[str], None] = lambda _text: None
    """Called with what is being measured."""

    def wants(self, name: str) -> bool:
        """Whether something by this name is asked for."""
        return not self.only or name in self.only

    @property
    def ways(self) -> tuple[bool, ...]:
        """Modules on, off, or both."""
        return (True, False) if self.modules is None else (self.modules,)


def graphs(options: Options) -> Report:
    """Closures, same generation and points-to, from scratch."""
    tasks = [task for name, task in graph_tasks(small=options.small).items() if options.wants(name)]
    return _from_scratch("graphs", tasks, options)


def paper(options: Options) -> Report:
    """The paper's rule sets, from scratch, on growing data.

    Its other experiments change a materialisation; each becomes a name beside `scratch` with maintenance.
    """
    sizes = PAPER_SIZES if not options.small else dict.fromkeys(PAPER_SIZES, (_SMALL_TURBINES,))
    tasks = [paper_task(number, n) for number, turbines in sizes.items() for n in turbines]
    return _from_scratch("paper", tasks if options.wants("scratch") else [], options)


def lubm(options: Options, universities: Iterable[int] = (1,), data: Path | None = None) -> Report:
    """LUBM's 128 rules, from scratch, on generated universities or on a folder of CSV files."""
    if data:
        return _from_scratch("lubm", [lubm_files_task(data)], options)
    departments = 1 if options.small else None
    tasks = [lubm_task(count, departments=departments) for count in universities]
    return _from_scratch("lubm", tasks, options)


def peers(options: Options, names: tuple[str, ...] = (), universities: int = 1) -> Report:
    """Other engines on the same facts, beside ours."""
    chosen = [peer for peer in PEERS if not names or peer.name in names]
    present = [peer for peer in chosen if peer.version()]
    figures: list[Figure] = []
    for task in _compared(options, universities):
        own = _own_figures(task, options)
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


def _from_scratch(name: str, tasks: Iterable[Task], options: Options) -> Report:
    figures: list[Figure] = []
    sizes: list[Memory] = []
    machine = this_machine()
    for task in tasks:
        figures += _own_figures(task, options)
        options.tell(f"{task.name}: memory")
        sizes.append(_memory(task))
    return Report(name, machine, tuple(figures), memory=tuple(sizes), verdicts=memory_verdicts(sizes))


def _own_figures(task: Task, options: Options) -> list[Figure]:
    figures: list[Figure] = []
    expected = task.expected
    for modules in options.ways:
        engine = OURS if modules else NO_MODULES
        options.tell(f"{task.name}: {engine}")
        found = measure(
            f"{engine} on {task.name}",
            lambda modules=modules: EmbeddedTrial(task.loaded, task.rules, task.graph, modules=modules),  # type: ignore[misc]
            expected,
            options.runs,
        )
        # Where no counts are known, all runs must at least agree.
        expected = Expected(found.counts)
        figures.append(Figure(task.name, engine, found, task.published))
    return figures


def _peer_figure(task: Task, peer: Peer, ours: Figure, options: Options) -> Figure:
    options.tell(f"{task.name}: {peer.name}")
    program = portable(task, peer.aggregates)
    expected = Expected(ours.measurement.counts).restricted(program.missing)
    what = f"{peer.name} on {task.name}"
    found = measure(what, lambda: peer.trial(program), expected, options.runs)
    return Figure(task.name, peer.name, found, left_out=tuple(sorted(program.missing)))


def _memory(task: Task) -> Memory:
    trial = EmbeddedTrial(task.loaded, task.rules, task.graph, modules=True)
    trial.work()
    return memory(task.name, trial.store)


def _compared(options: Options, universities: int) -> Iterable[Task]:
    for number, turbines in PAPER_SIZES.items():
        if options.wants(f"rs{number}"):
            yield paper_task(number, _SMALL_TURBINES if options.small else turbines[-1])
    for name, task in graph_tasks(small=options.small).items():
        if options.wants(name):
            yield task
    if options.wants("lubm"):
        yield lubm_task(universities, departments=1 if options.small else None)
