"""The maintenance of a transitive closure: pairs that a changed step connects or separates.

The segment holds the pairs (x, z) with a base pair (x, y) and a path of one or more steps from y to z. Both
the segment without a step and the segment with it follow from searches along the steps alone, so no index of
the segment is needed. With one more step, from a to b, x gets z only if x reaches a and did not reach b, and
if z is b or behind b and a did not reach z. Changed rows are taken one by one, deleted rows first, each
as the difference that it makes to the graph without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.evaluate.closure_kernels import SET_BITS, follow_links
from zodiacedge.engine.embedded.evaluate.modules import Shape
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import MEMORY, words
from zodiacedge.engine.embedded.storage.relation import Relation
from zodiacedge.engine.embedded.storage.table import SCRATCH, Table
from zodiacedge.engine.embedded.versions.ownership import OUTSIDE, OUTSIDE_BEFORE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.embedded.versions.draft import Draft

    Links = NDArray[np.int64]
    Labels = NDArray[np.int64]

_SHAPES = frozenset({Shape.STEPS, Shape.STEPS_BACK, Shape.TRANSITIVE})
# With more changed rows, whole sets of facts are handled at once instead.
_MOST_ROWS = 64
_ROOM = 64
# No term has this id.
_NEVER = -1
_NONE = words(0)


def is_closure(node_rules: NodeRules) -> bool:
    """Whether a node is a closure that is maintained along its steps."""
    return node_rules.module is not None and node_rules.module.shape in _SHAPES


def maintain_closure(draft: Draft, node_rules: NodeRules, own: Segment) -> int | None:
    """Maintain a closure; return by how many facts it grows, None if the node is no closure."""
    module = node_rules.module
    if module is None or module.shape not in _SHAPES:
        return None
    relation = Relation(next(iter(node_rules.heads.values())).name, 2)
    steps, bases = (_net_rows(draft, read, own) for read in (Relation(module.step.relation, 2), relation))
    if sum(map(len, (*steps, *bases))) > _MOST_ROWS:
        return None
    draft.check_time()
    start = int(module.shape is Shape.STEPS_BACK)
    graph = _Graph(
        draft, _Links(draft, Relation(module.step.relation, 2), own), _Links(draft, relation, own), start
    )
    overlay = draft.overlay(own, relation)
    changes = ((steps, graph.steps, graph.by_step), (bases, graph.bases, graph.by_base))
    for (deleted, inserted), links, pairs_by in changes:
        for row in deleted:
            links.minus.insert(row[None, :])
            overlay.remove(pairs_by(*row[[start, 1 - start]].tolist()))
        for row in inserted:
            pairs = pairs_by(*row[[start, 1 - start]].tolist())
            overlay.add(pairs)
            draft.derivations += len(pairs)
            links.plus.insert(row[None, :])
    draft.count(1, len(own) + overlay.grown)
    return draft.settle(own)


def prepare_closure(draft: Draft, node_rules: NodeRules, own: Segment) -> None:
    """Index the steps and base pairs of a closure in the next version; load the kernel of its searches."""
    for relation in {r for atom in node_rules.atoms for r in draft.relations(atom)}:
        for piece in draft.new(relation, own):
            for start in (0, 1):
                piece.table.ensure_index(1 << start)
    # Loading takes 30 ms, once in a process: the first change would give up and lose the hash set.
    nothing = _Labelled()
    follow_links(MEMORY.address(_NONE), 0, nothing.at, nothing.at, _NEVER, SCRATCH.address)


def _net_rows(draft: Draft, relation: Relation, own: Segment) -> tuple[Ids, Ids]:
    """Return the rows that are outside the segment no more, and those that were not."""
    rows = draft.changed.rows(relation)
    marks = draft.flags(relation, rows, own)
    before, after = marks & OUTSIDE_BEFORE != 0, marks & OUTSIDE != 0
    return rows[before & ~after], rows[after & ~before]


class _Links:
    # The pairs of a relation outside the segment, in the old version, without `minus` and with `plus`.
    def __init__(self, draft: Draft, relation: Relation, own: Segment) -> None:
        self.minus, self.plus = Table(2), Table(2)
        self.minus.ensure_hash_set()
        self._frames = [
            _frame([(piece.table, self.minus) for piece in draft.old(relation, own)], self.plus, start)
            for start in (0, 1)
        ]

    def starting(self, column: int) -> Links:
        """Return the links from one column to the other, for the kernel."""
        return self._frames[column]


def _frame(tables: Iterable[tuple[Table, Table]], plus: Table, start: int) -> Links:
    entries: list[tuple[int, int, int, int]] = []
    for table, without in (*tables, (plus, None)):
        number, _ = table.ensure_index(1 << start)
        index = table.at + 8 * (L.T_FIRST_INDEX + number * L.INDEX_WORDS)
        entries.append((table.at, index, without.at if without is not None else 0, start))
    return np.array(entries, np.int64)


class _Graph:
    """The steps and base pairs of a closure, and the pairs that one more of them connects."""

    def __init__(self, draft: Draft, steps: _Links, bases: _Links, start: int) -> None:
        """Take the steps and base pairs; paths lead from the column `start` to the other."""
        self.steps, self.bases = steps, bases
        self._draft = draft
        self._start = start
        self._onward, self._back = steps.starting(start), steps.starting(1 - start)
        self._bases_of, self._sources_of = bases.starting(start), bases.starting(1 - start)

    def by_step(self, first: int, second: int) -> Ids:
        """Return the pairs that one more step connects."""
        behind_first = self._reached(self._onward, [first], stop=second)
        if behind_first is None:
            return self._pairs((), ())
        to_first = self._behind(self._back, [first])
        to_first.insert([first])
        sources = self._next(self._sources_of, to_first)
        if not len(sources.terms):
            return self._pairs((), ())
        connected = self._next(self._sources_of, self._behind(self._back, [second]))
        rest = connected.lacks(sources.terms)
        if not len(rest):
            return self._pairs((), ())
        behind_second = self._behind(self._onward, [second])
        behind_second.insert([second])
        targets = behind_first.lacks(behind_second.terms)
        if len(targets) == 1:
            # It is the second term, which none of the sources reached.
            return self._pairs(rest, np.full(len(rest), second, np.int32))
        return self._unconnected(rest, targets)

    def by_base(self, first: int, second: int) -> Ids:
        """Return the pairs that one more base pair connects."""
        seeds = self._next(self._bases_of, _Labelled([first]))
        connected = self._behind(self._onward, seeds.terms)
        if not len(seeds.lacks(_column([second]))) or not len(connected.lacks(_column([second]))):
            return self._pairs((), ())
        targets = connected.lacks(self._behind(self._onward, [second]).terms)
        return self._pairs(np.full(len(targets), first, np.int32), targets)

    def _unconnected(self, sources: Ids, targets: Ids) -> Ids:
        """Return the pairs of a source and a target that are not connected."""
        pairs = [self._pairs((), ())]
        # The smaller side is labelled; one search hands all its labels on.
        forward = len(sources) <= len(targets)
        labelled, others = (sources, targets) if forward else (targets, sources)
        for start in range(0, len(labelled), SET_BITS):
            some = labelled[start : start + SET_BITS]
            seeds = _Labelled(some, 1 << np.arange(len(some), dtype=np.int64))
            if forward:
                found = self._closed(self._onward, self._next(self._bases_of, seeds))
            else:
                found = self._next(self._sources_of, self._closed(self._back, seeds))
            missing = ~found.labels_of(others)
            for number, term in enumerate(some):
                rest = others[missing >> number & 1 == 1]
                same = np.full(len(rest), term, np.int32)
                pairs.append(self._pairs(same, rest) if forward else self._pairs(rest, same))
        return np.concatenate(pairs)

    def _pairs(self, sources: Sequence[int] | Ids, targets: Sequence[int] | Ids) -> Ids:
        columns = (targets, sources) if self._start else (sources, targets)
        return np.stack([np.asarray(column, np.int32) for column in columns], axis=1)

    # Searches.

    def _behind(self, links: Links, seeds: Sequence[int] | Ids) -> _Labelled:
        """Return the terms that one or more links lead to."""
        return self._closed(links, _Labelled(seeds))

    def _reached(self, links: Links, seeds: Sequence[int], stop: int) -> _Labelled | None:
        """Return the same, or None if a term is among them."""
        reached = _Labelled()
        is_stopped = self._follow(links, _Labelled(seeds), reached, stop)
        return None if is_stopped or self._follow(links, reached, reached, stop) else reached

    def _closed(self, links: Links, seeds: _Labelled) -> _Labelled:
        """Return the terms that one or more links lead to, with the labels of the seeds."""
        reached = self._next(links, seeds)
        self._follow(links, reached, reached)
        return reached

    def _next(self, links: Links, terms: _Labelled) -> _Labelled:
        """Return the terms that one link leads to."""
        reached = _Labelled()
        self._follow(links, terms, reached)
        return reached

    def _follow(self, links: Links, terms: _Labelled, reached: _Labelled, stop: int = _NEVER) -> bool:
        """Hand labels on; return whether a link leads to the term `stop`."""
        outcome = 0
        terms.forget()
        while not outcome:
            self._draft.check_time()
            reached.reserve()
            outcome = int(
                follow_links(MEMORY.address(links), len(links), terms.at, reached.at, stop, SCRATCH.address)
            )
        return outcome < 0


class _Labelled:
    # Terms, each with a set of labels as bits, and the labels that were handed on along the links in use.
    def __init__(self, terms: Sequence[int] | Ids = (), labels: Labels | int = 1) -> None:
        """Take distinct terms and their labels."""
        self._table = Table(1)
        self._table.ensure_hash_set()
        self._labels = self._handed = _NONE
        self._record = words(3)
        self.at = MEMORY.address(self._record)
        self.reserve(len(terms))
        self.insert(terms, labels)

    @property
    def terms(self) -> Ids:
        return self._table.rows[:, 0]

    def insert(self, terms: Sequence[int] | Ids, labels: Labels | int = 1) -> None:
        """Insert distinct terms, for which there is room; those that are here keep their labels."""
        known = len(self._table)
        if self._table.insert(_column(terms)):
            self._labels[known : len(self._table)] = labels

    def reserve(self, more: int = 0) -> None:
        """Make room for more terms."""
        self._table.reserve(max(more, len(self._table), _ROOM))
        size, known = self._table.capacity, len(self._labels)
        if size > known:
            self._labels, self._handed = (_widened(old, size) for old in (self._labels, self._handed))
            arrays = (self._labels, self._handed)
            self._record[:] = (self._table.at, *map(MEMORY.address, arrays))

    def forget(self) -> None:
        """Hand all labels on again, along other links."""
        self._handed[: len(self._table)] = 0

    def lacks(self, terms: Ids) -> Ids:
        """Return those of some terms that are not here."""
        return self._table.filter(_column(terms), present=False)[:, 0]

    def labels_of(self, terms: Ids) -> Labels:
        """Return the labels of terms; none for a term that is not here."""
        positions = self._table.positions(_column(terms))
        return np.where(positions >= 0, self._labels[positions], 0)


def _widened(labels: Labels, size: int) -> Labels:
    wider = words(size)
    wider[: len(labels)] = labels
    return wider


def _column(terms: Sequence[int] | Ids) -> Ids:
    return np.asarray(terms, np.int32).reshape(-1, 1)
