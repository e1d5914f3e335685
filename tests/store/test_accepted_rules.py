"""A store opens with rules that were accepted before a check refused them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import abandon, code
from zodiacedge.language import checks

if TYPE_CHECKING:
    from pathlib import Path

ODD = 'odd: odd(X) :- name(X), regex(X, "(") = true .'


@pytest.fixture(params=["in the log", "in the table"])
def store(place: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A store with a rule that has a pattern that is no regular expression, and a version without it."""
    with monkeypatch.context() as patch:
        patch.setattr(checks, "TEXT_CHECKS", ())
        kb = ze.open(place, create=True)
        with kb.change() as c:
            c.add_rules(f'{ODD} even: even(X) :- name(X), not odd(X) . name("a(") .')
        if request.param == "in the log":
            abandon(kb)
        else:
            kb.close()
    return place


def test_a_store_opens_and_changes(store: Path) -> None:
    with ze.open(store) as kb:
        assert len(kb.rules) == 2
        with kb.change() as c:
            c.add_facts('name("b") .')
        assert len(kb.query("?- even(X) .")) == 2
        assert kb.verify("reference").ok


def test_a_new_rule_is_refused_as_ever(store: Path) -> None:
    with ze.open(store) as kb:
        with pytest.raises(ze.ZodiacError) as caught, kb.change() as c:
            c.add_rules(ODD.replace("odd", "another"))
        assert code(caught.value) == "C017"


def test_a_reader_follows_and_earlier_versions_return(store: Path, tmp_path: Path) -> None:
    with ze.open(store) as kb:
        with kb.change() as c:
            c.remove_rules("odd")
        with kb.change() as c:
            c.add_facts('name("b") .')
        with ze.open(store, at=2) as reader:
            assert len(reader.rules) == 1
            kb.rollback(1)
            assert len(kb.rules) == 2
            reader.refresh()
            assert reader.facts() == kb.facts()
        kb.rollback(2)
        kb.rollback(4)
        assert len(kb.rules) == 2
        kb.export_slice(tmp_path / "slice", "?- name(X) .")
    with ze.open(tmp_path / "slice") as slice_:
        assert len(slice_.rules) == 2
