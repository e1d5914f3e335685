"""What each format means: RDF documents, blank nodes, columns, rows of the host."""

from __future__ import annotations

import bz2
import gzip
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from zodiacedge.errors import LoadProblem
from zodiacedge.io import facts_of_rows, facts_of_table, read_all
from zodiacedge.language.ast import fact
from zodiacedge.terms import (
    IRI,
    RDF_TYPE,
    XSD,
    BlankNode,
    Term,
    boolean,
    calendar_date,
    date_time,
    double,
    integer,
    iri,
    literal,
    string,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EX = "http://ex.org/"
EXPECTED = {fact(EX + "p", IRI(EX + "a"), integer(5)), fact(EX + "C", IRI(EX + "a"))}
DOCUMENTS = {
    "nt": f'<{EX}a> <{EX}p> "05"^^<{XSD}int> .\n<{EX}a> <{RDF_TYPE}> <{EX}C> .',
    "nq": f'<{EX}a> <{EX}p> "5"^^<{XSD}integer> <g> .\n<{EX}a> <{RDF_TYPE}> <{EX}C> .',
    "ttl": "<a> a <C> ; <p> 05 .",
    "turtle": "@prefix : <http://ex.org/> . :a a :C ; :p 5 .",
    "trig": "<g> { <a> a <C> ; <p> 5 . }",
    "rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://ex.org/">'
    f'<e:C rdf:about="a"><e:p rdf:datatype="{XSD}integer">5</e:p></e:C></rdf:RDF>',
    "jsonld": '{"@id": "a", "@type": "http://ex.org/C", "http://ex.org/p": 5}',
}
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    # Two frames, as tools that append write them.
    ".zst": lambda d: zstandard.compress(d[:20]) + zstandard.compress(d[20:]),
}


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize("form", DOCUMENTS)
def test_every_rdf_format_is_read_packed_or_not(form: str, packed: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{form}{packed}"
    path.write_bytes(PACKERS[packed](DOCUMENTS[form].encode()))
    assert set(read_all(path, base=EX)[0]) == EXPECTED


@pytest.mark.parametrize("form", ["ttl", "rdf", "jsonld"])
def test_without_a_base_a_relative_iri_stays_as_written(form: str, tmp_path: Path) -> None:
    (tmp_path / f"f.{form}").write_text(DOCUMENTS[form])
    assert IRI("a") in {f.args[0] for f in read_all(tmp_path / f"f.{form}")[0]}


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("ttl", "<a> <p> 5 .\n<a> <p> .\n", "f.ttl:2:9: "),
        ("ttl", "<a b> <p> 5 .", "'a b' is not an IRI"),
        ("ttl", "<a> <p> <<( <a> <p> 5 )>> .", "triple terms"),
        ("ttl", '<a> <p> "x"@en--rtl .', "base direction"),
        ("trig", "<g> { <a> <p> 5 ", "f.trig:1:"),
        ("rdf", "not xml", "f.rdf: "),
        ("jsonld", '{"@id": ', "f.jsonld:1:"),
        ("jsonld", '{"@context": "http://schema.org/", "name": "x"}', "put the @context into the file"),
    ],
)
def test_a_document_that_does_not_parse_is_refused_whole(
    form: str, text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / f"f.{form}").write_text(text)
    with pytest.raises(LoadProblem, match="I009") as caught:
        read_all(tmp_path / f"f.{form}")
    assert message in str(caught.value)


def test_a_tag_is_a_part_of_the_term_and_is_lower_case(tmp_path: Path) -> None:
    lines = [
        f'<a> <p> "x"{tag} .' for tag in ("@EN", "@de-CH", "@en", f"^^<{XSD}string>", f"^^<{XSD}token>", "")
    ]
    (tmp_path / "f.nt").write_text("\n".join(lines))
    tagged = [string("x", "en"), string("x", "de-ch"), string("x", "en")]
    plain = [string("x"), literal("x", XSD + "token"), string("x")]
    assert [f.args[1] for f in read_all(tmp_path / "f.nt")[0]] == tagged + plain


def test_a_base_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.ttl").write_text("<a> <p> 5 .")
    with pytest.raises(LoadProblem, match="I018"):
        read_all(tmp_path / "f.ttl", base="nowhere")


def labels(*specs: Path) -> list[str]:
    found = {a for f in read_all(specs)[0] for a in f.args if isinstance(a, BlankNode)}
    return sorted(node.label for node in found)


def test_one_document_keeps_its_labels_and_two_do_not_share_theirs(tmp_path: Path) -> None:
    one, two = tmp_path / "one.nt", tmp_path / "two.nt"
    one.write_text("_:b <p> _:c .\n")
    two.write_text("_:b <p> _:b .\n")
    assert labels(one) == ["b", "c"]
    assert labels(one, two) == ["f1_b", "f1_c", "f2_b"]


def test_labels_in_cells_mean_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("_:b,1\n")
    (tmp_path / "q.csv").write_text("_:b,1\n")
    assert labels(tmp_path / "p.csv", tmp_path / "q.csv") == ["b"]


def test_nodes_without_a_label_are_the_same_at_every_reading(tmp_path: Path) -> None:
    (tmp_path / "f.ttl").write_text("<a> <p> [ <q> [ <r> _:x ] ], _:genid1, _:genid_7 .")
    first = read_all(tmp_path / "f.ttl")[0]
    assert first == read_all(tmp_path / "f.ttl")[0]
    assert labels(tmp_path / "f.ttl") == ["genid1", "genid2", "genid_1", "genid__7", "x"]


def test_csv_takes_a_header_only_where_asked(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("from,to\n<a>,<b>\n")
    assert len(read_all(tmp_path / "p.csv")[0]) == 2
    assert read_all(tmp_path / "p.csv", header=True)[0] == [fact("p", IRI("a"), IRI("b"))]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("true\n", [fact("p")]),
        ("true", [fact("p")]),
        ("true\nfalse\n", [fact("p", boolean(value=True)), fact("p", boolean(value=False))]),
        ("true,true\n", [fact("p", boolean(value=True), boolean(value=True))]),
        ("false\n", [fact("p", boolean(value=False))]),
        ("", []),
        ("\n\n", []),
        ('""\n', [fact("p", string(""))]),
        (",\n", [fact("p", string(""), string(""))]),
        ('"""5""",5\n', [fact("p", string("5"), integer(5))]),
        ("wt1, 5\n", [fact("p", string("wt1"), string(" 5"))]),
        ('5" pipe,x\n', [fact("p", string('5" pipe'), string("x"))]),
    ],
)
def test_what_csv_means(content: str, expected: list[object], tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(content)
    facts, report = read_all(tmp_path / "p.csv")
    assert (facts, report.bad) == (expected, 0)


def test_json_lines_hold_any_predicate_and_arity(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text(
        '{"predicate": "p", "args": ["<a>", 5, 5.0, 5e0, true, "x", "\\"5\\"", "_:b"]}\n'
        '{"args": [1], "predicate": "C"}\n{"predicate": "C", "args": [1, 2]}\n["x"]\ntrue\n'
    )
    (tmp_path / "f.jsonl").with_suffix(".ndjson").write_text('{"predicate": "z", "args": []}')
    facts, report = read_all(tmp_path / "f.jsonl")
    decimal, number = literal("5.0", XSD + "decimal"), literal("5e0", XSD + "double")
    assert facts == [
        fact(
            "p",
            IRI("a"),
            integer(5),
            decimal,
            number,
            boolean(value=True),
            string("x"),
            string("5"),
            BlankNode("b"),
        ),
        fact("C", integer(1)),
        fact("C", integer(1), integer(2)),
        fact("f", string("x")),
    ]
    assert [b.reason for b in report.bad_lines] == ["f has 0 arguments here and 1 before"]
    assert read_all(tmp_path / "f.ndjson")[0] == [fact("z")]


def test_a_relation_given_for_json_lines_is_the_only_one_in_them(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text('[1, 2]\n{"args": [3, 4]}\n{"predicate": "q", "args": [5, 6]}\n')
    facts, report = read_all(f"p={tmp_path}/f.jsonl")
    assert facts == [fact("p", integer(1), integer(2)), fact("p", integer(3), integer(4))]
    assert "was given for p" in report.bad_lines[0].reason


MOMENT = datetime(2024, 2, 29, 12, 30, 0, 250_000, tzinfo=UTC)
TYPED: list[tuple[pa.Array, Term]] = [
    *((pa.array([7], kind), integer(7)) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *((pa.array([7], kind), integer(7)) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    (pa.array([2**64 - 1], pa.uint64()), literal(str(2**64 - 1), XSD + "integer")),
    (pa.array([0.5], pa.float32()), double(0.5)),
    (pa.array([0.1], pa.float64()), double(0.1)),
    (pa.array([Decimal("1.50")], pa.decimal128(9, 2)), literal("1.5", XSD + "decimal")),
    (pa.array([True]), boolean(value=True)),
    (pa.array([MOMENT.replace(tzinfo=None)], pa.timestamp("ms")), date_time(MOMENT)),
    (pa.array([MOMENT], pa.timestamp("ns", "Europe/Paris")), date_time(MOMENT)),
    (pa.array([date(2024, 2, 29)], pa.date32()), literal("2024-02-29", XSD + "date")),
    (pa.array(["<a>"], pa.string()), IRI("a")),
    (pa.array(["5"], pa.large_string()), integer(5)),
    (pa.array(['"5"'], pa.string_view()), string("5")),
    (pa.array(["<a>"]).dictionary_encode(), IRI("a")),
    (pa.array([7, 7], pa.int64()).dictionary_encode().slice(0, 1), integer(7)),
]


@pytest.mark.parametrize(("column", "term"), TYPED, ids=lambda x: str(getattr(x, "type", "")))
def test_a_column_holds_terms_of_its_type(column: pa.Array, term: Term) -> None:
    assert facts_of_table(pa.table({"x": column}), "C") == [fact("C", term)]


@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows"])
def test_a_row_with_a_null_is_reported_with_its_number(form: str, tmp_path: Path) -> None:
    table = pa.table({"x": [1, None, 3, 4], "y": pa.array(["a", "b", None, "d"]).dictionary_encode()})
    path = tmp_path / f"p.{form}"
    if form == "parquet":
        pq.write_table(table, path, row_group_size=2)
    else:
        new = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
        with new(path, table.schema) as writer:
            writer.write_table(table)
    facts, report = read_all(path)
    assert facts == [fact("p", integer(1), string("a")), fact("p", integer(4), string("d"))]
    assert [str(b) for b in report.bad_lines] == [
        f"{path}:row 2: column x: null",
        f"{path}:row 3: column y: null",
    ]
    with pytest.raises(LoadProblem, match="I012"):
        read_all(path, strict=True)


@pytest.mark.parametrize("packed", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_columnar_files_are_read_packed_too(form: str, packed: str, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    table = pa.table({"x": ["<a>"], "y": [5]})
    if form == "parquet":
        pq.write_table(table, plain)
    else:
        with pa.ipc.new_file(plain, table.schema) as writer:
            writer.write_table(table)
    (tmp_path / f"p.{form}{packed}").write_bytes(PACKERS[packed](plain.read_bytes()))
    assert read_all(tmp_path / f"p.{form}{packed}")[0] == [fact("p", IRI("a"), integer(5))]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_a_bad_row(value: float) -> None:
    with pytest.raises(
        LoadProblem, match=r"I013: row 2 is no fact: column x: (nan|inf) is not a finite number"
    ):
        facts_of_table(pa.table({"x": [1.0, value]}), "C")


def test_a_moment_beyond_the_calendar_is_a_bad_row() -> None:
    with pytest.raises(LoadProblem, match="outside the years 1 to 9999"):
        facts_of_table(pa.table({"x": pa.array([2**60], pa.timestamp("s"))}), "C")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([b"x"]),
        pa.array([None]),
        pa.array([1], pa.time32("s")),
    ],
)
def test_a_column_that_holds_no_terms_is_refused_by_its_name(column: pa.Array, tmp_path: Path) -> None:
    pq.write_table(pa.table({"ok": [1], "odd": column}), tmp_path / "p.parquet")
    with pytest.raises(LoadProblem, match=r"I011.*the column odd is of type"):
        read_all(tmp_path / "p.parquet")


def test_rows_of_python_values_are_facts() -> None:
    when = datetime(2024, 1, 1, tzinfo=UTC)
    assert facts_of_rows([("q", iri("a")), (IRI("p"), "x", 5, 2.5, True, when, when.date())]) == [
        fact("q", IRI("a")),
        fact(
            "p",
            string("x"),
            integer(5),
            double(2.5),
            boolean(value=True),
            date_time(when),
            calendar_date(date(2024, 1, 1)),
        ),
    ]
    assert facts_of_rows([["x", 5], (1, 2)], "p") == [
        fact("p", string("x"), integer(5)),
        fact("p", integer(1), integer(2)),
    ]
    assert facts_of_rows([()], "p") == [fact("p")]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("p", None), "None is not a term"),
        (("p", 2**63), "no 64-bit integer"),
        (("p", float("nan")), "no finite number"),
        (("p", "\ud800"), "surrogate"),
        ((5, "x"), "a predicate is a name"),
        ((), "it is empty"),
        ("pq", "it is 'pq'"),
        (5, "it is 5"),
    ],
)
def test_a_row_that_is_no_fact_is_named(row: object, reason: str) -> None:
    with pytest.raises(LoadProblem, match=r"I013.*row 2 is no fact") as caught:
        facts_of_rows([("p", 1), row])  # type: ignore[list-item]
    assert reason in str(caught.value)
