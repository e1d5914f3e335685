"""One hyper-node brought up to date: what its inputs gained and lost, to what its segment gains and loses.

Deletion comes first. Facts whose instances may be gone are candidates; a candidate stays if an instance on
the next version supports it. Where the node is recursive, a fact may support itself in a circle, so
candidates must be proved (`backward`); or all of them and what leans on them go, and what has an instance
comes back. Then insertion: the rules run with what is new at each place in turn, and on from what that gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.aggregates import fold_rows
from zodiacedge.engine.embedded.backward import Instances, Search, instances_of
from zodiacedge.engine.embedded.layout import MOST_COLUMNS
from zodiacedge.engine.embedded.store import NO_CLASS, TYPED, Relation, Segment
from zodiacedge.engine.embedded.table import Table
from zodiacedge.engine.embedded.versions import Delta, Draft, Piece, VersionReads, by_class
from zodiacedge.language.ast import Aggregate, Atom, Negation, Rule, Variable
from zodiacedge.language.checks import body_atoms
from zodiacedge.language.safety import analyse
from zodiacedge.plan.variants import recursive_places
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.language.ast import Argument, Conjunct

    Ids = NDArray[np.int32]

# Names that no predicate of a user can have.
_DELTA = "what changed"
_GIVEN = "what is asked for"
_ROWS = "rows of an aggregate"


class NodeShape:
    """What a node's rules are like, whatever the facts: found out once, used in every change."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        """Look at the rules."""
        heads = [rule.head for rule in rules.values()]
        self.rules = rules
        self.atoms = [atom for rule in rules.values() for atom in body_atoms(rule.body)]
        # A node that derives `rdf:type` with a variable class keeps all of it in one table.
        self.typed = any(h.relation == RDF_TYPE and isinstance(h.args[-1], Variable) for h in heads)
        self.own_places = {key: recursive_places(rule, heads) for key, rule in rules.items()}
        self.recursive = any(self.own_places.values())
        # A row that holds an instance: its head, and what it needs of the node itself.
        self.widest = max(len(self.instance_args(key)) for key in rules)
        self.aggregates = {id(rule.aggregate): key for key, rule in rules.items() if rule.aggregate}

    def own_atoms(self, key: str) -> list[Atom]:
        """Return the atoms of a rule that the node itself derives."""
        body = self.rules[key].body
        return [atom for atom in (body[place] for place in self.own_places[key]) if isinstance(atom, Atom)]

    def instance_args(self, key: str) -> tuple[Argument, ...]:
        """Return the arguments of a rule's head, and of what an instance needs of the node itself."""
        needs = (arg for atom in self.own_atoms(key) for arg in atom.args)
        return (*self.rules[key].head.args, *needs)


class NodeChange:
    """The change of one node whose rules stay."""

    def __init__(self, draft: Draft, shape: NodeShape, own: Segment, *, backward: bool = True) -> None:
        """Take the node and its segment in the old version.

        Args:
            draft: The change under way.
            shape: The node.
            own: Its segment in the old version.
            backward: Whether doubtful facts are proved, or all deleted and derived again where possible.
        """
        self._backward = backward
        self._draft = draft
        self._shape = shape
        self._rules = shape.rules
        self._own = own
        self._gone: Delta = {}
        self._new: Delta = {}
        self._lost: Delta = {}
        self._negated: dict[tuple[int, int], tuple[Ids, Ids]] = {}

    def process(self) -> int | None:
        """Work the change out; return by how many facts the segment grows or shrinks.

        Where an evaluation error is met, everything is taken back and there is no number: only evaluating
        the node anew tells how many bindings are dropped now.
        """
        self._draft.errors = False
        self._classify()
        self._aggregate()
        self._delete()
        self._insert()
        if self._draft.errors:
            self._draft.forget(self._own)
            return None
        return self._draft.settle(self._own)

    # What the node reads.

    def _classify(self) -> None:
        draft, own = self._draft, self._own
        for relation in dict.fromkeys(r for atom in self._shape.atoms for r in draft.touching(atom)):
            rows = draft.touched(relation)
            before = draft.mask(relation, rows, draft.old)
            ext = draft.mask(relation, rows, self._ext)
            ext_before = draft.mask(relation, rows, lambda one: draft.old(one, own))
            inside = draft.mask(relation, rows, self._segment)
            for delta, which in (
                (self._gone, before & ~ext & ~inside),
                (self._new, ext & ~before),
                (self._lost, inside & ~ext & ext_before),
            ):
                if which.any():
                    delta[relation] = rows[which]

    def _ext(self, relation: Relation) -> Sequence[Piece]:
        return self._draft.new(relation, self._own)

    def _segment(self, relation: Relation) -> Sequence[Piece]:
        return self._draft.own(relation, self._own)

    def _reads(self, special: Mapping[str, list[tuple[Table, int]]], *, old: bool) -> VersionReads:
        draft, own = self._draft, self._own
        keys = self._shape.aggregates

        def rows(aggregate: Aggregate) -> Sequence[Piece]:
            key = keys[id(aggregate)]
            return [Piece(own.hidden[key])] if old else list(draft.hidden(own, key).pieces())

        return VersionReads(draft, draft.old if old else draft.new, special, rows)

    def _tables(self, atom: Atom, delta: Delta) -> list[tuple[Table, int]]:
        return [(Table.of(delta[one]), one.member_of) for one in self._draft.matching(atom, delta)]

    # Deltas at a place of a body.

    def _changes(
        self, body: tuple[Conjunct, ...], *, lost: bool
    ) -> Iterator[tuple[int, tuple[Argument, ...], list[tuple[Table, int]]]]:
        """Yield the places of a body where something was lost, or gained: arguments and rows."""
        delta = self._gone if lost else self._new
        for place, conjunct in enumerate(body):
            if isinstance(conjunct, Atom):
                tables = self._tables(conjunct, delta)
                if tables:
                    yield place, conjunct.args, tables
            elif isinstance(conjunct, Negation):
                keys, appeared, vanished = self._projection(conjunct.atom, body)
                # What appears under a negation takes away, what vanishes gives.
                rows = appeared if lost else vanished
                if len(rows):
                    yield place, keys, [(Table.of(rows), NO_CLASS)]

    def _projection(self, atom: Atom, body: tuple[Conjunct, ...]) -> tuple[tuple[Variable, ...], Ids, Ids]:
        """Return a negated atom's outer variables, and their values that began and ceased to have a match."""
        draft = self._draft
        bound = analyse(body).bound
        keys = tuple(dict.fromkeys(a for a in atom.args if isinstance(a, Variable) and a in bound))
        touched = {one: draft.touched(one) for one in draft.touching(atom)}
        nothing = np.zeros((0, len(keys)), np.int32)
        tables = self._tables(atom, touched)
        if not tables:
            return keys, nothing, nothing
        reads = VersionReads(draft, draft.old, {_DELTA: tables})
        asked = draft.run(keys, (Atom(_DELTA, atom.args),), reads)
        if not len(asked):
            return keys, nothing, nothing
        given = {_GIVEN: [(Table.of(asked), NO_CLASS)]}
        question = (Atom(_GIVEN, keys), atom)
        before = draft.run(keys, question, VersionReads(draft, draft.old, given), first=0)
        after = draft.run(keys, question, VersionReads(draft, draft.new, given), first=0)
        return keys, _without(after, before), _without(before, after)

    def _derive(
        self,
        key: str,
        place: int,
        args: tuple[Argument, ...],
        tables: list[tuple[Table, int]],
        *,
        old: bool,
    ) -> Delta:
        """Return the heads of instances that have given rows at one place."""
        rule = self._rules[key]
        body = (*rule.body[:place], Atom(_DELTA, args), *rule.body[place + 1 :])
        reads = self._reads({_DELTA: tables}, old=old)
        return self._heads(rule, self._draft.run(rule.head.args, body, reads, first=place))

    def _from_own(self, delta: Delta, *, old: bool) -> Delta:
        """Return the heads of instances that have some of the node's own facts at some place."""
        found: Delta = {}
        for key, rule in self._rules.items():
            for place in self._shape.own_places[key]:
                conjunct = rule.body[place]
                tables = self._tables(conjunct, delta) if isinstance(conjunct, Atom) else []
                if isinstance(conjunct, Atom) and tables:
                    found = _union(found, self._derive(key, place, conjunct.args, tables, old=old))
        return found

    def _changed_heads(self, *, lost: bool) -> Delta:
        """Return the heads of instances that were lost on the old version, or gained on the next."""
        found: Delta = {}
        for key, rule in self._rules.items():
            for place, args, tables in self._changes(rule.body, lost=lost):
                found = _union(found, self._derive(key, place, args, tables, old=lost))
            if rule.aggregate:
                overlay = self._draft.hidden(self._own, key)
                rows = overlay.minus if lost else overlay.plus
                if len(rows):
                    place = rule.body.index(rule.aggregate)
                    columns = (*rule.aggregate.groups, *(fold.target for fold in rule.aggregate.folds))
                    tables = [(Table.of(rows.rows), NO_CLASS)]
                    found = _union(found, self._derive(key, place, columns, tables, old=lost))
        return found

    def _supported(self, delta: Delta) -> Delta:
        """Return those of some facts that have an instance on the next version."""
        found: Delta = {}
        for rule in self._rules.values():
            tables = self._tables(rule.head, delta)
            if tables:
                body = (Atom(_GIVEN, rule.head.args), *rule.body)
                reads = self._reads({_GIVEN: tables}, old=False)
                rows = self._draft.run(rule.head.args, body, reads, first=0)
                found = _union(found, self._heads(rule, rows))
        return found

    def _heads(self, rule: Rule, rows: Ids) -> Delta:
        head = rule.head
        if not len(rows):
            return {}
        relation = Relation(head.relation, len(head.args))
        return dict(by_class(relation, rows))

    # Aggregates.

    def _aggregate(self) -> None:
        """Fold the groups again whose bindings may have changed."""
        for key, rule in self._rules.items():
            if rule.aggregate:
                self._fold_again(key, rule.aggregate)

    def _fold_again(self, key: str, aggregate: Aggregate) -> None:
        draft = self._draft
        groups = Table(len(aggregate.groups))
        for lost in (True, False):
            for place, args, tables in self._changes(aggregate.body, lost=lost):
                body = (*aggregate.body[:place], Atom(_DELTA, args), *aggregate.body[place + 1 :])
                reads = VersionReads(draft, draft.old if lost else draft.new, {_DELTA: tables})
                groups.insert(draft.run(aggregate.groups, body, reads, first=place))
        if not len(groups):
            return
        special = {_GIVEN: [(groups, NO_CLASS)], _ROWS: [(self._own.hidden[key], NO_CLASS)]}
        columns = (*aggregate.groups, *(fold.target for fold in aggregate.folds))
        before = draft.run(
            columns,
            (Atom(_GIVEN, aggregate.groups), Atom(_ROWS, columns)),
            VersionReads(draft, draft.old, special),
            first=0,
        )
        bindings = draft.run(
            (*aggregate.groups, *(fold.argument for fold in aggregate.folds)),
            (Atom(_GIVEN, aggregate.groups), *aggregate.body),
            VersionReads(draft, draft.new, special),
            first=0,
            exact=True,
        )
        after, dropped, _ = fold_rows(draft.store, aggregate, bindings, draft.registry)
        draft.errors = draft.errors or dropped > 0
        overlay = draft.hidden(self._own, key)
        overlay.remove(_without(before, after))
        overlay.add(_without(after, before))

    # The segment.

    def _delete(self) -> None:
        candidates = self._inside(_union(self._lost, self._changed_heads(lost=True)))
        if not candidates:
            return
        if not self._shape.recursive:
            self._remove(_minus(candidates, self._supported(candidates)))
            return
        if self._backward and self._shape.widest <= MOST_COLUMNS:
            self._delete_backward(candidates)
        else:
            self._delete_and_rederive(candidates)

    def _delete_backward(self, candidates: Delta) -> None:
        search = Search(self._instances, lambda one, rows: self._draft.mask(one, rows, self._ext))
        while candidates:
            bad = search.disproved(candidates)
            self._remove(bad)
            candidates = self._inside(self._from_own(self._not_ext(bad), old=True))

    def _instances(self, goals: Delta) -> Iterator[Instances]:
        """Yield the instances of some facts on the next version, with what they need of the node itself."""
        for key, rule in self._rules.items():
            tables = self._tables(rule.head, goals)
            if not tables:
                continue
            body = (Atom(_GIVEN, rule.head.args), *rule.body)
            reads = self._reads({_GIVEN: tables}, old=False)
            rows = self._draft.run(self._shape.instance_args(key), body, reads, first=0)
            if len(rows):
                needs = [_kind(atom) for atom in self._shape.own_atoms(key)]
                yield from instances_of(rows, _kind(rule.head), needs)

    def _delete_and_rederive(self, candidates: Delta) -> None:
        doomed = frontier = candidates
        while frontier:
            frontier = _minus(self._inside(self._from_own(self._not_ext(frontier), old=True)), doomed)
            doomed = _union(doomed, frontier)
        self._remove(doomed)
        frontier = self._supported(doomed)
        while frontier:
            self._add(frontier)
            doomed = _minus(doomed, frontier)
            frontier = _common(self._from_own(self._not_ext(frontier), old=False), doomed)

    def _insert(self) -> None:
        frontier = self._outside(self._changed_heads(lost=False))
        rounds = grown = 0
        while frontier:
            self._add(frontier)
            rounds += 1
            grown += sum(map(len, frontier.values()))
            self._draft.count(rounds, grown)
            frontier = self._outside(self._from_own(self._not_ext(frontier), old=False))

    def _inside(self, delta: Delta) -> Delta:
        return _chosen(delta, lambda one, rows: self._draft.mask(one, rows, self._segment))

    def _outside(self, delta: Delta) -> Delta:
        return _chosen(delta, lambda one, rows: ~self._draft.mask(one, rows, self._segment))

    def _not_ext(self, delta: Delta) -> Delta:
        return _chosen(delta, lambda one, rows: ~self._draft.mask(one, rows, self._ext))

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


def _kind(atom: Atom) -> tuple[Relation, int]:
    return Relation(atom.relation, len(atom.args)), len(atom.args)


def _without(rows: Ids, others: Ids) -> Ids:
    return rows[~Table.of(others).mask(rows)]


def _chosen(delta: Delta, mask: Callable[[Relation, Ids], NDArray[np.bool_]]) -> Delta:
    found = {}
    for relation, rows in delta.items():
        kept = rows[mask(relation, rows)]
        if len(kept):
            found[relation] = kept
    return found


def _union(first: Delta, second: Delta) -> Delta:
    found = dict(first)
    for relation, rows in second.items():
        if relation in found:
            found[relation] = np.concatenate((found[relation], _without(rows, found[relation])))
        elif len(rows):
            found[relation] = rows
    return found


def _minus(first: Delta, second: Delta) -> Delta:
    return _chosen(first, lambda one, rows: ~_among(second, one, rows))


def _common(first: Delta, second: Delta) -> Delta:
    return _chosen(first, lambda one, rows: _among(second, one, rows))


def _among(delta: Delta, relation: Relation, rows: Ids) -> NDArray[np.bool_]:
    if relation not in delta:
        return np.zeros(len(rows), np.bool_)
    return Table.of(delta[relation]).mask(rows)
