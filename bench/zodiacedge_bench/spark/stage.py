"""One session of Spark with its event log, and facts that lie ready in it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.maintain.strategy import Policy
from zodiacedge.engine.spark.cluster.session import Cluster
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge_bench.spark.events import Events, read_log

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    from zodiacedge_bench.measure.task import Task

_FOLDER = "spark.eventLog.dir"


@dataclass(frozen=True)
class Stage:
    """Where everything is measured."""

    cluster: Cluster
    folder: Path
    """For data and for the log; gone in the end."""
    modules: bool = True

    @cached_property
    def session(self) -> SparkSession:
        """The session."""
        return self.cluster.session()

    @property
    def cores(self) -> int:
        """How many tasks run at the same time."""
        return int(self.session.sparkContext.defaultParallelism)

    def engine(self, strategy: str = "choose") -> SparkEngine:
        """Return our engine, with a folder of its own; some way may be asked for."""
        return SparkEngine(cluster=self.cluster, options=Options(strategy, policy=Policy(self.modules)))

    def base(self, task: Task, strategy: str = "choose") -> KnowledgeBase:
        """Return a knowledge base with the facts of a task, and no rules."""
        kb = KnowledgeBase(self.engine(strategy), Settings())
        batch = kb.state.batch()
        batch.add(task.make_facts())
        kb.apply(Change(loaded=(batch,)))
        return kb

    def events(self) -> Events:
        """End the session, and return what its log tells; nothing if it was there before and has no log."""
        return read_log(_logs(self.folder)) if self.close() else Events()

    def close(self) -> bool:
        """End the session if it was started here, and say whether it was."""
        mine = self._conf.get(_FOLDER, "") == self.cluster.settings[_FOLDER]
        if mine:
            # Its last act is to complete the log.
            self.session.stop()
        return mine

    @cached_property
    def _conf(self) -> SparkConf:
        return self.session.sparkContext.getConf()


@contextmanager
def staged(master: str, *, modules: bool) -> Iterator[Stage]:
    """Make a stage; its folder goes in the end, and its session too."""
    with TemporaryDirectory(prefix="zodiac-bench-") as name:
        folder = Path(name)
        _logs(folder).mkdir()
        settings = {
            "spark.eventLog.enabled": "true",
            _FOLDER: _logs(folder).as_uri(),
            # One file of plain lines.
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
            # The loops keep all paths in the memory of Java, and fail with less.
            "spark.driver.memory": "4g",
        }
        stage = Stage(Cluster(master, settings), folder, modules)
        try:
            yield stage
        finally:
            stage.close()


def _logs(folder: Path) -> Path:
    return folder / "events"
