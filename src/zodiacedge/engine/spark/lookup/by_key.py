"""Lookup of rows of large relations by key: only the rows that a small change may affect.

A lookup gives values for columns. Tasks read the files of all owners and return the matching rows, up to a
limit. Since each file is filtered on its own, the matching rows keep the signs and the order of the files.
A lookup reads a few groups of rows by the indexes that were written with a file (`indexes`), and the driver
does that itself. Large files of a relation that are without an index are read whole once, and indexed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zodiacedge.engine.spark.cluster.task_files import count_read
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader
from zodiacedge.engine.spark.storage.files import (
    DataFile,
    Folder,
    Relation,
    SignedFiles,
    among,
    groups_where,
    parquet_file,
    read_file,
)
from zodiacedge.engine.spark.storage.indexes import (
    INDEXED_FILE,
    MOST_INDEXED,
    Index,
    column_for,
    index_of,
    indexable,
    opened,
    write_index,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyarrow.parquet import ParquetFile

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

    Columns = list[Keys]

Row = tuple["int | None", ...]
"""Fingerprints of terms; None for a term that is not known yet."""
Source = Relation | str
"""A relation, or the key of a rule for its aggregate rows."""
Wants = dict[tuple[int, ...], set[tuple[int, ...]]]
"""The values to look up, by columns; no column means all rows."""

# Where files of so many rows together are looked into, those without an index are indexed: fewer are read as
# quickly.
INDEXED_FROM = 1 << 14
# A task reads so many row groups of one file, or files with so many rows in total.
_GROUPS_AT_ONCE = 16
_ROWS_AT_ONCE = 1 << 21
# The driver looks rows up itself in so many times the rows of a relation that it reads whole, and in so many
# by indexes of files that are here.
_SCANNED = 4
_MOST_IN_DRIVER = 1 << 20
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
    by_index: Mapping[int, Wants]
    """The values to look up in each index of the file, by column; empty if the file itself is read."""
    indexes: Mapping[int, Index]
    build: tuple[int, ...] = ()
    """The columns to index the file by; it is then read completely."""
    groups: tuple[int, int] | None = None
    """The row groups of the file to read, None for all."""

    @property
    def cost(self) -> int:
        """About how many rows are read."""
        return _rows_by_index(self.by_index, self.indexes) if self.by_index else self.file.rows

    def rows(self, most: int) -> Columns | None:
        """Return the matching rows; None if they are more than `most`."""
        if not self.by_index:
            return matching(self.file.path, self.width, self.wants, most, self.groups)
        pieces = []
        for column, wants in self.by_index.items():
            keys = {row[columns.index(column)] for columns, values in wants.items() for row in values}
            with opened(self.indexes[column]) as index:
                columns_there = index.rows(np.array(list(keys), np.int64))[: self.width]
            pieces.append(_chosen(columns_there, wants))
        if len(pieces) == 1:
            found = pieces[0]
        else:
            # A row may match in several indexes.
            both = np.concatenate([np.stack(piece, axis=1) for piece in pieces])
            found = list(np.ascontiguousarray(np.unique(both, axis=0).T))
        return found if len(found[0]) <= most else None

    def indexed(self, folder: Folder, most: int) -> tuple[Columns | None, list[_NewIndex]]:
        """Index the file by all columns of `build`; return the matching rows and the indexes."""
        columns = read_file(self.file, self.width + self.file.stamped)
        written = {column: write_index(folder, self.file, columns, column) for column in self.build}
        columns = columns[: self.width]
        new = [(self.file.path, column, index) for column, index in written.items() if index]
        found = _chosen(columns, self.wants)
        return found if len(found[0]) <= most else None, new


# The path of a file, a column, and the index of the file by it.
_NewIndex = tuple[str, int, DataFile]


@dataclass(frozen=True)
class _LookupTask:
    """The input of a task: lookups in files, and the maximum number of matching rows."""

    lookups: tuple[_FileLookup, ...]
    most: int
    folder: Folder


@dataclass(frozen=True)
class _Found:
    """The result of a task: the matching rows by file, None if they are too many, and new indexes."""

    rows: list[tuple[str, Columns]] | None
    indexes: list[_NewIndex]


def look_up(task: _LookupTask) -> _Found:
    """Look up rows."""
    rows: list[tuple[str, Columns]] = []
    indexes: list[_NewIndex] = []
    left = task.most
    for lookup in task.lookups:
        if lookup.build:
            columns, new = lookup.indexed(task.folder, left)
            indexes += new
        else:
            columns = lookup.rows(left)
        if columns is None:
            return _Found(None, indexes)
        if len(columns[0]):
            left -= len(columns[0])
            rows.append((lookup.file.path, columns))
    return _Found(rows, indexes)


def _chosen(columns: Columns, wants: Wants) -> Columns:
    """Return the rows that match."""
    mask = np.zeros(len(columns[0]), np.bool_)
    for names, values in wants.items():
        mask |= _Test.of(names, values).mask(dict(enumerate(columns)), len(mask))
    return [column[mask] for column in columns]


def matching(
    path: str, width: int, wants: Wants, most: int, groups: tuple[int, int] | None = None
) -> Columns | None:
    """Return the matching rows of a file; None if they are more than `most`."""
    names = [f"c{n}" for n in range(width)]
    tests = [_Test.of(columns, values) for columns, values in wants.items()]
    # Most row groups have no match: the remaining columns are read only if there is one.
    tested = sorted({n for columns in wants for n in columns})
    untested = [n for n in range(width) if n not in tested]
    pieces: list[Columns] = []
    with parquet_file(path) as file:

        def read(number: int, selected: Sequence[int]) -> dict[int, Keys]:
            table = file.read_row_group(number, [names[n] for n in selected])
            return {n: column.to_numpy() for n, column in zip(selected, table.columns, strict=True)}

        first, end = groups or (0, file.num_row_groups)
        for number in sorted(_groups_with(file, wants).intersection(range(first, end))):
            columns = read(number, tested)
            chosen = np.zeros(file.metadata.row_group(number).num_rows, np.bool_)
            count_read(len(chosen))
            for test in tests:
                chosen |= test.mask(columns, len(chosen))
            if chosen.any():
                columns |= read(number, untested)
                pieces.append([columns[n][chosen] for n in range(width)])
                most -= len(pieces[-1][0])
                if most < 0:
                    return None
    if not pieces:
        return [np.zeros(0, np.int64) for _ in names]
    return [np.concatenate(column) for column in zip(*pieces, strict=True)]


def _groups_with(file: ParquetFile, wants: Wants) -> set[int]:
    """Return the row groups that may have matching rows: those of a class are together."""
    numbers: set[int] = set()
    for columns, values in wants.items():
        here = set(range(file.num_row_groups))
        for n, column in enumerate(columns):
            keys = np.unique(np.array([row[n] for row in values], np.int64))
            here.intersection_update(groups_where(file, f"c{column}", among(keys)))
        numbers |= here
    return numbers


@dataclass(frozen=True)
class _Test:
    """A test whether rows have one of several values in some columns."""

    columns: tuple[int, ...]
    values: set[tuple[int, ...]]
    each: tuple[pa.Array, ...]
    """The values of each column."""

    @classmethod
    def of(cls, columns: tuple[int, ...], values: set[tuple[int, ...]]) -> _Test:
        each = (pa.array({row[n] for row in values}, pa.int64()) for n in range(len(columns)))
        return cls(columns, values, tuple(each))

    def mask(self, data: Mapping[int, Keys], rows: int) -> NDArray[np.bool_]:
        """Return for each row whether it has one of the values."""
        mask = np.ones(rows, np.bool_)
        for column, values in zip(self.columns, self.each, strict=True):
            mask &= _among(data[column], values)
        if len(self.columns) > 1 and len(self.values) > 1:
            positions = np.flatnonzero(mask)
            listed = zip(*(data[column][positions].tolist() for column in self.columns), strict=True)
            mask[positions] = [row in self.values for row in listed]
        return mask


def _among(column: Keys, values: pa.Array) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = pc.is_in(pa.array(column), values).to_numpy(zero_copy_only=False)
    return mask


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
            chosen = _among(columns[1], pa.array(classes, pa.int64()))
            return [column[chosen] for column in columns]
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
        few: list[_FileLookup] = []
        more: list[_FileLookup] = []
        for lookup in lookups:
            (more if lookup.by_index or lookup.file.rows >= INDEXED_FILE else few).append(lookup)
        found = look_up(_LookupTask(tuple(more), self.most, self.workspace.scratch.folder))
        by_path = {file.path: file for file in files}
        for path, column, index in found.indexes:
            self.workspace.add_index(by_path[path], column, index)
        if found.rows is None:
            raise TooManyError(source)
        fresh: dict[str, set[Row]] = {}
        of_few = ((lookup.file.path, _chosen(self._all_rows(lookup), lookup.wants)) for lookup in few)
        for path, columns in (*found.rows, *of_few):
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
            results = [look_up(task) for task in inputs]
        else:
            self.jobs += 1
            why = "looking up rows that a change may affect"
            results = self.workspace.jobs.each(look_up, inputs, why, self.yield_point)
        files = {file.path: file for pairs in lookups.values() for file, _ in pairs}
        for found in results:
            for path, column, index in found.indexes:
                self.workspace.add_index(files[path], column, index)
        for (source, _), found in zip(tasks, results, strict=True):
            if found.rows is None:
                raise TooManyError(source)
            for path, columns in found.rows:
                self._add_rows(source, path, columns)

    def _are_small(self, lookups: Sequence[_FileLookup]) -> bool:
        """Whether the driver reads the rows itself."""
        scanned = sum(lookup.cost for lookup in lookups if not lookup.by_index)
        by_index = sum(lookup.cost for lookup in lookups if lookup.by_index)
        if by_index and not self.workspace.scratch.folder.is_here:
            return False
        few = self.workspace.options.whole_rows * _SCANNED
        return scanned <= few and by_index <= _MOST_IN_DRIVER

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
        folder = self.workspace.scratch.folder
        new_task = partial(_LookupTask, most=self._limit - self.count, folder=folder)
        waiting: list[_FileLookup] = []
        rows = 0
        for lookup in self._lookups(source, pairs):
            if lookup.cost > _ROWS_AT_ONCE and not lookup.build:
                with parquet_file(lookup.file.path) as opened_file:
                    count = opened_file.num_row_groups
                for first in range(0, count, _GROUPS_AT_ONCE):
                    groups = (first, min(first + _GROUPS_AT_ONCE, count))
                    yield new_task((lookup._replace(groups=groups),))
                continue
            waiting.append(lookup)
            rows += lookup.cost
            if rows > _ROWS_AT_ONCE:
                yield new_task(tuple(waiting))
                waiting, rows = [], 0
        if waiting:
            yield new_task(tuple(waiting))

    def _lookups(self, source: Source, pairs: list[tuple[DataFile, Wants]]) -> Iterator[_FileLookup]:
        """Plan the lookup in each file: by its indexes, or reading and perhaps indexing it."""
        width = self.width(source)
        divided: dict[tuple[int, frozenset[int]], Mapping[int, Wants]] = {}
        # Many files of a large relation are no quicker to read than one.
        large = sum(file.rows for file, _ in pairs) >= INDEXED_FROM
        for file, wants in pairs:
            indexes = {
                column: index_of(file, index, width)
                for column, index in self.workspace.indexes_of(file).items()
            }
            plan = id(wants), frozenset(indexes)
            if plan not in divided:
                divided[plan] = _divided(wants, indexes)
            by_index = divided[plan]
            # Of so many keys that nearly all groups are read, the file itself is quicker.
            if not by_index or _rows_by_index(by_index, indexes) * 2 > file.rows:
                build: tuple[int, ...] = ()
                if large and not by_index and INDEXED_FILE <= file.rows <= MOST_INDEXED:
                    build = _to_index(source, wants, indexes)
                yield _FileLookup(file, width, wants, {}, indexes, build)
            else:
                yield _FileLookup(file, width, wants, by_index, indexes)

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


def _divided(wants: Wants, indexed: Mapping[int, Index]) -> dict[int, Wants]:
    """Divide values among the indexes in which to look them up; empty if some have no index.

    Of several indexes a row is looked up in that where its share of the rows that are read is the least: it
    may share its key with others, and keys of a column may have many rows.
    """
    by_index: dict[int, Wants] = {}
    for columns, values in wants.items():
        usable = [n for n, column in enumerate(columns) if column in indexed]
        if not usable:
            return {}
        rows = list(values)
        array = np.array(rows, np.int64)
        sharing = []
        for n in usable:
            _, positions, counts = np.unique(array[:, n], return_inverse=True, return_counts=True)
            sharing.append(counts[positions] * indexed[columns[n]].filled)
        for row, best in zip(rows, np.argmax(sharing, axis=0).tolist(), strict=True):
            by_index.setdefault(columns[usable[best]], {}).setdefault(columns, set()).add(row)
    return by_index


def _rows_by_index(by_index: Mapping[int, Wants], indexes: Mapping[int, Index]) -> int:
    """Return about how many rows are read by indexes."""
    return sum(
        indexes[column].rows_for(
            len({row[columns.index(column)] for columns, values in wants.items() for row in values})
        )
        for column, wants in by_index.items()
    )


def _to_index(source: Source, wants: Wants, indexed: Collection[int]) -> tuple[int, ...]:
    """Return the columns to index a file by, so that the next lookup of this kind need not read it."""
    build: set[int] = set()
    for columns, values in wants.items():
        usable = indexable(source, columns)
        if usable and not {*indexed, *build} & set(usable):
            array = np.array(list(values), np.int64)
            build.add(column_for({column: array[:, columns.index(column)] for column in usable}))
    return tuple(sorted(build))
