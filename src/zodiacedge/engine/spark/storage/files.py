"""Working files: rows of fingerprints in Parquet files, in a folder that lives as long as the process.

A relation is a name and a number of arguments; members of classes are `rdf:type` with two columns. The rows
of one owner in a relation are its `SignedFiles`: files that insert rows and files that delete rows, in order.
A file is written once, by a task or by the driver, and removed when the driver has no reference to it any
more. Tasks return names and counts. The folder may be anything that Arrow has a file system for and that
driver and executors see.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import uuid
import weakref
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from zodiacedge.engine.api import SegmentChange
from zodiacedge.engine.spark.cluster.task_files import GONE, JOB, LOCAL, located, note_file, remove_files
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.language.ast import Aggregate, Atom


_ROW_GROUP = 1 << 17


class Relation(NamedTuple):
    """A name and a number of arguments."""

    name: str
    arity: int

    @classmethod
    def of(cls, atom: Atom) -> Relation:
        """Return the relation that an atom is about."""
        return cls(atom.relation, len(atom.args))

    @classmethod
    def of_rows(cls, aggregate: Aggregate) -> Relation:
        """Return the relation that the rows of an aggregate are kept as."""
        return cls("rows of an aggregate", len(aggregate.groups) + len(aggregate.folds))

    @property
    def width(self) -> int:
        """How many columns its files have: a proposition has one that says nothing."""
        return max(self.arity, 1)

    @property
    def typed(self) -> bool:
        """Whether its rows are members and their classes."""
        return self == TYPED


TYPED = Relation(RDF_TYPE, 2)


@dataclass(frozen=True, eq=False)
class DataFile:
    """A file of rows: its path, the number of its rows, and for `rdf:type` the number of each class."""

    path: str
    rows: int
    classes: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SignedFiles:
    """The rows of one owner in a relation: files that insert rows and files that delete rows, in order."""

    layers: tuple[tuple[bool, DataFile], ...] = ()
    """Each file with its sign: true for plus, false for minus."""

    @classmethod
    def of(cls, *parts: DataFile) -> SignedFiles:
        """Return files whose rows are all different, with the sign plus."""
        return cls(tuple((True, part) for part in parts if part.rows))

    @cached_property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(part.rows if plus else -part.rows for plus, part in self.layers)

    @property
    def stored(self) -> int:
        """How many rows its files have."""
        return sum(part.rows for _, part in self.layers)

    @property
    def plain(self) -> bool:
        """Whether no file deletes rows."""
        return all(plus for plus, _ in self.layers)

    @property
    def plus(self) -> list[DataFile]:
        """The files that insert rows."""
        return [part for plus, part in self.layers if plus]

    @property
    def minus(self) -> list[DataFile]:
        """The files that delete rows."""
        return [part for plus, part in self.layers if not plus]

    @property
    def parts(self) -> Iterator[DataFile]:
        """All files."""
        return (part for _, part in self.layers)

    def classes(self) -> Mapping[int, int]:
        """Count the members of each class."""
        return self._classes

    @cached_property
    def _classes(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for plus, part in self.layers:
            for name, count in part.classes.items():
                found[name] = found.get(name, 0) + (count if plus else -count)
        return {name: count for name, count in found.items() if count}

    def adopted(self, adopt: Callable[[DataFile], DataFile]) -> SignedFiles:
        """Return the same, with other objects for its files."""
        return SignedFiles(tuple((plus, adopt(part)) for plus, part in self.layers))

    def moved(self, after: SignedFiles) -> tuple[list[DataFile], list[DataFile]]:
        """Return the files of the rows inserted until another version, and those of the rows deleted.

        What counts is the net change: a row may be on both sides.
        """
        ours, theirs = set(self.layers), set(after.layers)
        new = SignedFiles(tuple(layer for layer in after.layers if layer not in ours))
        old = SignedFiles(tuple(layer for layer in self.layers if layer not in theirs))
        return new.plus + old.minus, new.minus + old.plus

    def counted(self, after: SignedFiles) -> SegmentChange | None:
        """Count the rows inserted and deleted until another version; None if files would have to be read."""
        if after.layers[: len(self.layers)] == self.layers:
            new = SignedFiles(after.layers[len(self.layers) :])
            return SegmentChange(*(sum(part.rows for part in side) for side in (new.plus, new.minus)))
        return None if self.rows and after.rows else SegmentChange(after.rows, self.rows)

    def then(self, plus: Iterable[DataFile] = (), minus: Iterable[DataFile] = ()) -> SignedFiles:
        """Return these files after rows that are there were deleted and rows that are not there inserted."""
        deletes = tuple((False, part) for part in minus if part.rows)
        inserts = tuple((True, part) for part in plus if part.rows)
        return SignedFiles((*self.layers, *deletes, *inserts))


NOTHING = SignedFiles()


@dataclass(frozen=True)
class Segment:
    """The files of one owner: explicit facts, or a node's facts and the rows of its aggregates by rule."""

    contents: Mapping[Relation, SignedFiles] = field(default_factory=dict)
    aggregate_rows: Mapping[str, SignedFiles] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many facts there are."""
        return sum(content.rows for content in self.contents.values())

    def content(self, relation: Relation) -> SignedFiles:
        """Return the files of a relation."""
        return self.contents.get(relation, NOTHING)

    @property
    def parts(self) -> Iterator[DataFile]:
        """All files."""
        for content in (*self.contents.values(), *self.aggregate_rows.values()):
            yield from content.parts


def held(owners: Iterable[Segment]) -> dict[Relation, list[SignedFiles]]:
    """Return the files of several owners by relation; relations without rows are left out."""
    found: dict[Relation, list[SignedFiles]] = {}
    for owner in owners:
        for relation, content in owner.contents.items():
            if content.rows:
                found.setdefault(relation, []).append(content)
    return found


class Folder(NamedTuple):
    """A folder that tasks write into; removing files is left to the driver."""

    uri: str

    def new_file(self, kind: str, ending: str = "") -> str:
        """Return the path of a new file; a task's has the name of its job in it."""
        path = f"{self.uri}/{kind}-{_job_of_this_task()}{uuid.uuid4().hex}{ending}"
        note_file(path)
        return path

    def write(self, table: pa.Table, kind: str) -> str:
        """Write a table into a new file; return its path."""
        path = self.new_file(kind, ".parquet")
        system, inner_path = located(path)
        pq.write_table(
            table,
            inner_path,
            filesystem=system,
            row_group_size=_ROW_GROUP,
            compression="zstd",
            # Most fingerprints of a column differ: a dictionary of them would take longer than all the rest.
            use_dictionary=False,
        )
        return path

    def write_rows(self, relation: Relation, columns: Sequence[Keys]) -> DataFile:
        """Write rows of a relation, given by columns; members are sorted by class."""
        rows = len(columns[0])
        classes: dict[int, int] = {}
        given = list(columns)
        if relation.typed:
            order = np.argsort(given[1], kind="stable")
            given = [column[order] for column in given]
            names, counts = np.unique(given[1], return_counts=True)
            classes = dict(zip(names.tolist(), counts.tolist(), strict=True))
        if not rows:
            return DataFile("", 0)
        return DataFile(self.write(table_of(given), "rows"), rows, classes)


class ScratchFolder:
    """The engine's folder of working files: a file lives as long as its `DataFile` in the driver."""

    def __init__(self, uri: str = "") -> None:
        """Make the folder, among the system's temporary files if no other place is given."""
        if uri:
            # Other processes work in other folders.
            base = uri if "://" in uri else str(Path(uri).absolute())
            self.folder = Folder(f"{base.rstrip('/')}/zodiacedge-{uuid.uuid4().hex}")
        else:
            self.folder = Folder(tempfile.mkdtemp(prefix="zodiacedge-"))
        try:
            system, inner_path = located(self.folder.uri)
            system.create_dir(inner_path, recursive=True)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise _no_scratch(uri or self.folder.uri, self.folder.uri, error) from error
        weakref.finalize(self, _remove_folder, self.folder.uri)

    def adopt(self, part: DataFile) -> DataFile:
        """Keep a file until its `DataFile` is garbage."""
        if part.path:
            finalizer = weakref.finalize(part, _remove_file, part.path, self)
            # The folder goes at the end, with all that is in it.
            finalizer.atexit = False
        return part

    def sweep(self, job: str) -> None:
        """Remove the files of a job that failed or was cancelled."""
        try:
            system, inner_path = located(self.folder.uri)
            files = system.get_file_info(fs.FileSelector(inner_path, allow_not_found=True))
        except GONE:
            return
        remove_files(f"{self.folder.uri}/{file.base_name}" for file in files if job in file.base_name)


def _job_of_this_task() -> str:
    """Return the name that `jobs` gave to the job of this task; nothing in the driver."""
    # A task has imported pyspark; the driver need not.
    context = getattr(sys.modules.get("pyspark"), "TaskContext", None)
    task = context.get() if context else None
    job = task.getLocalProperty(JOB) if task else None
    return f"{job}-" if job else ""


def table_of(columns: Sequence[Keys]) -> pa.Table:
    """Return columns of fingerprints as a table."""
    return pa.table({f"c{n}": pa.array(column, pa.int64()) for n, column in enumerate(columns)})


def read_file(part: DataFile, width: int, classes: frozenset[int] | None = None) -> list[Keys]:
    """Return the columns of a file; for `rdf:type`, of the given classes only."""
    names = [f"c{n}" for n in range(width)]
    filters = None
    if classes is not None:
        if not classes & part.classes.keys():
            return [np.zeros(0, np.int64) for _ in names]
        if len(classes & part.classes.keys()) < len(part.classes):
            filters = [("c1", "in", sorted(classes))]
    table = read_table(part.path, names, filters)
    return [column.to_numpy() for column in table.columns]


def read_table(path: str, columns: Sequence[str] | None = None, filters: object = None) -> pa.Table:
    """Read a working file."""
    system, inner_path = located(path)
    if filters is None:
        with system.open_input_file(inner_path) as source:
            return pq.ParquetFile(source).read(columns)
    return pq.read_table(inner_path, columns=columns, filters=filters, filesystem=system)


def read_groups(path: str) -> Iterator[pa.Table]:
    """Yield the rows of a file, a row group at a time."""
    system, inner_path = located(path)
    with system.open_input_file(inner_path) as source:
        file = pq.ParquetFile(source)
        for number in range(file.num_row_groups):
            yield file.read_row_group(number)


def read_batches(path: str, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, so many at a time."""
    system, inner_path = located(path)
    with system.open_input_file(inner_path) as source:
        yield from pq.ParquetFile(source).iter_batches(rows)


def _no_scratch(named: str, folder: str, error: Exception) -> UsageProblem:
    """Return the problem of a folder that cannot be used; the message names the one that the user named."""
    number = error.errno if isinstance(error, OSError) else None
    reason = os.strerror(number).lower() if number else str(error).replace(folder, named)
    return UsageProblem(
        Diagnostic(
            "U016",
            f"the folder {named} cannot be used for working files: {reason}",
            "name one that the driver and all executors can write: scratch=…",
        )
    )


def _remove_file(path: str, scratch: ScratchFolder) -> None:
    del scratch  # held until the last file is gone
    remove_files((path,))


def _remove_folder(uri: str) -> None:
    system, inner_path = located(uri)
    if system is LOCAL:
        shutil.rmtree(inner_path, ignore_errors=True)
        return
    try:
        system.delete_dir(inner_path)
    except GONE:
        return
