"""Transitive closure with data frames: the usual semi-naive loop, and one that is tuned by hand.

Both start from cached edges, join the delta of the last round with them, and count the paths at the end.
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
# The settings that matter for the loops. Those of the context have no value unless the user sets one.
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
    # Plans are the same in every round, so adapting them gains nothing.
    "spark.sql.adaptive.enabled": "false",
    # Rows that are partitioned by one of two columns need no shuffle.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}


@dataclass(frozen=True)
class Edges:
    """The edges of a graph, cached in a session."""

    session: SparkSession
    frame: DataFrame

    @classmethod
    def cached(cls, session: SparkSession, rows: NDArray[np.int64]) -> Edges:
        """Send edges to Spark and cache them."""
        table = pa.table({"x": pa.array(rows[:, 0]), "y": pa.array(rows[:, 1])})
        frame = session.createDataFrame(table).cache()
        frame.count()
        return cls(session, frame)

    def release(self) -> None:
        """Remove the edges from the cache."""
        self.frame.unpersist()


class NaiveLoop:
    """The usual loop: join, distinct, anti-join with all known paths, checkpoint, repeat."""

    def __init__(self, edges: Edges) -> None:
        """Take cached edges."""
        self._edges = edges
        self._total = 0

    def evaluate(self) -> None:
        """Run the loop and count."""
        edges = self._edges.frame
        steps = edges.toDF("y", "z")
        known = delta = edges
        while True:
            joined = delta.join(steps, "y").selectExpr("x", "z as y").distinct()
            delta = joined.join(known, ["x", "y"], "left_anti").localCheckpoint()
            if delta.isEmpty():
                break
            known = known.union(delta)
        self._total = known.count()

    def counts(self) -> Mapping[str, int]:
        """Return the number of paths."""
        return {"path": self._total}


class TunedLoop:
    """The same loop with a better plan.

    Edges are broadcast, so the join needs no shuffle. Paths are hash-partitioned by their start, which every
    round keeps. The anti-join hashes and does not sort. Plans are not adapted.
    """

    def __init__(self, edges: Edges, cores: int) -> None:
        """Take cached edges and the number of partitions."""
        self._edges = edges
        self._cores = cores
        self._total = 0

    def evaluate(self) -> None:
        """Run the loop and count."""
        with changed(self._edges.session, _TUNED_SETTINGS):
            edges = self._edges.frame
            steps = edges.toDF("y", "z").hint("broadcast")
            known = delta = edges.repartition(self._cores, "x").localCheckpoint()
            while True:
                joined = delta.join(steps, "y").selectExpr("x", "z as y").distinct()
                delta = joined.join(known.hint("shuffle_hash"), ["x", "y"], "left_anti").localCheckpoint()
                if delta.isEmpty():
                    break
                known = known.union(delta)
            self._total = known.count()

    def counts(self) -> Mapping[str, int]:
        """Return the number of paths."""
        return {"path": self._total}


def session_settings(session: SparkSession) -> dict[str, str]:
    """Return the current settings that matter for the loops."""
    context = session.sparkContext.getConf()
    of_context = {name: str(context.get(name, _DEFAULT)) for name in _OF_THE_CONTEXT}
    return of_context | {name: str(session.conf.get(name)) for name in _OF_THE_SESSION}


def tuned_settings(session: SparkSession) -> dict[str, str]:
    """Return the settings of the tuned loop."""
    return session_settings(session) | _TUNED_SETTINGS


@contextmanager
def changed(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Change settings for a block."""
    before = {name: session.conf.get(name) for name in values}
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            session.conf.set(name, str(old))
