"""Bin packing: inputs of many sizes in groups of about the same size, one for each task."""

from __future__ import annotations

from heapq import heapreplace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zodiacedge.engine.spark.storage.workspace import Workspace

_Item = TypeVar("_Item")
# Rows that one task reads at least, before another task is worth its cost.
_LEAST_ROWS = 1_000_000


def tasks_for(workspace: Workspace, rows: int) -> int:
    """Return how many tasks read so many rows: one for each core, more where one would have too many."""
    return max(workspace.jobs.cores, -(-rows // max(workspace.options.gather_rows, _LEAST_ROWS)))


def groups(items: Iterable[_Item], size: Callable[[_Item], int], most: int) -> list[list[_Item]]:
    """Return items in at most so many groups of about the same size, none of them empty."""
    ordered = sorted(items, key=size, reverse=True)
    bins: list[list[_Item]] = [[] for _ in range(min(most, len(ordered)))]
    loads = [(0, number) for number in range(len(bins))]
    for item in ordered:
        load, number = loads[0]
        bins[number].append(item)
        heapreplace(loads, (load + size(item), number))
    return [group for group in bins if group]
