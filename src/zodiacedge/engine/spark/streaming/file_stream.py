"""A stream of the files that arrive in a folder, in numbered batches, by Spark Structured Streaming.

Spark finds new files, writes to its checkpoint which of them are batch number n before it delivers them, and
writes that the batch is done when its consumer returns. After a crash the batches that were begun and not
done are delivered again, each with the same files. Reading the files is left to the consumer.
"""

from __future__ import annotations

import json
import logging
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.storage.dataframes import spark_path
from zodiacedge.engine.spark.streaming.checkpoint import checkpointed_files
from zodiacedge.errors import Diagnostic, StoreProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from zodiacedge.engine.spark.cluster.jobs import Jobs

_SCHEMA = "path string, modificationTime timestamp, length long, content binary"
_LOOK_SECONDS = 0.1
# A file that arrives late may be old: none is skipped for its age.
_ANY_AGE = "36500d"


@dataclass(frozen=True)
class Landing:
    """The folder where files arrive, the pattern of their names, and the folder of Spark's checkpoint."""

    folder: Path
    pattern: str
    checkpoint: Path
    most_files: int | None = None
    """How many files a batch has at most."""


@dataclass(frozen=True)
class FileBatch:
    """Files that arrived: the stream, the number of the batch in it, and their paths."""

    stream: str
    number: int
    files: tuple[Path, ...]
    gone: tuple[Path, ...] = ()
    """Files that arrived with them, and were removed before their batch was delivered."""


class _StoppedError(Exception):
    """A batch that is delivered after the stop: it is delivered again with the next start."""


class FileStream:
    """Delivers batches of files, one after the other, until it is stopped or there are no more."""

    def __init__(self, jobs: Jobs, landing: Landing, take: Callable[[FileBatch], None]) -> None:
        """Take the consumer of batches; nothing starts yet."""
        self._jobs = jobs
        self._landing = landing
        self._take = take
        self._taking = threading.Lock()
        self._stopped = False
        self._problem: BaseException | None = None
        self._ended = threading.Event()

    def follow(self, seconds: float | None) -> None:
        """Deliver the files that exist and, if an interval in seconds is given, those that arrive later.

        An exception of the consumer is raised here. Ctrl-C waits for the end of a batch under way.
        """
        with _silence(self._jobs.session):
            query = self._started(seconds)
            threading.Thread(target=self._wait, args=(query,), daemon=True).start()
            try:
                while not self._ended.wait(_LOOK_SECONDS):
                    pass
            except BaseException:
                self._stop(query)
                raise
        if self._problem is not None:
            raise self._problem

    def _started(self, seconds: float | None) -> StreamingQuery:
        landing, session = self._landing, self._jobs.session
        reader = session.readStream.format("binaryFile").schema(_SCHEMA)
        reader = reader.option("pathGlobFilter", landing.pattern).option("recursiveFileLookup", "true")
        reader = reader.option("maxFileAge", _ANY_AGE)
        if landing.most_files is not None:
            reader = reader.option("maxFilesPerTrigger", landing.most_files)
        # Only names go through Spark: a column that is not selected is not read.
        names = reader.load(spark_path(str(landing.folder.resolve()))).select("path")
        writer = names.writeStream.option("checkpointLocation", _uri(landing.checkpoint))
        writer = writer.foreachBatch(self._taken)
        if seconds is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{int(seconds * 1000)} milliseconds").start()

    def _taken(self, frame: DataFrame, number: int) -> None:
        files = {_path(row["path"]) for row in frame.collect()}
        with self._taking:
            if self._stopped:
                # A batch whose consumer returns counts as done.
                raise _StoppedError
            try:
                gone = {_path(one) for one in self._checkpointed(number)} - files
                if files or gone:
                    stream = stream_of(self._landing.checkpoint)
                    self._take(FileBatch(stream, number, tuple(sorted(files)), tuple(sorted(gone))))
            except BaseException as problem:
                self._problem = problem
                raise

    def _checkpointed(self, number: int) -> frozenset[str]:
        try:
            return checkpointed_files(self._landing.checkpoint, number)
        except (ValueError, KeyError) as problem:
            raise _ended(self._landing.folder, problem) from problem

    def _wait(self, query: StreamingQuery) -> None:
        try:
            query.awaitTermination()
        except Exception as problem:  # noqa: BLE001 - of Spark's many kinds; it is raised where somebody waits
            if self._problem is None and not self._stopped:
                self._problem = _ended(self._landing.folder, problem)
        finally:
            self._ended.set()

    def _stop(self, query: StreamingQuery) -> None:
        with self._taking:
            self._stopped = True
        query.stop()
        self._ended.wait()


@contextmanager
def _silence(session: SparkSession) -> Iterator[None]:
    """Keep Spark from logging problems that are raised."""
    bridge = logging.getLogger("py4j.clientserver")
    level = bridge.level
    bridge.setLevel(logging.CRITICAL + 1)
    session.sparkContext.setLogLevel("OFF")
    try:
        yield
    finally:
        session.sparkContext.setLogLevel("ERROR")
        bridge.setLevel(level)


def stream_of(checkpoint: Path) -> str:
    """Return the name that Spark gave to a stream when it was first started."""
    return str(json.loads((checkpoint / "metadata").read_bytes())["id"])


def _uri(path: Path) -> str:
    """Return the URI of a path as Hadoop writes it: without quoting."""
    return f"file://{path.resolve()}"


def _path(uri: str) -> Path:
    return Path("/" + uri.removeprefix("file:").lstrip("/"))


def _ended(folder: Path, problem: Exception) -> StoreProblem:
    lines = str(problem).strip().splitlines()
    why = lines[0] if lines else type(problem).__name__
    note = "start it again: what was taken is not taken twice"
    return StoreProblem(Diagnostic("D016", f"the stream from {folder} ended: {why}", note))
