"""Calls that wait for a disk or a network, several at a time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_Item = TypeVar("_Item")
_AT_ONCE = 16


def in_threads(call: Callable[[_Item], None], items: Collection[_Item], helpers: int) -> None:
    """Call a function for many items, in this thread and in some more; raise the first problem."""
    waiting = iter(items)
    problems: list[Exception] = []
    taking = threading.Lock()

    def work() -> None:
        while not problems:
            with taking:
                try:
                    item = next(waiting)
                except StopIteration:
                    return
            try:
                call(item)
            except Exception as problem:  # noqa: BLE001 - it is raised below
                problems.append(problem)

    # Plain threads: pools take no work once the program has begun to end, and a flush may be at work then.
    threads = [threading.Thread(target=work) for _ in range(min(_AT_ONCE, helpers))]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
