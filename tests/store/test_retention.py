"""A store removes its old versions by itself, within the time that its owner sets."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from zodiacedge import open as open_kb
from zodiacedge.errors import StoreProblem, UsageProblem
from zodiacedge.store.layout import RETENTION
from zodiacedge.store.table.delta_table import FactTable
from zodiacedge.store.versions.retention import KEPT

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.store.knowledge_base import StoredKnowledgeBase


def change(kb: StoredKnowledgeBase, number: int) -> None:
    with kb.change() as c:
        c.add_facts([("reading", number, float(number))])
        c.remove_facts([("reading", number - 1, float(number - 1))])


def files(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file()]


def test_a_store_keeps_a_week_unless_its_owner_says_so(tmp_path: Path) -> None:
    with open_kb(tmp_path / "s", create=True) as kb:
        assert kb.retained == KEPT == timedelta(days=7)
        kb.retain(timedelta(hours=1))
        assert kb.retained == timedelta(hours=1)
    with open_kb(tmp_path / "s", read_only=True) as kb:
        assert kb.retained == timedelta(hours=1)
        with pytest.raises(StoreProblem):
            kb.retain(timedelta(days=1))
    with open_kb() as kb, pytest.raises(UsageProblem):
        getattr(kb, "retain")  # noqa: B009 - it is an attribute of stores


def test_a_store_that_changes_for_ever_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with open_kb(path, create=True) as kb:
        kb.retain(timedelta())
        counts = []
        for number in range(24):
            change(kb, number)
            kb._flusher.flush_in_background(kb.store, kb._pending_flush)
            kb._flusher.wait()
            counts.append(len(files(path)))
        assert max(counts[12:]) <= max(counts[:12])
        assert kb.verify().ok
    with open_kb(path, read_only=True) as kb:
        assert len(kb.facts()) == 1
        assert [entry.version for entry in kb.log()][-1:] in ([], [24])
        with pytest.raises(StoreProblem):
            kb.at(5)


def test_versions_within_the_time_stay(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with open_kb(path, create=True) as kb:
        kb.retain(timedelta(hours=1))
        for number in range(5):
            change(kb, number)
            kb._flusher.flush_in_background(kb.store, kb._pending_flush)
            kb._flusher.wait()
        for version in range(1, 6):
            assert len(kb.at(version).facts()) == 1


def test_files_are_removed_a_part_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    with open_kb(path, create=True) as kb:
        for number in range(12):
            change(kb, number)
            kb.flush()
        monkeypatch.setattr("zodiacedge.store.store._MOST_REMOVED", 3)
        kb.retain(timedelta())
        before = len(files(path))
        unused = kb.store.unused().files
        kb.store.forget_old_versions()
        # A checkpoint is written, so that Delta can do without the entries, and a commit says what is kept.
        assert before - 3 <= len(files(path)) <= before - 3 + 3
        for _ in range(unused):
            kb.store.forget_old_versions()
        assert kb.store.unused().files == 0
        assert kb.verify().ok
    with open_kb(path) as kb:
        assert len(kb.facts()) == 1


def test_a_store_stays_within_its_bytes_however_young_its_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zodiacedge.store.store.FLUSH_BYTES", 20_000)
    path, sizes, most = tmp_path / "s", list[int](), 300_000
    with open_kb(path, create=True) as kb:
        kb.retain(timedelta(days=7), most_bytes=most)
        assert kb.retained_bytes == most
        for number in range(300):
            with kb.change() as c:
                c.add_facts([("text", number, f"{number} {'x' * 5000}")])
                c.remove_facts([("text", number - 1, f"{number - 1} {'x' * 5000}")])
            kb._flusher.wait()
            sizes.append(sum(file.stat().st_size for file in files(path)))
        # It grows to its bound, and then by no more than is written until the next flush.
        assert max(sizes) < most + 60_000
        assert min(sizes[150:]) > most - 100_000
        assert kb.verify().ok
        recent = kb.log()[-1].version - 3
        assert len(kb.at(recent).facts()) == 1
    with open_kb(path) as kb:
        assert kb.retained_bytes == most
        kb.retain(timedelta(days=7))
    with open_kb(path) as kb:
        assert kb.retained_bytes is None
    with open_kb(path) as kb:
        assert len(kb.facts()) == 1


def test_checkpoints_do_not_list_what_was_removed_long_ago(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with open_kb(path, create=True) as kb:
        kb.retain(timedelta())
        for number in range(12):
            change(kb, number)
            kb.flush()
            kb.store.forget_old_versions()
        # What was removed within the time that the table states is listed.
        time.sleep(1.1)
        for number in range(12, 14):
            change(kb, number)
            kb.flush()
            kb.store.forget_old_versions()
        (checkpoint,) = path.glob("_delta_log/*.checkpoint.parquet")
        removed = pq.read_table(checkpoint).column("remove")
        assert len(removed) - removed.null_count <= 4
        assert kb.verify().ok
    with open_kb(path) as kb:
        assert len(kb.facts()) == 1


def test_a_table_states_for_how_long_removed_files_are_kept(tmp_path: Path) -> None:
    with open_kb(tmp_path / "s", create=True) as kb:
        for number in range(3):
            change(kb, number)
            kb.flush()
        table, stated = FactTable(kb.store.location), []
        for seconds in (6 * 24 * 3600, 1000, 300, 1025, 100, 0):
            table.state_retention(seconds)
            stated.append(DeltaTable(tmp_path / "s").metadata().configuration)
        name = "delta.deletedFileRetentionDuration"
        texts = [one.get(name) for one in stated]
        assert texts == [None, *(f"interval {n} seconds" for n in (1024, 1024, 2048, 128, 1))]
        change(kb, 3)
        kb.flush()
        assert kb.verify().ok
    with open_kb(tmp_path / "s") as kb:
        assert len(kb.facts()) == 1


def test_the_last_version_stays_however_few_bytes_are_allowed(tmp_path: Path) -> None:
    with open_kb(tmp_path / "s", create=True) as kb:
        kb.retain(timedelta(days=7), most_bytes=1)
        for number in range(4):
            change(kb, number)
            kb.flush()
            kb.store.forget_old_versions()
        assert kb.verify().ok
        with pytest.raises(StoreProblem):
            kb.at(1)
        for wrong in (0, -1, 1.5, "64MB", True):
            with pytest.raises(UsageProblem):
                kb.retain(timedelta(days=7), most_bytes=wrong)  # type: ignore[arg-type]
    with open_kb(tmp_path / "s") as kb:
        assert len(kb.facts()) == 1


def test_a_rollback_to_a_version_that_was_removed_is_refused(tmp_path: Path) -> None:
    with open_kb(tmp_path / "s", create=True) as kb:
        for number in range(3):
            change(kb, number)
            if number != 1:
                kb.flush()
        kb.retain(timedelta(0))
        kb.store.forget_old_versions()
        for version in range(kb.version):
            with pytest.raises(StoreProblem, match="D008"):
                kb.rollback(version)
        assert kb.verify().ok


def test_a_vacuum_of_a_time_leaves_the_bound_of_bytes_aside(tmp_path: Path) -> None:
    with open_kb(tmp_path / "s", create=True) as kb:
        for number in range(3):
            change(kb, number)
            kb.flush()
        kb.retain(timedelta(days=7), most_bytes=1)
        assert kb.vacuum(timedelta(days=30), dry_run=True).files == 0
        assert kb.vacuum(dry_run=True).files > 0


def test_old_versions_go_when_a_store_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    with monkeypatch.context() as past, open_kb(path, create=True) as kb:
        past.setattr("zodiacedge.store.store._now", lambda: "2001-01-01T00:00:00.000+00:00")
        for number in range(6):
            change(kb, number)
            kb.flush()
    for entry in (path / "_delta_log").glob("*.json"):
        os.utime(entry, (1e9, 1e9))
    before = len(files(path))
    with open_kb(path) as kb:
        change(kb, 6)
    assert len(files(path)) < before
    with open_kb(path) as kb:
        assert len(kb.facts()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "7",
        '{"seconds": -1}',
        '{"seconds": "7"}',
        '{"seconds": 1e300}',
        '{"seconds": 1, "bytes": 0}',
        '{"seconds": 1, "bytes": "9"}',
    ],
)
def test_a_retention_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s"
    with open_kb(path, create=True) as kb:
        change(kb, 1)
        (path / RETENTION).write_text(text)
        with pytest.raises(StoreProblem, match=RETENTION):
            _ = kb.retained
    with open_kb(path) as kb:
        assert len(kb.facts()) == 1
