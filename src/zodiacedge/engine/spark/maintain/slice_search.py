"""A small change of a large store: which rows its nodes need, looked up by key, round after round.

The rows that came and went lead to others (`demand`), which are looked up (`slices`), and lead further. When
nothing is left to look up, the nodes can be maintained in one task on what was found. It is given up as soon
as it is not small: then as many nodes as could be followed are maintained so, or none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.spark.lookup.by_key import RowSlice, TooManyError, matching
from zodiacedge.engine.spark.maintain.demand import demands_of
from zodiacedge.engine.spark.storage.compaction import consolidated
from zodiacedge.engine.spark.storage.files import DataFile, Relation, Segment, SignedFiles
from zodiacedge.language.ast import Variable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from zodiacedge.engine.spark.evaluate.seminaive import Owners
    from zodiacedge.engine.spark.lookup.by_key import Columns, Row, Source
    from zodiacedge.engine.spark.maintain.demand import Demand, Rows
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.language.ast import Atom, Rule
    from zodiacedge.terms import Term

# Files of rows, by relation.
RelationFiles = dict[Relation, tuple[DataFile, ...]]
_NOTHING = Segment()
# So many times somebody looks up where the last time led to.
_MOST_ROUNDS = 16


@dataclass(frozen=True)
class LookedUp:
    """What was looked up for some nodes."""

    nodes: int
    """How many of the nodes need no more than this."""
    rows: Mapping[str, Columns]
    """The rows that they need, by file."""
    count: int
    rounds: int


@dataclass(frozen=True)
class Scope:
    """What a change is about: the nodes it may reach, who had what before, and who has what after it."""

    workspace: Workspace
    yield_point: YieldPoint
    nodes: Sequence[Mapping[str, Rule]]
    keys: Mapping[Term, int]
    before: Owners
    after: Owners
    relations: Collection[Relation]
    """All relations that matter."""

    def changed(self) -> list[tuple[Segment, Segment]]:
        """Return what owners outside the nodes had before the change and have after it, if that differs."""
        inside = {frozenset(rules) for rules in self.nodes}
        sides = (
            (self.before.get(owner, _NOTHING), self.after.get(owner, _NOTHING))
            for owner in {**self.before, **self.after}
            if owner not in inside
        )
        return [(was, will) for was, will in sides if was is not will]

    def contents(self, source: Source) -> Sequence[SignedFiles]:
        """Return all that any owner has or had of a source."""
        if isinstance(source, str):
            home = next(frozenset(rules) for rules in self.nodes if source in rules)
            rows = self.before[home].aggregate_rows.get(source)
            return [rows] if rows is not None else []
        return self._contents.get(source, ())

    @cached_property
    def _contents(self) -> dict[Relation, list[SignedFiles]]:
        found: dict[Relation, dict[SignedFiles, None]] = {relation: {} for relation in self.relations}
        for one in (*self.before.values(), *self.after.values()):
            for relation, content in one.contents.items():
                if content.layers and relation in found:
                    found[relation][content] = None
        return {relation: list(contents) for relation, contents in found.items()}

    def width(self, source: Source) -> int:
        """Return how many columns the files of a source have."""
        if isinstance(source, Relation):
            return source.width
        rule = next(rules[source] for rules in self.nodes if source in rules)
        if rule.aggregate is None:
            raise AssertionError(source)
        return Relation.of_rows(rule.aggregate).width


def look_up(scope: Scope) -> LookedUp | None:
    """Look up what maintaining nodes needs; None if that is not little."""
    try:
        came, went = _Moved(scope).found()
    except TooManyError:
        return None
    slice_ = RowSlice(scope.workspace, scope.yield_point, scope.contents, scope.width)
    most = len(scope.nodes)
    for rounds in range(_MOST_ROUNDS):
        scope.yield_point.yield_to_waiters()
        demands = demands_of(scope.nodes[:most], scope.keys, _Found(scope, slice_), came, went)
        most = min(most, len(demands) - 1)
        if not most:
            return None
        if not any(demands[: most + 1]):
            return LookedUp(most, slice_.rows, slice_.count, rounds)
        try:
            slice_.fetch(_merged(demands[: most + 1]))
        except TooManyError as problem:
            # Whoever asked last asked for most.
            most = max(n for n, one in enumerate(demands[: most + 1]) if problem.source in one) - 1
            if most <= 0:
                return None
    return None


def visible_changes(scope: Scope) -> tuple[RelationFiles, RelationFiles] | None:
    """Return what became visible and what is visible no more, of all that any owner gained or lost.

    None if that is not little.
    """
    slice_ = RowSlice(scope.workspace, scope.yield_point, scope.contents, scope.width)
    try:
        came, went = _Moved(scope).found()
        wants = demands_of((), scope.keys, _Found(scope, slice_), came, went)[0]
        slice_.fetch(wants)
    except TooManyError:
        return None
    found: tuple[RelationFiles, RelationFiles] = ({}, {})
    known = _Found(scope, slice_)
    for relation in {**came, **went}:
        moved = came.get(relation, set()) | went.get(relation, set())
        before, after = known.before(relation), known.after(relation)
        for side, rows in zip(found, (moved & after - before, moved & before - after), strict=True):
            if rows:
                side[relation] = (_written(scope.workspace, relation, rows),)
    return found


def _written(workspace: Workspace, relation: Relation, rows: set[Row]) -> DataFile:
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    return workspace.adopt(workspace.scratch.folder.write_rows(relation, columns or [np.zeros(1, np.int64)]))


def _merged(demands: Iterable[Demand]) -> Demand:
    found: Demand = {}
    for demand in demands:
        for source, wants in demand.items():
            there = found.setdefault(source, {})
            for columns, values in wants.items():
                there[columns] = there.get(columns, set()) | values
    return found


@dataclass
class _Moved:
    """Finds the rows that came and went outside the nodes."""

    scope: Scope
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.scope.workspace.options.driver_rows

    def found(self) -> tuple[Rows, Rows]:
        came: Rows = {}
        went: Rows = {}
        for was, will in self.scope.changed():
            for relation in self.scope.relations:
                if was.content(relation) != will.content(relation):
                    plus, minus = self._difference(relation, was.content(relation), will.content(relation))
                    came.setdefault(relation, set()).update(plus)
                    went.setdefault(relation, set()).update(minus)
        return came, went

    def _difference(
        self, relation: Relation, was: SignedFiles, will: SignedFiles
    ) -> tuple[set[Row], set[Row]]:
        more, less = was.moved(will)
        pieces = [np.stack(self._columns(relation, part), axis=1) for part in (*more, *less)]
        signs = np.repeat([1] * len(more) + [-1] * len(less), [len(rows) for rows in pieces])
        nothing = np.zeros((0, relation.width), np.int64)
        rows, counts = consolidated(np.concatenate((nothing, *pieces)), signs)
        plus, minus = (_as_rows(relation, map(tuple, rows[counts * sign > 0].tolist())) for sign in (1, -1))
        return plus, minus

    def _columns(self, relation: Relation, part: DataFile) -> Columns:
        self.left -= part.rows
        columns = None
        if self.left >= 0:
            columns = matching(part.path, relation.width, {(): {()}}, part.rows)
        if columns is None:
            raise TooManyError(relation)
        return columns


class _Found:
    """What was looked up so far, as `demand` asks for it."""

    def __init__(self, scope: Scope, slice_: RowSlice) -> None:
        self._scope = scope
        self._slice = slice_
        self._present: dict[Source, set[Row]] = {}
        self._before: dict[Relation, set[Row]] = {}
        self._own: dict[tuple[frozenset[str], Relation], set[Row]] = {}

    def covers(self, source: Source, columns: tuple[int, ...], values: tuple[int, ...]) -> bool:
        """Whether all rows that have some values were looked up."""
        return self._slice.covers(source, columns, values)

    def present(self, source: Source) -> set[Row]:
        """Return the rows of a source that some owner has, before the change or after it."""
        if source not in self._present:
            self._present[source] = self._union(source, self._scope.contents(source))
        return self._present[source]

    def before(self, relation: Relation) -> set[Row]:
        """Return the rows of a relation that some owner had before the change."""
        if relation not in self._before:
            contents = [one.content(relation) for one in self._scope.before.values()]
            self._before[relation] = self._union(relation, contents)
        return self._before[relation]

    def after(self, relation: Relation) -> set[Row]:
        """Return the rows of a relation that some owner has after the change."""
        return self._union(relation, [one.content(relation) for one in self._scope.after.values()])

    def own(self, keys: frozenset[str], relation: Relation) -> set[Row]:
        """Return the rows of a relation that a node had before the change."""
        if (keys, relation) not in self._own:
            content = self._scope.before.get(keys, Segment()).content(relation)
            self._own[keys, relation] = self._union(relation, [content])
        return self._own[keys, relation]

    def size(self, atom: Atom) -> int:
        """Return how many rows an atom reads, about."""
        relation = Relation.of(atom)
        contents = self._scope.contents(relation)
        if relation.typed and not isinstance(atom.args[1], Variable):
            key = self._scope.keys[atom.args[1]]
            return sum(content.classes().get(key, 0) for content in contents)
        return sum(content.rows for content in contents)

    def _union(self, source: Source, contents: Iterable[SignedFiles]) -> set[Row]:
        found: set[Row] = set()
        for content in contents:
            found |= self._slice.held(content)
        return _as_rows(source, found)


def _as_rows(source: Source, rows: Iterable[Row]) -> set[Row]:
    """Return rows as facts have them: those of a proposition have no terms."""
    found = set(rows)
    if isinstance(source, Relation) and not source.arity:
        return {()} if found else set()
    return found
