"""Functions on text and dates a column at a time give the very terms of the definition."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zodiacedge.engine.embedded.expressions.host_functions import HostFunction
from zodiacedge.engine.embedded.expressions.text_vectorised import compute_columns
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.engine.semantics.expressions import evaluate
from zodiacedge.language.ast import Call
from zodiacedge.terms import (
    IRI,
    BlankNode,
    Literal,
    Term,
    boolean,
    calendar_date,
    date_time,
    decimal,
    double,
    integer,
    string,
)

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.text("abAB", max_size=4),
    st.sampled_from(["ß", "ΑΣ", "İ", "ﬁ", "12", "-7", "+7", "1.5", "-0.0", "1e3", "1.5E-7", "1.", "99" * 40]),
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
)
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(  # noqa: DTZ001 - the zone follows
    lambda moment: date_time(moment.replace(tzinfo=UTC))
)
DATES = st.dates().map(calendar_date)
TERMS: st.SearchStrategy[Term] = st.one_of(
    TEXTS.map(string),
    st.builds(string, TEXTS, st.sampled_from(["de", "en"])),
    st.integers(-9, 9).map(integer),
    st.floats(allow_nan=False, allow_infinity=False).map(double),
    st.floats(-9, 9).map(decimal),
    st.booleans().map(boolean),
    MOMENTS,
    DATES,
    st.sampled_from([IRI("http://a/B"), BlankNode("b"), Literal("x", "http://a/type")]),
)
SMALL = st.integers(-3, 7).map(integer)
PLAIN = TEXTS.map(string)
ARGUMENTS = {
    "concat": (PLAIN, PLAIN, PLAIN),
    "strlen": (PLAIN,),
    "substr": (PLAIN, SMALL, SMALL),
    "lower": (PLAIN,),
    "upper": (PLAIN,),
    "contains": (PLAIN, PLAIN),
    "startswith": (PLAIN, PLAIN),
    "endswith": (PLAIN, PLAIN),
    "replace": (PLAIN, PLAIN, PLAIN),
    "str": (PLAIN,),
    "num": (PLAIN,),
    "isiri": (PLAIN,),
    "isliteral": (PLAIN,),
    "year": (MOMENTS,),
    "month": (DATES,),
    "day": (DATES,),
    "hours": (MOMENTS,),
    "minutes": (MOMENTS,),
    "seconds": (MOMENTS,),
}


def defined(function: str, args: tuple[Term, ...]) -> Term | None:
    try:
        return evaluate(Call(function, args, registered=False), {}, Registry())
    except NoValue:
        return None


@pytest.mark.parametrize("function", ARGUMENTS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_columns_give_what_the_definition_gives(function: str, data: st.DataObject) -> None:
    kinds = ARGUMENTS[function]
    usual = st.tuples(*kinds)
    anything = st.tuples(*(st.one_of(kind, TERMS) for kind in kinds))
    rows = data.draw(st.lists(st.one_of(usual, anything), min_size=1, max_size=12))
    dictionary = Dictionary()
    asked = np.array([[dictionary.encode(term) for term in row] for row in rows], np.int32)
    taken, results = compute_columns(function, asked, dictionary)
    found = [dictionary.decode(n) if n >= 0 else None for n in results.tolist()]
    expected = [defined(function, row) for row, here in zip(rows, taken.tolist(), strict=True) if here]
    assert found == expected


@pytest.mark.parametrize("function", ARGUMENTS)
def test_usual_arguments_are_taken(function: str) -> None:
    terms: dict[int, Term] = {
        id(PLAIN): string("12"),
        id(SMALL): integer(2),
        id(MOMENTS): date_time(NOON),
        id(DATES): calendar_date(NOON.date()),
    }
    dictionary = Dictionary()
    row = [dictionary.encode(terms[id(kind)]) for kind in ARGUMENTS[function]]
    taken, results = compute_columns(function, np.array([row], np.int32), dictionary)
    assert taken.tolist() == [True]
    assert results[0] >= 0


NOON = datetime(2024, 2, 29, 12, 30, 15, 250, tzinfo=UTC)


def test_many_rows_of_all_kinds_through_the_host() -> None:
    dictionary = Dictionary()
    rows = [(string(f"t{n}", "de" if n % 7 == 0 else ""), string(str(n % 10))) for n in range(1000)]
    rows.append((integer(5), string("x")))
    function = HostFunction("concat", 2, registered=False)
    function.wanted.insert(np.array([[dictionary.encode(t) for t in row] for row in rows], np.int32))
    function.compute(dictionary, Registry())
    found = {tuple(row[:2]): row[2] for row in function.known.rows.tolist()}
    for row in rows:
        result = found[tuple(dictionary.encode(term) for term in row)]
        assert (dictionary.decode(result) if result >= 0 else None) == defined("concat", row)
