"""Looks up by key the rows that a small change of large relations needs, in rounds.

The inserted and deleted rows demand others (`demand`), which are looked up (`lookup.by_key`) and demand more.
When no demand is left, one task can maintain the nodes on the slice of rows that was looked up. Where the
rows are too many, only the nodes before the first that demands too many are maintained on the slice, or none.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.spark.evaluate.inputs import read_by
from zodiacedge.engine.spark.lookup.by_key import RowSlice, TooManyError
from zodiacedge.engine.spark.maintain.demand import demands_of
from zodiacedge.engine.spark.storage.compaction import consolidated, signed_rows
from zodiacedge.engine.spark.storage.files import (
    DataFile,
    Owners,
    Relation,
    Segment,
    SignedFiles,
    read_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from zodiacedge.engine.spark.lookup.by_key import Columns, Row, Source
    from zodiacedge.engine.spark.lookup.matching import Wants
    from zodiacedge.engine.spark.maintain.demand import Demand, Rows
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.language.ast import Atom, Rule
    from zodiacedge.terms import Term

# Files of rows, by relation.
RelationFiles = dict[Relation, SignedFiles]
_EMPTY = Segment()
_MOST_ROUNDS = 16
# Rows that are not looked up yet are followed for at most so many steps.
_MOST_STEPS = 64


@dataclass(frozen=True)
class LookedUp:
    """The slice of rows that nodes need."""

    nodes: int
    """How many of the nodes need no other rows."""
    rows: Mapping[str, Columns]
    """The rows by file."""
    count: int
    rounds: int


@dataclass(frozen=True)
class Scope:
    """The nodes that a change may affect, and the files of all owners before and after the change."""

    workspace: Workspace
    yield_point: YieldPoint
    nodes: Sequence[Mapping[str, Rule]]
    keys: Mapping[Term, int]
    before: Owners
    after: Owners
    relations: Collection[Relation]
    """The relations that the nodes read or derive, and those that the change is of."""
    patience: float = inf
    """The seconds of processor time that the search for rows may take in the last of the nodes."""

    def changed(self) -> list[tuple[Segment, Segment]]:
        """Return the old and new segments of changed owners outside the nodes."""
        inside = {frozenset(rules) for rules in self.nodes}
        sides = (
            (self.before.get(owner, _EMPTY), self.after.get(owner, _EMPTY))
            for owner in {**self.before, **self.after}
            if owner not in inside
        )
        return [(was, will) for was, will in sides if was is not will]

    def contents(self, source: Source) -> Sequence[SignedFiles]:
        """Return the files of a source, a relation or an aggregate's rule, of all owners before and after."""
        if isinstance(source, str):
            node = next(frozenset(rules) for rules in self.nodes if source in rules)
            rows = self.before[node].aggregate_rows.get(source)
            return [rows] if rows is not None else []
        return self._contents.get(source, ())

    @cached_property
    def _contents(self) -> dict[Relation, list[SignedFiles]]:
        distinct: dict[Relation, dict[SignedFiles, None]] = {relation: {} for relation in self.relations}
        for owner in (*self.before.values(), *self.after.values()):
            for relation, content in owner.contents.items():
                if content.layers and relation in distinct:
                    distinct[relation][content] = None
        return {relation: list(contents) for relation, contents in distinct.items()}

    def width(self, source: Source) -> int:
        """Return how many columns the files of a source have."""
        if isinstance(source, Relation):
            return source.width
        rule = next(rules[source] for rules in self.nodes if source in rules)
        return Relation.of_rows(rule.aggregate).width


def look_up(scope: Scope) -> LookedUp | None:
    """Look up the rows that maintaining nodes needs; None if they are too many."""
    try:
        changes = _ChangedRows(scope).read()
    except TooManyError:
        return None
    slice_ = RowSlice(scope.workspace, scope.yield_point, scope.contents, scope.width)
    most, steps, most_steps = len(scope.nodes), 1, _MOST_STEPS
    until = time.thread_time() + scope.patience
    for rounds in range(_MOST_ROUNDS):
        scope.yield_point.yield_to_waiters()
        rows = _SliceRows(scope, slice_, until)
        demands = demands_of(scope.nodes[:most], scope.keys, rows, changes, steps)
        if len(demands) == 1:
            return None
        if len(demands) <= most:
            most = len(demands) - 1
            until = time.thread_time() + scope.patience
            if slice_.count * 2 > slice_.most:
                # The rows that only the nodes left out need are not wanted.
                slice_ = RowSlice(scope.workspace, scope.yield_point, scope.contents, scope.width)
                continue
        if not any(demands[: most + 1]):
            return LookedUp(most, slice_.rows, slice_.count, rounds)
        try:
            slice_.fetch(_merged(demands[: most + 1]))
            # A long chain of changes takes few rounds.
            steps = min(2 * steps, most_steps)
        except TooManyError as problem:
            if steps > 1:
                # Fewer are demanded if each is looked up before it is followed.
                steps = most_steps = 1
                continue
            # The last node that demands the source demands most of it.
            most = max(n for n, demand in enumerate(demands[: most + 1]) if problem.source in demand) - 1
            if most <= 0:
                return None
    return None


def visible_changes(scope: Scope) -> tuple[RelationFiles, RelationFiles] | None:
    """Write the rows that became visible, and those that are visible no more; None if too many changed."""
    slice_ = RowSlice(scope.workspace, scope.yield_point, scope.contents, scope.width)
    try:
        inserted, deleted = _ChangedRows(scope).read()
        slice_.fetch(demands_of((), scope.keys, _SliceRows(scope, slice_), (inserted, deleted))[0])
    except TooManyError:
        return None
    net: tuple[RelationFiles, RelationFiles] = ({}, {})
    known = _SliceRows(scope, slice_)
    for relation in {**inserted, **deleted}:
        changed = inserted.get(relation, set()) | deleted.get(relation, set())
        before, after = known.before(relation), known.after(relation)
        for side, rows in zip(net, (changed & after - before, changed & before - after), strict=True):
            if rows:
                side[relation] = SignedFiles.of(_write(scope.workspace, relation, rows))
    return net


def _write(workspace: Workspace, relation: Relation, rows: set[Row]) -> DataFile:
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    return workspace.adopt(workspace.scratch.folder.write_rows(relation, columns or [np.zeros(1, np.int64)]))


def _merged(demands: Iterable[Demand]) -> Demand:
    merged: Demand = {}
    for demand in demands:
        for source, wants in demand.items():
            for columns, values in wants.items():
                merged.setdefault(source, {}).setdefault(columns, set()).update(values)
    return merged


class _ChangedRows:
    """Reads the rows inserted and deleted by owners outside the nodes, up to a limit."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._left = scope.workspace.options.driver_rows

    def read(self) -> tuple[Rows, Rows]:
        """Return the inserted and the deleted rows; raise if they are too many."""
        inserted: Rows = {}
        deleted: Rows = {}
        for was, will in self._scope.changed():
            for relation in self._scope.relations:
                if was.content(relation) != will.content(relation):
                    plus, minus = self._difference(relation, was.content(relation), will.content(relation))
                    inserted.setdefault(relation, set()).update(plus)
                    deleted.setdefault(relation, set()).update(minus)
        return inserted, deleted

    def _difference(
        self, relation: Relation, was: SignedFiles, will: SignedFiles
    ) -> tuple[set[Row], set[Row]]:
        layers = [
            (plus, self._columns(relation, file))
            for plus, files in zip((True, False), was.moved(will), strict=True)
            for file in files
        ]
        if not layers:
            return set(), set()
        rows, counts = consolidated(*signed_rows(layers))
        plus, minus = (_as_rows(relation, map(tuple, rows[counts * sign > 0].tolist())) for sign in (1, -1))
        return plus, minus

    def _columns(self, relation: Relation, file: DataFile) -> Columns:
        self._left -= file.rows
        if self._left < 0:
            raise TooManyError(relation)
        return read_file(file, relation.width)


class _SliceRows:
    """The rows looked up so far, as the demand analysis reads them (`demand.Known`)."""

    def __init__(self, scope: Scope, slice_: RowSlice, until: float = inf) -> None:
        self._scope = scope
        self._slice = slice_
        self._until = until
        self._present: dict[Source, set[Row]] = {}
        self._before: dict[Relation, set[Row]] = {}
        self._own: dict[tuple[frozenset[str], Relation], set[Row]] = {}

    def covers(self, source: Source, columns: tuple[int, ...], values: tuple[int, ...]) -> bool:
        """Whether all rows with these values were looked up."""
        return self._slice.covers(source, columns, values)

    def fetch(self, source: Source, wants: Wants) -> Collection[Row] | None:
        """Look up rows at once, if the driver can; return those that any owner has before or after."""
        net = self._slice.fetch_here(source, wants)
        if net is None:
            return None
        present = self._new(source, self._scope.contents(source), net)
        if source in self._present:
            self._present[source] |= present
        if isinstance(source, Relation):
            scope = self._scope
            if source in self._before:
                contents = [owner.content(source) for owner in scope.before.values()]
                self._before[source] |= self._new(source, contents, net)
            for (keys, relation), own in self._own.items():
                if relation == source:
                    content = scope.before.get(keys, _EMPTY).content(relation)
                    own.update(self._new(source, [content], net))
        return present

    @property
    def is_patient(self) -> bool:
        """Whether the search has not taken too long."""
        return time.thread_time() < self._until

    def present(self, source: Source) -> set[Row]:
        """Return the rows of a source that any owner has, before the change or after it."""
        if source not in self._present:
            self._present[source] = self._union(source, self._scope.contents(source))
        return self._present[source]

    def before(self, relation: Relation) -> set[Row]:
        """Return the rows of a relation that any owner had before the change."""
        if relation not in self._before:
            contents = [owner.content(relation) for owner in self._scope.before.values()]
            self._before[relation] = self._union(relation, contents)
        return self._before[relation]

    def after(self, relation: Relation) -> set[Row]:
        """Return the rows of a relation that any owner has after the change."""
        return self._union(relation, [owner.content(relation) for owner in self._scope.after.values()])

    def own(self, keys: frozenset[str], relation: Relation) -> set[Row]:
        """Return the rows of a relation that a node had before the change."""
        if (keys, relation) not in self._own:
            content = self._scope.before.get(keys, _EMPTY).content(relation)
            self._own[keys, relation] = self._union(relation, [content])
        return self._own[keys, relation]

    def size(self, atom: Atom) -> int:
        """Estimate how many rows an atom reads."""
        relation, class_ = read_by(atom, self._scope.keys)
        return sum(
            content.rows if class_ is None else content.classes.get(class_, 0)
            for content in self._scope.contents(relation)
        )

    def _union(self, source: Source, contents: Iterable[SignedFiles]) -> set[Row]:
        return self._new(source, contents, self._slice.held)

    def _new(
        self, source: Source, contents: Iterable[SignedFiles], net: Callable[[SignedFiles], set[Row]]
    ) -> set[Row]:
        return _as_rows(source, set().union(*(net(content) for content in contents)))


def _as_rows(source: Source, rows: Iterable[Row]) -> set[Row]:
    """Return stored rows as rows of facts: that of a proposition has no terms."""
    distinct = set(rows)
    if isinstance(source, Relation) and not source.arity:
        return {()} if distinct else set()
    return distinct
