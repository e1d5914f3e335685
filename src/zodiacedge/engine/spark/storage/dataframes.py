"""Relations as Spark data frames, and data frames as files.

A frame of a relation has columns `c0`, `c1`, … of fingerprints. The rows that several relations gain in one
job are one frame, tagged with their relation; the tasks of its last stage write the files and return names
and counts, so no other job has to count or collect them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation, SignedFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

TAG = "tag"
_SIGN = "sign"
# A task that writes more rows than this writes another file.
_ROWS_PER_FILE = 4_000_000
_MOST_KNOWN = 1000
_PATTERN = re.compile(r"[\[\]{}*?\\,]")


def names(width: int) -> list[str]:
    """Return the names of so many columns."""
    return [f"c{n}" for n in range(width)]


def schema(width: int) -> str:
    """Return the schema of so many columns as Spark writes it."""
    return ", ".join(f"{name} long" for name in names(width))


def in_tables(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Concatenate batches to tables of so many rows or a batch more; the last one may be smaller."""
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
    """Makes data frames of files, and files of data frames."""

    def __init__(self, workspace: Workspace) -> None:
        """Take the workspace that files are written in."""
        self._workspace = workspace

    @property
    def session(self) -> SparkSession:
        """The Spark session."""
        return self._workspace.jobs.session

    def nothing(self, width: int) -> DataFrame:
        """Return a frame without rows."""
        return self.session.createDataFrame([], schema(width))

    def parts(self, parts: Iterable[DataFile], width: int) -> DataFrame:
        """Return the rows of files, duplicates included."""
        paths = [spark_path(part.path) for part in parts if part.rows]
        if not paths:
            return self.nothing(width)
        # Looking the files up takes Spark longer than many a join.
        known = self._workspace.frames
        key = (width, *paths)
        frame = known.get(key)
        if frame is None:
            # Other threads may use the cache at the same time.
            for oldest in list(known)[: len(known) + 1 - _MOST_KNOWN]:
                known.pop(oldest, None)
            frame = known[key] = self.session.read.schema(schema(width)).parquet(*paths)
        return frame

    def content(self, relation: Relation, content: SignedFiles) -> DataFrame:
        """Return the rows that signed files come to, each once."""
        plus, minus = content.plus, content.minus
        width = relation.width
        if not minus:
            return self.parts(plus, width)
        signs = [plus for plus, _ in content.layers]
        if True not in signs[signs.index(False) :]:
            return self.parts(plus, width).join(self.parts(minus, width), names(width), "left_anti")
        # A deleted row may be inserted again: it is there if it was inserted more often than deleted.
        return self._consolidated(plus, minus, width).where(f"{_SIGN} > 0").select(*names(width))

    def _consolidated(self, plus: Iterable[DataFile], minus: Iterable[DataFile], width: int) -> DataFrame:
        """Return each row with its net count: how much more often it was inserted than deleted."""
        from pyspark.sql import functions  # noqa: PLC0415 - heavy

        signed = [
            self.parts(parts, width).withColumn(_SIGN, functions.lit(sign))
            for parts, sign in ((plus, 1), (minus, -1))
        ]
        return together(signed).groupBy(*names(width)).agg(functions.sum(_SIGN).alias(_SIGN))

    def union(self, relation: Relation, contents: Iterable[SignedFiles]) -> DataFrame:
        """Return the rows of several owners; a row that several have comes several times."""
        held = [content for content in contents if content.rows]
        plain = [part for content in held if content.plain for part in content.parts]
        # Many small owners are one scan of many files.
        frames = [self.parts(plain, relation.width)] if plain else []
        frames += [self.content(relation, content) for content in held if not content.plain]
        return together(frames) if frames else self.nothing(relation.width)

    def delta(
        self, relation: Relation, before: SignedFiles, after: SignedFiles
    ) -> tuple[DataFrame | None, DataFrame | None]:
        """Return what an owner gained and what it lost of a relation."""
        more, less = before.moved(after)
        width = relation.width
        if not more or not less or after.layers[: len(before.layers)] == before.layers:
            return self.parts(more, width) if more else None, self.parts(less, width) if less else None
        # A row deleted from one file may be inserted by another.
        net = self._consolidated(more, less, width)
        plus, minus = (net.where(f"{_SIGN} {sign} 0").select(*names(width)) for sign in "><")
        return plus, minus

    def write(
        self,
        tagged: DataFrame,
        relations: Sequence[Relation],
        why: str,
        yield_point: YieldPoint,
        counted: frozenset[int] = frozenset(),
    ) -> dict[int, list[DataFile]]:
        """Write tagged rows: the tag is the position of a row's relation in a list. One job.

        Rows with a tag that is only `counted` are not written.
        """
        writer = _Writer(self._workspace.scratch.folder, tuple(relations), counted)
        written: dict[int, list[DataFile]] = {}
        for tag, file in self._workspace.jobs.each_partition(writer, tagged, why, yield_point):
            written.setdefault(tag, []).append(self._workspace.adopt(file))
        return written


def tagged(frame: DataFrame, tag: int, width: int) -> DataFrame:
    """Return a frame with a tag, padded to so many columns."""
    from pyspark.sql import functions  # noqa: PLC0415 - heavy

    have = len(frame.columns)
    more = [functions.lit(0).cast("long").alias(f"c{n}") for n in range(have, width)]
    return frame.select(functions.lit(tag).alias(TAG), *frame.columns, *more)


def together(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of several frames of equal columns."""
    # Spark analyses a plan again with every step: by halves, each frame takes part in few of them.
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return together(frames[:half]).unionAll(together(frames[half:]))


def spark_path(path: str) -> str:
    """Return a path as Spark names it: nothing in it is taken for a pattern."""
    name = _PATTERN.sub(r"\\\g<0>", path)
    # Without a scheme Spark would look in its default file system, which may be another.
    return name if "://" in path else f"file://{name}"


@dataclass(frozen=True)
class _Writer:
    """The last stage of a job: writes tagged rows to files, and yields their tags, names and counts."""

    folder: Folder
    relations: tuple[Relation, ...]
    counted: frozenset[int] = frozenset()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, DataFile]]:
        waiting: dict[int, list[list[NDArray[np.int64]]]] = {}
        rows: dict[int, int] = {}
        passed = dict.fromkeys(self.counted, 0)
        for batch in batches:
            tags = batch.column(0).to_numpy()
            for tag in np.unique(tags).tolist():
                chosen = tags == tag
                if tag in passed:
                    passed[tag] += int(chosen.sum())
                    continue
                width = self.relations[tag].width
                columns = [batch.column(n + 1).to_numpy()[chosen] for n in range(width)]
                waiting.setdefault(tag, []).append(columns)
                rows[tag] = rows.get(tag, 0) + int(chosen.sum())
                if rows[tag] >= _ROWS_PER_FILE:
                    yield tag, self._written(tag, waiting.pop(tag))
                    rows[tag] = 0
        for tag, pieces in waiting.items():
            yield tag, self._written(tag, pieces)
        for tag, count in passed.items():
            if count:
                yield tag, DataFile("", count)

    def _written(self, tag: int, pieces: list[list[NDArray[np.int64]]]) -> DataFile:
        columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
        return self.folder.write_rows(self.relations[tag], columns)
