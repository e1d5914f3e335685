"""Facts of changes that are too large for a record: Parquet files beside the log, which tasks write and read.

A file is named by the SHA-256 of its bytes, and holds the columns of `engine.parts` alone. Whose facts they
are says the record that names it; two parts with the same rows are one file.
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
class LogFiles:
    """Writes facts as files beside the log: in this process, or in a task."""

    location: Location

    def __call__(self, key: PartitionKey, table: pa.Table) -> PartitionFile:
        """Write a file, named by the SHA-256 of its bytes; it is there for good when this returns."""
        del key  # the record says it
        out = io.BytesIO()
        pq.write_table(table, out, compression="zstd")
        data = out.getvalue()
        name = f"{sha256(data).hexdigest()}.parquet"
        self.location.write(f"{LOG_FOLDER}/{name}", data)
        return PartitionFile(name, len(data), len(table))


@dataclass(frozen=True, slots=True)
class LogParts:
    """Parts in files beside the log, each checked when it is read: here, or in a task."""

    location: Location
    named: tuple[tuple[PartitionKey, str], ...]
    """The parts, each with the name of its file."""

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files, each once."""
        return tuple(dict.fromkeys(name for _, name in self.named))

    def sizes(self) -> list[int]:
        """Return how many bytes each file has; one that is not there is told when it is read."""
        there = {one.name.rsplit("/", 1)[-1]: one.bytes for one in self.location.listed(LOG_FOLDER)}
        return [there.get(name, 0) for name in self.files]

    def chosen(self, files: Sequence[str]) -> LogParts:
        """Return those of some files only."""
        wanted = frozenset(files)
        return LogParts(self.location, tuple(one for one in self.named if one[1] in wanted))

    def __iter__(self) -> Iterator[tuple[PartitionKey, pa.Table]]:
        """Yield the parts one after the other."""
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
