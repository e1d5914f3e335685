"""Which rows a small change of large relations may concern: all that its maintenance can ever look at.

From the rows that came and went, the rules are followed forward to the facts that may come and may go, and
from the latter backward to whatever may still support them; groups are followed to all their bindings, what
is negated to all its witnesses. Nothing is judged: comparisons are taken to hold, computed values are
unknown, and a fact with an unknown term stands for all that have its known ones. So every instance that the
maintenance of the embedded engine asks for, in the old version or in the next, consists of rows that are
followed here. It is exact on them alone, provided that it deletes and derives again: proving facts backward
would look at more.

What is not looked up yet is noted, and the way ends there; whoever looks it up starts again.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, Protocol

from zodiacedge.engine.spark.storage.files import Relation
from zodiacedge.language.ast import Aggregate, Atom, Negation, Variable, variables
from zodiacedge.language.safety import analyse
from zodiacedge.plan.order import expected
from zodiacedge.plan.variants import readings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.spark.lookup.by_key import Row, Source, Wants
    from zodiacedge.language.ast import Argument, Conjunct, Rule
    from zodiacedge.terms import Term

# More bindings than this at once are no small change.
_MOST_BINDINGS = 200_000

Rows = dict[Relation, set["Row"]]


class Known(Protocol):
    """What was looked up so far."""

    def covers(self, source: Source, columns: tuple[int, ...], values: tuple[int, ...]) -> bool:
        """Whether all rows that have some values were looked up."""

    def present(self, source: Source) -> Collection[Row]:
        """Return the rows of a source that some owner has, before the change or after it."""

    def before(self, relation: Relation) -> Collection[Row]:
        """Return the rows of a relation that some owner had before the change."""

    def own(self, keys: frozenset[str], relation: Relation) -> Collection[Row]:
        """Return the rows of a relation that a node had before the change."""

    def size(self, atom: Atom) -> int:
        """Return how many rows an atom reads, about."""


class TooFarError(Exception):
    """The change leads to more than can be looked up."""


Demand = dict["Source", "Wants"]
"""What there is to look up."""


class _Table:
    """Rows by the values of some columns; rows with unknown terms are found by all that may be theirs."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = set(rows)
        self._vague: set[Row] = set()
        self._indexes: dict[tuple[int, ...], dict[tuple[int | None, ...], list[Row]]] = {}

    def add(self, row: Row) -> None:
        if None in row:
            self._vague.add(row)
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
        for row in list(self._vague):
            if all(row[n] in {None, value} for n, value in zip(columns, values, strict=True)):
                yield row


class _Spot(NamedTuple):
    """A position of a body that reads facts."""

    key: str
    body: tuple[Conjunct, ...]
    workspace: int
    atom: Atom
    negated: bool
    inner: bool


# A term for each variable of a body, in its order, as far as it is known.
_Binding = tuple["int | None", ...]
_Item = tuple[Relation, "Row", bool]


def demands_of(
    nodes: Sequence[Mapping[str, Rule]],
    keys: Mapping[Term, int],
    known: Known,
    came: Rows,
    went: Rows,
) -> list[Demand]:
    """Follow rows that came and went through nodes in topological order.

    Returns what there is to look up: for the rows themselves, and for each node as far as it can be followed.
    """
    walk = _Walk(keys, known, _copied(came), _copied(went))
    for relation in {**came, **went}:
        for row in (*came.get(relation, ()), *went.get(relation, ())):
            # Who else has it decides whether somebody notices.
            walk.want_row(relation, row)
    found = [walk.demand]
    for rules in nodes:
        walk.demand = {}
        try:
            _Node(walk, rules).follow()
        except TooFarError:
            break
        found.append(walk.demand)
    return found


def _copied(rows: Rows) -> defaultdict[Relation, set[Row]]:
    return defaultdict(set, {relation: set(some) for relation, some in rows.items()})


class _Walk:
    """What all nodes share: what may come and go, and what is there."""

    def __init__(
        self,
        keys: Mapping[Term, int],
        known: Known,
        come: defaultdict[Relation, set[Row]],
        go: defaultdict[Relation, set[Row]],
    ) -> None:
        self.keys = keys
        self.known = known
        self.come = come
        self.go = go
        self.demand: Demand = {}
        self._tables: dict[Source, _Table] = {}

    def table(self, source: Source) -> _Table:
        found = self._tables.get(source)
        if found is None:
            found = self._tables[source] = _Table(self.known.present(source))
        return found

    def want_row(self, relation: Relation, row: Row) -> bool:
        """Want a row, whoever has it; tell whether it was looked up."""
        columns = tuple(n for n, value in enumerate(row) if value is not None)
        return self.want(relation, columns, tuple(value for value in row if value is not None))

    def want(self, source: Source, columns: tuple[int, ...], values: tuple[int, ...]) -> bool:
        """Want rows by the values of some columns; tell whether they were looked up."""
        if self.known.covers(source, columns, values):
            return True
        self.demand.setdefault(source, {}).setdefault(columns, set()).add(values)
        return False


class _Node:
    """One node: from what may come and go of what it reads to what may come and go of what it derives."""

    def __init__(self, walk: _Walk, rules: Mapping[str, Rule]) -> None:
        self._walk = walk
        self._rules = rules
        self._keys = frozenset(rules)
        self._heads = {Relation.of(rule.head) for rule in rules.values()}
        self._spots = [_Spot(key, *one) for key, rule in rules.items() for one in readings(rule)]
        self._orders: dict[int, dict[Variable, int]] = {}
        self._groups: set[tuple[str, Row]] = set()
        self._gone: set[tuple[Relation, Row]] = set()

    def follow(self) -> None:
        """Follow what may come and go through the node's rules."""
        walk = self._walk
        reads = {Relation.of(spot.atom) for spot in self._spots}
        waiting = [
            (relation, row, lost)
            for relation in reads
            for lost, side in ((False, walk.come), (True, walk.go))
            for row in side.get(relation, ())
        ]
        # An aggregate reads nothing that its own node derives: its groups come first.
        for lost in (False, True):
            for spot in self._spots:
                if spot.inner:
                    rows = [row for one, row, how in waiting if one == Relation.of(spot.atom) and how is lost]
                    self._touch_groups(spot, rows)
        found = self._heads_of_groups()
        done: set[_Item] = set()
        while waiting or found:
            fresh = [item for item in dict.fromkeys(waiting) if item not in done]
            done.update(fresh)
            waiting = []
            # What lost support outside may stand only by itself now.
            found += [item for item in fresh if item[2] and item[0] in self._heads]
            found += self._followed(fresh)
            guesses: list[_Item] = []
            for item in dict.fromkeys(found):
                waiting += [one for one in self._judged(item, guesses) if one[0] in reads]
            # What is not known to come or go yet very likely does: asking now saves a round.
            self._followed([one for one in guesses if one[0] in reads and one not in done])
            found = []

    def _followed(self, items: Sequence[_Item]) -> list[_Item]:
        """Return the heads of instances that have given rows at some position."""
        found: list[_Item] = []
        by_kind: dict[tuple[Relation, bool], list[Row]] = {}
        for relation, row, lost in items:
            by_kind.setdefault((relation, lost), []).append(row)
        for (relation, lost), rows in by_kind.items():
            for spot in self._spots:
                if not spot.inner and Relation.of(spot.atom) == relation:
                    rule = self._rules[spot.key]
                    bindings = self._at(spot, rows)
                    # What comes under a negation takes away, what goes gives.
                    found += self._heads_from(rule, bindings, lost=lost != spot.negated)
        return found

    def _judged(self, item: _Item, guesses: list[_Item]) -> list[_Item]:
        """Return the facts that a head may make come or go, as far as that is known."""
        walk = self._walk
        relation, row, lost = item
        vague = None in row
        if not walk.want_row(relation, row):
            if not vague or not lost:
                guesses.append(item)
            if not vague and lost:
                self._support(relation, [row])
            return []
        own = walk.known.own(self._keys, relation)
        if lost:
            mine = [one for one in own if _fits(one, row)] if vague else [row] if row in own else []
            fresh = [one for one in mine if (relation, one) not in self._gone]
            self._gone.update((relation, one) for one in fresh)
            walk.go[relation].update(fresh)
            self._support(relation, fresh)
            return [(relation, one, True) for one in fresh]
        if row in walk.come[relation]:
            return [item]
        if not vague and row in walk.known.before(relation) and row not in walk.go[relation]:
            return []
        walk.come[relation].add(row)
        walk.table(relation).add(row)
        return [item]

    def _support(self, relation: Relation, rows: Sequence[Row]) -> None:
        """Follow facts that may go back to all that may support them."""
        for rule in self._rules.values():
            if Relation.of(rule.head) == relation:
                names = self._names(rule.body, rule.head)
                starts = self._matched(rule.head.args, rows, names)
                self._expanded(rule, rule.body, None, starts, names)

    # Groups.

    def _touch_groups(self, spot: _Spot, rows: Sequence[Row]) -> None:
        aggregate = self._aggregate(spot.key)
        names = self._names(spot.body)
        for binding in self._at(spot, rows):
            group = tuple(binding[names[v]] for v in aggregate.groups)
            if (spot.key, group) in self._groups:
                continue
            self._groups.add((spot.key, group))
            columns = tuple(n for n, value in enumerate(group) if value is not None)
            self._walk.want(spot.key, columns, tuple(value for value in group if value is not None))
            # All bindings of the group are folded again, and what comes of them nobody knows yet.
            starts = self._matched(aggregate.groups, [group], names)
            self._expanded(self._rules[spot.key], spot.body, None, starts, names)
            self._walk.table(spot.key).add((*group, *(None for _ in aggregate.folds)))

    def _heads_of_groups(self) -> list[_Item]:
        """Return the heads that rows of touched groups may give or take away."""
        found: list[_Item] = []
        for key, group in self._groups:
            rule, aggregate = self._rules[key], self._aggregate(key)
            names = self._names(rule.body, rule.head)
            args = (*aggregate.groups, *(fold.target for fold in aggregate.folds))
            columns = tuple(n for n, value in enumerate(group) if value is not None)
            values = tuple(value for value in group if value is not None)
            rows = list(self._walk.table(key).matching(columns, values))
            position = rule.body.index(aggregate)
            for row in rows:
                starts = self._matched(args, [row], names)
                bindings = self._expanded(rule, rule.body, position, starts, names)
                found += self._heads_from(rule, bindings, lost=None not in row)
        return found

    def _aggregate(self, key: str) -> Aggregate:
        found = self._rules[key].aggregate
        if found is None:
            raise AssertionError(key)
        return found

    # Instances.

    def _at(self, spot: _Spot, rows: Sequence[Row]) -> list[_Binding]:
        """Return the bindings of a body that have given rows at a position."""
        rule = self._rules[spot.key]
        head = None if spot.inner else rule.head
        names = self._names(spot.body, head)
        starts = self._matched(spot.atom.args, rows, names)
        if spot.negated:
            bound = analyse(spot.body).bound
            inside = {names[v] for v in variables(spot.atom) if v not in bound}
            starts = list(
                dict.fromkeys(tuple(None if n in inside else v for n, v in enumerate(one)) for one in starts)
            )
            for one in starts:
                self._want_witnesses(spot.atom, one, names)
        return self._expanded(rule, spot.body, spot.workspace, starts, names)

    def _expanded(
        self,
        rule: Rule,
        body: tuple[Conjunct, ...],
        skip: int | None,
        starts: Sequence[_Binding],
        names: Mapping[Variable, int],
    ) -> list[_Binding]:
        """Return the bindings of a body that go on from some; what is to be looked up first ends the way."""
        left = [c for n, c in enumerate(body) if n != skip and isinstance(c, Atom | Aggregate)]
        found = list(starts)
        while left and found:
            following = min(left, key=lambda one: self._expected(one, found[0], names))
            left.remove(following)
            found = self._joined(rule, following, found, names)
            if len(found) > _MOST_BINDINGS:
                raise TooFarError
        for number, conjunct in enumerate(body):
            if isinstance(conjunct, Negation) and number != skip:
                for binding in found:
                    self._want_witnesses(conjunct.atom, binding, names)
        return found

    def _joined(
        self,
        rule: Rule,
        conjunct: Atom | Aggregate,
        bindings: Sequence[_Binding],
        names: Mapping[Variable, int],
    ) -> list[_Binding]:
        source: Source
        if isinstance(conjunct, Atom):
            source, args = Relation.of(conjunct), conjunct.args
        else:
            source = next(key for key, one in self._rules.items() if one is rule)
            args = (*conjunct.groups, *(fold.target for fold in conjunct.folds))
        table = self._walk.table(source)
        found: dict[_Binding, None] = {}
        for binding in bindings:
            columns, values = self._known_columns(args, binding, names)
            if self._walk.want(source, columns, values):
                for row in table.matching(columns, values):
                    extended = self._with(binding, args, row, names)
                    if extended is not None:
                        found[extended] = None
        return list(found)

    def _expected(
        self, conjunct: Atom | Aggregate, binding: _Binding, names: Mapping[Variable, int]
    ) -> float:
        if isinstance(conjunct, Aggregate):
            known = sum(binding[names[v]] is not None for v in conjunct.groups)
            return 1.0 if known == len(conjunct.groups) else float("inf")
        columns, _ = self._known_columns(conjunct.args, binding, names)
        return expected(self._walk.known.size(conjunct), conjunct, columns)

    def _want_witnesses(self, atom: Atom, binding: _Binding, names: Mapping[Variable, int]) -> None:
        self._walk.want(Relation.of(atom), *self._known_columns(atom.args, binding, names))

    def _known_columns(
        self, args: Sequence[Argument], binding: _Binding, names: Mapping[Variable, int]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        columns: list[int] = []
        values: list[int] = []
        for position, arg in enumerate(args):
            value = binding[names[arg]] if isinstance(arg, Variable) else self._walk.keys[arg]
            if value is not None:
                columns.append(position)
                values.append(value)
        return tuple(columns), tuple(values)

    def _matched(
        self, args: Sequence[Argument], rows: Iterable[Row], names: Mapping[Variable, int]
    ) -> list[_Binding]:
        """Return the bindings that rows give to arguments they match."""
        nothing: _Binding = (None,) * len(names)
        found = (self._with(nothing, args, row, names) for row in rows)
        return list(dict.fromkeys(one for one in found if one is not None))

    def _with(
        self, binding: _Binding, args: Sequence[Argument], row: Row, names: Mapping[Variable, int]
    ) -> _Binding | None:
        """Return a binding with what a row adds to it, or None if they do not agree."""
        found = list(binding)
        for arg, value in zip(args, row, strict=True):
            if value is None:
                continue
            if not isinstance(arg, Variable):
                if self._walk.keys[arg] != value:
                    return None
                continue
            there = found[names[arg]]
            if there is not None and there != value:
                return None
            found[names[arg]] = value
        return tuple(found)

    def _heads_from(self, rule: Rule, bindings: Iterable[_Binding], *, lost: bool) -> list[_Item]:
        names = self._names(rule.body, rule.head)
        relation, keys = Relation.of(rule.head), self._walk.keys
        heads = (
            tuple(one[names[arg]] if isinstance(arg, Variable) else keys[arg] for arg in rule.head.args)
            for one in bindings
        )
        return [(relation, row, lost) for row in dict.fromkeys(heads)]

    def _names(self, body: tuple[Conjunct, ...], head: Atom | None = None) -> dict[Variable, int]:
        """Return the positions of a body's variables in its bindings."""
        found = self._orders.get(id(body))
        if found is None:
            seen = [v for c in body for v in variables(c)]
            if head is not None:
                seen += variables(head)
            found = self._orders[id(body)] = {v: n for n, v in enumerate(dict.fromkeys(seen))}
        return found


def _fits(row: Row, vague: Row) -> bool:
    return all(one in {None, value} for value, one in zip(row, vague, strict=True))
