"""Changes that replace the rule of a label, or make the rules those of a text: labels, and refusals."""

from __future__ import annotations

import pytest

import zodiacedge as ze
from zodiacedge.errors import CheckProblem
from zodiacedge.language.printer import format_rule

RULES = "r1: a(X) :- b(X) . r2: c(X) :- a(X) . b(1) ."


@pytest.fixture(params=["reference", "embedded"])
def kb(request: pytest.FixtureRequest) -> ze.KnowledgeBase:
    kb = ze.open(engine=request.param)
    with kb.change() as c:
        c.add_rules(RULES)
    return kb


def rules(kb: ze.KnowledgeBase) -> list[str]:
    return sorted(format_rule(rule) for rule in kb.rules)


def refused(kb: ze.KnowledgeBase, text: str, *, sync: bool = False) -> list[tuple[str, str, str]]:
    """Return the diagnostics of a change that must be refused and leave everything as it is."""
    before = rules(kb), kb.version, len(kb.query("?- c(X) ."))
    change = kb.change()
    if sync:
        change.sync_rules(text)
    else:
        change.add_rules(text, replace=True)
    with pytest.raises(CheckProblem) as problem, change:
        pass
    assert (rules(kb), kb.version, len(kb.query("?- c(X) ."))) == before
    return [(d.code, d.message, d.note) for d in problem.value.diagnostics]


def test_a_rule_under_another_label_replaces_none(kb: ze.KnowledgeBase) -> None:
    assert refused(kb, "r2: a(Y) :- b(Y) .") == [
        (
            "C015",
            "the rule that is to replace r2 is there already, as r1",
            "remove r1 in the same change: r1: a(X) :- b(X) .",
        )
    ]
    with kb.change() as c:
        c.remove_rules("r1")
        c.add_rules("r2: a(Y) :- b(Y) .", replace=True)
    assert rules(kb) == ["r2: a(X) :- b(X) ."]


def test_an_unlabelled_rule_replaces_none(kb: ze.KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_rules("d(X) :- a(X) .")
    ((code, message, note),) = refused(kb, "r2: d(X) :- a(X) .")
    assert (code, message) == (
        "C015",
        "the rule that is to replace r2 is there already, without a label",
    )
    assert note == "remove that rule by its text in the same change: d(X) :- a(X) ."


def test_one_rule_cannot_replace_those_of_two_labels(kb: ze.KnowledgeBase) -> None:
    ((code, _, note),) = refused(kb, "r1: d(X) :- b(X) . r2: d(X) :- b(X) .")
    assert (code, note) == ("C015", "leave out one of the two: r1: d(X) :- b(X) .")


def test_a_new_label_for_a_rule_in_force_replaces_nothing(kb: ze.KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_rules("r9: a(X) :- b(X) .", replace=True)
    assert [w.code for w in c.report.warnings] == ["W002"]
    assert rules(kb) == ["r1: a(X) :- b(X) .", "r2: c(X) :- a(X) ."]


def test_sync_gives_a_rule_that_stays_the_label_of_the_text(kb: ze.KnowledgeBase) -> None:
    before = kb.facts()
    with kb.change() as c:
        c.sync_rules("r9: a(Y) :- b(Y) . c(X) :- a(X) .")
    report = c.report
    assert [(a.label, b.label) for a, b in report.relabelled] == [("r1", "r9"), ("r2", "")]
    assert (report.warnings, len(report.inserted), len(report.deleted)) == ((), 0, 0)
    assert kb.facts() == before
    assert rules(kb) == ["c(X) :- a(X) .", "r9: a(X) :- b(X) ."]
    assert [kb.graph().rule(key).label for node in kb.graph().order for key in node.rules] == ["r9", ""]
    assert kb.verify().ok


def test_a_new_label_costs_no_evaluation() -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules(RULES)
    with kb.change() as c:
        c.sync_rules("r9: a(X) :- b(X) . r2: c(X) :- a(X) .")
    assert c.report.nodes == ()
    with kb.change() as c:
        c.add_facts("b(2) .")
    assert {node.rules for node in c.report.nodes} == {("r9",), ("r2",)}


def test_sync_gives_labels_of_rules_that_stay_to_others(kb: ze.KnowledgeBase) -> None:
    with kb.change() as c:
        c.sync_rules("r2: a(X) :- b(X) . r1: c(X) :- a(X) .")
    assert rules(kb) == ["r1: c(X) :- a(X) .", "r2: a(X) :- b(X) ."]
    with kb.change() as c:
        c.sync_rules("r1: d(X) :- b(X) . r3: a(X) :- b(X) . r2: c(X) :- a(X) .")
    assert rules(kb) == ["r1: d(X) :- b(X) .", "r2: c(X) :- a(X) .", "r3: a(X) :- b(X) ."]
    assert [rule.label for rule in c.report.rules_added if rule.head.predicate.name == "d"] == ["r1"]
    assert [(a.label, b.label) for a, b in c.report.relabelled] == [("r2", "r3"), ("r1", "r2")]
    with kb.change() as c:
        c.remove_rules("r3")
    assert rules(kb) == ["r1: d(X) :- b(X) .", "r2: c(X) :- a(X) ."]


def test_sync_refuses_one_label_for_two_rules_that_stay(kb: ze.KnowledgeBase) -> None:
    ((code, message, _),) = refused(kb, "r9: a(X) :- b(X) . r9: c(X) :- a(X) .", sync=True)
    assert (code, message) == ("C010", "the label r9 is in use")
    ((code, message, _),) = refused(kb, "r2: a(X) :- b(X) . r2: c(X) :- a(X) .", sync=True)
    assert (code, message) == ("C010", "the label r2 is in use")


def test_a_rule_that_is_removed_and_added_gets_the_label_that_it_is_added_with(kb: ze.KnowledgeBase) -> None:
    with kb.change() as c:
        c.remove_rules("r1")
        c.add_rules("first: a(X) :- b(X) .")
    assert rules(kb) == ["first: a(X) :- b(X) .", "r2: c(X) :- a(X) ."]
    change = kb.change()
    change.remove_rules("first")
    change.add_rules("r2: a(X) :- b(X) .")
    with pytest.raises(CheckProblem) as problem, change:
        pass
    assert [d.code for d in problem.value.diagnostics] == ["C010"]


def test_a_dry_run_shows_new_labels_and_gives_none(kb: ze.KnowledgeBase) -> None:
    change = kb.change()
    change.sync_rules("r9: a(X) :- b(X) . c(X) :- a(X) .")
    report = change.dry_run()
    line = "rules: 0 added, 0 removed, 2 relabelled (r1 is r9, r2 is c(X) :- a(X))"
    assert line in str(report).splitlines()
    assert report.to_dict()["rules_relabelled"] == [
        ["r1: a(X) :- b(X) .", "r9: a(X) :- b(X) ."],
        ["r2: c(X) :- a(X) .", "c(X) :- a(X) ."],
    ]
    assert rules(kb) == ["r1: a(X) :- b(X) .", "r2: c(X) :- a(X) ."]


def test_sync_warns_of_a_rule_that_the_text_repeats(kb: ze.KnowledgeBase) -> None:
    with kb.change() as c:
        c.sync_rules("r1: a(X) :- b(X) . r2: c(X) :- a(X) . r9: a(Y) :- b(Y) .")
    assert [w.code for w in c.report.warnings] == ["W002"]


@pytest.mark.parametrize("text", ["", "b(2) ."])
def test_sync_with_a_text_without_rules_is_refused(kb: ze.KnowledgeBase, text: str) -> None:
    assert refused(kb, text, sync=True) == [
        (
            "C016",
            "the program to sync with has no rules, and 2 in force would be removed",
            "to remove rules, name them by label or by text",
        )
    ]


def test_sync_of_facts_is_accepted_if_no_rule_is_in_force() -> None:
    kb = ze.open()
    with kb.change() as c:
        c.sync_rules("b(2) .")
    assert len(kb.query("?- b(X) .")) == 1
