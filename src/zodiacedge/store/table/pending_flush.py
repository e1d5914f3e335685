"""A flush that is due: what the table lacks of a version, captured before it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zodiacedge.engine.persistence import PartitionKey
    from zodiacedge.store.table.commit_info import Snapshot
    from zodiacedge.store.table.delta_table import Renewed


@dataclass(frozen=True, slots=True)
class PendingFlush:
    """What the table lacks of a version, taken hold of."""

    snapshot: Snapshot
    signatures: Mapping[PartitionKey, object]
    parts: Iterator[Renewed]
    """Those that are gone, and those that changed."""
    beside: int
    """Bytes of facts beside the log that go into it."""
    captured: bool
    """Whether the state may change while they are written."""
    whole: bool
    """Whether these are all parts that there are."""
