"""Conversion of relations from files to Spark DataFrames, and back.

A frame of a relation has columns `c0`, `c1`, … of fingerprints. One job writes several frames: their rows are
tagged by frame, and the tasks of its last stage write the files and return paths and counts, so that no
further job counts or collects rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from zodiacedge.engine.yield_point import ALONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation, SignedFiles
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

_TAG = "tag"
_SIGN = "sign"
_ROWS_PER_FILE = 4_000_000
_MOST_CACHED_FRAMES = 1000
_GLOB_CHARACTERS = re.compile(r"[\[\]{}*?\\,]")


def names(width: int) -> list[str]:
    """Return the names of `width` columns."""
    return [f"c{n}" for n in range(width)]


def schema(width: int) -> str:
    """Return the schema of `width` columns in Spark's notation."""
    return ", ".join(f"{name} long" for name in names(width))


def in_tables(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Concatenate batches to tables of at least `rows` rows; the last table may be smaller."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(waiting)
            waiting, count = [], 0
    if count:
        yield pa.Table.from_batches(waiting)


class Frames:
    """Converter between files and DataFrames."""

    def __init__(
        self, workspace: Workspace, yield_point: YieldPoint = ALONE, session: SparkSession | None = None
    ) -> None:
        """Take the workspace that files are written in, by jobs that let other threads run meanwhile.

        Frames are of the engine's own session, or of the given one.
        """
        self._workspace = workspace
        self._yield_point = yield_point
        self._session = session

    @property
    def session(self) -> SparkSession:
        """The Spark session."""
        return self._session if self._session is not None else self._workspace.jobs.session

    def empty(self, width: int) -> DataFrame:
        """Return a frame without rows."""
        return self.session.createDataFrame([], schema(width))

    def parts(self, files: Iterable[DataFile], width: int) -> DataFrame:
        """Return the rows of files, duplicates included."""
        paths = [spark_path(file.path) for file in files if file.rows]
        if not paths:
            return self.empty(width)
        # Spark lists the files of a new frame, which may take longer than a join.
        cache = self._workspace.frames
        key = (id(self._session), width, *paths)
        frame = cache.get(key)
        if frame is None:
            # Other threads may change the cache meanwhile.
            for oldest in list(cache)[: len(cache) + 1 - _MOST_CACHED_FRAMES]:
                cache.pop(oldest, None)
            frame = cache[key] = self.session.read.schema(schema(width)).parquet(*paths)
        return frame

    def content(self, relation: Relation, content: SignedFiles) -> DataFrame:
        """Return the net rows of signed files, each once."""
        plus, minus = content.plus, content.minus
        width = relation.width
        if not minus:
            return self.parts(plus, width)
        signs = [plus for plus, _ in content.layers]
        if True not in signs[signs.index(False) :]:
            return self.parts(plus, width).join(self.parts(minus, width), names(width), "left_anti")
        # A deleted row may be inserted again: a row exists if its net count is positive.
        return self._consolidated(plus, minus, width).where(f"{_SIGN} > 0").select(*names(width))

    def _consolidated(self, plus: Iterable[DataFile], minus: Iterable[DataFile], width: int) -> DataFrame:
        """Return each row with its net count: inserts minus deletes."""
        from pyspark.sql import functions  # noqa: PLC0415 - heavy

        signed = [
            self.parts(files, width).withColumn(_SIGN, functions.lit(sign))
            for files, sign in ((plus, 1), (minus, -1))
        ]
        return together(signed).groupBy(*names(width)).agg(functions.sum(_SIGN).alias(_SIGN))

    def union(self, relation: Relation, contents: Iterable[SignedFiles]) -> DataFrame:
        """Return the rows of several owners, with duplicates where owners share a row."""
        filled = [content for content in contents if content.rows]
        plain = [file for content in filled if content.plain for file in content.parts]
        # One scan of many files is cheaper than a union of many frames.
        frames = [self.parts(plain, relation.width)] if plain else []
        frames += [self.content(relation, content) for content in filled if not content.plain]
        return together(frames) if frames else self.empty(relation.width)

    def delta(
        self, relation: Relation, before: SignedFiles, after: SignedFiles
    ) -> tuple[DataFrame | None, DataFrame | None]:
        """Return the rows of a relation that an owner gained, and those that it lost."""
        inserts, deletes = before.moved(after)
        width = relation.width
        # A row may have been inserted again with another stamp.
        disjoint = after.layers[: len(before.layers)] == before.layers and not after.stamped
        if not inserts or not deletes or disjoint:
            plus, minus = (self.parts(files, width) if files else None for files in (inserts, deletes))
            return plus, minus
        # A row deleted by one file may be inserted by another.
        net = self._consolidated(inserts, deletes, width)
        plus, minus = (net.where(f"{_SIGN} {sign} 0").select(*names(width)) for sign in "><")
        return plus, minus

    def write(self, rows: Sequence[tuple[Relation, DataFrame]], why: str) -> list[list[DataFile]]:
        """Write the rows of frames, each of a relation, in one job; return the files of each frame.

        A frame with one column more than its relation has stamps.
        """
        written: list[list[DataFile]] = [[] for _ in rows]
        if not rows:
            return written
        relations = tuple(relation for relation, _ in rows)
        widths = tuple(len(frame.columns) for _, frame in rows)
        frame = together([_tagged(frame, tag, max(widths)) for tag, (_, frame) in enumerate(rows)])
        writer = _Writer(self._workspace.scratch.folder, relations, widths)
        for tag, file in self._workspace.jobs.each_partition(writer, frame, why, self._yield_point):
            written[tag].append(self._workspace.adopt(file))
        return written

    def write_changes(
        self, changes: Sequence[tuple[Relation, DataFrame, DataFrame]], why: str
    ) -> list[tuple[list[DataFile], list[DataFile]]]:
        """Write the rows that only the second of two frames has, and those that only the first has."""
        sides = []
        for relation, old, new in changes:
            columns = names(relation.width)
            sides.append((relation, new.join(old, columns, "left_anti")))
            sides.append((relation, old.join(new, columns, "left_anti")))
        written = self.write(sides, why)
        return list(zip(written[::2], written[1::2], strict=True))


def _tagged(frame: DataFrame, tag: int, width: int) -> DataFrame:
    """Return a frame with a tag, padded to `width` columns."""
    from pyspark.sql import functions  # noqa: PLC0415 - heavy

    padding = [functions.lit(0).cast("long").alias(f"c{n}") for n in range(len(frame.columns), width)]
    return frame.select(functions.lit(tag).alias(_TAG), *frame.columns, *padding)


def together(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the union of frames with equal columns, with duplicates."""
    # Spark analyses the plan at every union: a balanced tree analyses each frame a few times only.
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return together(frames[:half]).unionAll(together(frames[half:]))


def spark_path(path: str) -> str:
    """Return a path as a URI for Spark, with glob characters escaped."""
    name = _GLOB_CHARACTERS.sub(r"\\\g<0>", path)
    # Without a scheme, Spark would use its default file system.
    return name if "://" in path else f"file://{name}"


@dataclass(frozen=True)
class _Writer:
    """The last stage of a job: writes tagged rows to files, and yields tags and files."""

    folder: Folder
    relations: tuple[Relation, ...]
    widths: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, DataFile]]:
        waiting: dict[int, list[list[NDArray[np.int64]]]] = {}
        rows: dict[int, int] = {}
        for batch in batches:
            tags = batch.column(0).to_numpy()
            for tag in np.unique(tags).tolist():
                chosen = tags == tag
                columns = [batch.column(n + 1).to_numpy()[chosen] for n in range(self.widths[tag])]
                waiting.setdefault(tag, []).append(columns)
                rows[tag] = rows.get(tag, 0) + int(chosen.sum())
                if rows[tag] >= _ROWS_PER_FILE:
                    yield tag, self.folder.write_pieces(self.relations[tag], waiting.pop(tag))
                    rows[tag] = 0
        for tag, pieces in waiting.items():
            yield tag, self.folder.write_pieces(self.relations[tag], pieces)
