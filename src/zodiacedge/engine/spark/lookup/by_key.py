"""Rows of large relations, looked up by key: what a small change may concern, and nothing else.

Whoever wants rows says which columns must have which values. The files of all owners are read where they are,
in stretches, by as many tasks as it takes; the rows that match come back, up to a number that is small by
construction. A file's rows are the same rows whoever owns it, so a content cut down file by file is the same
content cut down: what came, what went again, and in that order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from zodiacedge.engine.spark.cluster.task_files import located
from zodiacedge.engine.spark.storage.embedded_tables import Reader
from zodiacedge.engine.spark.storage.files import DataFile, Relation, SignedFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

    Columns = list[Keys]

Row = tuple["int | None", ...]
"""Terms by fingerprint; None where nobody knows yet."""
Source = Relation | str
"""A relation, or the key of a rule whose aggregate's rows are meant."""
Wants = dict[tuple[int, ...], set[tuple[int, ...]]]
"""By columns, the values that they must have; no column means all rows."""

# A task looks into so many row groups of a file, or into files of so many rows together.
_GROUPS_AT_ONCE = 16
_ROWS_AT_ONCE = 1 << 21
_WHOLE: Wants = {(): {()}}


class TooManyError(Exception):
    """More rows match than a small change may look at."""

    def __init__(self, source: Source) -> None:
        """Say of what."""
        super().__init__(source)
        self.source = source


class _Stretch(NamedTuple):
    """A part of a file, and what is wanted of it."""

    path: str
    width: int
    groups: tuple[int, int] | None
    wants: Wants


@dataclass(frozen=True)
class _Bundle:
    """What one task looks into."""

    stretches: tuple[_Stretch, ...]
    most: int


def look(bundle: _Bundle) -> list[tuple[str, Columns]] | None:
    """Return the rows that are wanted, by file; None if they are too many."""
    found = []
    left = bundle.most
    for stretch in bundle.stretches:
        columns = matching(stretch.path, stretch.width, stretch.wants, left, stretch.groups)
        if columns is None:
            return None
        if len(columns[0]):
            left -= len(columns[0])
            found.append((stretch.path, columns))
    return found


def matching(
    path: str, width: int, wants: Wants, most: int, groups: tuple[int, int] | None = None
) -> Columns | None:
    """Return the rows of a file that are wanted; None if they are more than `most`."""
    names = [f"c{n}" for n in range(width)]
    tests = [_Test.of(columns, values) for columns, values in wants.items()]
    # Most row groups have nothing: what no test looks at is read only where there is something.
    looked_at = sorted({n for columns in wants for n in columns})
    others = [n for n in range(width) if n not in looked_at]
    pieces: list[Columns] = []
    system, place = located(path)
    with system.open_input_file(place) as source:
        file = pq.ParquetFile(source)

        def read(number: int, some: Sequence[int]) -> dict[int, Keys]:
            table = file.read_row_group(number, [names[n] for n in some])
            return {n: column.to_numpy() for n, column in zip(some, table.columns, strict=True)}

        for number in range(*(groups or (0, file.num_row_groups))):
            columns = read(number, looked_at)
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
        """Tell of each row whether it has some of the values."""
        found = np.ones(rows, np.bool_)
        for number, (column, values) in enumerate(zip(self.columns, self.sorted, strict=True)):
            if not number:
                found = _among(given[column], values)
                continue
            places = np.flatnonzero(found)
            found[places] = _among(given[column][places], values)
        if len(self.columns) > 1 and len(self.values) > 1:
            places = np.flatnonzero(found)
            listed = zip(*(given[column][places].tolist() for column in self.columns), strict=True)
            found[places] = [row in self.values for row in listed]
        return found


def _among(column: Keys, values: Keys) -> NDArray[np.bool_]:
    if len(values) == 1:
        same: NDArray[np.bool_] = column == values[0]
        return same
    places = np.searchsorted(values, column)
    places[places == len(values)] = 0
    found: NDArray[np.bool_] = values[places] == column
    return found


class SliceReader(Reader):
    """Reads contents of which only some rows of each file are there."""

    def __init__(self, rows: Mapping[str, Columns]) -> None:
        """Take the rows by file; a file that is not among them has none."""
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
class Slice:
    """What was looked up so far."""

    workspace: Workspace
    turn: YieldPoint
    contents: Callable[[Source], Sequence[SignedFiles]]
    """All contents of a source, of whichever owner, before the change or after it."""
    width: Callable[[Source], int]
    rows: dict[str, Columns] = field(default_factory=dict)
    """The rows that were found, by file."""
    jobs: int = 0
    count: int = 0
    _asked: dict[Source, Wants] = field(default_factory=dict)
    _tuples: dict[str, frozenset[Row]] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """How many rows may be looked up, all together."""
        return self.workspace.options.driver_rows

    def covers(self, source: Source, columns: tuple[int, ...], values: tuple[int, ...]) -> bool:
        """Whether all rows that have some values are there."""
        asked = self._asked.get(source)
        if asked is None:
            return not any(content.layers for content in self.contents(source))
        return any(
            set(some) <= set(columns) and tuple(values[columns.index(n)] for n in some) in there
            for some, there in asked.items()
        )

    def held(self, content: SignedFiles) -> set[Row]:
        """Return the rows of a content that were found."""
        found: set[Row] = set()
        for came, part in content.layers:
            if came:
                found |= self._listed(part)
            else:
                found -= self._listed(part)
        return found

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

        Where there are too many nothing was looked up, and TooManyError is raised.
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
        for source, path, columns in self._here(stretches) if small else self._there(stretches):
            self._take(source, path, columns)

    def _extended(self, source: Source, wants: Wants) -> Wants:
        """Note what is asked for; small relations are read whole, and never asked again."""
        stored = sum(part.rows for part in self._parts(source))
        if stored <= self.workspace.options.whole_rows or () in wants:
            if stored > self.most - self.count:
                raise TooManyError(source)
            self._asked[source] = dict(_WHOLE)
            return _WHOLE
        asked = self._asked.setdefault(source, {})
        for columns, values in wants.items():
            asked[columns] = asked.get(columns, set()) | values
        return wants

    def _parts(self, source: Source) -> Iterable[DataFile]:
        found = (part for content in self.contents(source) for part in content.parts)
        return {part.path: part for part in found if part.rows}.values()

    def _here(
        self, stretches: Mapping[Source, list[tuple[DataFile, Wants]]]
    ) -> Iterator[tuple[Source, str, Columns]]:
        for source, pieces in stretches.items():
            for part, wants in pieces:
                columns = matching(part.path, self.width(source), wants, self.most - self.count)
                if columns is None:
                    raise TooManyError(source)
                yield source, part.path, columns

    def _there(
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
        found = self.workspace.jobs.each(look, bundles, "looking up what a change may concern", self.turn)
        for source, rows in zip(owners, found, strict=True):
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
        there = self.rows.get(path)
        before = len(there[0]) if there is not None else 0
        if there is not None:
            # A row may be wanted for more than one reason.
            both = [np.concatenate(pair) for pair in zip(there, columns, strict=True)]
            kept = np.unique(np.stack(both, axis=1), axis=0, return_index=True)[1]
            columns = [column[kept] for column in both]
        self.rows[path] = columns
        self._tuples.pop(path, None)
        self.count += len(columns[0]) - before
        if self.count > self.most:
            raise TooManyError(source)


def _groups(part: DataFile) -> int:
    system, place = located(part.path)
    with system.open_input_file(place) as source:
        return int(pq.ParquetFile(source).num_row_groups)


def _narrowed(part: DataFile, wants: Wants) -> Wants:
    """Return what is wanted of a file; of members, only what classes it has."""
    if not part.classes:
        return wants
    found: Wants = {}
    for columns, values in wants.items():
        chosen = values
        if 1 in columns:
            place = columns.index(1)
            chosen = {one for one in values if one[place] in part.classes}
        if chosen:
            found[columns] = chosen
    return found
