"""One hyper-node brought up to date: what its inputs gained and lost, to what its segment gains and loses.

Deletion comes first. Facts whose instances may be gone are candidates; a candidate stays if an instance on
the next version supports it. Where the node is recursive, a fact may support itself in a circle, so
candidates must be proved (`backward`); or all of them and what leans on them go, and what has an instance
comes back. Then insertion: the rules run with what is new at each place in turn, added rules once in full,
and on from what that gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.expressions.aggregate import fold_rows
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.maintain.backward_forward import BackwardForward, Instances, instances_of
from zodiacedge.engine.embedded.maintain.delta_query import evaluate_delta
from zodiacedge.engine.embedded.storage.database import NO_CLASS, TYPED, Relation, Segment, by_class
from zodiacedge.engine.embedded.storage.row_algebra import difference, distinct, is_member
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.versions.draft import Delta, Draft, GaveUpError
from zodiacedge.engine.embedded.versions.ownership import BEFORE, OUTSIDE, OUTSIDE_BEFORE, OWN
from zodiacedge.language.ast import Aggregate, Atom

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules, Occurrence

    Ids = NDArray[np.int32]
    Flags = NDArray[np.bool_]
    Given = list[tuple[Ids, int]]

# Where more than one in so many of a recursive node's facts are in doubt, proving them does not pay.
_DOUBTFUL = 4
_FEW = 1000


class NodeChange:
    """The change of one node."""

    def __init__(
        self,
        draft: Draft,
        shape: NodeRules,
        own: Segment,
        *,
        backward: bool = True,
        suspects: Delta | None = None,
        added: Collection[str] = (),
    ) -> None:
        """Take the node and the facts that it starts from.

        Args:
            draft: The change under way.
            shape: The node.
            own: Its segment in the old version, or what it inherits from other nodes.
            backward: Whether doubtful facts are proved, or all deleted and derived again where possible.
            suspects: Facts of the segment that rules derived which are not of the node any more.
            added: The keys of its rules that were not there before.
        """
        self._backward = backward
        self._draft = draft
        self._shape = shape
        self._own = own
        self._suspects = suspects or {}
        self._added = added
        self._gone: dict[Occurrence, Given] = {}
        self._new: dict[Occurrence, Given] = {}
        self._lost: Delta = {}

    def process(self) -> int | None:
        """Work the change out; return by how many facts the segment grows or shrinks.

        Where an evaluation error is met there is no number: only evaluating the node anew tells how many
        bindings are dropped now.
        """
        if self._shape.widest_binding > L.MOST_COLUMNS:
            return None
        self._draft.errors = False
        self._classify()
        for key, aggregate in self._shape.aggregates.items():
            self._fold_again(key, aggregate)
        self._delete()
        self._insert()
        return None if self._draft.errors else self._draft.settle(self._own)

    # What the node reads.

    def _classify(self) -> None:
        draft, store = self._draft, self._draft.store
        for relation in self._shape.read_of(store, draft.touched):
            spots = self._shape.spots(store, relation)
            rows = draft.touched.rows(relation)
            gone, new, lost = _sorted_out(rows, draft.flags(relation, rows, self._own))
            # Only a recursive node can hold facts up by themselves.
            if self._shape.recursive and len(lost):
                self._lost[relation] = lost
            for spot in spots:
                if len(gone):
                    self._gone.setdefault(spot, []).append((gone, relation.member_of))
                if len(new):
                    self._new.setdefault(spot, []).append((new, relation.member_of))
        draft.check_time()

    def _without_match(self, spot: Occurrence, given: Given, *, old: bool) -> Ids:
        """Return those values of a negated atom's outer variables in given facts that have no match."""
        keys = self._shape.keys_of(spot)
        if keys is not None and len(given) == 1 and given[0][1] == NO_CLASS:
            asked = distinct(given[0][0][:, keys])
        else:
            asked = evaluate_delta(self._draft, self._shape.projected(spot), given, None, old=old)
        if not len(asked):
            return asked
        found = evaluate_delta(self._draft, self._shape.matched(spot), [(asked, NO_CLASS)], None, old=old)
        return difference(asked, found)

    def _changes(self, *, lost: bool, within: str = "") -> Iterator[tuple[Occurrence, Given]]:
        """Yield the spots where instances of old rules were lost, or where instances were gained.

        Args:
            lost: Which of the two.
            within: The rule whose aggregate is meant; otherwise the bodies of all rules are.
        """

        def is_meant(spot: Occurrence) -> bool:
            return spot.key == within if spot.inner else not within and spot.key not in self._added

        for spot, given in (self._gone if lost else self._new).items():
            if not spot.negated and is_meant(spot):
                yield spot, given
        # What comes under a negation takes away where nothing matched before, and what goes gives where
        # nothing does now.
        for spot, given in (self._new if lost else self._gone).items():
            if spot.negated and is_meant(spot):
                rows = self._without_match(spot, given, old=lost)
                if len(rows):
                    yield spot, [(rows, NO_CLASS)]

    # Heads.

    def _changed_heads(self, *, lost: bool) -> Delta:
        """Return the heads of instances that were lost on the old version, or gained on the next."""
        found: Delta = {}
        for spot, given in self._changes(lost=lost):
            found = _union(found, self._heads_at(spot.key, spot.place, given, old=lost))
        for key, aggregate in self._shape.aggregates.items():
            if key in self._added:
                continue
            for overlay in self._draft.hidden_overlay(self._own, key):
                table = overlay.minus if lost else overlay.plus
                if len(table):
                    place = self._shape.rules[key].body.index(aggregate)
                    given = [(table.rows, NO_CLASS)]
                    found = _union(found, self._heads_at(key, place, given, old=lost))
        return found

    def _heads_at(self, key: str, place: int, given: Given, *, old: bool) -> Delta:
        columns = self._shape.head_columns(key)
        if columns is not None and len(given) == 1:
            rows = given[0][0][:, columns]
            self._draft.derivations += len(rows)
            return self._heads(key, rows)
        question = self._shape.heads_at(key, place)
        return self._heads(key, evaluate_delta(self._draft, question, given, self._own, old=old))

    def _from_own(self, delta: Delta, *, old: bool) -> Delta:
        """Return the heads of instances that have some of the node's own facts at some place."""
        found: Delta = {}
        for key, rule in self._shape.rules.items():
            if old and key in self._added:
                continue
            for place in self._shape.own_places[key]:
                conjunct = rule.body[place]
                given = self._matching(conjunct, delta) if isinstance(conjunct, Atom) else []
                if given:
                    found = _union(found, self._heads_at(key, place, given, old=old))
        return found

    def _supported(self, delta: Delta) -> Delta:
        """Return those of some facts that have an instance on the next version."""
        found: Delta = {}
        for key, rule in self._shape.rules.items():
            given = self._matching(rule.head, delta)
            if given:
                rows = evaluate_delta(self._draft, self._shape.supported(key), given, self._own, old=False)
                found = _union(found, self._heads(key, rows))
        return found

    def _heads(self, key: str, rows: Ids) -> Delta:
        if not len(rows):
            return {}
        relation = self._shape.heads[key]
        return {relation: rows} if relation != TYPED else dict(by_class(relation, rows))

    def _matching(self, atom: Atom, delta: Delta) -> Given:
        """Return those of some facts that may match an atom."""
        if not delta:
            return []
        relations = self._shape.relations(self._draft.store, atom)
        if relations is None:
            return [(rows, one.member_of) for one, rows in delta.items() if one.member_of != NO_CLASS]
        return [(delta[one], one.member_of) for one in relations if one in delta]

    # Aggregates.

    def _fold_again(self, key: str, aggregate: Aggregate) -> None:
        """Fold the groups again whose bindings may have changed, or all groups of an added rule."""
        draft, shape, own = self._draft, self._shape, self._own
        if key in self._added:
            bindings = evaluate_delta(draft, shape.all_bindings(key), (), None, old=False)
            draft.aggregate_rows(own, key).add(self._folded(aggregate, bindings))
            return
        found = [
            evaluate_delta(draft, shape.groups_at(key, spot.place), given, None, old=lost)
            for lost in (True, False)
            for spot, given in self._changes(lost=lost, within=key)
        ]
        groups = found[0] if len(found) == 1 else _all_of(found, len(aggregate.groups))
        if not len(groups):
            return
        given = [(groups, NO_CLASS)]
        before = evaluate_delta(draft, shape.rows_of_groups(key), given, own, old=True)
        after = self._folded(
            aggregate, evaluate_delta(draft, shape.bindings_of_groups(key), given, None, old=False)
        )
        overlay = draft.aggregate_rows(own, key)
        overlay.remove(difference(before, after))
        overlay.add(difference(after, before))

    def _folded(self, aggregate: Aggregate, bindings: Ids) -> Ids:
        # What only tells bindings apart is not folded.
        folded = bindings[:, : len(aggregate.groups) + len(aggregate.folds)]
        rows, dropped, _ = fold_rows(self._draft.store, aggregate, folded, self._draft.registry)
        self._draft.errors = self._draft.errors or dropped > 0
        return rows

    # The segment.

    def _delete(self) -> None:
        doubtful = _union(_union(self._suspects, self._lost), self._changed_heads(lost=True))
        candidates = self._inside(doubtful)
        if not candidates:
            return
        if not self._shape.recursive:
            alone = self._shape.one_instance_each and not self._suspects
            self._remove(candidates if alone else _minus(candidates, self._supported(candidates)))
            return
        self._refuse_many(candidates)
        if self._backward and self._shape.widest_instance <= L.MOST_COLUMNS:
            self._delete_backward(candidates)
        else:
            self._delete_and_rederive(candidates)

    def _refuse_many(self, candidates: Delta) -> None:
        doubtful = sum(map(len, candidates.values()))
        if self._draft.clock.is_set and doubtful > _FEW and doubtful * _DOUBTFUL > len(self._own):
            raise GaveUpError

    def _delete_backward(self, candidates: Delta) -> None:
        search = BackwardForward(self._instances, lambda one, rows: self._flags(one, rows) & OUTSIDE != 0)
        while candidates:
            self._draft.check_time()
            bad = search.unproved(candidates)
            self._remove(bad)
            candidates = self._inside(self._from_own(self._not_outside(bad), old=True))

    def _instances(self, goals: Delta) -> Iterator[Instances]:
        """Yield the instances of some facts on the next version, with what they need of the node itself."""
        self._draft.check_time()
        for key, rule in self._shape.rules.items():
            given = self._matching(rule.head, goals)
            if not given:
                continue
            rows = evaluate_delta(self._draft, self._shape.instances(key), given, self._own, old=False)
            if len(rows):
                needs = [_kind(atom) for atom in self._shape.own_atoms(key)]
                yield from instances_of(rows, _kind(rule.head), needs)

    def _delete_and_rederive(self, candidates: Delta) -> None:
        doomed = frontier = candidates
        while frontier:
            self._draft.check_time()
            frontier = _minus(self._inside(self._from_own(self._not_outside(frontier), old=True)), doomed)
            doomed = _union(doomed, frontier)
        self._remove(doomed)
        frontier = self._supported(doomed)
        while frontier:
            self._draft.check_time()
            self._add(frontier)
            doomed = _minus(doomed, frontier)
            frontier = _common(self._from_own(self._not_outside(frontier), old=False), doomed)

    def _insert(self) -> None:
        found = self._changed_heads(lost=False)
        for key in self._added:
            rows = evaluate_delta(self._draft, self._shape.all_heads(key), (), self._own, old=False)
            found = _union(found, self._heads(key, rows))
        frontier = self._absent(found)
        rounds = 0
        while frontier:
            self._draft.check_time()
            self._add(frontier)
            rounds += 1
            self._draft.count(rounds, len(self._own) + self._draft.grown(self._own))
            if not self._shape.recursive:
                break
            frontier = self._absent(self._from_own(self._not_outside(frontier), old=False))

    def _flags(self, relation: Relation, rows: Ids) -> NDArray[np.int8]:
        return self._draft.flags(relation, rows, self._own)

    def _inside(self, delta: Delta) -> Delta:
        return _chosen(delta, lambda one, rows: self._draft.held(one, rows, self._own))

    def _absent(self, delta: Delta) -> Delta:
        return _chosen(delta, lambda one, rows: ~self._draft.held(one, rows, self._own))

    def _not_outside(self, delta: Delta) -> Delta:
        return _chosen(delta, lambda one, rows: self._flags(one, rows) & OUTSIDE == 0)

    def _remove(self, delta: Delta) -> None:
        for relation, rows in delta.items():
            one, own = self._stored(relation, rows)
            self._draft.overlay(self._own, one).remove(own)

    def _add(self, delta: Delta) -> None:
        for relation, rows in delta.items():
            one, own = self._stored(relation, rows)
            self._draft.overlay(self._own, one).add(own)

    def _stored(self, relation: Relation, rows: Ids) -> tuple[Relation, Ids]:
        if self._shape.typed and relation.member_of != NO_CLASS:
            return TYPED, np.insert(rows, 1, relation.member_of, axis=1)
        return relation, rows


def _sorted_out(rows: Ids, marks: NDArray[np.int8]) -> tuple[Ids, Ids, Ids]:
    """Return the rows that are gone, those that are new outside, and own ones that lost support outside."""
    if len(rows) == 1:
        # The usual case, and much quicker without arrays.
        mark = int(marks[0])
        none = rows[:0]
        gone = mark & BEFORE and not mark & (OUTSIDE | OWN)
        new = mark & OUTSIDE and not mark & BEFORE
        lost = mark & OWN and not mark & OUTSIDE and mark & OUTSIDE_BEFORE
        return rows if gone else none, rows if new else none, rows if lost else none
    before, outside, own = marks & BEFORE != 0, marks & OUTSIDE != 0, marks & OWN != 0
    return (
        rows[before & ~outside & ~own],
        rows[outside & ~before],
        rows[own & ~outside & (marks & OUTSIDE_BEFORE != 0)],
    )


def _all_of(pieces: Iterable[Ids], arity: int) -> Ids:
    """Return all rows of some pieces, each once."""
    found = Table(arity)
    for rows in pieces:
        found.insert(rows)
    return found.rows


def _kind(atom: Atom) -> tuple[Relation, int]:
    return Relation(atom.relation, len(atom.args)), len(atom.args)


def _chosen(delta: Delta, mask: Callable[[Relation, Ids], Flags]) -> Delta:
    found = {}
    for relation, rows in delta.items():
        kept = rows[mask(relation, rows)]
        if len(kept):
            found[relation] = kept
    return found


def _union(first: Delta, second: Delta) -> Delta:
    if not first or not second:
        return first or second
    found = dict(first)
    for relation, rows in second.items():
        if relation in found:
            found[relation] = np.concatenate((found[relation], difference(rows, found[relation])))
        elif len(rows):
            found[relation] = rows
    return found


def _minus(first: Delta, second: Delta) -> Delta:
    return _chosen(first, lambda one, rows: ~_among(second, one, rows))


def _common(first: Delta, second: Delta) -> Delta:
    return _chosen(first, lambda one, rows: _among(second, one, rows))


def _among(delta: Delta, relation: Relation, rows: Ids) -> Flags:
    if relation not in delta:
        return np.zeros(len(rows), np.bool_)
    return is_member(rows, delta[relation])
