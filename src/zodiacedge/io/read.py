"""Loading: files in, batches of facts out, with a report of what was skipped."""

from __future__ import annotations

import os
import time
from collections.abc import Sized
from typing import IO, TYPE_CHECKING, TypeVar

from zodiacedge.io.formats.jsonl import read_jsonl
from zodiacedge.io.formats.lines import FileReading, ReadOptions
from zodiacedge.io.formats.tabular import read_tabular
from zodiacedge.io.problems import reading
from zodiacedge.io.report import FileReport, Findings, LoadReport, Progress, strict_problem
from zodiacedge.io.sources import RDF_FORMATS, Format, SourceFile, expand
from zodiacedge.io.streams import open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from zodiacedge.io.report import BadLine, ProgressCallback
    from zodiacedge.language.ast import Fact

Spec = str | os.PathLike[str]
_Batch = TypeVar("_Batch", bound=Sized)


class Load:
    """A load under way: iterate over it once for batches of facts, then ask for its `report`.

    A bad line of a line format is skipped, reported and counted. With `strict`, the iteration ends in
    a problem if there was one: whoever applies the batches must then keep none of them.
    """

    def __init__(
        self,
        files: Sequence[SourceFile],
        options: ReadOptions,
        progress: ProgressCallback | None = None,
        on_bad_line: Callable[[BadLine], None] | None = None,
    ) -> None:
        """Take the files to read; nothing is opened before the iteration starts."""
        self.files = tuple(files)
        self._options = options
        self._progress = progress
        self._findings = Findings(options.keep_bad_lines, on_bad_line)
        self._reports: list[FileReport] = []
        self._seconds = 0.0

    @property
    def report(self) -> LoadReport:
        """What the files read so far gave; complete when the iteration has ended."""
        return LoadReport(tuple(self._reports), tuple(self._findings.kept), self._seconds)

    def __iter__(self) -> Iterator[list[Fact]]:
        """Yield the facts of all files, in batches, in the order of the files."""
        return self.batches(fact_batches)

    def readings(self) -> list[FileReading]:
        """Return what a reader of each file is given, in the order of the files."""
        prefixes = _blank_prefixes(self.files)
        return [
            FileReading(file, self._options, self._findings, blank_prefix=prefix)
            for file, prefix in zip(self.files, prefixes, strict=True)
        ]

    def tell_share(self, share: float) -> None:
        """Tell how much of all files was read elsewhere so far."""
        total = sum(file.size for file in self.files)
        self._tell(self.files[0], int(min(share, 1.0) * total), total, 0)

    def note(self, one: FileReading, facts: int, seconds: float) -> None:
        """Take note of a file that was read elsewhere, in the order of the files."""
        self._reports.append(FileReport(one.source.name, one.source.format.value, facts, one.bad))
        self._seconds = seconds
        done = sum(file.size for file in self.files[: len(self._reports)])
        total = sum(file.size for file in self.files)
        self._tell(one.source, done, total, sum(report.facts for report in self._reports))

    def conclude(self) -> None:
        """End the load: raise if lines were bad and none may be."""
        if self._options.strict and self._findings.total:
            raise strict_problem(self._findings.total, self._findings.kept)

    def batches(self, read: Callable[[FileReading], Iterator[_Batch]]) -> Iterator[_Batch]:
        """Yield what a reader of one's own makes of all files, in the order of the files."""
        started = time.monotonic()
        sizes = [file.size for file in self.files]
        facts = 0
        for at, one in enumerate(self.readings()):
            file, before = one.source, facts
            for batch in read(one):
                if len(batch):
                    facts += len(batch)
                    yield batch
                self._tell(file, sum(sizes[:at]) + min(one.meter.bytes, sizes[at]), sum(sizes), facts)
            self._reports.append(FileReport(file.name, file.format.value, facts - before, one.bad))
            self._seconds = time.monotonic() - started
            self._tell(file, sum(sizes[: at + 1]), sum(sizes), facts)
        self.conclude()

    def _tell(self, file: SourceFile, done: int, total: int, facts: int) -> None:
        if self._progress:
            self._progress(Progress(file.name, done, total, facts, self._findings.total))


def read(  # noqa: PLR0913 - each keyword is an option that users set alone
    specs: Spec | Iterable[Spec],
    *,
    header: bool = False,
    base: str = "",
    strict: bool = False,
    batch_size: int = 8192,
    keep_bad_lines: int = 20,
    progress: ProgressCallback | None = None,
    on_bad_line: Callable[[BadLine], None] | None = None,
) -> Load:
    """Return a load of files, to be iterated for batches of facts.

    Args:
        specs: Paths, folders, globs, URIs of these, or `relation=path`; one or several.
        header: Whether the first row of a CSV or TSV file names its columns.
        base: What relative IRIs of Turtle, TriG, RDF/XML and JSON-LD resolve against.
        strict: Whether bad lines are an error, raised when all of them are known.
        batch_size: About how many facts a batch holds.
        keep_bad_lines: How many bad lines the report keeps; all are counted.
        progress: Called after each batch and at the end of each file.
        on_bad_line: Called for each bad line, for those who want all of them.
    """
    several = [specs] if isinstance(specs, (str, os.PathLike)) else list(specs)
    options = ReadOptions(
        header=header, base=base, strict=strict, batch_size=batch_size, keep_bad_lines=keep_bad_lines
    )
    return Load(expand(several), options, progress, on_bad_line)


def read_all(
    specs: Spec | Iterable[Spec], *, header: bool = False, base: str = "", strict: bool = False
) -> tuple[list[Fact], LoadReport]:
    """Return all facts of files at once, and the report: `read` for those who need no stream."""
    load = read(specs, header=header, base=base, strict=strict)
    facts = [fact for batch in load for fact in batch]
    return facts, load.report


def fact_batches(one: FileReading) -> Iterator[list[Fact]]:
    """Yield the facts of one file, in batches."""
    source = one.source
    with reading(source.name), open_source(source.path, source.compression, one.meter) as stream:
        yield from _reader(source.format)(stream, one)


def _reader(form: Format) -> Callable[[IO[bytes], FileReading], Iterator[list[Fact]]]:
    if form in RDF_FORMATS:
        from zodiacedge.io.formats.rdf import read_rdf  # noqa: PLC0415 - loads pyoxigraph

        return read_rdf
    if form in {Format.PARQUET, Format.ARROW}:
        from zodiacedge.io.formats.arrow import read_columnar  # noqa: PLC0415 - loads pyarrow

        return read_columnar
    return read_jsonl if form is Format.JSONL else read_tabular


def _blank_prefixes(files: Sequence[SourceFile]) -> list[str]:
    """Return what to put before each file's blank node labels.

    A label means one node within one RDF document, so several documents must not share theirs. The
    files of one export are one document. Cells are ours, and there a label means what it says.
    """
    documents = dict.fromkeys(f.document for f in files if f.format in RDF_FORMATS)
    if len(documents) < 2:
        return ["" for _ in files]
    number = {document: f"f{at}_" for at, document in enumerate(documents, 1)}
    return [number[f.document] if f.format in RDF_FORMATS else "" for f in files]
