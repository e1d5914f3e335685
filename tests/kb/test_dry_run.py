"""A dry run: the report of a change, and nothing of it is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from zodiacedge.engine.api import Settings
from zodiacedge.errors import CheckProblem, UsageProblem
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import fact
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.engine.api import Engine

A, B, C = IRI("a"), IRI("b"), IRI("c")
PROGRAM = """
    near: near(X, Z) :- near(X, Y), near(Y, Z) .
    back: near(X, Y) :- near(Y, X) .
    lone: lone(X) :- place(X), not near(X, Y) .
    size: size(N) :- AGGREGATE(near(X, Y)) WITH COUNT(X) AS N .
    near(a, b) .  place(a) .  place(b) .  place(c) .
"""


@pytest.fixture
def kb(engine: Engine) -> KnowledgeBase:
    made = KnowledgeBase(engine, Settings())
    with made.change() as c:
        c.add_rules(PROGRAM)
    return made


def everything(kb: KnowledgeBase) -> tuple[object, ...]:
    segments = tuple(kb.state.segment(frozenset(node.rules)) for node in kb.graph().order)
    return kb.version, kb.rules, kb.explicit, kb.facts(), kb.graph(), kb.prefixes, segments, id(kb.state)


def but_for_time(report: ze.ChangeReport) -> dict[str, object]:
    found = report.to_dict()
    # By which means a node is brought up to date is a matter of time, too.
    nodes = [(n.rules, n.facts) for n in report.nodes]
    return {**found, "seconds": 0, "nodes": nodes, "version_after": 0, "dry_run": None}


def test_the_report_is_that_of_the_change(kb: KnowledgeBase) -> None:
    before = everything(kb)
    with kb.change() as c:
        c.add_rules("r: far(X, Y) :- place(X), place(Y), not near(X, Y) .  near(b, c) .")
        c.remove_rules("size")
        c.remove_facts([("place", A), ("place", IRI("nowhere"))])
        tried = c.dry_run()
        assert everything(kb) == before
    assert but_for_time(tried) == but_for_time(c.report)
    assert tried.inserted == c.report.inserted
    assert tried.deleted == c.report.deleted
    assert fact("far", C, C) not in tried.inserted


def test_it_says_that_it_was_one(kb: KnowledgeBase) -> None:
    report = kb.dry_run(add_facts="near(b, c) .")
    assert report.dry_run
    assert (report.version_before, report.version_after) == (1, 1)
    assert str(report).startswith("dry run on version 1 in ")
    assert repr(report) == "<ChangeReport dry run on version 1>"
    assert report.to_dict()["dry_run"] is True
    with kb.change() as c:
        c.add_facts("near(b, c) .")
    assert not c.report.dry_run
    assert c.report.to_dict()["dry_run"] is False


def test_all_pieces_may_come_in_one_call(kb: KnowledgeBase) -> None:
    before = everything(kb)
    report = kb.dry_run(
        add_rules="r: far(X) :- place(X) .",
        remove_rules="lone",
        add_facts=[("place", ze.iri("d"))],
        remove_facts="place(c) .",
    )
    assert [rule.label for rule in report.rules_added] == ["r"]
    assert [rule.label for rule in report.rules_removed] == ["lone"]
    assert (report.facts_added, report.facts_removed) == (1, 1)
    assert report.deleted == {fact("lone", C), fact("place", C)}
    assert everything(kb) == before


def test_nothing_to_do_is_no_change(kb: KnowledgeBase) -> None:
    report = kb.dry_run()
    assert not report.inserted
    assert not report.deleted


def test_a_change_that_would_be_refused_is_refused(kb: KnowledgeBase) -> None:
    before = everything(kb)
    with pytest.raises(CheckProblem, match="C001"):
        kb.dry_run(add_rules="p(X, Y) :- place(X) .")
    assert everything(kb) == before


def test_prefixes_of_a_dry_run_do_not_last(kb: KnowledgeBase) -> None:
    kb.dry_run(add_rules="@prefix ex: <http://e/> .  ex:p(X) :- place(X) .")
    assert kb.prefixes == {}


def test_its_report_can_be_read_after_later_changes(kb: KnowledgeBase) -> None:
    report = kb.dry_run(remove_facts="near(a, b) .")
    with kb.change() as c:
        c.remove_rules("near")
        c.remove_rules("back")
        c.add_facts("near(c, c) .  near(a, c) .")
    assert fact("near", A, A) in report.deleted
    assert {fact("lone", A), fact("lone", B)} <= report.inserted


def test_what_was_loaded_is_there_for_the_commit(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "near.csv").write_text("<b>,<c>\n")
    with kb.change() as c:
        c.load(tmp_path / "near.csv")
        tried = c.dry_run()
    assert tried.inserted == c.report.inserted != frozenset()


def test_a_committed_change_has_no_dry_run(kb: KnowledgeBase) -> None:
    with kb.change() as c:
        pass
    with pytest.raises(UsageProblem, match="U002"):
        c.dry_run()


def test_a_whole_change_and_pieces_of_one_are_not_mixed(kb: KnowledgeBase) -> None:
    whole = kb.change().collected()
    with pytest.raises(UsageProblem, match="U013: expected a change or its pieces, found both"):
        kb.dry_run(whole, add_facts="place(d) .")
    with pytest.raises(UsageProblem, match=r"U013: expected a change, found 'place\(d\) \.'"):
        kb.dry_run("place(d) .")  # type: ignore[arg-type]
