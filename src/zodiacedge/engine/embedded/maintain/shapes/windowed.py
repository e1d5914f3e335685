"""The maintenance of a rule that reads windows, by counting: its cost follows the bindings that come and go.

A binding of all variables of a body is lost or gained as a whole, so the bindings that a change takes and
brings are known exactly. An arrangement has the bindings of each group: in the order of what an aggregate
folds, so that medians, extremes and counts are looked up, and exact totals are differences; with each term
once, for DISTINCT; or, without an aggregate, the heads and how many bindings each has, so that a fact is
deleted with the last of them. No group is folded anew, whatever the windows hold, and no fact is searched for
another instance.

An arrangement is made when many bindings come and go for the first time, and kept with the segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from zodiacedge.engine.embedded.expressions.aggregate import doubles, first_of_ties, integers, medians
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.maintain.delta_query import DeltaQuery, evaluate_delta
from zodiacedge.engine.embedded.maintain.incremental import NodeChange
from zodiacedge.engine.embedded.maintain.rule_profile import bindings_of, with_delta
from zodiacedge.engine.embedded.maintain.windowed_rows import WindowedAtom, windowed_atoms
from zodiacedge.engine.embedded.storage.arrangement import Arrangement, NotArrangedError, Run
from zodiacedge.engine.embedded.storage.database import WINDOWS
from zodiacedge.engine.embedded.storage.exact_sums import ordered_bits, rounded, whole
from zodiacedge.engine.embedded.storage.relation import NO_CLASS, Relation
from zodiacedge.engine.embedded.storage.row_algebra import difference, distinct
from zodiacedge.engine.semantics.aggregates import NUMERIC_FOLDS
from zodiacedge.language.ast import Atom, Binding, Variable, conjuncts
from zodiacedge.language.safety import analyse
from zodiacedge.language.windows import is_window

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.maintain.windowed_rows import WindowedRows
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.embedded.versions.draft import Draft
    from zodiacedge.language.ast import Aggregate, Argument, Conjunct, Fold, Rule

    Words = NDArray[np.int64]

# Groups of more columns do not fit into a word.
_MOST_GROUPS = 2
_BITS = 32
_EXTREMES = frozenset({"MIN", "MAX", "ARGMIN", "ARGMAX"})
_ORDERED = frozenset({"MED", "SUM", "AVG", *_EXTREMES})
_LARGEST = (1 << 63) - 1
# An arrangement is worth making once a change moves so many rows.
_MANY = 256


class Ordered(NamedTuple):
    """The order of an arrangement: the columns of bindings with its terms and their keys, or -1."""

    terms: int = -1
    keys: int = -1
    distinct: bool = False
    """Whether each term of a group counts once, however many bindings have it."""


class WindowedShape(NamedTuple):
    """A rule that reads windows, and whose bindings can be counted by group."""

    key: str
    body: tuple[Conjunct, ...]
    """The body of its aggregate, or its own."""
    atoms: tuple[WindowedAtom, ...]
    columns: tuple[Argument, ...]
    """The columns of bindings, the groups first."""
    groups: int
    """How many columns are groups: of the aggregate, or the variables of the head."""
    orders: tuple[Ordered, ...]
    """The arrangements that the folds need; none if each fact has one binding."""


def windowed_shape(rules: Mapping[str, Rule]) -> WindowedShape | None:
    """Return the shape of a node's rules, None if it is another one; the node is not recursive."""
    ((key, rule),) = rules.items()
    aggregate = rule.aggregate
    if not any(is_window(conjunct) for conjunct in conjuncts(rule.body)):
        return None
    body = aggregate.body if aggregate else rule.body
    atoms = windowed_atoms(body)
    # A term that a body computes may be freed although an arrangement has it.
    if not atoms or any(isinstance(conjunct, Binding) for conjunct in body):
        return None
    if aggregate is None:
        head = tuple(dict.fromkeys(arg for arg in rule.head.args if isinstance(arg, Variable)))
        bound = analyse(body).bound
        if set(head) >= bound:
            return WindowedShape(key, body, atoms, head, len(head), ())
        columns = (*head, *sorted(bound.difference(head), key=lambda v: v.name))
        shape = WindowedShape(key, body, atoms, columns, len(head), (Ordered(),))
    else:
        if any(is_window(conjunct) for conjunct in rule.body) or not all(map(_is_counted, aggregate.folds)):
            return None
        orders = tuple(dict.fromkeys(one for _, order in orders_of(aggregate) for one in _made_of(order)))
        shape = WindowedShape(
            key, body, atoms, bindings_of(aggregate), len(aggregate.groups), orders or (Ordered(),)
        )
    fits = shape.groups <= _MOST_GROUPS and len(shape.columns) <= L.MOST_COLUMNS
    return shape if fits else None


def _is_counted(fold: Fold) -> bool:
    return not fold.registered and fold.op in {"COUNT", *_ORDERED}


def orders_of(aggregate: Aggregate) -> Iterator[tuple[Fold, Ordered]]:
    """Yield the folds that read more of a group than its number of bindings, each with its order."""
    column = len(aggregate.groups)
    for fold in aggregate.folds:
        if fold.op in _ORDERED:
            distinct = fold.distinct and fold.op not in _EXTREMES
            yield fold, Ordered(column, column + (fold.by is not None), distinct)
        elif fold.distinct:
            yield fold, Ordered(column, distinct=True)
        column += len(fold.arguments)


def _made_of(order: Ordered) -> Iterator[Ordered]:
    """Yield the order with which distinct terms are found, and the order itself."""
    yield order._replace(distinct=False)
    yield order


def is_counted(shape: WindowedShape, own: Segment, windowed: WindowedRows, *, small: bool) -> bool:
    """Whether a node is maintained by counting: it was, or many rows move, or few and `small` is set."""
    if own.arrangements or small:
        return True
    moved = 0
    for one in shape.atoms:
        atom = cast("Atom", shape.body[one.atom])
        moved += windowed.count(Relation(atom.relation, len(atom.args)), one.term)
    return moved >= _MANY


def maintain_windowed(
    draft: Draft, node_rules: NodeRules, own: Segment, shape: WindowedShape, windowed: WindowedRows
) -> int | None:
    """Maintain a node by counting; return by how many facts it grows, None if it must be recomputed."""
    try:
        return _WindowedChange(draft, node_rules, own, shape, windowed).process()
    except NotArrangedError:
        node_rules.count_no_windows()
        return None


class _WindowedChange(NodeChange):
    # The change of one node, whose bindings are counted.

    def __init__(
        self,
        draft: Draft,
        node_rules: NodeRules,
        own: Segment,
        shape: WindowedShape,
        windowed: WindowedRows,
    ) -> None:
        super().__init__(draft, node_rules, own)
        self._shape = shape
        self._windowed = windowed

    def _classify(self) -> None:
        # The atoms with windows ask for their rows themselves.
        for relation in self._node_rules.read_of(self._draft.store, self._draft.changed):
            if relation == WINDOWS:
                continue
            deleted, inserted = self._windowed.split(relation)
            for occurrence in self._node_rules.occurrences(self._draft.store, relation):
                if len(deleted):
                    self._deleted.setdefault(occurrence, []).append((deleted, relation.member_of))
                if len(inserted):
                    self._inserted.setdefault(occurrence, []).append((inserted, relation.member_of))

    # Bindings.

    def _bindings(self, *, lost: bool) -> Ids:
        """Return the bindings that were lost on the old version, or gained on the next, each once."""
        shape, aggregate = self._shape, self._node_rules.aggregates.get(self._shape.key)
        paired = {position for one in shape.atoms for position in (one.atom, one.window)}
        pieces: list[Ids] = []
        for occurrence, delta_rows in self._changes(lost=lost, within=shape.key if aggregate else ""):
            if occurrence.position not in paired:
                query = self._query(occurrence.position, None)
                pieces.append(evaluate_delta(self._draft, query, delta_rows, None, old=lost))
        pieces += [self._windowed_bindings(one, lost=lost) for one in shape.atoms]
        pieces = [rows for rows in pieces if len(rows)]
        if not pieces:
            return np.zeros((0, len(shape.columns)), np.int32)
        return pieces[0] if len(pieces) == 1 else distinct(np.concatenate(pieces))

    def _windowed_bindings(self, one: WindowedAtom, *, lost: bool) -> Ids:
        shape, atom = self._shape, cast("Atom", self._shape.body[one.atom])
        relation = Relation(atom.relation, len(atom.args))
        rows = self._windowed.moved(self._node_rules, relation, one.column, one.term)[not lost]
        if not len(rows):
            return rows[:, :0]
        variables = all(isinstance(arg, Variable) for arg in atom.args)
        if len(shape.body) == 2 and variables and len(set(atom.args)) == len(atom.args):
            # The body is the atom and its window: the rows are the bindings.
            columns = tuple(map(atom.args.index, shape.columns))
            if columns == tuple(range(relation.arity)):
                return rows
            return cast("Ids", self._windowed.once(rows, columns, lambda: rows[:, columns]))
        query = self._query(one.atom, one.window)
        return evaluate_delta(self._draft, query, [(rows, NO_CLASS)], None, old=lost)

    def _query(self, position: int, without: int | None) -> DeltaQuery:
        """Return the query for bindings with the delta rows at a position of the body, without a conjunct."""

        def make() -> DeltaQuery:
            body = list(with_delta(self._shape.body, position))
            at = position
            if without is not None:
                del body[without]
                at -= without < position
            return DeltaQuery(self._shape.columns, tuple(body), at)

        return self._node_rules.delta_query(("bindings at", position, without), make)

    def _all_bindings(self) -> Ids:
        """Return the bindings of the old version."""
        shape = self._shape
        query = self._node_rules.delta_query(
            ("all of windows", shape.key), lambda: DeltaQuery(shape.columns, shape.body, None)
        )
        return evaluate_delta(self._draft, query, (), None, old=True)

    # Arrangements.

    def _arranged(self, lost: Ids, gained: Ids) -> tuple[list[Arrangement], list[Arrangement], Words]:
        """Return the arrangements of the old version and of the next, and the groups that a binding moves."""
        olds: list[Arrangement] = []
        news: list[Arrangement] = []
        touched: list[Words] = []
        known, stated = self._own.arrangements, self._draft.arranged(self._own)
        everything: Ids | None = None
        for order in self._shape.orders:
            counted = order._replace(distinct=False)
            old = known.get(order)
            if old is None:
                everything = self._all_bindings() if everything is None else everything
                run, kind = self._run(everything, counted, 1)
                once = run.with_weights(np.ones(len(run.sums), np.int32)) if order.distinct else run
                old = self._with(Arrangement(), (once, kind))
            new = old
            moved = self._run(lost, counted, -1), self._run(gained, counted, 1)
            if order.distinct:
                # The order that it is found with comes before it.
                at = self._shape.orders.index(counted)
                new = self._with(new, (_first_and_last(olds[at], *(run for run, _ in moved)), news[at].kind))
            else:
                for one in moved:
                    new = self._with(new, one)
                    touched.append(one[0].distinct_groups)
            olds.append(old)
            news.append(new)
            stated[order] = new
        return olds, news, np.unique(np.concatenate(touched))

    @staticmethod
    def _with(arrangement: Arrangement, run: tuple[Run, int]) -> Arrangement:
        """Return an arrangement with the entries of a run, whose keys are of a kind."""
        entries, kind = run
        if not len(entries.groups):
            return arrangement
        if arrangement.runs and kind != arrangement.kind:
            raise NotArrangedError
        return Arrangement(arrangement.runs, kind).changed(entries)

    def _run(self, rows: Ids, order: Ordered, weight: int) -> tuple[Run, int]:
        """Return bindings that come, or that go, as a run, with the kind of their keys."""
        name = ("run", order, self._shape.groups, weight)
        run = self._windowed.once(rows, name, lambda: self._sorted(rows, order, weight))
        return cast("tuple[Run, int]", run)

    def _sorted(self, rows: Ids, order: Ordered, weight: int) -> tuple[Run, int]:
        dictionary = self._draft.store.dictionary
        groups = _packed(rows, self._shape.groups)
        weights = np.full(len(rows), weight, np.int32)
        kind, keys, ids = 0, np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int32)
        if order.keys >= 0 and len(rows):
            kind, keys = _keys(dictionary, rows[:, order.keys])
        if order.terms >= 0:
            ids = np.ascontiguousarray(rows[:, order.terms])
        return Run.of(groups, keys, ids, weights), kind

    def _fold_again(self, key: str, aggregate: Aggregate) -> None:
        lost, gained = self._bindings(lost=True), self._bindings(lost=False)
        if not len(lost) and not len(gained) and self._own.arrangements:
            self._draft.arranged(self._own).update(self._own.arrangements)
            return
        _, arrangements, touched = self._arranged(lost, gained)
        width = self._shape.groups
        sizes = arrangements[0].weights(touched)
        groups, sizes = touched[sizes > 0], sizes[sizes > 0]
        by_order = dict(zip(self._shape.orders, arrangements, strict=True))
        columns = list(_unpacked(groups, width).T)
        orders = dict(orders_of(aggregate))
        for fold in aggregate.folds:
            order = orders.get(fold)
            arrangement = arrangements[0] if order is None else by_order[order]
            counts = arrangement.weights(groups) if order is not None and order.distinct else sizes
            columns.append(_folded(self._draft.store.dictionary, fold, arrangement, groups, counts))
        after = np.array(columns, np.int32).T if len(groups) else np.zeros((0, len(columns)), np.int32)
        delta_rows = [(_unpacked(touched, width), NO_CLASS)]
        before = evaluate_delta(
            self._draft, self._node_rules.rows_of_groups(key), delta_rows, self._own, old=True
        )
        overlay = self._draft.aggregate_overlay(self._own, key)
        overlay.remove(difference(before, after))
        overlay.add(difference(after, before))

    # Heads, without an aggregate.

    def _delete(self) -> None:
        if self._node_rules.aggregates:
            super()._delete()
            return
        lost, gained = self._bindings(lost=True), self._bindings(lost=False)
        if not self._shape.orders:
            self._move(lost, gained)
            return
        if not len(lost) and not len(gained) and self._own.arrangements:
            self._draft.arranged(self._own).update(self._own.arrangements)
            return
        (old,), (new,), touched = self._arranged(lost, gained)
        width = self._shape.groups
        before, after = old.weights(touched) > 0, new.weights(touched) > 0
        self._move(_unpacked(touched[before & ~after], width), _unpacked(touched[after & ~before], width))

    def _insert(self) -> None:
        if self._node_rules.aggregates:
            super()._insert()

    def _move(self, lost: Ids, gained: Ids) -> None:
        """Delete and insert facts, by the values of the head's variables."""
        self._facts.delete(self._facts.heads(self._shape.key, self._heads(lost)))
        self._draft.derivations += len(gained)
        self._facts.insert(self._facts.heads(self._shape.key, self._heads(gained)))
        self._draft.count(1, len(self._own) + self._draft.grown(self._own))

    def _heads(self, rows: Ids) -> Ids:
        head = self._node_rules.rules[self._shape.key].head.args
        columns = self._shape.columns
        constant = self._draft.store.terms.constant
        heads = np.empty((len(rows), len(head)), np.int32)
        for n, arg in enumerate(head):
            heads[:, n] = rows[:, columns.index(arg)] if isinstance(arg, Variable) else constant(arg)
        return heads


def _packed(rows: Ids, width: int) -> Words:
    """Return the first columns of rows as a word each."""
    if not width:
        return np.zeros(len(rows), np.int64)
    words = rows[:, 0].astype(np.int64)
    return words if width == 1 else (words << _BITS) | rows[:, 1]


def _unpacked(words: Words, width: int) -> Ids:
    if width < _MOST_GROUPS:
        return words.astype(np.int32).reshape(-1, 1)[:, :width]
    return np.stack((words >> _BITS, words & ((1 << _BITS) - 1)), axis=1).astype(np.int32)


def _keys(dictionary: Dictionary, ids: Ids) -> tuple[int, Words]:
    """Return the kind of some numbers or moments, all of one kind, and words in their order."""
    kinds, payloads = dictionary.kinds[ids], dictionary.payloads[ids]
    kind = int(kinds[0])
    if kind not in {L.K_INTEGER, L.K_DOUBLE, L.K_MOMENT} or not (kinds == kind).all():
        raise NotArrangedError
    if kind != L.K_DOUBLE:
        return kind, payloads
    if np.isnan(payloads.view(np.float64)).any():
        raise NotArrangedError
    return kind, ordered_bits(payloads)


def _first_and_last(before: Arrangement, lost: Run, gained: Run) -> Run:
    """Return the entries that come where none was, with the weight 1, and the last ones that go, with -1."""
    run = lost.merged(gained)
    was = before.weights_of(run)
    there = was + run.weights
    return run.with_weights((there > 0).astype(np.int32) - (was > 0).astype(np.int32))


def _folded(
    dictionary: Dictionary, fold: Fold, arrangement: Arrangement, groups: Words, counts: Words
) -> Ids:
    """Return the result of a fold for each group, which has so many entries."""
    if fold.op == "COUNT":
        return integers(dictionary, counts)
    if fold.op in NUMERIC_FOLDS and arrangement.kind == L.K_MOMENT:
        raise NotArrangedError
    if fold.op in {"SUM", "AVG"}:
        return _added_up(dictionary, fold, arrangement, groups, counts)
    return _selected(dictionary, fold, arrangement, groups, counts)


def _added_up(
    dictionary: Dictionary, fold: Fold, arrangement: Arrangement, groups: Words, counts: Words
) -> Ids:
    sums, power = whole(arrangement.totals(groups), len(groups))
    if fold.op == "SUM" and arrangement.kind == L.K_INTEGER:
        if any(abs(total) > _LARGEST for total in sums):
            raise NotArrangedError
        return integers(dictionary, np.array(sums, np.int64))
    try:
        totals = rounded(sums, power)
    except OverflowError:
        # The definition drops the group.
        raise NotArrangedError from None
    return doubles(dictionary, totals if fold.op == "SUM" else totals / counts)


def _selected(
    dictionary: Dictionary, fold: Fold, arrangement: Arrangement, groups: Words, sizes: Words
) -> Ids:
    """Return the term that a fold selects in each group, or the mean of two."""
    if fold.op == "MED":
        _, upper, _ = arrangement.select(groups, sizes // 2 + 1)
        even = np.flatnonzero(sizes % 2 == 0)
        _, lower, _ = arrangement.select(groups[even], sizes[even] // 2)
        return medians(dictionary, upper, even, lower)
    ranks = np.ones_like(sizes) if fold.op in {"MIN", "ARGMIN"} else sizes
    keys, ids, tied = arrangement.select(groups, ranks)
    for n in np.flatnonzero(tied).tolist():
        ids[n] = first_of_ties(dictionary, fold, arrangement.ids_at(int(groups[n]), int(keys[n])))
    return ids
