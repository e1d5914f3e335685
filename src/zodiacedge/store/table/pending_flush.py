"""A pending flush: the changes that the table lacks, captured before they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zodiacedge.engine.persistence import PartitionKey
    from zodiacedge.store.table.commit_info import Snapshot
    from zodiacedge.store.table.delta_table import ChangedPartition


@dataclass(frozen=True, slots=True)
class PendingFlush:
    """The captured changes that the table lacks of a version."""

    snapshot: Snapshot
    signatures: Mapping[PartitionKey, object]
    partitions: Iterator[ChangedPartition]
    """The deleted partitions, and the changed ones."""
    bytes_beside_log: int
    """Bytes of the flushed facts in files beside the log."""
    captured: bool
    """Whether the state may change while partitions are written."""
    full: bool
    """Whether these are all partitions."""
    count: int
    """How many partitions there are to write or delete."""
