"""Reads files in parallel: N-Triples and N-Quads by splits of a file, other formats a file at a time.

A split is a stretch of bytes; its task reads the lines that begin in it. Small files are read several by one
task. Each task has a dictionary of its own and writes what it read as files of fingerprints, with the terms
beside them. A task knows how many lines each split has, so the driver can tell the number of a bad line in
its file.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import pyarrow as pa

from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch
from zodiacedge.engine.embedded.ingest.ntriples.reader import TripleReader, group_triples
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.embedded.storage.relation import Relation as TableName
from zodiacedge.engine.spark.ingest.batch import BatchFiles, write_tables
from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation, read_batches
from zodiacedge.engine.spark.storage.terms import ClassNames, Hashing, TermFiles, columns_of, write_terms
from zodiacedge.io.formats.lines import FileReading, ReadOptions
from zodiacedge.io.problems import reading
from zodiacedge.io.read import fact_batches
from zodiacedge.io.report import BadLine, Findings
from zodiacedge.io.sources import Format, SourceFile
from zodiacedge.io.streams import BLOCK, ByteCounter, open_source
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import IO

    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.io import Load
    from zodiacedge.terms import Term

_BY_LINES = frozenset({Format.NTRIPLES, Format.NQUADS})
# A file is divided into at most so many splits per core.
_TASKS_PER_CORE = 16
# Less than this is not worth a task, if there is more to read.
_LEAST_BYTES = 1 << 20
# Rows of one relation that a task keeps before it makes them distinct.
_TRIPLES_TOGETHER = 1 << 18
# So many bad lines are read at once.
_BAD_TOGETHER = 4096
_BAD = pa.schema(
    [
        ("line", pa.int64()),
        ("offset", pa.int64()),
        ("reason", pa.string()),
        ("text", pa.string()),
        ("unit", pa.string()),
    ]
)


@dataclass(frozen=True)
class Split:
    """A file, or a stretch of it, and how to read it."""

    file: int
    source: SourceFile
    options: ReadOptions
    prefix: str
    start: int = 0
    end: int | None = None

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.source.size if self.end is None else self.end - self.start


@dataclass(frozen=True)
class Bundle:
    """The work of one task: splits, in order, and where to write."""

    splits: tuple[Split, ...]
    folder: Folder
    hashing: Hashing


class FileRead(NamedTuple):
    """What a task read of a split: how many facts and lines, and the file of its bad lines."""

    facts: int
    lines: int
    bad_lines: DataFile
    """The file of bad lines, if there are some."""


@dataclass(frozen=True)
class BundleResult:
    """What a task read."""

    parts: Mapping[Relation, DataFile]
    terms: DataFile
    names: Mapping[int, Term]
    reads: tuple[FileRead, ...]


def ingest(workspace: Workspace, load: Load) -> BatchFiles:
    """Read the files of a load on the cluster, and report on each of them."""
    started = time.monotonic()
    readings = load.readings()
    splits = [split for at, one in enumerate(readings) for split in _splits(workspace, at, one)]
    if not splits:
        load.conclude()
        return BatchFiles()
    # Starting Spark takes a while, too.
    load.report_fraction(0.0)
    bundles = list(_bundles(workspace, splits))
    pieces = workspace.jobs.each(
        read_bundle, bundles, "reading files", watch=lambda done: load.report_fraction(done / len(bundles))
    )
    rows = BatchFiles()
    reads: list[FileRead] = []
    for piece in pieces:
        parts = {relation: (workspace.adopt(part),) for relation, part in piece.parts.items()}
        terms = TermFiles((workspace.adopt(piece.terms),) if piece.terms.rows else ())
        rows = rows.beside(BatchFiles(parts, terms, ClassNames(piece.names), from_files=True))
        reads += piece.reads
    for one in reads:
        # The file goes once it was read.
        workspace.adopt(one.bad_lines)
    for at, group in groupby(zip(splits, reads, strict=True), lambda pair: pair[0].file):
        reading_of = readings[at]
        lines = facts = 0
        for _, one in group:
            facts += one.facts
            _take_bad_lines(reading_of, one.bad_lines, lines)
            lines += one.lines
        load.record(reading_of, facts, time.monotonic() - started)
    load.conclude()
    return rows


def _splits(workspace: Workspace, at: int, one: FileReading) -> Iterator[Split]:
    # Tasks work in other folders, and messages name the file as the user named it.
    source = replace(one.source, path=one.source.path.absolute(), shown=one.source.name)
    size = source.size
    given = (at, source, one.options, one.blank_prefix)
    if isinstance(source.path, Path):
        # A local file that cannot be read is reported before a job starts; a remote one by its task.
        with reading(source.name):
            source.path.open("rb").close()
    if source.format not in _BY_LINES or source.compression or not size:
        yield Split(*given)
        return
    most = workspace.jobs.cores * _TASKS_PER_CORE
    step = max(workspace.options.split_bytes, -(-size // most))
    for start in range(0, size, step):
        yield Split(*given, start, min(start + step, size))


def _bundles(workspace: Workspace, splits: Sequence[Split]) -> Iterator[Bundle]:
    """Yield splits that follow each other, as many together as one task reads."""
    folder, hashing = workspace.scratch.folder, workspace.hashing
    even = sum(split.size for split in splits) // (workspace.jobs.cores * _TASKS_PER_CORE)
    enough = min(max(even, _LEAST_BYTES), workspace.options.split_bytes)
    together: list[Split] = []
    size = 0
    for split in splits:
        if together and size + split.size > enough:
            yield Bundle(tuple(together), folder, hashing)
            together, size = [], 0
        together.append(split)
        size += split.size
    yield Bundle(tuple(together), folder, hashing)


def _take_bad_lines(one: FileReading, found: DataFile, lines: int) -> None:
    """Count the bad lines of a split, behind so many lines of its file; those that are wanted are read."""
    wanted = one.findings.wanted(found.rows)
    if wanted:
        for bad in islice(_bad_lines(one.source.name, found, lines, min(wanted, _BAD_TOGETHER)), wanted):
            one.findings.add(bad)
    one.findings.count(found.rows - wanted)
    one.bad += found.rows


def _bad_lines(file: str, found: DataFile, lines: int, together: int) -> Iterator[BadLine]:
    # They may be as many as there are lines, so only so many are in memory.
    for batch in read_batches(found.path, together):
        for row in batch.to_pylist():
            unit: Literal["line", "row"] = "row" if row["unit"] == "row" else "line"
            yield BadLine(file, row["line"] + lines, row["reason"], row["offset"], row["text"], unit)


def read_bundle(bundle: Bundle) -> BundleResult:
    """Read some splits: the work of one task."""
    batch = EmbeddedBatch(Database())
    reads = tuple(_read_split(split, batch, bundle.folder) for split in bundle.splits)
    dictionary = batch.store.dictionary
    parts, names = write_tables(batch.distinct(), dictionary, bundle.folder, bundle.hashing)
    terms = write_terms(bundle.folder, columns_of(dictionary, bundle.hashing))
    return BundleResult(parts, terms, names, reads)


def _read_split(split: Split, batch: EmbeddedBatch, folder: Folder) -> FileRead:
    findings = Findings(keep=sys.maxsize)
    one = FileReading(split.source, split.options, findings, blank_prefix=split.prefix)
    facts = lines = 0
    if split.source.format in _BY_LINES:
        reader = _Lines(split, one, batch)
        facts, lines = reader.read()
    else:
        for some in fact_batches(one):
            facts += len(some)
            batch.add(some)
    return FileRead(facts, lines, _write_bad(folder, findings))


class _Lines:
    """Reads the lines of N-Triples or N-Quads that begin in a split."""

    def __init__(self, split: Split, one: FileReading, batch: EmbeddedBatch) -> None:
        self._split = split
        self._one = one
        self._batch = batch
        self._found = Findings(keep=sys.maxsize)
        self._reader = TripleReader(
            batch.store.dictionary,
            quads=split.source.format is Format.NQUADS,
            blank_prefix=split.prefix,
            file=split.source.name,
            findings=self._found,
        )

    def read(self) -> tuple[int, int]:
        """Return how many triples there are, and how many lines end in the split."""
        source, start = self._split.source, self._split.start
        facts = lines = 0
        # A mark at the beginning is one of the file, not of a split: before others stands an empty line.
        ahead = b"\n" if start else b""
        self._reader.feed(ahead)
        first = start
        with reading(source.name), open_source(source.path, source.compression, ByteCounter()) as stream:
            if start:
                stream.seek(start - 1)
                first += len(stream.readline()) - 1
            for block in self._blocks(stream, first):
                lines += block.count(b"\n")
                self._reader.feed(block)
                if len(self._reader) >= _TRIPLES_TOGETHER:
                    facts += self._take()
            self._reader.finish()
        facts += self._take()
        for bad in self._found.kept:
            line, offset = bad.line - len(ahead), (bad.offset or 0) - len(ahead) + first
            self._one.findings.add(BadLine(bad.file, line, bad.reason, offset, bad.text))
        return facts, lines

    def _blocks(self, stream: IO[bytes], at: int) -> Iterator[bytes]:
        end = self._split.end
        while end is None or at < end:
            block = stream.read(BLOCK if end is None else min(BLOCK, end - at))
            if not block:
                return
            at += len(block)
            yield block
        # The line that begins in this split ends in another one, unless it ends just here.
        stream.seek(at - 1)
        if stream.read(1) != b"\n":
            rest = stream.readline()
            if rest:
                yield rest

    def _take(self) -> int:
        triples = self._reader.take()
        dictionary = self._batch.store.dictionary
        groups = group_triples(triples, dictionary)
        for name, rows in groups.predicates.items():
            predicate = dictionary.decode(name)
            if isinstance(predicate, IRI):
                self._batch.add_rows(TableName(predicate.value, 2), rows)
        for name, rows in groups.classes.items():
            self._batch.add_rows(TableName.of_class(name), rows)
        return len(triples)


def _write_bad(folder: Folder, findings: Findings) -> DataFile:
    if not findings.kept:
        return DataFile("", 0)
    rows = [
        {"line": b.line, "offset": b.offset, "reason": b.reason, "text": b.text, "unit": b.unit}
        for b in findings.kept
    ]
    return DataFile(folder.write(pa.Table.from_pylist(rows, _BAD), "bad"), findings.total)
