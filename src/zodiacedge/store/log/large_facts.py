"""Facts of changes that are too large for a record: Parquet files beside the log, written and read by tasks.

A file is named by the SHA-256 of its bytes, and has only the columns of `engine.persistence`. The record
names file and partition; two partitions with the same rows share a file.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from zodiacedge.engine.persistence import BadPartitionError, PartitionFile
from zodiacedge.store.layout import LOG_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from zodiacedge.engine.persistence import PartitionKey
    from zodiacedge.store.location.base import Location


@dataclass(frozen=True, slots=True)
class LogFileWriter:
    """Writes facts as files beside the log: in this process, or in a task."""

    location: Location

    def __call__(self, key: PartitionKey, table: pa.Table) -> PartitionFile:
        """Write a file, named by the SHA-256 of its bytes; it is durable when this returns."""
        del key  # it is in the record
        out = io.BytesIO()
        pq.write_table(table, out, compression="zstd")
        data = out.getvalue()
        name = f"{sha256(data).hexdigest()}.parquet"
        self.location.write(f"{LOG_FOLDER}/{name}", data)
        return PartitionFile(name, len(data), len(table))


@dataclass(frozen=True, slots=True)
class LogPartitions:
    """Partitions in files beside the log, each checked when it is read: in this process, or in a task."""

    location: Location
    named: tuple[tuple[PartitionKey, str], ...]
    """The partitions, each with the name of its file."""

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files, each once."""
        return tuple(dict.fromkeys(name for _, name in self.named))

    def sizes(self) -> list[int]:
        """Return the bytes of each file; a missing file is reported when it is read."""
        sizes = {file.name.rsplit("/", 1)[-1]: file.bytes for file in self.location.listed(LOG_FOLDER)}
        return [sizes.get(name, 0) for name in self.files]

    def chosen(self, files: Sequence[str]) -> LogPartitions:
        """Return the partitions in a selection of the files."""
        wanted = frozenset(files)
        return LogPartitions(self.location, tuple((key, name) for key, name in self.named if name in wanted))

    def __iter__(self) -> Iterator[tuple[PartitionKey, pa.Table]]:
        """Yield the partitions."""
        for key, name in self.named:
            yield key, self._read(name)

    def _read(self, name: str) -> pa.Table:
        try:
            data = self.location.read(f"{LOG_FOLDER}/{name}")
        except OSError as error:
            raise BadPartitionError(f"{name} cannot be read: {error.strerror or error}") from error
        if f"{sha256(data).hexdigest()}.parquet" != name:
            raise BadPartitionError(f"{name} is damaged: its checksum is not its name")
        try:
            table = pq.ParquetFile(io.BytesIO(data)).read()
            table.validate(full=True)
        except (pa.ArrowException, OSError) as error:
            raise BadPartitionError(f"{name} is no table: {error}") from error
        return table
