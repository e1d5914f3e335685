"""Vectorised functions and aggregates: Arrow arrays in few calls, and what the definition gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression

import zodiacedge as ze
from strategies import evaluate_text
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.expressions import host_functions
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.engine.registry import AggregateFunction, Function, Registry
from zodiacedge.errors import EvaluationProblem
from zodiacedge.terms import iri

if TYPE_CHECKING:
    from collections.abc import Callable

    from strategies import Evaluated

    Call = Callable[..., object]

APPLIED = "r: q(X, Y) :- p(X), Y := func:f(X) ."
FOLDED = "r: q(X, Y) :- AGGREGATE(v(X, I, V)) ON X WITH AGG(V) AS Y ."
DIGITS = " ".join(f"d({n}) ." for n in range(10))
# Every number below 100,000, made where it costs nothing.
MANY = f"""{DIGITS} p(N) :- d(A), d(B), d(C), d(D), d(E),
    N := A * 10000 + B * 1000 + C * 100 + D * 10 + E ."""


class Counted:
    """A function that remembers how many rows each call had."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.rows: list[int] = []

    def __call__(self, *columns: pa.Array) -> object:
        self.rows.append(len(columns[0]))
        return self.call(*columns)


def registered(call: Call, *, strict: bool = False) -> Settings:
    registry = Registry().with_function(Function("f", call, vectorised=True))
    return Settings(
        registry=registry.with_fold(AggregateFunction("AGG", call, vectorised=True)), strict=strict
    )


def on_embedded(call: Call, text: str, *, strict: bool = False) -> Evaluated:
    return evaluate_text(text, registered(call, strict=strict), EmbeddedEngine())


def on_reference(call: Call, text: str) -> Evaluated:
    return evaluate_text(text, registered(call), ReferenceEngine())


def counts(evaluated: Evaluated) -> dict[str, int]:
    return {key: dropped.count for key, dropped in evaluated.result.dropped.items()}


def same(call: Call, text: str) -> Evaluated:
    """Evaluate on both engines, which must agree in everything, and return what they found."""
    expected = on_reference(call, text)
    got = on_embedded(call, text)
    assert got.facts() == expected.facts()
    assert counts(got) == counts(expected)
    return got


def facts(name: str, rows: list[str]) -> str:
    return " ".join(f"{name}({row}) ." for row in rows)


def show(*columns: pa.Array) -> list[str]:
    """Tell the Arrow type and the value of every argument."""
    return [
        " ".join(f"{column.type}:{column[n].as_py()!r}" for column in columns) for n in range(len(columns[0]))
    ]


# A model in a rule.


def normal_and_odd() -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Return readings of wind speed and power as they should be, and some that are not."""
    chance = np.random.default_rng(7)
    wind = chance.normal(12.0, 2.0, 400)
    power = 50.0 * wind + chance.normal(0.0, 5.0, 400)
    return list(zip(wind.tolist(), power.tolist(), strict=True)), [
        (60.0, -900.0),
        (60.0, 5000.0),
        (-20.0, -900.0),
    ]


def test_an_isolation_forest_finds_odd_readings_in_one_call() -> None:
    usual, odd = normal_and_odd()
    model = IsolationForest(n_estimators=30, contamination=0.02, random_state=0).fit(np.array(usual))

    def is_odd(wind: pa.Array, power: pa.Array) -> object:
        return model.predict(np.column_stack([wind, power])) == -1

    readings = [f"t{n}, {wind!r}, {power!r}" for n, (wind, power) in enumerate(usual[:20] + odd)]
    text = facts("reads", readings) + "odd(T) :- reads(T, W, P), func:f(W, P) = true ."
    counted = Counted(is_odd)
    found = on_embedded(counted, text).facts()
    assert counted.rows == [23]
    assert found == on_reference(is_odd, text).facts()
    assert {"odd(t20)", "odd(t21)", "odd(t22)"} <= set(found)
    assert len(found) < 6


def test_a_regression_predicts_the_same_on_both_engines() -> None:
    usual, _ = normal_and_odd()
    wind, power = np.array(usual).T
    model = LinearRegression().fit(wind[:, None], power)

    def expected(wind: pa.Array) -> pa.Array:
        return pc.round(model.predict(np.array(wind)[:, None]), 3)

    text = facts("p", [repr(w) for w, _ in usual[:50]]) + APPLIED
    counted = Counted(expected)
    found = on_embedded(counted, text)
    assert counted.rows == [50]
    assert found.facts() == on_reference(expected, text).facts()
    assert len(found.facts()) == 50


def test_a_model_in_a_knowledge_base() -> None:
    kb = ze.open()
    model = LinearRegression().fit([[0.0], [1.0]], [10.0, 30.0])
    kb.function(lambda x: model.predict(np.array(x)[:, None]).round(6), name="expected", vectorised=True)
    with kb.change() as change:
        change.add_rules("low(T) :- reads(T, X, Y), Y < func:expected(X) - 1 .")
        change.add_rules("reads(a, 0.5, 20.0) . reads(b, 0.5, 18.0) .")
    assert [str(row) for row in kb.query("?- low(T) .").rows] == [str((iri("b"),))]


# Batches.


def test_more_rows_than_a_batch_go_in_few_calls() -> None:
    counted = Counted(lambda values: pc.multiply(values, 2))
    found = on_embedded(counted, MANY + APPLIED)
    assert sum(counted.rows) == 100_000
    assert max(counted.rows) <= host_functions.BATCH
    assert len(counted.rows) <= 4
    assert found.answer("?- q(99999, Y) .") == ["199998"]


def test_what_comes_before_an_answer_of_the_host_does_not_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_functions, "_ROOM", 8)
    found = on_embedded(lambda values: values, facts("p", [str(n) for n in range(50)]) + APPLIED)
    assert sum(found.result.derived_counts().values()) == 50


def test_a_fold_counts_what_the_host_knew_before_once() -> None:
    text = """p("a") . v("a") . v("b") . x(Y) :- p(X), Y := upper(X) .
        r: q(N) :- AGGREGATE(x(Z), v(X), Y := upper(X)) WITH COUNT(Y) AS N ."""
    assert on_embedded(len, text).facts("q") == ["q(2)"]


def test_a_batch_has_a_bounded_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_functions, "BATCH", 8)
    counted = Counted(lambda values: values)
    on_embedded(counted, facts("p", [str(n) for n in range(20)]) + APPLIED)
    assert counted.rows == [8, 8, 4]


def test_numbers_go_to_arrow_and_back_without_a_term_per_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a term was made")

    def call(whole: pa.Array, real: pa.Array) -> pa.Array:
        monkeypatch.setattr(Dictionary, "decode", refuse)
        monkeypatch.setattr(Dictionary, "encode", refuse)
        return pc.add(whole, real)

    found = on_embedded(call, MANY + "q(Y) :- p(X), Y := func:f(X, X / 2) .")
    monkeypatch.undo()
    assert sum(found.result.derived_counts().values()) == 200_000


TERMS = [
    "1", "2", "-7", "9223372036854775807", "1.5", "2.0", "1e3", '"2.5"^^xsd:float', "true", "false",
    '"t"', '""', '"ü"', "<http://x/i>", "t", '"2026-01-01T00:00:00Z"^^xsd:dateTime',
    '"0001-01-01T00:00:00Z"^^xsd:dateTime', '"9999-12-31T23:59:59.999999Z"^^xsd:dateTime',
    '"2024-02-29"^^xsd:date', '"0001-01-01"^^xsd:date', '"2024-02-29+01:00"^^xsd:date',
    "_:b", '"t"@en', '"x"^^<http://x/y>', '"x"^^xsd:integer',
]  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(TERMS), st.sampled_from(TERMS)), min_size=1, unique=True),
    st.integers(1, 8),
)
def test_terms_of_all_kinds_are_the_same_in_batches_of_any_size(
    pairs: list[tuple[str, str]], size: int
) -> None:
    text = facts("e", [", ".join(pair) for pair in pairs])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_functions, "BATCH", size)
        same(show, text + "r: q(X, Z, Y) :- e(X, Z), Y := func:f(X, Z) .")


def test_the_rows_of_a_call_have_the_same_types() -> None:
    counted = Counted(show)
    found = on_embedded(counted, facts("p", ["1", "2", "1.5", "2e0", "true", '"t"', "<i>", "_:b"]) + APPLIED)
    assert sorted(counted.rows) == [1, 2, 2, 2]
    assert found.facts() == [
        'q("t", "string:\'t\'")',
        'q(1, "int64:1")',
        'q(1.5, "double:1.5")',
        'q(2, "int64:2")',
        'q(2.0E0, "double:2.0")',
        "q(i, \"string:'i'\")",
        'q(true, "bool:True")',
    ]


def test_a_dateTime_is_a_timestamp_in_utc() -> None:  # noqa: N802 - that is its name
    text = 'p("2026-01-01T12:30:00.25Z"^^xsd:dateTime) .' + APPLIED

    def later(moments: pa.Array) -> pa.Array:
        assert moments.type == pa.timestamp("us", tz="UTC")
        return pc.add(moments, pa.scalar(1_000_000, pa.duration("us")))

    (fact,) = same(later, text).facts()
    assert fact.endswith('"2026-01-01T12:30:01.25Z"^^xsd:dateTime)')


def test_a_date_is_a_date() -> None:
    text = 'p("2024-02-29"^^xsd:date) .' + APPLIED

    def later(days: pa.Array) -> pa.Array:
        assert days.type == pa.date32()
        return pc.add(days.cast(pa.int32()), pa.scalar(1, pa.int32())).cast(pa.date32())

    (fact,) = same(later, text).facts()
    assert fact.endswith('"2024-03-01"^^xsd:date)')


def test_a_function_without_arguments() -> None:
    assert same(lambda: [7], "p(1) . r: q(X, Y) :- p(X), Y := func:f() .").facts() == ["q(1, 7)"]


# Results. Each form is asked for rows 0, 1, 2 at once, and one by one on the reference engine.

MOMENTS = ["2026-01-01T00:00:00", "2026-01-01T00:00:00.999999999", "NaT"]
FORMS: dict[str, tuple[Call, list[str]]] = {
    "int32": (lambda at: pa.array([1, None, -3], pa.int32()).take(at), ["1", "-3"]),
    "uint64": (lambda at: np.array([1, 2**63, 3], np.uint64)[at], ["1", "3"]),
    "float32": (lambda at: pa.array([0.5, None, 2], pa.float32()).take(at), ["5.0E-1", "2.0E0"]),
    "half": (lambda at: np.array([0.5, np.nan, 2], np.float16)[at], ["5.0E-1", "2.0E0"]),
    "zeros": (lambda at: np.array([0.0, -0.0, np.inf])[at], ["0.0E0", "0.0E0"]),
    "foreign": (lambda at: np.array([1.5, 2.5, np.nan], ">f8")[at], ["1.5E0", "2.5E0"]),
    "wide": (lambda at: np.array([1.5, 2.5, np.nan], np.longdouble)[at], ["1.5E0", "2.5E0"]),
    "masked": (lambda at: np.ma.array([1, 2, 3], mask=[False, True, False])[at], ["1", "3"]),
    "strided": (lambda at: np.array([[1, 9], [2, 9], [3, 9]])[at][:, 0], ["1", "2", "3"]),
    "complex": (lambda at: np.array([1j, 2j, 3j])[at], []),
    "bool": (lambda at: np.array([True, False, True])[at], ["true", "false", "true"]),
    "text": (lambda at: pa.array(["a", None, "a"]).take(at), ['"a"', '"a"']),
    "numpy text": (lambda at: np.array(["a", "", "c"])[at], ['"a"', '""', '"c"']),
    "categories": (lambda at: pa.array(["a", None, "a"]).dictionary_encode().take(at), ['"a"', '"a"']),
    "chunks": (lambda at: pa.chunked_array([pa.array([1]), pa.array([2, 3])]).take(at), ["1", "2", "3"]),
    "moments": (
        lambda at: np.array(MOMENTS, "datetime64[ns]")[at],
        ['"2026-01-01T00:00:00Z"^^xsd:dateTime', '"2026-01-01T00:00:00.999999Z"^^xsd:dateTime'],
    ),
    "dates": (
        lambda at: pa.array([0, None, 1], pa.int32()).cast(pa.date32()).take(at),
        ['"1970-01-01"^^xsd:date', '"1970-01-02"^^xsd:date'],
    ),
    "objects": (lambda at: np.array([1, 2.5, "c"], object)[at], ["1", "2.5E0", '"c"']),
    "list": (lambda at: [[1, 2.5, None][n] for n in at.to_pylist()], ["1", "2.5E0"]),
    "tuple": (lambda at: tuple([1, True, [1]][n] for n in at.to_pylist()), ["1", "true"]),
    "terms": (lambda at: [[iri("i"), iri("j"), object()][n] for n in at.to_pylist()], ["i", "j"]),
    "series": (lambda at: pd.Series([1.5, np.nan, 3.5])[np.array(at)], ["1.5E0", "3.5E0"]),
    "surrogates": (lambda at: [["a", "\ud800", "c"][n] for n in at.to_pylist()], ['"a"', '"c"']),
    "lists": (lambda at: pa.array([[1], [2], [3]]).take(at), []),
}


@pytest.mark.parametrize("form", FORMS)
def test_results_of_all_forms(form: str) -> None:
    call, expected = FORMS[form]
    counted = Counted(call)
    text = facts("p", ["0", "1", "2"]) + APPLIED
    got = on_embedded(counted, text)
    assert counted.rows[0] == 3
    assert [fact.split(", ")[1].removesuffix(")") for fact in got.facts()] == expected
    same(call, text)


def test_there_is_one_zero() -> None:
    text = facts("p", ["0", "1"]) + APPLIED + "z(X, Y) :- q(X, A), q(Y, A), X < Y ."
    assert same(lambda at: np.array([0.0, -0.0])[at], text).facts("z") == ["z(0, 1)"]


# Errors.


def fails_below_zero(values: pa.Array) -> pa.Array:
    if pc.any(pc.less(values, 0)).as_py():
        raise ValueError("below zero")
    return values


def null_at_1(values: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(values, 1), None, values)


def test_of_a_batch_that_fails_only_the_rows_to_blame_are_dropped() -> None:
    counted = Counted(fails_below_zero)
    numbers = [*range(-2, 0), *range(500)]
    text = facts("p", [str(n) for n in numbers]) + APPLIED
    found = on_embedded(counted, text)
    assert len(found.facts()) == 500
    dropped = found.dropped("r")
    assert dropped is not None
    assert dropped.count == 2
    assert len(counted.rows) < 50
    small = facts("p", ["-2", "-1", "0", "1", "2"]) + APPLIED
    assert same(fails_below_zero, small).facts() == ["q(0, 0)", "q(1, 1)", "q(2, 2)"]


@pytest.mark.parametrize("call", [lambda values: None if 1 in values.to_pylist() else values, null_at_1])
def test_no_result_is_an_evaluation_error_of_the_rows_that_have_none(call: Call) -> None:
    assert same(call, facts("p", ["0", "1", "2"]) + APPLIED).facts() == ["q(0, 0)", "q(2, 2)"]


def test_an_error_in_strict_mode_fails_the_change() -> None:
    with pytest.raises(EvaluationProblem, match="E002: rule r drops 1 bindings: f failed: ValueError: below"):
        on_embedded(fails_below_zero, facts("p", ["-1", "1"]) + APPLIED, strict=True)


def test_running_out_of_memory_ends_the_work_at_once() -> None:
    def call(_: pa.Array) -> pa.Array:
        raise MemoryError

    counted = Counted(call)
    with pytest.raises(MemoryError):
        on_embedded(counted, facts("p", ["1", "2"]) + APPLIED)
    assert counted.rows == [2]


@pytest.mark.parametrize(
    ("result", "shown"),
    [([1, 2], "2 values"), (pc.sum, "a Int64Scalar"), (np.zeros((3, 1)), r"an array of .*")],
)
def test_a_result_of_another_length_ends_the_work(result: object, shown: str) -> None:
    with pytest.raises(EvaluationProblem, match=f"E003: func:f gave {shown} for 3 rows"):
        on_embedded(
            lambda values: result(values) if callable(result) else result,
            facts("p", ["1", "2", "3"]) + APPLIED,
        )


@pytest.mark.parametrize("engine", ["embedded", "reference"])
def test_a_result_of_another_length_leaves_everything_as_it_was(engine: str) -> None:
    kb = ze.open(engine=engine)
    kb.function(lambda values: [*values.to_pylist(), 0], name="f", vectorised=True)
    with kb.change() as change:
        change.add_rules("p(1) . p(2) .")
    before = set(kb.facts())
    with pytest.raises(ze.ZodiacError, match="E003"), kb.change() as change:
        change.add_rules(APPLIED)
    with pytest.raises(ze.ZodiacError, match="E003"):
        kb.query("?- p(X), Y := func:f(X) .")
    assert set(kb.facts()) == before
    kb.function(lambda values: values, name="f", vectorised=True)
    assert len(kb.query("?- p(X), Y := func:f(X) .").rows) == 2


# Aggregates.


def rows(groups: dict[str, list[str]]) -> str:
    return facts(
        "v", [f"{x}, {n}, {value}" for x, values in groups.items() for n, value in enumerate(values)]
    )


GROUPS = {
    "integers": ["3", "1", "2", "2"],
    "doubles": ["2.5e0", "-1e0", "1e300"],
    "reals": ["2.5e0", "2.5", '"2.5"^^xsd:float', "1.0"],
    "numbers": ["3", "2.5", "9007199254740993", "9007199254740992e0"],
    "truths": ["true", "false", "true"],
    "dates": ['"2026-01-01"^^xsd:date', '"1900-01-01"^^xsd:date'],
    "moments": ['"2026-01-01T00:00:00Z"^^xsd:dateTime', '"1900-01-01T00:00:00Z"^^xsd:dateTime'],
    "texts": ['"b"', '"a"', '"ü"', "<c>", "<a>"],
    "mixed": ["1", '"a"'],
    "nodes": ["_:b"],
}


def test_a_group_is_an_arrow_array_in_the_total_order() -> None:
    found = same(lambda values: f"{values.type} {values.to_pylist()}", rows(GROUPS) + FOLDED)
    assert 'q(integers, "int64 [1, 2, 2, 3]")' in found.facts()
    assert 'q(doubles, "double [-1.0, 2.5, 1e+300]")' in found.facts()
    assert 'q(truths, "bool [False, True, True]")' in found.facts()
    assert "q(texts, \"string ['a', 'b', 'ü', 'a', 'c']\")" in found.facts()
    dropped = found.dropped("r")
    assert dropped is not None
    assert dropped.count == 2


def test_an_aggregate_uses_numpy_on_the_array() -> None:
    text = rows({"a": ["1.0", "2.0", "4.0"], "b": ["3", "27"]}) + FOLDED
    found = same(lambda values: np.exp(np.mean(np.log(values))).round(6), text)
    assert found.facts() == ["q(a, 2.0E0)", "q(b, 9.0E0)"]


def test_distinct_values_of_a_group() -> None:
    text = rows({"a": ["2", "1", "2"]}) + FOLDED.replace("AGG(V)", "AGG(DISTINCT V)")
    assert same(lambda values: str(values.to_pylist()), text).facts() == ['q(a, "[1, 2]")']


def test_the_values_of_a_group_go_to_arrow_without_a_term_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a term was made")

    def call(values: pa.Array) -> object:
        monkeypatch.setattr(Dictionary, "decode", refuse)
        return pc.sum(values)

    found = on_embedded(call, f"{DIGITS} q(Y) :- AGGREGATE(d(X)) WITH AGG(X) AS Y .")
    monkeypatch.undo()
    assert found.facts() == ["q(45)"]


def test_an_aggregate_that_fails_drops_its_group_and_says_why() -> None:
    text = rows({"a": ["-1", "2"], "b": ["1", "2"]}) + FOLDED
    found = same(lambda values: pc.sum(fails_below_zero(values)), text)
    assert found.facts() == ["q(b, 3)"]
    dropped = found.dropped("r")
    assert dropped is not None
    assert dropped.example == "AGG failed: ValueError: below zero (X = a)"


def test_an_aggregate_with_several_values_ends_the_work() -> None:
    with pytest.raises(EvaluationProblem, match="E003: AGG gave 2 values for a group"):
        on_embedded(lambda values: values, rows({"a": ["1", "2"]}) + FOLDED)
