"""Loads: files to batches of facts, with a report of skipped lines."""

from __future__ import annotations

import os
import time
from collections.abc import Sized
from typing import IO, TYPE_CHECKING, TypeVar

from zodiacedge.extras import need
from zodiacedge.io.formats.jsonl import read_jsonl
from zodiacedge.io.formats.lines import FileReading, ReadOptions
from zodiacedge.io.formats.tabular import checked_delimiter, read_tabular
from zodiacedge.io.problems import reading
from zodiacedge.io.report import FileReport, Findings, LoadProgress, LoadReport, strict_problem
from zodiacedge.io.sources import RDF_FORMATS, Format, SourceFile, expand
from zodiacedge.io.streams import open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from zodiacedge.io.report import BadLine, ProgressCallback
    from zodiacedge.language.ast import Fact

Spec = str | os.PathLike[str]
_Batch = TypeVar("_Batch", bound=Sized)


class Load:
    """A load in progress: iterate over it once for batches of facts, then read its `report`.

    A bad line of a line format is skipped, reported and counted. With `strict`, the iteration raises at the
    end if there was a bad line: the caller must then discard all batches.
    """

    def __init__(
        self,
        files: Sequence[SourceFile],
        options: ReadOptions,
        progress: ProgressCallback | None = None,
        on_bad_line: Callable[[BadLine], None] | None = None,
    ) -> None:
        """Store the files to read; they are opened by the iteration."""
        self.files = tuple(files)
        self._options = options
        self._progress = progress
        self._findings = Findings(options.keep_bad_lines, on_bad_line)
        self._reports: list[FileReport] = []
        self._seconds = 0.0

    @property
    def report(self) -> LoadReport:
        """The report on the files read so far; complete when the iteration has ended."""
        findings = self._findings
        return LoadReport(tuple(self._reports), tuple(findings.kept), self._seconds, tuple(findings.warnings))

    def __iter__(self) -> Iterator[list[Fact]]:
        """Yield the facts of all files, in batches, in the order of the files."""
        return self.batches(fact_batches)

    def readings(self) -> list[FileReading]:
        """Return the input of the reader of each file, in the order of the files."""
        prefixes = _blank_prefixes(self.files)
        return [
            FileReading(file, self._options, self._findings, blank_prefix=prefix)
            for file, prefix in zip(self.files, prefixes, strict=True)
        ]

    def report_fraction(self, fraction: float) -> None:
        """Report the fraction of all files that an engine with its own readers has read so far."""
        total = sum(file.size for file in self.files)
        self._report_progress(self.files[0], int(min(fraction, 1.0) * total), total, 0)

    def record(self, file: FileReading, facts: int, seconds: float) -> None:
        """Record a file that an engine with its own readers has read, in the order of the files."""
        self._reports.append(_file_report(file, facts))
        self._seconds = seconds
        done = sum(source.size for source in self.files[: len(self._reports)])
        total = sum(source.size for source in self.files)
        self._report_progress(file.source, done, total, sum(report.facts for report in self._reports))

    def conclude(self) -> None:
        """End the load: raise in strict mode if there were bad lines."""
        if self._options.strict and self._findings.total:
            raise strict_problem(self._findings.total, self._findings.kept)

    def batches(self, read: Callable[[FileReading], Iterator[_Batch]]) -> Iterator[_Batch]:
        """Yield the batches that a reader makes of all files, in the order of the files."""
        started = time.monotonic()
        sizes = [file.size for file in self.files]
        facts = 0
        for index, file_reading in enumerate(self.readings()):
            file, before = file_reading.source, facts
            for batch in read(file_reading):
                if len(batch):
                    facts += len(batch)
                    yield batch
                self._report_progress(
                    file,
                    sum(sizes[:index]) + min(file_reading.counter.bytes, sizes[index]),
                    sum(sizes),
                    facts,
                )
            self._reports.append(_file_report(file_reading, facts - before))
            self._seconds = time.monotonic() - started
            self._report_progress(file, sum(sizes[: index + 1]), sum(sizes), facts)
        self.conclude()

    def _report_progress(self, file: SourceFile, done: int, total: int, facts: int) -> None:
        if self._progress:
            self._progress(LoadProgress(file.name, done, total, facts, self._findings.total))


def read(  # noqa: PLR0913 - each keyword is an option that users set alone
    specs: Spec | Iterable[Spec],
    *,
    header: bool = False,
    base: str = "",
    strict: bool = False,
    delimiter: str = "",
    prefixes: Mapping[str, str] | None = None,
    batch_size: int = 8192,
    keep_bad_lines: int = 20,
    progress: ProgressCallback | None = None,
    on_bad_line: Callable[[BadLine], None] | None = None,
) -> Load:
    """Return a load of files, to be iterated for batches of facts.

    Args:
        specs: Paths, folders, globs, URIs of these, or `relation=path`; one or several.
        header: Whether the first row of a CSV or TSV file names its columns.
        base: The base IRI of Turtle, TriG, RDF/XML and JSON-LD.
        strict: Whether bad lines are an error, raised at the end of the load.
        delimiter: The character between the cells of CSV and TSV files, if not the comma and the tab.
        prefixes: The prefixes that the relation of `relation=path` may have.
        batch_size: The approximate number of facts of a batch.
        keep_bad_lines: The number of bad lines in the report; all are counted.
        progress: Called after each batch and at the end of each file.
        on_bad_line: Called for each bad line.
    """
    all_specs = [specs] if isinstance(specs, (str, os.PathLike)) else list(specs)
    options = ReadOptions(
        header=header,
        base=base,
        strict=strict,
        delimiter=checked_delimiter(delimiter),
        batch_size=batch_size,
        keep_bad_lines=keep_bad_lines,
    )
    return Load(expand(all_specs, prefixes), options, progress, on_bad_line)


def read_all(
    specs: Spec | Iterable[Spec],
    *,
    header: bool = False,
    base: str = "",
    strict: bool = False,
    delimiter: str = "",
) -> tuple[list[Fact], LoadReport]:
    """Return all facts of files and the report: `read` without a stream."""
    load = read(specs, header=header, base=base, strict=strict, delimiter=delimiter)
    facts = [fact for batch in load for fact in batch]
    return facts, load.report


def fact_batches(file: FileReading) -> Iterator[list[Fact]]:
    """Yield the facts of one file, in batches."""
    source = file.source
    with reading(source.name), open_source(source.path, source.compression, file.counter) as stream:
        yield from _reader(source.format)(stream, file)


def column_batches(file: FileReading) -> Iterator[list[Fact] | pa.RecordBatch]:
    """Yield the rows of one Parquet or Arrow file, in batches of columns; or the fact that it is."""
    need("tables", "a Parquet or Arrow file")
    from zodiacedge.io.formats.arrow import read_columns  # noqa: PLC0415 - loads pyarrow

    source = file.source
    with reading(source.name), open_source(source.path, source.compression, file.counter) as stream:
        yield from read_columns(stream, file)


def _reader(form: Format) -> Callable[[IO[bytes], FileReading], Iterator[list[Fact]]]:
    if form in RDF_FORMATS:
        need("rdf", f"RDF other than N-Triples ({form.value})")
        from zodiacedge.io.formats.rdf import read_rdf  # noqa: PLC0415 - loads pyoxigraph

        return read_rdf
    if form in {Format.PARQUET, Format.ARROW}:
        need("tables", "a Parquet or Arrow file")
        from zodiacedge.io.formats.arrow import read_columnar  # noqa: PLC0415 - loads pyarrow

        return read_columnar
    return read_jsonl if form is Format.JSONL else read_tabular


def _file_report(file: FileReading, facts: int) -> FileReport:
    source = file.source
    # The lines of JSON name their predicates.
    relation = "" if source.format is Format.JSONL else source.relation
    return FileReport(source.name, source.format.value, facts, file.bad, relation)


def _blank_prefixes(files: Sequence[SourceFile]) -> list[str]:
    """Return the prefix of the blank node labels of each file.

    The scope of a label is one RDF document, so documents must not share labels. The files of one export
    are one document. In cells of tabular files labels are global.
    """
    documents = dict.fromkeys(f.document for f in files if f.format in RDF_FORMATS)
    if len(documents) < 2:
        return ["" for _ in files]
    number = {document: f"f{at}_" for at, document in enumerate(documents, 1)}
    return [number[f.document] if f.format in RDF_FORMATS else "" for f in files]
