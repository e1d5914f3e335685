"""Opening a store reads Delta's log without Delta, and finds the files that Delta finds."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import deltalake

from zodiacedge.opening import open_kb
from zodiacedge.store.location.local import LocalLocation
from zodiacedge.store.table.delta_table import FactTable

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from zodiacedge.store.knowledge_base import StoredKnowledgeBase
    from zodiacedge.store.layout import FileInfo
    from zodiacedge.store.versions.vacuum import VacuumReport

OPENED = """
import sys
import zodiacedge as ze
with ze.open(sys.argv[1]) as kb:
    assert len(kb.facts()) == int(sys.argv[2])
    with kb.change() as change:
        change.add_rules("late(X) :- p(X, Y), X > 3 .")
    loaded = "deltalake" in sys.modules
print(loaded)
"""
ROUNDS = 9


def change(kb: StoredKnowledgeBase, number: int) -> None:
    """Let one fact come and another go, so that files are added and removed."""
    with kb.change() as c:
        c.add_facts([("p", number, "ä b"), ("q", number)])
        c.remove_facts([("q", number - 2)] if number > 1 else [])
    kb.flush()


def check(path: Path) -> None:
    table = FactTable(LocalLocation(path))
    commits = list(table.commits())
    assert len(commits) == ROUNDS + 1
    assert any(len(set(table.files(a)) - set(table.files(b))) for a, b in pairwise(commits))
    for commit in commits:
        by_delta = deltalake.DeltaTable(str(path), version=commit.number).file_uris()
        assert {str(path / name) for name in table._replayed(commit)} == set(by_delta)


def test_it_finds_the_files_that_delta_finds_with_and_without_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "farm"
    with open_kb(path, create=True) as kb:
        for number in range(ROUNDS):
            change(kb, number)
    check(path)
    deltalake.DeltaTable(str(path), version=4).create_checkpoint()
    check(path)


def test_a_process_that_opens_a_store_and_changes_it_does_not_load_delta(tmp_path: Path) -> None:
    path = tmp_path / "farm"
    with open_kb(path, create=True) as kb:
        for number in range(ROUNDS):
            change(kb, number)
        facts = len(kb.facts())
    program = [sys.executable, "-c", OPENED, str(path), str(facts)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_where_the_log_does_not_give_the_files_delta_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "farm"
    with open_kb(path, create=True) as kb:
        change(kb, 1)
    table = FactTable(LocalLocation(path))
    commit = next(table.commits())
    expected = table.files(commit)
    monkeypatch.setattr(FactTable, "_replayed", lambda *_: set[str]())
    assert table.files(commit) == expected


def test_characters_that_end_lines_elsewhere_stand_in_rules_and_facts(tmp_path: Path) -> None:
    path = tmp_path / "farm"
    with open_kb(path, create=True) as kb, kb.change() as c:
        c.add_rules('p(X, "a\u2028b\u0085c") :- q(X) .')
        c.add_facts([("q", 1)])
    with open_kb(path) as kb:
        assert [row[1] for row in kb.query("?- p(X, Y) .")] == ["a\u2028b\u0085c"]


def test_a_vacuum_between_listing_and_reading_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "farm"
    with open_kb(path, create=True) as kb:
        for number in range(ROUNDS):
            change(kb, number)
        listed = LocalLocation.listed
        vacuums: list[VacuumReport | None] = []

        def then_vacuumed(self: LocalLocation, folder: str = "", after: str = "") -> list[FileInfo]:
            files = listed(self, folder, after)
            if not vacuums:
                vacuums.append(None)
                vacuums[0] = kb.vacuum(timedelta(0))
            return files

        table = FactTable(LocalLocation(path))
        last = next(table.commits())
        expected = table.files(last)
        monkeypatch.setattr(LocalLocation, "listed", then_vacuumed)
        assert table.files(last) == expected
        assert vacuums[0]
