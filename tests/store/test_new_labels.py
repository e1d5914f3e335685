"""Labels that rules in force get: in the log, in the table, for readers, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import abandon

if TYPE_CHECKING:
    from pathlib import Path

FIRST = "r1: a(X) :- b(X) . r2: c(X) :- a(X) ."
SWAPPED = "r2: a(X) :- b(X) . r1: c(X) :- a(X) ."
LATER = "r3: a(X) :- b(X) . c(X) :- a(X) . r1: d(X) :- c(X) ."


def labels(kb: ze.KnowledgeBase) -> dict[str, str]:
    """Return the label of the rules by the predicate that they define."""
    return {rule.head.predicate.name: rule.label for rule in kb.rules}


def sync(kb: ze.KnowledgeBase, text: str) -> None:
    with kb.change() as c:
        c.sync_rules(text)


@pytest.fixture
def kb(place: Path) -> ze.StoredKnowledgeBase:
    """A store of three versions that differ in labels."""
    kb = ze.open(place, create=True)
    sync(kb, f"{FIRST} b(1) .")
    sync(kb, SWAPPED)
    sync(kb, LATER)
    return kb


@pytest.mark.parametrize("flushed", [False, True])
def test_a_store_opens_with_the_new_labels(kb: ze.StoredKnowledgeBase, place: Path, *, flushed: bool) -> None:
    if flushed:
        kb.close()
    else:
        abandon(kb)
    with ze.open(place) as again:
        assert labels(again) == {"a": "r3", "c": "", "d": "r1"}
        assert labels(again.at(2)) == {"a": "r2", "c": "r1"}
        assert labels(again.at(1)) == {"a": "r1", "c": "r2"}
        assert again.verify().ok
        difference = again.diff(1, 2)
        assert sorted(str(rule) for rule in difference.rules_added) == [
            "r1: c(X) :- a(X) .",
            "r2: a(X) :- b(X) .",
        ]
        assert not difference.inserted
        assert not difference.deleted


@pytest.mark.parametrize(("version", "expected"), [(1, {"a": "r1", "c": "r2"}), (2, {"a": "r2", "c": "r1"})])
def test_a_rollback_brings_labels_back(
    kb: ze.StoredKnowledgeBase, place: Path, version: int, expected: dict[str, str]
) -> None:
    kb.rollback(version)
    assert labels(kb) == expected
    abandon(kb)
    with ze.open(place) as again:
        assert labels(again) == expected
        again.rollback(3)
        assert labels(again) == {"a": "r3", "c": "", "d": "r1"}


def test_a_rollback_brings_back_the_label_of_a_rule_that_was_removed_and_came_again(
    kb: ze.StoredKnowledgeBase,
) -> None:
    with kb:
        sync(kb, "r1: d(X) :- c(X) .")
        sync(kb, "r1: d(X) :- c(X) . r9: a(Z) :- b(Z) .")
        kb.rollback(3)
        assert labels(kb) == {"a": "r3", "c": "", "d": "r1"}


def test_a_reader_gets_the_new_labels(kb: ze.StoredKnowledgeBase, place: Path) -> None:
    with kb, ze.open(place, at=1) as reader:
        reports = reader.refresh()
        assert [len(report.relabelled) for report in reports] == [2, 2]
        assert labels(reader) == labels(kb)


def test_a_new_label_is_no_reason_for_a_fact(kb: ze.StoredKnowledgeBase) -> None:
    with kb:
        sync(kb, "r8: a(X) :- b(X) . c(X) :- a(X) . r1: d(X) :- c(X) . b(2) .")
        (change,) = kb.why_changed("a(2)").changes
        assert (change.edit.rules_added, len(change.edit.facts_added)) == ((), 1)
