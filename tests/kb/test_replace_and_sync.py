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
            "remove r1 first, in a change of its own: r1: a(X) :- b(X) .",
        )
    ]
    with kb.change() as c:
        c.remove_rules("r1")
    with kb.change() as c:
        c.add_rules("r2: a(Y) :- b(Y) .", replace=True)
    assert rules(kb) == ["r2: a(Y) :- b(Y) ."]


def test_an_unlabelled_rule_replaces_none(kb: ze.KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_rules("d(X) :- a(X) .")
    ((code, message, note),) = refused(kb, "r2: d(X) :- a(X) .")
    assert (code, message) == (
        "C015",
        "the rule that is to replace r2 is there already, without a label",
    )
    assert note == "remove that rule by its text first, in a change of its own: d(X) :- a(X) ."


def test_one_rule_cannot_replace_those_of_two_labels(kb: ze.KnowledgeBase) -> None:
    ((code, _, note),) = refused(kb, "r1: d(X) :- b(X) . r2: d(X) :- b(X) .")
    assert (code, note) == ("C015", "leave out one of the two: r1: d(X) :- b(X) .")


def test_a_new_label_for_a_rule_in_force_replaces_nothing(kb: ze.KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_rules("r9: a(X) :- b(X) .", replace=True)
    assert [w.code for w in c.report.warnings] == ["W002"]
    assert rules(kb) == ["r1: a(X) :- b(X) .", "r2: c(X) :- a(X) ."]


def test_sync_keeps_the_label_that_a_rule_is_in_force_under(kb: ze.KnowledgeBase) -> None:
    with kb.change() as c:
        c.sync_rules("r9: a(X) :- b(X) . r2: c(X) :- a(X) .")
    assert (c.report.warnings, c.report.rules_added, c.report.rules_removed) == ((), (), ())
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
