"""Kills an executor of this process's cluster while it runs a task, and tells what Spark made of that.

An executor is found in the table of processes: a child of the driver's JVM that runs Spark's program for
executors. It is stopped first. Only if Spark still counts a task on it a while later, which then cannot have
ended, it is killed; otherwise it goes on, and another try follows.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pyspark import SparkContext

_PROGRAM = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
_LOOK_SECONDS = 0.002
# What an executor sent before it was stopped has arrived by then.
_SETTLE_SECONDS = 0.2


def executors(context: SparkContext) -> dict[str, int]:
    """Return the processes of the executors that run, by the names that Spark has for them."""
    driver = int(context._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    found = {}
    for folder in Path("/proc").iterdir():
        # A process may end while it is looked at.
        with suppress(OSError, ValueError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text("ascii").rpartition(")")[2].split()[1])
            if parent == driver and _PROGRAM in words:
                found[words[words.index(b"--executor-id") + 1].decode()] = int(folder.name)
    return found


def _summaries(context: SparkContext) -> dict[str, Any]:
    """Return what Spark knows about each executor, those that are gone as well."""
    told = context._jsc.sc().statusStore().executorList(False)  # noqa: FBT003 - Java has no names
    return {str(one.id()): one for one in (told.apply(n) for n in range(told.size()))}


@dataclass
class Killer:
    """Kills one executor in the middle of a task, once it is told to."""

    context: SparkContext
    _told: threading.Event = field(default_factory=threading.Event)
    _over: threading.Event = field(default_factory=threading.Event)
    _killed: str = ""
    _failed: int = 0

    def __enter__(self) -> Self:
        """Watch what executors do."""
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Watch no longer."""
        self._over.set()
        self._told.set()
        self._thread.join()

    def go(self) -> None:
        """Kill whoever runs a task next."""
        self._told.set()

    def outcome(self, seconds: float = 120.0) -> dict[str, object]:
        """Return whether Spark gave up the executor that was killed, and how many tasks failed with it."""
        last = time.monotonic() + seconds
        while self._killed and time.monotonic() < last:
            if not _summaries(self.context)[self._killed].isActive():
                return {"lost": True, "failed_tasks": self._failed}
            time.sleep(_LOOK_SECONDS)
        return {"lost": False, "failed_tasks": self._failed}

    def _watch(self) -> None:
        self._told.wait()
        while not self._over.is_set() and not self._killed:
            running = executors(self.context)
            for name, one in _summaries(self.context).items():
                if name in running and one.activeTasks():
                    self._try(name, running[name])
                    break
            time.sleep(_LOOK_SECONDS)
        # The stage goes on until another executor did what the one that was killed did not.
        while not self._over.is_set() and not self._failed:
            self._failed = self._failures()
            time.sleep(_LOOK_SECONDS)

    def _failures(self) -> int:
        tracker = self.context.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return sum(stage.numFailedTasks for stage in stages if stage)

    def _try(self, name: str, process: int) -> None:
        os.kill(process, signal.SIGSTOP)
        time.sleep(_SETTLE_SECONDS)
        if _summaries(self.context)[name].activeTasks():
            self._killed = name
            os.kill(process, signal.SIGKILL)
        else:
            os.kill(process, signal.SIGCONT)
