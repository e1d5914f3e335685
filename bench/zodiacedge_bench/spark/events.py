"""Where time goes, from Spark's own event log: JSON lines, one per event.

A stretch of wall time splits into the time in which at least one task ran and the time in which none did:
that is the driver, which plans, sends and waits. The time of tasks splits into processor time of the Java
thread, garbage collection, and the rest, in which the thread waits: for its Python worker above all.
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
    """A task: when it ran, and what it spent its time on, in seconds."""

    start: float
    end: float
    run: float
    cpu: float
    collecting: float
    """Garbage."""
    written: int
    """Bytes for other stages."""
    spilled: int
    """Bytes that found no room in memory."""

    @property
    def around(self) -> float:
        """What sending it, unpacking it and fetching its result took."""
        return max(self.end - self.start - self.run, 0.0)


@dataclass(frozen=True, slots=True)
class Events:
    """What a log tells: when jobs and stages were submitted, and all tasks."""

    jobs: tuple[tuple[float, str], ...] = ()
    """When, and what for."""
    stages: tuple[tuple[float, float], ...] = ()
    """When, and how long its Python workers ran where Spark knows that."""
    tasks: tuple[Task, ...] = ()

    def within(self, window: Window) -> Profile:
        """Return what happened in a stretch of time."""
        jobs = Counter(why for at, why in self.jobs if window.start <= at <= window.end)
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
    """Where the time of one run went, in seconds; that of tasks is added up over the cores."""

    seconds: float
    driver: float
    """While no task ran."""
    run: float
    """In tasks."""
    cpu: float
    """Of that, at work in Java."""
    collecting: float
    """Of that, collecting garbage."""
    waiting: float
    """Of that, waiting: for Python workers, for files, for a core."""
    python: float
    """At work in Python, as far as Spark tells; it does so for data frames only."""
    around: float
    """Sending tasks, unpacking them, fetching their results."""
    jobs: int
    stages: int
    tasks: int
    shuffled: int
    """Bytes that one stage wrote for another."""
    spilled: int
    """Bytes that found no room in memory."""
    purposes: Mapping[str, int] = field(default_factory=dict)
    """How many jobs there were for what."""

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return asdict(self)


def read_log(folder: Path) -> Events:
    """Read the log of the one application that wrote into a folder."""
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
            # Most of a log is texts of plans: they are passed over before they are parsed.
            if line.startswith(_WANTED):
                yield json.loads(line)


def _job(event: Mapping[str, Any]) -> tuple[float, str]:
    why = (event.get("Properties") or {}).get("spark.job.description", _UNNAMED)
    return event["Submission Time"] / 1e3, why


def _stage(info: Mapping[str, Any]) -> tuple[float, float]:
    python = sum(
        float(one["Value"]) / 1e3 for one in info.get("Accumulables", ()) if one.get("Name") == _PYTHON
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
    """Return how long at least one of some tasks ran."""
    total, end = 0.0, 0.0
    for task in sorted(tasks, key=lambda task: task.start):
        total += max(task.end - max(task.start, end), 0.0)
        end = max(end, task.end)
    return total
