"""Working files: Parquet files of fingerprints, in a scratch folder that lives as long as the process.

A relation is a name and an arity; class members are rows of `rdf:type` with two columns. The rows of one
owner in a relation are its `SignedFiles`: files that insert rows and files that delete rows, in order. A file
is immutable, written by a task or by the driver, and removed with the driver's last reference to it. Tasks
return paths and counts. The folder may be on any file system that Arrow supports and that the driver and all
executors can reach.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from zodiacedge.engine.api import SegmentChange
from zodiacedge.engine.spark.cluster.task_files import (
    LOCAL,
    REMOVAL_ERRORS,
    count_read,
    job_of_this_task,
    located,
    record_file,
    remove_files,
)
from zodiacedge.engine.spark.storage.indexes import write_index
from zodiacedge.engine.spark.storage.row_order import ordered
from zodiacedge.engine.spark.storage.scratch_owner import new_name, sweep
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.indexes import Index
    from zodiacedge.language.ast import Aggregate, Atom


_ROW_GROUP = 1 << 17
# So many rows of a file with an index are found together.
BLOCK = 1 << 11
_READ_AT_ONCE = 1 << 18
# At most so many values are looked up by a filter.
_FEW = 256


class Relation(NamedTuple):
    """The name and the arity of a relation."""

    name: str
    arity: int

    @classmethod
    def of(cls, atom: Atom) -> Relation:
        """Return the relation of an atom."""
        return cls(atom.relation, len(atom.args))

    @classmethod
    def of_rows(cls, aggregate: Aggregate | None) -> Relation:
        """Return the relation that holds the rows of a rule's aggregate; raise if the rule has none."""
        if aggregate is None:
            raise TypeError
        return cls("rows of an aggregate", len(aggregate.groups) + len(aggregate.folds))

    @property
    def width(self) -> int:
        """The number of columns of its files; a proposition has a dummy column."""
        return max(self.arity, 1)

    @property
    def with_stamps(self) -> Relation:
        """The relation of its rows with their stamps as a further argument."""
        # A name that no predicate of a user can have.
        return Relation(f"{self.name} with stamps", self.width + 1)

    @property
    def typed(self) -> bool:
        """Whether its rows are class members with their classes."""
        return self == TYPED


TYPED = Relation(RDF_TYPE, 2)


@dataclass(frozen=True, eq=False)
class DataFile:
    """A file of rows: its path, its row count, and for `rdf:type` the row count of each class."""

    path: str
    rows: int
    classes: Mapping[int, int] = field(default_factory=dict)
    index: Index | None = field(default=None, repr=False)
    """Of its terms by column, if it has more rows than a block (`indexes`)."""
    moments: DataFile | None = field(default=None, repr=False)
    """Of terms with moments among them, the file of these (`moments`)."""
    span: tuple[int, int] | None = None
    """Of terms with moments among them, the first and the last moment in microseconds."""
    stamped: bool = False
    """Whether each row has a stamp in a further column, the last (`maintain.stamped_task`)."""


@dataclass(frozen=True)
class SignedFiles:
    """The rows of one owner in a relation: files that insert rows and files that delete rows, in order."""

    layers: tuple[tuple[bool, DataFile], ...] = ()
    """Each file with its sign: true for plus, false for minus."""

    @classmethod
    def of(cls, *files: DataFile) -> SignedFiles:
        """Return files of distinct rows with the sign plus."""
        return cls(tuple((True, file) for file in files if file.rows))

    @cached_property
    def rows(self) -> int:
        """The net number of rows."""
        return sum(file.rows if plus else -file.rows for plus, file in self.layers)

    @property
    def stored(self) -> int:
        """The number of rows in all files, inserted or deleted."""
        return sum(file.rows for _, file in self.layers)

    @property
    def plain(self) -> bool:
        """Whether no file deletes rows."""
        return all(plus for plus, _ in self.layers)

    @property
    def plus(self) -> list[DataFile]:
        """The files that insert rows."""
        return [file for plus, file in self.layers if plus]

    @property
    def minus(self) -> list[DataFile]:
        """The files that delete rows."""
        return [file for plus, file in self.layers if not plus]

    @property
    def parts(self) -> Iterator[DataFile]:
        """All files."""
        return (file for _, file in self.layers)

    @property
    def stamped(self) -> bool:
        """Whether all rows have stamps; a deleted row has that which it was inserted with."""
        return all(file.stamped for _, file in self.layers)

    @cached_property
    def classes(self) -> Mapping[int, int]:
        """The number of members of each class."""
        counts: dict[int, int] = {}
        for plus, file in self.layers:
            for name, count in file.classes.items():
                counts[name] = counts.get(name, 0) + (count if plus else -count)
        return {name: count for name, count in counts.items() if count}

    def adopted(self, adopt: Callable[[DataFile], DataFile]) -> SignedFiles:
        """Return the same files, each replaced by the result of `adopt`."""
        return SignedFiles(tuple((plus, adopt(file)) for plus, file in self.layers))

    def moved(self, after: SignedFiles) -> tuple[list[DataFile], list[DataFile]]:
        """Return the files of the rows inserted and of those deleted up to a later version.

        A row may be on both sides; then its net count decides.
        """
        ours, theirs = set(self.layers), set(after.layers)
        new = SignedFiles(tuple(layer for layer in after.layers if layer not in ours))
        old = SignedFiles(tuple(layer for layer in self.layers if layer not in theirs))
        return new.plus + old.minus, new.minus + old.plus

    def counted(self, after: SignedFiles) -> SegmentChange | None:
        """Count the rows inserted and deleted up to a later version; None if that needs reading files."""
        if after.layers[: len(self.layers)] == self.layers:
            new = SignedFiles(after.layers[len(self.layers) :])
            if new.stamped and new.plus and new.minus:
                # A row with a new stamp is on both sides.
                return None
            return SegmentChange(*(sum(file.rows for file in side) for side in (new.plus, new.minus)))
        return None if self.rows and after.rows else SegmentChange(after.rows, self.rows)

    def then(self, plus: Iterable[DataFile] = (), minus: Iterable[DataFile] = ()) -> SignedFiles:
        """Return these files followed by deletes of existing rows and inserts of new ones."""
        deletes = tuple((False, file) for file in minus if file.rows)
        inserts = tuple((True, file) for file in plus if file.rows)
        return SignedFiles((*self.layers, *deletes, *inserts))


@dataclass(frozen=True)
class Segment:
    """The files of one owner: explicit facts, or a node's facts and its aggregate rows by rule."""

    contents: Mapping[Relation, SignedFiles] = field(default_factory=dict)
    aggregate_rows: Mapping[str, SignedFiles] = field(default_factory=dict)
    stamped: bool = False
    """Whether the stamps of its facts hold for the rules of its node (`maintain.stamped_task`)."""

    @property
    def rows(self) -> int:
        """The number of facts."""
        return sum(content.rows for content in self.contents.values())

    def content(self, relation: Relation) -> SignedFiles:
        """Return the files of a relation."""
        return self.contents.get(relation, SignedFiles())

    @property
    def parts(self) -> Iterator[DataFile]:
        """All files."""
        for content in (*self.contents.values(), *self.aggregate_rows.values()):
            yield from content.parts


# Segments by owner: explicit facts under None, nodes under the keys of their rules.
Owners = Mapping["frozenset[str] | None", Segment]


def held(owners: Iterable[Segment]) -> dict[Relation, list[SignedFiles]]:
    """Return the files of several owners by relation, without empty ones."""
    contents: dict[Relation, list[SignedFiles]] = {}
    for owner in owners:
        for relation, content in owner.contents.items():
            if content.rows:
                contents.setdefault(relation, []).append(content)
    return contents


class Folder(NamedTuple):
    """A folder that tasks write into; only the driver removes files."""

    uri: str
    block: int = BLOCK
    """How many rows of a file are a block of its index."""

    @property
    def is_here(self) -> bool:
        """Whether the folder is on a file system of this machine."""
        return located(self.uri)[0] is LOCAL

    def new_file(self, kind: str, ending: str = "") -> str:
        """Return the path of a new file; in a task it includes the name of the job."""
        job = job_of_this_task()
        path = f"{self.uri}/{kind}-{job and f'{job}-'}{uuid.uuid4().hex}{ending}"
        record_file(path)
        return path

    def write(
        self, table: pa.Table, kind: str, together: int = _ROW_GROUP, ascending: str | None = None
    ) -> str:
        """Write a table into a new file, so many rows together; return its path.

        The numbers in a column `ascending` are written as differences.
        """
        path = self.new_file(kind, ".parquet")
        system, inner_path = located(path)
        pq.write_table(
            table,
            inner_path,
            filesystem=system,
            row_group_size=together,
            compression="zstd",
            # Most fingerprints of a column differ: building a dictionary would dominate the write.
            use_dictionary=False,
            column_encoding={ascending: "DELTA_BINARY_PACKED"} if ascending else None,
        )
        return path

    def write_rows(self, relation: Relation, columns: Sequence[Keys]) -> DataFile:
        """Write rows of a relation, given as columns, without an index; class members are sorted by class.

        One column more than the relation has are the stamps of the rows.
        """
        if relation.typed:
            order = np.argsort(columns[1], kind="stable")
            columns = [column[order] for column in columns]
        return self._rows(relation, columns, _ROW_GROUP)

    def write_indexed(self, relation: Relation, columns: Sequence[Keys]) -> DataFile:
        """Write rows of a relation, given as columns, in an order of their own, and their index.

        One column more than the relation has are the stamps of the rows, which are not indexed.
        """
        if len(columns[0]) <= self.block:
            return self.write_rows(relation, columns)
        order = ordered(columns, relation.width, self.block, 1 if relation.typed else None)
        ascending = None if order.ascending is None else f"c{order.ascending}"
        file = self._rows(relation, order.columns, self.block, ascending)
        return replace(file, index=write_index(self, order))

    def write_pieces(self, relation: Relation, pieces: Sequence[Sequence[Keys]]) -> DataFile:
        """Write rows of a relation, given in pieces of columns, and their index."""
        if not pieces:
            return DataFile("", 0)
        return self.write_indexed(relation, [np.concatenate(column) for column in zip(*pieces, strict=True)])

    def _rows(
        self, relation: Relation, columns: Sequence[Keys], together: int, ascending: str | None = None
    ) -> DataFile:
        rows = len(columns[0])
        stamped = len(columns) > relation.width
        if not rows:
            return DataFile("", 0, stamped=stamped)
        classes: dict[int, int] = {}
        if relation.typed:
            names, counts = np.unique(columns[1], return_counts=True)
            classes = dict(zip(names.tolist(), counts.tolist(), strict=True))
        path = self.write(table_of(columns), "rows", together, ascending)
        return DataFile(path, rows, classes, stamped=stamped)


class ScratchFolder:
    """The engine's folder of working files; a file lives as long as its `DataFile` in the driver."""

    def __init__(self, uri: str = "") -> None:
        """Create the folder, in the system's temporary folder by default."""
        given = uri or tempfile.gettempdir()
        base = (given if "://" in given else str(Path(given).absolute())).rstrip("/")
        sweep(base)
        self.folder = Folder(f"{base}/{new_name()}", BLOCK)
        try:
            system, inner_path = located(self.folder.uri)
            system.create_dir(inner_path, recursive=True)
            if not uri:
                # As private as any temporary folder.
                Path(inner_path).chmod(0o700)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise _no_scratch(uri or self.folder.uri, self.folder.uri, error) from error
        weakref.finalize(self, _remove_folder, self.folder.uri)

    def adopt(self, file: DataFile) -> DataFile:
        """Remove a file when its `DataFile` is garbage-collected."""
        if file.path:
            beside = [other.path for other in (file.index, file.moments) if other is not None]
            finalizer = weakref.finalize(file, _remove, (file.path, *beside), self)
            # At exit the whole folder is removed.
            finalizer.atexit = False
        return file

    def remove_job_files(self, job: str) -> None:
        """Remove the files of a job that failed or was cancelled."""
        try:
            system, inner_path = located(self.folder.uri)
            files = system.get_file_info(fs.FileSelector(inner_path, allow_not_found=True))
        except REMOVAL_ERRORS:
            return
        remove_files(f"{self.folder.uri}/{file.base_name}" for file in files if job in file.base_name)


def table_of(columns: Sequence[Keys]) -> pa.Table:
    """Return columns of fingerprints as an Arrow table."""
    return pa.table({f"c{n}": pa.array(column, pa.int64()) for n, column in enumerate(columns)})


@contextmanager
def parquet_file(path: str) -> Iterator[pq.ParquetFile]:
    """Open a working file, and close it after a `with` block."""
    system, inner_path = located(path)
    with system.open_input_file(inner_path) as source:
        yield pq.ParquetFile(source)


def read_file(file: DataFile, width: int, classes: frozenset[int] | None = None) -> list[Keys]:
    """Read the columns of a file; for `rdf:type`, only the rows of given classes."""
    names = [f"c{n}" for n in range(width)]
    if classes is None or classes.issuperset(file.classes):
        table = read_table(file.path, names)
    else:
        wanted = np.array(sorted(classes.intersection(file.classes)), np.int64)
        if not len(wanted):
            return [np.zeros(0, np.int64) for _ in names]
        table = read_among(file.path, "c1", wanted, names)
    return [column.to_numpy() for column in table.columns]


def read_table(path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a working file."""
    with parquet_file(path) as file:
        count_read(file.metadata.num_rows)
        return file.read(columns)


def read_among(path: str, column: str, keys: Keys, columns: Sequence[str] | None = None) -> pa.Table:
    """Read the rows of a working file that have one of some sorted numbers in a column."""
    may = among(keys)
    if len(keys) <= _FEW:
        return _filtered(path, column, may, [(column, "in", keys.tolist())], columns)
    with parquet_file(path) as file:
        pieces = [file.schema_arrow.empty_table().select(columns or file.schema_arrow.names)]
        # Small row groups are read together, large ones one by one: the driver may read the file.
        largest = max((file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)), default=1)
        groups, together = list(groups_where(file, column, may)), max(1, _READ_AT_ONCE // max(largest, 1))
        for numbers in (groups[at : at + together] for at in range(0, len(groups), together)):
            chosen = np.isin(file.read_row_groups(numbers, [column]).column(0).to_numpy(), keys)
            count_read(len(chosen))
            if chosen.any():
                pieces.append(file.read_row_groups(numbers, columns).filter(pa.array(chosen)))
    return pa.concat_tables(pieces)


def read_between(path: str, column: str, first: int, last: int) -> pa.Table:
    """Read the rows of a working file whose number in a column is in a range, both ends included."""

    def may(least: int, greatest: int) -> bool:
        return least <= last and greatest >= first

    return _filtered(path, column, may, [(column, ">=", first), (column, "<=", last)])


def _filtered(
    path: str,
    column: str,
    may: Callable[[int, int], bool],
    filters: list[tuple[str, str, object]],
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Read the rows that pass filters; row groups that have none by their statistics are not read."""
    with parquet_file(path) as file:
        count_read(sum(file.metadata.row_group(n).num_rows for n in groups_where(file, column, may)))
    system, inner_path = located(path)
    return pq.read_table(inner_path, columns=columns, filters=filters, filesystem=system)


def among(keys: Keys) -> Callable[[int, int], bool]:
    """Return a test whether one of some sorted numbers is in a range, both ends included."""

    def test(least: int, greatest: int) -> bool:
        at = np.searchsorted(keys, least)
        return bool(at < len(keys) and keys[at] <= greatest)

    return test


def groups_where(file: pq.ParquetFile, column: str, may: Callable[[int, int], bool]) -> Iterator[int]:
    """Yield the numbers of the row groups whose least and greatest number of a column pass a test."""
    position = file.schema_arrow.get_field_index(column)
    for number in range(file.num_row_groups):
        statistics = file.metadata.row_group(number).column(position).statistics
        if statistics is None or not statistics.has_min_max or may(statistics.min, statistics.max):
            yield number


def read_batches(path: str, rows: int, equal: Mapping[int, int] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches of `rows`.

    Row groups that have none with the numbers that columns of fingerprints shall have are left out.
    """
    with parquet_file(path) as file:
        groups = set(range(file.num_row_groups))
        for column, key in (equal or {}).items():
            groups.intersection_update(groups_where(file, f"c{column}", among(np.array([key], np.int64))))
        for batch in file.iter_batches(rows, sorted(groups)):
            count_read(batch.num_rows)
            yield batch


def _no_scratch(named: str, folder: str, error: Exception) -> UsageProblem:
    """Return the problem of an unusable folder; the message names the folder as the user did."""
    number = error.errno if isinstance(error, OSError) else None
    reason = os.strerror(number).lower() if number else str(error).replace(folder, named)
    return UsageProblem(
        Diagnostic(
            "U016",
            f"the folder {named} cannot be used for working files: {reason}",
            "name one that the driver and all executors can write: scratch=…",
        )
    )


def _remove(paths: Iterable[str], scratch: ScratchFolder) -> None:
    del scratch  # the reference keeps the folder until its last file is removed
    remove_files(paths)


def _remove_folder(uri: str) -> None:
    system, inner_path = located(uri)
    if system is LOCAL:
        shutil.rmtree(inner_path, ignore_errors=True)
        return
    try:
        system.delete_dir(inner_path)
    except REMOVAL_ERRORS:
        return
