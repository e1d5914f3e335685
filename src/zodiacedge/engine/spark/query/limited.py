"""Queries with a limit on more rows than fit one task: they end as soon as enough rows are found.

Three ways are tried in turn. Rows of one atom are followed through the others by look-ups, a few at first and
then more (`followed`). Where the other relations fit a task, the files of the largest are read in waves, each
four times as large as the one before. Else a plan joins all rows, but neither sorts them nor makes them
distinct (`distributed`). Only an aggregate must read everything: a group is not complete before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Answer
from zodiacedge.engine.spark.evaluate.expressions import with_more
from zodiacedge.engine.spark.evaluate.inputs import Input, inputs_of
from zodiacedge.engine.spark.query import one_task
from zodiacedge.engine.spark.query.distributed import DistributedQuery
from zodiacedge.engine.spark.query.followed import FollowedRows
from zodiacedge.engine.spark.storage.embedded_tables import mentioned
from zodiacedge.engine.spark.storage.files import Relation, SignedFiles
from zodiacedge.engine.spark.storage.terms import refuse_clash
from zodiacedge.language.ast import Aggregate, body_atoms
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.engine.api import Dropped, Settings
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.language.ast import Query
    from zodiacedge.terms import Term

# A wave has so many times the tasks of the wave before.
_GROWTH = 4
# A task of a wave reads at least so many rows: fewer do not pay for starting it.
_LEAST_ROWS = 1 << 18


class LimitedQuery:
    """A resolved query with a limit on one version."""

    def __init__(self, version: SparkVersion, query: Query, settings: Settings) -> None:
        """Take a query."""
        self._version = version
        self._query = query
        self._limit = query.limit or 1
        self._keys = version.workspace.keys([*mentioned(query.body), *mentioned(query.columns)])
        self._settings = settings
        self._rows: dict[tuple[Term, ...], None] = {}
        self._dropped: Dropped | None = None

    def answered(self) -> Answer:
        """Answer the query."""
        refuse_clash(self._keys, self._version.terms)
        if not self._by_following():
            # What was dropped so far is among what is dropped next.
            self._dropped = None
            if not self._in_waves():
                self._take(DistributedQuery(self._version, self._query, (), self._settings).answered({}))
        rows = sorted(list(self._rows)[: self._limit], key=lambda row: tuple(map(order_key, row)))
        return Answer(tuple(rows), self._dropped)

    @property
    def _enough(self) -> bool:
        return len(self._rows) >= self._limit

    def _take(self, answer: Answer) -> None:
        self._rows.update(dict.fromkeys(answer.rows))
        self._dropped = with_more(self._dropped, answer.dropped)

    def _by_following(self) -> bool:
        """Follow rows of one atom; return whether these were all rows or enough."""
        if any(isinstance(c, Aggregate) for c in self._query.body):
            return False
        followed = FollowedRows(self._version, self._query, self._limit, self._settings)
        for answer in followed.answers():
            self._take(answer)
            if self._enough:
                return True
        return followed.complete

    def _in_waves(self) -> bool:
        """Read the files of the largest relation in waves; return whether these were all files or enough."""
        tasks = list(self._tasks())
        if not tasks:
            return False
        jobs = self._version.workspace.jobs
        many = jobs.cores
        while tasks and not self._enough:
            wave, tasks, many = tasks[:many], tasks[many:], many * _GROWTH
            why = "answering a query with a limit"
            for answer in jobs.each(one_task.run, wave, why, self._settings.yield_point):
                self._take(answer)
        return True

    def _tasks(self) -> Iterator[one_task.QueryTask]:
        """Yield tasks that read all relations, of the largest some files; none if that is too much."""
        version, query = self._version, self._query
        workspace, owners = version.workspace, version.owners.values()
        atoms = list(body_atoms(query.body))
        inputs = inputs_of(atoms, self._keys, owners, owners)
        if not inputs:
            return
        largest = max(inputs, key=_rows)
        others = tuple(each for each in inputs if each is not largest)
        reads = [atom for atom in atoms if Relation.of(atom) == largest.relation]
        rest = sum(map(_rows, others))
        # A part of the facts gives a part of the answers only where one positive atom reads them.
        if len(reads) > 1 or reads[0] not in query.body or rest > workspace.options.gather_rows:
            return
        for some in _divided(largest, max(rest, _LEAST_ROWS)):
            yield one_task.QueryTask(
                query,
                {},
                self._keys,
                (some, *others),
                version.terms,
                workspace.hashing,
                self._settings.registry,
                self._settings.limits,
            )


def _rows(read: Input) -> int:
    return sum(content.rows for content in read.before)


def _divided(read: Input, least: int) -> Iterator[Input]:
    """Divide what an input reads into parts of at least so many rows, by files that insert rows."""
    part: list[SignedFiles] = []
    rows = 0
    for content in read.before:
        for number, (plus, file) in enumerate(content.layers):
            if plus:
                later = tuple(layer for layer in content.layers[number + 1 :] if not layer[0])
                part.append(SignedFiles(((plus, file), *later)))
                rows += file.rows
            if rows >= least:
                yield replace(read, before=tuple(part))
                part, rows = [], 0
    if part:
        yield replace(read, before=tuple(part))
