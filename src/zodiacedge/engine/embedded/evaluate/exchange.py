"""The facts of a fixpoint that two threads evaluate in rounds.

It serves nodes that hand down no argument (`plan.partition`). In a round both threads read all facts of
earlier rounds, and each starts from its half of the last round's delta. New facts go to a table of the
thread, which no other reads; a bitmap that both threads set says which facts are new. Between two rounds the
new facts are divided: each thread indexes one half, its next delta.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.storage.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from zodiacedge.engine.embedded.storage.database import FactTables
    from zodiacedge.engine.embedded.storage.relation import Relation, TableView
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.language.ast import Atom

THREADS = 2


class Exchange:
    """The facts of two threads: those of earlier rounds, and the new ones of this round."""

    def __init__(self, relations: Iterable[Relation], terms: int, rows: int) -> None:
        """Take the relations of the heads, and the numbers of terms and of rows that the first round reads.

        The relations have one or two columns.
        """
        self._rows = rows
        self.rounds = 0
        self._relations = tuple(dict.fromkeys(relations))
        self._known = [Segment() for _ in range(THREADS)]
        self._new = [Segment() for _ in range(THREADS)]
        for relation in self._relations:
            first, *others = [s.table(relation) for s in (*self._new, *self._known)]
            first.mark(terms)
            for table in others:
                table.share_bits(first)

    def new(self, thread: int) -> Segment:
        """Return the segment that a thread derives into."""
        return self._new[thread]

    def known_views(self, store: FactTables, atom: Atom) -> Sequence[TableView]:
        """Return the tables of both threads that match an atom."""
        return [view for segment in self._known for view in store.inside(segment, atom)]

    def delta_views(self, store: FactTables, atom: Atom, thread: int) -> Sequence[TableView]:
        """Return the tables that match an atom and whose delta a thread starts from."""
        return store.inside(self._known[thread], atom)

    def run(
        self, evaluate: Callable[[int], None], in_both: Callable[[Callable[[int], None], int], None]
    ) -> None:
        """Run to the fixpoint.

        Args:
            evaluate: Evaluates the next round in a thread, given by its number.
            in_both: Runs a task in both threads; it is told how many rows the task starts from, about.
        """
        delta = self._rows
        while delta or not self.rounds:
            in_both(evaluate, delta)
            delta = sum(map(len, self._new))
            in_both(self._take, delta)
            for segment in self._new:
                for table in segment.tables.values():
                    table.clear()
            self.rounds += 1

    def _take(self, thread: int) -> None:
        """Make one half of the new facts the next delta of a thread."""
        for relation in self._relations:
            table = self._known[thread].table(relation)
            first = len(table)
            for rows in self._half(relation, thread):
                table.append_distinct(rows)
            table.open_delta(first)

    def _half(self, relation: Relation, thread: int) -> Iterator[Ids]:
        pieces = [segment.table(relation).rows for segment in self._new]
        total = sum(map(len, pieces))
        low, high = total * thread // THREADS, total * (thread + 1) // THREADS
        for rows in pieces:
            yield rows[max(low, 0) : max(high, 0)]
            low, high = low - len(rows), high - len(rows)

    def __len__(self) -> int:
        """Return the number of facts."""
        return sum(map(len, (*self._known, *self._new)))

    def result(self) -> Segment:
        """Return all facts as one segment; the tables of the threads are spent."""
        whole, rest = self._known
        for relation, table in whole.tables.items():
            table.append_distinct(rest.table(relation).rows)
        return whole
