"""Answers as rows, columns and texts; limits; queries that declare prefixes or are a body alone."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from zodiacedge.engine.api import Engine, Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.limits import Limits
from zodiacedge.errors import ZodiacError
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from zodiacedge.kb.answers import Answers

PROGRAM = """
@prefix ex: <http://example.org/> .
hot: ex:hot(T) :- ex:reading(T, C), C > 80 .
ex:reading(ex:wt1, 93) .
ex:reading(ex:wt2, 88.5) .
ex:reading(ex:wt3, 20) .
ex:note(ex:wt1, "see <http://example.org/wt2> & co") .
"""
WT1, WT2, WT3 = (IRI(f"http://example.org/wt{n}") for n in (1, 2, 3))


@pytest.fixture
def kb(engine: Engine) -> KnowledgeBase:
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as change:
        change.add_rules(PROGRAM)
    return kb


@pytest.fixture
def readings(kb: KnowledgeBase) -> Answers:
    return kb.query("?- ex:reading(T, C) .")


def test_answers_have_rows_by_number_and_columns_by_name(readings: Answers) -> None:
    assert len(readings) == 3
    assert readings[0] == (WT1, 93)
    assert readings[-1] == (WT3, 20)
    assert readings[:2] == [(WT1, 93), (WT2, 88.5)]
    assert readings["C"] == [93, 88.5, 20]
    assert readings["T"] == [WT1, WT2, WT3]


def test_a_column_that_is_not_there_is_an_error_that_names_the_columns(readings: Answers) -> None:
    with pytest.raises(ZodiacError, match="no column X") as problem:
        readings["X"]
    assert "T, C" in problem.value.diagnostics[0].note


def test_answers_print_as_a_table_with_prefixes(readings: Answers) -> None:
    assert str(readings).splitlines() == ["T       C", "ex:wt1  93", "ex:wt2  88.5", "ex:wt3  20"]
    assert repr(readings) == "<Answers 3 × (T, C)>"


def test_answers_without_rows_print_their_warnings(kb: KnowledgeBase) -> None:
    assert str(kb.query("ex:reading(T, C), C > 99")) == "T  C\n0 rows"
    assert str(kb.query("reading(T, C)")).splitlines() == [
        "T  C",
        "0 rows",
        "<query>:1:1: warning W026: no fact or rule has reading/2; did you mean ex:reading?",
        "    1 | reading(T, C)",
        "        ^^^^^^^^^^^^^",
        "  = names are compared whole: write the IRI in angle brackets, or with a declared prefix",
    ]
    assert str(kb.query("nope(a)")).startswith("no\n<query>:1:1: warning W004: unknown predicate nope")
    assert "<pre>&lt;query&gt;:1:1: warning W004: " in kb.query("nope(a)")._repr_html_()
    assert "<pre>&lt;query&gt;:1:1: warning W004: " in kb.query("nope(X)")._repr_html_()


def test_answers_print_what_evaluation_errors_dropped(kb: KnowledgeBase) -> None:
    shown = str(kb.query("ex:reading(ex:wt1, C), Z = C / 0"))
    assert shown == "C  Z\n0 rows\ndropped 1 binding: division by zero (C = 93)"


def test_a_notebook_shows_a_table_with_escaped_cells(kb: KnowledgeBase) -> None:
    shown = kb.query("?- ex:note(T, N) .")._repr_html_()
    assert "<td>ex:wt1</td>" in shown
    assert "see &lt;http://example.org/wt2&gt; &amp; co" in shown


def test_long_answers_are_shown_in_part(engine: Engine) -> None:
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as change:
        change.add_facts([("n", number, number) for number in range(60)])
    answers = kb.query("?- n(X, X) .")
    assert str(answers).endswith("\n49\n… and 10 more")
    assert "the first 50 of 60 rows" in answers._repr_html_()


def test_a_query_may_be_a_body_alone(kb: KnowledgeBase) -> None:
    whole = kb.query("?- ex:reading(T, C), C > 80 .")
    assert kb.query("ex:reading(T, C), C > 80").rows == whole.rows
    assert kb.query("ex:reading(T, C), C > 80 .").columns == ("T", "C")
    assert kb.query("ex:reading(ex:wt1, 93)")
    assert not kb.query("not ex:hot(ex:wt1)")


def test_a_query_may_declare_prefixes_of_its_own(kb: KnowledgeBase) -> None:
    answers = kb.query(
        "@prefix e: <http://example.org/> . PREFIX f: <http://example.org/> e:hot(T), f:hot(T)"
    )
    assert answers["T"] == [WT1, WT2]
    assert "e" not in kb.prefixes
    with pytest.raises(ZodiacError, match="full stop"):
        kb.query("@prefix e: <http://example.org/> ?- e:hot(T) .")


def test_a_limit_returns_distinct_rows_of_the_answer(engine: Engine) -> None:
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as change:
        change.add_facts([("edge", n % 7, n) for n in range(700)])
    everything = set(kb.query("?- edge(X, Y), edge(X, Z) , Z < 20 .", limit=None))
    for limit in (1, 2, 100, 1_500, 5_000):
        rows = list(kb.query("?- edge(X, Y), edge(X, Z), Z < 20 .", limit=limit))
        assert len(rows) == len(set(rows)) == min(limit, len(everything))
        assert set(rows) <= everything
        assert rows == sorted(rows)
    assert len(kb.query("?- edge(X, Y), edge(X, Z), Z < 20 .")) == len(everything)


def test_a_limited_query_does_not_derive_all_rows() -> None:
    kb = KnowledgeBase(EmbeddedEngine(), Settings(limits=Limits(facts=200_000)))
    with kb.change() as change:
        change.add_facts([("n", x, y) for x, y in itertools.product(range(100), range(10))])
    product = "?- n(A, B), n(C, D) ."
    with pytest.raises(ZodiacError, match="200,000 derived facts"):
        kb.query(product)
    assert len(kb.query(product, limit=10)) == 10


@pytest.mark.parametrize("limit", [0, -1, True, "5", 2.5])
def test_a_limit_is_a_positive_number(kb: KnowledgeBase, limit: int) -> None:
    with pytest.raises(ZodiacError, match="expected a number of rows"):
        kb.query("?- ex:hot(T) .", limit=limit)


def test_terms_facts_and_rules_print_as_their_syntax(kb: KnowledgeBase) -> None:
    (rule,) = kb.rules
    assert str(rule) == "hot: <http://example.org/hot>(T) :- <http://example.org/reading>(T, C), C > 80 ."
    assert repr(rule) == f"<Rule {rule}>"
    (row,) = kb.query("?- ex:reading(ex:wt2, C) .").rows
    assert (str(row[0]), repr(row[0])) == ("88.5", "Literal('88.5', 'xsd:decimal')")
    assert (str(WT1), repr(WT1)) == ("<http://example.org/wt1>", "IRI('http://example.org/wt1')")
    assert str(IRI("wt1")) == "wt1"
    hot = min(kb.matching("ex:hot(T)"), key=str)
    assert str(hot) == "<http://example.org/hot>(<http://example.org/wt1>)"
    assert repr(hot) == f"<Fact {hot}>"


def test_reports_and_graphs_have_a_form_for_notebooks(kb: KnowledgeBase) -> None:
    report = kb.dry_run(add_rules="ex:cold(T) :- ex:reading(T, C), C < 50 .")
    assert "visible facts: +1 (ex:cold +1)" in str(report)
    assert "<td>ex:cold</td><td>1</td><td>0</td>" in report._repr_html_()
    assert kb.graph()._repr_svg_().startswith("<svg")


def test_errors_have_the_prefixes_of_the_knowledge_base(kb: KnowledgeBase) -> None:
    with pytest.raises(ZodiacError) as refused, kb.change() as change:
        change.add_rules("ex:reading(T, N) :- AGGREGATE(ex:hot(T), ex:note(T, M)) ON T WITH COUNT(M) AS N .")
    assert all("ex:reading" in finding.message for finding in refused.value.diagnostics)
    assert "http://example.org" not in str(refused.value)
