"""Follows a streaming DataFrame of Spark: each of its batches is one change of a store, exactly once.

The number of a batch is recorded with its change, in the same log record. A batch that Spark delivers again
after a crash is skipped if its change is recorded.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from zodiacedge.errors import Diagnostic, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from zodiacedge.kb.change import Change
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.kb.transaction import Transaction


class Followed(Protocol):
    """The interface of a stored knowledge base that a stream needs."""

    @property
    def streams(self) -> Mapping[str, int]:
        """The last batch of each stream."""

    def change(self, message: str = "") -> Transaction:
        """Begin a change."""

    def apply(
        self, change: Change, *, message: str = "", stream: tuple[str, int] | None = None
    ) -> ChangeReport:
        """Commit a change."""


def follow(  # noqa: PLR0913, PLR0917 - what a user says of a stream
    kb: Followed,
    frame: DataFrame,
    relation: str,
    columns: Mapping[str, object],
    checkpoint: str,
    trigger: Mapping[str, Any],
    applied: Callable[[ChangeReport], object] | None,
) -> StreamingQuery:
    """Start to apply the batches of a streaming DataFrame; return Spark's query."""
    from zodiacedge.engine.spark.streaming.checkpoint import stream_of  # noqa: PLC0415 - needed only for streams

    _refuse(frame, checkpoint)
    folder = Path(checkpoint).absolute()

    def deliver(batch: DataFrame, number: int) -> None:
        stream = stream_of(folder)
        if number <= kb.streams.get(stream, -1):
            return
        change = kb.change()
        change.add_facts(batch, relation, **columns)
        message = f"batch {number} of a stream into {relation}"
        report = kb.apply(change.collected(), message=message, stream=(stream, number))
        if applied:
            applied(report)

    writer = frame.writeStream.option("checkpointLocation", f"file://{folder}").foreachBatch(deliver)
    return writer.trigger(**(trigger or {"availableNow": True})).start()


def _refuse(frame: DataFrame, checkpoint: str) -> None:
    """Raise if a DataFrame is no stream, or is one that cannot be followed by this process."""
    from zodiacedge.engine.spark.cluster.runner import is_connect  # noqa: PLC0415 - needed only for streams

    if not getattr(frame, "isStreaming", False):
        hint = "give what spark.readStream returns; other DataFrames go to add_facts"
        raise UsageProblem(Diagnostic("U013", "the DataFrame is no stream", hint))
    if is_connect(frame.sparkSession):
        message = "on Spark Connect batches of a stream do not reach this process"
        hint = 'write it into the store: df.writeStream.format("zodiac")'
        raise UsageProblem(Diagnostic("U032", message, hint))
    if not checkpoint or "://" in checkpoint:
        hint = "name one on this machine: checkpoint='farm.checkpoint'"
        raise UsageProblem(Diagnostic("U032", "a stream needs a folder for its checkpoint", hint))
