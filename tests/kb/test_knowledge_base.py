"""The knowledge base as its users see it: changes, reports, queries, functions, and failures."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import zodiacedge as ze
from zodiacedge.cli.sessions.format import parse_session, shortfalls
from zodiacedge.engine.api import Settings
from zodiacedge.engine.select import ENGINES
from zodiacedge.errors import (
    CheckProblem,
    EvaluationProblem,
    LimitReached,
    LoadProblem,
    StratificationProblem,
    SyntaxProblem,
    UsageProblem,
)
from zodiacedge.kb.change import Change
from zodiacedge.kb.diagnose import diagnose
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.kb.report import per_predicate
from zodiacedge.language.ast import Predicate, fact
from zodiacedge.language.parser import parse_program
from zodiacedge.terms import IRI, integer, string

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zodiacedge.engine.api import Engine

A, B, C = IRI("a"), IRI("b"), IRI("c")


@pytest.fixture
def kb(engine: Engine) -> KnowledgeBase:
    return KnowledgeBase(engine, Settings())


def change(kb: KnowledgeBase, text: str) -> ze.ChangeReport:
    with kb.change() as c:
        c.add_rules(text)
    return c.report


def everything(kb: KnowledgeBase) -> tuple[object, ...]:
    segments = tuple(kb.state.segment(frozenset(node.rules)) for node in kb.graph().order)
    return kb.version, kb.rules, kb.explicit, kb.facts(), kb.graph(), kb.prefixes, segments, id(kb.state)


# Changes


def test_it_starts_empty(kb: KnowledgeBase) -> None:
    assert (kb.version, kb.rules, kb.explicit, kb.facts(), kb.derived()) == (
        0,
        (),
        frozenset(),
        frozenset(),
        {},
    )
    assert len(kb.graph()) == 0


@pytest.mark.parametrize("name", ENGINES)
def test_open_takes_an_engine_by_name(name: str) -> None:
    kb = ze.open(engine=name)
    change(kb, "p(X) :- q(X) .  q(a) .")
    assert kb.facts() == {fact("q", A), fact("p", A)}


def test_an_unknown_engine_gets_a_hint() -> None:
    with pytest.raises(UsageProblem, match=r"U001: there is no engine referense\n.*did you mean reference"):
        ze.open(engine="referense")
    with pytest.raises(UsageProblem, match="choose one of"):
        ze.open(engine="steam")


def test_the_block_commits_at_its_end(kb: KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_rules("p(X) :- q(X) .")
        c.add_facts([("q", A)])
        assert kb.version == 0
        assert kb.facts() == frozenset()
    assert kb.version == 1
    assert kb.facts() == {fact("q", A), fact("p", A)}


def test_an_exception_in_the_block_drops_the_change(kb: KnowledgeBase) -> None:
    change(kb, "q(a) .")
    before = everything(kb)
    c = kb.change()
    c.add_rules("@prefix ex: <http://e/> . p(X) :- q(X) .")
    with pytest.raises(ZeroDivisionError), c:
        _ = 1 / 0
    assert everything(kb) == before
    with pytest.raises(UsageProblem, match="U002"):
        _ = c.report


def test_versions_count_commits(kb: KnowledgeBase) -> None:
    first = change(kb, "q(a) .")
    second = change(kb, "q(b) .")
    assert (first.version_before, first.version_after) == (0, 1)
    assert (second.version_before, second.version_after) == (1, 2)
    assert kb.version == 2


def test_what_a_change_collected_can_be_seen(kb: KnowledgeBase) -> None:
    c = kb.change()
    c.add_rules("r1: p(X) :- q(X) .  q(a) .")
    c.remove_rules("r2")
    c.remove_facts("q(b) .")
    collected = c.collected()
    assert [rule.label for rule in collected.add_rules] == ["r1"]
    assert collected.remove_rules == ("r2",)
    assert collected.add_facts == (fact("q", A),)
    assert collected.remove_facts == (fact("q", B),)
    assert kb.version == 0


def test_the_report(kb: KnowledgeBase) -> None:
    change(kb, "r0: s(X) :- t(X) .  t(a) .  q(a) .")
    with kb.change() as c:
        c.add_rules("r1: p(X) :- q(X) .  q(b) .  q(a) .")
        c.remove_rules("r0")
        c.remove_facts([("t", A), ("t", B)])
    report = c.report
    assert [rule.label for rule in report.rules_added] == ["r1"]
    assert [rule.label for rule in report.rules_removed] == ["r0"]
    assert (report.facts_added, report.facts_removed) == (1, 1)
    assert report.inserted == {fact("q", B), fact("p", A), fact("p", B)}
    assert report.deleted == {fact("t", A), fact("s", A)}
    assert [w.code for w in report.warnings] == ["W012", "W013"]
    assert report.seconds > 0
    assert [(node.rules, node.strategy == "dropped") for node in report.nodes] == [
        (("r0",), True),
        (("r1",), False),
    ]
    assert [node.facts for node in report.nodes] == [0, 2]
    document = report.to_dict()
    assert document["inserted"] == {"p": 2, "q": 1}
    assert document["deleted"] == {"s": 1, "t": 1}
    assert document["rules_added"] == ["r1: p(X) :- q(X) ."]
    assert {"version_before", "version_after", "nodes", "warnings", "seconds"} <= set(document)


def test_rules_go_by_label_and_by_text(kb: KnowledgeBase) -> None:
    change(kb, "r-1: p(X) :- q(X) .  s(X, Y) :- q(X), q(Y) .  q(a) .")
    with kb.change() as c:
        c.remove_rules("r-1")
        c.remove_rules("s(U, V) :- q(V), q(U) .")
    assert kb.rules == ()
    assert c.report.deleted == {fact("p", A), fact("s", A, A)}


def test_a_rule_to_remove_that_is_not_there_is_a_warning(kb: KnowledgeBase) -> None:
    change(kb, "rule1: p(X) :- q(X) .")
    with kb.change() as c:
        c.remove_rules("rule2")
        c.remove_rules("p(X) :- s(X) .")
    assert [w.code for w in c.report.warnings] == ["W011", "W011"]
    assert c.report.warnings[0].note == "did you mean rule1?"
    assert len(kb.rules) == 1


def test_a_rule_that_is_there_already_is_a_warning(kb: KnowledgeBase) -> None:
    change(kb, "r1: p(X) :- q(X), s(X) .")
    report = change(kb, "r2: p(Y) :- s(Y), q(Y) .")
    assert [w.code for w in report.warnings] == ["W002"]
    assert report.rules_added == ()
    assert [rule.label for rule in kb.rules] == ["r1"]


def test_dropped_bindings_are_reported_by_rule(kb: KnowledgeBase) -> None:
    report = change(kb, "r1: p(Z) :- q(X, Y), Z := X / Y .  q(1, 0) .  q(4, 2) .")
    assert {rule: dropped.count for rule, dropped in report.dropped.items()} == {"r1": 1}
    assert "zero" in report.dropped["r1"].example


def test_a_wrong_expectation_is_told(kb: KnowledgeBase) -> None:
    (step,) = parse_session(
        "begin\n+ q(a) .\n+ p(X) :- q(X) .\ncommit\n+ q(a) .\n+ p(b) .\n- s(a) .\ncount p 2\n"
    )
    report = kb.apply(step.change)
    assert shortfalls(step.expected, report, kb.facts()) == [
        "missing: + p(b)",
        "not expected: + p(a)",
        "missing: - s(a)",
        "p has 1 facts, expected 2",
    ]
    (refused,) = parse_session("begin\nrefuse C001\n")
    assert shortfalls(refused.expected, kb.apply(refused.change), ()) == [
        "committed, expected to be refused with C001"
    ]


# Facts


def test_facts_as_text(kb: KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_facts('@prefix ex: <http://e/> .\nex:p(ex:a, "text", 5) .')
    assert kb.explicit == {fact("http://e/p", IRI("http://e/a"), string("text"), integer(5))}


def test_a_rule_among_facts_is_refused(kb: KnowledgeBase) -> None:
    with pytest.raises(UsageProblem, match=r"U003.*\n.*use add_rules"), kb.change() as c:
        c.add_facts("p(X) :- q(X) .")
    assert kb.version == 0


def test_a_text_of_facts_that_was_refused_leaves_nothing_in_the_change(kb: KnowledgeBase) -> None:
    refused = kb.change()
    for text in ("@prefix ex: <http://e/> .  q(a) .  p(X) :- q(X) .", "q(a) .  q(X) ."):
        with pytest.raises(ze.ZodiacError):
            refused.add_facts(text)
        with pytest.raises(ze.ZodiacError):
            refused.remove_facts(text)
    assert refused.collected() == Change()
    with pytest.raises(SyntaxProblem, match="ex:"):
        refused.add_facts("ex:q(a) .")


def test_facts_as_rows(kb: KnowledgeBase) -> None:
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    with kb.change() as c:
        c.add_facts([("p", ze.iri("a"), 5), ("p", "text", 2.5), ("done",)])
        c.add_facts([(True, noon)], "q")
    rows = list(kb.query("?- p(X, Y) ."))
    assert rows == [("text", 2.5), (A, 5)]
    assert list(kb.query("?- q(X, Y) .")) == [(True, noon)]
    assert kb.query("?- done() .")


def test_facts_as_an_arrow_table(kb: KnowledgeBase) -> None:
    table = pa.table({"who": ["<a>", "plain"], "n": [1, 2]})
    with kb.change() as c:
        c.add_facts(table, "p")
    assert kb.explicit == {fact("p", A, integer(1)), fact("p", string("plain"), integer(2))}
    with kb.change() as c:
        c.remove_facts(table.slice(0, 1), "p")
    assert kb.explicit == {fact("p", string("plain"), integer(2))}


def test_a_row_that_is_no_fact_is_refused(kb: KnowledgeBase) -> None:
    with pytest.raises(LoadProblem, match="I013"), kb.change() as c:
        c.add_facts([("p", object())])
    assert kb.version == 0


def test_facts_from_files(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "near.csv").write_text("<a>,<b>\n<b>,<c>\n")
    (tmp_path / "more.nt").write_text("<c> <near> <a> .\nnonsense\n")
    with kb.change() as c:
        report = c.load(tmp_path / "near.csv", tmp_path / "more.nt")
    assert (report.facts, report.bad) == (3, 1)
    assert c.loads == [report]
    assert kb.explicit == {fact("near", A, B), fact("near", B, C), fact("near", C, A)}


def test_a_strict_load_with_bad_lines_changes_nothing(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "more.nt").write_text("<c> <near> <a> .\nnonsense\n")
    before = everything(kb)
    with pytest.raises(LoadProblem, match="I012"), kb.change() as c:
        c.load(tmp_path / "more.nt", strict=True)
    assert everything(kb) == before


# Queries


@pytest.fixture
def family(kb: KnowledgeBase) -> KnowledgeBase:
    change(
        kb,
        """parent(ann, bob) .  parent(bob, cid) .  parent(ann, dot) .  age(ann, 60) .  age(bob, 35) .
        r1: elder(X, Z) :- parent(X, Z) .
        r2: elder(X, Z) :- parent(X, Y), elder(Y, Z) .""",
    )
    return kb


@pytest.mark.parametrize(
    ("query", "columns", "rows"),
    [
        ("?- elder(ann, X) .", ("X",), [("bob",), ("cid",), ("dot",)]),
        ("?- parent(Y, X), age(Y, N)", ("Y", "X", "N"), None),
        ("ans(X, Y) :- parent(Y, X) .", ("X", "Y"), [("bob", "ann"), ("cid", "bob"), ("dot", "ann")]),
        ("?- parent(X, _) .", ("X",), [("ann",), ("bob",)]),
        ("?- parent(ann, X), not parent(X, Y) .", ("X",), [("dot",)]),
        ("ans(X, 1) :- parent(X, cid) .", ("X", "1"), [("bob", 1)]),
        ("?- AGGREGATE(parent(X, Y)) ON X WITH COUNT(Y) AS N .", ("X", "N"), [("ann", 2), ("bob", 1)]),
    ],
)
def test_queries(
    family: KnowledgeBase, query: str, columns: tuple[str, ...], rows: list[tuple[object, ...]] | None
) -> None:
    answers = family.query(query)
    assert answers.columns == columns
    if rows is not None:
        shown = [tuple(t.value if isinstance(t, IRI) else t for t in row) for row in answers]
        assert shown == rows
    assert answers.warnings == ()
    assert len(answers) == len(answers.rows)


def test_a_ground_query_is_yes_or_no(family: KnowledgeBase) -> None:
    yes, no = family.query("?- elder(ann, cid) ."), family.query("?- elder(cid, ann) .")
    assert (bool(yes), yes.columns, yes.rows) == (True, (), ((),))
    assert (bool(no), no.columns, no.rows) == (False, (), ())


def test_a_query_says_what_it_dropped(family: KnowledgeBase) -> None:
    answers = family.query("?- age(X, N), M := 10 / (N - 60) .")
    assert answers.dropped
    assert answers.dropped.count == 1
    assert len(answers) == 1


def test_a_bad_query_is_refused(family: KnowledgeBase) -> None:
    with pytest.raises(SyntaxProblem, match="L001"):
        family.query("?- parent(X")
    with pytest.raises(CheckProblem, match="C001"):
        family.query("?- parent(X, Y), Z > 3 .")
    with pytest.raises(CheckProblem, match="C009"):
        family.query("?- parent(X, Y), Z := func:nowhere(X) .")


def test_an_unknown_predicate_gets_no_rows_and_a_hint(family: KnowledgeBase) -> None:
    answers = family.query("?- elderr(X, Y) .")
    assert answers.rows == ()
    (warning,) = answers.warnings
    assert (warning.code, warning.note) == ("W004", "did you mean elder?")
    (warning,) = family.query("?- parent(X, Y, Z) .").warnings
    assert (warning.code, warning.note) == ("W004", "it is known with 2 arguments")
    assert [w.code for w in family.query("?- not elderr(ann, bob) .").warnings] == ["W004"]


def test_a_name_that_is_a_string_in_the_data_gets_a_hint(kb: KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_facts([("reading", "wt1", 93)])
    (warning,) = kb.query("?- reading(wt1, X) .").warnings
    assert warning.code == "W005"
    assert '"wt1"' in warning.note
    report = change(kb, "alarm(X) :- reading(wt1, X) .")
    assert [w.code for w in report.warnings] == ["W005"]
    assert kb.query('?- reading("wt1", X) .').warnings == ()


@pytest.mark.parametrize(
    "body",
    [
        "not reading(wt1, X), top(X)",
        "reading(T, X), T = wt1",
        "reading(T, X), T != wt1",
        "reading(T, X), concat(T, str(wt1)) = T",
        "top(X), Y := wt1",
        "top(X), Y = wt1",
        "AGGREGATE(reading(T, X), T != wt1) WITH COUNT(X) AS Y",
        "AGGREGATE(top(X), not reading(wt1, X)) WITH COUNT(X) AS Y",
    ],
)
def test_the_hint_comes_wherever_the_name_stands(kb: KnowledgeBase, body: str) -> None:
    with kb.change() as c:
        c.add_facts([("reading", "wt1", 93), ("top", 95)])
    found = kb.query(f"?- {body} .").warnings
    assert [w.code for w in found] == ["W005"]
    assert found[0].span is not None
    assert "wt1" in found[0].span.text
    assert [w.code for w in change(kb, f"alarm() :- {body} .  # lint: ignore W020").warnings] == ["W005"]


def test_the_hint_is_not_for_classes_and_strings(kb: KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_facts([("reading", "wt1", 93), ("top", 95)])
    assert [w.code for w in kb.query('?- wt1(X), reading(T, N), T != "wt1" .').warnings] == ["W004"]


@pytest.mark.parametrize(
    ("rule", "codes"),
    [
        ("likes(person, X) :- friend(person, Y), likes(Y, X) .", ["W024"]),
        ("likes(bob, X) :- friend(bob, Y), likes(Y, X) .", []),
        ("likes(<person>, X) :- friend(<person>, Y), likes(Y, X) .", []),
        ("likes(wt9, X) :- friend(wt9, Y), likes(Y, X) .", []),
        ("likes(X, tea) :- friend(X, _) .", []),
        ("likes(X, tea) :- friend(X, _), not hates(X, tea) .", []),
        ("likes(person, X) :- other(person, X) .", []),
        ("known(person, X) :- friend(X, _), likes(person, X) .  likes(person, X) :- friend(X, _) .", []),
        ("likes(carol, X) :- friend(carol, X) .", ["W005"]),
        ("likes(age, X) :- friend(X, age), age > 3 .", ["W024"]),
    ],
)
def test_a_name_that_no_fact_has_looks_like_a_variable(
    kb: KnowledgeBase, rule: str, codes: list[str]
) -> None:
    change(kb, 'friend(bob, alice) .  friend("carol", bob) .')
    report = change(kb, rule)
    assert [w.code for w in report.warnings] == codes


def test_a_name_looks_like_a_variable_when_a_program_is_checked() -> None:
    rule = "likes(person, X) :- friend(person, Y), likes(Y, X) ."
    for facts, codes in [
        ("", []),
        ("friend(bob, alice) .", ["W024"]),
        ("friend(bob, alice) . hates(person, tea) .", []),
    ]:
        program = parse_program(rule + facts)
        assert [d.code for d in diagnose(program, ()).findings] == codes


def test_prefixes_last(kb: KnowledgeBase) -> None:
    change(kb, "@prefix ex: <http://e/> .  ex:q(ex:a) .")
    change(kb, "ex:p(X) :- ex:q(X) .")
    assert kb.query("?- ex:p(ex:a) .")
    assert kb.prefixes["ex"] == "http://e/"
    kb.add_prefixes([("f", "http://e/")])
    assert kb.query("?- f:p(f:a) .")


def test_prefixes_of_a_refused_change_do_not_last(kb: KnowledgeBase) -> None:
    with pytest.raises(CheckProblem):
        change(kb, "@prefix ex: <http://e/> .  ex:p(X, Y) :- ex:q(X) .")
    assert kb.prefixes == {}


# Functions and aggregates of the host


def test_a_registered_function(kb: KnowledgeBase) -> None:
    @kb.function
    def double(value: int) -> int:
        return 2 * value

    kb.function(lambda a, b: f"{a}-{b}", name="join")
    change(kb, 'p(X, Y, Z) :- q(X), Y := func:double(X), Z := func:join("n", X) .  q(21) .')
    assert list(kb.query("?- p(X, Y, Z) .")) == [(21, 42, "n-21")]
    assert double(2) == 4


def test_a_registered_aggregate(kb: KnowledgeBase) -> None:
    @kb.aggregate
    def spread(values: list[int]) -> int:
        return max(values) - min(values)

    change(kb, "p(X, D) :- AGGREGATE(q(X, V)) ON X WITH spread(V) AS D .  q(a, 3) .  q(a, 10) .")
    assert list(kb.query("?- p(a, D) .")) == [(7,)]
    assert spread([1, 2]) == 1


def test_a_function_nobody_registered_is_refused(kb: KnowledgeBase) -> None:
    with pytest.raises(CheckProblem, match="C009"):
        change(kb, "p(Y) :- q(X), Y := func:double(X) .")


def test_a_failing_function_drops_its_binding(kb: KnowledgeBase) -> None:
    def picky(value: int) -> int:
        if value == 1:
            raise ValueError("not one")
        return value

    kb.function(picky)
    report = change(kb, "r1: p(Y) :- q(X), Y := func:picky(X) .  q(1) .  q(2) .")
    assert list(kb.query("?- p(X) .")) == [(2,)]
    assert "not one" in report.dropped["r1"].example


# Failures: everything as it was


def _limit(kb: KnowledgeBase) -> None:
    kb._settings = Settings(limits=ze.Limits(facts=100))
    change(kb, "n(Y) :- n(X), Y := X + 1 .  n(0) .")


def _strict(kb: KnowledgeBase) -> None:
    kb._settings = Settings(strict=True)
    change(kb, "r2: t(Z) :- q(X), u(X, Y), Z := Y / 0 .  u(a, 1) .")


def _interrupted(kb: KnowledgeBase) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    kb.function(interrupt, name="wait")
    change(kb, "@prefix ex: <http://e/> .  r2: t(Y) :- q(X), Y := func:wait(X) .  q(b) .")


def _no_memory(kb: KnowledgeBase) -> None:
    def full(_: object) -> None:
        raise MemoryError

    kb._settings = Settings(progress=full)
    change(kb, "r2: t(X) :- q(X) .  q(b) .")


def _while_reporting(kb: KnowledgeBase) -> None:
    # The last thing a change does is to look for hints.
    def interrupt(*_: object) -> object:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zodiacedge.kb.apply.mistaken_constants", interrupt)
        change(kb, "r2: t(X) :- q(X) .  q(b) .")


def _forbidden(kb: KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_facts("q(b) .")
        c.add_rules("n(X, N) :- AGGREGATE(q(X)) ON X WITH COUNT(X) AS N .  n(b, 1) .")


FAILURES: list[tuple[Callable[[KnowledgeBase], object], type[BaseException], str]] = [
    (lambda kb: change(kb, "q(b) .  t(X :- q(X) ."), SyntaxProblem, "L001"),
    (lambda kb: change(kb, "q(b) .  t(X, Y) :- q(X) ."), CheckProblem, "C001"),
    (lambda kb: change(kb, "q(b) .  r1: t(X) :- q(X) ."), CheckProblem, "C010"),
    (lambda kb: change(kb, "q(b) .  t(X, Y, Z) :- p(X, Y, Z) ."), CheckProblem, "C011"),
    (lambda kb: change(kb, "q(b) .  q(X) :- p(X), not p(X) ."), StratificationProblem, "G001"),
    (_forbidden, CheckProblem, "C013"),
    (_limit, LimitReached, "E001"),
    (_strict, EvaluationProblem, "E002"),
    (_interrupted, KeyboardInterrupt, "^$"),
    (_no_memory, MemoryError, "^$"),
    (_while_reporting, KeyboardInterrupt, "^$"),
]


@pytest.mark.parametrize(("fail", "kind", "code"), FAILURES)
def test_a_failing_change_leaves_everything_as_it_was(
    kb: KnowledgeBase, fail: Callable[[KnowledgeBase], object], kind: type[BaseException], code: str
) -> None:
    change(kb, "r1: p(X) :- q(X) .  q(a) .")
    before = everything(kb)
    with pytest.raises(kind, match=code):
        fail(kb)
    assert everything(kb) == before
    kb._settings = Settings()
    report = change(kb, "q(c) .")
    assert report.inserted == {fact("q", C), fact("p", C)}
    assert kb.version == 2


# Counts


def test_counts_are_by_bare_name_unless_two_arities_exist(kb: KnowledgeBase) -> None:
    change(kb, "p(X, Y) :- q(X, Y) .  q(a, b) .")
    assert kb.derived() == {"p": 1}
    change(kb, "p(X) :- p(X, Y) .")
    assert kb.derived() == {"p/1": 1, "p/2": 1}


def test_a_name_that_only_facts_have_at_another_arity_counts_too(kb: KnowledgeBase) -> None:
    change(kb, "p(X, Y) :- q(X, Y) .  q(a, b) .  p(c) .")
    assert kb.derived() == {"p/2": 1}


def test_predicates_with_rules_and_no_facts_are_named(kb: KnowledgeBase) -> None:
    change(kb, "p(X) :- q(X) .  s() :- q(X) .")
    assert kb.derived() == {"p": 0, "s": 0}


def test_derived_facts_count_even_where_they_are_explicit(kb: KnowledgeBase) -> None:
    change(kb, "p(X) :- q(X) .  q(a) .  p(a) .  p(b) .")
    assert kb.derived() == {"p": 1}


def test_a_variable_class_is_no_predicate_of_its_own(kb: KnowledgeBase) -> None:
    change(
        kb,
        """@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
        rdf:type(X, D) :- rdf:type(X, C), sub(C, D) .  sub(cat, animal) .  cat(tom) .""",
    )
    assert kb.derived() == {"animal": 1}


def test_per_predicate_counts() -> None:
    counts = {Predicate("p", 1): 2, Predicate("q", 2): 1}
    assert per_predicate(counts) == {"p": 2, "q": 1}
    assert per_predicate(counts, [Predicate("p", 2)]) == {"p/1": 2, "q": 1}
    assert per_predicate(counts, [Predicate("p", 2)], show="<{}>".format) == {"<p>/1": 2, "<q>": 1}


def test_apply_takes_a_change_as_data(kb: KnowledgeBase) -> None:
    report = kb.apply(Change(add_facts=(fact("q", A), fact("q", A))))
    assert report.facts_added == 1
    assert report.inserted == {fact("q", A)}
    with pytest.raises(ze.ZodiacError, match=r"U013: expected a change, found 'q\(b\) \.'"):
        kb.apply("q(b) .")  # type: ignore[arg-type]


def test_answers_as_arrow_polars_and_pandas(kb: KnowledgeBase) -> None:
    change(kb, "reading(wt1, 93) . reading(wt2, 55) .")
    answers = kb.query("?- reading(T, C) .")
    expected = {"T": ["<wt1>", "<wt2>"], "C": [93, 55]}
    assert answers.to_arrow().to_pydict() == expected
    assert answers.to_polars().to_dict(as_series=False) == expected
    assert answers.to_pandas().to_dict("list") == expected


def test_a_library_that_is_missing_is_said(kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ze.ZodiacError, match=r"U007: polars is not installed"):
        kb.query("?- p(X) .").to_polars()


def test_two_arities_in_one_text_show_both_places(kb: KnowledgeBase) -> None:
    with pytest.raises(ze.ZodiacError) as caught:
        change(kb, "p(a) .\np(a, b, c) .")
    (found,) = caught.value.diagnostics
    assert (found.code, repr(found.span)) == ("C011", "<text>:2:1")
    assert [repr(span) for _, span in found.related] == ["<text>:1:1"]


def test_a_committed_change_takes_nothing_more(kb: KnowledgeBase) -> None:
    with kb.change() as done:
        done.add_facts("q(a) .")
    said = r"U002: the change is committed already"
    with pytest.raises(ze.ZodiacError, match=said):
        done.add_facts("p(a) .")
    with pytest.raises(ze.ZodiacError, match=said):
        done.add_facts([("p", A)])
    with pytest.raises(ze.ZodiacError, match=said):
        done.remove_rules("r1")
    with pytest.raises(ze.ZodiacError, match=said), done:
        pass
    assert kb.version == 1


def test_facts_that_were_loaded_for_another_knowledge_base_are_refused(tmp_path: Path) -> None:
    (tmp_path / "near.csv").write_text("<b>,<c>\n")
    kb, other = ze.open(), ze.open()
    change(other, "near(d, e) .")
    with kb.change() as c:
        c.load(tmp_path / "near.csv")
    with pytest.raises(ze.ZodiacError, match=r"U024: facts were loaded for another knowledge base"):
        other.apply(c.collected())
    assert other.facts() == {fact("near", IRI("d"), IRI("e"))}


def test_a_dropped_binding_names_an_unlabelled_rule_by_its_text(kb: KnowledgeBase) -> None:
    report = change(kb, "bad(Y) :- r(X, Z), Y := 1 / Z . r(a, 0) .")
    assert list(report.dropped) == ["bad(Y) :- r(X, Z), Y := 1 / Z ."]


@pytest.mark.parametrize(("asked", "meant"), [("rr", "r"), ("fooo", "foo")])
def test_a_query_on_an_unknown_predicate_names_the_nearest(kb: KnowledgeBase, asked: str, meant: str) -> None:
    change(kb, "r(a, b) . foo(a, b) . Foo(a, b) .")
    (warning,) = kb.query(f"?- {asked}(X, Y) .").warnings
    assert (warning.code, warning.note) == ("W004", f"did you mean {meant}?")


def test_all_errors_of_a_text_are_raised_together(kb: KnowledgeBase) -> None:
    text = (
        "p(X, Y) :- q(X) .\nr(X :- s(X) .\n"
        "w(X) :- m(X, Y), not w(Y) .\nr1: ok(X) :- q(X), q(X, Y) .\nr1: ok(X) :- m(X) ."
    )
    with pytest.raises(SyntaxProblem) as problem:
        change(kb, text)
    assert [d.code for d in problem.value.diagnostics] == ["C001", "L001", "G001", "C010"]
    assert kb.version == 0


@pytest.mark.parametrize("call", ["add_rules", "remove_rules", "sync_rules", "add_facts", "remove_facts"])
@pytest.mark.parametrize("text", ["farm.rules", "rules/my farm.rules", "../data.csv", "C:\\\\farm.nt"])
def test_the_name_of_a_file_is_no_program(kb: KnowledgeBase, call: str, text: str) -> None:
    cure = "call load" if call.endswith("facts") else "give it as Path"
    with pytest.raises(UsageProblem, match="U013: expected a program text, found a file name") as problem:
        getattr(kb.change(), call)(text)
    assert problem.value.diagnostics[0].note == f"to read the file, {cure}({text!r})"


@pytest.mark.parametrize("text", ["", "# see farm.rules", "// see farm.rules", "p(a.b) .", "p(a).%q"])
def test_a_program_text_is_no_name_of_a_file(kb: KnowledgeBase, text: str) -> None:
    try:
        kb.change().add_rules(text)
    except SyntaxProblem:
        assert "(" in text


def test_a_knowledge_base_shows_its_size(kb: KnowledgeBase) -> None:
    name = kb.engine
    assert repr(kb) == f"<KnowledgeBase, engine {name}, version 0: 0 rules, 0 explicit facts>"
    change(kb, "p(X) :- q(X) . q(a) . q(b) . q(c) .")
    with kb.change() as c:
        c.remove_facts("q(a) . q(x) .")
    assert repr(kb) == f"<KnowledgeBase, engine {name}, version 2: 1 rule, 2 explicit facts>"
