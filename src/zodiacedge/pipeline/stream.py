"""Applies files that arrive in a folder to a store: each batch is one change, exactly once.

The number of a batch is recorded with its change, in the same log record. A batch that is delivered again
after a crash is skipped if its change is recorded, and applied otherwise, wherever the process was killed.
The engine of the store applies the change. Spark finds files and numbers batches for the engine `spark`,
`folder_stream` for others. Either may continue what the other began: a file of an applied batch of the other
is not taken again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.streaming.checkpoint import stream_of, taken_files
from zodiacedge.errors import Diagnostic, StoreProblem
from zodiacedge.io import QUARANTINED
from zodiacedge.io.file_batch import stream_ended
from zodiacedge.io.report import BadLine, LoadReport
from zodiacedge.io.sources import EXTENSIONS, Format
from zodiacedge.io.streams import COMPRESSIONS
from zodiacedge.kb.arguments import in_memory
from zodiacedge.kb.time.retention import LATE
from zodiacedge.language.names import full_name
from zodiacedge.pipeline.file_journal import FileJournal
from zodiacedge.pipeline.folder_stream import Arrivals, FolderStream
from zodiacedge.store.knowledge_base import StoredKnowledgeBase
from zodiacedge.store.layout import STREAMS
from zodiacedge.store.location.local import LocalLocation
from zodiacedge.store.problems import own_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zodiacedge.engine.spark.cluster.session import Cluster
    from zodiacedge.io.file_batch import FileBatch
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.store.location.base import Location

_LOGGER = logging.getLogger(__name__)
_NAME_DIGITS = 16
_MOST_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of a batch: its change, or none if it was applied before."""

    number: int
    files: int
    again: bool
    """Whether the batch was delivered again after its change was applied."""
    version: int
    facts_added: int = 0
    bad_lines: int = 0
    examples: tuple[BadLine, ...] = ()
    """The first of the bad lines, with their reasons."""
    seconds: float = 0.0
    gone: tuple[str, ...] = ()
    """Files that were removed from the folder before they could be read; their facts are not in the store."""
    warnings: tuple[Diagnostic, ...] = ()
    """Warnings of the files, and those of late facts."""

    def to_dict(self) -> dict[str, object]:
        """Return the result as plain values for JSON."""
        return asdict(self) | {
            "examples": [bad.to_dict() for bad in self.examples],
            "warnings": [warning.to_dict() for warning in self.warnings],
        }


@dataclass(frozen=True, slots=True)
class FileSelection:
    """Options for selecting and reading files."""

    format: str = ""
    """Only files of this format, by extension; any if not given."""
    relation: str = ""
    """The relation of rows in tables; the name of each file if not given."""
    header: bool = False
    most_files: int | None = None
    """The maximum of files per change."""
    quarantine: Path | None = None
    """A folder for bad lines, with a subfolder for each batch."""
    checkpoint: Path | None = None
    """The folder that notes which files were taken; in the store's folder if not given."""
    delimiter: str = ""
    """The character between the cells of CSV and TSV files, if not the comma and the tab."""


def spark_cluster(master: str | None = None) -> Cluster:
    """Return the Spark cluster at a URL, or Spark on this machine."""
    from zodiacedge.engine.spark.cluster.session import Cluster  # noqa: PLC0415 - loads what Spark needs

    return Cluster(master) if master else Cluster()


class Stream:
    """Follows a folder, and applies each batch of files that arrives in it as one change."""

    def __init__(
        self,
        kb: KnowledgeBase,
        folder: str | Path,
        reading: FileSelection | None = None,
        applied: Callable[[Applied], None] | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        """Prepare a stream into a store that is open for writing; `follow` starts it.

        Args:
            kb: The store.
            folder: The folder that complete files are moved into, directly or below.
            reading: Options for reading files.
            applied: Called after each batch.
            cluster: The Spark cluster that finds the files; if not given, Spark on this machine finds them
                for the engine `spark`, and is not needed otherwise.
        """
        if not isinstance(kb, StoredKnowledgeBase):
            raise in_memory()
        self._kb = kb
        self._folder = Path(folder)
        if not self._folder.is_dir():
            raise StoreProblem(
                Diagnostic("D017", f"there is no folder {folder} that files could arrive in", "make it first")
            )
        self._reading = reading or FileSelection()
        _refuse_own_files(self._folder, kb.store.location, self._reading)
        relation = self._reading.relation
        self._relation = full_name(relation, kb.prefixes) if relation else ""
        self._applied = applied
        if cluster is None and kb.engine == "spark":
            cluster = spark_cluster()
        if cluster is not None:
            cluster.refuse_if_missing()
        self._cluster = cluster
        # Streams from several folders may share a store, and streams into several stores a checkpoint folder.
        names, checkpoints = [str(self._folder.resolve())], self._reading.checkpoint
        if checkpoints is None:
            checkpoints = _checkpoints(kb.store.location)
        else:
            names.append(_unique_name(kb.store.location))
        name = sha256("\n".join(names).encode()).hexdigest()[:_NAME_DIGITS]
        self._checkpoint = checkpoints / name
        self._journal = checkpoints / f"{name}.jsonl"
        self._taken: frozenset[Path] = frozenset()

    def follow(self, seconds: float | None = None) -> None:
        """Apply existing files and those that arrive, looking every `seconds`; if None, existing files only.

        Ctrl-C ends the stream between two batches.
        """
        extensions, most = _extensions(self._reading.format), self._reading.most_files
        try:
            journal = FileJournal(self._journal)
            last = self._last(journal.stream)
            self._taken = journal.files(last) if self._cluster else self._taken_by_spark()
        except (OSError, ValueError, KeyError) as problem:
            raise stream_ended(self._folder, problem) from problem
        if self._cluster:
            self._follow_by_spark(self._cluster, _pattern(extensions), seconds)
        else:
            arrivals = Arrivals(self._folder, tuple(f".{name}" for name in extensions), most)
            FolderStream(arrivals, journal, self._taken, self._apply, self._kb.tick_when_due).follow(
                seconds, last
            )

    def _follow_by_spark(self, cluster: Cluster, pattern: str, seconds: float | None) -> None:
        from zodiacedge.engine.spark.cluster.jobs import Jobs  # noqa: PLC0415 - loads what Spark needs
        from zodiacedge.engine.spark.streaming.file_stream import FileStream, Landing  # noqa: PLC0415 - as above

        landing = Landing(self._folder, pattern, self._checkpoint, self._reading.most_files)
        FileStream(Jobs(cluster), landing, self._apply, self._kb.tick_when_due).follow(seconds)

    def _last(self, stream: str) -> int:
        """Return the number of the last applied batch of a stream, -1 if there is none."""
        return self._kb.streams.get(stream, -1)

    def _taken_by_spark(self) -> frozenset[Path]:
        """Return the files of the batches that Spark delivered and the store has applied."""
        if not (self._checkpoint / "metadata").exists():
            return frozenset()
        last = self._last(stream_of(self._checkpoint))
        return taken_files(self._checkpoint, last) if last >= 0 else frozenset()

    def _apply(self, batch: FileBatch) -> None:
        files, missing = (
            [path for path in paths if path not in self._taken] for paths in (batch.files, batch.gone)
        )
        if batch.number <= self._last(batch.stream) or not (files or missing):
            self._report(Applied(batch.number, len(batch.files), again=True, version=self._kb.version))
            return
        started = time.perf_counter()
        change = self._kb.change()
        sources = [f"{self._relation_prefix(path)}{path}" for path in files]
        load = LoadReport()
        if sources:
            quarantine = self._quarantine(batch)
            header, delimiter = self._reading.header, self._reading.delimiter
            load = change.load(*sources, header=header, delimiter=delimiter, quarantine=quarantine)
        gone = tuple(str(path) for path in missing)
        without = f", without {', '.join(path.name for path in missing)}" if gone else ""
        report = self._kb.apply(
            change.collected(),
            message=f"batch {batch.number} of {self._folder}{without}",
            stream=(batch.stream, batch.number),
        )
        self._report(
            Applied(
                batch.number,
                len(files),
                again=False,
                version=report.version_after,
                facts_added=report.facts_added,
                bad_lines=load.bad,
                examples=load.bad_lines[:_MOST_EXAMPLES],
                seconds=time.perf_counter() - started,
                gone=gone,
                warnings=(*load.warnings, *(late for late in report.warnings if late.code == LATE)),
            )
        )

    def _relation_prefix(self, path: Path) -> str:
        """Return the prefix of a path that sets the relation of its rows."""
        return f"<{self._relation}>=" if self._relation and _is_table(path) else ""

    def _quarantine(self, batch: FileBatch) -> Path | None:
        if self._reading.quarantine is None:
            return None
        folder = self._reading.quarantine / f"{batch.stream[:8]}-{batch.number:06d}"
        # A killed process may have written bad lines and late facts of this batch.
        for leftover in chain.from_iterable(map(folder.glob, QUARANTINED)):
            leftover.unlink()
        return folder

    def _report(self, applied: Applied) -> None:
        number, files, version = applied.number, applied.files, applied.version
        _LOGGER.info("batch %d of %s: %d files, version %d", number, self._folder, files, version)
        if self._applied:
            self._applied(applied)


def _refuse_own_files(folder: Path, location: Location, reading: FileSelection) -> None:
    """Raise if the stream would write into the folder that it follows."""
    landing = folder.resolve()
    if isinstance(location, LocalLocation):
        store = location.root.resolve()
        if store == landing or landing in store.parents:
            raise own_files(folder, f"the store {location} is in it")
        if store in landing.parents:
            raise own_files(folder, f"it is in the store {location}")
    if reading.quarantine is not None:
        bad = reading.quarantine.resolve()
        if bad == landing or landing in bad.parents:
            raise own_files(folder, f"the folder for bad lines, {reading.quarantine}, is in it")


def _unique_name(location: Location) -> str:
    """Return the unique name of a store."""
    return str(location.root.resolve()) if isinstance(location, LocalLocation) else location.uri


def _checkpoints(location: Location) -> Path:
    """Return the folder of checkpoints and journals, in the folder of the store."""
    if not isinstance(location, LocalLocation):
        raise StoreProblem(
            Diagnostic(
                "D021",
                f"a stream cannot note in {location} which files it took",
                "name a folder for that: zodiac stream --checkpoint DIR, or FileSelection(checkpoint=…)",
            )
        )
    return location.root / STREAMS


def _extensions(form: str) -> list[str]:
    """Return the extensions of files of a format, or of all formats, in lower case."""
    plain = [name for name, known in EXTENSIONS.items() if not form or known.value == form]
    return [*plain, *(f"{name}.{compression}" for name in plain for compression in COMPRESSIONS)]


def _pattern(extensions: Iterable[str]) -> str:
    """Return the Hadoop glob pattern of the names of files to read."""
    return f"*.{{{','.join(map(_in_any_case, extensions))}}}"


def _in_any_case(name: str) -> str:
    return "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in name)


def _is_table(path: Path) -> bool:
    names = {name.lower() for name in path.name.split(".")[-2:]}
    return any(EXTENSIONS.get(name) in _TABLES for name in names)


_TABLES = {Format.CSV, Format.TSV, Format.PARQUET, Format.ARROW, Format.JSONL}
