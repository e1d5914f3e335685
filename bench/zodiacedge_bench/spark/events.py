"""Profiles of runs, from Spark's event log (JSON lines).

The wall time of a run is split into the time in which at least one task ran, and the driver's time, in which
none did. The time of tasks is split into processor time of the Java thread, garbage collection, and waiting,
mostly for the Python worker.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from zodiacedge_bench.spark.clock import Window

_JOB, _STAGE, _TASK = (f"SparkListener{kind}" for kind in ("JobStart", "StageCompleted", "TaskEnd"))
_WANTED = tuple(f'{{"Event":"{name}"' for name in (_JOB, _STAGE, _TASK))
_PYTHON = "time to run Python workers"
_UNNAMED = "no description"


@dataclass(frozen=True, slots=True)
class Task:
    """A task: its interval, and how its time was spent, in seconds."""

    start: float
    end: float
    run: float
    cpu: float
    collecting: float
    """Garbage collection."""
    written: int
    """Shuffle bytes."""
    spilled: int
    """Bytes spilled to disk."""

    @property
    def around(self) -> float:
        """The time of sending it, deserialising it and fetching its result."""
        return max(self.end - self.start - self.run, 0.0)


@dataclass(frozen=True, slots=True)
class Events:
    """The jobs, stages and tasks of an event log."""

    jobs: tuple[tuple[float, str], ...] = ()
    """Submission time and description."""
    stages: tuple[tuple[float, float], ...] = ()
    """Submission time, and the time of Python workers where Spark records it."""
    tasks: tuple[Task, ...] = ()

    def within(self, window: Window) -> Profile:
        """Return the profile of a window."""
        jobs = Counter(description for at, description in self.jobs if window.start <= at <= window.end)
        stages = [python for at, python in self.stages if window.start <= at <= window.end]
        tasks = [task for task in self.tasks if window.start <= task.start <= window.end]
        run, cpu = sum(task.run for task in tasks), sum(task.cpu for task in tasks)
        collecting = sum(task.collecting for task in tasks)
        seconds = window.end - window.start
        return Profile(
            seconds=seconds,
            driver=max(seconds - _covered(tasks), 0.0),
            run=run,
            cpu=cpu,
            collecting=collecting,
            waiting=max(run - cpu - collecting, 0.0),
            python=sum(stages),
            around=sum(task.around for task in tasks),
            jobs=sum(jobs.values()),
            stages=len(stages),
            tasks=len(tasks),
            shuffled=sum(task.written for task in tasks),
            spilled=sum(task.spilled for task in tasks),
            purposes=dict(jobs.most_common()),
        )


@dataclass(frozen=True, slots=True)
class Profile:
    """How the time of one run was spent, in seconds; the time of tasks is summed over the cores."""

    seconds: float
    driver: float
    """While no task ran."""
    run: float
    """In tasks."""
    cpu: float
    """Of that, computing in Java."""
    collecting: float
    """Of that, collecting garbage."""
    waiting: float
    """Of that, waiting: for Python workers, for files, for a core."""
    python: float
    """Computing in Python; Spark records it for data frames only."""
    around: float
    """Sending and deserialising tasks, fetching their results."""
    jobs: int
    stages: int
    tasks: int
    shuffled: int
    """Bytes that stages wrote for other stages."""
    spilled: int
    """Bytes spilled to disk."""
    purposes: Mapping[str, int] = field(default_factory=dict)
    """The number of jobs by description."""

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return asdict(self)


def read_log(folder: Path) -> Events:
    """Read the event log of the only application that wrote into a folder."""
    events = [event for path in sorted(folder.iterdir()) for event in _events(path)]
    return Events(
        tuple(_job(event) for event in events if event["Event"] == _JOB),
        tuple(
            _stage(event["Stage Info"])
            for event in events
            if event["Event"] == _STAGE and "Submission Time" in event["Stage Info"]
        ),
        tuple(
            _task(event["Task Info"], event["Task Metrics"])
            for event in events
            if event["Event"] == _TASK and event.get("Task Metrics")
        ),
    )


def _events(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            # Most of a log are plans: they are skipped before they are parsed.
            if line.startswith(_WANTED):
                yield json.loads(line)


def _job(event: Mapping[str, Any]) -> tuple[float, str]:
    description = (event.get("Properties") or {}).get("spark.job.description", _UNNAMED)
    return event["Submission Time"] / 1e3, description


def _stage(info: Mapping[str, Any]) -> tuple[float, float]:
    python = sum(
        float(metric["Value"]) / 1e3
        for metric in info.get("Accumulables", ())
        if metric.get("Name") == _PYTHON
    )
    return info["Submission Time"] / 1e3, python


def _task(info: Mapping[str, Any], metrics: Mapping[str, Any]) -> Task:
    return Task(
        info["Launch Time"] / 1e3,
        info["Finish Time"] / 1e3,
        metrics["Executor Run Time"] / 1e3,
        metrics["Executor CPU Time"] / 1e9,
        metrics["JVM GC Time"] / 1e3,
        metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"],
        metrics["Disk Bytes Spilled"],
    )


def _covered(tasks: Iterable[Task]) -> float:
    """Return for how long at least one task ran."""
    total, end = 0.0, 0.0
    for task in sorted(tasks, key=lambda task: task.start):
        total += max(task.end - max(task.start, end), 0.0)
        end = max(end, task.end)
    return total
