"""Threads whose changes come close together wait for the disk together."""

from __future__ import annotations

import os
import stat
import threading
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import abandon
from strategies.waiting import until
from zodiacedge.store.store import DurableStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_THREADS = 8


class SlowDisk:
    """Calls the system's `fsync`; the first one for a file takes until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.may_end = threading.Event()
        self.in_first = threading.Event()
        self._really: Callable[[int], None] = os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, handle: int) -> None:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            self.calls += 1
            if self.calls == 1:
                self.in_first.set()
                assert self.may_end.wait(30)
        self._really(handle)


def test_changes_that_come_while_the_disk_works_share_the_next_sync(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = ze.open(place, create=True)
    disk = SlowDisk(monkeypatch)
    acknowledged: list[int] = []

    def work(name: int) -> None:
        with kb.change(f"change {name}") as c:
            c.add_facts([("p", name, name)])
        acknowledged.append(name)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(_THREADS)]
    threads[0].start()
    assert disk.in_first.wait(30)
    for thread in threads[1:]:
        thread.start()
    # All others are committed and written while the disk is at the first, and none is acknowledged.
    until(lambda: kb.version == _THREADS)
    assert acknowledged == []
    disk.may_end.set()
    for thread in threads:
        thread.join()
    assert sorted(acknowledged) == list(range(_THREADS))
    assert disk.calls == 2
    abandon(kb)
    with ze.open(place) as again:
        assert again.version == _THREADS
        assert again.facts() == kb.facts()


def test_a_disk_that_fails_acknowledges_nothing_more(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kb = ze.open(place, create=True)
    with kb.change() as c:
        c.add_facts([("p", 1, 1)])

    def fails(_handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(ze.ZodiacError, match="Input/output error"), kb.change() as c:
        c.add_facts([("p", 2, 2)])
    monkeypatch.undo()
    with pytest.raises(ze.ZodiacError, match="takes no more changes"), kb.change() as c:
        c.add_facts([("p", 3, 3)])
    abandon(kb)
    with ze.open(place) as again:
        # Nobody knows whether the second is on disk; the third is not.
        assert again.version in {1, 2}
        assert not again.query("?- p(3, 3) .")


def test_a_change_that_another_thread_closed_the_store_behind_is_acknowledged(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = ze.open(place, create=True)
    really = DurableStore.sync

    def late(store: DurableStore, ticket: int) -> None:
        kb.close()
        really(store, ticket)

    monkeypatch.setattr(DurableStore, "sync", late)
    with kb.change() as c:
        c.add_facts([("p", 1, 1)])
    assert c.report.version_after == 1
    with pytest.raises(ze.ZodiacError, match="it is closed"), kb.change() as c:
        c.add_facts([("p", 2, 2)])
    with ze.open(place) as again:
        assert list(again.query("?- p(X, Y) .")) == [(1, 1)]
