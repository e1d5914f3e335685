"""The table is brought up to the log beside the work, and nobody waits for it but to keep the log short."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import abandon, code
from strategies.waiting import until
from zodiacedge.store.problems import unwritable
from zodiacedge.store.table.delta_table import FactTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from zodiacedge.store.table.commit_info import Snapshot
    from zodiacedge.store.table.delta_table import BaseCommit, ChangedPartition

_SHORT = 5_000


class SlowTable:
    """Writes commits of the table, each when it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Semaphore(0)
        self.let_go = threading.Semaphore(0)
        self.commits: list[int] = []
        really: Callable[..., BaseCommit] = FactTable.commit

        def commit(
            table: FactTable,
            snapshot: Snapshot,
            before: BaseCommit,
            parts: Iterable[ChangedPartition],
            *,
            full: bool,
        ) -> BaseCommit:
            self.begun.release()
            assert self.let_go.acquire(timeout=30)
            found = really(table, snapshot, before, parts, full=full)
            self.commits.append(snapshot.version)
            return found

        monkeypatch.setattr(FactTable, "commit", commit)


@pytest.fixture
def kb(place: Path) -> Iterator[ze.StoredKnowledgeBase]:
    found = ze.open(place, create=True)
    assert found.store is not None
    found.store.flush_bytes = _SHORT
    with found.change() as c:
        c.add_rules("r1: path(X, Y) :- edge(X, Y) .  r2: path(X, Z) :- path(X, Y), edge(Y, Z) .")
    yield found
    found.close()


def grow(kb: ze.StoredKnowledgeBase) -> None:
    """Make a change of about a fifth of what is flushed."""
    with kb.change() as c:
        c.add_facts([("edge", kb.version, kb.version + 1), ("note", kb.version, "x" * 100)])


def log_bytes(place: Path) -> int:
    return sum(path.stat().st_size for path in (place / "_wal").glob("*.log"))


def test_changes_are_acknowledged_while_the_table_is_written(
    kb: ze.StoredKnowledgeBase, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = SlowTable(monkeypatch)
    while not table.begun.acquire(blocking=False):
        grow(kb)
    captured = kb.version
    for _ in range(5):
        grow(kb)
    assert kb.version == captured + 5
    assert table.commits == []
    # Another process sees all of them, though the table has none yet.
    with ze.open(place, read_only=True) as seen:
        assert seen.version == kb.version
        assert seen.facts() == kb.facts()
    table.let_go.release()
    until(lambda: table.commits)
    # What the table has is the version at which it was taken hold of, not a mixture with what came later.
    assert table.commits == [captured]
    abandon(kb)
    with ze.open(place, at=captured) as then:
        assert then.verify(against="reference").ok
    table.let_go.release(3)
    with ze.open(place) as again:
        assert again.facts() == kb.facts()
        assert again.verify(against="reference").ok


def test_the_log_stays_bounded_while_the_table_is_slow(
    kb: ze.StoredKnowledgeBase, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = SlowTable(monkeypatch)
    done = 0
    enough = threading.Event()

    def work() -> None:
        nonlocal done
        for _ in range(60):
            grow(kb)
            done += 1
        enough.set()

    writer = threading.Thread(target=work)
    writer.start()
    assert table.begun.acquire(timeout=30)
    # It goes on for a while, then waits.
    assert not enough.wait(3)
    assert done > 5
    assert log_bytes(place) < 7 * _SHORT
    table.let_go.release(100)
    writer.join()
    assert done == 60
    assert len(table.commits) > 1
    assert kb.verify(against="reference").ok


def test_a_table_that_cannot_be_written_hinders_no_change_and_closing_tells(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = ze.open(place, create=True)
    assert kb.store is not None
    kb.store.flush_bytes = _SHORT
    tries = 0

    def full(*_: object, full: bool) -> BaseCommit:
        del full
        nonlocal tries
        tries += 1
        raise unwritable(place, OSError(errno.ENOSPC, "No space left on device"))

    with monkeypatch.context() as patched:
        patched.setattr(FactTable, "commit", full)
        for _ in range(30):
            grow(kb)
        assert tries >= 1
        with pytest.raises(ze.ZodiacError) as caught:
            kb.close()
        assert code(caught.value) == "D007"
    with ze.open(place) as again:
        assert again.version == 30
        assert again.facts() == kb.facts()


def test_closing_and_vacuuming_wait_for_what_is_under_way(
    kb: ze.StoredKnowledgeBase, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = SlowTable(monkeypatch)
    while not table.begun.acquire(blocking=False):
        grow(kb)
    vacuumed = threading.Thread(target=kb.vacuum)
    vacuumed.start()
    vacuumed.join(0.3)
    assert vacuumed.is_alive()
    table.let_go.release(100)
    vacuumed.join()
    kb.close()
    with ze.open(place) as again:
        assert again.facts() == kb.facts()
        assert again.verify().ok


def test_what_is_flushed_in_the_background_is_in_the_table_in_the_end(
    kb: ze.StoredKnowledgeBase, place: Path
) -> None:
    for _ in range(40):
        grow(kb)
    until(lambda: not kb._flusher.busy)
    assert len(list((place / "_delta_log").glob("*.json"))) > 1
    assert len(list((place / "_wal").glob("*.log"))) > 1


def test_a_program_that_ends_without_closing_finishes_its_flush(place: Path) -> None:
    script = f"""
import zodiacedge as ze
kb = ze.open({str(place)!r}, create=True)
kb.store.flush_bytes = 1000
with kb.change() as c:
    c.add_facts([(f"p{{n}}", n, m) for n in range(60) for m in range(50)])
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(list(place.glob("relation=*/segment=*/*.parquet"))) == 60
    with ze.open(place) as kb:
        assert kb.store is not None
        assert kb.store._flushed == 1
        assert len(kb.facts()) == 3000


def test_a_part_of_too_many_files_that_loses_all_its_facts_is_gone(
    farm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As many appended files would be: each part is to be written anew.
    monkeypatch.setattr("zodiacedge.store.store._MOST_FILES", 0)
    with ze.open(farm) as kb:
        with kb.change() as c:
            c.remove_facts("edge(a, b) .  edge(b, c) .  edge(c, d) .")
        facts = kb.facts()
    with ze.open(farm, read_only=True) as kb:
        assert kb.facts() == facts
        assert kb.verify().ok
