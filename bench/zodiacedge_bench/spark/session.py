"""The Spark session of a benchmark: its event log, its folder, and knowledge bases with loaded facts."""

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
class BenchSession:
    """A Spark session in which all engines and loops are measured."""

    cluster: Cluster
    folder: Path
    """Holds data and the event log; removed at the end."""
    modules: bool = True

    @cached_property
    def spark(self) -> SparkSession:
        """The session."""
        return self.cluster.session()

    @property
    def cores(self) -> int:
        """The number of tasks that run at the same time."""
        return int(self.spark.sparkContext.defaultParallelism)

    def engine(self, strategy: str = "choose", gather_rows: int = Options.gather_rows) -> SparkEngine:
        """Return a Spark engine with a folder of its own and a strategy for all nodes."""
        options = Options(strategy, gather_rows, policy=Policy(self.modules))
        return SparkEngine(cluster=self.cluster, options=options)

    def base(
        self, task: Task, strategy: str = "choose", gather_rows: int = Options.gather_rows
    ) -> KnowledgeBase:
        """Return a knowledge base with the facts of a task, and no rules."""
        kb = KnowledgeBase(self.engine(strategy, gather_rows), Settings())
        batch = kb.state.batch()
        batch.add(task.make_facts())
        kb.apply(Change(loaded=(batch,)))
        return kb

    def events(self) -> Events:
        """End the session and read its event log; a session that existed before has none."""
        return read_log(_logs(self.folder)) if self.close() else Events()

    def close(self) -> bool:
        """End the session if this benchmark started it; return whether it did."""
        own = self._conf.get(_FOLDER, "") == self.cluster.settings[_FOLDER]
        if own:
            # Stopping completes the event log.
            self.spark.stop()
        return own

    @cached_property
    def _conf(self) -> SparkConf:
        return self.spark.sparkContext.getConf()


@contextmanager
def bench_session(master: str, *, modules: bool) -> Iterator[BenchSession]:
    """Start a session; end it and remove its folder at the end of the block."""
    with TemporaryDirectory(prefix="zodiac-bench-") as name:
        folder = Path(name)
        _logs(folder).mkdir()
        settings = {
            "spark.eventLog.enabled": "true",
            _FOLDER: _logs(folder).as_uri(),
            # A single file of plain JSON lines.
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
            # The loops keep all paths in the memory of the JVM, and fail with less.
            "spark.driver.memory": "4g",
        }
        session = BenchSession(Cluster(master, settings), folder, modules)
        try:
            yield session
        finally:
            session.close()


def _logs(folder: Path) -> Path:
    return folder / "events"
