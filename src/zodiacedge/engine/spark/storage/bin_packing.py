"""Bin packing of inputs of different sizes into groups of similar size, one per task."""

from __future__ import annotations

from heapq import heapreplace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zodiacedge.engine.spark.storage.workspace import Workspace

_Item = TypeVar("_Item")
# The minimum number of rows per task that pays for starting the task.
_LEAST_ROWS = 1_000_000


def tasks_for(workspace: Workspace, rows: int) -> int:
    """Return the number of tasks for reading `rows`: one per core, more if a task would exceed its limit."""
    return max(workspace.jobs.cores, -(-rows // max(workspace.options.gather_rows, _LEAST_ROWS)))


def groups(items: Iterable[_Item], size: Callable[[_Item], int], most: int) -> list[list[_Item]]:
    """Distribute items to at most `most` groups of similar size, none of them empty."""
    ordered = sorted(items, key=size, reverse=True)
    bins: list[list[_Item]] = [[] for _ in range(min(most, len(ordered)))]
    loads = [(0, number) for number in range(len(bins))]
    for item in ordered:
        load, number = loads[0]
        bins[number].append(item)
        heapreplace(loads, (load + size(item), number))
    return [group for group in bins if group]
