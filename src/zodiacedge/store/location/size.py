"""What a store takes where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.store.layout import LOG_FOLDER, PARTS

if TYPE_CHECKING:
    from zodiacedge.store.location.base import Location


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of the table, older versions included, and of the log; and how many files there are."""

    table: int
    log: int
    files: int


def sizes(location: Location) -> Sizes:
    """Measure a store."""
    there = location.listed()
    table = [one.bytes for one in there if one.name.startswith(PARTS)]
    logs = [one.bytes for one in there if one.name.startswith(f"{LOG_FOLDER}/")]
    return Sizes(sum(table), sum(logs), len(table) + len(logs))
