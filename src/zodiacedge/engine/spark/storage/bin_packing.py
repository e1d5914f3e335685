"""Work of many sizes in groups of about the same: a group is one task."""

from __future__ import annotations

from heapq import heapreplace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zodiacedge.engine.spark.storage.workspace import Workspace

_Thing = TypeVar("_Thing")
# What a task can read at once, however little it may have otherwise.
_LEAST_ROWS = 1_000_000


def tasks_for(place: Workspace, rows: int) -> int:
    """Return how many tasks read so many rows: one for each core, more where one would have too many."""
    return max(place.jobs.cores, -(-rows // max(place.options.gather_rows, _LEAST_ROWS)))


def groups(things: Iterable[_Thing], size: Callable[[_Thing], int], most: int) -> list[list[_Thing]]:
    """Return things in groups of about the same size, no more than so many, none of them empty."""
    ordered = sorted(things, key=size, reverse=True)
    found: list[list[_Thing]] = [[] for _ in range(min(most, len(ordered)))]
    taken = [(0, place) for place in range(len(found))]
    for thing in ordered:
        least, place = taken[0]
        found[place].append(thing)
        heapreplace(taken, (least + size(thing), place))
    return [group for group in found if group]
