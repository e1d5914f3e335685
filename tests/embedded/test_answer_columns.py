"""Many answers are a table, made by columns: the same rows, types and order as row by row."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, date, datetime
from io import BytesIO
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zodiacedge as ze
from zodiacedge.cli.output import csv_lines, export, write_arrow
from zodiacedge.engine.embedded.evaluate import query
from zodiacedge.io import write_facts
from zodiacedge.io.formats.arrow_rows import ArrowRows
from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import (
    IRI,
    RDF_TYPE,
    XSD,
    XSD_DATE,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    BlankNode,
    Literal,
    boolean,
    calendar_date,
    date_time,
    double,
    integer,
    literal,
    string,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from zodiacedge.terms import Term

TERMS: list[Term] = [
    *(IRI(text) for text in ("a", "", "http://e/é", "b")),
    *(BlankNode(label) for label in ("b1", "x-y", "é")),
    *map(
        string,
        ("", "x", "true", "false", "truex", "5", "-7", "<a>", "<a b>", "_:b", "_", '"q"', "é", "\0", "a\nb"),
    ),
    *(string("x", "en"), string("a", "de"), string("x", "de-ch"), string("5", "en")),
    *map(integer, (0, 5, -7, 2**53, 2**53 + 1, 2**63 - 1, -(2**63))),
    *map(double, (0.0, 5.0, -7.5, 1e300, 5e-324, 9007199254740992.0)),
    *(literal(text, XSD_DECIMAL) for text in ("5", "1.50", "-7.5", "9007199254740993")),
    *(literal(text, XSD_FLOAT) for text in ("5", "2.5")),
    *(boolean(value=True), boolean(value=False)),
    *(date_time(datetime(year, 1, 2, 3, 4, 5, 678, tzinfo=UTC)) for year in (1, 1969, 2024, 9999)),
    *(calendar_date(date(year, 1, 2)) for year in (1, 1969, 2024, 9999)),
    *(
        Literal("x", XSD_INTEGER),
        Literal("9" * 30, XSD_INTEGER),
        Literal("x", XSD_DATE),
        Literal("INF", XSD_DOUBLE),
    ),
    *(Literal("x", f"{XSD}duration"), Literal("x", "http://e/d"), Literal("a", f"{XSD}duration")),
]
ONE_TYPE = [
    st.integers(-(2**63), 2**63 - 1).map(integer),
    st.floats(allow_nan=False, allow_infinity=False).map(double),
    st.booleans().map(lambda value: boolean(value=value)),
    st.datetimes().map(lambda value: date_time(value.replace(tzinfo=UTC))),
    st.dates().map(calendar_date),
    st.text(st.characters(codec="utf-8"), max_size=4).map(string),
    st.integers(0, 30).map(lambda number: IRI(f"http://example.org/{number}")),
    st.sampled_from([term for term in TERMS if isinstance(term, Literal)]),
    st.sampled_from(TERMS),
]


@contextmanager
def by_columns() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query, "_MOST_ROWS", 0)
        yield


def both(facts: set[Fact], text: str) -> tuple[ze.Answers, ze.Answers]:
    kb = ze.open()
    with kb.change() as change:
        change.add_facts(facts)
    with by_columns():
        found = kb.query(text)
    return found, kb.query(text)


def same(found: ze.Answers, expected: ze.Answers) -> None:
    assert isinstance(found.held, ArrowRows)
    assert isinstance(expected.held, tuple)
    table = found.to_arrow()
    assert table.schema == expected.to_arrow().schema
    assert table == expected.to_arrow()
    assert found[0] == expected[0]
    assert found[-1] == expected[-1]
    assert found[1:3] == expected[1:3]
    assert found[::2] == expected[::2]
    assert list(found) == list(expected)
    assert list(found.texts(3)) == list(expected.texts(3))
    assert found.rows == expected.rows
    assert found == expected
    assert hash(found.held) == hash(expected.held)
    assert str(found) == str(expected)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), arity=st.integers(1, 3))
def test_rows_types_and_order_are_those_of_row_by_row(data: st.DataObject, arity: int) -> None:
    columns = data.draw(st.lists(st.sampled_from(ONE_TYPE), min_size=arity, max_size=arity))
    rows = data.draw(st.sets(st.tuples(*columns), min_size=1, max_size=20))
    facts = {Fact("p", (IRI("s"), *row)) for row in rows}
    variables = ", ".join(f"X{n}" for n in range(arity))
    same(*both(facts, f"?- p(s, {variables}) ."))


def test_all_terms_in_one_column() -> None:
    found, expected = both({Fact("p", (term, integer(1))) for term in TERMS}, "?- p(X, Y) .")
    same(found, expected)
    assert found.to_arrow().schema.types == [pa.string(), pa.int64()]
    files = [BytesIO(), BytesIO()]
    for file, answers in zip(files, (found, expected), strict=True):
        write_arrow(file, answers)
    assert files[0].getvalue() == files[1].getvalue()


def test_a_term_that_cannot_be_written_as_a_cell_stays_a_term() -> None:
    found, expected = both({Fact("p", (IRI("a b"), integer(1)))}, "?- p(X, Y) .")
    assert found.rows == expected.rows == ((IRI("a b"), integer(1)),)


def test_the_answers_stay_those_of_their_version() -> None:
    kb = ze.open()
    with kb.change() as change:
        change.add_facts([("p", n, f"text {n}") for n in range(50)])
    with by_columns():
        answers = kb.query("?- p(X, Y) .")
    with kb.change() as change:
        change.add_facts([("p", n, f"other {n}") for n in range(50, 5000)])
        change.remove_facts([("p", 1, "text 1")])
    assert list(answers) == [(n, f"text {n}") for n in range(50)]
    assert len(kb.query("?- p(X, Y) .").rows) == 4999


def test_no_rows_and_ground_queries() -> None:
    found, expected = both({Fact("p", (integer(1), integer(2)))}, "?- p(2, X) .")
    assert found.to_arrow() == expected.to_arrow()
    with by_columns():
        assert bool(both({Fact("p", (integer(1), integer(2)))}, "?- p(1, 2) .")[0])


def compare_exports(kb: ze.KnowledgeBase, folder: Path, form: str) -> None:
    report = export(kb, str(folder / "columns"), form, everything=True)
    heads = {rule.head.predicate for rule in kb.rules}
    expected = write_facts(kb.facts(), folder / "rows", form=form, predicates=heads)
    assert [(f.predicate, f.path.name, f.rows) for f in report.files] == [
        (f.predicate, f.path.name, f.rows) for f in expected.files
    ]
    for one, other in zip(report.files, expected.files, strict=True):
        if form == "csv":
            assert one.path.read_bytes() == other.path.read_bytes()
        else:
            table, rows = pq.read_table(one.path), pq.read_table(other.path)
            assert table.equals(rows, check_metadata=True)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_export_writes_the_files_of_row_by_row(tmp_path: Path, form: str) -> None:
    kb = ze.open()
    with kb.change() as change:
        change.add_rules("both: q(X, Y) :- p(X, Y) .  none: r(X) :- absent(X) .")
        change.add_facts({Fact("p", (term, other)) for term in TERMS for other in TERMS[::7]})
        change.add_facts({Fact("q", (term, term)) for term in TERMS[:9]})
        change.add_facts({fact("C", term) for term in TERMS})
        change.add_facts({fact("D", boolean(value=True)), fact("E", string(""))})
        change.add_facts([("moments", date(2024, 1, n), n, n / 3, n % 2 == 0) for n in range(1, 28)])
        change.add_facts(
            [("texts", text, text) for text in ("a,b", 'a"b', "a\rb", "a\nb", "\ufeffx", ",", '"', "")]
        )
    compare_exports(kb, tmp_path, form)


@pytest.mark.parametrize("other", [Fact("t", ()), Fact(RDF_TYPE, (IRI("a"), integer(5)))])
def test_an_export_with_rows_that_are_no_table(tmp_path: Path, other: Fact) -> None:
    kb = ze.open()
    with kb.change() as change:
        change.add_facts([("p", n, str(n)) for n in range(20)])
        change.add_facts([other])
    compare_exports(kb, tmp_path, "csv")


@settings(max_examples=100, deadline=None)
@given(data=st.data(), arity=st.integers(1, 3))
def test_answers_as_csv_are_those_of_row_by_row(data: st.DataObject, arity: int) -> None:
    columns = data.draw(st.lists(st.sampled_from(ONE_TYPE), min_size=arity, max_size=arity))
    rows = data.draw(st.sets(st.tuples(*columns), min_size=1, max_size=20))
    variables = ", ".join(f"X{n}" for n in range(arity))
    found, expected = both({Fact("p", (IRI("s"), *row)) for row in rows}, f"?- p(s, {variables}) .")
    assert "".join(csv_lines(found, plain=False)) == "".join(csv_lines(expected, plain=False))
    assert "".join(csv_lines(found, plain=True)) == "".join(csv_lines(expected, plain=True))
