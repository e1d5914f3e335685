"""Lookup of rows of large relations by key: only the rows that a small change may affect.

A lookup gives values for columns. Tasks read the files of all owners and return the matching rows, up to a
limit. Since each file is filtered on its own, the matching rows keep the signs and the order of the files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader
from zodiacedge.engine.spark.storage.files import DataFile, Relation, SignedFiles, parquet_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

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

# A task reads so many row groups of one file, or files with so many rows in total.
_GROUPS_AT_ONCE = 16
_ROWS_AT_ONCE = 1 << 21
_ALL: Wants = {(): {()}}


class TooManyError(Exception):
    """More rows match than a small change may look up."""

    def __init__(self, source: Source) -> None:
        """Take the source of the rows."""
        super().__init__(source)
        self.source = source


class _FileLookup(NamedTuple):
    """Row groups of a file, None for all, and the values to look up in them."""

    path: str
    width: int
    groups: tuple[int, int] | None
    wants: Wants


@dataclass(frozen=True)
class _LookupTask:
    """The input of a task: lookups in files, and the maximum number of matching rows."""

    lookups: tuple[_FileLookup, ...]
    most: int


def look_up(task: _LookupTask) -> list[tuple[str, Columns]] | None:
    """Return the matching rows by file; None if they are too many."""
    rows = []
    left = task.most
    for lookup in task.lookups:
        columns = matching(lookup.path, lookup.width, lookup.wants, left, lookup.groups)
        if columns is None:
            return None
        if len(columns[0]):
            left -= len(columns[0])
            rows.append((lookup.path, columns))
    return rows


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

        for number in range(*(groups or (0, file.num_row_groups))):
            columns = read(number, tested)
            chosen = np.zeros(file.metadata.row_group(number).num_rows, np.bool_)
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
    rows: dict[str, Columns] = field(default_factory=dict)
    """The matching rows by file."""
    jobs: int = 0
    count: int = 0
    _requested: dict[Source, Wants] = field(default_factory=dict)
    _tuples: dict[str, frozenset[Row]] = field(default_factory=dict)

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
        rows: set[Row] = set()
        for plus, file in content.layers:
            if plus:
                rows |= self._listed(file)
            else:
                rows -= self._listed(file)
        return rows

    def _listed(self, file: DataFile) -> frozenset[Row]:
        if file.path not in self.rows:
            return frozenset()
        if file.path not in self._tuples:
            columns = (column.tolist() for column in self.rows[file.path])
            self._tuples[file.path] = frozenset(zip(*columns, strict=True))
        return self._tuples[file.path]

    def fetch(self, wanted: Mapping[Source, Wants]) -> None:
        """Look up rows, in one job unless the files are small.

        If too many rows match, raise TooManyError without effect.
        """
        requested = {source: dict(wants) for source, wants in self._requested.items()}
        before = dict(self.rows), self.count, requested
        try:
            self._fetch(wanted)
        except TooManyError:
            self.rows, self.count, self._requested = before
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
        total = sum(file.rows for pairs in lookups.values() for file, _ in pairs)
        if total <= min(self.workspace.options.whole_rows, self.most - self.count):
            results = [look_up(task) for _, task in tasks]
        else:
            self.jobs += 1
            why = "looking up rows that a change may affect"
            inputs = [task for _, task in tasks]
            results = self.workspace.jobs.each(look_up, inputs, why, self.yield_point)
        for (source, _), rows in zip(tasks, results, strict=True):
            if rows is None:
                raise TooManyError(source)
            for path, columns in rows:
                self._add_rows(source, path, columns)

    def _request(self, source: Source, wants: Wants) -> Wants:
        """Record and return the values to look up; of a small relation, all rows."""
        stored = sum(file.rows for file in self._files(source))
        if stored <= self.workspace.options.whole_rows or () in wants:
            if stored > self.most - self.count:
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
        new_task = partial(_LookupTask, most=self.most - self.count)
        width = self.width(source)
        waiting: list[_FileLookup] = []
        rows = 0
        for file, wants in pairs:
            if file.rows > _ROWS_AT_ONCE:
                with parquet_file(file.path) as opened:
                    count = opened.num_row_groups
                for first in range(0, count, _GROUPS_AT_ONCE):
                    groups = (first, min(first + _GROUPS_AT_ONCE, count))
                    yield new_task((_FileLookup(file.path, width, groups, wants),))
                continue
            waiting.append(_FileLookup(file.path, width, None, wants))
            rows += file.rows
            if rows > _ROWS_AT_ONCE:
                yield new_task(tuple(waiting))
                waiting, rows = [], 0
        if waiting:
            yield new_task(tuple(waiting))

    def _add_rows(self, source: Source, path: str, columns: Columns) -> None:
        known = self.rows.get(path)
        before = len(known[0]) if known is not None else 0
        if known is not None:
            # A row may match several lookups.
            both = [np.concatenate(pair) for pair in zip(known, columns, strict=True)]
            kept = np.unique(np.stack(both, axis=1), axis=0, return_index=True)[1]
            columns = [column[kept] for column in both]
        self.rows[path] = columns
        self._tuples.pop(path, None)
        self.count += len(columns[0]) - before
        if self.count > self.most:
            raise TooManyError(source)


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
