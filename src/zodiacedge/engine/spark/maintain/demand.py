"""Demand analysis (as of magic sets): the rows that maintaining a small change of large relations may read.

From the inserted and deleted rows, rules lead forward to the facts that may be inserted and deleted, and from
the latter backward to all that may support them; a changed group demands all its bindings, a negated atom all
its witnesses. The analysis over-approximates: comparisons hold, computed values are unknown, and a row with
unknown terms stands for all that have its known ones. So every rule instance that the embedded engine looks
at, before or after the change, consists of demanded rows, and DRed is exact on them alone; Backward/Forward
would look at more.

Rows that are not looked up yet become demands, and the analysis goes no further there: the caller looks them
up and starts again.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from zodiacedge.engine.spark.lookup.by_key import TooManyError
from zodiacedge.engine.spark.storage.files import Relation
from zodiacedge.language.ast import Aggregate, Atom, Negation, Variable, variables
from zodiacedge.language.safety import analyse
from zodiacedge.language.windows import is_window
from zodiacedge.plan.order import expected
from zodiacedge.plan.variants import readings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.spark.lookup.by_key import Row, Source
    from zodiacedge.engine.spark.lookup.matching import Wants
    from zodiacedge.language.ast import Argument, Conjunct, Rule
    from zodiacedge.terms import Term

# More bindings than this at once are no small change.
_MOST_BINDINGS = 200_000
# More rows than this are not followed before they are looked up.
_MOST_GUESSES = 5_000
# The support of so many facts is joined together.
_TOGETHER = 256

Rows = dict[Relation, set["Row"]]


class Known(Protocol):
    """The rows looked up so far."""

    def covers(self, source: Source, columns: tuple[int, ...], values: tuple[int, ...]) -> bool:
        """Whether all rows with these values were looked up."""

    def fetch(self, source: Source, wants: Wants) -> Collection[Row] | None:
        """Look up rows at once, if the driver can; return those that any owner has before or after."""

    @property
    def is_patient(self) -> bool:
        """Whether the search has not taken too long."""

    def present(self, source: Source) -> Collection[Row]:
        """Return the rows of a source that any owner has, before the change or after it."""

    def before(self, relation: Relation) -> Collection[Row]:
        """Return the rows of a relation that any owner had before the change."""

    def own(self, keys: frozenset[str], relation: Relation) -> Collection[Row]:
        """Return the rows of a relation that a node had before the change."""

    def size(self, atom: Atom) -> int:
        """Estimate how many rows an atom reads."""


class _TooManyBindingsError(Exception):
    """The change leads to more rows than can be looked up."""


Demand = dict["Source", "Wants"]
"""The rows to look up."""


class _Table:
    """Rows indexed by columns; a partial row, with unknown terms, matches any values in their columns."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = set(rows)
        self._partial: set[Row] = set()
        self._indexes: dict[tuple[int, ...], dict[tuple[int | None, ...], list[Row]]] = {}

    def add(self, row: Row) -> None:
        if None in row:
            self._partial.add(row)
        elif row not in self._rows:
            self._rows.add(row)
            for columns, index in self._indexes.items():
                index.setdefault(tuple(row[n] for n in columns), []).append(row)

    def matching(self, columns: tuple[int, ...], values: tuple[int, ...]) -> Iterator[Row]:
        index = self._indexes.get(columns)
        if index is None:
            index = self._indexes[columns] = {}
            for row in self._rows:
                index.setdefault(tuple(row[n] for n in columns), []).append(row)
        yield from list(index.get(values, ()))
        for row in list(self._partial):
            if all(row[n] in {None, value} for n, value in zip(columns, values, strict=True)):
                yield row


class _Occurrence(NamedTuple):
    """An atom in the body of a rule, or in that of its aggregate (`inner`)."""

    key: str
    body: tuple[Conjunct, ...]
    position: int
    atom: Atom
    negated: bool
    inner: bool


# Columns of a source and values of them.
_Values = tuple[tuple[int, ...], tuple[int, ...]]
# A term for each variable of a body, in the order of its slots, or None if unknown.
_Binding = tuple["int | None", ...]
_Slots = dict[Variable, int]
# A relation, a row of it that may be inserted or deleted, and whether it may be deleted.
_Change = tuple[Relation, "Row", bool]


def demands_of(
    nodes: Sequence[Mapping[str, Rule]],
    keys: Mapping[Term, int],
    known: Known,
    changes: tuple[Rows, Rows],
    steps: int = 1,
) -> list[Demand]:
    """Propagate inserted and deleted rows through nodes in topological order.

    Returns the demand for the rows themselves, and that of each node up to the first with too many bindings.
    Rows that are not looked up yet are assumed to change, and followed for so many steps.
    """
    inserted, deleted = changes
    analysis = _Analysis(keys, known, _copied(inserted), _copied(deleted))
    for relation in {**inserted, **deleted}:
        rows = (*inserted.get(relation, ()), *deleted.get(relation, ()))
        with suppress(_TooManyBindingsError):
            analysis.fetch(relation, map(_known_terms, rows))
        for row in rows:
            # A row that another owner has too is no visible change.
            analysis.want_row(relation, row)
    demands = [analysis.demand]
    for rules in nodes:
        analysis.demand = {}
        try:
            _Node(analysis, rules).propagate(steps)
        except _TooManyBindingsError:
            break
        demands.append(analysis.demand)
    return demands


def _copied(rows: Rows) -> defaultdict[Relation, set[Row]]:
    return defaultdict(set, {relation: set(row_set) for relation, row_set in rows.items()})


class _Analysis:
    """The rows that all nodes share: known ones, and those that may be inserted and deleted."""

    def __init__(
        self,
        keys: Mapping[Term, int],
        known: Known,
        inserted: defaultdict[Relation, set[Row]],
        deleted: defaultdict[Relation, set[Row]],
    ) -> None:
        self.keys = keys
        self.known = known
        self.inserted = inserted
        self.deleted = deleted
        self.demand: Demand = {}
        self._tables: dict[Source, _Table] = {}

    def table(self, source: Source) -> _Table:
        if source not in self._tables:
            self._tables[source] = _Table(self.known.present(source))
        return self._tables[source]

    def fetch(self, source: Source, wanted: Iterable[_Values]) -> None:
        """Look up rows that will be demanded at once, if the driver can."""
        missing: Wants = {}
        for columns, values in wanted:
            if values not in missing.get(columns, ()) and not self.known.covers(source, columns, values):
                missing.setdefault(columns, set()).add(values)
        if not self.known.is_patient:
            raise _TooManyBindingsError
        if missing:
            try:
                rows = self.known.fetch(source, missing)
            except TooManyError:
                raise _TooManyBindingsError from None
            if rows is not None and source in self._tables:
                for row in rows:
                    self._tables[source].add(row)

    def want_row(self, source: Source, row: Row) -> bool:
        """Demand the rows that have the known terms of a row; tell whether they were looked up."""
        return self.want(source, *_known_terms(row))

    def want(self, source: Source, columns: tuple[int, ...], values: tuple[int, ...]) -> bool:
        """Demand rows by the values of columns; tell whether they were looked up."""
        if self.known.covers(source, columns, values):
            return True
        self.demand.setdefault(source, {}).setdefault(columns, set()).add(values)
        return False


class _Node:
    """Propagates rows that may be inserted and deleted through the rules of one node."""

    def __init__(self, analysis: _Analysis, rules: Mapping[str, Rule]) -> None:
        self._analysis = analysis
        self._rules = rules
        self._keys = frozenset(rules)
        self._heads = {Relation.of(rule.head) for rule in rules.values()}
        self._occurrences = [
            _Occurrence(key, *read) for key, rule in rules.items() for read in readings(rule)
        ]
        self._slots_of: dict[int, _Slots] = {}
        self._groups: set[tuple[str, Row]] = set()
        self._deleted: set[tuple[Relation, Row]] = set()
        # Facts that may be deleted, by relation and known columns, whose support is not demanded yet.
        self._unsupported: defaultdict[tuple[Relation, tuple[int, ...]], list[Row]] = defaultdict(list)

    def propagate(self, steps: int) -> None:
        """Propagate changes of the relations that the node reads to those that it derives."""
        analysis = self._analysis
        reads = {Relation.of(occurrence.atom) for occurrence in self._occurrences}
        waiting = [
            (relation, row, lost)
            for relation in reads
            for lost, side in ((False, analysis.inserted), (True, analysis.deleted))
            for row in side.get(relation, ())
        ]
        # An aggregate reads nothing that its own node derives: its groups come first.
        for lost in (False, True):
            for occurrence in self._occurrences:
                if occurrence.inner:
                    read = (Relation.of(occurrence.atom), lost)
                    rows = [row for relation, row, is_lost in waiting if (relation, is_lost) == read]
                    self._change_groups(occurrence, rows)
        heads = self._heads_of_groups()
        done: set[_Change] = set()
        while waiting or heads:
            fresh = [change for change in dict.fromkeys(waiting) if change not in done]
            done.update(fresh)
            waiting = []
            # A fact that another owner lost may be supported by nothing but itself.
            heads += [change for change in fresh if change[2] and change[0] in self._heads]
            heads += self._affected_heads(fresh)
            guesses: list[_Change] = []
            self._fetch_rows((relation, row) for relation, row, _ in heads)
            for head in dict.fromkeys(heads):
                waiting += [change for change in self._changes_by(head, guesses) if change[0] in reads]
            self._want_support()
            # Too many bindings of rows that may not change after all do not count.
            with suppress(_TooManyBindingsError):
                self._follow([guess for guess in guesses if guess not in done], reads, steps)
            heads = []

    def _fetch_rows(self, rows: Iterable[tuple[Relation, Row]]) -> None:
        by_relation: dict[Relation, list[_Values]] = {}
        for relation, row in rows:
            by_relation.setdefault(relation, []).append(_known_terms(row))
        for relation, wanted in by_relation.items():
            self._analysis.fetch(relation, wanted)

    def _follow(self, guesses: list[_Change], reads: Collection[Relation], steps: int) -> None:
        """Demand the joins of heads that are not looked up yet: very likely they change."""
        seen = set(guesses)
        for step in range(steps):
            heads = self._affected_heads([guess for guess in guesses if guess[0] in reads])
            if step + 1 == steps or len(seen) > _MOST_GUESSES:
                return
            guesses = []
            for head in dict.fromkeys(heads):
                if head not in seen:
                    seen.add(head)
                    self._changes_by(head, guesses)
            self._want_support()

    def _affected_heads(self, changes: Sequence[_Change]) -> list[_Change]:
        """Return the heads of rule instances that have changed rows at any position."""
        heads: list[_Change] = []
        by_kind: dict[tuple[Relation, bool], list[Row]] = {}
        for relation, row, lost in changes:
            by_kind.setdefault((relation, lost), []).append(row)
        for (relation, lost), rows in by_kind.items():
            for occurrence in self._occurrences:
                if not occurrence.inner and Relation.of(occurrence.atom) == relation:
                    bindings = self._bindings_at(occurrence, rows)
                    # Under a negation an insertion deletes instances, and a deletion inserts some.
                    rule = self._rules[occurrence.key]
                    heads += self._heads_from(rule, bindings, lost=lost != occurrence.negated)
        return heads

    def _changes_by(self, head: _Change, guesses: list[_Change]) -> list[_Change]:
        """Return the facts that may be inserted or deleted for a head; a head not looked up is a guess."""
        analysis = self._analysis
        relation, row, lost = head
        partial = None in row
        if not analysis.want_row(relation, row):
            if not partial or not lost:
                guesses.append(head)
            if not partial and lost:
                self._unsupported[relation, _known_terms(row)[0]].append(row)
            return []
        if lost:
            own = analysis.known.own(self._keys, relation)
            facts = [fact for fact in own if _matches(fact, row)] if partial else [row] if row in own else []
            fresh = [fact for fact in facts if (relation, fact) not in self._deleted]
            self._deleted.update((relation, fact) for fact in fresh)
            analysis.deleted[relation].update(fresh)
            for fact in fresh:
                self._unsupported[relation, _known_terms(fact)[0]].append(fact)
            return [(relation, fact, True) for fact in fresh]
        if row in analysis.inserted[relation]:
            return [head]
        if not partial and row in analysis.known.before(relation) and row not in analysis.deleted[relation]:
            return []
        analysis.inserted[relation].add(row)
        analysis.table(relation).add(row)
        return [head]

    def _want_support(self) -> None:
        """Demand all rows of rule instances that may still support facts."""
        waiting, self._unsupported = self._unsupported, defaultdict(list)
        for (relation, _), rows in waiting.items():
            for rule in self._rules.values():
                if Relation.of(rule.head) == relation:
                    slots = self._slots(rule.body, rule.head)
                    for first in range(0, len(rows), _TOGETHER):
                        starts = self._bindings_of(rule.head.args, rows[first : first + _TOGETHER], slots)
                        self._extend(rule, rule.body, None, starts, slots)

    # Groups.

    def _change_groups(self, occurrence: _Occurrence, rows: Sequence[Row]) -> None:
        """Demand the rows and bindings of the groups that changed rows belong to."""
        key, body = occurrence.key, occurrence.body
        aggregate = self._aggregate(key)
        slots = self._slots(body)
        for binding in self._bindings_at(occurrence, rows):
            group = tuple(binding[slots[v]] for v in aggregate.groups)
            if (key, group) in self._groups:
                continue
            self._groups.add((key, group))
            self._analysis.want_row(key, group)
            # All bindings of the group are folded again; the new values are unknown.
            starts = self._bindings_of(aggregate.groups, [group], slots)
            self._extend(self._rules[key], body, None, starts, slots)
            self._analysis.table(key).add((*group, *(None for _ in aggregate.folds)))

    def _heads_of_groups(self) -> list[_Change]:
        """Return the heads that old and new rows of changed groups may delete and insert."""
        heads: list[_Change] = []
        for key, group in self._groups:
            rule, aggregate = self._rules[key], self._aggregate(key)
            slots = self._slots(rule.body, rule.head)
            args = (*aggregate.groups, *(fold.target for fold in aggregate.folds))
            position = rule.body.index(aggregate)
            for row in list(self._analysis.table(key).matching(*_known_terms(group))):
                starts = self._bindings_of(args, [row], slots)
                bindings = self._extend(rule, rule.body, position, starts, slots)
                heads += self._heads_from(rule, bindings, lost=None not in row)
        return heads

    def _aggregate(self, key: str) -> Aggregate:
        aggregate = self._rules[key].aggregate
        if aggregate is None:
            raise AssertionError(key)
        return aggregate

    # Instances.

    def _bindings_at(self, occurrence: _Occurrence, rows: Sequence[Row]) -> list[_Binding]:
        """Return the bindings of a body that match rows at a position."""
        rule, atom = self._rules[occurrence.key], occurrence.atom
        slots = self._slots(occurrence.body, None if occurrence.inner else rule.head)
        starts = self._bindings_of(atom.args, rows, slots)
        if occurrence.negated:
            bound = analyse(occurrence.body).bound
            inside = {slots[v] for v in variables(atom) if v not in bound}
            outside = (tuple(None if n in inside else v for n, v in enumerate(start)) for start in starts)
            starts = list(dict.fromkeys(outside))
            for start in starts:
                self._want_witnesses(atom, start, slots)
        return self._extend(rule, occurrence.body, occurrence.position, starts, slots)

    def _extend(
        self,
        rule: Rule,
        body: tuple[Conjunct, ...],
        skip: int | None,
        starts: Sequence[_Binding],
        slots: _Slots,
    ) -> list[_Binding]:
        """Join bindings with the rest of a body; a binding whose rows are not looked up yet is dropped."""
        left = [c for n, c in enumerate(body) if n != skip and isinstance(c, Atom | Aggregate)]
        bindings = list(starts)
        while left and bindings:
            cheapest = min(left, key=lambda c: self._expected(c, bindings[0], slots))
            left.remove(cheapest)
            bindings = self._join(rule, cheapest, bindings, slots)
            if len(bindings) > _MOST_BINDINGS:
                raise _TooManyBindingsError
        for position, conjunct in enumerate(body):
            if isinstance(conjunct, Negation) and position != skip:
                atom = conjunct.atom
                wanted = (self._bound_columns(atom.args, binding, slots) for binding in bindings)
                self._analysis.fetch(Relation.of(atom), wanted)
                for binding in bindings:
                    self._want_witnesses(conjunct.atom, binding, slots)
        return bindings

    def _join(
        self, rule: Rule, conjunct: Atom | Aggregate, bindings: Sequence[_Binding], slots: _Slots
    ) -> list[_Binding]:
        source: Source
        if isinstance(conjunct, Atom):
            source, args = Relation.of(conjunct), conjunct.args
        else:
            source = next(key for key, other in self._rules.items() if other is rule)
            args = (*conjunct.groups, *(fold.target for fold in conjunct.folds))
        wanted = [self._bound_columns(args, binding, slots) for binding in bindings]
        self._analysis.fetch(source, wanted)
        table = self._analysis.table(source)
        joined: dict[_Binding, None] = {}
        for binding, (columns, values) in zip(bindings, wanted, strict=True):
            if self._analysis.want(source, columns, values):
                for row in table.matching(columns, values):
                    extended = self._unified(binding, args, row, slots)
                    if extended is not None:
                        joined[extended] = None
        return list(joined)

    def _expected(self, conjunct: Atom | Aggregate, binding: _Binding, slots: _Slots) -> float:
        if isinstance(conjunct, Aggregate):
            known = sum(binding[slots[v]] is not None for v in conjunct.groups)
            return 1.0 if known == len(conjunct.groups) else float("inf")
        columns, _ = self._bound_columns(conjunct.args, binding, slots)
        if is_window(conjunct) and 0 not in columns:
            # What is in a window is looked up by moment.
            return float("inf")
        return expected(self._analysis.known.size(conjunct), conjunct, columns)

    def _want_witnesses(self, atom: Atom, binding: _Binding, slots: _Slots) -> None:
        self._analysis.want(Relation.of(atom), *self._bound_columns(atom.args, binding, slots))

    def _bound_columns(
        self, args: Sequence[Argument], binding: _Binding, slots: _Slots
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        columns: list[int] = []
        values: list[int] = []
        for position, arg in enumerate(args):
            value = binding[slots[arg]] if isinstance(arg, Variable) else self._analysis.keys[arg]
            if value is not None:
                columns.append(position)
                values.append(value)
        return tuple(columns), tuple(values)

    def _bindings_of(self, args: Sequence[Argument], rows: Iterable[Row], slots: _Slots) -> list[_Binding]:
        """Return the bindings of arguments that unify with rows."""
        empty: _Binding = (None,) * len(slots)
        bindings = (self._unified(empty, args, row, slots) for row in rows)
        return list(dict.fromkeys(binding for binding in bindings if binding is not None))

    def _unified(
        self, binding: _Binding, args: Sequence[Argument], row: Row, slots: _Slots
    ) -> _Binding | None:
        """Return a binding extended by the terms of a row; None if they do not unify."""
        extended = list(binding)
        for arg, value in zip(args, row, strict=True):
            if value is None:
                continue
            if not isinstance(arg, Variable):
                if self._analysis.keys[arg] != value:
                    return None
                continue
            bound = extended[slots[arg]]
            if bound is not None and bound != value:
                return None
            extended[slots[arg]] = value
        return tuple(extended)

    def _heads_from(self, rule: Rule, bindings: Iterable[_Binding], *, lost: bool) -> list[_Change]:
        slots = self._slots(rule.body, rule.head)
        relation, keys = Relation.of(rule.head), self._analysis.keys
        heads = (
            tuple(b[slots[arg]] if isinstance(arg, Variable) else keys[arg] for arg in rule.head.args)
            for b in bindings
        )
        return [(relation, row, lost) for row in dict.fromkeys(heads)]

    def _slots(self, body: tuple[Conjunct, ...], head: Atom | None = None) -> _Slots:
        """Return the position of each variable of a body in its bindings."""
        slots = self._slots_of.get(id(body))
        if slots is None:
            seen = [v for c in body for v in variables(c)]
            if head is not None:
                seen += variables(head)
            slots = self._slots_of[id(body)] = {v: n for n, v in enumerate(dict.fromkeys(seen))}
        return slots


def _known_terms(row: Row) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the columns of the known terms of a row, and the terms."""
    columns = tuple(n for n, value in enumerate(row) if value is not None)
    return columns, tuple(value for value in row if value is not None)


def _matches(row: Row, partial: Row) -> bool:
    return all(known in {None, value} for value, known in zip(row, partial, strict=True))
