"""From files that arrive in a folder to changes of a store: each batch is one change, exactly once.

The number of a batch is kept with its change, in the same record. A batch that comes again after a crash is
known by it: if its change is there, it is passed over, and if it is not, it is made. So nothing is in twice
and nothing is lost, wherever the process was killed. Finding files and numbering batches is Spark's; the
change itself is made by whichever engine the store was opened with.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.cluster.jobs import Jobs
from zodiacedge.engine.spark.cluster.session import Cluster
from zodiacedge.engine.spark.streaming.file_stream import FileStream, Landing
from zodiacedge.errors import Diagnostic, StoreProblem
from zodiacedge.io.sources import EXTENSIONS, Format, relation_name
from zodiacedge.io.streams import COMPRESSIONS
from zodiacedge.kb.arguments import in_memory
from zodiacedge.store.knowledge_base import StoredKnowledgeBase
from zodiacedge.store.layout import STREAMS
from zodiacedge.store.location.local import LocalLocation
from zodiacedge.store.problems import own_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.engine.spark.streaming.file_stream import Batch
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.store.location.base import Location

FORMATS = tuple(form.value for form in Format)
_NAME_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a batch: its change, or nothing if that was there already."""

    number: int
    files: int
    again: bool
    """Whether it came again, and its change was there."""
    version: int
    facts_added: int = 0
    bad_lines: int = 0
    seconds: float = 0.0
    gone: tuple[str, ...] = ()
    """Files that arrived and were taken away before they could be read: what was in them is not in."""

    def to_dict(self) -> dict[str, object]:
        """Return it as plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read, and which of them."""

    format: str = ""
    """Files of this format only, by its usual extension; of any if not given."""
    relation: str = ""
    """What rows of tables state; the name of each file if not given."""
    header: bool = False
    most_files: int | None = None
    """How many files one change takes at most."""
    quarantine: Path | None = None
    """A folder for bad lines; those of a batch have a folder of their own there."""
    checkpoint: Path | None = None
    """A folder for what Spark notes about the files it took; one in the store's own if not given."""


class Stream:
    """Follows a folder, and makes a change of each batch of files that arrives in it."""

    def __init__(
        self,
        kb: KnowledgeBase,
        folder: str | Path,
        reading: Reading | None = None,
        told: Callable[[Applied], None] | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        """Take a store that is open for writing, and the folder; nothing starts yet.

        Args:
            kb: The store.
            folder: Where files arrive, in it or below: whole, that is moved there under their final names.
            reading: How files are read.
            told: Called after each batch.
            cluster: Where Spark runs: this machine if not given.
        """
        if not isinstance(kb, StoredKnowledgeBase):
            raise in_memory()
        self._kb = kb
        self._folder = Path(folder)
        if not self._folder.is_dir():
            raise StoreProblem(
                Diagnostic("D017", f"there is no folder {folder} that files could arrive in", "make it first")
            )
        self._reading = reading or Reading()
        _refuse_own_files(self._folder, kb.store.location, self._reading)
        self._pattern = _pattern(self._reading.format)
        self._relation = relation_name(self._reading.relation) if self._reading.relation else ""
        self._told = told
        cluster = cluster or Cluster()
        cluster.refuse_if_missing()
        self._jobs = Jobs(cluster)
        # Streams from several folders may go into one store, and those of several stores into one folder.
        names, place = [str(self._folder.resolve())], self._reading.checkpoint
        if place is None:
            place = _checkpoints(kb.store.location)
        else:
            names.append(_whole_name(kb.store.location))
        name = sha256("\n".join(names).encode()).hexdigest()[:_NAME_DIGITS]
        self._checkpoint = place / name

    def follow(self, seconds: float | None = None) -> None:
        """Take what is there and what comes, looking every so many seconds; without them, what is there.

        Ctrl-C ends it between two batches.
        """
        landing = Landing(self._folder, self._pattern, self._checkpoint, self._reading.most_files)
        FileStream(self._jobs, landing, self._take).follow(seconds)

    def _take(self, batch: Batch) -> None:
        done = self._kb.streams.get(batch.stream, -1)
        if batch.number <= done:
            self._tell(Applied(batch.number, len(batch.files), again=True, version=self._kb.version))
            return
        started = time.perf_counter()
        change = self._kb.change()
        sources = [f"{self._named(path)}{path}" for path in batch.files]
        bad = 0
        if sources:
            quarantine = self._quarantine(batch)
            bad = change.load(*sources, header=self._reading.header, quarantine=quarantine).bad
        gone = tuple(str(path) for path in batch.gone)
        without = f", without {', '.join(path.name for path in batch.gone)}" if gone else ""
        made = self._kb.apply(
            change.collected(),
            message=f"batch {batch.number} of {self._folder}{without}",
            stream=(batch.stream, batch.number),
        )
        self._tell(
            Applied(
                batch.number,
                len(batch.files),
                again=False,
                version=made.version_after,
                facts_added=made.facts_added,
                bad_lines=bad,
                seconds=time.perf_counter() - started,
                gone=gone,
            )
        )

    def _named(self, path: Path) -> str:
        """Return what is put before a path so that its rows are of the relation that was asked for."""
        return f"<{self._relation}>=" if self._relation and _is_table(path) else ""

    def _quarantine(self, batch: Batch) -> Path | None:
        if self._reading.quarantine is None:
            return None
        folder = self._reading.quarantine / f"{batch.stream[:8]}-{batch.number:06d}"
        # What a process that was killed wrote there is written again.
        for left in folder.glob("bad-lines-*.jsonl"):
            left.unlink()
        return folder

    def _tell(self, applied: Applied) -> None:
        if self._told:
            self._told(applied)


def _refuse_own_files(folder: Path, place: Location, reading: Reading) -> None:
    """Raise if what the stream writes would arrive in the folder that it follows."""
    landing = folder.resolve()
    if isinstance(place, LocalLocation):
        store = place.root.resolve()
        if store == landing or landing in store.parents:
            raise own_files(folder, f"the store {place} is in it")
        if store in landing.parents:
            raise own_files(folder, f"it is in the store {place}")
    if reading.quarantine is not None:
        bad = reading.quarantine.resolve()
        if bad == landing or landing in bad.parents:
            raise own_files(folder, f"the folder for bad lines, {reading.quarantine}, is in it")


def _whole_name(place: Location) -> str:
    """Return the one name of a store, whatever it is called here."""
    return str(place.root.resolve()) if isinstance(place, LocalLocation) else place.uri


def _checkpoints(place: Location) -> Path:
    """Return where Spark notes which files it took: in the folder of the store."""
    if not isinstance(place, LocalLocation):
        raise StoreProblem(
            Diagnostic(
                "D021",
                f"Spark cannot note in {place} which files it took",
                "name a folder for that: zodiac stream --checkpoint DIR, or Reading(checkpoint=…)",
            )
        )
    return place.root / STREAMS


def _pattern(form: str) -> str:
    """Return the pattern, in Hadoop's words, of the names of files that are meant."""
    wanted = [name for name, one in EXTENSIONS.items() if not form or one.value == form]
    names = [*wanted, *(f"{name}.{packed}" for name in wanted for packed in COMPRESSIONS)]
    return f"*.{{{','.join(map(_in_any_case, names))}}}"


def _in_any_case(name: str) -> str:
    return "".join(f"[{one}{one.upper()}]" if one.isalpha() else one for one in name)


def _is_table(path: Path) -> bool:
    names = {part.lower() for part in path.name.split(".")[-2:]}
    return any(EXTENSIONS.get(name) in _TABLES for name in names)


_TABLES = {Format.CSV, Format.TSV, Format.PARQUET, Format.ARROW, Format.JSONL}
