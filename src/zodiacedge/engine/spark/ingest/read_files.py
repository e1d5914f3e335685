"""Reads files in parallel: N-Triples and N-Quads by splits of a file, other formats a file at a time.

A split is a range of bytes; its task reads the lines that begin in it. One task reads several small files.
Each task has its own dictionary, and writes files of fingerprints and a file of their terms. It returns the
number of lines of each split, so the driver can compute the line number of a bad line in its file.
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
from zodiacedge.engine.embedded.ingest.ntriples.reader import TripleReader
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.spark.ingest.batch import BatchFiles, write_tables
from zodiacedge.engine.spark.storage.files import DataFile, Folder, read_batches
from zodiacedge.io.formats.lines import FileReading, ReadOptions
from zodiacedge.io.problems import reading
from zodiacedge.io.read import fact_batches
from zodiacedge.io.report import BadLine, Findings
from zodiacedge.io.sources import Format, SourceFile
from zodiacedge.io.streams import BLOCK, ByteCounter, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

    from zodiacedge.engine.spark.storage.terms import Hashing
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.errors import Diagnostic
    from zodiacedge.io import Load

_BY_LINES = frozenset({Format.NTRIPLES, Format.NQUADS})
# A file has at most so many splits per core.
_TASKS_PER_CORE = 16
# Fewer bytes are not worth a task of their own.
_LEAST_BYTES = 1 << 20
# A task holds so many triples before it adds them to its batch.
_TRIPLES_TOGETHER = 1 << 18
# The driver reads so many bad lines at a time.
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
    """A file, or a range of its bytes, and how to read it."""

    file: int
    source: SourceFile
    options: ReadOptions
    prefix: str
    start: int = 0
    end: int | None = None

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.source.size if self.end is None else self.end - self.start


@dataclass(frozen=True)
class Bundle:
    """A task: splits to read in order, and the folder to write to."""

    splits: tuple[Split, ...]
    folder: Folder
    hashing: Hashing


class FileRead(NamedTuple):
    """The result of reading a split: the number of facts and lines, the file of bad lines, and warnings."""

    facts: int
    lines: int
    bad_lines: DataFile
    warnings: tuple[Diagnostic, ...] = ()


def ingest(workspace: Workspace, load: Load) -> BatchFiles:
    """Read the files of a load on the cluster, and report on each of them."""
    started = time.monotonic()
    readings = load.readings()
    splits = [split for n, read in enumerate(readings) for split in _splits(workspace, n, read)]
    if not splits:
        load.conclude()
        return BatchFiles()
    # Spark may have to start first.
    load.report_fraction(0.0)
    bundles = list(_bundles(workspace, splits))
    results = workspace.jobs.each(
        read_bundle, bundles, "reading files", watch=lambda done: load.report_fraction(done / len(bundles))
    )
    rows = BatchFiles()
    reads: list[FileRead] = []
    for written, split_reads in results:
        rows = rows.merged(written.adopted(workspace))
        reads += split_reads
    for read in reads:
        # An adopted file is deleted when its result is released.
        workspace.adopt(read.bad_lines)
    for number, group in groupby(zip(splits, reads, strict=True), lambda pair: pair[0].file):
        file = readings[number]
        lines = facts = 0
        for _, read in group:
            facts += read.facts
            _add_bad_lines(file, read.bad_lines, lines)
            file.findings.warnings += read.warnings
            lines += read.lines
        load.record(file, facts, time.monotonic() - started)
    load.conclude()
    return rows


def _splits(workspace: Workspace, number: int, file: FileReading) -> Iterator[Split]:
    # Tasks run in other folders, and messages name the file as the user named it.
    source = replace(file.source, path=file.source.path.absolute(), shown=file.source.name)
    size = source.size
    fields = (number, source, file.options, file.blank_prefix)
    if isinstance(source.path, Path):
        # A local file that cannot be read is reported before a job starts; a remote one by its task.
        with reading(source.name):
            source.path.open("rb").close()
    if source.format not in _BY_LINES or source.compression or not size:
        yield Split(*fields)
        return
    most = workspace.jobs.cores * _TASKS_PER_CORE
    step = max(workspace.options.split_bytes, -(-size // most))
    for start in range(0, size, step):
        yield Split(*fields, start, min(start + step, size))


def _bundles(workspace: Workspace, splits: Sequence[Split]) -> Iterator[Bundle]:
    """Group successive splits into tasks."""
    folder, hashing = workspace.scratch.folder, workspace.hashing
    even = sum(split.size for split in splits) // (workspace.jobs.cores * _TASKS_PER_CORE)
    most = min(max(even, _LEAST_BYTES), workspace.options.split_bytes)
    bundle: list[Split] = []
    size = 0
    for split in splits:
        if bundle and size + split.size > most:
            yield Bundle(tuple(bundle), folder, hashing)
            bundle, size = [], 0
        bundle.append(split)
        size += split.size
    yield Bundle(tuple(bundle), folder, hashing)


def _add_bad_lines(file: FileReading, bad_lines: DataFile, lines: int) -> None:
    """Add the bad lines of a split, after so many lines of its file: count all, read the wanted ones."""
    wanted = file.findings.wanted(bad_lines.rows)
    if wanted:
        batch = min(wanted, _BAD_TOGETHER)
        for bad in islice(_bad_lines(file.source.name, bad_lines, lines, batch), wanted):
            file.findings.add(bad)
    file.findings.count(bad_lines.rows - wanted)
    file.bad += bad_lines.rows


def _bad_lines(name: str, bad_lines: DataFile, lines: int, batch_rows: int) -> Iterator[BadLine]:
    # All lines may be bad: read in batches.
    for batch in read_batches(bad_lines.path, batch_rows):
        for row in batch.to_pylist():
            unit: Literal["line", "row"] = "row" if row["unit"] == "row" else "line"
            yield BadLine(name, row["line"] + lines, row["reason"], row["offset"], row["text"], unit)


def read_bundle(bundle: Bundle) -> tuple[BatchFiles, list[FileRead]]:
    """Read the splits of one task; return the files of their facts, and the result of each split."""
    batch = EmbeddedBatch(Database())
    reads = [_read_split(split, batch, bundle.folder) for split in bundle.splits]
    segment, dictionary = batch.distinct(), batch.store.dictionary
    return write_tables(segment, dictionary, bundle.folder, bundle.hashing, by_tasks=True), reads


def _read_split(split: Split, batch: EmbeddedBatch, folder: Folder) -> FileRead:
    findings = Findings(keep=sys.maxsize)
    facts = lines = 0
    if split.source.format in _BY_LINES:
        facts, lines = _LineReader(split, findings, batch).read()
    else:
        file = FileReading(split.source, split.options, findings, blank_prefix=split.prefix)
        for fact_batch in fact_batches(file):
            facts += len(fact_batch)
            batch.add(fact_batch)
    return FileRead(facts, lines, _write_bad(folder, findings), tuple(findings.warnings))


class _LineReader:
    """Reads the lines of N-Triples or N-Quads that begin in a split."""

    def __init__(self, split: Split, findings: Findings, batch: EmbeddedBatch) -> None:
        self._split = split
        self._findings = findings
        self._batch = batch
        self._in_split = Findings(keep=sys.maxsize)
        self._reader = TripleReader(
            batch.store.dictionary,
            quads=split.source.format is Format.NQUADS,
            blank_prefix=split.prefix,
            file=split.source.name,
            findings=self._in_split,
        )

    def read(self) -> tuple[int, int]:
        """Return the number of triples, and of the lines that end in the split."""
        source, start = self._split.source, self._split.start
        facts = lines = 0
        # Only a file may begin with a byte order mark: any other split is read after an empty line.
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
        for bad in self._in_split.kept:
            line, offset = bad.line - len(ahead), (bad.offset or 0) - len(ahead) + first
            self._findings.add(BadLine(bad.file, line, bad.reason, offset, bad.text))
        return facts, lines

    def _blocks(self, stream: IO[bytes], offset: int) -> Iterator[bytes]:
        end = self._split.end
        while end is None or offset < end:
            block = stream.read(BLOCK if end is None else min(BLOCK, end - offset))
            if not block:
                return
            offset += len(block)
            yield block
        # The last line may end in the next split.
        stream.seek(offset - 1)
        if stream.read(1) != b"\n":
            rest = stream.readline()
            if rest:
                yield rest

    def _take(self) -> int:
        triples = self._reader.take()
        self._batch.add_triples(triples)
        return len(triples)


def _write_bad(folder: Folder, findings: Findings) -> DataFile:
    if not findings.kept:
        return DataFile("", 0)
    rows = [
        {"line": b.line, "offset": b.offset, "reason": b.reason, "text": b.text, "unit": b.unit}
        for b in findings.kept
    ]
    return DataFile(folder.write(pa.Table.from_pylist(rows, _BAD), "bad"), findings.total)
