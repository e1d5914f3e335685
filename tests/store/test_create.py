"""Creating a store: after a kill at any step, the next attempt creates a whole store."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import code
from zodiacedge.store.layout import DELTA_LOG, LOCK, LOG_FOLDER, MARKER
from zodiacedge.store.location.lock import WriterLock

if TYPE_CHECKING:
    from pathlib import Path

# Makes one store after the other, and says so before it begins and when it is done.
MAKER = """
import sys, zodiacedge as ze
from zodiacedge.store.store import DurableStore
from zodiacedge.store.location.local import LocalLocation
from pathlib import Path
for n in range(100_000):
    print(n, flush=True)
    DurableStore.create(LocalLocation(Path(sys.argv[1]) / str(n))).close()
    print("done", n, flush=True)
"""


def make_and_kill(folder: Path, after: float) -> int:
    """Let a process make stores for so many seconds from the first on; return which one it was at."""
    with subprocess.Popen(
        [sys.executable, "-c", MAKER, str(folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        time.sleep(after)
        process.kill()
        lines = process.stdout.read().split()
    return int(lines[-1]) if lines else 0


@pytest.mark.slow
def test_what_a_killed_init_leaves_is_taken_over_by_the_next(tmp_path: Path) -> None:
    chance = random.Random(5)
    unfinished = 0
    for run in range(5):
        folder = tmp_path / str(run)
        folder.mkdir()
        last = folder / str(make_and_kill(folder, chance.uniform(0, 0.15)))
        left = last.exists() and not (last / MARKER).exists()
        unfinished += left
        if left:
            with pytest.raises(ze.ZodiacError) as caught:
                ze.open(last)
            assert code(caught.value) == "D002"
        with ze.open(last, create=True) as kb, kb.change() as c:
            c.add_facts("p(a, b) .")
        with ze.open(last) as kb:
            assert kb.query("?- p(a, b) .")
    assert unfinished


@pytest.mark.parametrize(
    "made",
    [
        [],
        [LOCK],
        [LOCK, LOG_FOLDER],
        [LOCK, LOG_FOLDER, DELTA_LOG],
        [LOCK, LOG_FOLDER, DELTA_LOG, f".{MARKER}.1.new"],
    ],
)
def test_every_step_can_be_the_last(place: Path, made: list[str]) -> None:
    place.mkdir()
    for name in made:
        if name.startswith("_") and name != LOCK:
            (place / name).mkdir()
        else:
            (place / name).write_bytes(b"")
    if DELTA_LOG in made:
        (place / DELTA_LOG / f"{0:020d}.json").write_bytes(b'{"half')
    with ze.open(place, create=True) as kb, kb.change() as c:
        c.add_facts("p(a, b) .")
    with ze.open(place) as kb:
        assert kb.version == 1
    assert not list(place.glob(".*"))


@pytest.mark.parametrize("kept", ["notes.txt", "relation=p", DELTA_LOG])
def test_what_is_somebody_elses_stays(place: Path, kept: str) -> None:
    (place / kept).mkdir(parents=True)
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(place, create=True)
    assert code(caught.value) == "D002"
    assert [path.name for path in place.iterdir()] == [kept]


def test_a_store_that_lost_its_marker_is_not_made_anew(logged: Path) -> None:
    for path in logged.glob("relation=*"):
        path.rename(logged.parent / path.name)
    (logged / MARKER).unlink()
    with pytest.raises(ze.ZodiacError, match="it has changes") as caught:
        ze.open(logged, create=True)
    assert code(caught.value) == "D002"
    assert list((logged / LOG_FOLDER).iterdir())


def test_two_do_not_make_the_same_store(place: Path) -> None:
    place.mkdir()
    with WriterLock(place / LOCK), pytest.raises(ze.ZodiacError) as caught:
        ze.open(place, create=True)
    assert code(caught.value) == "D003"


def test_what_a_killed_export_left_is_removed_by_the_next(place: Path) -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_facts("p(a, b) .")
    left = place.parent / f".{place.name}.123.new"
    busy = place.parent / f".{place.name}.124.new"
    for folder in (left, busy):
        (folder / LOG_FOLDER).mkdir(parents=True)
        (folder / LOCK).write_bytes(b"")
    with WriterLock(busy / LOCK):
        kb.export_slice(place, "p(_, _)")
    assert {path.name for path in place.parent.iterdir()} == {place.name, busy.name}


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("mine.new", "thesis.txt"),
        ("123.new", "thesis.txt"),
        ("mine.new", LOCK),
        ("123.new", f"{LOCK}.txt"),
        ("1.2.new", LOCK),
    ],
)
def test_an_export_removes_nothing_that_is_not_ours(place: Path, name: str, kept: str) -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_facts("p(a, b) .")
    folder = place.parent / f".{place.name}.{name}"
    folder.mkdir()
    (folder / kept).write_bytes(b"mine")
    kb.export_slice(place, "p(_, _)")
    assert [path.name for path in folder.iterdir()] == [kept]
    assert (folder / kept).read_bytes() == b"mine"


def test_an_export_leaves_folders_with_a_lock_and_something_else(place: Path) -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_facts("p(a, b) .")
    folder = place.parent / f".{place.name}.123.new"
    folder.mkdir()
    for name in (LOCK, "thesis.txt"):
        (folder / name).write_bytes(b"mine")
    kb.export_slice(place, "p(_, _)")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        LOCK: b"mine",
        "thesis.txt": b"mine",
    }
