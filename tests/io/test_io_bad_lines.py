"""A bad line is reported with its place and reason and never stops a load; strict makes it a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zodiacedge.errors import LoadProblem
from zodiacedge.io import BadLine, Load, LoadReport, read, read_all
from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import IRI, RDF_TYPE, integer, string

if TYPE_CHECKING:
    from pathlib import Path

GOOD = b"<a> <p> <b> .\n"


def load(path: Path, content: bytes) -> tuple[list[Fact], LoadReport]:
    path.write_bytes(content)
    return read_all(path)


def places(report: LoadReport) -> list[tuple[int, int | None]]:
    assert report.bad == len(report.bad_lines)
    return [(b.line, b.offset) for b in report.bad_lines]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"<a> <p> .", "column 9: The object of a triple"),
        (b"<a> <p> <b>", "column 12: Triples must be followed by a dot"),
        (b"<a> <p> <b> . <a> <p> <c> .", "Only a single triple"),
        (b'"a" <p> <b> .', "The subject of a triple"),
        (b"<a> _:p <b> .", "The predicate of a triple"),
        (b'<a> <p> "open .', "column 9: "),
        (b'<a> <p> "\\q" .', "Unexpected escape character"),
        (b'<a> <p> "\xff" .', "Invalid UTF-8"),
        (b"<a b> <p> <b> .", "'a b' is not an IRI"),
        (b"<a> <p q> <b> .", "'p q' is not an IRI"),
        (b"<a> <p> <b\\u0020c> .", "'b c' is not an IRI"),
        (b'<a> <p> "x"^^<d e> .', "'d e' is not an IRI"),
        (b"<a> <p> <<( <a> <p> <b> )>> .", "triple terms"),
        (b"<< <a> <p> <b> >> <p> <b> .", "triple terms"),
        (b'<a> <p> "x"@en--ltr .', "base direction"),
        (b'<a> <p> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .', "no language tag"),
        (b"@prefix ex: <http://ex.org/> .", "The subject of a triple"),
    ],
)
def test_a_broken_triple_is_skipped_and_named(line: bytes, reason: str, tmp_path: Path) -> None:
    facts, report = load(tmp_path / "f.nt", GOOD + b"# note\n\n" + line + b"\n" + GOOD)
    assert facts == [fact("p", IRI("a"), IRI("b"))] * 2
    assert places(report) == [(4, 22)]
    assert reason in report.bad_lines[0].reason
    assert report.bad_lines[0].file == str(tmp_path / "f.nt")


@pytest.mark.parametrize(
    ("text", "facts", "bad"),
    [
        (b'<a> <p> "x\ny" .\n', 0, [(1, 0), (2, 11)]),
        # The second half looks like a comment.
        (b'<a> <p> "x\n# y" .\n', 0, [(1, 0)]),
        # As many triples as lines, because another line holds two.
        (b'<a> <p> "x\ny" .\n<a> <p> <b> .\r<a> <p> <b> .\n', 2, [(1, 0), (2, 11)]),
    ],
)
def test_a_string_cannot_run_over_the_end_of_a_line(
    text: bytes, facts: int, bad: list[tuple[int, int]], tmp_path: Path
) -> None:
    found, report = load(tmp_path / "f.nt", text + GOOD)
    assert found == [fact("p", IRI("a"), IRI("b"))] * (facts + 1)
    assert places(report) == bad


def test_a_carriage_return_ends_a_line_of_ntriples(tmp_path: Path) -> None:
    facts, report = load(tmp_path / "f.nt", GOOD.replace(b"\n", b"\r") * 2 + b'<a> <p> "x\ry" .\r')
    assert len(facts) == 2
    assert report.bad == 2


def test_lines_far_apart_keep_their_numbers_and_offsets(tmp_path: Path) -> None:
    many = 30_000
    facts, report = load(tmp_path / "f.nt", GOOD * many + b"bad\n" + GOOD * many + b"worse")
    assert len(facts) == 2 * many
    assert places(report) == [(many + 1, len(GOOD) * many), (2 * many + 2, len(GOOD) * 2 * many + 4)]


@given(
    st.lists(
        st.sampled_from([GOOD, b"bad\n", b"\n", b"# c\n", b'<a> <p> "\xc3\xa9" .\r\n', b"<a> <p\n"]),
        max_size=9,
    )
)
@settings(max_examples=60, deadline=None)
def test_what_a_line_says_does_not_depend_on_its_neighbours(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("f") / "f.nt"
    facts, report = load(path, b"".join(lines))
    assert len(facts) == sum(b" .\n" in line.replace(b"\r", b"") for line in lines)
    starts = [sum(map(len, lines[:i])) for i in range(len(lines))]
    bad = [(i + 1, starts[i]) for i, line in enumerate(lines) if line in {b"bad\n", b"<a> <p\n"}]
    assert places(report) == bad


def test_quads_lose_the_name_of_their_graph(tmp_path: Path) -> None:
    facts, report = load(tmp_path / "f.nq", b"<a> <p> <b> <g> .\n" + GOOD + b"<a> <p> <b> <g> <h> .\n")
    assert facts == [fact("p", IRI("a"), IRI("b"))] * 2
    assert places(report) == [(3, 32)]


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    bom = b"\xef\xbb\xbf"
    assert load(tmp_path / "f.nt", bom + GOOD)[0] == [fact("p", IRI("a"), IRI("b"))]
    assert load(tmp_path / "C.csv", bom + b"5\n")[0] == [fact("C", integer(5))]
    facts, report = load(tmp_path / "g.nt", bom + b"bad\n" + GOOD)
    assert (len(facts), places(report)) == (1, [(1, 0)])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"a", "1 column where the first row has 2 columns"),
        (b"a,b,c", "3 columns where"),
        (b"\xff,b", "not UTF-8: byte 0xff"),
        (b'"\xff",b', "not UTF-8: byte 0xff"),
        (b'"a"b,c', "text after the closing quote"),
        (b'"open,b', "a quote is opened and not closed"),
        (b'b,"', "a quote is opened and not closed"),
    ],
)
def test_a_broken_row_of_csv_is_skipped_and_named(line: bytes, reason: str, tmp_path: Path) -> None:
    facts, report = load(tmp_path / "p.csv", b'x,"multi\nline"\n\n' + line + b'\ny,"5"\r\ny,6')
    assert facts == [
        fact("p", string("x"), string("multi\nline")),
        fact("p", string("y"), integer(5)),
        fact("p", string("y"), integer(6)),
    ]
    assert places(report) == [(4, 16)]
    assert report.bad_lines[0].reason.startswith(reason)


def test_an_open_quote_does_not_swallow_a_large_file(tmp_path: Path) -> None:
    rows = 200_000
    facts, report = load(tmp_path / "C.csv", b'"oops\n' + b"row 1\n" * rows + b'end"\n')
    assert len(facts) == rows + 1
    assert places(report) == [(1, 0)]


def test_tsv_has_no_quoting_of_its_own(tmp_path: Path) -> None:
    facts, report = load(tmp_path / "p.tsv", b'"5"\ta,b\n"open\t"a\\tb"\none\n\xff\t1\n')
    assert facts == [fact("p", string("5"), string("a,b")), fact("p", string('"open'), string("a\tb"))]
    assert places(report) == [(3, 21), (4, 25)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"predicate": "p"', "column 18: not JSON"),
        (b'{"predicate": "p"}', "not a fact"),
        (b'{"predicate": "p", "args": "x"}', "not a fact"),
        (b'{"predicate": 5, "args": ["x"]}', "no predicate"),
        (b'{"predicate": "a b", "args": ["x"]}', "'a b' cannot be the name"),
        (b'{"predicate": "p", "args": [null, "x"]}', "argument 1 is null"),
        (b'{"predicate": "p", "args": ["x", ["y"]]}', "argument 2 is a list"),
        (b'{"predicate": "p", "args": ["x", {"y": 1}]}', "argument 2 is a dictionary"),
        (b'{"predicate": "p", "args": ["x", NaN]}', "NaN is not a number"),
        (b'{"predicate": "p", "args": ["x", "\\ud800"]}', "argument 2 holds half"),
        (b'{"predicate": "p", "args": ["x", "y"], "graph": "g"}', 'unknown key "graph"'),
        (b'{"predicate": "p", "args": ["x", "y", "z"]}', "p has 3 arguments here and 2 before"),
        (b'"x"', "not a fact"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "not "),
    ],
)
def test_a_broken_line_of_json_is_skipped_and_named(line: bytes, reason: str, tmp_path: Path) -> None:
    good = b'{"predicate": "p", "args": ["x", 5]}\n'
    facts, report = load(tmp_path / "f.jsonl", good + line + b"\n\n" + good)
    assert facts == [fact("p", string("x"), integer(5))] * 2
    assert places(report) == [(2, len(good))]
    assert report.bad_lines[0].reason.startswith(reason)


def test_all_bad_lines_are_counted_and_the_first_few_kept(tmp_path: Path) -> None:
    (tmp_path / "f.nt").write_bytes(b"bad\n" * 50 + GOOD)
    seen: list[BadLine] = []
    load_ = read(tmp_path / "f.nt", keep_bad_lines=3, on_bad_line=seen.append)
    assert sum(map(len, load_)) == 1
    assert load_.report.bad == 50
    assert [b.line for b in load_.report.bad_lines] == [1, 2, 3]
    assert [b.line for b in seen] == list(range(1, 51))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("f.nt", GOOD + b"bad\n" * 9),
        ("f.csv", b"a,b\n" + b"c\n" * 9),
        ("f.tsv", b"a\tb\n" + b"c\n" * 9),
        ("f.jsonl", b'["a"]\n' + b"{\n" * 9),
    ],
)
def test_strict_fails_with_one_message_that_lists_the_first_few(
    name: str, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(LoadProblem) as caught:
        read_all(path, strict=True)
    (finding,) = caught.value.diagnostics
    assert finding.code == "I012"
    assert "9 bad lines" in finding.message
    assert f"{path}:2: " in finding.message
    assert f"{path}:6: " in finding.message
    assert f"{path}:7: " not in finding.message
    assert "and 4 more" in finding.message


def test_strict_says_nothing_about_a_good_file(tmp_path: Path) -> None:
    (tmp_path / "f.nt").write_bytes(GOOD)
    assert len(read_all(tmp_path / "f.nt", strict=True)[0]) == 1


def test_a_class_is_rdf_type_in_every_format(tmp_path: Path) -> None:
    expected = [Fact(RDF_TYPE, (IRI("a"), IRI("C")))]
    assert load(tmp_path / "f.nt", f"<a> <{RDF_TYPE}> <C> .\n".encode())[0] == expected
    assert load(tmp_path / "C.csv", b"<a>\n")[0] == expected
    assert load(tmp_path / "f.jsonl", b'{"predicate": "C", "args": ["<a>"]}\n')[0] == expected


def test_a_load_is_a_stream_of_batches_with_progress(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"1,2\n" * 25)
    (tmp_path / "b.csv").write_bytes(b"1,2\n" * 5)
    told: list[tuple[int, int, int]] = []
    load_: Load = read(
        tmp_path, batch_size=10, progress=lambda p: told.append((p.bytes_read, p.bytes_total, p.facts))
    )
    assert [len(batch) for batch in load_] == [10, 10, 5, 5]
    assert told[-1] == (120, 120, 30)
    assert told == sorted(told)
    assert [f.facts for f in load_.report.files] == [25, 5]
