"""A stream of the files that arrive in a folder, in numbered batches, without Spark.

The folder is listed every few seconds. A file belongs to the next batch when it is *settled*: its size and
time are those of the listing before, or it is older than the time between two listings. The files of a batch
are in the journal before the batch is delivered; after a crash, batches that the store does not know are
delivered again. The consumer reads the files.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.io.file_batch import FileBatch, stream_ended
from zodiacedge.util.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from zodiacedge.pipeline.file_journal import FileJournal

# The size of a file and its time of writing, by which a file that is being written is recognised.
_Signature = tuple[int, int]


@dataclass(frozen=True)
class Arrivals:
    """The folder where files arrive, the extensions of their names, and the maximum of files of a batch."""

    folder: Path
    extensions: tuple[str, ...]
    most_files: int | None = None


class FolderStream:
    """A stream that delivers batches of files in order, until it is interrupted or has no more."""

    def __init__(
        self,
        arrivals: Arrivals,
        journal: FileJournal,
        taken: Collection[Path],
        consume: Callable[[FileBatch], None],
        idle: Callable[[], object],
    ) -> None:
        """Take the journal, files that were taken without it, the consumer of batches, and of pauses."""
        self._arrivals = arrivals
        self._journal = journal
        self._known = set(taken).union(*journal.batches)
        self._consume = consume
        self._idle = idle
        self._seen: dict[Path, _Signature] = {}

    def follow(self, seconds: float | None, last: int) -> None:
        """Deliver the batches after `last`, existing files and, with an interval, files that arrive later.

        Ctrl-C waits for the end of the current batch.
        """
        for number in range(last + 1, len(self._journal.batches)):
            self._deliver(number)
        while True:
            with self._reporting():
                arrived = self._arrived(seconds)
            for files in self._batches(arrived):
                with self._reporting():
                    number = self._journal.append(files)
                self._known.update(files)
                self._deliver(number)
            if seconds is None:
                return
            with uninterrupted():
                self._idle()
            time.sleep(seconds)

    def _deliver(self, number: int) -> None:
        files = self._journal.batches[number]
        there = tuple(sorted(file for file in files if file.exists()))
        gone = tuple(sorted(set(files).difference(there)))
        with uninterrupted():
            self._consume(FileBatch(self._journal.stream, number, there, gone))

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise stream_ended(self._arrivals.folder, problem) from problem

    def _batches(self, files: Sequence[Path]) -> Iterator[Sequence[Path]]:
        most = self._arrivals.most_files or max(len(files), 1)
        for start in range(0, len(files), most):
            yield files[start : start + most]

    def _arrived(self, seconds: float | None) -> list[Path]:
        """Return the settled files that are in no batch yet, the oldest first; without an interval, all."""
        found = {path: signature for path, signature in self._listed() if path not in self._known}
        settled_before = time.time_ns() - int((seconds or 0) * 1e9)
        arrived = [
            (written, path)
            for path, (size, written) in found.items()
            if seconds is None or written < settled_before or self._seen.get(path) == (size, written)
        ]
        self._seen = found
        return [path for _, path in sorted(arrived)]

    def _listed(self) -> Iterator[tuple[Path, _Signature]]:
        """Yield the files of the folder and below, except those whose names begin with `_` or `.`."""
        for root, folders, names in os.walk(self._arrivals.folder.resolve(), onerror=_raise):
            folders[:] = [name for name in folders if not _is_hidden(name)]
            for name in names:
                if not _is_hidden(name) and name.lower().endswith(self._arrivals.extensions):
                    path = Path(root, name)
                    try:
                        status = path.stat()
                    except FileNotFoundError:
                        # It was removed since the folder was listed.
                        continue
                    yield path, (status.st_size, status.st_mtime_ns)


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _raise(error: OSError) -> None:
    raise error
