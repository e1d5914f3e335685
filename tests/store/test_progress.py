"""Stores report what they do: reading, replaying, writing the log and the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import zodiacedge as ze
from zodiacedge.engine.api import Progress

if TYPE_CHECKING:
    from pathlib import Path


def test_a_store_tells_that_it_is_read_and_written(tmp_path: Path) -> None:
    told: list[Progress] = []
    with ze.open(tmp_path / "farm.zodiac", create=True, progress=told.append) as kb, kb.change() as change:
        change.add_rules("r: p(X, Y) :- e(X, Y) . e(1, 2) .")
    stages = list(dict.fromkeys(one.stage for one in told))
    assert stages[0] == "reading the store"
    assert stages[-2:] == ["writing the log", "writing the store"]
    written = [(one.done, one.total, one.unit) for one in told if one.stage == "writing the store"]
    assert written == [(0, 2, "partition"), (1, 2, "partition"), (2, 2, "partition")]


def test_the_changes_of_the_log_are_counted_as_they_are_replayed(tmp_path: Path) -> None:
    writer = ze.open(tmp_path / "farm.zodiac", create=True)
    for number in range(3):
        with writer.change() as change:
            change.add_facts(f"e({number}, 1) .")
    told: list[Progress] = []
    ze.open(tmp_path / "farm.zodiac", read_only=True, progress=told.append)
    assert Progress.of_stage("replaying the log", 0, 3, "change") in told
    assert "writing the log" not in {one.stage for one in told}
    writer.close()
