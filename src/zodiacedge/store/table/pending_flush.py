"""A flush that is due: what the table lacks of a version, captured before it is written."""

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
    """What the table lacks of a version, captured."""

    snapshot: Snapshot
    signatures: Mapping[PartitionKey, object]
    partitions: Iterator[ChangedPartition]
    """The partitions that are gone, and those that changed."""
    beside: int
    """Bytes of the facts beside the log that it flushes."""
    captured: bool
    """Whether the state may change while partitions are written."""
    whole: bool
    """Whether these are all partitions."""
