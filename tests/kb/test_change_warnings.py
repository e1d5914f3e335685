"""The warnings of a change: those about the rules that it adds, once each, with the facts that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["reference", "embedded"])
def kb(request: pytest.FixtureRequest) -> ze.KnowledgeBase:
    return ze.open(engine=request.param)


def warnings(kb: ze.KnowledgeBase, text: str) -> list[str]:
    """Return the warnings of a change, as code and line."""
    with kb.change() as c:
        c.add_rules(text)
    return [f"{w.code}:{w.span.source.position(w.span.start)[0]}" for w in c.report.warnings if w.span]


def test_a_warning_is_in_the_report_of_the_change_that_adds_the_rule(kb: ze.KnowledgeBase) -> None:
    assert warnings(kb, "r1: p(X) :- q(X, Y) .") == ["W020:1"]
    assert warnings(kb, "s(X) :- p(X), q(X, X) .") == []
    assert warnings(kb, "p(X) :- q(X, Z) .") == ["W002:1"]


def test_warnings_are_in_the_order_of_the_text(kb: ze.KnowledgeBase) -> None:
    text = "n(Y) :- n(X), Y = X + 1 .\np(X) :- q(X, Y) .\np(Z) :- q(Z, Y) .\ns(Y) :- n(X), Y = max(X) ."
    assert warnings(kb, text) == ["W025:1", "W020:2", "W002:3", "W021:4"]


def test_a_comment_silences_a_warning(kb: ze.KnowledgeBase) -> None:
    assert warnings(kb, "# lint: ignore W020, W002\np(X) :- q(X, Y) .") == []
    assert warnings(kb, "p(X) :- q(X, Y) .  # lint: ignore W002") == []
    assert warnings(kb, "p(X) :- q(X, Y) .") == ["W002:1"]


def test_a_dry_run_has_the_warnings_too(kb: ze.KnowledgeBase) -> None:
    assert [w.code for w in kb.dry_run(add_rules="p(X) :- q(X, Y) .").warnings] == ["W020"]


def test_facts_of_earlier_changes_state_a_class_or_a_property(kb: ze.KnowledgeBase, tmp_path: Path) -> None:
    warnings(kb, "near(a, b) .")
    assert warnings(kb, "p(X) :- near(X) .") == ["W022:1"]
    (tmp_path / "near.csv").write_text("a\n")
    with kb.change() as c:
        c.load(tmp_path / "near.csv")
    assert warnings(kb, "r(X) :- near(X) .") == []


def test_rules_of_earlier_changes_define_a_class_or_a_property(kb: ze.KnowledgeBase) -> None:
    warnings(kb, "near(X, Y) :- next(X, Y) .")
    assert warnings(kb, "p(X) :- near(X) .") == ["W022:1"]
    warnings(kb, "rdf:type(X, C) :- kind(X, C) .")
    assert warnings(kb, "r(X) :- near(X) .") == []


def test_the_rule_that_closes_a_recursion_may_be_another_than_the_one_that_computes(
    kb: ze.KnowledgeBase,
) -> None:
    assert warnings(kb, "a(X) :- b(X) .") == []
    assert warnings(kb, "b(Y) :- a(X), Y := X * 2 .") == ["W025:1"]
