"""Indexes of files: a look-up by them finds what reading the file finds, reads less, and takes few bytes."""

from __future__ import annotations

import gc
import random
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from spark.conftest import jobs_so_far
from spark.test_shared_suite import follow
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.spark.cluster.task_files import rows_read
from zodiacedge.engine.spark.lookup.by_key import RowSlice
from zodiacedge.engine.spark.lookup.matching import matching
from zodiacedge.engine.spark.storage import blocks, files, indexes, row_order
from zodiacedge.engine.spark.storage.files import (
    BLOCK,
    TYPED,
    DataFile,
    Folder,
    Relation,
    SignedFiles,
    read_file,
)
from zodiacedge.engine.spark.storage.terms import SCHEMA, TermFiles, write_terms
from zodiacedge.engine.spark.storage.workspace import Options, Workspace
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge_bench.measure.task import lubm_task
from zodiacedge_bench.report.tables import size_table
from zodiacedge_bench.spark.reads import loaded

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.engine.spark.engine import SparkEngine
    from zodiacedge.engine.spark.lookup.matching import Wants

PAIRS = Relation("p", 2)
ROWS = 20_000
Rows = set[tuple[int, ...]]


def shaped(shape: str, width: int) -> list[np.ndarray]:
    """Return distinct rows of a shape, as columns."""
    dice = np.random.default_rng(5)
    columns = [dice.integers(-(2**63), 2**63 - 1, ROWS) for _ in range(width)]
    if shape == "shared":
        # A term that very many share, small numbers, and large ones of both signs.
        columns[0][:5000] = 7
        columns[0][5000:9000] = dice.integers(0, 40, 4000)
        columns[1] = dice.integers(-300, 300, ROWS)
    elif shape == "together":
        columns[0] = columns[0][np.arange(ROWS) // 3]
        columns[1] = columns[1][np.arange(ROWS) // 50 % 200 * 3 + dice.integers(0, 3, ROWS)]
    elif shape == "few":
        columns[1] = columns[1][dice.integers(0, 5, ROWS) ** 2]
    elif shape == "one":
        columns[0][:] = columns[0][0]
        columns[1][:] = columns[1][0]
        columns[-1] = np.arange(ROWS)
    rows = np.unique(np.stack(columns, axis=1), axis=0, return_index=True)[1]
    return [column[np.sort(rows)] for column in columns]


def listed(columns: list[np.ndarray] | None) -> list[tuple[int, ...]]:
    return [] if columns is None else list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("shape", ["distinct", "shared", "together", "few", "one"])
@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_look_ups_by_an_index_find_what_is_there(shape: str, width: int, tmp_path: Path) -> None:
    columns = shaped(shape, width) if width > 1 else [np.unique(shaped(shape, 2)[0])]
    if len(columns[0]) <= BLOCK:
        columns = [np.arange(ROWS)]
    file = Folder(str(tmp_path)).write_indexed(Relation("p", width), columns)
    rows = listed(columns)
    assert file.index is not None
    assert all(file.index.finds(column) for column in range(width))
    assert sorted(listed(read_file(file, width))) == sorted(rows)
    dice = random.Random(f"{shape} {width}")
    for number in range(30):
        names = tuple(sorted(dice.sample(range(width), dice.randint(1, width))))
        some = [dice.choice(rows) for _ in range(dice.choice([0, 1, 2, 100, 3000]))]
        # And combinations that are of several rows, or of none.
        mixed = [tuple(dice.choice(some)[n] for n in names) for _ in some]
        absent = [tuple(dice.choice([-1, 7, -(2**63), 2**63 - 1]) for _ in names)]
        wants = {names: {*(tuple(row[n] for n in names) for row in some[::2]), *mixed, *absent}}
        if number % 2:
            wants[0,] = {(dice.choice(rows)[0],)}
        expected = [row for row in rows if any(tuple(row[n] for n in c) in v for c, v in wants.items())]
        assert sorted(listed(matching(file, width, wants, ROWS))) == sorted(expected)
        if expected:
            assert matching(file, width, wants, len(expected) - 1) is None


@pytest.mark.parametrize("remote", [False, True])
def test_colliding_hashes_only_cost_reading(
    *, remote: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if remote:
        # A file that is not mapped to memory is read piece by piece.
        monkeypatch.setattr(indexes, "LOCAL", None)
    # All hashes have the same first bits.
    monkeypatch.setattr(row_order, "_MULTIPLIER", np.uint64(1))
    columns = [np.arange(ROWS), np.arange(ROWS)[::-1] * 3]
    file = Folder(str(tmp_path)).write_indexed(PAIRS, columns)
    for value in (0, 1, 59_997, 5):
        expected = [(ROWS - 1 - value // 3, value)] if value % 3 == 0 else []
        assert listed(matching(file, 2, {(1,): {(value,)}}, 10)) == expected


def test_class_members_are_found_by_both_and_by_either(tmp_path: Path) -> None:
    dice = np.random.default_rng(3)
    for classes in (1, 3, 40):
        members = dice.integers(0, 2**62, 12_000)
        columns = [members[dice.integers(0, 12_000, ROWS)], dice.integers(0, classes, ROWS) ** 3]
        rows = np.unique(np.stack(columns, axis=1), axis=0)
        file = Folder(str(tmp_path)).write_indexed(TYPED, [rows[:, 0], rows[:, 1]])
        assert sum(file.classes.values()) == len(rows)
        # Where there are few classes, nothing is written for the members.
        assert file.index is not None
        assert bool(file.index.listed) == (classes == 40)
        for member, name in rows[:: len(rows) // 20].tolist():
            of_class = sorted(listed(read_file(file, 2, frozenset({name}))))
            assert of_class == [(a, b) for a, b in rows.tolist() if b == name]
            both: Wants = {(0, 1): {(member, name), (member, 999_999), (1, name)}}
            assert listed(matching(file, 2, both, 10)) == [(member, name)]
            by_member = listed(matching(file, 2, {(0,): {(member,)}}, 50))
            assert sorted(by_member) == [row for row in map(tuple, rows.tolist()) if row[0] == member]


def test_small_and_empty_files_have_no_index(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    assert folder.write_indexed(PAIRS, [np.zeros(0, np.int64)] * 2).path == ""
    assert folder.write_pieces(PAIRS, []).path == ""
    small = folder.write_indexed(PAIRS, [np.arange(BLOCK), np.arange(BLOCK)])
    assert small.index is None
    assert listed(matching(small, 2, {(1,): {(5,)}}, 1)) == [(5, 5)]
    assert folder.write_indexed(PAIRS, [np.arange(BLOCK + 1), np.arange(BLOCK + 1)]).index is not None


def sizes(file: DataFile) -> tuple[float, float]:
    """Return the bytes per row of a file, and of its index."""
    assert file.index is not None
    rows, index = (Path(path).stat().st_size / file.rows for path in (file.path, file.index.path))
    return rows, index


@pytest.mark.parametrize(
    ("shape", "of_rows", "of_index"),
    [("distinct", 15, 2.3), ("shared", 8, 1.8), ("together", 5.5, 1.3), ("few", 7.3, 0.1), ("one", 0.3, 0.1)],
)
def test_bytes_per_row(shape: str, of_rows: float, of_index: float, tmp_path: Path) -> None:
    file = Folder(str(tmp_path)).write_indexed(PAIRS, shaped(shape, 2))
    rows, index = sizes(file)
    assert rows < of_rows
    assert index < of_index


@pytest.mark.parametrize("shape", ["distinct", "together"])
def test_rows_read_for_a_key(shape: str, tmp_path: Path) -> None:
    columns = shaped(shape, 2)
    file = Folder(str(tmp_path)).write_indexed(PAIRS, columns)
    for column in (0, 1):
        with rows_read() as read:
            for key in columns[column][::1000].tolist():
                assert matching(file, 2, {(column,): {(key,)}}, ROWS) is not None
        # A block or two for each of 20 keys.
        assert read.rows <= 20 * 2 * BLOCK


def test_terms_are_read_in_blocks(tmp_path: Path) -> None:
    dice = np.random.default_rng(2)
    ids = np.unique(dice.integers(0, 2**63 - 1, ROWS))
    dice.shuffle(ids)
    texts = [b"term %d" % key for key in ids.tolist()]
    table = pa.table([ids, np.zeros(len(ids), np.int8), ids * 0, pa.array(texts, pa.binary())], schema=SCHEMA)
    file = write_terms(Folder(str(tmp_path)), table)
    assert sizes(file)[1] < 0.1
    terms = TermFiles((file,))
    for few in (1, 7, 3000):
        wanted = np.append(ids[:few], [5, 2**63 - 1])
        with rows_read() as read:
            found = terms.read(wanted)
        assert sorted(found["id"].to_pylist()) == sorted(ids[:few].tolist())
        assert sorted(found["text"].to_pylist()) == sorted(texts[:few])
        assert read.rows <= (few + 2) * BLOCK
    assert len(terms.read()) == len(ids)


def test_a_state_is_hardly_larger_for_its_indexes(make_engine: Callable[[Options], SparkEngine]) -> None:
    task = lubm_task(1)
    without, with_them = (
        loaded(make_engine(Options()), task, indexed=indexed)[1] for indexed in (False, True)
    )
    assert without.facts == with_them.facts
    assert without.index_bytes == 0
    assert with_them.index_bytes > with_them.facts / 2
    assert with_them.bytes_per_fact < 1.07 * without.bytes_per_fact
    table = size_table((without, with_them))
    assert [row[6] for row in table.rows] == [f"{size.bytes_per_fact:.2f}" for size in (without, with_them)]
    assert with_them.to_dict()["bytes_per_fact"] == with_them.bytes_per_fact


def sliced(workspace: Workspace, content: SignedFiles) -> RowSlice:
    return RowSlice(workspace, Settings().yield_point, lambda _: [content], lambda _: 2)


def test_look_ups_read_layers_by_their_indexes_in_the_driver(spark: SparkEngine) -> None:
    workspace = Workspace(spark.jobs, options=Options(whole_rows=50, driver_rows=ROWS))
    folder = workspace.scratch.folder
    columns = shaped("shared", 2)
    rows = listed(columns)
    dice = random.Random(3)
    gone, back = set(dice.sample(rows, 9000)), set(dice.sample(rows, 20))
    layers = []
    for plus, part in ((True, rows), (False, gone), (True, back & gone)):
        written = folder.write_indexed(PAIRS, [np.array(c, np.int64) for c in zip(*part, strict=True)])
        layers.append((plus, workspace.adopt(written)))
    content = SignedFiles(tuple(layers))
    del layers, written
    there = {*set(rows).difference(gone), *back}
    found = sliced(workspace, content)
    for number in range(12):
        some = dice.sample(rows, 6)
        absent = (1234567, some[0][1])
        wants: Wants = {
            (0,): {(some[0][0],), (9,)},
            (0, 1): {some[1], some[2], absent, (7, some[3][1])},
            (1,): {(some[4][1],)},
        }
        found = sliced(workspace, content)
        if number % 2:
            found.fetch({PAIRS: wants})
        else:
            net = found.fetch_here(PAIRS, wants)
            assert net is not None
            assert net(content) == found.held(content)
        assert found.held(content) == {
            row
            for row in there
            if any(tuple(row[n] for n in names) in values for names, values in wants.items())
        }
        assert not found.jobs
    # An index goes with its file.
    paths = [Path(path) for file in content.parts if file.index for path in (file.path, file.index.path)]
    assert len(paths) == 4
    assert all(path.exists() for path in paths)
    del content, found, net
    gc.collect()
    assert not any(path.exists() for path in paths)


def test_a_block_is_read_once_in_a_search(spark: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(spark.jobs, options=Options(whole_rows=0))
    columns = shaped("distinct", 2)
    file = workspace.adopt(workspace.scratch.folder.write_indexed(PAIRS, columns))
    content = SignedFiles.of(file)
    found = sliced(workspace, content)
    with rows_read() as read:
        for key in columns[0].tolist()[:500]:
            found.fetch_here(PAIRS, {(0,): {(key,)}})
    assert read.rows <= file.rows
    assert len(found.held(content)) == 500
    # What is kept is bounded.
    monkeypatch.setattr(blocks, "_KEPT", 3)
    found = sliced(workspace, content)
    with rows_read() as read:
        for key in columns[0].tolist()[:500]:
            found.fetch_here(PAIRS, {(0,): {(key,)}})
    assert read.rows > 20 * file.rows
    assert len(found.held(content)) == 500


@pytest.mark.parametrize("seed", range(300, 310))
def test_random_sessions_on_indexes(
    seed: int, make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BLOCK", 2)
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
        # The facts of the change are compared in a task, and one maintains each node.
        assert jobs_so_far(engine) - before == 3
