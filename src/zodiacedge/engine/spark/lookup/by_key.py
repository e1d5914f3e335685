"""Lookup of rows of large relations by key: only the rows that a small change may affect.

A lookup gives values for columns. The files of all owners are read, and the matching rows returned, up to a
limit. Since each file is filtered on its own, the matching rows keep the signs and the order of the files.
Of a file with an index (`indexes`) only the blocks that may have matching rows are read, and the driver does
that itself; tasks read others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from zodiacedge.engine.spark.lookup.matching import Wants, chosen, has_one_of, matching
from zodiacedge.engine.spark.storage.blocks import BlockReader
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader
from zodiacedge.engine.spark.storage.files import BLOCK, DataFile, Relation, SignedFiles, read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

    Columns = list[Keys]

Row = tuple["int | None", ...]
"""Fingerprints of terms; None for a term that is not known yet."""
Source = Relation | str
"""A relation, or the key of a rule for its aggregate rows."""

# A task reads files with about so many rows in total.
_ROWS_AT_ONCE = 1 << 21
# The driver looks rows up itself in so many times the rows of a relation that it reads whole, and in so many
# of blocks of files that are here.
_SCANNED = 4
_MOST_IN_DRIVER = 1 << 22
_ALL: Wants = {(): {()}}


class TooManyError(Exception):
    """More rows match than a small change may look up."""

    def __init__(self, source: Source) -> None:
        """Take the source of the rows."""
        super().__init__(source)
        self.source = source


class _FileLookup(NamedTuple):
    """The values to look up in a file, and how."""

    file: DataFile
    width: int
    wants: Wants
    by_index: bool
    """Whether only the blocks are read in which the index of the file finds the values."""
    cost: int
    """About how many rows are read at most."""


@dataclass(frozen=True)
class _LookupTask:
    """The input of a task: lookups in files, and the maximum number of matching rows."""

    lookups: tuple[_FileLookup, ...]
    most: int


def look_up(task: _LookupTask, reader: BlockReader | None = None) -> list[tuple[str, Columns]] | None:
    """Return the matching rows by file; None if they are too many."""
    rows: list[tuple[str, Columns]] = []
    left = task.most
    reader = reader or BlockReader()
    for file, width, wants, _, _ in task.lookups:
        columns = matching(file, width, wants, left, reader)
        if columns is None:
            return None
        if len(columns[0]):
            left -= len(columns[0])
            rows.append((file.path, columns))
    return rows


class SliceReader(SignedFileReader):
    """A reader of signed files that returns only the rows that were looked up."""

    def __init__(self, rows: Mapping[str, Columns]) -> None:
        """Take the looked-up rows by file; a file without an entry has none."""
        super().__init__()
        self._rows = rows

    def _part(self, file: DataFile, relation: Relation, classes: frozenset[int] | None) -> Columns:
        columns = self._rows.get(file.path)
        if columns is None:
            return [np.zeros(0, np.int64) for _ in range(relation.width)]
        if classes is not None:
            members = has_one_of(columns[1], pa.array(classes, pa.int64()))
            return [column[members] for column in columns]
        return columns


@dataclass
class RowSlice:
    """The rows looked up so far."""

    workspace: Workspace
    yield_point: YieldPoint
    contents: Callable[[Source], Sequence[SignedFiles]]
    """Returns the files of a source, of all owners, before and after the change."""
    width: Callable[[Source], int]
    whole: bool = True
    """Whether a small relation is read completely, because more of it will be looked up."""
    jobs: int = 0
    count: int = 0
    _rows: dict[str, Columns] = field(default_factory=dict)
    _limit: int = 0
    """The number of rows at which the fetch under way ends."""
    _requested: dict[Source, Wants] = field(default_factory=dict)
    _tuples: dict[str, set[Row]] = field(default_factory=dict)
    _small_files: dict[str, Columns] = field(default_factory=dict)
    _reader: BlockReader = field(default_factory=BlockReader)
    # The files with rows that are in `_tuples` only.
    _unsettled: set[str] = field(default_factory=set)

    @property
    def rows(self) -> dict[str, Columns]:
        """The matching rows by file."""
        for path in self._unsettled:
            columns = zip(*self._tuples[path], strict=True)
            self._rows[path] = [np.array(column, np.int64) for column in columns]
        self._unsettled.clear()
        return self._rows

    @property
    def most(self) -> int:
        """The maximum number of rows that may be looked up in total."""
        return self.workspace.options.driver_rows

    def covers(self, source: Source, columns: tuple[int, ...], values: tuple[int, ...]) -> bool:
        """Whether all rows with the given values were looked up."""
        requested = self._requested.get(source)
        if requested is None:
            return not any(content.layers for content in self.contents(source))
        return any(
            set(known) <= set(columns) and tuple(values[columns.index(n)] for n in known) in known_values
            for known, known_values in requested.items()
        )

    def held(self, content: SignedFiles) -> set[Row]:
        """Return the net rows of signed files, among those looked up."""
        return _net(content, self._listed)

    def _listed(self, file: DataFile) -> set[Row]:
        if file.path not in self._tuples:
            if file.path not in self._rows:
                return set()
            columns = (column.tolist() for column in self._rows[file.path])
            self._tuples[file.path] = set(zip(*columns, strict=True))
        return self._tuples[file.path]

    def fetch_here(self, source: Source, wants: Wants) -> Callable[[SignedFiles], set[Row]] | None:
        """Look up rows without a job: by indexes, and in small files; None where the driver should not.

        Returns what tells which of the net rows of signed files were not looked up before. If too many rows
        match, raises TooManyError without effect.
        """
        stored = sum(file.rows for file in self._files(source))
        if (self.whole and stored <= self.workspace.options.whole_rows) or () in wants:
            wants = _ALL
        narrowed = ((file, _narrowed(file, wants)) for file in self._files(source))
        files = {file: wants for file, wants in narrowed if wants}
        lookups = tuple(self._lookups(source, list(files.items())))
        if not self._are_small(lookups):
            return None
        few = [lookup for lookup in lookups if lookup.file.rows <= BLOCK and not lookup.by_index]
        more = tuple(lookup for lookup in lookups if lookup.file.rows > BLOCK or lookup.by_index)
        found = look_up(_LookupTask(more, self.most), self._reader)
        if found is None:
            raise TooManyError(source)
        by_path = {file.path: file for file in files}
        fresh: dict[str, set[Row]] = {}
        of_few = ((lookup.file.path, chosen(self._all_rows(lookup), lookup.wants)) for lookup in few)
        for path, columns in (*found, *of_few):
            listed = set(zip(*(column.tolist() for column in columns), strict=True))
            fresh[path] = listed - self._listed(by_path[path])
        count = sum(map(len, fresh.values()))
        if self.count + count > self.most:
            raise TooManyError(source)
        self.count += count
        for path, rows in fresh.items():
            if rows:
                self._tuples.setdefault(path, set()).update(rows)
                self._unsettled.add(path)
        requested = self._requested.setdefault(source, {})
        for names, values in wants.items():
            requested[names] = requested.get(names, set())
            requested[names].update(values)
        return lambda content: _net(content, lambda file: fresh.get(file.path, set()))

    def _all_rows(self, lookup: _FileLookup) -> Columns:
        """Return the rows of a small file, which is read once."""
        path = lookup.file.path
        if path not in self._small_files:
            self._small_files[path] = read_file(lookup.file, lookup.width)
        return self._small_files[path]

    def fetch(self, wanted: Mapping[Source, Wants], most: int | None = None) -> None:
        """Look up rows, in one job unless the files are small.

        If too many rows match, at most `most` if given, raise TooManyError without effect.
        """
        requested = {source: dict(wants) for source, wants in self._requested.items()}
        before = dict(self.rows), self.count, requested
        self._limit = self.most if most is None else min(self.most, self.count + most)
        try:
            self._fetch(wanted)
        except TooManyError:
            self._rows, self.count, self._requested = before
            self._tuples.clear()
            raise

    def _fetch(self, wanted: Mapping[Source, Wants]) -> None:
        lookups: dict[Source, list[tuple[DataFile, Wants]]] = {}
        for source, wants in wanted.items():
            requested = self._request(source, wants)
            lookups[source] = [
                (file, narrowed) for file in self._files(source) if (narrowed := _narrowed(file, requested))
            ]
        tasks = [(source, task) for source, pairs in lookups.items() for task in self._tasks(source, pairs)]
        inputs = [task for _, task in tasks]
        if self._are_small([lookup for task in inputs for lookup in task.lookups]):
            results = [look_up(task, self._reader) for task in inputs]
        else:
            self.jobs += 1
            why = "looking up rows that a change may affect"
            results = self.workspace.jobs.each(look_up, inputs, why, self.yield_point)
        for (source, _), found in zip(tasks, results, strict=True):
            if found is None:
                raise TooManyError(source)
            for path, columns in found:
                self._add_rows(source, path, columns)

    def _are_small(self, lookups: Sequence[_FileLookup]) -> bool:
        """Whether the driver reads the rows itself."""
        scanned, by_index = (
            sum(lookup.cost for lookup in lookups if lookup.by_index == kind) for kind in (False, True)
        )
        if by_index and not self.workspace.scratch.folder.is_here:
            return False
        return scanned <= self.workspace.options.whole_rows * _SCANNED and by_index <= _MOST_IN_DRIVER

    def _request(self, source: Source, wants: Wants) -> Wants:
        """Record and return the values to look up; of a small relation, all rows."""
        stored = sum(file.rows for file in self._files(source))
        if (self.whole and stored <= self.workspace.options.whole_rows) or () in wants:
            if stored > self._limit - self.count:
                raise TooManyError(source)
            self._requested[source] = dict(_ALL)
            return _ALL
        requested = self._requested.setdefault(source, {})
        for columns, values in wants.items():
            requested[columns] = requested.get(columns, set()) | values
        return wants

    def _files(self, source: Source) -> Iterable[DataFile]:
        files = (file for content in self.contents(source) for file in content.parts)
        return {file.path: file for file in files if file.rows}.values()

    def _tasks(self, source: Source, pairs: list[tuple[DataFile, Wants]]) -> Iterator[_LookupTask]:
        new_task = partial(_LookupTask, most=self._limit - self.count)
        waiting: list[_FileLookup] = []
        rows = 0
        for lookup in self._lookups(source, pairs):
            waiting.append(lookup)
            rows += lookup.cost
            if rows > _ROWS_AT_ONCE:
                yield new_task(tuple(waiting))
                waiting, rows = [], 0
        if waiting:
            yield new_task(tuple(waiting))

    def _lookups(self, source: Source, pairs: list[tuple[DataFile, Wants]]) -> Iterator[_FileLookup]:
        """Plan the lookup in each file: by its index, or reading all of it."""
        width = self.width(source)
        for file, wants in pairs:
            rows = _rows_by_index(file, wants)
            yield _FileLookup(file, width, wants, rows is not None, file.rows if rows is None else rows)

    def _add_rows(self, source: Source, path: str, columns: Columns) -> None:
        known = self._rows.get(path)
        before = len(known[0]) if known is not None else 0
        if known is not None:
            # A row may match several lookups.
            both = [np.concatenate(pair) for pair in zip(known, columns, strict=True)]
            kept = np.unique(np.stack(both, axis=1), axis=0, return_index=True)[1]
            columns = [column[kept] for column in both]
        self._rows[path] = columns
        self._tuples.pop(path, None)
        self.count += len(columns[0]) - before
        if self.count > self._limit:
            raise TooManyError(source)


def _net(content: SignedFiles, listed: Callable[[DataFile], set[Row]]) -> set[Row]:
    """Return the net rows of signed files, among those listed of each file."""
    rows: set[Row] = set()
    for plus, file in content.layers:
        if plus:
            rows |= listed(file)
        else:
            rows -= listed(file)
    return rows


def _narrowed(file: DataFile, wants: Wants) -> Wants:
    """Return the values to look up in a file; for `rdf:type`, only those of classes in the file."""
    if not file.classes:
        return wants
    narrowed: Wants = {}
    for columns, values in wants.items():
        chosen = values
        if 1 in columns:
            position = columns.index(1)
            chosen = {row for row in values if row[position] in file.classes}
        if chosen:
            narrowed[columns] = chosen
    return narrowed


def _rows_by_index(file: DataFile, wants: Wants) -> int | None:
    """Return about how many rows of a file are read at most if its index is used; None if it cannot be."""
    index = file.index
    if index is None:
        return None
    blocks = 0.0
    for columns, values in wants.items():
        known = [index.blocks_of_key(column) for column in columns if index.finds(column)]
        if not known:
            return None
        blocks += len(values) * min(known)
    return min(int(blocks * index.block), file.rows)
