"""Files of rows: what many small changes leave behind is put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spark.test_spark_terms import entries
from zodiacedge.engine.spark.ingest import fact_delta
from zodiacedge.engine.spark.storage import compaction
from zodiacedge.engine.spark.storage.compaction import compacted
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader, Translation
from zodiacedge.engine.spark.storage.files import Folder, Relation, SignedFiles
from zodiacedge.engine.spark.storage.terms import Hashing, TermFiles, columns_of, write_terms
from zodiacedge.engine.yield_point import ALONE
from zodiacedge.terms import integer

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from zodiacedge.engine.spark.engine import SparkEngine

EDGE = Relation("edge", 2)


def rows_of(content: SignedFiles) -> list[list[int]]:
    translation = Translation({}, Hashing())
    table = SignedFileReader().read(EDGE, [content]).table(translation)
    return sorted(translation.keys(table.rows.ravel()).reshape(-1, 2).tolist())


def layered(folder: Folder, changes: int) -> tuple[SignedFiles, list[list[int]]]:
    """Return rows that came and went in many changes, and those that are left."""
    content, left = SignedFiles(), {}
    for n in range(changes):
        came = np.arange(4 * n, 4 * n + 4)
        content = content.then([folder.write_rows(EDGE, [came, came + 1])])
        left.update({int(number): [int(number), int(number) + 1] for number in came})
        gone = came[: n % 3]
        content = content.then((), [folder.write_rows(EDGE, [gone, gone + 1])])
        for number in gone.tolist():
            del left[number]
    return content, sorted(left.values())


def test_layers_are_read_in_order(tmp_path: Path) -> None:
    content, expected = layered(Folder(str(tmp_path)), 6)
    assert rows_of(content) == expected
    assert content.rows == len(expected)


def test_a_content_of_many_layers_is_written_anew(spark: SparkEngine) -> None:
    place = spark.empty().workspace
    content, expected = layered(place.scratch.folder, 24)
    assert len(content.layers) > 32
    found = compacted(place, EDGE, content, ALONE)
    assert rows_of(found) == expected
    assert len(found.layers) <= spark.jobs.cores
    assert compacted(place, EDGE, found, ALONE) is found


def test_small_files_stay_before_and_behind_the_large_ones(
    spark: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = spark.empty().workspace
    monkeypatch.setattr(compaction, "_LARGE", 4)
    content = SignedFiles()
    # 7 comes by itself and goes with many, 1 goes by itself and comes back with many.
    for came, numbers in (
        *[(True, [1, 2, 3, 4, 5]), (True, [7]), (False, [3, 4, 5, 2, 7]), (False, [1])],
        (True, [1, 11, 12, 13, 14]),
        *[(True, [20 + n]) for n in range(32)],
    ):
        rows = np.array(numbers)
        part = place.adopt(place.scratch.folder.write_rows(EDGE, [rows, rows]))
        content = content.then([part]) if came else content.then((), [part])
    expected = [[n, n] for n in (1, 11, 12, 13, 14, *range(20, 52))]
    assert rows_of(content) == expected
    found = compacted(place, EDGE, content, ALONE)
    assert rows_of(found) == expected
    assert len(found.layers) < 10


def test_many_small_files_of_terms_become_one(tmp_path: Path) -> None:
    folder, hashing = Folder(str(tmp_path)), Hashing()
    tables = [columns_of(entries([integer(n), integer(n + 1)]), hashing) for n in range(20)]
    known = TermFiles(tuple(write_terms(folder, table) for table in tables))
    new = write_terms(folder, columns_of(entries([integer(7), integer(99)]), hashing))
    found = fact_delta.run(fact_delta.DeltaTask({}, {}, {}, TermFiles((new,)), known, folder, hashing))
    assert found.small_terms is not None
    assert found.small_terms.rows == 21
    assert [part.rows for part in found.terms] == [1]
