"""Terms: canonical forms, values, the total order, and the border to Python."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zodiacedge.errors import LoadProblem, UsageProblem
from zodiacedge.terms import (
    INTEGER_MAX,
    INTEGER_MIN,
    IRI,
    RDF_LANGSTRING,
    XSD,
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    XSD_STRING,
    BlankNode,
    Literal,
    Term,
    boolean,
    calendar_date,
    date_time,
    double,
    from_python,
    integer,
    iri,
    is_iri,
    is_number,
    literal,
    order_key,
    string,
    to_python,
    value_of,
)

# Canonical forms


@pytest.mark.parametrize(
    ("lexical", "datatype", "canonical"),
    [
        ("5", XSD_INTEGER, "5"),
        ("05", XSD_INTEGER, "5"),
        ("+5", XSD_INTEGER, "5"),
        ("-0", XSD_INTEGER, "0"),
        (" 5\n", XSD_INTEGER, "5"),
        ("9223372036854775807", XSD_INTEGER, "9223372036854775807"),
        ("-9223372036854775808", XSD_INTEGER, "-9223372036854775808"),
        ("0" * 30 + "7", XSD_INTEGER, "7"),
        ("0" * 5000 + "7", XSD_INTEGER, "7"),
        ("1.50", XSD_DECIMAL, "1.5"),
        ("5", XSD_DECIMAL, "5.0"),
        ("5.", XSD_DECIMAL, "5.0"),
        (".5", XSD_DECIMAL, "0.5"),
        ("-0.0", XSD_DECIMAL, "0.0"),
        ("+100.00", XSD_DECIMAL, "100.0"),
        ("0.0000001", XSD_DECIMAL, "0.0000001"),
        ("0.1000000000000000055", XSD_DECIMAL, "0.1"),
        ("5", XSD_DOUBLE, "5.0E0"),
        ("25.5", XSD_DOUBLE, "2.55E1"),
        ("1e2", XSD_DOUBLE, "1.0E2"),
        ("1e-7", XSD_DOUBLE, "1.0E-7"),
        ("-0.0", XSD_DOUBLE, "0.0E0"),
        ("1E400", XSD_DOUBLE, "1E400"),
        ("0.1", XSD_FLOAT, "1.0E-1"),
        ("1", XSD_BOOLEAN, "true"),
        ("0", XSD_BOOLEAN, "false"),
        (" true ", XSD_BOOLEAN, "true"),
        ("2024-02-29T12:30:00Z", XSD_DATETIME, "2024-02-29T12:30:00Z"),
        ("2024-02-29T12:30:00", XSD_DATETIME, "2024-02-29T12:30:00Z"),
        ("2024-02-29T12:30:00+02:00", XSD_DATETIME, "2024-02-29T10:30:00Z"),
        ("2024-02-29T23:30:00-02:00", XSD_DATETIME, "2024-03-01T01:30:00Z"),
        ("2024-02-29T12:30:00-00:00", XSD_DATETIME, "2024-02-29T12:30:00Z"),
        ("2024-12-31T24:00:00", XSD_DATETIME, "2025-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00.500", XSD_DATETIME, "2024-01-01T00:00:00.5Z"),
        ("2024-01-01T00:00:00.123456789", XSD_DATETIME, "2024-01-01T00:00:00.123457Z"),
        ("2024-01-01T00:00:59.9999999", XSD_DATETIME, "2024-01-01T00:01:00Z"),
        ("0999-01-01T00:00:00", XSD_DATETIME, "0999-01-01T00:00:00Z"),
        ("2024-02-29", XSD_DATE, "2024-02-29"),
        (" 2024-02-29Z\n", XSD_DATE, "2024-02-29"),
        ("0999-12-31+00:00", XSD_DATE, "0999-12-31"),
        ("9999-12-31-00:00", XSD_DATE, "9999-12-31"),
    ],
)
def test_a_literal_is_its_datatype_and_its_value(lexical: str, datatype: str, canonical: str) -> None:
    assert literal(lexical, datatype) == Literal(canonical, datatype)


@pytest.mark.parametrize(
    ("lexical", "datatype"),
    [
        ("", XSD_INTEGER),
        ("5.0", XSD_INTEGER),
        ("x", XSD_INTEGER),
        ("1_000", XSD_INTEGER),
        ("٥", XSD_INTEGER),
        ("9223372036854775808", XSD_INTEGER),
        ("-9223372036854775809", XSD_INTEGER),
        ("1e5", XSD_DECIMAL),
        ("1e400", XSD_DOUBLE),
        ("NaN", XSD_DOUBLE),
        ("INF", XSD_DOUBLE),
        ("-INF", XSD_FLOAT),
        ("0x1F", XSD_DOUBLE),
        ("yes", XSD_BOOLEAN),
        ("TRUE", XSD_BOOLEAN),
        ("2023-02-29T00:00:00", XSD_DATETIME),
        ("2024-01-01", XSD_DATETIME),
        ("2024-01-01T25:00:00", XSD_DATETIME),
        ("2024-01-01T24:00:01", XSD_DATETIME),
        ("2024-01-01T00:00:60", XSD_DATETIME),
        ("2024-01-01T00:00:00+15:00", XSD_DATETIME),
        ("2024-01-01T00:00:00+14:30", XSD_DATETIME),
        ("0000-01-01T00:00:00", XSD_DATETIME),
        ("-0001-01-01T00:00:00", XSD_DATETIME),
        ("12024-01-01T00:00:00", XSD_DATETIME),
        ("9999-12-31T24:00:00", XSD_DATETIME),
        ("9999-12-31T23:00:00-02:00", XSD_DATETIME),
        ("P1D", XSD + "duration"),
        ("2024-1-01", XSD_DATE),
        ("2023-02-29", XSD_DATE),
        ("0000-01-01", XSD_DATE),
        ("-2024-01-01", XSD_DATE),
        ("12024-01-01", XSD_DATE),
        ("20240101", XSD_DATE),
        ("2024-W01-1", XSD_DATE),
        ("2024-01-01T00:00:00", XSD_DATE),
        ("2024-01-01z", XSD_DATE),
        ("2024-01-01+02:00", XSD_DATE),
        ("2024-01-01-00:30", XSD_DATE),
        ("256", XSD + "unsignedByte"),
    ],
)
def test_a_form_that_its_datatype_does_not_allow_is_a_term_without_a_value(
    lexical: str, datatype: str
) -> None:
    term = literal(lexical, datatype)
    assert term == Literal(lexical, datatype)
    assert value_of(term) is None
    assert not is_number(term)
    assert to_python(term) == term


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("long", -(2**63), 2**63 - 1),
        ("int", -(2**31), 2**31 - 1),
        ("short", -(2**15), 2**15 - 1),
        ("byte", -128, 127),
        ("nonNegativeInteger", 0, 2**63 - 1),
        ("positiveInteger", 1, 2**63 - 1),
        ("nonPositiveInteger", -(2**63), 0),
        ("negativeInteger", -(2**63), -1),
        ("unsignedLong", 0, 2**63 - 1),
        ("unsignedInt", 0, 2**32 - 1),
        ("unsignedShort", 0, 2**16 - 1),
        ("unsignedByte", 0, 255),
    ],
)
def test_derived_integers_are_integers_within_their_range(name: str, low: int, high: int) -> None:
    for value in (low, high):
        assert literal(str(value), XSD + name) == integer(value)
    for value in (low - 1, high + 1):
        assert literal(str(value), XSD + name) == Literal(str(value), XSD + name)


def test_an_integer_a_decimal_and_a_double_of_one_value_are_three_terms() -> None:
    terms = [literal("5", XSD_INTEGER), literal("5.0", XSD_DECIMAL), literal("5e0", XSD_DOUBLE)]
    assert len(set(terms)) == 3
    assert {value_of(t) for t in terms} == {5}


@given(st.integers(INTEGER_MIN, INTEGER_MAX), st.integers(0, 5))
def test_zeros_and_signs_change_no_integer(value: int, zeros: int) -> None:
    sign = "-" if value < 0 else "+"
    assert literal(f"{sign}{'0' * zeros}{abs(value)}", XSD_INTEGER) == integer(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=500)
def test_a_double_reads_back_as_itself(value: float) -> None:
    term = double(value)
    assert value_of(term) == value
    assert literal(term.lexical, XSD_DOUBLE) == term
    assert literal(repr(value), XSD_DOUBLE) == term
    assert len(term.lexical) <= 25


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30))
def test_a_decimal_is_its_nearest_double(value: Decimal) -> None:
    term = literal(format(value, "f"), XSD_DECIMAL)
    assert value_of(term) == float(value)
    assert literal(term.lexical, XSD_DECIMAL) == term


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),  # noqa: DTZ001 - a zone is added
    st.integers(-14 * 60, 14 * 60),
)
def test_a_moment_is_the_same_in_every_time_zone(moment: datetime, minutes: int) -> None:
    there = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=minutes)))
    term = literal(there.isoformat(), XSD_DATETIME)
    assert term == date_time(moment) == date_time(there)
    assert value_of(term) == there


def test_language_tags_have_no_case() -> None:
    assert string("a", "EN-us") == string("a", "en-US") == Literal("a", RDF_LANGSTRING, "en-us")
    assert string("a", "en") != string("a")
    assert value_of(string("a", "en")) is None


def test_a_string_is_kept_as_it_is() -> None:
    assert literal(" 5 ") == string(" 5 ") == Literal(" 5 ", XSD_STRING)
    assert value_of(string(" 5 ")) == " 5 "


# Values


@pytest.mark.parametrize(
    ("term", "value"),
    [
        (integer(5), 5),
        (literal("1.5", XSD_DECIMAL), 1.5),
        (double(2.5), 2.5),
        (literal("2.5", XSD_FLOAT), 2.5),
        (boolean(value=True), True),
        (boolean(value=False), False),
        (string("x"), "x"),
        (date_time(datetime(2024, 1, 1, tzinfo=UTC)), datetime(2024, 1, 1, tzinfo=UTC)),
        (calendar_date(date(2024, 2, 29)), date(2024, 2, 29)),
        (IRI("x"), None),
        (BlankNode("x"), None),
        (string("x", "en"), None),
        (Literal("x", "urn:t"), None),
    ],
)
def test_values(term: Term, value: object) -> None:
    found = value_of(term)
    assert found == value
    assert type(found) is type(value)


def test_booleans_are_no_numbers() -> None:
    assert not is_number(boolean(value=True))
    assert is_number(integer(1))
    assert is_number(literal("1", XSD + "byte"))


# The total order


def shuffled(terms: list[Term]) -> list[Term]:
    return random.Random(len(terms)).sample(terms, len(terms))


def test_the_order_of_kinds() -> None:
    ordered: list[Term] = [
        integer(-1),
        literal("1.5", XSD_DECIMAL),
        double(1e300),
        date_time(datetime(2024, 1, 1, tzinfo=UTC)),
        date_time(datetime(2025, 1, 1, tzinfo=UTC)),
        calendar_date(date(2023, 12, 31)),
        calendar_date(date(2024, 1, 1)),
        string(""),
        string("a"),
        string("b", "en"),
        Literal("x", "urn:a"),
        Literal("a", "urn:b"),
        boolean(value=False),
        boolean(value=True),
        IRI("a"),
        IRI("b"),
        BlankNode("a"),
        BlankNode("b"),
    ]
    assert sorted(shuffled(ordered), key=order_key) == ordered


def test_equal_numbers_are_ordered_by_datatype() -> None:
    terms: list[Term] = [literal("5", t) for t in (XSD_DECIMAL, XSD_DOUBLE, XSD_FLOAT, XSD_INTEGER)]
    assert sorted(shuffled(terms), key=order_key) == terms


def test_integers_and_doubles_compare_exactly() -> None:
    big = 2**53
    terms: list[Term] = [integer(big - 1), double(float(big)), integer(big), integer(big + 1)]
    assert sorted(shuffled(terms), key=order_key) == terms


def test_strings_go_by_code_point() -> None:
    assert sorted([string("b"), string("é"), string("B"), string("😀"), string("\uffff")], key=order_key) == [
        string(t) for t in ("B", "b", "é", "\uffff", "😀")
    ]


_texts = st.text(max_size=3)
_terms: st.SearchStrategy[Term] = st.one_of(
    _texts.map(IRI),
    _texts.map(BlankNode),
    st.builds(string, _texts, st.sampled_from(["", "en", "de"])),
    st.integers(-3, 3).map(integer),
    st.sampled_from([0.0, 1.0, -1.5, 1e300]).map(double),
    st.sampled_from(["1", "1.5", "x"]).map(lambda t: literal(t, XSD_DECIMAL)),
    st.booleans().map(boolean),
    st.datetimes().map(date_time),
    st.builds(
        literal, st.sampled_from(["x", "1", "NaN"]), st.sampled_from([XSD_DOUBLE, XSD_INTEGER, "urn:t"])
    ),
)


@given(st.lists(_terms, max_size=6))
@settings(max_examples=300)
def test_the_order_is_total(terms: list[Term]) -> None:
    keys = [order_key(t) for t in terms]
    for a, term in zip(keys, terms, strict=True):
        for b, other in zip(keys, terms, strict=True):
            assert (a == b) == (term == other)
            assert (a < b) + (a == b) + (a > b) == 1
    assert sorted(terms, key=order_key) == sorted(shuffled(terms), key=order_key)


# The border to Python


@given(
    st.one_of(
        st.text(),
        st.integers(INTEGER_MIN, INTEGER_MAX),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.datetimes(timezones=st.just(UTC)),
    )
)
@settings(max_examples=300)
def test_python_values_come_back(value: object) -> None:
    found = to_python(from_python(value))
    assert found == value
    assert type(found) is type(value)


@given(_terms)
def test_terms_pass_through(term: Term) -> None:
    assert from_python(term) is term


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (True, boolean(value=True)),
        (1, integer(1)),
        (1.0, double(1.0)),
        (-0.0, double(0.0)),
        ("wt1", string("wt1")),
        (Decimal("1.50"), Literal("1.5", XSD_DECIMAL)),
        (Decimal("1E+2"), Literal("100.0", XSD_DECIMAL)),
        (datetime(2024, 1, 1), Literal("2024-01-01T00:00:00Z", XSD_DATETIME)),  # noqa: DTZ001 - that is the case
        (
            datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1))),
            Literal("2023-12-31T23:00:00Z", XSD_DATETIME),
        ),
        (date(999, 1, 1), Literal("0999-01-01", XSD_DATE)),
    ],
)
def test_from_python(value: object, term: Term) -> None:
    assert from_python(value) == term


class Celsius(float):
    def __repr__(self) -> str:
        return f"{float(self)} °C"


def test_a_kind_of_float_is_a_float() -> None:
    assert from_python(Celsius(20.5)) == double(20.5)


class Loud(str):
    __slots__ = ()

    def __str__(self) -> str:
        return self.upper()


def test_a_kind_of_text_is_its_text() -> None:
    assert repr(from_python(Loud("red"))) == repr(string("red"))
    assert repr(from_python(np.str_("red"))) == repr(string("red"))


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (np.int64(-5), integer(-5)),
        (np.uint8(200), integer(200)),
        (np.bool_(True), boolean(value=True)),  # noqa: FBT003 - the value itself
        (np.float32(0.5), double(0.5)),
        (np.float64(2.5), double(2.5)),
        (np.longdouble(2.5), double(2.5)),
        (np.array(7), integer(7)),
    ],
)
def test_numbers_of_numpy_are_numbers(value: object, term: Term) -> None:
    assert from_python(value) == term


@pytest.mark.parametrize(
    "value",
    [
        np.uint64(2**63),
        np.float32("nan"),
        np.complex64(1),
        np.array([1]),
        np.datetime64("2024-01-01T00:00:00", "ns"),
        None,
        b"bytes",
        [1],
        1j,
        {"a": 1},
        2**63,
        -(2**63) - 1,
        math.nan,
        math.inf,
        Decimal("NaN"),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    ],
    ids=repr,
)
def test_what_is_no_term_is_refused(value: object) -> None:
    with pytest.raises(LoadProblem) as caught:
        from_python(value)
    assert [d.code for d in caught.value.diagnostics] == ["T002"]
    assert "ze.iri" in caught.value.diagnostics[0].note


@pytest.mark.parametrize("text", ["", "wt1", "http://e.org/a#b?c=%20", "urn:x:é", "😀", "a'b()"])
def test_iris(text: str) -> None:
    assert iri(text) == IRI(text)
    assert is_iri(text)


@pytest.mark.parametrize("bad", [*' \t\n\r\x00\x1f<>"{}|^`\\'])
def test_characters_that_no_iri_holds(bad: str) -> None:
    assert not is_iri(f"a{bad}b")
    with pytest.raises(LoadProblem) as caught:
        iri(f"a{bad}b")
    (found,) = caught.value.diagnostics
    assert found.code == "T001"
    assert repr(bad) in found.message


@pytest.mark.parametrize("value", [5, None, b"wt1", IRI("wt1")])
def test_an_iri_is_made_of_a_text(value: object) -> None:
    with pytest.raises(UsageProblem, match="U013: expected the name of an IRI, found"):
        iri(value)  # type: ignore[arg-type]
