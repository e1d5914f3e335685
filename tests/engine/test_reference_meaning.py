"""Negation, safety, order of the body, classes, arities: the sentences of `language.md`, one test each."""

from __future__ import annotations

import pytest

from strategies import evaluate_text


def derived(text: str) -> list[str]:
    return evaluate_text(text).facts()


def test_disjunction_is_several_rules_with_one_head() -> None:
    assert derived("a(1) . b(2) . p(X) :- a(X) . p(X) :- b(X) .") == ["p(1)", "p(2)"]


def test_recursion_reaches_the_least_fixed_point() -> None:
    text = "e(1, 2) . e(2, 3) . e(3, 1) . t(X, Y) :- e(X, Y) . t(X, Z) :- t(X, Y), e(Y, Z) ."
    assert len(derived(text)) == 9


def test_facts_do_not_support_themselves() -> None:
    assert derived("e(1, 2) . p(X) :- q(X) . q(X) :- p(X) .") == []


def test_explicit_facts_of_derived_predicates_take_part() -> None:
    assert derived("p(1) . q(2) . q(X) :- p(X) . p(X) :- q(X) .") == ["p(2)", "q(1)"]


def test_negation_holds_where_no_fact_matches() -> None:
    assert derived("p(1) . p(2) . q(2) . r(X) :- p(X), not q(X) .") == ["r(1)"]


def test_negation_reads_the_finished_predicate() -> None:
    text = """
    p(1) . p(2) . e(2, 3) . e(3, 4) .
    reached(Y) :- e(X, Y) .
    reached(Y) :- reached(X), e(X, Y) .
    start(X) :- e(X, _), not reached(X) .
    """
    assert "start(2)" in derived(text)
    assert "start(3)" not in derived(text)


def test_a_variable_of_one_negated_atom_only_is_existential() -> None:
    text = "p(a, b) . p(a, c) . q(b, x) . q(b, y) . r(X, Y) :- p(X, Y), not q(Y, Z) ."
    assert derived(text) == ["r(a, c)"]


def test_an_existential_variable_that_repeats_asks_for_equal_arguments() -> None:
    text = "p(a) . p(b) . q(a, 1, 2) . q(b, 1, 1) . r(X) :- p(X), not q(X, Z, Z) ."
    assert derived(text) == ["r(a)"]


def test_an_anonymous_variable_in_a_negated_atom_is_existential() -> None:
    assert derived("p(a) . p(b) . q(b, 1, 2) . r(X) :- p(X), not q(X, _, _) .") == ["r(a)"]


def test_two_negated_atoms_have_existential_variables_of_their_own() -> None:
    text = "p(a) . p(b) . p(c) . q(a, 1) . s(b, 2) . r(X) :- p(X), not q(X, Y), not s(X, Z) ."
    assert derived(text) == ["r(c)"]


def test_a_negated_constant_asks_for_that_fact() -> None:
    assert derived("p(a) . q(b, 1) . r(X) :- p(X), not q(b, 1) . s(X) :- p(X), not q(b, 2) .") == ["s(a)"]


def test_a_negated_atom_may_use_a_computed_value() -> None:
    assert derived("p(1) . p(2) . q(3) . r(X) :- p(X), Y := X + 1, not q(Y) .") == ["r(1)"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("p() :- not q() .", ["p()"]),
        ("p(T) :- T := 1 + 2 .", ["p(3)"]),
        ("p(T) :- T = 1 + 2 .", ["p(3)"]),
        ("p(T) :- 3 = T, not q(T) .", ["p(3)"]),
        ("p(1) :- 1 < 2 .", ["p(1)"]),
        ("p(1) :- 2 < 1 .", []),
        ("p(a) :- not q(_) .", ["p(a)"]),
    ],
)
def test_bodies_without_a_positive_atom(rule: str, expected: list[str]) -> None:
    assert derived(rule) == expected


def test_a_flag_of_arity_0_is_a_fact_like_any_other() -> None:
    assert derived("go() . p() :- go() . q() :- not go() . r(1) :- p(), not q() .") == ["p()", "r(1)"]


@pytest.mark.parametrize(
    "body",
    [
        "p(X), Y := X * 2, Z := Y + 1, Z < 6, not q(Z)",
        "not q(Z), Z < 6, Z := Y + 1, Y := X * 2, p(X)",
        "Z < 6, Z = Y + 1, p(X), BIND(X * 2 AS Y), not q(Z)",
        "Y + 1 = Z, not q(Z), X * 2 = Y, COMP(6, >, Z), p(X)",
    ],
)
def test_the_order_of_the_body_does_not_matter(body: str) -> None:
    assert derived(f"p(1) . p(2) . p(3) . q(3) . r(X, Z) :- {body} .") == ["r(2, 5)"]


def test_a_repeated_variable_asks_for_equal_arguments() -> None:
    text = "e(a, a, b) . e(a, b, a) . p(X, Y) :- e(X, X, Y) . q(X, Y) :- e(X, Y, X) ."
    assert derived(text) == ["p(a, b)", "q(a, b)"]


def test_anonymous_variables_are_different_each_time() -> None:
    assert derived("e(a, b) . p(X) :- e(X, _), e(_, _) .") == ["p(a)"]


def test_constants_stand_in_heads_and_bodies() -> None:
    assert derived("e(a, 1) . e(b, 2) . p(c, X, 7) :- e(X, 2) .") == ["p(c, b, 7)"]


def test_rules_of_arity_4_join_on_any_columns() -> None:
    text = """
    w(a, b, c, d) . w(b, a, d, c) . w(a, a, c, c) .
    swap(B, A, D, C) :- w(A, B, C, D), w(B, A, D, C) .
    """
    assert derived(text) == ["swap(a, a, c, c)", "swap(a, b, c, d)", "swap(b, a, d, c)"]


def test_a_comparison_is_no_binding_where_both_sides_are_bound() -> None:
    assert derived("p(1, 1.0) . p(1, 2) . r(X) :- p(X, Y), X = Y .") == ["r(1)"]


def test_a_binding_copies_any_term() -> None:
    assert derived('p(<i>) . p("t"@en) . p(_:b) . r(Y) :- p(X), Y := X .') == ['r("t"@en)', "r(_:b)", "r(i)"]


def test_value_generation_in_recursion_stops_at_its_own_bound() -> None:
    assert derived("n(0) . n(Y) :- n(X), Y := X + 1, Y < 4 .") == ["n(1)", "n(2)", "n(3)"]


# Classes


def test_a_class_atom_and_rdf_type_are_one_atom() -> None:
    text = "cat(tom) . pet(X) :- rdf:type(X, cat) . rdf:type(X, animal) :- pet(X) ."
    assert derived(text) == ["animal(tom)", "pet(tom)"]


def test_a_variable_class_in_a_body_ranges_over_all_classes() -> None:
    text = "cat(tom) . dog(rex) . likes(tom, rex) . tame(X) :- cat(X) . kind(X, C) :- rdf:type(X, C) ."
    assert derived(text) == ["kind(rex, dog)", "kind(tom, cat)", "kind(tom, tame)", "tame(tom)"]


def test_a_variable_class_in_a_head_derives_facts_of_that_class() -> None:
    text = """
    sub(cat, mammal) . sub(mammal, animal) . cat(tom) .
    rdf:type(X, D) :- rdf:type(X, C), sub(C, D) .
    moves(X) :- animal(X) .
    """
    assert derived(text) == ["animal(tom)", "mammal(tom)", "moves(tom)"]


def test_a_variable_class_under_negation_asks_for_any_class() -> None:
    text = "thing(a, 1) . thing(b, 2) . cat(a) . bare(X, Y) :- thing(X, Y), not rdf:type(X, _) ."
    assert derived(text) == ["bare(b, 2)"]


def test_one_name_may_be_a_class_and_a_property() -> None:
    text = "part(a) . part(a, b) . p(X) :- part(X) . q(X, Y) :- part(X, Y) ."
    assert derived(text) == ["p(a)", "q(a, b)"]


def test_a_constant_class_does_not_match_another() -> None:
    assert derived("cat(tom) . p(X) :- dog(X) .") == []


# Queries


QUERIED = "e(a, b) . e(b, c) . e(c, a) . age(a, 3) . age(b, 7) ."


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("?- e(a, X) .", ["b"]),
        ("?- e(X, Y), age(X, A), A > 5 .", ["b, c, 7"]),
        ("?- e(X, _), not age(X, _) .", ["c"]),
        ("ans(Y, X, 1) :- e(X, Y), age(X, _) .", ["b, a, 1", "c, b, 1"]),
        ("?- e(a, b) .", [""]),
        ("?- e(a, c) .", []),
        ("?- AGGREGATE(age(X, A)) WITH SUM(A) AS S, COUNT(X) AS N .", ["10, 2"]),
        ("?- age(X, A), B := A * 2 .", ["a, 3, 6", "b, 7, 14"]),
        ("?- nobody(X) .", []),
    ],
)
def test_queries(query: str, rows: list[str]) -> None:
    assert evaluate_text(QUERIED).answer(query) == rows
