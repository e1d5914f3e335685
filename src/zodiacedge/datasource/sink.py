"""Writes rows into a store: a batch as one change, a stream as one change for each of its batches.

Tasks turn rows into columns of terms. The commit, in one process beside the driver, opens the store and
applies the change. The number of a batch of a stream is recorded with its change, in the same log record, so
that a batch that Spark delivers again is not applied twice.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql import datasource

from zodiacedge.datasource.options import wrong
from zodiacedge.datasource.rows import packed, unpacked
from zodiacedge.errors import counted
from zodiacedge.io.formats.column_mapping import ColumnMapping

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from zodiacedge.datasource.options import SourceOptions


class Written(datasource.WriterCommitMessage):
    """The rows of a task, as columns of terms, and how many had a null."""

    def __init__(self, rows: bytes, dropped: int) -> None:
        """Take the rows."""
        self.rows = rows
        self.dropped = dropped


def _write(options: SourceOptions, batches: Iterator[pa.RecordBatch]) -> Written:
    mapping = ColumnMapping.of(options.named_columns())
    tables = [mapping.apply(pa.table(batch)) for batch in batches]
    rows = pa.concat_tables([table for table, _ in tables]) if tables else pa.table({})
    return Written(packed(rows), sum(dropped for _, dropped in tables))


def _apply(
    options: SourceOptions,
    messages: Sequence[datasource.WriterCommitMessage | None],
    stream: tuple[str, int] | None = None,
) -> None:
    with options.writing() as kb:
        if stream and kb.streams.get(stream[0], -1) >= stream[1]:
            return
        written = [message for message in messages if isinstance(message, Written)]
        change = kb.change()
        for message in written:
            rows = unpacked(message.rows)
            if len(rows):
                change.add_facts(rows, options.predicate)
        dropped = sum(message.dropped for message in written)
        left_out = f", {counted(dropped, 'row')} with a null left out" if dropped else ""
        source = f"batch {stream[1]} of a stream" if stream else "a DataFrame"
        kb.apply(change.collected(), message=f"{source} into {options.predicate}{left_out}", stream=stream)


class BatchWriter(datasource.DataSourceArrowWriter):
    """A batch write."""

    def __init__(self, options: SourceOptions) -> None:
        """Take the options."""
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Turn the rows of a task into terms."""
        return _write(self._options, iterator)

    def commit(self, messages: list[datasource.WriterCommitMessage | None]) -> None:
        """Apply the rows of all tasks as one change."""
        _apply(self._options, messages)

    def abort(self, messages: list[datasource.WriterCommitMessage | None]) -> None:
        """Do nothing: nothing was written."""


class StreamWriter(datasource.DataSourceStreamArrowWriter):
    """A stream write."""

    def __init__(self, options: SourceOptions) -> None:
        """Take the options; a stream has a name, or a checkpoint."""
        self._options = options
        if not (options.stream or options.checkpoint):
            hint = 'name one: .option("stream", "readings"), or .option("checkpointLocation", …)'
            raise wrong("the stream has no name, by which its batches are applied once only", hint)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Turn the rows of a task into terms."""
        return _write(self._options, iterator)

    def commit(self, messages: list[datasource.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Apply the rows of a batch as one change, unless its change is there already."""
        _apply(self._options, messages, (self._name(), batchId))

    def abort(self, messages: list[datasource.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Do nothing: nothing was written."""

    def _name(self) -> str:
        """Return the name of the stream: a checkpoint that is made again is another stream."""
        options = self._options
        if options.stream:
            return options.stream
        place = urlsplit(options.checkpoint)
        metadata = Path(unquote(place.path) if place.scheme == "file" else options.checkpoint) / "metadata"
        if metadata.is_file():
            return str(json.loads(metadata.read_text(encoding="utf-8"))["id"])
        return sha256(options.checkpoint.encode()).hexdigest()
