"""Lookup of rows of large relations by key: the rows that a small change may concern, and no others.

A lookup names columns and the values that they must have. Tasks read the files of all owners and return the
rows that match, up to a small number. Filtering each of the signed files gives the signed files of the
matching rows, in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from zodiacedge.engine.spark.cluster.task_files import located
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader
from zodiacedge.engine.spark.storage.files import DataFile, Relation, SignedFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

    Columns = list[Keys]

Row = tuple["int | None", ...]
"""Fingerprints of terms; None where a term is not known yet."""
Source = Relation | str
"""A relation, or the key of a rule for the rows of its aggregate."""
Wants = dict[tuple[int, ...], set[tuple[int, ...]]]
"""The values that columns must have, by columns; no column means all rows."""

# A task reads so many row groups of a file, or files of so many rows together.
_GROUPS_AT_ONCE = 16
_ROWS_AT_ONCE = 1 << 21
_ALL: Wants = {(): {()}}


class TooManyError(Exception):
    """More rows match than a small change may look at."""

    def __init__(self, source: Source) -> None:
        """Say of what."""
        super().__init__(source)
        self.source = source


class _Stretch(NamedTuple):
    """Row groups of a file, and the values that are looked up in them."""

    path: str
    width: int
    groups: tuple[int, int] | None
    wants: Wants


@dataclass(frozen=True)
class _Bundle:
    """A task: stretches of files."""

    stretches: tuple[_Stretch, ...]
    most: int


def look(bundle: _Bundle) -> list[tuple[str, Columns]] | None:
    """Return the matching rows by file; None if they are too many."""
    rows = []
    left = bundle.most
    for stretch in bundle.stretches:
        columns = matching(stretch.path, stretch.width, stretch.wants, left, stretch.groups)
        if columns is None:
            return None
        if len(columns[0]):
            left -= len(columns[0])
            rows.append((stretch.path, columns))
    return rows


def matching(
    path: str, width: int, wants: Wants, most: int, groups: tuple[int, int] | None = None
) -> Columns | None:
    """Return the matching rows of a file; None if they are more than `most`."""
    names = [f"c{n}" for n in range(width)]
    tests = [_Test.of(columns, values) for columns, values in wants.items()]
    # Most row groups have no match: the other columns are read only where there is one.
    tested = sorted({n for columns in wants for n in columns})
    others = [n for n in range(width) if n not in tested]
    pieces: list[Columns] = []
    system, inner_path = located(path)
    with system.open_input_file(inner_path) as source:
        file = pq.ParquetFile(source)

        def read(number: int, some: Sequence[int]) -> dict[int, Keys]:
            table = file.read_row_group(number, [names[n] for n in some])
            return {n: column.to_numpy() for n, column in zip(some, table.columns, strict=True)}

        for number in range(*(groups or (0, file.num_row_groups))):
            columns = read(number, tested)
            chosen = np.zeros(file.metadata.row_group(number).num_rows, np.bool_)
            for test in tests:
                chosen |= test.mask(columns, len(chosen))
            if chosen.any():
                columns |= read(number, others)
                pieces.append([columns[n][chosen] for n in range(width)])
                most -= len(pieces[-1][0])
                if most < 0:
                    return None
    if not pieces:
        return [np.zeros(0, np.int64) for _ in names]
    return [np.concatenate(column) for column in zip(*pieces, strict=True)]


@dataclass(frozen=True)
class _Test:
    columns: tuple[int, ...]
    values: set[tuple[int, ...]]
    sorted: tuple[Keys, ...]

    @classmethod
    def of(cls, columns: tuple[int, ...], values: set[tuple[int, ...]]) -> _Test:
        each = tuple(np.unique(np.array([v[n] for v in values], np.int64)) for n in range(len(columns)))
        return cls(columns, values, each)

    def mask(self, given: Mapping[int, Keys], rows: int) -> NDArray[np.bool_]:
        """Tell of each row whether it has one of the values."""
        mask = np.ones(rows, np.bool_)
        for number, (column, values) in enumerate(zip(self.columns, self.sorted, strict=True)):
            if not number:
                mask = _among(given[column], values)
                continue
            positions = np.flatnonzero(mask)
            mask[positions] = _among(given[column][positions], values)
        if len(self.columns) > 1 and len(self.values) > 1:
            positions = np.flatnonzero(mask)
            listed = zip(*(given[column][positions].tolist() for column in self.columns), strict=True)
            mask[positions] = [row in self.values for row in listed]
        return mask


def _among(column: Keys, values: Keys) -> NDArray[np.bool_]:
    if len(values) == 1:
        same: NDArray[np.bool_] = column == values[0]
        return same
    positions = np.searchsorted(values, column)
    positions[positions == len(values)] = 0
    mask: NDArray[np.bool_] = values[positions] == column
    return mask


class SliceReader(SignedFileReader):
    """Reads the rows of signed files that were looked up."""

    def __init__(self, rows: Mapping[str, Columns]) -> None:
        """Take the rows by file; a file without an entry has none."""
        super().__init__()
        self._rows = rows

    def _part(self, part: DataFile, relation: Relation, classes: frozenset[int] | None) -> Columns:
        columns = self._rows.get(part.path)
        if columns is None:
            return [np.zeros(0, np.int64) for _ in range(relation.width)]
        if classes is not None:
            chosen = _among(columns[1], np.array(sorted(classes), np.int64))
            return [column[chosen] for column in columns]
        return columns


@dataclass
class RowSlice:
    """The rows looked up so far."""

    workspace: Workspace
    yield_point: YieldPoint
    contents: Callable[[Source], Sequence[SignedFiles]]
    """Returns the files of a source, of all owners, before the change and after it."""
    width: Callable[[Source], int]
    rows: dict[str, Columns] = field(default_factory=dict)
    """The matching rows by file."""
    jobs: int = 0
    count: int = 0
    _asked: dict[Source, Wants] = field(default_factory=dict)
    _tuples: dict[str, frozenset[Row]] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """How many rows may be looked up in all."""
        return self.workspace.options.driver_rows

    def covers(self, source: Source, columns: tuple[int, ...], values: tuple[int, ...]) -> bool:
        """Whether all rows with the given values were looked up."""
        asked = self._asked.get(source)
        if asked is None:
            return not any(content.layers for content in self.contents(source))
        return any(
            set(known) <= set(columns) and tuple(values[columns.index(n)] for n in known) in known_values
            for known, known_values in asked.items()
        )

    def held(self, content: SignedFiles) -> set[Row]:
        """Return the rows that signed files come to, among those looked up."""
        rows: set[Row] = set()
        for plus, part in content.layers:
            if plus:
                rows |= self._listed(part)
            else:
                rows -= self._listed(part)
        return rows

    def _listed(self, part: DataFile) -> frozenset[Row]:
        if part.path not in self.rows:
            return frozenset()
        if part.path not in self._tuples:
            columns = (column.tolist() for column in self.rows[part.path])
            self._tuples[part.path] = frozenset(zip(*columns, strict=True))
        return self._tuples[part.path]

    # Looking up.

    def fetch(self, wanted: Mapping[Source, Wants]) -> None:
        """Look up rows: no job if the files are small, else one.

        Raise TooManyError, and look nothing up, if too many rows match.
        """
        before = dict(self.rows), self.count, {source: dict(one) for source, one in self._asked.items()}
        try:
            self._fetch(wanted)
        except TooManyError:
            self.rows, self.count, self._asked = before
            self._tuples.clear()
            raise

    def _fetch(self, wanted: Mapping[Source, Wants]) -> None:
        stretches: dict[Source, list[tuple[DataFile, Wants]]] = {}
        for source, wants in wanted.items():
            chosen = self._extended(source, wants)
            stretches[source] = [
                (part, narrowed) for part in self._parts(source) if (narrowed := _narrowed(part, chosen))
            ]
        total = sum(part.rows for pieces in stretches.values() for part, _ in pieces)
        small = total <= min(self.workspace.options.whole_rows, self.most - self.count)
        for source, path, columns in self._by_driver(stretches) if small else self._by_tasks(stretches):
            self._take(source, path, columns)

    def _extended(self, source: Source, wants: Wants) -> Wants:
        """Note what is looked up; small relations are read as a whole, and only once."""
        stored = sum(part.rows for part in self._parts(source))
        if stored <= self.workspace.options.whole_rows or () in wants:
            if stored > self.most - self.count:
                raise TooManyError(source)
            self._asked[source] = dict(_ALL)
            return _ALL
        asked = self._asked.setdefault(source, {})
        for columns, values in wants.items():
            asked[columns] = asked.get(columns, set()) | values
        return wants

    def _parts(self, source: Source) -> Iterable[DataFile]:
        parts = (part for content in self.contents(source) for part in content.parts)
        return {part.path: part for part in parts if part.rows}.values()

    def _by_driver(
        self, stretches: Mapping[Source, list[tuple[DataFile, Wants]]]
    ) -> Iterator[tuple[Source, str, Columns]]:
        for source, pieces in stretches.items():
            for part, wants in pieces:
                columns = matching(part.path, self.width(source), wants, self.most - self.count)
                if columns is None:
                    raise TooManyError(source)
                yield source, part.path, columns

    def _by_tasks(
        self, stretches: Mapping[Source, list[tuple[DataFile, Wants]]]
    ) -> Iterator[tuple[Source, str, Columns]]:
        bundles, owners = [], []
        for source, pieces in stretches.items():
            for bundle in self._bundles(source, pieces):
                bundles.append(bundle)
                owners.append(source)
        if not bundles:
            return
        self.jobs += 1
        results = self.workspace.jobs.each(
            look, bundles, "looking up what a change may concern", self.yield_point
        )
        for source, rows in zip(owners, results, strict=True):
            if rows is None:
                raise TooManyError(source)
            for path, columns in rows:
                yield source, path, columns

    def _bundles(self, source: Source, pieces: list[tuple[DataFile, Wants]]) -> Iterator[_Bundle]:
        made = partial(_Bundle, most=self.most - self.count)
        width = self.width(source)
        waiting: list[_Stretch] = []
        rows = 0
        for part, wants in pieces:
            if part.rows > _ROWS_AT_ONCE:
                groups = _groups(part)
                for first in range(0, groups, _GROUPS_AT_ONCE):
                    some = (first, min(first + _GROUPS_AT_ONCE, groups))
                    yield made((_Stretch(part.path, width, some, wants),))
                continue
            waiting.append(_Stretch(part.path, width, None, wants))
            rows += part.rows
            if rows > _ROWS_AT_ONCE:
                yield made(tuple(waiting))
                waiting, rows = [], 0
        if waiting:
            yield made(tuple(waiting))

    def _take(self, source: Source, path: str, columns: Columns) -> None:
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


def _groups(part: DataFile) -> int:
    system, inner_path = located(part.path)
    with system.open_input_file(inner_path) as source:
        return int(pq.ParquetFile(source).num_row_groups)


def _narrowed(part: DataFile, wants: Wants) -> Wants:
    """Return the values to look up in a file; for `rdf:type`, only those with a class that the file has."""
    if not part.classes:
        return wants
    narrowed: Wants = {}
    for columns, values in wants.items():
        chosen = values
        if 1 in columns:
            position = columns.index(1)
            chosen = {row for row in values if row[position] in part.classes}
        if chosen:
            narrowed[columns] = chosen
    return narrowed
