"""Ctrl-C at any moment of a change: it is in, or it is not, and the next one is sound."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import abandon
from zodiacedge.kb import knowledge_base

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

_WHERE = ("zodiacedge/store/", "zodiacedge/util/uninterrupted.py")
# What carries a change over from the log into force.
_STEPS = {"apply", "_record", "_withdraw"}


class Interruption:
    """Sends the process SIGINT at the n-th line of those that write a change."""

    def __init__(self, moment: int) -> None:
        self.moment = moment
        self.lines = 0

    def __call__(self, frame: FrameType, event: str, _about: object) -> Interruption | None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if not (any(one in file for one in _WHERE) or (file == knowledge_base.__file__ and name in _STEPS)):
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.moment:
                signal.raise_signal(signal.SIGINT)
        return self


def _interrupted_change(kb: ze.KnowledgeBase, number: int, moment: int) -> bool:
    """Make a change that is interrupted; tell whether the moment came."""
    interruption = Interruption(moment)
    before = sys.gettrace()
    sys.settrace(interruption)
    try:
        with kb.change(f"interrupted {number}") as c:
            c.add_facts([("p", number)])
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return interruption.lines >= moment


# A file of the log that goes on, and one that is begun with each change.
@pytest.mark.parametrize("begins", [False, True], ids=["goes on", "begins"])
def test_an_interruption_at_any_line_leaves_a_sound_store(place: Path, *, begins: bool) -> None:
    kb = ze.open(place, create=True)
    assert kb._store is not None
    writer = kb._store._writer
    assert writer is not None
    sure: list[int] = []
    moment, came = 0, True
    while came:
        moment += 1
        before = kb.version
        if begins:
            writer.sync_all()
            writer.rotate()
        came = _interrupted_change(kb, moment, moment)
        # Whether it is in is all the same, but all must agree on it.
        if kb.version > before:
            sure.append(moment)
        assert bool(kb.query(f"?- p({moment}) .")) == (kb.version > before)
        with kb.change() as c:
            c.add_facts([("q", moment)])
    # Some were in time and some were not; the last was not interrupted at all.
    assert 1 < len(sure) < moment
    assert sure[-1] == moment
    abandon(kb)
    with ze.open(place) as again:
        assert again.version == kb.version == len(again.log())
        assert again.facts() == kb.facts()
        assert again.verify().ok
