"""A transitive closure by data frames: the loop as most people write it, and one that was tuned by hand.

Both start from edges that are cached, go round after round with what the last round found, and count what
there is in the end.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

NAIVE = "naive loop"
TUNED = "tuned loop"
# What matters for the loops, of all settings of a session. The first have no value of their own unless
# somebody gives them one.
_OF_THE_CONTEXT = ("spark.master", "spark.driver.memory")
_OF_THE_SESSION = (
    "spark.sql.shuffle.partitions",
    "spark.sql.adaptive.enabled",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.requireAllClusterKeysForCoPartition",
    "spark.sql.codegen.wholeStage",
)
_DEFAULT = "Spark's default"
_TUNED_SETTINGS = {
    # Plans are the same in every round: nothing is learned by looking at them again.
    "spark.sql.adaptive.enabled": "false",
    # Rows that lie together by one column of two need not be moved.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}


@dataclass(frozen=True)
class Edges:
    """The edges of a graph, cached in a session."""

    session: SparkSession
    frame: DataFrame

    @classmethod
    def cached(cls, session: SparkSession, rows: NDArray[np.int64]) -> Edges:
        """Send edges to Spark, and have them cached there."""
        table = pa.table({"x": pa.array(rows[:, 0]), "y": pa.array(rows[:, 1])})
        frame = session.createDataFrame(table).cache()
        frame.count()
        return cls(session, frame)

    def release(self) -> None:
        """Remove the edges from the cache."""
        self.frame.unpersist()


class NaiveLoop:
    """The loop as most people write it: join, distinct, anti-join with all so far, checkpoint, repeat."""

    def __init__(self, edges: Edges) -> None:
        """Take cached edges."""
        self._edges = edges
        self._total = 0

    def work(self) -> None:
        """Run the loop and count."""
        edges = self._edges.frame
        steps = edges.toDF("y", "z")
        known = fresh = edges
        while True:
            found = fresh.join(steps, "y").selectExpr("x", "z as y").distinct()
            fresh = found.join(known, ["x", "y"], "left_anti").localCheckpoint()
            if fresh.isEmpty():
                break
            known = known.union(fresh)
        self._total = known.count()

    def counts(self) -> Mapping[str, int]:
        """Return how many paths there are."""
        return {"path": self._total}


class TunedLoop:
    """The same, by somebody who reads plans.

    Edges are broadcast, so the join moves nothing. Paths are dealt out by their start, which every round
    keeps, and rows that lie together by one of two columns count as such. The anti-join hashes and does not
    sort. Plans are not adapted.
    """

    def __init__(self, edges: Edges, cores: int) -> None:
        """Take cached edges and the number of partitions."""
        self._edges = edges
        self._cores = cores
        self._total = 0

    def work(self) -> None:
        """Run the loop and count."""
        with changed(self._edges.session, _TUNED_SETTINGS):
            edges = self._edges.frame
            steps = edges.toDF("y", "z").hint("broadcast")
            known = fresh = edges.repartition(self._cores, "x").localCheckpoint()
            while True:
                found = fresh.join(steps, "y").selectExpr("x", "z as y").distinct()
                fresh = found.join(known.hint("shuffle_hash"), ["x", "y"], "left_anti").localCheckpoint()
                if fresh.isEmpty():
                    break
                known = known.union(fresh)
            self._total = known.count()

    def counts(self) -> Mapping[str, int]:
        """Return how many paths there are."""
        return {"path": self._total}


def session_settings(session: SparkSession) -> dict[str, str]:
    """Return the settings that matter for the loops, as they stand."""
    context = session.sparkContext.getConf()
    given = {name: str(context.get(name, _DEFAULT)) for name in _OF_THE_CONTEXT}
    return given | {name: str(session.conf.get(name)) for name in _OF_THE_SESSION}


def tuned_settings(session: SparkSession) -> dict[str, str]:
    """Return the same as the tuned loop has them."""
    return session_settings(session) | _TUNED_SETTINGS


@contextmanager
def changed(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Run a block with some settings changed."""
    before = {name: session.conf.get(name) for name in values}
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            session.conf.set(name, str(old))
