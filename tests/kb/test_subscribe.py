"""Subscriptions: who is told of a commit, of what, and what happens when somebody fails."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.errors import CheckProblem, UsageProblem
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Predicate, fact
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from zodiacedge.engine.api import Engine

A, B, C = IRI("a"), IRI("b"), IRI("c")


@pytest.fixture
def kb(engine: Engine) -> KnowledgeBase:
    return KnowledgeBase(engine, Settings())


def change(kb: KnowledgeBase, text: str, remove: str = "") -> ze.ChangeReport:
    with kb.change() as c:
        c.add_rules(text)
        if remove:
            c.remove_rules(remove)
    return c.report


def test_a_commit_that_ctrl_c_meets_is_told_all_the_same(kb: KnowledgeBase) -> None:
    told: list[ze.Notice] = []
    kb.subscribe("q/1", told.append)
    one = Change(add_facts=(fact("q", A),))
    with pytest.raises(KeyboardInterrupt):
        kb.apply(one, committed=lambda _: signal.raise_signal(signal.SIGINT))
    assert (kb.version, kb.facts()) == (1, frozenset({fact("q", A)}))
    assert [notice.inserted for notice in told] == [{fact("q", A)}]


def test_a_subscriber_gets_the_net_facts_of_each_commit(kb: KnowledgeBase) -> None:
    told: list[ze.Notice] = []
    kb.subscribe("p/1", told.append)
    change(kb, "r1: p(X) :- q(X) .  q(a) .  q(b) .")
    change(kb, "q(c) .", "q(a) .")
    assert told == [
        ze.Notice(1, frozenset({fact("p", A), fact("p", B)}), frozenset()),
        ze.Notice(2, frozenset({fact("p", C)}), frozenset({fact("p", A)})),
    ]


def test_nothing_visible_is_nothing_to_tell(kb: KnowledgeBase) -> None:
    told: list[ze.Notice] = []
    change(kb, "r1: p(X) :- q(X) .  q(a) .")
    kb.subscribe("p", told.append)
    change(kb, "p(a) .")
    change(kb, "s(a) .")
    change(kb, "", "p(a) .")
    assert told == []


def test_dry_runs_and_refused_changes_are_not_told(kb: KnowledgeBase) -> None:
    told: list[ze.Notice] = []
    kb.subscribe(None, told.append)
    kb.dry_run(add_facts="q(a) .")
    with pytest.raises(CheckProblem):
        change(kb, "q(a) .  p(X, Y) :- q(X) .")
    assert told == []


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("p", set()),
        ("ex:p", {"http://e/p/1", "http://e/p/2"}),
        ("ex:p/2", {"http://e/p/2"}),
        ("<http://e/p>", {"http://e/p/1", "http://e/p/2"}),
        ("<http://e/p>/1", {"http://e/p/1"}),
        ("http://e/p", {"http://e/p/1", "http://e/p/2"}),
        ("http://e/p/1", {"http://e/p/1"}),
        (ze.iri("http://e/p"), {"http://e/p/1", "http://e/p/2"}),
        (Predicate("http://e/p", 2), {"http://e/p/2"}),
        ("none", {"none/0"}),
        (None, {"http://e/p/1", "http://e/p/2", "none/0", "q/3"}),
    ],
)
def test_a_predicate_is_named_in_many_ways(
    kb: KnowledgeBase, asked: str | IRI | Predicate | None, expected: set[str]
) -> None:
    told: list[ze.Notice] = []
    kb.add_prefixes([("ex", "http://e/")])
    kb.subscribe(asked, told.append)
    change(kb, "ex:p(a) .  none() .  q(a, b, c) .  ex:p(X, Y) :- q(X, Y, Z) .")
    found = {f.predicate for notice in told for f in notice.inserted}
    assert {f"{name}/{arity}" for name, arity in found} == expected


def test_members_of_a_class_that_a_variable_stands_for(kb: KnowledgeBase) -> None:
    told: list[ze.Notice] = []
    kb.subscribe("animal", told.append)
    change(
        kb,
        """@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
        rdf:type(X, D) :- rdf:type(X, C), sub(C, D) .  sub(cat, animal) .  cat(a) .  animal(b) .""",
    )
    change(kb, "", "cat(a) .")
    assert [(n.inserted, n.deleted) for n in told] == [
        ({fact("animal", A), fact("animal", B)}, frozenset()),
        (frozenset(), {fact("animal", A)}),
    ]


@pytest.mark.parametrize("asked", ["rdf:type", "rdf:type/2", f"<{RDF_TYPE}>", RDF_TYPE, ze.iri(RDF_TYPE)])
def test_who_subscribes_to_rdf_type_hears_of_all_classes(kb: KnowledgeBase, asked: str | IRI) -> None:
    told: list[ze.Notice] = []
    kb.subscribe(asked, told.append)
    change(kb, "animal(X) :- cat(X) .  cat(a) .  near(a, b) .  done() .")
    change(kb, "near(b, a) .")
    change(kb, "", "cat(a) .")
    members = {fact("cat", A), fact("animal", A)}
    assert told == [
        ze.Notice(1, frozenset(members), frozenset()),
        ze.Notice(3, frozenset(), frozenset(members)),
    ]


def test_an_unknown_prefix_is_said(kb: KnowledgeBase) -> None:
    kb.add_prefixes([("farm", "http://e/")])
    with pytest.raises(UsageProblem, match=r"U012: there is no prefix fram:.*\n.*did you mean farm:\?"):
        kb.subscribe("fram:p", print)
    with pytest.raises(UsageProblem, match=r"write the whole IRI: <http:"):
        kb.subscribe("x:p", print)


def test_a_cancelled_subscriber_is_told_no_more(kb: KnowledgeBase) -> None:
    told: list[ze.Notice] = []
    mine = kb.subscribe("q", told.append)
    other = kb.subscribe("q", told.append)
    states = [mine.active]
    mine.cancel()
    mine.cancel()
    assert [*states, mine.active] == [True, False]
    change(kb, "q(a) .")
    assert len(told) == 1
    other.cancel()
    change(kb, "q(b) .")
    assert len(told) == 1


def test_who_is_cancelled_by_another_is_not_called(kb: KnowledgeBase) -> None:
    told: list[ze.Notice] = []
    kb.subscribe("q", lambda _: second.cancel())
    second = kb.subscribe("q", told.append)
    change(kb, "q(a) .")
    assert told == []


def test_a_failing_subscriber_harms_neither_the_commit_nor_the_others(kb: KnowledgeBase) -> None:
    told: list[ze.Notice] = []

    def fail(_: ze.Notice) -> None:
        raise ValueError("no paper")

    kb.subscribe("q", fail)
    kb.subscribe("q", told.append)
    kb.subscribe("q", fail)
    with (
        pytest.raises(ExceptionGroup, match=r"version 1 is committed, but 2 of its subscribers") as caught,
        kb.change() as c,
    ):
        c.add_rules("@prefix ex: <http://e/> .  q(a) .")
    assert [str(problem) for problem in caught.value.exceptions] == ["no paper", "no paper"]
    assert c.report.version_after == kb.version == 1
    assert kb.prefixes == {"ex": "http://e/"}
    assert kb.facts() == {fact("q", A)}
    assert len(told) == 1
    with pytest.raises(ExceptionGroup, match="version 2 is committed"):
        change(kb, "q(b) .")
    assert len(told) == 2


def test_an_interruption_is_raised_as_it_is_when_all_were_told(kb: KnowledgeBase) -> None:
    told: list[ze.Notice] = []

    def fail(_: ze.Notice) -> None:
        raise KeyboardInterrupt

    kb.subscribe("q", fail)
    kb.subscribe("q", told.append)
    with pytest.raises(KeyboardInterrupt), kb.change() as c:
        c.add_rules("q(a) .")
    assert c.report.version_after == kb.version == len(told) == 1


def test_a_subscriber_may_read(kb: KnowledgeBase) -> None:
    seen: list[object] = []
    kb.subscribe("q", lambda notice: seen.append((notice.version, kb.version, len(kb.query("?- p(X) .")))))
    change(kb, "p(X) :- q(X) .  q(a) .")
    assert seen == [(1, 1, 1)]


def test_a_subscriber_may_change_and_all_hear_of_versions_in_order(kb: KnowledgeBase) -> None:
    order: list[tuple[str, int]] = []

    def react(notice: ze.Notice) -> None:
        order.append(("first", notice.version))
        if notice.version == 1:
            assert change(kb, "q(b) .").version_after == 2

    kb.subscribe("q", react)
    kb.subscribe("q", lambda notice: order.append(("second", notice.version)))
    change(kb, "q(a) .")
    assert order == [("first", 1), ("second", 1), ("first", 2), ("second", 2)]


def test_only_facts_somebody_wants_to_hear_of_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    kb = KnowledgeBase(EmbeddedEngine(), Settings())
    decoded: list[object] = []
    real = Dictionary.decode

    def spy(self: Dictionary, number: int) -> object:
        term = real(self, number)
        decoded.append(term)
        return term

    monkeypatch.setattr(Dictionary, "decode", spy)
    kb.subscribe("small", lambda _: None)
    with kb.change() as c:
        c.add_facts([("large", n, n) for n in range(100)])
        c.add_facts([("small", A, B)])
    assert {A, B} <= set(decoded)
    assert len(decoded) < 10


def test_who_subscribes_after_a_commit_that_waits_is_not_told_of_it(kb: KnowledgeBase) -> None:
    told: list[int] = []

    def react(notice: ze.Notice) -> None:
        if notice.version == 1:
            change(kb, "q(b) .")
            kb.subscribe("q", lambda later: told.append(later.version))

    kb.subscribe("q", react)
    change(kb, "q(a) .")
    assert told == []
    change(kb, "q(c) .")
    assert told == [3]


@pytest.mark.parametrize("asked", ["<http://e/p/2>", "<http://e/p/2>/1", ze.iri("http://e/p/2"), "ex:2"])
def test_a_number_at_the_end_of_an_iri_is_no_arity(kb: KnowledgeBase, asked: str | IRI) -> None:
    told: list[ze.Notice] = []
    kb.add_prefixes([("ex", "http://e/p/")])
    kb.subscribe(asked, told.append)
    change(kb, "<http://e/p>(a, b) .")
    assert told == []
    change(kb, "<http://e/p/2>(a) .")
    assert [notice.inserted for notice in told] == [{fact("http://e/p/2", A)}]


@pytest.mark.parametrize("asked", [5, ("p",), ("p", "1"), b"p", "hot/x", "hot/", "hot(X)", "rdf:hot/x"])
def test_what_names_no_predicate_is_refused(kb: KnowledgeBase, asked: object) -> None:
    with pytest.raises(UsageProblem, match="U013: expected a predicate, found"):
        kb.subscribe(asked, print)  # type: ignore[arg-type]


@pytest.mark.parametrize("asked", ["unknown", "hot/1", "rdf:hot/1", "http://e/hot/x", "<hot/x>", "urn:a/x"])
def test_a_predicate_need_not_exist_yet(kb: KnowledgeBase, asked: str) -> None:
    assert kb.subscribe(asked, print).active


def test_what_cannot_be_called_does_not_subscribe(kb: KnowledgeBase) -> None:
    with pytest.raises(UsageProblem, match="U013: expected a function, found 'p'"):
        kb.subscribe("q", "p")  # type: ignore[arg-type]
    change(kb, "q(a) .")
