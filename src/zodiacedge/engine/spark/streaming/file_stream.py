"""A stream of the files that arrive in a folder, in numbered batches, by Spark Structured Streaming.

Spark lists new files, writes the files of batch n to its checkpoint before it delivers the batch, and commits
the batch when the consumer returns. After a crash, uncommitted batches are delivered again, each with the
same files. The consumer reads the files.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.storage.dataframes import spark_path
from zodiacedge.engine.spark.streaming.checkpoint import checkpointed_files, path_of, stream_of
from zodiacedge.io.file_batch import FileBatch, stream_ended

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from zodiacedge.engine.spark.cluster.jobs import Jobs

_SCHEMA = "path string, modificationTime timestamp, length long, content binary"
_POLL_SECONDS = 0.1
# A file that arrives late may be old: no file is skipped for its age.
_ANY_AGE = "36500d"


@dataclass(frozen=True)
class Landing:
    """The folder where files arrive, the pattern of their names, and the folder of Spark's checkpoint."""

    folder: Path
    pattern: str
    checkpoint: Path
    most_files: int | None = None
    """The maximum number of files of a batch."""


class _StoppedError(Exception):
    """Raised for a batch after the stop, so that the next start delivers it again."""


class FileStream:
    """A stream that delivers batches of files in order, until it is stopped or has no more."""

    def __init__(
        self,
        jobs: Jobs,
        landing: Landing,
        consume: Callable[[FileBatch], None],
        idle: Callable[[], object] = lambda: None,
    ) -> None:
        """Take the consumer of batches, and that of pauses; the stream is not started yet."""
        self._jobs = jobs
        self._landing = landing
        self._consume = consume
        self._idle = idle
        self._consuming = threading.Lock()
        self._stopped = False
        self._problem: BaseException | None = None
        self._ended = threading.Event()

    def follow(self, seconds: float | None) -> None:
        """Deliver existing files and, if an interval in seconds is given, files that arrive later.

        An exception of the consumer is raised here. Ctrl-C waits for the end of the current batch.
        """
        with self._jobs.runner.silence():
            query = self._start(seconds)
            threading.Thread(target=self._wait, args=(query,), daemon=True).start()
            try:
                pause = time.monotonic()
                while not self._ended.wait(_POLL_SECONDS):
                    if seconds is not None and time.monotonic() >= pause + seconds:
                        self._rest()
                        pause = time.monotonic()
            except BaseException:
                self._stop(query)
                raise
        if self._problem is not None:
            raise self._problem

    def _rest(self) -> None:
        """Call the consumer of pauses, unless a batch is under way."""
        if self._consuming.acquire(blocking=False):
            try:
                self._idle()
            finally:
                self._consuming.release()

    def _start(self, seconds: float | None) -> StreamingQuery:
        landing, session = self._landing, self._jobs.session
        reader = session.readStream.format("binaryFile").schema(_SCHEMA)
        reader = reader.option("pathGlobFilter", landing.pattern).option("recursiveFileLookup", "true")
        reader = reader.option("maxFileAge", _ANY_AGE)
        if landing.most_files is not None:
            reader = reader.option("maxFilesPerTrigger", landing.most_files)
        # Only paths are selected, so that Spark does not read the files.
        paths = reader.load(spark_path(str(landing.folder.resolve()))).select("path")
        writer = paths.writeStream.option("checkpointLocation", _uri(landing.checkpoint))
        writer = writer.foreachBatch(self._deliver)
        if seconds is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{int(seconds * 1000)} milliseconds").start()

    def _deliver(self, frame: DataFrame, number: int) -> None:
        files = {path_of(row["path"]) for row in frame.collect()}
        with self._consuming:
            if self._stopped:
                # Returning would commit the batch.
                raise _StoppedError
            try:
                removed = {path_of(uri) for uri in self._checkpointed(number)} - files
                if files or removed:
                    stream = stream_of(self._landing.checkpoint)
                    self._consume(FileBatch(stream, number, tuple(sorted(files)), tuple(sorted(removed))))
            except BaseException as problem:
                self._problem = problem
                raise

    def _checkpointed(self, number: int) -> frozenset[str]:
        try:
            return checkpointed_files(self._landing.checkpoint, number)
        except (ValueError, KeyError) as problem:
            raise stream_ended(self._landing.folder, problem) from problem

    def _wait(self, query: StreamingQuery) -> None:
        try:
            query.awaitTermination()
        except Exception as problem:  # noqa: BLE001 - Spark has many kinds; `follow` raises it
            if self._problem is None and not self._stopped:
                self._problem = stream_ended(self._landing.folder, problem)
        finally:
            self._ended.set()

    def _stop(self, query: StreamingQuery) -> None:
        with self._consuming:
            self._stopped = True
        query.stop()
        self._ended.wait()


def _uri(path: Path) -> str:
    """Return the URI of a path in Hadoop's notation, without quoting."""
    return f"file://{path.resolve()}"
