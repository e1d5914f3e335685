"""Our reader of N-Triples and N-Quads agrees with the one that pyoxigraph does the work for."""

from __future__ import annotations

import gzip
import io
import os
import random
import struct
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zodiacedge.engine.embedded.ingest.ntriples import reader
from zodiacedge.engine.embedded.ingest.ntriples.reader import (
    TripleReader,
    group_triples,
    triple_batches,
)
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.errors import LoadProblem
from zodiacedge.io.formats.lines import FileReading, ReadOptions
from zodiacedge.io.formats.rdf import read_rdf
from zodiacedge.io.report import BadLine, Findings
from zodiacedge.io.sources import Format, SourceFile, expand
from zodiacedge.language.ast import Fact
from zodiacedge.terms import (
    INTEGER_RANGES,
    IRI,
    RDF,
    RDF_TYPE,
    XSD,
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    BlankNode,
)

Seen = tuple[list[Fact], list[tuple[int, int | None, str]]]
Places = list[tuple[int, int | None]]

DOCUMENTS = settings(max_examples=60, deadline=None)
TYPES = [*INTEGER_RANGES, XSD_DECIMAL, XSD_DOUBLE, XSD_FLOAT, XSD_BOOLEAN, XSD_DATETIME, XSD_DATE]


def theirs(data: bytes, form: Format = Format.NTRIPLES, blank_prefix: str = "") -> Seen:
    findings = Findings(keep=10**9)
    source = SourceFile(Path("x"), form)
    reading = FileReading(source, ReadOptions(), findings, blank_prefix=blank_prefix)
    facts = [fact for batch in read_rdf(io.BytesIO(data), reading) for fact in batch]
    return facts, [(bad.line, bad.offset, bad.text) for bad in findings.kept]


def ours(
    data: bytes, form: Format = Format.NTRIPLES, blank_prefix: str = "", cuts: tuple[int, ...] = ()
) -> Seen:
    dictionary = Dictionary()
    reader = TripleReader(dictionary, quads=form is Format.NQUADS, blank_prefix=blank_prefix)
    for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        reader.feed(data[start:end])
    reader.finish()
    assert reader.bad_count == len(reader.bad)
    return decoded(reader.triples, dictionary), [(bad.line, bad.offset, bad.text) for bad in reader.bad]


def decoded(triples: np.ndarray[tuple[int, int], np.dtype[np.int32]], dictionary: Dictionary) -> list[Fact]:
    terms = [dictionary.decode(number) for number in range(len(dictionary))]
    # What the kernel enters is what the dictionary itself would look for.
    assert [dictionary.find(term) for term in terms] == list(range(len(terms)))
    facts = []
    for subject, predicate, value in triples.tolist():
        name = terms[predicate]
        assert isinstance(name, IRI)
        facts.append(Fact(name.value, (terms[subject], terms[value])))
    return facts


def agree(data: bytes, form: Format = Format.NTRIPLES, blank_prefix: str = "") -> Seen:
    expected = theirs(data, form, blank_prefix)
    assert ours(data, form, blank_prefix) == expected
    return expected


def bad_places(data: bytes, form: Format = Format.NTRIPLES) -> Places:
    return [(line, offset) for line, offset, _ in agree(data, form)[1]]


# -- Terms of all kinds, written in all ways

characters = st.characters(exclude_categories=["Cs"])
iris = st.text(characters.filter(lambda c: c > " " and c not in '<>"{}|^`\\'), max_size=12)
names = st.one_of(
    iris,
    iris.map("http://example.org/".__add__),
    st.sampled_from([RDF_TYPE, XSD_INTEGER, "p", "http://example.org/a", ""]),
)
label_starts = st.sampled_from("abzAZ_09éß一𐀀\u00c0\u02ff\u0370\u200c\u2070\u2c00\u3001\uf900\ufdf0\ufffd")
label_parts = st.sampled_from("aZ_0-é·\u0300\u036f\u203f\u2040.")
labels = st.builds(
    lambda first, rest: first + rest.rstrip("."), label_starts, st.text(label_parts, max_size=5)
)
lexicals = st.one_of(
    st.text(characters, max_size=12),
    st.integers().map(str),
    st.floats().map(repr),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.datetimes().map(datetime.isoformat),
    st.from_regex(r"[ \t]?[+-]?[0-9]{0,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,3})?[ \n]?", fullmatch=True),
    st.sampled_from(["true", "false", "1", "0", "TRUE", " true ", "NaN", "INF", "-0", "-0.0", "+5", "", "."]),
)
datatypes = st.one_of(
    st.sampled_from([*TYPES, XSD + "string", XSD + "date", XSD + "int", RDF + "HTML", RDF + "langString"]),
    iris,
)
tags = st.from_regex(r"[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8}){0,2}", fullmatch=True)


@st.composite
def escaped(draw: st.DrawFn, text: str, *, in_string: bool) -> str:
    """Write a text, some of its characters as escapes."""
    short = {"\t": "t", "\b": "b", "\n": "n", "\r": "r", "\f": "f", '"': '"', "'": "'", "\\": "\\"}
    written = []
    for c in text:
        must = in_string and c in '"\\\n\r'
        how = draw(st.integers(0, 5 if must else 9))
        if how > 3 and not must:
            written.append(c)
        elif in_string and c in short and (how > 2 or must):
            written.append("\\" + short[c])
        elif how % 2 and ord(c) < 0x10000:
            written.append(f"\\u{ord(c):04{'xX'[how > 2]}}")
        elif how == 2 and ord(c) >= 0x10000:
            high, low = struct.unpack("<2H", c.encode("utf-16-le"))
            written.append(f"\\u{high:04X}\\u{low:04x}")
        else:
            written.append(f"\\U{ord(c):08X}")
    return "".join(written)


@st.composite
def written_iris(draw: st.DrawFn) -> str:
    return f"<{draw(escaped(draw(names), in_string=False))}>"


@st.composite
def written_literals(draw: st.DrawFn) -> str:
    text = f'"{draw(escaped(draw(lexicals), in_string=True))}"'
    space, more = draw(spaces), draw(spaces)
    match draw(st.integers(0, 3)):
        case 0:
            return text
        case 1:
            return f"{text}{space}@{draw(tags)}"
        case _:
            return f"{text}{space}^^{more}<{draw(escaped(draw(datatypes), in_string=False))}>"


spaces = st.text(" \t", max_size=2)
blanks = labels.map("_:".__add__)
subjects = st.one_of(written_iris(), blanks)
objects = st.one_of(written_iris(), blanks, written_literals(), written_literals())
comments = st.one_of(
    st.just(""), st.text(characters, max_size=8).map(lambda t: "#" + t.replace("\n", "").replace("\r", ""))
)


@st.composite
def lines(draw: st.DrawFn, *, quads: bool = False) -> bytes:
    if draw(st.integers(0, 7)) == 0:
        text = draw(spaces) + draw(comments)
    else:
        parts = [draw(subjects), draw(written_iris()), draw(objects)]
        if quads and draw(st.booleans()):
            parts.append(draw(subjects))
        text = "".join(draw(spaces) + part for part in parts) + draw(spaces) + "." + draw(spaces)
        text += draw(comments)
    return text.encode() + draw(st.sampled_from([b"\n", b"\n", b"\r\n", b"\r", b"\n\n"]))


@given(st.lists(lines(), max_size=8).map(b"".join))
@DOCUMENTS
def test_all_kinds_of_terms_are_the_same_terms(data: bytes) -> None:
    agree(data)


@given(st.lists(lines(quads=True), max_size=8).map(b"".join), st.sampled_from(["", "f1_", "é"]))
@DOCUMENTS
def test_quads_are_the_same_facts(data: bytes, prefix: str) -> None:
    agree(data, Format.NQUADS, prefix)


# -- Broken input

SAMPLES = (
    b"<http://example.org/a> <http://example.org/p> <http://example.org/b> .",
    b"<a> <p> <b> <g> .",
    b"_:b1 <p> _:b2.3 _:g .",
    b'<a\\u00e9> <p> "text \\"with\\" \\U0001F600 \\uD83D\\uDE00"@en-GB-x1 . # comment',
    '<é> <p> "é一😀"@de <g h> .'.encode(),
    b'<a> <p> "05"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    b'<a> <p> "-1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>.',
    b'<a> <p> "12.345678901234567e-3"^^<http://www.w3.org/2001/XMLSchema#double> .',
    b'<a> <p> "2024-02-29T23:59:59.25+01:30"^^<http://www.w3.org/2001/XMLSchema#dateTime> .',
    b'<a> <p> "true"^^<http://www.w3.org/2001/XMLSchema#boolean> .',
    b'<a> <p> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
    b"<a> <p> <<( <a> <p> <b> )>> .",
    b'_:a<p>"".',
    b"   # only a comment",
    b"",
)
_SINGLE = b"<>\"_:.@^\\# \t\r\n-+0129uUtnbEeTZ{}|`'\0\x0b\x7f\x80\xa9\xc3\xe4\xed\xf0\xf4\xff\xef\xbb\xbf"
BYTES = (
    *(bytes([b]) for b in _SINGLE),
    b"\\u0020",
    b"\\u12",
    b"\\uD800",
    b"\\U00110000",
    b"^^",
    b"--",
    b"..",
    b"<<",
    b"\xc3\xa9",
    b"\xed\xa0\x80",
    b"\xef\xbf\xbe",
    b"\r\n",
)


def mutated(seed: int, count: int) -> bytes:
    """Return lines of the samples, most with a few bytes changed; always the same for a seed."""
    dice = random.Random(seed)
    found = []
    for _ in range(count):
        line = bytearray(dice.choice(SAMPLES))
        for _ in range(dice.choice((0, 1, 1, 1, 2, 3))):
            at = dice.randrange(len(line) + 1)
            match dice.randrange(5):
                case 0:
                    del line[at : at + dice.choice((1, 1, 2, 9))]
                case 1:
                    line[at : at + 1] = dice.choice(BYTES)
                case 2:
                    line[at : at + 1] = dice.randbytes(1)
                case 3 if line:
                    start = dice.randrange(len(line))
                    line[at:at] = line[start : start + dice.randrange(12)]
                case _:
                    line[at:at] = dice.choice(BYTES)
        found.append(bytes(line))
    return dice.choice((b"\n", b"\n", b"\r\n")).join(found)


@pytest.mark.parametrize("form", [Format.NTRIPLES, Format.NQUADS])
@pytest.mark.parametrize("seed", range(12))
def test_broken_files_give_the_same_facts_and_the_same_bad_lines(form: Format, seed: int) -> None:
    facts, bad = agree(mutated(seed, 600), form)
    assert len(facts) > 100
    assert len(bad) > 100


@given(st.binary(max_size=60), st.sampled_from([Format.NTRIPLES, Format.NQUADS]))
@settings(max_examples=150, deadline=None)
def test_any_bytes_at_all_are_read_alike(data: bytes, form: Format) -> None:
    agree(data, form)


@pytest.mark.parametrize(
    "line",
    [
        b"<a> <p> <b> .#x",
        b"<a> <p> <b> .5",
        b"<a> <p> <b> . .",
        b"<a> <p> <b> #.",
        b"<> <> <> .",
        b"<a> <p> <b>",
        b"_:a <p> _:b..",
        b"_:a <p> _:b..c .",
        b"_:a <p> _:b.c.",
        b"_:a. <p> <b> .",
        b"_:-a <p> <b> .",
        b"_:a- <p> <b> .",
        b"_: <p> <b> .",
        "_:a\u00b7 <p> _:\u00b7 .".encode(),
        "_:a <p> _:a\ufffe .".encode(),
        "_:a <p> _:a\U000f0000 .".encode(),
        b'<a> <p> "x"@en-1 .',
        b'<a> <p> "x"@e1 .',
        b'<a> <p> "x"@en- .',
        b'<a> <p> "x"@en--ltr .',
        b'<a> <p> "x"@ .',
        b'<a> <p> "x" @EN .',
        b'<a> <p> "x"\t^^ <d> .',
        b'<a> <p> "x"^<d> .',
        b'<a> <p> "x"^^ .',
        b'<a> <p> "x"^^_:d .',
        b'<a> <p> "x"^^<d e> .',
        b'<a> <p> "x"^^<\\u0020> .',
        b'<a> <p> "\\uDE00\\uD83D" .',
        b'<a> <p> "\\uD83D\\u0041" .',
        b'<a> <p> "5"^^<http://www.w3.org/2001/XMLSchema#int\\u0065ger> .',
        b'<a> <p> "\\u0035"^^<http://www.w3.org/2001/XMLSchema#int> .',
        b'<a> <p> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#\\u006CangString> .',
        b"<\\uD83D\\uDE00> <p> <b> .",
        b'<a> <p> "a\0b" .',
        b"<a\0b> <p> <c> .",
        b"<a> <p> <b> . # \xff",
        b"\x0b<a> <p> <b> .",
        b"<a> <p> <b> <g\\u0020> .",
        b"<a> <p> <b> <g\\uD800> .",
        b"<a> <p> <b> <g<h> .",
        b"<a> <p> <b> <<h> .",
        b"<a> <p> <b> <\xff> .",
        b'<a> <p> <b> "g" .',
        b'<a> <p> "x"@en<g>.',
        b"<a> <p> <b> _:g.",
        b"<a> <p> <b> <g> <h> .",
        b"'a' <p> <b> .",
        b"<a> a <b> .",
        b"<a> <p> 5 .",
    ],
)
@pytest.mark.parametrize("form", [Format.NTRIPLES, Format.NQUADS])
def test_corners_are_the_same(line: bytes, form: Format) -> None:
    agree(b"<a> <p> <b> .\n" + line + b"\n<a> <p> <c> .", form)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"<a> <p> .", "column 9: the object of a triple"),
        (b"<a> <p> <b>", "column 12: a triple must be followed by a dot"),
        (b"<a> <p> <b> . <a> <p> <c> .", "column 15: only a single triple"),
        (b'"a" <p> <b> .', "column 1: the subject of a triple"),
        (b"<a> _:p <b> .", "column 5: the predicate of a triple"),
        (b'<a> <p> "open .', "column 16: a string is opened and not closed"),
        ('<é> <p> "\\q" .'.encode(), "column 10: this escape"),
        (b'<a> <p> "\xff" .', "column 10: not UTF-8"),
        (b"<a b> <p> <b> .", "column 3: an IRI may not hold this character"),
        (b'<a> <p> "x"^^"y" .', "column 14: the datatype of a literal"),
        (b"<< <a> <p> <b> >> <p> <b> .", "column 1: triple terms"),
        (b'<a> <p> "x"@en--ltr .', "column 16: strings with a base direction"),
        (b'<a> <p> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .', "no language tag"),
        (b"_: <p> <b> .", "column 3: a blank node has an empty label"),
        (b'<a> <p> "x"@en- .', "column 16: a language tag"),
    ],
)
def test_a_broken_line_is_named(line: bytes, reason: str) -> None:
    reader = TripleReader(Dictionary(), quads=False, file="f.nt")
    reader.feed(b"<a> <p> <b> .\n# note\n\n" + line + b"\n<a> <p> <b> .\n")
    (bad,) = reader.bad
    assert reason in bad.reason
    assert (bad.file, bad.line, bad.offset, bad.text) == (
        "f.nt",
        4,
        22,
        line.decode(errors="backslashreplace"),
    )
    assert len(reader.triples) == 2


def test_a_bad_line_leaves_nothing_in_the_dictionary() -> None:
    dictionary = Dictionary()
    TripleReader(dictionary, quads=False).feed(b'<new> <newer> "newest" <bad>\n<n> <o> "p"^^<q> ;\n')
    assert len(dictionary) == 0


def test_carriage_returns_end_lines_but_do_not_count_them() -> None:
    assert bad_places(b"<a> <p> <b> .\r<a> <p> <c> .\r\nbad\rworse\r\n<a> <p> <d> .\r") == [(2, 29), (2, 29)]


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    bom = b"\xef\xbb\xbf"
    assert bad_places(bom + b"<a> <p> <b> .\n") == []
    assert bad_places(bom + b"bad") == [(1, 0)]
    assert bad_places(bom + bom + b"<a> <p> <b> .\n") == [(1, 0)]
    assert bad_places(b"<a> <p> <b> .\n" + bom + b"<a> <p> <b> .\n") == [(2, 14)]
    assert bad_places(bom) == []
    assert bad_places(b"") == []


# -- Bytes as they come


def test_a_document_may_be_cut_anywhere() -> None:
    data = b"\xef\xbb\xbf" + b"\r\n".join(SAMPLES) + b'\nbad\n\r\r<a> <p> "\xc3\xa9\xf0\x9f\x98\x80" .\rbad'
    for form in (Format.NTRIPLES, Format.NQUADS):
        expected = theirs(data, form)
        for cut in range(len(data) + 1):
            assert ours(data, form, cuts=(cut,)) == expected
        assert ours(data, form, cuts=tuple(range(1, len(data)))) == expected


def test_everything_grows_when_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("_PIECE", 200), ("_OUT_ROWS", 3), ("_BAD_LINES", 2), ("_MORE_TERMS", 1)):
        monkeypatch.setattr(reader, name, size)
    long = b'<a> <p> "' + b"text" * 5000 + b'\\n" .\n'
    agree(
        mutated(1, 300) + b"\n" + long + b"bad " * 3000 + b"\n" + long.replace(b"t", b"d") + mutated(2, 300)
    )
    agree(b"".join(b"<s%d> <p%d> _:o%d .\n" % (n, n % 400, n) for n in range(1200)), blank_prefix="f1_")


def test_many_predicates_are_told_apart() -> None:
    dice = random.Random(5)
    names = [b"".join(dice.choices((b"a", b"b", b"/"), k=dice.randrange(12))) for _ in range(300)]
    agree(b"".join(b"<%s> <%s> <%s> .\n" % tuple(dice.choices(names, k=3)) for _ in range(3000)))


def test_two_documents_share_a_dictionary() -> None:
    dictionary = Dictionary()
    first, second = (TripleReader(dictionary, quads=False, blank_prefix=prefix) for prefix in ("f1_", "f2_"))
    first.feed(b"_:a <p> <b> .\n")
    second.feed(b"_:a <p> <b> .\n")
    found = [dictionary.decode(int(reader.take()[0, 0])) for reader in (first, second)]
    assert found == [BlankNode("f1_a"), BlankNode("f2_a")]
    assert len(first.triples) == 0
    assert dictionary.encode(IRI("b")) == dictionary.find(IRI("b"))


# -- Into tables


def test_triples_are_grouped_by_predicate_and_by_class() -> None:
    dictionary = Dictionary()
    reader = TripleReader(dictionary, quads=False)
    members = "".join(f"<{member}> <{RDF_TYPE}> <{name}> .\n" for member, name in ("aC", "bC", "ap"))
    reader.feed(f"<a> <p> <b> .\n{members}<b> <p> <a> .\n<a> <q> <p> .\n".encode())
    groups = group_triples(reader.triples, dictionary)
    a, b, c, p, q = (dictionary.find(IRI(name)) for name in "abCpq")
    assert {name: rows.tolist() for name, rows in groups.predicates.items()} == {
        p: [[a, b], [b, a]],
        q: [[a, p]],
    }
    assert {name: rows.tolist() for name, rows in groups.classes.items()} == {c: [[a], [b]], p: [[a]]}


def test_grouping_loses_nothing() -> None:
    dictionary = Dictionary()
    numbers = dictionary.encode_all([IRI(RDF_TYPE), *(IRI(str(n)) for n in range(99))])
    triples = numbers[np.random.default_rng(1).integers(0, 100, (5000, 3))]
    triples[::3, 1] = numbers[0]
    groups = group_triples(triples, dictionary)
    found = [(s, p, o) for p, rows in groups.predicates.items() for s, o in rows.tolist()]
    found += [(s, int(numbers[0]), c) for c, rows in groups.classes.items() for (s,) in rows.tolist()]
    assert sorted(found) == sorted(map(tuple, triples.tolist()))
    assert group_triples(triples[:0], dictionary) == ({}, {})


# -- Files


def reading_of(path: Path, **options: int) -> FileReading:
    (source,) = expand([path])
    return FileReading(
        source, ReadOptions(batch_size=options.get("batch_size", 8192)), Findings(options.get("keep", 20))
    )


def test_a_compressed_file_is_read_in_batches_with_its_findings(tmp_path: Path) -> None:
    path = tmp_path / "f.nt.gz"
    data = b"<a> <p> <b> .\n" * 50_000 + b"bad\n" * 30 + b"<a> <p> <c> ."
    path.write_bytes(gzip.compress(data))
    one = reading_of(path, batch_size=20_000)
    dictionary = Dictionary()
    batches = list(triple_batches(one, dictionary))
    assert sum(map(len, batches)) == 50_001
    assert len(batches) > 1
    assert (one.bad, one.findings.total, len(one.findings.kept)) == (30, 30, 20)
    assert one.findings.kept[0] == BadLine(
        str(path), 50_001, "column 1: the subject of a triple must be an IRI or a blank node", 700_000, "bad"
    )
    assert one.counter.bytes == path.stat().st_size


def test_a_damaged_file_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "f.nq.gz"
    path.write_bytes(gzip.compress(b"<a> <p> <b> <g> .\n" * 9)[:-9])
    with pytest.raises(LoadProblem, match="damaged"):
        list(triple_batches(reading_of(path), Dictionary()))


def test_labels_of_blank_nodes_get_the_prefix_of_their_file(tmp_path: Path) -> None:
    path = tmp_path / "f.nq"
    path.write_bytes(b"_:a <p> <b> <g> .\nbad\n<a> <p> <b> .\n" * 30)
    dictionary = Dictionary()
    one = reading_of(path, keep=3)
    one.blank_prefix = "f1_"
    (triples,) = triple_batches(one, dictionary)
    assert decoded(triples, dictionary)[:2] == [
        Fact("p", (BlankNode("f1_a"), IRI("b"))),
        Fact("p", (IRI("a"), IRI("b"))),
    ]
    assert (len(triples), one.bad, len(one.findings.kept)) == (60, 30, 3)
    path.write_bytes(b"")
    assert not list(triple_batches(reading_of(path), dictionary))


# -- Without a compiler

_SCRIPT = """
import sys
from zodiacedge.engine.embedded.kernels.jit import COMPILED
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.embedded.ingest.ntriples.reader import TripleReader, group_triples
assert not COMPILED
dictionary = Dictionary()
data = sys.stdin.buffer.read()
for quads in (False, True):
    reader = TripleReader(dictionary, quads=quads, blank_prefix="f1_")
    reader.feed(data)
    reader.finish()
    for row in reader.triples.tolist():
        print(*row)
    for bad in reader.bad:
        print(bad.line, bad.offset, bad.reason)
    groups = group_triples(reader.triples, dictionary)
    print(sorted((name, rows.tolist()) for part in groups for name, rows in part.items()))
for number in range(len(dictionary)):
    print(ascii(dictionary.decode(number)))
"""


def test_plain_python_does_the_same() -> None:
    middle = b"".join(
        b'<a> <p> "%s"^^<http://www.w3.org/2001/XMLSchema#double> .\n' % text
        for text in (
            b"9007199254740993e-1",
            b"0.12345678901234567",
            b"1.2345678901234567E-5",
            b"123456789012345678",
        )
    )
    data = middle + mutated(77, 250)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        input=data,
        env=os.environ | {"ZODIAC_PURE_PYTHON": "1"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    dictionary = Dictionary()
    printed = []
    for quads in (False, True):
        reader = TripleReader(dictionary, quads=quads, blank_prefix="f1_")
        reader.feed(data)
        reader.finish()
        printed += [" ".join(map(str, row)) for row in reader.triples.tolist()]
        printed += [f"{bad.line} {bad.offset} {bad.reason}" for bad in reader.bad]
        groups = group_triples(reader.triples, dictionary)
        printed.append(str(sorted((name, rows.tolist()) for part in groups for name, rows in part.items())))
    printed += [ascii(dictionary.decode(number)) for number in range(len(dictionary))]
    assert done.stdout.decode().splitlines() == printed
