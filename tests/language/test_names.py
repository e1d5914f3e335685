"""Nearest names, and which atoms unify."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zodiacedge.errors import nearest
from zodiacedge.language.ast import Argument, Atom, Variable
from zodiacedge.language.lint.namesakes import Namesakes
from zodiacedge.language.parser import parse_rule, read_program
from zodiacedge.language.unify import unifiable
from zodiacedge.terms import IRI, Term, integer
from zodiacedge.util.spelling import Spelling

KNOWN = ["hasNeighbour", "temperature", "Turbine", "p11", "wind_speed", "alarm"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("hasNeigbour", "hasNeighbour"),
        ("hasNeighbourr", "hasNeighbour"),
        ("hasNeighbuor", "hasNeighbour"),
        ("hasneighbour", "hasNeighbour"),
        ("tempereture", "temperature"),
        ("turbine", "Turbine"),
        ("windspeed", "wind_speed"),
        ("hasNeighbour", None),
        ("humidity", None),
        ("p12", None),
        ("p1", None),
        ("alarm2", None),
        ("hsaNeighbuor", None),
    ],
)
def test_a_slip_of_the_hand_is_found(name: str, meant: str | None) -> None:
    assert Spelling(KNOWN).nearest(name) == meant


def slips(word: str) -> st.SearchStrategy[str]:
    places = st.integers(0, len(word) - 1)
    letters = st.sampled_from("abcxyzXYZ")
    return st.one_of(
        places.map(lambda i: word[:i] + word[i + 1 :]),
        st.tuples(places, letters).map(lambda at: word[: at[0]] + at[1] + word[at[0] :]),
        st.tuples(places, letters).map(lambda at: word[: at[0]] + at[1] + word[at[0] + 1 :]),
        st.integers(0, len(word) - 2).map(lambda i: word[:i] + word[i + 1] + word[i] + word[i + 2 :]),
    )


@given(slips("temperature"))
@settings(max_examples=200)
def test_every_slip_of_one_letter_is_found(typed: str) -> None:
    assert Spelling(["temperature"]).nearest(typed) == (None if typed == "temperature" else "temperature")


def test_ten_thousand_names_are_searched_at_once() -> None:
    spelling = Spelling(f"predicate_{chr(97 + i % 26)}_{i}_name" for i in range(10_000))
    assert spelling.nearest("predicat_c_2_name") == "predicate_c_2_name"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("p(X) :- q(X), contians(X, 1) = true .", "did you mean contains?"),
        ("p(X) :- q(X), sqr(X) = 1 .", "did you mean sqrt?"),
        ("p(X) :- q(X), rdfss:a(X) .", "did you mean rdfs:?"),
        ("p(X) :- q(X), xds:a(X) .", "declare it: @prefix xds: <…> ."),
    ],
)
def test_hints_of_the_parser(text: str, note: str) -> None:
    (found,) = read_program(text)[1]
    assert note in found.note


def test_the_nearest_of_several() -> None:
    assert nearest("conut", ("COUNT", "count", "concat")) == "count"
    assert nearest("zzz", ("count",)) is None


# Unification against trying every instance

TERMS: list[Term] = [IRI("a"), IRI("b"), integer(1), IRI("fresh1"), IRI("fresh2"), IRI("fresh3")]
_arguments: st.SearchStrategy[Argument] = st.sampled_from(
    [IRI("a"), IRI("b"), integer(1), Variable("X"), Variable("Y"), Variable("Z")]
)


def instances(atom: Atom) -> set[tuple[Term, ...]]:
    names = sorted({a.name for a in atom.args if isinstance(a, Variable)})
    found = set()
    for values in product(TERMS, repeat=len(names)):
        bound = dict(zip(names, values, strict=True))
        found.add(tuple(bound[a.name] if isinstance(a, Variable) else a for a in atom.args))
    return found


@given(st.data(), st.integers(0, 3))
@settings(max_examples=300)
def test_two_atoms_unify_exactly_where_they_share_an_instance(data: st.DataObject, arity: int) -> None:
    args = st.lists(_arguments, min_size=arity, max_size=arity).map(tuple)
    first, second = Atom("p", data.draw(args)), Atom("p", data.draw(args))
    assert unifiable(first, second) == bool(instances(first) & instances(second))
    assert unifiable(first, second) == unifiable(second, first)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("p(X, Y)", "p(Y, X)", True),
        ("p(X, X)", "p(a, b)", False),
        ("p(X, X)", "p(a, Y)", True),
        ("p(X, X, b)", "p(a, Y, Y)", False),
        ("p(X, Y, X)", "p(Z, Z, a)", True),
        ("p(X)", "p(X, Y)", False),
        ("p(X)", "q(X)", False),
        ("rdf:type(X, C)", "p(X)", True),
        ("rdf:type(X, a)", "rdf:type(X, b)", False),
        ("p(5)", "p(5.0)", False),
        ("p()", "p()", True),
    ],
)
def test_directed_unification(first: str, second: str, expected: bool) -> None:  # noqa: FBT001 - the expectation
    left, right = (parse_rule(f"{text} :- q(X, Y, Z, C) .").head for text in (first, second))
    assert unifiable(left, right) is expected


def test_a_namesake_is_found_by_the_first_lookups_and_by_later_ones() -> None:
    known = ["temp", "http://example.org/temp", "https://example.org/Temp#", "http://example.org/other"]
    namesakes = Namesakes(known)
    for _ in range(6):
        assert namesakes.find("temp") == ["http://example.org/temp", "https://example.org/Temp#"]
        assert namesakes.find("http://example.org/temp") == ["https://example.org/Temp#", "temp"]
        assert namesakes.find("unknown") == []
