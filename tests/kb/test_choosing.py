"""ARGMAX, ARGMIN and LATEST: the value at the greatest or least moment or number, on every engine alike."""

from __future__ import annotations

from fractions import Fraction

import pytest

import zodiacedge as ze
from strategies import Seeded
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.parser import parse_fact, parse_rule
from zodiacedge.language.safety import resolve

ENGINES = pytest.mark.parametrize("engine", ["reference", "embedded"])
RULES = """
@time reading 3 .
last: last(S, L) :- AGGREGATE(reading(S, V, _)) ON S WITH LATEST(V) AS L .
first: first(S, F) :- AGGREGATE(reading(S, V, T)) ON S WITH ARGMIN(V, T) AS F .
peak: peak(S, T, H) :- AGGREGATE(reading(S, V, M)) ON S WITH ARGMAX(M, V) AS T, MAX(V) AS H .
recent: recent(S, L) :- AGGREGATE(reading(S, V, _) within 10 min) ON S WITH LATEST(V) AS L .
reading(s1, 5, "2026-01-01T12:00:00Z"^^xsd:dateTime) .
reading(s1, 9, "2026-01-01T12:05:00Z"^^xsd:dateTime) .
reading(s1, 7, "2026-01-01T12:08:00Z"^^xsd:dateTime) .
reading(s1, 99, "no moment") .
"""


def rows(kb: ze.KnowledgeBase, predicate: str) -> set[tuple[str, ...]]:
    return {tuple(map(str, fact.args[1:])) for fact in kb.facts() if fact.predicate.name == predicate}


@ENGINES
def test_the_value_at_the_greatest_and_the_least_moment(engine: str) -> None:
    kb = ze.open(engine=engine)
    with kb.change() as c:
        c.add_rules(RULES)
        c.tick("2026-01-01T12:06:00Z")
    assert rows(kb, "last") == {("7",)}
    assert rows(kb, "first") == {("5",)}
    assert rows(kb, "peak") == {('"no moment"', "99")}
    assert rows(kb, "recent") == {("9",)}
    assert c.report.dropped["last"].count == 1
    kb.tick("2026-01-01T12:09:00Z")
    assert rows(kb, "recent") == {("7",)}
    assert kb.verify("reference").ok
    assert str(kb.rules[0]).endswith("ON S WITH LATEST(V) AS L .")
    with kb.change() as c:
        c.remove_rules("last(X, Y) :- AGGREGATE(reading(X, W, _)) ON X WITH LATEST(W) AS Y .")
    assert rows(kb, "last") == set()


@ENGINES
def test_of_several_values_at_one_moment_the_order_of_terms_decides(engine: str) -> None:
    kb = ze.open(engine=engine)
    with kb.change() as c:
        c.add_rules("""
            top(L) :- AGGREGATE(p(X, N)) WITH ARGMAX(X, N) AS L .
            low(L) :- AGGREGATE(p(X, N)) WITH ARGMIN(X, N) AS L .
            p(b, 3) . p(a, 3) . p(7, 3) . p(c, 1) . p("d", 1) . p(z, 2) .
        """)
    assert {str(f.args[0]) for f in kb.facts() if f.predicate.name == "top"} == {"b"}
    assert {str(f.args[0]) for f in kb.facts() if f.predicate.name == "low"} == {'"d"'}
    with kb.change() as c:
        c.remove_facts([parse_fact("p(b, 3)"), parse_fact("p(a, 3)"), parse_fact("p(7, 3)")])
    assert {str(f.args[0]) for f in kb.facts() if f.predicate.name == "top"} == {"z"}


@pytest.mark.parametrize("seed", range(10))
def test_engines_choose_alike(seed: int) -> None:
    dice = Seeded(seed)
    expected = KnowledgeBase(ReferenceEngine(), Settings())
    found = KnowledgeBase(EmbeddedEngine(), Settings())
    program = "".join(
        f"r{n}: q{n}(G, A) :- AGGREGATE(p(G, X, Y)) ON G WITH {op} AS A ."
        for n, op in enumerate(
            ("ARGMAX(X, Y)", "ARGMIN(X, Y)", "ARGMAX(Y, X)", "ARGMIN(G, Y)", "ARGMAX(X, X)")
        )
    )
    values: tuple[str, ...] = (
        "1",
        "2",
        "2.0",
        "2e0",
        "-1",
        '"text"',
        "a",
        "true",
        "5.5",
        "3e0",
        "4e0",
        '"2026-01-01"^^xsd:date',
    )
    values += tuple(f'"2026-01-0{day}T00:00:00Z"^^xsd:dateTime' for day in (1, 2, 3))
    for kb in (expected, found):
        with kb.change() as c:
            c.add_rules(program)
    for _ in range(8):
        kind = values if dice.chance(50) else values[-3:]
        facts = tuple(
            parse_fact(f"p({dice.pick('gh')}, {dice.pick(values)}, {dice.pick(kind)})")
            for _ in range(dice.number(1, 5))
        )
        gone = tuple(
            dice.pick(sorted(expected.explicit, key=str)) for _ in range(2 if expected.explicit else 0)
        )
        change = Change(add_facts=facts, remove_facts=gone)
        told, report = expected.apply(change), found.apply(change)
        assert found.facts() == expected.facts()
        assert (report.inserted, report.deleted) == (told.inserted, told.deleted)
        assert {k: d.count for k, d in report.dropped.items()} == {
            k: d.count for k, d in told.dropped.items()
        }


def test_a_value_is_explained_by_the_binding_that_has_it() -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules("top(L) :- AGGREGATE(p(X, N)) WITH ARGMAX(X, N) AS L .")
        c.add_facts([("p", ze.iri(f"x{n}"), n) for n in range(50)])
    shown = str(kb.explain("top(x49)"))
    assert "ARGMAX(X, N) AS L" in shown
    assert "p(x49, 49)" in shown


@pytest.mark.parametrize(
    "op", ["ARGMAX(X)", "ARGMIN(DISTINCT X, Y)", "MAX(X, Y)", "LATEST(X, Y)", "LATEST(DISTINCT X)"]
)
def test_other_arguments_are_refused(op: str) -> None:
    with pytest.raises(ze.ZodiacError, match="L008"):
        parse_rule(f"q(A) :- AGGREGATE(p(X, Y)) WITH {op} AS A .")


@pytest.mark.parametrize(
    "body",
    ["p(X, Y)", "reading(S, X, T), reading(R, X, U)", 'reading(S, X, "2026-01-01T00:00:00Z"^^xsd:dateTime)'],
)
def test_latest_needs_one_atom_with_a_time(body: str) -> None:
    kb = ze.open()
    with pytest.raises(ze.ZodiacError, match="C022"), kb.change() as c:
        c.add_rules(f"@time reading 3 . q(A) :- AGGREGATE({body}) WITH LATEST(X) AS A .")


def test_the_second_argument_is_part_of_a_rule() -> None:
    texts = ("ARGMAX(X, Y)", "ARGMAX(X, Z)", "ARGMIN(X, Y)")
    keys = {rule_key(resolve(parse_rule(f"q(A) :- AGGREGATE(p(X, Y, Z)) WITH {op} AS A ."))) for op in texts}
    assert len(keys) == len(texts)
    rule = parse_rule("q(A) :- AGGREGATE(p(X, Y, Z)) WITH ARGMAX(X, Y) AS A .")
    assert parse_rule(str(rule)) == rule


@ENGINES
def test_the_median_of_two_middle_values_is_exact(engine: str) -> None:
    pairs = {
        "plain": ("1.5", "2.0"),
        "rounded": ("0.1", "0.7"),
        "nothing": ("-3.0", "3.0"),
        "large": ("1.6E308", "1.7E308"),
        "small": ("5.0E-324", "1.0E-323"),
        "same": ("0.3", "0.3"),
    }
    facts = " ".join(
        f'value("{name}", {n}, "{text}"^^xsd:double) .'
        for name, pair in pairs.items()
        for n, text in enumerate(pair)
    )
    kb = ze.open(engine=engine)
    with kb.change() as c:
        c.add_rules(f"middle(S, M) :- AGGREGATE(value(S, N, V)) ON S WITH MED(V) AS M . {facts}")
    found = {str(s): m for s, m in kb.query("middle(S, M)")}
    assert found == {
        name: float((Fraction(float(one)) + Fraction(float(other))) / 2)
        for name, (one, other) in pairs.items()
    }
