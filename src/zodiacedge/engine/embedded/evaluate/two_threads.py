"""Two threads for one node: how rows are partitioned, and how the threads wait for each other.

A rule that is evaluated once is partitioned by the rows of its first atom. A fixpoint is partitioned by an
argument that its rules hand down (`plan.partition`): each thread reads the facts of even or of odd term ids,
and fills a segment of its own. The union of the results is the result of one thread. A fixpoint without such
an argument goes on in rounds with an `Exchange`. On one core one thread evaluates all.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from zodiacedge.engine.embedded.storage.relation import TableView
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.language.ast import Atom, Comparison, Negation
from zodiacedge.plan.partition import fixpoint_partitioning
from zodiacedge.plan.variants import can_fail, recursive_atoms

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.language.ast import Rule

_Result = TypeVar("_Result")

_SLICE_SECONDS = 0.05


def has_two_cores() -> bool:
    """Whether this thread may run on more than one core."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) > 1
    return (os.cpu_count() or 1) > 1


class StoppedError(Exception):
    """The first thread has failed, so the second thread stops."""


class OtherHalf:
    """The second thread of a node; it pauses while the first thread yields to waiting threads."""

    def __init__(self, yield_point: YieldPoint) -> None:
        """Take the yield point of the first thread."""
        self._yield_point = yield_point
        # Held by the second thread while it runs.
        self.working = threading.Lock()
        self._may_go = threading.Event()
        self._may_go.set()
        self._stopped = False
        self.facts = 0

    @property
    def wanted(self) -> bool:
        """Whether another thread waits for the engine."""
        return self._yield_point.wanted

    def yield_to_waiters(self) -> None:
        """Pause the second thread and yield, if another thread waits for the engine."""
        if not self._yield_point.wanted:
            return
        self._may_go.clear()
        try:
            with self.working:
                self._yield_point.yield_to_waiters()
        finally:
            self._may_go.set()

    def run(self, pool: ThreadPoolExecutor, task: Callable[[int], object]) -> None:
        """Run a task in both threads; its argument is the number of the thread."""

        def second() -> None:
            with self.working:
                task(1)

        half = pool.submit(second)
        task(0)
        self.wait_for(half)

    def wait_for(self, half: Future[_Result]) -> _Result:
        """Wait until the second thread is done, and return its result."""
        while not half.done():
            wait((half,), _SLICE_SECONDS)
            self.yield_to_waiters()
        return half.result()

    def stop(self) -> None:
        """End the second thread at its next call of `watch`."""
        self._stopped = True

    def watch(self, rounds: int, facts: int) -> None:
        """Called by the second thread at intervals: pause, or stop, if the first thread asks for it."""
        del rounds
        self.facts = facts
        if self._stopped:
            raise StoppedError
        if not self._may_go.is_set():
            self.working.release()
            self._may_go.wait()
            self.working.acquire()


class TwoThreads:
    """The partitioned tables that the two threads of a fixpoint read."""

    def __init__(self, columns: dict[int, int]) -> None:
        """Take the atoms whose rows are partitioned, by identity, and the column of the partition key.

        By identity, because an equal atom of another rule may read all rows.
        """
        self._columns = columns

    @classmethod
    def of(cls, rules: Collection[Rule]) -> TwoThreads | None:
        """Return the partitioning of a node's fixpoint, or None if it cannot be partitioned."""
        heads = [rule.head for rule in rules]
        partitioning = fixpoint_partitioning(rules) if all(map(only_reads, rules)) else None
        if partitioning is None:
            return None
        columns: dict[int, int] = {}
        whole: set[int] = set()
        for rule in rules:
            key = partitioning.key(rule)
            atoms = [c for c in rule.body if isinstance(c, Atom)]
            own = list(recursive_atoms(rule, heads).values())
            divided = own or [atom for atom in atoms if key in atom.args][:1]
            if not divided:
                return None
            columns |= {id(atom): atom.args.index(key) for atom in divided}
            whole |= {id(atom) for atom in atoms} - {id(atom) for atom in divided}
        return cls(columns) if not whole & columns.keys() else None

    def reads(
        self, outside: Callable[[Atom], Sequence[TableView]], half: int
    ) -> Callable[[Atom], Sequence[TableView]]:
        """Return the function that gives one of the two threads the tables of an atom outside the node."""
        known: dict[int, Sequence[TableView]] = {}

        def half_of(atom: Atom) -> Sequence[TableView]:
            column = self._columns.get(id(atom))
            if column is None:
                return outside(atom)
            if id(atom) not in known:
                known[id(atom)] = [_half(part, column, half) for part in outside(atom)]
            return known[id(atom)]

        return half_of


def only_reads(rule: Rule) -> bool:
    """Whether a rule makes no terms: two threads must not add terms at the same time."""
    return all(isinstance(c, Atom | Negation | Comparison) for c in rule.body) and not can_fail(rule.body)


def _half(part: TableView, column: int, half: int) -> TableView:
    rows = part.table.rows
    # A table of class members has no column for the class: all its rows belong to one thread.
    keys = rows[:, column] if column < part.table.arity else np.full(len(rows), part.member_of)
    return TableView(Table.of(rows[keys & 1 == half]), part.member_of)
