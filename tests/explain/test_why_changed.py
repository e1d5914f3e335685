"""`kb.why_changed`: the versions that changed a fact, and their edits; who stated explicit facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from zodiacedge.explain.proof import Explicit
from zodiacedge.language.parser import parse_fact

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from zodiacedge.kb.knowledge_base import KnowledgeBase


def test_facts_that_join_and_leave_a_group_are_named_alone(tmp_path: Path) -> None:
    with ze.open(tmp_path / "farm.zodiac", create=True) as kb:
        with kb.change() as c:
            c.add_rules("n: number(G, N) :- AGGREGATE(in(X, G)) ON G WITH COUNT(X) AS N .")
            c.add_facts("in(a, g) . in(b, h) .")
        with kb.change() as c:
            c.add_facts("in(c, g) . in(d, h) . other(e) .")
        with kb.change() as c:
            c.remove_facts("in(a, g) . other(e) .")
        first, second = kb.why_changed("number(g, 1)"), kb.why_changed("number(g, 2)")
    came, went, _ = first.changes
    assert (went.edit.facts_added, went.edit.direct) == ((parse_fact("in(c, g)"),), True)
    assert (came.edit.facts_removed, came.edit.direct) == ((parse_fact("in(a, g)"),), True)
    assert second.changes[0].edit.facts_removed == (parse_fact("in(a, g)"),)


@pytest.mark.parametrize("versions", [0, -1, "3", True])
def test_one_version_at_least_is_looked_back(farm: KnowledgeBase, versions: int) -> None:
    with pytest.raises(ze.ZodiacError, match="U013: expected a number of versions"):
        farm.why_changed("alarm(wt1)", versions=versions)


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with ze.open(tmp_path / "farm.zodiac", create=True) as kb:
        with kb.change("rules") as c:
            c.add_rules("r1: alarm(X) :- reading(X, V), V > 80, not muted(X) .")
        for message, added, removed in [
            ("hot", "reading(wt1, 90) . reading(wt2, 1) .", ""),
            ("mute", "muted(wt1) .", ""),
            ("other", "reading(wt2, 2) .", ""),
            ("unmute", "", "muted(wt1) ."),
            ("cold", "", "reading(wt1, 90) ."),
        ]:
            with kb.change(message) as c:
                if added:
                    c.add_facts(added)
                if removed:
                    c.remove_facts(removed)
        with kb.change("lower") as c:
            c.add_rules("r2: alarm(X) :- reading(X, 2) .")
        yield kb


def test_each_turn_names_the_edit_and_its_proof(farm: KnowledgeBase) -> None:
    history = farm.why_changed("alarm(wt1)")
    assert not history.there
    assert history.complete
    assert [(change.version, change.inserted, change.edit.message) for change in history.changes] == [
        (6, False, "cold"),
        (5, True, "unmute"),
        (3, False, "mute"),
        (2, True, "hot"),
    ]
    cold, unmute, mute, hot = (change.edit for change in history.changes)
    assert [str(fact) for fact in hot.facts_added] == ["reading(wt1, 90)"]
    assert hot.all_facts_added == 2
    assert [str(fact) for fact in mute.facts_added] == ["muted(wt1)"]
    assert [str(fact) for fact in unmute.facts_removed] == ["muted(wt1)"]
    assert [str(fact) for fact in cold.facts_removed] == ["reading(wt1, 90)"]
    assert all(edit.direct and edit.time and edit.author for edit in (cold, unmute, mute, hot))
    assert all(change.proof and change.proof.height == 1 for change in history.changes)


def test_a_rule_is_an_edit_too(farm: KnowledgeBase) -> None:
    (change,) = farm.why_changed("alarm(wt2)").changes
    assert [rule.label for rule in change.edit.rules_added] == ["r2"]


def test_an_edit_that_acts_through_other_facts_says_so(farm: KnowledgeBase) -> None:
    with farm.change() as c:
        c.add_rules("calm(X) :- reading(X, _), not loud(X) .  loud(X) :- horn(X, _) .  reading(wt7, 1) .")
    with farm.change() as c:
        c.add_facts("horn(wt7, 3) .")
    change = farm.why_changed("calm(wt7)").changes[0]
    assert not change.inserted
    assert not change.edit.direct
    assert [str(fact) for fact in change.edit.facts_added] == ["horn(wt7, 3)"]


def test_a_limit_on_versions_leaves_some_out_and_says_so(farm: KnowledgeBase) -> None:
    history = farm.why_changed("alarm(wt1)", versions=2)
    assert [change.version for change in history.changes] == [6]
    assert history.since == 5
    assert not history.complete


def test_an_explicit_fact_says_who_stated_it(farm: KnowledgeBase) -> None:
    leaf = farm.explain("alarm(wt2)")[parse_fact("reading(wt2, 2)")]
    assert isinstance(leaf, Explicit)
    assert leaf.statement is not None
    assert (leaf.statement.version, leaf.statement.message) == (4, "other")
    assert leaf.statement.author
    with farm.change("again") as c:
        c.remove_facts("reading(wt2, 2) .")
    with farm.change("back") as c:
        c.add_facts("reading(wt2, 2) .")
    leaf = farm.explain("alarm(wt2)")[parse_fact("reading(wt2, 2)")]
    assert isinstance(leaf, Explicit)
    assert leaf.statement is not None
    assert leaf.statement.message == "back"


def test_a_knowledge_base_in_memory_knows_its_version_only() -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_facts("p(a) .")
    history = kb.why_changed("p(a)")
    assert history.there
    assert history.changes == ()
    assert (history.since, history.version) == (1, 1)


def test_an_unknown_predicate_is_named(farm: KnowledgeBase) -> None:
    assert "did you mean muted?" in str(farm.why_changed("mutde(wt1)"))


def test_a_pattern_has_no_history(farm: KnowledgeBase) -> None:
    with pytest.raises(ze.ZodiacError, match="X007"):
        farm.why_changed("alarm(X)")
