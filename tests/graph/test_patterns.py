"""Unification and its index against the definition: some fact is an instance of both."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from zodiacedge.graph.patterns import PatternIndex
from zodiacedge.language.ast import Atom, Predicate, Variable
from zodiacedge.language.unify import Pattern, pattern_of, unify
from zodiacedge.terms import IRI, RDF_TYPE, integer, string

CONSTANTS = (IRI("a"), IRI("b"), string("a"), integer(1))
arguments = st.sampled_from([*(Variable(name) for name in "XYZ"), *CONSTANTS[:3]])
atoms = st.builds(Atom, st.sampled_from("pq"), st.lists(arguments, max_size=4).map(tuple))
ternary = st.builds(Atom, st.just("p"), st.tuples(arguments, arguments, arguments))


def instances(atom: Atom) -> set[tuple[object, ...]]:
    names = list(dict.fromkeys(arg for arg in atom.args if isinstance(arg, Variable)))
    found = set()
    for values in product(CONSTANTS, repeat=len(names)):
        put = dict(zip(names, values, strict=True))
        found.add((atom.relation, *(put[arg] if isinstance(arg, Variable) else arg for arg in atom.args)))
    return found


@given(st.one_of(st.tuples(atoms, atoms), st.tuples(ternary, ternary)))
@settings(max_examples=300, deadline=None)
def test_patterns_unify_where_they_share_an_instance(pair: tuple[Atom, Atom]) -> None:
    left, right = pair
    assert unify(pattern_of(left), pattern_of(right)) == bool(instances(left) & instances(right))


@given(
    st.lists(st.tuples(st.lists(st.one_of(atoms, ternary), max_size=8), st.sets(st.integers(0, 9)))),
    st.lists(st.one_of(atoms, ternary), min_size=1, max_size=6),
)
@settings(max_examples=80, deadline=None)
def test_the_index_finds_what_unifies_as_patterns_come_and_go(
    steps: list[tuple[list[Atom], set[int]]], questions: list[Atom]
) -> None:
    index = PatternIndex()
    stored: dict[Pattern, None] = {}
    for come, gone in steps:
        leaving = list(dict.fromkeys(list(stored)[i] for i in gone if i < len(stored)))
        entering = list(dict.fromkeys(p for p in map(pattern_of, come) if p not in stored))
        before, index = index, index.changed(entering, leaving)
        for question in map(pattern_of, questions):
            assert set(before.unifying(question)) == {p for p in stored if unify(p, question)}
        stored = dict.fromkeys(p for p in (*stored, *entering) if p not in leaving)
        for question in map(pattern_of, questions):
            found = list(index.unifying(question))
            assert len(found) == len(set(found))
            assert set(found) == {p for p in stored if unify(p, question)}


def test_a_repeated_variable_matters() -> None:
    X, Y = Variable("X"), Variable("Y")  # noqa: N806 - as a rule writes them
    a, b = IRI("a"), IRI("b")
    assert not unify(pattern_of(Atom("p", (X, X))), pattern_of(Atom("p", (a, b))))
    assert unify(pattern_of(Atom("p", (X, X))), pattern_of(Atom("p", (a, Y))))
    assert not unify(pattern_of(Atom("p", (X, X, b))), pattern_of(Atom("p", (a, Y, Y))))


def test_names_of_variables_do_not_matter() -> None:
    left = pattern_of(Atom("p", (Variable("X"), IRI("a"), Variable("X"))))
    assert left == pattern_of(Atom("p", (Variable("Other"), IRI("a"), Variable("Other"))))


def test_a_class_is_shown_by_its_name() -> None:
    assert pattern_of(Atom(RDF_TYPE, (Variable("X"), IRI("C")))).predicate == Predicate("C", 1)
    assert pattern_of(Atom(RDF_TYPE, (Variable("X"), Variable("Y")))).predicate == Predicate(RDF_TYPE, 2)
