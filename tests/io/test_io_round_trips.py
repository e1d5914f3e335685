"""Writing and reading back is the identity, for every format, compression and term."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zodiacedge.io import facts_of_table, read_all, read_cell, table_of, write_cell, write_facts
from zodiacedge.io.file_names import file_stem
from zodiacedge.language.ast import Fact, Predicate, fact
from zodiacedge.terms import (
    IRI,
    XSD,
    XSD_BOOLEAN,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    BlankNode,
    Literal,
    Term,
    boolean,
    calendar_date,
    date_time,
    double,
    integer,
    literal,
    string,
)

if TYPE_CHECKING:
    from pathlib import Path

# Strings that a careless reader would take for something else.
NASTY = (
    *("", " ", "5", "-7", "+05", "5.0", "5e0", ".5", "5.", "1,5", "true", "false", "True", "null", "NaN"),
    *("<a>", "<a b>", "<", "_:b1", "_:", '"', '""', '"a"', '"a', '"a"b', '"a"@en', '"5"^^xsd:integer'),
    *("a,b", "a\tb", "a\nb", "a\r\nb", "\r", "\n", "\\", "\\n", '"\\q"', "\x00", "\x7f", "\x85", "\u2028"),
    *("\ufeff", "\ufeffx", "é", "😀", "=1+1", "#", "# x", "a b", "'", '\\"', "[]", "{}", "^^", "@en"),
)
texts = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
letters = st.characters(exclude_categories=["Cs"], exclude_characters='<>"{}|^`\\', min_codepoint=0x21)
iris = st.builds(
    IRI, st.sampled_from(("wt1", "", "../x", "#a", "http://ex.org/é?a=b#c")) | st.text(letters, max_size=6)
)
labels = st.from_regex(r"[A-Za-z0-9_é]([A-Za-z0-9_é.·-]{0,4}[A-Za-z0-9_é·-])?", fullmatch=True)
blanks = st.builds(BlankNode, labels)
tags = st.from_regex(r"[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8}){0,2}", fullmatch=True)
datatypes = st.sampled_from(
    (
        XSD_INTEGER,
        XSD_DECIMAL,
        XSD_DOUBLE,
        XSD_FLOAT,
        XSD_BOOLEAN,
        XSD_DATETIME,
        XSD + "byte",
        XSD + "date",
        "my",
        "",
    )
)
literals = (
    st.builds(string, texts)
    | st.builds(string, texts, tags)
    | st.builds(integer, st.integers(-(2**63), 2**63 - 1))
    | st.builds(double, st.floats(allow_nan=False, allow_infinity=False))
    | st.builds(lambda d: literal(format(d, "f"), XSD_DECIMAL), st.decimals(-1000, 1000, places=3))
    | st.builds(boolean, st.booleans())
    | st.builds(date_time, st.datetimes(timezones=st.just(UTC)))
    | st.builds(
        literal,
        texts | st.sampled_from(("05", "00099999999999999999999", "+99999999999999999999")),
        datatypes,
    )
)
nodes = iris | blanks
terms = nodes | literals
names = st.sampled_from(("p", "q r".replace(" ", "%20"), "CON", "../x", "http://ex.org/p")) | st.text(
    letters, max_size=5
)
rows = st.lists(terms, max_size=4)
facts = st.lists(st.builds(lambda n, args: fact(n, *args), names, rows), max_size=12)
triples = st.lists(
    st.builds(fact, names, nodes) | st.builds(fact, names, nodes, terms.filter(lambda t: t != IRI(""))),
    max_size=12,
)

quickly = settings(max_examples=60, deadline=None)


def one_arity_each(found: list[Fact]) -> list[Fact]:
    """A predicate has one arity; JSON lines hold every reader to it."""
    arities: dict[str, int] = {}
    return [f for f in found if arities.setdefault(f.predicate.name, f.predicate.arity) == f.predicate.arity]


def round_trip(found: list[Fact], form: str, compression: str = "") -> set[Fact]:
    with tempfile.TemporaryDirectory() as folder:
        report = write_facts(found, folder, form=form, compression=compression)
        assert report.rows == len(set(found))
        if not report.files:
            return set()
        back, load = read_all(folder)
        assert load.bad == 0
        assert len(back) == len(set(back))
        return set(back)


@given(terms)
@settings(max_examples=800, deadline=None)
def test_a_cell_reads_back_as_the_term_it_was_written_from(term: Term) -> None:
    assert read_cell(write_cell(term)) == term


@given(texts)
@settings(max_examples=400, deadline=None)
def test_a_string_is_quoted_only_where_it_must_be(text: str) -> None:
    cell = write_cell(string(text))
    assert (cell == text) == (read_cell(text) == string(text))


@given(facts)
@quickly
@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet", "arrow"])
def test_tabular_formats_hold_any_fact(form: str, found: list[Fact]) -> None:
    kept = one_arity_each(found)
    assert round_trip(kept, form) == set(kept)


@given(triples)
@quickly
@pytest.mark.parametrize("form", ["nt", "ttl"])
def test_rdf_formats_hold_any_triple(form: str, found: list[Fact]) -> None:
    assert round_trip(found, form) == set(found)


SAMPLE = [
    fact("p", IRI("a"), string('x, "y"\n')),
    fact("p", BlankNode("b1"), integer(5)),
    fact("C", IRI("a")),
    fact("q", IRI("a"), date_time(datetime(2024, 2, 29, tzinfo=UTC))),
]
COMPRESSED = [
    *itertools.product(["nt", "ttl", "csv", "tsv", "jsonl"], ["", "gz", "bz2", "zst"]),
    *itertools.product(["parquet"], ["", "gz", "zst"]),
    *itertools.product(["arrow"], ["", "zst"]),
]


@pytest.mark.parametrize(("form", "compression"), COMPRESSED)
def test_every_compression_reads_back(form: str, compression: str) -> None:
    assert round_trip(SAMPLE, form, compression) == set(SAMPLE)


@pytest.mark.parametrize(("form", "compression"), COMPRESSED)
def test_equal_facts_give_equal_files(form: str, compression: str, tmp_path: Path) -> None:
    write_facts(SAMPLE, tmp_path / "a", form=form, compression=compression)
    write_facts(reversed(SAMPLE * 2), tmp_path / "b", form=form, compression=compression)
    first = {p.name: p.read_bytes() for p in (tmp_path / "a").iterdir()}
    assert first == {p.name: p.read_bytes() for p in (tmp_path / "b").iterdir()}
    assert len(first) == 4


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize(
    "fact_",
    [
        fact("p"),
        fact("p", boolean(value=True)),
        fact("p", string("true")),
        fact("p", string("")),
        fact("", IRI("a")),
    ],
)
def test_relations_of_one_row_keep_their_arity(form: str, fact_: Fact, tmp_path: Path) -> None:
    # The file alone: what predicates.json knows about it must not be needed.
    (written,) = write_facts([fact_], tmp_path, form=form).files
    assert read_all(written.path)[0] == [fact_]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_class_and_a_property_of_one_name_are_two_files(form: str) -> None:
    both = [fact("C", IRI("a")), fact("C", IRI("a"), IRI("b"))]
    assert round_trip(both, form) == set(both)


def test_the_rows_of_a_file_are_in_the_total_order(tmp_path: Path) -> None:
    mixed: list[Term] = [
        BlankNode("b"),
        IRI("a"),
        boolean(value=True),
        string("x", "en"),
        string("x"),
        integer(10),
        double(9.5),
    ]
    write_facts([fact("p", t, t) for t in mixed], tmp_path, form="csv")
    assert (tmp_path / "p.csv").read_text().splitlines() == [
        "9.5E0,9.5E0",
        "10,10",
        "x,x",
        '"""x""@en","""x""@en"',
        "true,true",
        "<a>,<a>",
        "_:b,_:b",
    ]


def test_turtle_is_readable_by_others(tmp_path: Path) -> None:
    write_facts(SAMPLE, tmp_path, form="ttl", base="http://ex.org/")
    quads = [q for p in tmp_path.glob("*.ttl") for q in ox.parse(path=str(p), format=ox.RdfFormat.TURTLE)]
    assert len(quads) == len(SAMPLE)
    assert ox.NamedNode("http://ex.org/a") in {q.subject for q in quads}


def test_ntriples_write_a_relative_iri_back_as_it_is(tmp_path: Path) -> None:
    write_facts([fact("p1", IRI("wt1"), IRI("../x"))], tmp_path, form="nt")
    assert (tmp_path / "p1.nt").read_text() == "<wt1> <p1> <../x> .\n"


def test_a_column_of_dates_is_typed_unless_one_has_no_value() -> None:
    days = [calendar_date(date(2024, 2, 29)), calendar_date(date(1, 1, 1))]
    table = table_of([(day, day) for day in days], ["x", "y"])
    assert [str(t) for t in table.schema.types] == ["date32[day]"] * 2
    assert facts_of_table(table, "p") == [fact("p", day, day) for day in days]
    mixed = table_of([(day,) for day in (*days, Literal("2024-02-29+02:00", XSD + "date"))], ["x"])
    assert [str(t) for t in mixed.schema.types] == ["string"]


def test_a_column_of_one_kind_is_typed_and_a_mixed_one_is_cells() -> None:
    table = table_of([(integer(1), integer(1)), (integer(2), string("2"))], ["x", "y"])
    assert [str(t) for t in table.schema.types] == ["int64", "string"]
    assert table.column("y").to_pylist() == ["1", '"2"']
    assert facts_of_table(table, "p")[1] == fact("p", integer(2), string("2"))


@given(names)
def test_a_file_name_stays_in_its_folder_and_reads_back(name: str) -> None:
    stem = file_stem(name)
    assert "/" not in stem
    assert "\\" not in stem
    assert stem[0] not in "._"
    assert len(stem) <= 120
    assert re.fullmatch(r"[A-Za-z0-9_.%~-]+", stem)


def test_hostile_names_are_files_of_the_folder_and_read_back(tmp_path: Path) -> None:
    hostile = [
        "../x",
        "/etc/passwd",
        "CON",
        "nul.txt",
        ".hidden",
        "_x",
        "a\u202eb",
        "http://ex.org/" + "long/" * 200,
        "P",
        "p",
    ]
    written = [fact(name, IRI("a"), IRI(name)) for name in hostile]
    write_facts(written, tmp_path / "out", form="csv")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    files = [p.name for p in (tmp_path / "out").iterdir()]
    assert len({f.casefold() for f in files}) == len(hostile) + 1
    assert not any(f.casefold().startswith(("con.", "nul.", ".")) for f in files)
    assert max(map(len, files)) < 200
    assert set(read_all(tmp_path / "out")[0]) == set(written)


def test_predicates_json_says_what_was_written(tmp_path: Path) -> None:
    write_facts(SAMPLE, tmp_path, form="tsv", predicates=[Predicate("empty", 3), Predicate("p", 2)])
    listed = json.loads((tmp_path / "predicates.json").read_text())["predicates"]
    assert {"predicate": "p", "arity": 2, "file": "p.tsv", "rows": 2} in listed
    assert {"predicate": "empty", "arity": 3, "file": "empty.tsv", "rows": 0} in listed
    assert [e["predicate"] for e in listed] == ["C", "empty", "p", "q"]
    assert not (tmp_path / "empty.tsv").read_text()


def test_an_export_replaces_the_one_before_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    write_facts(SAMPLE, tmp_path, form="csv")
    write_facts(SAMPLE[:1], tmp_path, form="csv")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "p.csv", "predicates.json"]


def test_a_list_from_elsewhere_removes_nothing_outside_the_folder(tmp_path: Path) -> None:
    (tmp_path / "precious.csv").write_text("1\n")
    out = tmp_path / "out"
    out.mkdir()
    entry = {"predicate": "p", "arity": 1, "file": "../precious.csv", "rows": 1}
    (out / "predicates.json").write_text(json.dumps({"predicates": [entry]}))
    write_facts(SAMPLE, out)
    assert (tmp_path / "precious.csv").exists()


RESEMBLING = (
    *('"abc', '"a"b', '"a"@', '"a"@en--ltr', '"a"^^', '"a"^^int', '"a"^^<b c>', '"a\nb"'),
    *('"\\q"', '"\\ud800"', '"\\U00110000"', "<a b>", "<a", "<a>b", "_:", "_:a b", "_:a.", ".5", "5.", "1,5"),
    *(" 5", "5 ", "+", "1e", "0x1", "٣", "True", "NaN", "INF", "", "wt1", "http://ex.org/a", "2024-01-01"),
)


@pytest.mark.parametrize("text", RESEMBLING)
def test_what_only_resembles_a_term_is_a_plain_string(text: str) -> None:
    assert read_cell(text) == Literal(text)
    assert write_cell(Literal(text)) == text


def test_literals_have_one_form() -> None:
    assert read_cell("05") == Literal("5", XSD_INTEGER)
    assert read_cell('"05"^^xsd:byte') == Literal("5", XSD_INTEGER)
    assert read_cell('"x"@EN') == string("x", "en")
