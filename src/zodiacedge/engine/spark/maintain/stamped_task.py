"""Maintenance of a recursive node by stamps, in one task on rows that it looks up by key.

Each fact that a node derives has a stamp: an instance of a rule derives it from facts that all have smaller
stamps. (Facts of other owners have 0; evaluation in rounds gives the number of the round.) So a fact keeps
its support if it has an instance of that kind, however many cycles run through it, and deletion follows only
what has none:

    candidates   facts with an instance that used a deleted fact, all of smaller stamps: others stand
    check        a candidate with another instance on facts of smaller stamps stays; any other is deleted,
                 and leads to further candidates
    rederive     a deleted fact that has an instance on what is left is inserted again with a larger stamp
    insert       semi-naive, from inserted and rederived facts; a stamp is one more than the largest used

A fact that another owner loses while the node still derives it has its stamp from then on, which is larger
than the 0 before: facts that it supported are candidates too.

Bodies of atoms and negated atoms have such instances. The rows before the change are those before it or
after it, whichever has the smaller stamp: candidates may be too many, never too few.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.spark.maintain.stamped_joins import Joins, Search
from zodiacedge.engine.spark.maintain.stamped_rows import (
    NEVER,
    Budget,
    KeyedFiles,
    Rows,
    TooMuchError,
    View,
)
from zodiacedge.engine.spark.storage.embedded_tables import Translation
from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation, read_file
from zodiacedge.engine.spark.storage.terms import Hashing
from zodiacedge.language.ast import Atom, Negation, variables
from zodiacedge.language.windows import is_window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from zodiacedge.engine.embedded.types import Flags, Ids
    from zodiacedge.engine.spark.maintain.stamped_joins import Bindings
    from zodiacedge.engine.spark.maintain.stamped_rows import Source
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

    # Positions of rows, by relation.
    Places = dict[Relation, Ids]
    # Heads of instances: their relation, positions, and the largest stamps that the instances use.
    Heads = tuple[Relation, Ids, Ids]


@dataclass(frozen=True)
class StampedTask:
    """The input of a task: the rules of a node, and the files of what it reads and derives."""

    rules: tuple[Rule, ...]
    keys: Mapping[Term, int]
    """The fingerprints of the terms of rules."""
    sources: tuple[Source, ...]
    folder: Folder
    rows: int
    """The maximum number of rows to read."""
    seconds: float
    """The maximum processor time."""
    hashing: Hashing = field(default_factory=Hashing)


@dataclass(frozen=True)
class StampedResult:
    """The result of a task: the changed facts of the node, and the net change."""

    moved: Mapping[Relation, tuple[DataFile, DataFile]]
    """The rows that the node gained and lost; a row with a new stamp is on both sides."""
    gained: int
    lost: int
    net: tuple[Mapping[Relation, DataFile], Mapping[Relation, DataFile]]
    """The inserted and the deleted facts."""
    rounds: int
    read: int
    """The number of rows read."""
    checked: int
    """The number of facts whose support was looked for."""


def can_be_stamped(rules: Iterable[Rule]) -> bool:
    """Whether the facts of a node with these rules can be maintained by stamps."""
    return all(
        isinstance(c, Atom | Negation) and bool(_atom(c).args) and not is_window(_atom(c))
        for rule in rules
        for c in (rule.head, *rule.body)
    )


def run(task: StampedTask) -> StampedResult | None:
    """Maintain a node; no result if the change is no small one."""
    try:
        return _Maintenance(task, KeyedFiles(Budget(task.rows, task.seconds))).run()
    except TooMuchError:
        return None


class _Maintenance:
    def __init__(self, task: StampedTask, files: KeyedFiles) -> None:
        self._task = task
        self._files = files
        self._translation = translation = Translation(task.keys, task.hashing)
        self._rows = {source.relation: Rows(source, translation, files) for source in task.sources}
        ids = {term: translation.terms.constant(term) for term in task.keys}
        self._joins = Joins(self._rows, ids, files.budget)
        self._own = {Relation.of(rule.head) for rule in task.rules}
        self._rounds = 0
        self._checked = 0

    def run(self) -> StampedResult:
        touched = {relation: self._touched(rows) for relation, rows in self._rows.items()}
        deleted = self._delete(touched)
        self._insert(touched, deleted)
        return self._result()

    def _touched(self, rows: Rows) -> Ids:
        """Return the rows that other owners gained or lost, as positions."""
        source, arity = rows.source, rows.relation.arity
        moved: dict[str, DataFile] = {}
        for was, will in ((source.before, source.after), (source.after, source.before)):
            others = {part.path for content in will for part in content.parts}
            moved |= {p.path: p for content in was for p in content.parts if p.path not in others}
        pieces = [np.zeros((0, arity), np.int32)]
        for file in moved.values():
            self._files.budget.take(file.rows)
            columns = read_file(file, rows.relation.width)
            pieces.append(self._translation.rows(columns[:arity], arity))
        return np.unique(rows.positions(np.concatenate(pieces)))

    # Deletion.

    def _delete(self, touched: Places) -> Places:
        """Delete the facts that have no support any more; return them."""
        frontier: Places = {}
        heads: list[Heads] = []
        for relation, positions in touched.items():
            rows = self._rows[relation]
            was, now = (rows.stamps(view, positions) for view in (View.EITHER, View.AFTER))
            lost = positions[was < now]
            if len(lost):
                frontier[relation] = lost
            before, after = rows.visible
            heads += self._denied(relation, positions[after[positions] & ~before[positions]], View.EITHER)
        deleted: defaultdict[Relation, list[Ids]] = defaultdict(list)
        while frontier or heads:
            self._rounds += 1
            heads += self._affected(frontier, View.EITHER)
            frontier = {}
            for relation, candidates in self._candidates(heads).items():
                rows = self._rows[relation]
                gone = candidates[self._support(relation, candidates, rows.now[candidates]) == NEVER]
                if len(gone):
                    deleted[relation].append(gone)
                    frontier[relation] = gone
            # All candidates of a round are checked on the same facts.
            for relation, gone in frontier.items():
                rows = self._rows[relation]
                rows.now[gone] = NEVER
                frontier[relation] = gone[~rows.after[gone]]
            frontier = {relation: gone for relation, gone in frontier.items() if len(gone)}
            heads = []
        return {relation: np.concatenate(pieces) for relation, pieces in deleted.items()}

    def _candidates(self, heads: Iterable[Heads]) -> Places:
        """Return the facts of the node among heads that were derived from facts of smaller stamps."""
        candidates = {}
        for relation, (positions, stamps) in _together(heads).items():
            now = self._rows[relation].now[positions]
            candidates[relation] = np.unique(positions[(now < NEVER) & (stamps < now)])
        return candidates

    def _support(self, relation: Relation, positions: Ids, below: Ids) -> Ids:
        """Return the largest stamp that an instance of each fact uses, of those below a limit, or `NEVER`."""
        stamps = np.full(len(positions), NEVER, np.int32)
        self._checked += len(positions)
        facts = self._rows[relation].table.rows[positions]
        found = np.zeros(len(positions), np.bool_)
        search = Search(View.AFTER, below, found)
        for rule in self._task.rules:
            if Relation.of(rule.head) == relation:
                starts = self._joins.starts(rule.head.args, facts)
                for bindings in self._joins.instances(rule.body, None, starts, search):
                    np.minimum.at(stamps, bindings.source, bindings.stamp)
                    found[bindings.source] = True
        return stamps

    # Insertion.

    def _insert(self, touched: Places, deleted: Places) -> None:
        """Insert the facts that are derived from inserted ones, and those that were deleted in vain."""
        delta: Places = {}
        heads: list[Heads] = []
        for relation, positions in deleted.items():
            stamps = self._support(relation, positions, np.full(len(positions), NEVER, np.int32))
            heads.append((relation, positions[stamps < NEVER], stamps[stamps < NEVER]))
        for relation, positions in touched.items():
            before, after = (side[positions] for side in self._rows[relation].visible)
            if (after & ~before).any():
                delta[relation] = positions[after & ~before]
            heads += self._denied(relation, positions[before & ~after], View.AFTER)
        while delta or heads:
            self._rounds += 1
            heads += self._affected(delta, View.AFTER)
            delta = {}
            for relation, (positions, stamps) in _together(heads).items():
                rows = self._rows[relation]
                new = rows.now[positions] == NEVER
                np.minimum.at(rows.now, positions[new], stamps[new] + 1)
                fresh = np.unique(positions[new])
                fresh = fresh[~rows.after[fresh]]
                if len(fresh):
                    delta[relation] = fresh
            heads = []

    # Instances.

    def _affected(self, changed: Places, view: View) -> Iterator[Heads]:
        """Yield the heads of the instances that have changed facts, with the largest stamps that they use."""
        for rule in self._task.rules:
            for n, conjunct in enumerate(rule.body):
                if isinstance(conjunct, Atom) and Relation.of(conjunct) in changed:
                    rows = self._rows[Relation.of(conjunct)]
                    positions = changed[rows.relation]
                    stamps = rows.stamps(view, positions)
                    starts = self._joins.starts(conjunct.args, rows.table.rows[positions], stamps)
                    yield from self._heads(rule, n, starts, view)

    def _denied(self, relation: Relation, positions: Ids, view: View) -> Iterator[Heads]:
        """Yield the heads of the instances that changed rows denied before the change, or deny after it."""
        if not len(positions):
            return
        for rule in self._task.rules:
            bound = {v for c in rule.body if isinstance(c, Atom) for v in variables(c)}
            for n, conjunct in enumerate(rule.body):
                if isinstance(conjunct, Negation) and Relation.of(conjunct.atom) == relation:
                    rows = self._rows[relation].table.rows[positions]
                    starts = self._joins.starts(conjunct.atom.args, rows)
                    starts = starts.only(bound)
                    yield from self._heads(rule, n if view is View.EITHER else None, starts, view)

    def _heads(self, rule: Rule, skip: int | None, starts: Bindings, view: View) -> Iterator[Heads]:
        relation = Relation.of(rule.head)
        for bindings in self._joins.instances(rule.body, skip, starts, Search(view)):
            rows = self._joins.heads(rule.head, bindings)
            yield relation, self._rows[relation].positions(rows), bindings.stamp

    # The result.

    def _result(self) -> StampedResult:
        moved: dict[Relation, tuple[DataFile, DataFile]] = {}
        net: tuple[dict[Relation, DataFile], dict[Relation, DataFile]] = ({}, {})
        gained = lost = 0
        for relation, rows in self._rows.items():
            if relation in self._own:
                had, has, changed = rows.was < NEVER, rows.now < NEVER, rows.was != rows.now
                gained += int(np.count_nonzero(has & ~had))
                lost += int(np.count_nonzero(had & ~has))
                moved[relation] = (
                    self._written(rows, changed & has, rows.now),
                    self._written(rows, changed & had, rows.was),
                )
            before, after = rows.visible
            for side, chosen in zip(net, (after & ~before, before & ~after), strict=True):
                if chosen.any():
                    side[relation] = self._written(rows, chosen)
        read = self._task.rows - self._files.budget.rows
        return StampedResult(moved, gained, lost, net, self._rounds, read, self._checked)

    def _written(self, rows: Rows, chosen: Flags, stamps: Ids | None = None) -> DataFile:
        """Write rows as a file, with their stamps if there are."""
        ids = rows.table.rows[chosen]
        columns = [self._translation.keys(np.ascontiguousarray(column)) for column in ids.T]
        if stamps is not None:
            columns.append(stamps[chosen].astype(np.int64))
        return self._task.folder.write_indexed(rows.relation, columns)


def _together(heads: Iterable[Heads]) -> dict[Relation, tuple[Ids, Ids]]:
    """Return the positions of heads by relation, and their stamps."""
    pieces: defaultdict[Relation, list[tuple[Ids, Ids]]] = defaultdict(list)
    for relation, positions, stamps in heads:
        pieces[relation].append((positions, stamps))
    return {
        relation: (np.concatenate([p for p, _ in several]), np.concatenate([s for _, s in several]))
        for relation, several in pieces.items()
    }


def _atom(conjunct: Atom | Negation) -> Atom:
    return conjunct.atom if isinstance(conjunct, Negation) else conjunct
