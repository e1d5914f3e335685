"""Runs calls that wait for a disk or a network in several threads."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_Item = TypeVar("_Item")
_AT_ONCE = 16


def in_threads(call: Callable[[_Item], None], items: Collection[_Item], helpers: int) -> None:
    """Call a function for each item in this thread and up to `helpers` others; raise the first problem."""
    waiting = iter(items)
    problems: list[Exception] = []
    lock = threading.Lock()

    def run() -> None:
        while not problems:
            with lock:
                try:
                    item = next(waiting)
                except StopIteration:
                    return
            try:
                call(item)
            except Exception as problem:  # noqa: BLE001 - it is raised below
                problems.append(problem)

    # Not a pool: a flush may run while the interpreter shuts down, when pools accept no more tasks.
    threads = [threading.Thread(target=run) for _ in range(min(_AT_ONCE, helpers))]
    for thread in threads:
        thread.start()
    run()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
