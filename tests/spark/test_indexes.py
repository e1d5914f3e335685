"""Indexes of files: a look-up by them finds what reading the file finds, and reads less."""

from __future__ import annotations

import gc
import random
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from spark.conftest import jobs_so_far
from spark.test_shared_suite import follow
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.spark.cluster.task_files import rows_read
from zodiacedge.engine.spark.lookup import by_key
from zodiacedge.engine.spark.lookup.by_key import RowSlice
from zodiacedge.engine.spark.storage.files import Folder, Relation, SignedFiles
from zodiacedge.engine.spark.storage.indexes import Index, opened, write_indexed
from zodiacedge.engine.spark.storage.workspace import Options, Workspace
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.engine.spark.engine import SparkEngine

PAIRS = Relation("p", 2)
ROWS = 20_000


def pairs() -> list[np.ndarray]:
    """Return distinct rows: a term that very many share, small numbers, and large ones of both signs."""
    dice = np.random.default_rng(5)
    first = dice.integers(-(2**63), 2**63 - 1, ROWS)
    first[:5000] = 7
    first[5000:9000] = dice.integers(0, 40, 4000)
    rows = np.unique(np.stack([first, dice.integers(-300, 300, ROWS)], axis=1), axis=0)
    return list(np.ascontiguousarray(rows.T))


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("width", [2, 5])
def test_an_index_has_all_rows_of_its_keys(column: int, width: int, tmp_path: Path) -> None:
    columns = pairs()
    columns += [np.arange(len(columns[0])) + n for n in range(2, width)]
    file = write_indexed(Folder(str(tmp_path)), Relation("p", width), columns)
    assert set(file.indexes) == set(range(width))
    written = file.indexes[column]
    index = Index(written.path, file.path, file.rows, width, written.groups)
    keys = np.array([7, int(columns[column][-1]), -299, 12345], np.int64)
    with opened(index) as reader, rows_read() as read:
        found = np.stack(reader.rows(keys), axis=1)
        none = reader.rows(np.zeros(0, np.int64))
    rows = np.stack(columns, axis=1)
    expected = rows[np.isin(rows[:, column], keys)]
    listed = set(map(tuple, found.tolist()))
    assert set(map(tuple, expected.tolist())) <= listed <= set(map(tuple, rows.tolist()))
    assert len(found) == len(listed)
    # Four groups of 256, and the rows of the keys; of wide rows also the row groups that have these.
    assert len(found) - len(expected) < len(rows) / 4
    assert len(found) <= read.rows < 2 * len(rows)
    assert [len(values) for values in none] == [0] * width


def sliced(workspace: Workspace, content: SignedFiles) -> RowSlice:
    return RowSlice(workspace, Settings().yield_point, lambda _: [content], lambda _: 2)


def test_the_second_look_up_reads_indexes_in_the_driver(
    spark: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_key, "INDEXED_FROM", 1000)
    monkeypatch.setattr(by_key, "INDEXED_FILE", 1000)
    workspace = Workspace(spark.jobs, options=Options(whole_rows=0, driver_rows=ROWS))
    columns = pairs()
    listed = set(zip(*(column.tolist() for column in columns), strict=True))
    (file,) = (workspace.adopt(workspace.scratch.folder.write_rows(PAIRS, columns)),)
    content = SignedFiles.of(file)
    dice = random.Random(3)
    for number in range(12):
        some = dice.sample(sorted(listed), 6)
        absent = (1234567, some[0][1])
        wants = {
            (0,): {(some[0][0],), (9,)},
            (0, 1): {some[1], some[2], absent, (7, some[3][1])},
            (1,): {(some[4][1],)},
        }
        if number % 2:
            del wants[1,]
        found = sliced(workspace, content)
        found.fetch({PAIRS: wants})
        assert found.held(content) == {
            row
            for row in listed
            if any(tuple(row[n] for n in names) in values for names, values in wants.items())
        }
        assert found.count == len(found.held(content))
        assert found.jobs == (not number)
    assert set(workspace.indexes_of(file)) == {0, 1}
    # An index goes with its file.
    paths = [Path(index.path) for index in workspace.indexes_of(file).values()]
    assert all(path.exists() for path in paths)
    del file, content, found
    gc.collect()
    assert not any(path.exists() for path in paths)


@pytest.mark.parametrize("seed", range(300, 310))
def test_random_sessions_on_indexes(
    seed: int, make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_key, "INDEXED_FROM", 1)
    monkeypatch.setattr(by_key, "INDEXED_FILE", 1)
    follow(seed, make_engine(Options(look_up_from=0, whole_rows=0)))


def test_a_change_after_rounds_reads_by_the_indexes_that_they_wrote(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    lines, length = 700, 30
    rules = "b: path(X, Y) :- edge(X, Y) . t: path(X, Y) :- path(X, Z), path(Z, Y), not closed(Z) ."
    edges = [f"edge(n{line}_{n}, n{line}_{n + 1}) ." for line in range(lines) for n in range(length - 1)]
    engine = make_engine(Options(gather_rows=0))
    found, expected = KnowledgeBase(engine, Settings()), KnowledgeBase(EmbeddedEngine(), Settings())
    for kb in (found, expected):
        with kb.change() as change:
            change.add_rules(rules)
            change.add_facts("closed(n3_4) ." + "\n".join(edges))
    assert found.derived() == expected.derived()
    for kind in ("remove", "add"):
        before = jobs_so_far(engine)
        nets = []
        for kb in (found, expected):
            with kb.change() as change:
                (change.remove_facts if kind == "remove" else change.add_facts)(edges[40])
            nets.append((change.report.inserted, change.report.deleted))
        assert nets[0] == nets[1]
        # From 12 nodes to 18, and the edge.
        assert sum(map(len, nets[0])) == 12 * 18 + 1
        # The facts of the change are compared in a task, and one maintains the nodes.
        assert jobs_so_far(engine) - before == 2
