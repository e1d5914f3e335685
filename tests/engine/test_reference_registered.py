"""Functions and aggregates that the host registered, scalar and vectorised."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from strategies import evaluate_text
from zodiacedge.engine.api import Settings
from zodiacedge.engine.registry import AggregateFunction, Function, Registry
from zodiacedge.errors import EvaluationProblem
from zodiacedge.terms import IRI, BlankNode, iri, string

if TYPE_CHECKING:
    from collections.abc import Callable

    from strategies import Evaluated
    from zodiacedge.engine.api import Engine


def with_function(call: Callable[..., object], text: str, *, vectorised: bool = False) -> Evaluated:
    registry = Registry().with_function(Function("f", call, vectorised))
    return evaluate_text(text, Settings(registry=registry))


def with_fold(call: Callable[..., object], text: str, *, vectorised: bool = False) -> Evaluated:
    registry = Registry().with_fold(AggregateFunction("AGG", call, vectorised))
    return evaluate_text(text, Settings(registry=registry))


APPLIED = "p(1) . p(2) . r: q(X, Y) :- p(X), Y := func:f(X) ."


def test_a_scalar_function_gets_python_values() -> None:
    seen: list[object] = []
    text = """
    p(1) . p(2.5) . p("t") . p(true) . p(<i>) . p(_:b) . p("t"@en) .
    p("2026-01-01T00:00:00Z"^^xsd:dateTime) . p("2026-01-01"^^xsd:date) . q(X) :- p(X), Y := func:f(X) .
    """

    def look(value: object) -> int:
        seen.append(value)
        return 1

    with_function(look, text)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    expected = [1, 2.5, "t", True, moment, date(2026, 1, 1), IRI("i"), BlankNode("b"), string("t", "en")]
    assert set(map(repr, seen)) == set(map(repr, expected))


def test_a_scalar_function_of_several_arguments() -> None:
    text = "p(1, 2) . q(Z) :- p(X, Y), Z := func:f(X, Y + 1) ."
    assert with_function(lambda x, y: x * 10 + y, text).facts() == ["q(13)"]


def test_only_the_chosen_argument_is_evaluated(engine: Engine) -> None:
    seen: list[object] = []

    def look(value: object) -> object:
        seen.append(value)
        return value

    settings = Settings(registry=Registry().with_function(Function("f", look)))
    text = """
    p(1) . p(2) . p(3) .
    q(X, Y) :- p(X), Y := if(X - 1, func:f(X), 0), Z := coalesce(X, func:f(10)) .
    """
    assert evaluate_text(text, settings, engine).facts("q") == ["q(1, 0)", "q(2, 2)", "q(3, 3)"]
    assert set(seen) == {2, 3}


@pytest.mark.parametrize(
    ("result", "term"),
    [
        (7, "7"),
        (2.5, "2.5E0"),
        (True, "true"),
        ("text", '"text"'),
        (np.int64(7), "7"),
        (np.float32(2.5), "2.5E0"),
        (np.bool_(False), "false"),  # noqa: FBT003 - the value itself
        (iri("http://x/y"), "<http://x/y>"),
        (date(2026, 1, 1), '"2026-01-01"^^xsd:date'),
        (datetime(2026, 1, 1, tzinfo=UTC), '"2026-01-01T00:00:00Z"^^xsd:dateTime'),
    ],
)
def test_results_become_terms(result: object, term: str) -> None:
    assert with_function(lambda _: result, "p(1) . q(1, Y) :- p(X), Y := func:f(X) .").facts() == [
        f"q(1, {term})"
    ]


@pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt, SystemExit])
def test_what_is_not_the_functions_own_failure_ends_the_work(kind: type[BaseException]) -> None:
    def end(_: object) -> object:
        raise kind

    with pytest.raises(kind):
        with_function(end, APPLIED)
    with pytest.raises(kind):
        with_function(end, APPLIED, vectorised=True)
    with pytest.raises(kind):
        with_fold(end, FOLDED)


@pytest.mark.parametrize("result", [None, float("nan"), float("inf"), 2**63, [1], object()])
def test_a_result_that_is_no_term_drops_the_binding(result: object) -> None:
    evaluated = with_function(lambda x: result if x == 1 else x, APPLIED)
    assert evaluated.facts() == ["q(2, 2)"]
    dropped = evaluated.dropped("r")
    assert dropped is not None
    assert dropped.count == 1


def _fails_at_1(x: int) -> int:
    if x == 1:
        raise ValueError("no 1")
    return x


def test_a_function_that_raises_drops_the_binding_and_says_why() -> None:
    evaluated = with_function(_fails_at_1, APPLIED)
    assert evaluated.facts() == ["q(2, 2)"]
    dropped = evaluated.dropped("r")
    assert dropped is not None
    assert dropped.example == "f failed: ValueError: no 1 (X = 1)"


def test_a_function_that_raises_fails_the_change_in_strict_mode() -> None:
    registry = Registry().with_function(Function("f", _fails_at_1))
    with pytest.raises(EvaluationProblem, match="rule r"):
        evaluate_text(APPLIED, Settings(registry=registry, strict=True))


def test_a_function_works_in_comparisons_and_inside_aggregates() -> None:
    assert with_function(lambda x: x % 2 == 0, "p(1) . p(2) . q(X) :- p(X), func:f(X) = true .").facts() == [
        "q(2)"
    ]
    text = "p(1) . p(2) . q(S) :- AGGREGATE(p(X), Y := func:f(X)) WITH SUM(Y) AS S ."
    assert with_function(lambda x: x * 10, text).facts() == ["q(30)"]


def test_a_vectorised_function_gets_arrow_arrays() -> None:
    def double(values: pa.Array) -> pa.Array:
        assert isinstance(values, pa.Array)
        return pc.multiply(values, 2)

    assert with_function(double, APPLIED, vectorised=True).facts() == ["q(1, 2)", "q(2, 4)"]


def test_a_vectorised_function_that_raises_drops_the_binding() -> None:
    def broken(values: pa.Array) -> pa.Array:
        raise RuntimeError(len(values))

    evaluated = with_function(broken, APPLIED, vectorised=True)
    assert evaluated.facts() == []
    dropped = evaluated.dropped("r")
    assert dropped is not None
    assert dropped.count == 2


@pytest.mark.parametrize("result", [None, [None], pa.array([None], pa.int64()), np.array([np.nan]), [[1]]])
def test_a_vectorised_function_without_a_value_drops_the_binding(result: object) -> None:
    evaluated = with_function(lambda _: result, APPLIED, vectorised=True)
    assert evaluated.facts() == []
    dropped = evaluated.dropped("r")
    assert dropped is not None
    assert dropped.count == 2


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (pa.array([1, 2]), "2 values"),
        (np.array([], np.int64), "0 values"),
        ([1, 2], "2 values"),
        (np.array([[1]]), "an array of shape (1, 1)"),
        (np.int64(5), "a int64"),
        (pa.scalar(5), "a Int64Scalar"),
        (5, "a int"),
        ("t", "a str"),
    ],
)
def test_a_vectorised_function_without_an_array_of_that_length_ends_the_work(
    result: object, shown: str
) -> None:
    with pytest.raises(EvaluationProblem) as caught:
        with_function(lambda _: result, APPLIED, vectorised=True)
    assert [d.code for d in caught.value.diagnostics] == ["E003"]
    assert f"func:f gave {shown} for 1 row" in str(caught.value)


@pytest.mark.parametrize("term", ["_:b", '"t"@en', '"x"^^<http://x/y>', '"x"^^xsd:integer'])
def test_a_term_that_arrow_has_no_type_for_drops_the_binding(term: str) -> None:
    text = f"p({term}) . r: q(Y) :- p(X), Y := func:f(X) ."
    dropped = with_function(lambda values: values, text, vectorised=True).dropped("r")
    assert dropped is not None
    assert dropped.example.startswith("f is vectorised, and Arrow has no type for ")


FOLDED = "v(a, 3) . v(a, 1) . v(a, 2) . v(b, 5) . r: q(X, Y) :- AGGREGATE(v(X, V)) ON X WITH AGG(V) AS Y ."


def test_a_registered_aggregate_gets_the_values_of_a_group_in_the_total_order() -> None:
    assert with_fold(lambda values: "-".join(map(str, values)), FOLDED).facts() == [
        'q(a, "1-2-3")',
        'q(b, "5")',
    ]


def test_a_vectorised_aggregate_gets_an_arrow_array() -> None:
    assert with_fold(pc.max, FOLDED, vectorised=True).facts() == ["q(a, 3)", "q(b, 5)"]


@pytest.mark.parametrize(
    "call",
    [
        pc.max,
        np.max,
        lambda values: values[-1:],
        lambda values: [values[len(values) - 1].as_py()],
        lambda values: np.array(values)[-1:],
        lambda values: values.to_pylist()[-1],
    ],
    ids=["scalar", "numpy scalar", "array", "list", "numpy array", "value"],
)
def test_a_vectorised_aggregate_returns_a_value_or_an_array_of_one(call: Callable[..., object]) -> None:
    assert with_fold(call, FOLDED, vectorised=True).facts() == ["q(a, 3)", "q(b, 5)"]


@pytest.mark.parametrize(("count", "shown"), [(0, "0 values"), (2, "2 values")])
def test_a_vectorised_aggregate_with_another_number_of_values_ends_the_work(count: int, shown: str) -> None:
    with pytest.raises(EvaluationProblem, match=f"E003: AGG gave {shown} for a group"):
        with_fold(lambda _: [1] * count, FOLDED, vectorised=True)


def test_an_integer_that_meets_a_double_in_an_arrow_array_is_its_nearest_double() -> None:
    text = "v(9007199254740993) . v(0.5) . r: q(Y) :- AGGREGATE(v(V)) WITH AGG(V) AS Y ."
    found = with_fold(lambda values: f"{values.type} {values[1]}", text, vectorised=True)
    assert found.facts() == ['q("double 9007199254740992.0")']


def test_values_of_several_kinds_make_no_arrow_array() -> None:
    text = 'v(1) . v("t") . r: q(Y) :- AGGREGATE(v(V)) WITH AGG(V) AS Y .'
    dropped = with_fold(len, text, vectorised=True).dropped("r")
    assert dropped is not None
    assert dropped.example == "AGG is vectorised, and Arrow has no type for values of several kinds"


def test_distinct_goes_for_registered_aggregates() -> None:
    text = "v(a, 1) . v(b, 1) . v(c, 2) . q(Y) :- AGGREGATE(v(X, V)) WITH AGG(DISTINCT V) AS Y ."
    assert with_fold(len, text).facts() == ["q(2)"]


@pytest.mark.parametrize("result", [None, float("nan"), [1]])
def test_an_aggregate_with_a_bad_result_drops_its_group(result: object) -> None:
    evaluated = with_fold(lambda values: result if len(values) > 1 else 0, FOLDED)
    assert evaluated.facts() == ["q(b, 0)"]
    dropped = evaluated.dropped("r")
    assert dropped is not None
    assert dropped.count == 1


def test_an_aggregate_that_raises_drops_its_group() -> None:
    assert with_fold(lambda values: 1 // (len(values) - 1), FOLDED).facts() == ["q(a, 0)"]
