"""Where rows live while the process does: Parquet files of fingerprints, in a folder of the engine's own.

A relation is a name and a number of arguments; members of classes are `rdf:type` with two columns. The rows
of one owner in a relation are its `SignedFiles`: files that insert rows and files that delete rows, in order.
A file is written once, by a task or by the driver, and removed when the driver forgets it. Tasks return names
and counts. The folder may be anything that Arrow has a file system for and that driver and executors see.
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
        """Return what the rows of an aggregate are kept as."""
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
    """A file of rows: where it is, how many rows it has, and of members how many each class has."""

    path: str
    rows: int
    classes: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SignedFiles:
    """What one owner has of a relation: parts that came, and parts that went again, in order."""

    layers: tuple[tuple[bool, DataFile], ...] = ()

    @classmethod
    def of(cls, *parts: DataFile) -> SignedFiles:
        """Return a content of parts whose rows are all different."""
        return cls(tuple((True, part) for part in parts if part.rows))

    @cached_property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(part.rows if came else -part.rows for came, part in self.layers)

    @property
    def stored(self) -> int:
        """How many rows its files have."""
        return sum(part.rows for _, part in self.layers)

    @property
    def plain(self) -> bool:
        """Whether nothing went again."""
        return all(came for came, _ in self.layers)

    @property
    def parts(self) -> Iterator[DataFile]:
        """All parts."""
        return (part for _, part in self.layers)

    def classes(self) -> Mapping[int, int]:
        """Count the members of each class."""
        return self._classes

    @cached_property
    def _classes(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for came, part in self.layers:
            for name, count in part.classes.items():
                found[name] = found.get(name, 0) + (count if came else -count)
        return {name: count for name, count in found.items() if count}

    def adopted(self, adopt: Callable[[DataFile], DataFile]) -> SignedFiles:
        """Return the same, with other objects for its parts."""
        return SignedFiles(tuple((came, adopt(part)) for came, part in self.layers))

    def moved(self, after: SignedFiles) -> tuple[list[DataFile], list[DataFile]]:
        """Return the files that tell what came until another version, and those that tell what went.

        A row that stands on both sides did neither: it is the number of times that counts.
        """
        ours, theirs = set(self.layers), set(after.layers)
        new = [layer for layer in after.layers if layer not in ours]
        old = [layer for layer in self.layers if layer not in theirs]
        more = [part for came, part in new if came] + [part for came, part in old if not came]
        less = [part for came, part in new if not came] + [part for came, part in old if came]
        return more, less

    def counted(self, after: SignedFiles) -> SegmentChange | None:
        """Count what came and went until another version; None if only the rows themselves would tell."""
        if after.layers[: len(self.layers)] == self.layers:
            new = after.layers[len(self.layers) :]
            came = sum(part.rows for came, part in new if came)
            return SegmentChange(came, sum(part.rows for came, part in new if not came))
        return None if self.rows and after.rows else SegmentChange(after.rows, self.rows)

    def then(self, plus: Iterable[DataFile] = (), minus: Iterable[DataFile] = ()) -> SignedFiles:
        """Return what is there when rows that are there went and rows that are not there came."""
        went = tuple((False, part) for part in minus if part.rows)
        came = tuple((True, part) for part in plus if part.rows)
        return SignedFiles((*self.layers, *went, *came))


NOTHING = SignedFiles()


@dataclass(frozen=True)
class Segment:
    """What one owner has: explicit facts, or what a node derives and the rows of its aggregates by rule."""

    contents: Mapping[Relation, SignedFiles] = field(default_factory=dict)
    aggregate_rows: Mapping[str, SignedFiles] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many facts there are."""
        return sum(content.rows for content in self.contents.values())

    def content(self, relation: Relation) -> SignedFiles:
        """Return what there is of a relation."""
        return self.contents.get(relation, NOTHING)

    @property
    def parts(self) -> Iterator[DataFile]:
        """All parts."""
        for content in (*self.contents.values(), *self.aggregate_rows.values()):
            yield from content.parts


def held(owners: Iterable[Segment]) -> dict[Relation, list[SignedFiles]]:
    """Return what some owners have, by relation; relations that nobody has facts of are left out."""
    found: dict[Relation, list[SignedFiles]] = {}
    for owner in owners:
        for relation, content in owner.contents.items():
            if content.rows:
                found.setdefault(relation, []).append(content)
    return found


class Folder(NamedTuple):
    """A folder, for tasks: they write into it and know nothing of who removes what."""

    uri: str

    def new_file(self, kind: str, ending: str = "") -> str:
        """Return a place for a new file; a task's has the name of its job in it."""
        path = f"{self.uri}/{kind}-{_job_of_this_task()}{uuid.uuid4().hex}{ending}"
        note_file(path)
        return path

    def write(self, table: pa.Table, kind: str) -> str:
        """Write a table into a new file; return its place."""
        path = self.new_file(kind, ".parquet")
        system, place = located(path)
        pq.write_table(
            table,
            place,
            filesystem=system,
            row_group_size=_ROW_GROUP,
            compression="zstd",
            # Most fingerprints of a column differ: a dictionary of them would take longer than all the rest.
            use_dictionary=False,
        )
        return path

    def write_rows(self, relation: Relation, columns: Sequence[Keys]) -> DataFile:
        """Write rows of a relation, given by columns; members stand in the order of their classes."""
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


class Scratch:
    """The engine's folder: who holds a part keeps its file."""

    def __init__(self, uri: str = "") -> None:
        """Make the folder, in the system's place for temporary files if no other is given."""
        if uri:
            # Other processes work in other folders.
            place = uri if "://" in uri else str(Path(uri).absolute())
            self.folder = Folder(f"{place.rstrip('/')}/zodiacedge-{uuid.uuid4().hex}")
        else:
            self.folder = Folder(tempfile.mkdtemp(prefix="zodiacedge-"))
        try:
            system, place = located(self.folder.uri)
            system.create_dir(place, recursive=True)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise _no_scratch(uri or self.folder.uri, self.folder.uri, error) from error
        weakref.finalize(self, _remove_folder, self.folder.uri)

    def adopt(self, part: DataFile) -> DataFile:
        """Keep a part's file as long as somebody holds the part."""
        if part.path:
            finalizer = weakref.finalize(part, _remove_file, part.path, self)
            # The folder goes at the end, with all that is in it.
            finalizer.atexit = False
        return part

    def sweep(self, job: str) -> None:
        """Remove what the tasks of a job wrote that came to nothing."""
        try:
            system, place = located(self.folder.uri)
            there = system.get_file_info(fs.FileSelector(place, allow_not_found=True))
        except GONE:
            return
        remove_files(f"{self.folder.uri}/{one.base_name}" for one in there if job in one.base_name)


def _job_of_this_task() -> str:
    """Return what `jobs` calls the job of this task; nothing in the driver."""
    # A task has imported it, and knows where it is; the driver need not.
    context = getattr(sys.modules.get("pyspark"), "TaskContext", None)
    task = context.get() if context else None
    job = task.getLocalProperty(JOB) if task else None
    return f"{job}-" if job else ""


def table_of(columns: Sequence[Keys]) -> pa.Table:
    """Return columns of fingerprints as a table."""
    return pa.table({f"c{n}": pa.array(column, pa.int64()) for n, column in enumerate(columns)})


def read_file(part: DataFile, width: int, classes: frozenset[int] | None = None) -> list[Keys]:
    """Return a part's columns; of members, those of some classes only if not of all."""
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
    """Read a file of the folder."""
    system, place = located(path)
    if filters is None:
        with system.open_input_file(place) as source:
            return pq.ParquetFile(source).read(columns)
    return pq.read_table(place, columns=columns, filters=filters, filesystem=system)


def read_groups(path: str) -> Iterator[pa.Table]:
    """Yield what a file of the folder holds, a row group at a time."""
    system, place = located(path)
    with system.open_input_file(place) as source:
        file = pq.ParquetFile(source)
        for number in range(file.num_row_groups):
            yield file.read_row_group(number)


def read_batches(path: str, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield what a file of the folder holds, so many rows at a time."""
    system, place = located(path)
    with system.open_input_file(place) as source:
        yield from pq.ParquetFile(source).iter_batches(rows)


def _no_scratch(named: str, folder: str, error: Exception) -> UsageProblem:
    """Return the problem of a folder that cannot be; its user knows nothing of the one below it."""
    number = error.errno if isinstance(error, OSError) else None
    reason = os.strerror(number).lower() if number else str(error).replace(folder, named)
    return UsageProblem(
        Diagnostic(
            "U016",
            f"the folder {named} cannot be used for working files: {reason}",
            "name one that the driver and all executors can write: scratch=…",
        )
    )


def _remove_file(path: str, scratch: Scratch) -> None:
    del scratch  # held until the last file is gone
    remove_files((path,))


def _remove_folder(uri: str) -> None:
    system, place = located(uri)
    if system is LOCAL:
        shutil.rmtree(place, ignore_errors=True)
        return
    try:
        system.delete_dir(place)
    except GONE:
        return
