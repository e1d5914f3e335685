"""Values that our reader of N-Triples works out are what `terms.literal` makes."""

from __future__ import annotations

import math
import random
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

from hypothesis import example, given, settings
from hypothesis import strategies as st

from zodiacedge.engine.embedded.ingest.ntriples import reader
from zodiacedge.engine.embedded.ingest.ntriples.reader import TripleReader
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.terms import (
    INTEGER_RANGES,
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    Term,
    literal,
)

if TYPE_CHECKING:
    import pytest


def read_literals(lexicals: list[str], datatype: str) -> list[Term]:
    dictionary = Dictionary()
    reader = TripleReader(dictionary, quads=False)
    for lexical in lexicals:
        text = "".join(f"\\u{ord(c):04x}" if c in '"\\\n\r' else c for c in lexical)
        reader.feed(f'<a> <p> "{text}"^^<{datatype}> .\n'.encode())
    reader.finish()
    assert not reader.bad
    return [dictionary.decode(number) for number in reader.triples[:, 2].tolist()]


def check_literals(lexicals: list[str], datatype: str) -> None:
    assert read_literals(lexicals, datatype) == [literal(lexical, datatype) for lexical in lexicals]


def test_integers_are_exact_to_the_last_of_64_bits() -> None:
    edges = [
        sign * (2**bits) + more
        for bits in (7, 8, 15, 16, 31, 32, 63, 64)
        for sign in (1, -1)
        for more in (-1, 0, 1)
    ]
    written = [
        f"{sign}{zeros}{abs(n)}" for n in edges for sign in ("-", "+", "") for zeros in ("", "0", "0" * 30)
    ]
    for datatype in INTEGER_RANGES:
        check_literals([*written, "", "+", "-", "5.0", "5a", "٣", "9" * 40, " 7\t"], datatype)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
@example([5e-324, 1.7976931348623157e308, 2.2250738585072014e-308, -0.0, 9007199254740993.0])
def test_doubles_are_rounded_right_in_every_notation(values: list[float]) -> None:
    written = [
        form(v)
        for v in values
        for form in (repr, "{:.17g}".format, "{:.16e}".format, "{:.14E}".format, "{:.12f}".format)
    ]
    check_literals(written, XSD_DOUBLE)
    check_literals(written, XSD_FLOAT)
    check_literals([format(Decimal(repr(v)), "f") for v in values], XSD_DECIMAL)


def test_powers_of_ten_may_have_any_number_of_digits() -> None:
    many = "9" * 25
    numbers = [f"{sign}{whole}e{power}{many}" for sign in "+-" for whole in "05" for power in ("", "+", "-")]
    for text in (
        *numbers,
        "1e0000000000000000000000007",
        f"0.{'0' * 30}1e30",
        f"1e{2**63}",
        f"1e-{2**63 - 1}",
    ):
        check_literals([text, text + "x", text + "-"], XSD_DOUBLE)
    check_literals(["1e", "1e+", "1e-", "e5", "+e5", ".e5", "1e+-5", "1e5.0"], XSD_DOUBLE)


def test_numbers_next_to_the_middle_of_two_doubles_are_rounded_right() -> None:
    dice = random.Random(3)
    written = []
    with localcontext() as context:
        context.prec = 60
        for _ in range(3000):
            value = dice.uniform(1, 10) * 10.0 ** dice.randrange(-6, 18)
            middle = (Decimal(value) + Decimal(math.nextafter(value, math.inf))) / 2
            for digits in (16, 17, 18, 19):
                near = Decimal(f"{middle:.{digits - 1}e}")
                step = Decimal(1).scaleb(near.adjusted() - digits + 1)
                written += [format(near + n * step, "f") for n in (-1, 0, 1)]
        # Exactly in the middle: the even side wins.
        written += [
            format(Decimal(2**53 + 2 * n + 1) / 2**shift, "f") for n in range(20) for shift in range(12)
        ]
    check_literals(written, XSD_DECIMAL)


@given(
    st.lists(
        st.one_of(
            st.builds(
                lambda moment, zone, digits: moment.isoformat() + digits + zone,
                st.datetimes().map(lambda m: m.replace(microsecond=0)),
                st.sampled_from(
                    [
                        "",
                        "Z",
                        "+00:00",
                        "-00:00",
                        "+14:00",
                        "-14:00",
                        "+14:01",
                        "+05:30",
                        "-23:00",
                        "+1:00",
                        "z",
                    ]
                ),
                st.sampled_from(
                    [
                        "",
                        ".5",
                        ".000001",
                        ".0000005",
                        ".0000015",
                        ".1234565",
                        ".9999995",
                        ".999999999999999999",
                        "." + "9" * 30,
                        ".",
                    ]
                ),
            ),
            st.from_regex(
                r" ?[0-9]{4}-(0[0-9]|1[0-3])-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.0)?(Z|[+-]14:00)?",
                fullmatch=True,
            ),
        ),
        min_size=1,
        max_size=40,
    )
)
@settings(max_examples=100, deadline=None)
@example(
    [
        "2024-02-29T24:00:00",
        "2023-02-29T00:00:00",
        "1900-02-29T00:00:00",
        "2000-02-29T00:00:00",
        "2024-12-31T24:00:00.0Z",
        "2024-12-31T24:00:00.1Z",
        "2024-12-31T24:00:01Z",
        "9999-12-31T24:00:00+14:00",
        "9999-12-31T23:59:59.9999995",
        "9999-12-31T23:59:59-00:01",
        "0001-01-01T00:00:00+00:01",
        "0000-01-01T00:00:00",
        "0001-01-01T00:00:00",
        "2016-12-31T23:59:60Z",
        "-2024-01-01T00:00:00",
        "12024-01-01T00:00:00",
        "2024-01-01",
        "2024-01-01T00:00:00Zx",
        "2024-01-01t00:00:00",
        "20２4-01-01T00:00:00",
    ]
)
def test_moments_are_the_same_microsecond(written: list[str]) -> None:
    check_literals(written, XSD_DATETIME)


@given(
    st.lists(
        st.one_of(
            st.builds(
                lambda day, zone: day.isoformat() + zone,
                st.dates(),
                st.sampled_from(
                    ["", "Z", "+00:00", "-00:00", "+02:00", "-00:01", "+00:0", "z", "ZZ", "+0000"]
                ),
            ),
            st.from_regex(r" ?[0-9]{4}-(0[0-9]|1[0-3])-[0-3][0-9]Z?", fullmatch=True),
        ),
        min_size=1,
        max_size=40,
    )
)
@settings(max_examples=100, deadline=None)
@example(
    [
        "2024-02-29",
        "2023-02-29",
        "1900-02-29",
        "2000-02-29Z",
        "0000-01-01",
        "0001-01-01",
        "9999-12-31-00:00",
        "-2024-01-01",
        "12024-01-01",
        "2024-1-1",
        "2024-01-01T",
        "2024-01-01+00.00",
        "2024-01-01\u00a0",
        "",
        "20２4-01-01",
    ]
)
def test_dates_are_the_same_day(written: list[str]) -> None:
    check_literals(written, XSD_DATE)


def test_booleans_have_four_forms() -> None:
    check_literals(
        ["true", "false", "0", "1", " 1 ", "2", "True", "", "t", "falsee", "truer", "/"], XSD_BOOLEAN
    )


def test_values_left_to_the_host_find_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_LATER", 3)
    monkeypatch.setattr(reader, "_LATER_TEXT", 40)
    lexicals = [digits * n for n in (1, 10, 19, 30, 50, 400) for digits in ("1", "2", "1")]
    check_literals(lexicals, XSD_DECIMAL)
    check_literals([f"2024-01-01T00:00:00.{text}" for text in lexicals], XSD_DATETIME)
