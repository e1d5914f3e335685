"""Two threads for one node: which rows are whose, and how the second waits for the first.

One rule that is run once is halved by the rows of its first atom. A fixpoint is halved where it falls apart
(`plan.partition`): each thread has the facts of every other term, and a segment of its own. Either way each
fact that comes out is the same as if one thread had done it all.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

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

_SLICE_SECONDS = 0.05


class StoppedError(Exception):
    """The other half of the work failed, so this one need not go on."""


class OtherHalf:
    """The second thread of a node that two share; it rests while the first one passes its turn on."""

    def __init__(self, yield_point: YieldPoint) -> None:
        """Take the turn that the first thread has."""
        self._yield_point = yield_point
        # Held by the second thread while it works.
        self.working = threading.Lock()
        self._may_go = threading.Event()
        self._may_go.set()
        self._stopped = False
        self.facts = 0

    @property
    def wanted(self) -> bool:
        """Whether somebody waits for the turn."""
        return self._yield_point.wanted

    def yield_to_waiters(self) -> None:
        """Let others work, if somebody waits."""
        if not self._yield_point.wanted:
            return
        self._may_go.clear()
        try:
            with self.working:
                self._yield_point.yield_to_waiters()
        finally:
            self._may_go.set()

    def wait_for(self, half: Future[int]) -> int:
        """Wait until the second thread is done, and return its result."""
        while not half.done():
            wait((half,), _SLICE_SECONDS)
            self.yield_to_waiters()
        return half.result()

    def stop(self) -> None:
        """Let the second thread end at its next sign of life."""
        self._stopped = True

    def watch(self, rounds: int, facts: int) -> None:
        """Take the second thread's sign of life."""
        del rounds
        self.facts = facts
        if self._stopped:
            raise StoppedError
        if not self._may_go.is_set():
            self.working.release()
            self._may_go.wait()
            self.working.acquire()


class TwoThreads:
    """The tables that the two threads of a fixpoint read in place of whole ones."""

    def __init__(self, columns: dict[int, int]) -> None:
        """Take the atoms whose rows are divided, by identity, and the column that tells whose a row is.

        By identity, because one rule may want half of the rows that an equal atom of another one matches.
        """
        self._columns = columns

    @classmethod
    def of(cls, rules: Collection[Rule]) -> TwoThreads | None:
        """Return how the fixpoint of a node is divided, if it falls apart."""
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
        """Return what one of the two threads reads from outside."""
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
    """Whether a rule makes no terms: two threads must not make some at once."""
    return all(isinstance(c, Atom | Negation | Comparison) for c in rule.body) and not can_fail(rule.body)


def _half(part: TableView, column: int, half: int) -> TableView:
    rows = part.table.rows
    # The members of a class have no column for it: all of them are of one half.
    whose = rows[:, column] if column < part.table.arity else np.full(len(rows), part.member_of)
    return TableView(Table.of(rows[whose & 1 == half]), part.member_of)
