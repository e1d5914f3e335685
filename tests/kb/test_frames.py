"""Facts from data frames and answers as data frames, and what is none of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import zodiacedge as ze
from zodiacedge.errors import UsageProblem

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


@pytest.mark.parametrize("wrong", [None, 5])
def test_what_is_no_facts_is_refused_with_words(wrong: object) -> None:
    with pytest.raises(UsageProblem, match="U013"):
        ze.open().change().add_facts(cast("Facts", wrong))
