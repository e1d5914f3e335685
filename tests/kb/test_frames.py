"""Facts from data frames and answers as data frames, and what is none of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import zodiacedge as ze
from zodiacedge.errors import LoadProblem, UsageProblem

if TYPE_CHECKING:
    from zodiacedge.kb.transaction import Facts

COLUMNS = {"a": [1, 2], "b": ["x", "y"]}


@pytest.mark.parametrize(
    "given",
    [pa.table(COLUMNS), pa.record_batch(COLUMNS), pl.DataFrame(COLUMNS), pd.DataFrame(COLUMNS)],
    ids=["table", "batch", "polars", "pandas"],
)
def test_facts_come_from_any_frame(given: object) -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_facts(cast("Facts", given), "p")
    assert list(kb.query("?- p(X, Y) .")) == [(1, "x"), (2, "y")]


@pytest.mark.parametrize(
    "given",
    [pa.table(COLUMNS), pl.DataFrame(COLUMNS), pd.DataFrame(COLUMNS)],
    ids=["table", "polars", "pandas"],
)
def test_a_table_without_a_relation_is_refused(given: object) -> None:
    with pytest.raises(
        LoadProblem, match=r"I023: a \w+ does not say which relation(.|\n)*relation='reading'"
    ):
        ze.open().change().add_facts(cast("Facts", given))
    with pytest.raises(LoadProblem, match="I023"):
        ze.open().change().remove_facts(cast("Facts", given))


def test_the_index_of_pandas_is_no_column() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    kb = ze.open()
    with kb.change() as c:
        c.add_facts(frame[frame.a > 1], "p")
    assert list(kb.query("?- p(X, Y) .")) == [(2, 4)]
    with pytest.raises(
        LoadProblem, match=r"I011: the index a of the data frame is no column(.|\n)*reset_index"
    ):
        kb.change().add_facts(frame.set_index("a"), "p")


@pytest.mark.parametrize(
    "empty",
    [
        pd.DataFrame(columns=["a", "b"]),
        pd.DataFrame(),
        pl.DataFrame({"a": [], "b": []}),
        pa.table({"a": pa.nulls(0)}),
    ],
    ids=["pandas", "nothing", "polars", "arrow"],
)
def test_an_empty_table_adds_nothing(empty: object) -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_facts(cast("Facts", empty), "p")
    assert kb.explicit == frozenset()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"a": [1, "x"]}), "I011: a DataFrame cannot be read as an Arrow table: .*column a"),
        (pd.DataFrame({"a": [[1]]}), "I011: .*the column a is of type list"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "I011: two columns of the table are called a"),
        (
            pa.Table.from_arrays([pa.array([1])] * 2, ["a", "a"]),
            "I011: two columns of the table are called a",
        ),
        (pd.DataFrame({"a": [1.0, None]}), r"I013: row 2 is no fact: column a: null\n.*dropna"),
        (
            pl.DataFrame({"a": [None, 1, None]}),
            r"I013: row 1 is no fact: column a: null \(and 1 more rows?\)",
        ),
        (pl.DataFrame({"a": [float("nan")]}), "I013: row 1 is no fact: column a: nan is not a finite number"),
        (pl.LazyFrame({"a": [1]}), r"I011: a LazyFrame cannot(.|\n)*collect\(\)"),
        (pl.Series([1]), r"I011: a Series cannot(.|\n)*to_frame\(\)"),
        (pd.Series([1]), r"I011: a Series cannot(.|\n)*to_frame\(\)"),
    ],
)
def test_a_table_whose_rows_are_no_facts_is_refused_with_words(table: object, message: str) -> None:
    with pytest.raises(LoadProblem, match=message):
        ze.open().change().add_facts(cast("Facts", table), "p")


def test_a_column_that_stands_twice_gets_another_name() -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_facts("p(1) .")
    answers = kb.query("ans(X, X, 1) :- p(X) .")
    assert answers.columns == ("X", "X", "1")
    assert answers.to_polars().columns == ["X", "X_2", "1"]
    assert list(answers.to_pandas().columns) == ["X", "X_2", "1"]


@pytest.mark.parametrize("wrong", [None, 5, b"p(1) ."])
def test_what_is_no_text_is_refused_with_words(wrong: object) -> None:
    kb = ze.open()
    text = cast("str", wrong)
    for call in (kb.query, kb.prepare, kb.change().add_rules, kb.change().remove_rules):
        with pytest.raises(UsageProblem, match="U013"):
            call(text)


@pytest.mark.parametrize("wrong", [None, 5, b"p", {"a": [1]}, ze.Fact("p", ())])
def test_what_is_no_facts_is_refused_with_words(wrong: object) -> None:
    with pytest.raises(UsageProblem, match="U013"):
        ze.open().change().add_facts(cast("Facts", wrong))


@pytest.mark.parametrize(
    ("facts", "relation", "message"),
    [
        ([{"a": 1}], "p", "I013: row 1 is no fact: it is a dict"),
        (("reading", 1, 2), "", r"I013: row 1 is no fact: it is 'reading'\n.*give a list of rows"),
        ([(1,), {1, 2}], "p", "I013: row 2 is no fact: it is a set, which has no order"),
        ([(1,), (1, 2)], "p", "I013: row 2 is no fact: it has 2 values where row 1 has 1"),
        ([(1, 2)], "", r"I013: row 1 is no fact: a predicate is a name, not 1\n.*relation='p'"),
        ([(1, 2)], None, "U013: expected the name of a relation, found None"),
        ("p(1) .", "q", "U013: a program text names its relations itself"),
    ],
)
def test_rows_that_are_no_facts_are_refused_with_words(facts: Facts, relation: str, message: str) -> None:
    with pytest.raises(ze.ZodiacError, match=message):
        ze.open().change().add_facts(facts, relation)


def test_two_arities_of_a_predicate_are_refused() -> None:
    kb = ze.open()
    with pytest.raises(ze.ZodiacError, match="C011: p has 3 arguments"), kb.change() as c:
        c.add_facts([("p", 1, 2), ("p", 1, 2, 3)])
    assert kb.version == 0
