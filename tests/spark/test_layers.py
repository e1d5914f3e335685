"""A segment that was evaluated again is compared with the old one: only what moved is passed on."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.spark.maintain.layers import layered
from zodiacedge.engine.spark.storage.files import TYPED, Relation, Segment, SignedFiles, read_file
from zodiacedge.engine.spark.storage.workspace import Options, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from zodiacedge.engine.spark.engine import SparkEngine
    from zodiacedge.engine.spark.storage.files import DataFile

    Row = tuple[int, ...]

UNARY, PAIRS, FLAG = Relation("u", 1), Relation("p", 2), Relation("flag", 0)


class _Files:
    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def file(self, relation: Relation, rows: Collection[Row]) -> DataFile:
        columns = [np.array(column, np.int64) for column in zip(*sorted(rows), strict=True)]
        folder = self.workspace.scratch.folder
        empty = [np.zeros(0, np.int64)] * relation.width
        return self.workspace.adopt(folder.write_rows(relation, columns or empty))

    def content(self, relation: Relation, rows: Collection[Row]) -> SignedFiles:
        return SignedFiles.of(self.file(relation, rows))


def rows_of(relation: Relation, content: SignedFiles) -> set[Row]:
    """Return the net rows; raise if a file deletes a row that is not there, or inserts one that is."""
    rows: set[Row] = set()
    for plus, file in content.layers:
        listed = set(zip(*(column.tolist() for column in read_file(file, relation.width)), strict=True))
        assert listed.isdisjoint(rows) if plus else listed <= rows
        rows = rows | listed if plus else rows - listed
    return rows


# In one task, or in as many partitions as there are cores and more.
@pytest.mark.parametrize("gather_rows", [4_000_000, 0])
def test_what_moved_is_a_layer_on_the_old_files(
    gather_rows: int, make_engine: Callable[[Options], SparkEngine]
) -> None:
    engine = make_engine(Options(gather_rows=gather_rows))
    workspace = Workspace(engine.jobs, options=Options(gather_rows=gather_rows))
    files, dice = _Files(workspace), Random(5)
    pairs = {(dice.randrange(-90, 90), dice.randrange(9)) for _ in range(400)}
    gone, back = {(1000, 1), (1001, 2)}, {(1001, 2)}
    old_pairs = files.content(PAIRS, pairs | gone).then((), [files.file(PAIRS, gone)])
    old_pairs = old_pairs.then([files.file(PAIRS, back)])
    few = set(sorted(pairs)[:7])
    classes = {(n, n % 3) for n in range(300)}
    unary: set[Row] = {(n,) for n in range(50)}
    sides: dict[Relation, tuple[SignedFiles, set[Row]]] = {
        PAIRS: (old_pairs, pairs - few | {(2000, n) for n in range(5)}),
        TYPED: (files.content(TYPED, classes), classes - {(5, 2)} | {(5, 1)}),
        UNARY: (files.content(UNARY, unary), unary),
        FLAG: (files.content(FLAG, {(0,)}), {(0,)}),
        Relation("all", 1): (files.content(UNARY, unary), {(n,) for n in range(100, 150)}),
        Relation("none", 1): (files.content(UNARY, unary), set()),
    }
    before = {relation: old for relation, (old, _) in sides.items()}
    new = Relation("new", 1)
    after = {relation: files.content(relation, rows) for relation, (_, rows) in sides.items() if rows}
    after[new] = files.content(new, unary)
    found = layered(workspace, Segment(before), after, Settings().yield_point)
    for relation, (_, rows) in sides.items():
        assert rows_of(relation, found[relation]) == rows, relation
    # The old files stay where few rows moved: 7 and one that came back went, 5 came.
    layers = found[PAIRS].layers
    assert layers[: len(old_pairs.layers)] == old_pairs.layers
    assert sum(file.rows for plus, file in layers[len(old_pairs.layers) :] if plus) == 5
    assert sum(file.rows for plus, file in layers[len(old_pairs.layers) :] if not plus) == 8
    assert found[TYPED].layers[0] == before[TYPED].layers[0]
    assert found[TYPED].classes == {0: 100, 1: 101, 2: 99}
    assert found[UNARY] is before[UNARY]
    assert found[FLAG] is before[FLAG]
    assert found[Relation("all", 1)] is after[Relation("all", 1)]
    assert found[new] is after[new]
