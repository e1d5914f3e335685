"""Several threads create the same store at once: there is one store, and a refusal has a code."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import zodiacedge as ze
from store.conftest import code
from zodiacedge.store.create import create_store
from zodiacedge.store.location.base import location_of
from zodiacedge.store.table.commit_info import Snapshot

if TYPE_CHECKING:
    from pathlib import Path

MAKERS = 6


def made_at_once(where: str | Path) -> list[str]:
    """Let threads make a store at the same moment; return what each came to."""
    ready = threading.Barrier(MAKERS)

    def one(_: int) -> str:
        ready.wait()
        try:
            create_store(
                location_of(where), Snapshot(0, (), {}, moment="2024-02-29T12:00:00.000+00:00")
            ).release()
        except ze.ZodiacError as problem:
            return code(problem)
        return "made"

    with ThreadPoolExecutor(MAKERS) as pool:
        return sorted(pool.map(one, range(MAKERS)))


def test_among_objects(bucket: str) -> None:
    # The marker says the same whoever puts it, so more than one may take it for theirs; none is told anything
    # else, and there is one store.
    found = made_at_once(f"{bucket}/farm")
    assert set(found) <= {"D014", "made"}
    assert "made" in found
    with ze.open(f"{bucket}/farm") as kb:
        assert kb.version == 0


def test_in_a_folder(place: Path) -> None:
    found = made_at_once(place)
    assert set(found) <= {"D003", "D014", "made"}
    assert found.count("made") == 1
    with ze.open(place) as kb:
        assert kb.version == 0
