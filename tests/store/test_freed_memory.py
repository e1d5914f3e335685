"""A writer gives memory that its flushes have freed back to the system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import zodiacedge as ze
from zodiacedge.store import flush
from zodiacedge.util.freed_memory import give_back

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_each_background_flush_gives_memory_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    monkeypatch.setattr(flush, "give_back", lambda: given.append(1))
    with ze.open(tmp_path / "s", create=True) as kb:
        kb.store.flush_bytes = 2000
        for number in range(60):
            with kb.change() as c:
                c.add_facts([("p", number, "x" * 100)])
        kb._flusher.wait()
        assert given


def test_giving_back_leaves_what_is_in_use() -> None:
    import pyarrow as pa  # noqa: PLC0415 - the test is of its pool

    kept = pa.array(range(100_000))
    freed = pa.array(range(1_000_000))
    del freed
    give_back()
    give_back()
    assert kept[99_999].as_py() == 99_999
