"""The mapping of columns to terms, the same for every library of tables, and its inverse."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zodiacedge as ze
from zodiacedge.errors import ZodiacError
from zodiacedge.io.formats.column_mapping import ColumnMapping

ROWS: dict[str, list[Any]] = {
    "sensor": ["s1", "s 2", None],
    "value": [93.5, 20.0, 1.0],
    "label": ["kalt", "0", "x"],
}
MAPPING = {
    "sensor": ze.iri("http://farm/{sensor}"),
    "value": ...,
    "label": ze.literal("{label}", language="de"),
    "first": 0,
    "constant": ze.literal("5", "xsd:decimal"),
}


def facts_of(table: object, **columns: object) -> set[tuple[object, ...]]:
    kb = ze.open()
    with kb.change() as change:
        change.add_facts(table, "p", **columns)
    return {fact.args for fact in kb.facts()}


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, pd.DataFrame])
def test_every_library_gives_the_same_terms(make: Any) -> None:  # noqa: ANN401 - three kinds of tables
    de = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
    decimal = ze.literal("5.0", "xsd:decimal")
    assert facts_of(make(ROWS), **MAPPING) == {
        (ze.iri("http://farm/s1"), ze.literal("93.5", "xsd:double"), ze.Literal("kalt", de, "de"),
         ze.literal("s1"), decimal),
        (ze.iri("http://farm/s%202"), ze.literal("20", "xsd:double"), ze.Literal("0", de, "de"),
         ze.literal("s 2"), decimal),
    }  # fmt: skip


def test_rows_with_a_null_are_left_out_and_counted() -> None:
    kb = ze.open()
    with kb.change() as change:
        change.add_facts(pa.table(ROWS), "p", sensor=..., value=...)
    assert (change.loads[0].facts, change.loads[0].bad) == (2, 1)
    (found,) = change.report.warnings
    assert found.code == "W030"
    assert "1 row of the table of p" in found.message


def test_a_column_that_is_not_read_may_have_nulls() -> None:
    assert len(facts_of(pa.table(ROWS), value=...)) == 3


def test_values_of_other_types_are_written_into_a_template() -> None:
    table = pa.table(
        {"n": [7], "d": [date(2026, 5, 1)], "b": [True], "t": [datetime(2026, 5, 1, tzinfo=UTC)]}
    )
    (args,) = facts_of(table, name=ze.iri("x:{n}/{d}/{b}"), at=ze.literal("{t}"))
    assert args == (ze.iri("x:7/2026-05-01/true"), ze.literal("2026-05-01T00:00:00Z"))


@pytest.mark.parametrize(
    ("columns", "code", "words"),
    [
        ({"sensr": ...}, "I011", "did you mean sensor?"),
        ({"a": 7}, "I011", "no column 7"),
        ({"a": 3.5}, "U013", "which is no column"),
        ({"a": True}, "U013", "which is no column"),
        ({"a": ze.iri("{sensor}")}, "I013", "'s 2' is no IRI"),
    ],
)
def test_what_is_wrong_is_said_once(columns: dict[str, object], code: str, words: str) -> None:
    with pytest.raises(ZodiacError) as caught:
        facts_of(pa.table(ROWS), **columns)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert words in f"{found.message} {found.note}"


@pytest.mark.parametrize(
    ("values", "cure"),
    [
        ([{"x": 1}], "df.selectExpr('c.x')"),
        ([[1, 2]], "df.selectExpr('explode(c)')"),
        ([b"a"], "df.selectExpr('cast(c as string)')"),
    ],
)
def test_a_column_of_another_kind_has_a_cure(values: list[object], cure: str) -> None:
    with pytest.raises(ZodiacError) as caught:
        facts_of(pa.table({"c": values}), c=...)
    (found,) = caught.value.diagnostics
    assert found.code == "I011"
    assert cure in found.note


def test_columns_are_for_tables() -> None:
    kb = ze.open()
    with pytest.raises(ZodiacError, match="columns are named, and a list has none"):
        kb.change().add_facts([(1, 2)], "p", a=...)


def test_a_template_is_no_term() -> None:
    kb = ze.open()
    with pytest.raises(ZodiacError, match="is a template"):
        kb.change().add_facts([(ze.iri("http://farm/{sensor}"),)], "p")


@given(
    st.lists(st.text(min_size=1).filter(lambda text: text.isprintable() and not text.isspace()), min_size=1)
)
def test_a_table_comes_back_from_its_terms(texts: list[str]) -> None:
    table = pa.table({"s": texts, "n": range(len(texts))})
    mapping = ColumnMapping.of({"s": ze.iri("http://farm/{s}/x"), "t": ze.literal("{s}"), "n": ...})
    terms, dropped = mapping.apply(table)
    assert dropped == 0
    back = mapping.inverse(terms)
    assert back.column("s").to_pylist() == back.column("t").to_pylist() == texts
    assert back.column("n").to_pylist() == list(range(len(texts)))


def test_what_a_query_gives_can_be_given_back() -> None:
    kb = ze.open()
    with kb.change() as change:
        change.add_rules('p(a, "5.0"^^xsd:decimal) . p(b, "kalt"@de) .')
    with kb.change() as change:
        change.add_facts(kb.query("p(X, Y)"), "q")
        change.add_facts(kb.facts())
    assert {fact.args for fact in kb.facts() if fact.relation == "q"} == {
        fact.args for fact in kb.facts() if fact.relation == "p"
    }


def test_changed_facts_are_a_set_and_tables() -> None:
    kb = ze.open()
    with kb.change() as change:
        change.add_rules("alarm(S, V) :- reading(S, V), V > 80 . quiet(S) :- reading(S, V), V < 10 .")
        change.add_facts(pa.table(ROWS), "reading", s=ze.iri("http://farm/{sensor}"), v="value")
    inserted = change.report.inserted
    assert len(inserted) == 3
    assert inserted == frozenset(kb.facts())
    assert inserted("alarm", sensor=ze.iri("http://farm/{sensor}"), value=...).to_arrow().to_pylist() == [
        {"sensor": "s1", "value": 93.5}
    ]
    assert inserted("quiet").to_arrow().num_rows == 0
    assert change.report.deleted("alarm").to_polars().columns == ["c1", "c2"]
    with pytest.raises(ZodiacError, match="did you mean alarm"):
        inserted("alarn")


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, pd.DataFrame])
def test_one_step_gives_tables_of_the_kind_that_it_was_given(make: Any) -> None:  # noqa: ANN401 - as above
    edges = make({"a": ["x", "y"], "b": ["y", "z"]})
    rules = "path(X, Y) :- edge(X, Y) . path(X, Z) :- path(X, Y), edge(Y, Z) ."
    made = ze.materialize({"edge": edges}, rules)
    assert type(made["path"]) is type(edges)
    assert len(made.table("path", source=..., target=...)) == 3
    assert made.report.facts_added == 2


def test_the_name_of_a_table_is_refused() -> None:
    with pytest.raises(ZodiacError, match=r"found 'edges'\n.*spark\.table\('edges'\)"):
        ze.materialize({"edge": "edges"}, "path(X, Y) :- edge(X, Y) .")


def test_a_dataframe_is_asked_of_a_session_only() -> None:
    with pytest.raises(ZodiacError, match="expected a SparkSession, found 'local'"):
        ze.open().query("p(X)").to_spark("local")  # type: ignore[arg-type]


def test_tables_of_two_libraries_are_refused() -> None:
    with pytest.raises(ZodiacError, match="several libraries: pandas, polars"):
        ze.materialize({"a": pl.DataFrame({"a": [1]}), "b": pd.DataFrame({"a": [1]})}, "c(X) :- a(X), b(X) .")
