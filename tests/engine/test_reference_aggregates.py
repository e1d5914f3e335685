"""What is folded, over which bindings, in which groups, to which term, on every engine."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import evaluate_text
from zodiacedge.language.printer import format_term
from zodiacedge.terms import double, integer

if TYPE_CHECKING:
    from zodiacedge.engine.api import Engine


def derived(text: str, engine: Engine) -> list[str]:
    return evaluate_text(text, engine=engine).facts()


def folded(op: str, *values: str, engine: Engine) -> str | None:
    """Return what an aggregate makes of some constants, each in a binding of its own."""
    facts = " ".join(f"v({n}, {value}) ." for n, value in enumerate(values))
    evaluated = evaluate_text(f"{facts} r(0, S) :- AGGREGATE(v(N, X)) WITH {op}(X) AS S .", engine=engine)
    found = evaluated.facts("r")
    return found[0].removeprefix("r(0, ").removesuffix(")") if found else None


# What is counted

NEIGHBOURS = "near(a, b) . near(a, c) . near(a, d) . reads(b, 25) . reads(c, 25) . reads(d, 20) ."


def test_bindings_are_folded_so_equal_readings_of_two_neighbours_count_as_two(engine: Engine) -> None:
    assert derived(
        f"{NEIGHBOURS} n(X, N) :- AGGREGATE(near(X, Y), reads(Y, T)) ON X WITH COUNT(T) AS N .", engine
    ) == ["n(a, 3)"]


def test_distinct_folds_the_distinct_terms(engine: Engine) -> None:
    text = f"{NEIGHBOURS} n(X, N) :- AGGREGATE(near(X, Y), reads(Y, T)) ON X WITH COUNT(DISTINCT T) AS N ."
    assert derived(text, engine) == ["n(a, 2)"]


def test_distinct_goes_for_sums_too(engine: Engine) -> None:
    text = f"""{NEIGHBOURS}
    s(A, B) :- AGGREGATE(near(X, Y), reads(Y, T)) WITH SUM(T) AS A, SUM(DISTINCT T) AS B ."""
    assert derived(text, engine) == ["s(70, 45)"]


def test_an_anonymous_variable_tells_bindings_apart(engine: Engine) -> None:
    text = "e(a, 1, x) . e(a, 1, y) . n(N) :- AGGREGATE(e(X, V, _)) WITH COUNT(V) AS N ."
    assert derived(text, engine) == ["n(2)"]


def test_an_existential_variable_does_not_tell_bindings_apart(engine: Engine) -> None:
    text = "p(a) . q(b, 1) . q(b, 2) . n(N) :- AGGREGATE(p(X), not q(X, Z)) WITH COUNT(X) AS N ."
    assert derived(text, engine) == ["n(1)"]


def test_a_binding_inside_is_a_variable_of_the_inner_body(engine: Engine) -> None:
    text = "p(1) . p(2) . s(S) :- AGGREGATE(p(X), Y := X * 10) WITH SUM(Y) AS S ."
    assert derived(text, engine) == ["s(30)"]


def test_comparisons_and_negation_work_inside(engine: Engine) -> None:
    text = "p(1) . p(2) . p(3) . q(2) . s(S) :- AGGREGATE(p(X), X < 3, not q(X)) WITH SUM(X) AS S ."
    assert derived(text, engine) == ["s(1)"]


def test_a_fact_that_two_rules_derive_is_folded_once(engine: Engine) -> None:
    text = "a(1) . b(1) . p(X) :- a(X) . p(X) :- b(X) . n(N) :- AGGREGATE(p(X)) WITH COUNT(X) AS N ."
    assert "n(1)" in derived(text, engine)


# Groups


def test_without_on_there_is_one_group(engine: Engine) -> None:
    assert derived("p(a, 1) . p(b, 2) . s(S) :- AGGREGATE(p(X, V)) WITH SUM(V) AS S .", engine) == ["s(3)"]


def test_each_group_is_folded_by_itself(engine: Engine) -> None:
    text = "p(a, 1) . p(a, 2) . p(b, 5) . s(X, S) :- AGGREGATE(p(X, V)) ON X WITH SUM(V) AS S ."
    assert derived(text, engine) == ["s(a, 3)", "s(b, 5)"]


def test_two_group_variables_make_a_group_per_pair(engine: Engine) -> None:
    text = """
    p(a, 1, 5) . p(a, 2, 6) . p(a, 2, 7) .
    s(X, Y, N) :- AGGREGATE(p(X, Y, V)) ON X, Y WITH COUNT(V) AS N .
    """
    assert derived(text, engine) == ["s(a, 1, 1)", "s(a, 2, 2)"]


def test_a_group_without_a_binding_yields_no_fact(engine: Engine) -> None:
    assert derived("q(1) . n(N) :- AGGREGATE(p(X)) WITH COUNT(X) AS N .", engine) == []
    assert derived("q(a, 1) . n(X, N) :- q(X, _), AGGREGATE(p(X, Y)) ON X WITH COUNT(Y) AS N .", engine) == []


def test_two_results_come_from_one_group(engine: Engine) -> None:
    text = "p(a, 1) . p(a, 4) . r(X, L, H) :- AGGREGATE(p(X, V)) ON X WITH MIN(V) AS L, MAX(V) AS H ."
    assert derived(text, engine) == ["r(a, 1, 4)"]


def test_a_group_variable_may_be_folded(engine: Engine) -> None:
    assert derived("p(3) . p(4) . r(X, S) :- AGGREGATE(p(X)) ON X WITH SUM(X) AS S .", engine) == [
        "r(3, 3)",
        "r(4, 4)",
    ]


def test_a_result_need_not_be_in_the_head(engine: Engine) -> None:
    assert derived("p(a, 1) . some(X) :- AGGREGATE(p(X, V)) ON X WITH COUNT(V) AS N .", engine) == ["some(a)"]


def test_two_groups_may_yield_one_head(engine: Engine) -> None:
    assert derived("p(a, 1) . p(b, 2) . r(N) :- AGGREGATE(p(X, V)) ON X WITH COUNT(V) AS N .", engine) == [
        "r(1)"
    ]


# Beside the aggregate


def test_atoms_beside_the_aggregate_join_with_its_groups(engine: Engine) -> None:
    text = """
    p(a, 1) . p(b, 2) . good(b) .
    r(X, S) :- good(X), AGGREGATE(p(X, V)) ON X WITH SUM(V) AS S .
    """
    assert derived(text, engine) == ["r(b, 2)"]


def test_atoms_beside_the_aggregate_join_with_its_results(engine: Engine) -> None:
    text = """
    p(a, 1) . p(a, 2) . p(b, 2) . name(3, three) .
    r(X, N) :- name(S, N), AGGREGATE(p(X, V)) ON X WITH SUM(V) AS S .
    """
    assert derived(text, engine) == ["r(a, three)"]


def test_comparisons_and_bindings_outside_see_the_results(engine: Engine) -> None:
    text = """
    p(a, 1) . p(a, 2) . p(b, 2) .
    r(X, D) :- S > 2, D := S * 10, AGGREGATE(p(X, V)) ON X WITH SUM(V) AS S .
    """
    assert derived(text, engine) == ["r(a, 30)"]


def test_negation_outside_sees_groups_and_results(engine: Engine) -> None:
    text = """
    p(a, 1) . p(b, 2) . seen(a, 1) .
    r(X) :- not seen(X, S), AGGREGATE(p(X, V)) ON X WITH SUM(V) AS S .
    """
    assert derived(text, engine) == ["r(b)"]


def test_atoms_beside_the_aggregate_do_not_reach_inside(engine: Engine) -> None:
    text = """
    p(a, 1) . p(b, 2) . only(a) .
    r(X, S) :- only(X), AGGREGATE(p(X, V)) WITH SUM(V) AS S .
    """
    assert derived(text, engine) == ["r(a, 3)"]


def test_a_name_inside_and_outside_are_two_variables(engine: Engine) -> None:
    text = "p(a, 1) . p(a, 2) . q(9) . r(X, V, N) :- q(V), AGGREGATE(p(X, V)) ON X WITH COUNT(V) AS N ."
    assert derived(text, engine) == ["r(a, 9, 2)"]


def test_an_aggregate_rule_may_stand_in_a_positive_cycle_through_an_atom_beside_it(engine: Engine) -> None:
    text = """
    w(a, 1) . w(b, 2) . w(c, 3) . e(a, b) . e(b, c) . go(a) .
    got(X, S) :- go(X), AGGREGATE(w(X, V)) ON X WITH SUM(V) AS S .
    go(Y) :- got(X, _), e(X, Y) .
    """
    assert derived(text, engine) == ["go(b)", "go(c)", "got(a, 1)", "got(b, 2)", "got(c, 3)"]


# Results


@pytest.mark.parametrize(
    ("op", "values", "expected"),
    [
        ("COUNT", ["1", '"a"', "<b>"], "3"),
        ("SUM", ["1", "2", "3"], "6"),
        ("SUM", ["1", "2.5"], "3.5E0"),
        ("SUM", ["1", "2.0"], "3.0E0"),
        ("SUM", ["2e0"], "2.0E0"),
        ("SUM", ["0.5", "0.5"], "1.0E0"),
        ("AVG", ["1", "2"], "1.5E0"),
        ("AVG", ["2", "2"], "2.0E0"),
        ("AVG", ["7"], "7.0E0"),
        ("MIN", ["3", "1.5", "2e0"], "1.5"),
        ("MAX", ["3", "1.5", "2e0"], "3"),
        ("MED", ["3", "1", "2"], "2"),
        ("MED", ["5", "1.0", "9"], "5"),
        ("MED", ["5", "7.50", "9"], "7.5"),
        ("MED", ["1", "3"], "2"),
        ("MED", ["1", "2"], "1.5E0"),
        ("MED", ["1", "3.0"], "2.0E0"),
        ("MED", ["1", "2", "4", "9"], "3"),
        ("MED", ["4"], "4"),
        ("MED", ["-3", "2"], "-5.0E-1"),
    ],
)
def test_results(op: str, values: list[str], expected: str, engine: Engine) -> None:
    for order in itertools.permutations(values):
        assert folded(op, *order, engine=engine) == expected


def test_ops_are_read_in_any_case(engine: Engine) -> None:
    assert folded("med", "1", "2", "3", engine=engine) == "2"
    assert folded("Count", "1", "2", engine=engine) == "2"


KINDS = [
    "5",
    '"2026-01-01T00:00:00Z"^^xsd:dateTime',
    '"2026-01-01"^^xsd:date',
    '"t"',
    '"t"@en',
    '"o"^^<dt>',
    "true",
    "<i>",
    "_:b",
]


@pytest.mark.parametrize(("low", "high"), list(itertools.pairwise(KINDS)))
def test_min_and_max_over_mixed_kinds_follow_the_total_order(low: str, high: str, engine: Engine) -> None:
    assert folded("MIN", high, low, engine=engine) == format_constant(low)
    assert folded("MAX", high, low, engine=engine) == format_constant(high)


def format_constant(text: str) -> str:
    return evaluate_text(f"c(0, {text}) .").facts("c")[0].removeprefix("c(0, ").removesuffix(")")


def test_ties_of_min_and_max_are_broken_by_datatype(engine: Engine) -> None:
    assert folded("MIN", "2", "2.0", "2e0", engine=engine) == "2.0"
    assert folded("MAX", "2", "2.0", "2e0", engine=engine) == "2"


def test_ten_tenths_are_one(engine: Engine) -> None:
    assert folded("SUM", *["0.1"] * 10, engine=engine) == "1.0E0"
    assert folded("AVG", *["0.1e0"] * 10, engine=engine) == "1.0E-1"


def test_a_sum_does_not_depend_on_the_order(engine: Engine) -> None:
    for order in itertools.permutations(["1e16", "1", "-1e16"]):
        assert folded("SUM", *order, engine=engine) == "1.0E0"


def test_a_sum_that_passes_through_infinity_is_still_exact(engine: Engine) -> None:
    assert folded("SUM", "1.5e308", "1.5e308", "-1.5e308", engine=engine) == "1.5E308"


def test_an_average_is_the_rounded_total_divided_by_the_count(engine: Engine) -> None:
    # The exact total of the doubles 0.1, 0.2 and 0.3 rounds to 0.6; one by one it would be 0.6000…01.
    assert folded("AVG", "0.1e0", "0.2e0", "0.3e0", engine=engine) == format_term(double(0.6 / 3))
    assert folded("AVG", "1", "1", "0", engine=engine) == format_term(double(2 / 3))


def test_the_median_of_two_large_doubles_does_not_overflow(engine: Engine) -> None:
    assert folded("MED", "1.5e308", "1.5e308", engine=engine) == "1.5E308"


def test_the_median_of_two_large_integers_is_exact(engine: Engine) -> None:
    assert folded("MED", "9223372036854775807", "9223372036854775805", engine=engine) == "9223372036854775806"


def test_an_integer_sum_is_judged_on_its_total(engine: Engine) -> None:
    assert folded("SUM", "9223372036854775807", "1", "-1", engine=engine) == "9223372036854775807"


def test_an_integer_sum_beyond_64_bits_drops_its_group_only(engine: Engine) -> None:
    text = """
    p(a, 9223372036854775807) . p(a, 1) . p(b, 2) .
    r: s(X, S) :- AGGREGATE(p(X, V)) ON X WITH SUM(V) AS S .
    """
    evaluated = evaluate_text(text, engine=engine)
    assert evaluated.facts() == ["s(b, 2)"]
    dropped = evaluated.dropped("r")
    assert dropped is not None
    assert dropped.count == 1


def test_a_sum_beyond_the_doubles_drops_its_group(engine: Engine) -> None:
    assert folded("SUM", "1.5e308", "1.5e308", engine=engine) is None
    assert folded("AVG", "1.5e308", "1.5e308", engine=engine) is None


@settings(max_examples=60)
@given(values=st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=1, max_size=5))
def test_sums_and_averages_of_doubles_do_not_depend_on_the_order(values: list[float], engine: Engine) -> None:
    texts = [format_term(double(v)) for v in values]
    for op in ("SUM", "AVG", "MED"):
        assert folded(op, *texts, engine=engine) == folded(op, *reversed(texts), engine=engine)


@settings(max_examples=60)
@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_integer_sums_are_exact_or_dropped(values: list[int], engine: Engine) -> None:
    total = sum(values)
    expected = format_term(integer(total)) if -(2**63) <= total < 2**63 else None
    assert folded("SUM", *map(str, values), engine=engine) == expected


# What an op cannot take


@pytest.mark.parametrize("op", ["SUM", "AVG", "MED"])
def test_a_value_that_is_no_number_drops_its_binding_and_the_rest_counts(op: str, engine: Engine) -> None:
    assert folded(op, '"a"', "4", "<x>", engine=engine) == folded(op, "4", engine=engine)
    assert folded(op, '"a"', engine=engine) is None


def test_dropped_values_are_counted_with_an_example(engine: Engine) -> None:
    text = 'p(a, 1) . p(a, "x") . p(b, "y") . r: s(X, S) :- AGGREGATE(p(X, V)) ON X WITH SUM(V) AS S .'
    evaluated = evaluate_text(text, engine=engine)
    dropped = evaluated.dropped("r")
    assert dropped is not None
    assert dropped.count == 2
    examples = {'"x" is not a number (X = a, V = "x")', '"y" is not a number (X = b, V = "y")'}
    assert dropped.example in examples
    assert evaluated.facts() == ["s(a, 1)"]


def test_a_value_that_one_op_cannot_take_drops_its_binding_for_all_results(engine: Engine) -> None:
    text = """
    p(a, 1) . p(a, 2) . p(a, "x") .
    r(X, N, S) :- AGGREGATE(p(X, V)) ON X WITH COUNT(V) AS N, SUM(V) AS S .
    """
    assert derived(text, engine) == ["r(a, 2, 3)"]


def test_count_min_and_max_take_any_term(engine: Engine) -> None:
    assert folded("COUNT", '"a"', "<x>", "_:b", engine=engine) == "3"
    assert folded("MIN", "<x>", "_:b", engine=engine) == "x"
