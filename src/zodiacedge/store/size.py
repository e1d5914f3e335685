"""What a store takes on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.store.layout import Layout

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of the table, older versions included, and of the log; and how many files there are."""

    table: int
    log: int
    files: int


def sizes(root: Path) -> Sizes:
    """Measure a store."""
    layout = Layout(root)
    table = [path.stat().st_size for path in root.glob("relation=*/segment=*/*")]
    logs = [path.stat().st_size for path in layout.log.glob("*.*")]
    return Sizes(sum(table), sum(logs), len(table) + len(logs))
