"""Tables by columns: CSV, TSV, Parquet and Arrow give the facts and findings of reading row by row."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch
from zodiacedge.engine.embedded.kernels.jit import COMPILED
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.errors import LoadProblem
from zodiacedge.io import read
from zodiacedge.io.formats.arrow import facts_of_table
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zodiacedge.io import Load, LoadReport
    from zodiacedge.language.ast import Fact

pytestmark = pytest.mark.skipif(not COMPILED, reason="without Numba tables are read row by row")

CELLS = [
    *("", "x", "wt1", "true", "false", "truex", "tru", "t", "f", "1", "0", "-7", "+05", "5.", ".5", "1.50"),
    *("5e0", "2.5E-3", "1e400", "1e-400", "-0.0", "0e0", "+", "-", "1e", "1e+", "1.e5", "1_0", "٣"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "0" * 30),
    *("123456789012345678901.5", "0.1234567890123456789", "1.7976931348623157e308"),
    *("<a>", "<>", "<", ">", "<a b>", "<a", "a>", "<é>", "<a|b>", "<a`>", "<a\\>", "<a^>", "<{a}>", "<\x7f>"),
    *("_", "_:", "_:b", "_:b.", "_:b.c", "_:-b", "_:é", "_x", "__", "_:_", "_:1-", "_:b c"),
    *('"text"', '"a\\tb"', '"x"@en', '"x"@EN-gb', '"5"^^xsd:byte', '"x"^^<d>', '"abc', '"a"b', '"\\q"', '"'),
    *(" 5", "5 ", "\t", "a\rb", "é", "\U0001f980", "\x00", "a,b", "a;b", 'a""b'),
]
cells = st.sampled_from(CELLS) | st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=6)
PIECES = [
    b",",
    b",",
    b"\n",
    b"\n",
    b"\r\n",
    b'"',
    b'""',
    b"\xff",
    b"\xc3",
    b"\xef\xbb\xbf",
    b";",
    b"\t",
    b"true",
]
pieces = st.sampled_from(PIECES) | cells.map(str.encode)


def by_columns(load: Load) -> tuple[set[Fact], LoadReport]:
    batch = EmbeddedBatch(Database())
    batch.load(load)
    return set(batch.store.facts(batch.distinct())), load.report


def by_rows(load: Load) -> tuple[set[Fact], LoadReport]:
    return {fact for facts in load for fact in facts}, load.report


def compare(path: Path, relation: str = "p", *, header: bool = False, delimiter: str = "") -> set[Fact]:
    spec = f"<{relation}>={path}"
    facts, report = by_columns(read(spec, header=header, delimiter=delimiter))
    expected, rows_report = by_rows(read(spec, header=header, delimiter=delimiter))
    assert facts == expected
    assert report.files == rows_report.files
    assert report.bad_lines == rows_report.bad_lines
    assert report.warnings == rows_report.warnings
    return facts


@settings(max_examples=200, deadline=None)
@given(parts=st.lists(pieces, max_size=25), header=st.booleans(), delimiter=st.sampled_from(["", ";", "§"]))
def test_any_bytes_are_read_as_row_by_row(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[bytes],
    header: bool,  # noqa: FBT001
    delimiter: str,
) -> None:
    folder = tmp_path_factory.mktemp("any")
    for extension in ("csv", "tsv"):
        path = folder / f"p.{extension}"
        path.write_bytes(b"".join(parts))
        compare(path, header=header, delimiter=delimiter)


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(cells, cells), min_size=12, max_size=30), quoted=st.booleans())
def test_all_kinds_of_cells(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str]],
    quoted: bool,  # noqa: FBT001
) -> None:
    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if quoted or set(text) & set('",\n\r') else text

    path = tmp_path_factory.mktemp("cells") / "p.csv"
    path.write_bytes("".join(f"{cell(a)},{cell(b)}\n" for a, b in rows).encode())
    compare(path)
    table = pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]})
    assert added(table) == set(facts_of_table(table, "p"))


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "x,9"])
def test_lines_across_blocks_and_records_of_several_lines(tmp_path: Path, ending: str, last: str) -> None:
    lines = [f"<s{n}>,{n}" for n in range(30_000)]
    lines[7] = "one cell"
    lines[20_000] = '"a cell' + ending + 'of two lines",5'
    lines[20_001] = '"never closed,5'
    lines[20_100] = f"{'long' * 100_000},1"
    lines[20_200] = '"""x""@en",2'
    path = tmp_path / "p.csv"
    path.write_bytes((ending.join(lines) + ending + last).encode())
    assert len(compare(path)) == 30_000 - 2 + bool(last)


def test_a_column_is_a_class_and_rdf_type_has_classes(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("<a>\n<b>\n")
    assert {fact.relation for fact in compare(path, "C")} == {RDF_TYPE}
    path.write_text("<a>,<C>\n<b>,<D>\n<c>,<C>\n<d>,5\n")
    assert len(compare(path, RDF_TYPE)) == 4


@pytest.mark.parametrize("text", ["", "\n\n", "true\n", "true", "true\nfalse\n", "true,true\n"])
def test_small_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    compare(path)


MOMENTS = [0, -1, -1001, 999, 1_700_000_000_123_456_789, -62_135_596_800_000_000_000 // 10]
COLUMNS = {
    "string": pa.array([*CELLS, None]),
    "large_string": pa.array([*CELLS, None], pa.large_string()),
    "string_view": pa.array([*CELLS, None], pa.string_view()),
    "coded": pa.array(["<a>", "5", None, "<a>"]).dictionary_encode(),
    "coded with a null": pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0]), pa.array(["x", None])),
    "coded doubles": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array([1.5, math.nan, 2.0])),
    "coded decimals": pa.array([Decimal("1.50"), Decimal("2.00"), None]).dictionary_encode(),
    "null": pa.array([None, None], pa.int64()),
    "int8": pa.array([-128, 127, None], pa.int8()),
    "int64": pa.array([-(2**63), 2**63 - 1, 0]),
    "uint64": pa.array([0, 2**63, 2**64 - 1, None], pa.uint64()),
    "small uint64": pa.array([0, 2**63 - 1], pa.uint64()),
    "half": pa.array([0.1, -0.0, math.inf, None], pa.float16()),
    "float": pa.array([0.1, math.nan, -math.inf, 1e-45], pa.float32()),
    "double": pa.array([0.1, -0.0, math.nan, math.inf, None, 5e-324, 1.7976931348623157e308]),
    "bool": pa.array([True, False, None]),
    "decimal": pa.array([Decimal("1.50"), Decimal("-0.00"), None, Decimal("123456789012345678.25")]),
    "date32": pa.array([date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), None]),
    "date64": pa.array([date(1, 1, 1), date(2024, 2, 29), None], pa.date64()),
    **{f"{unit}": pa.array([*MOMENTS[:4], None], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "ns far": pa.array(MOMENTS, pa.timestamp("ns")),
    "zoned": pa.array([datetime(2024, 1, 1, tzinfo=UTC), None], pa.timestamp("us", tz="Asia/Tokyo")),
    "years": pa.array(
        [-62_135_596_800, -62_135_596_801, 253_402_300_799, 253_402_300_800], pa.timestamp("s")
    ),
    "far": pa.array([2**62, -(2**62)], pa.timestamp("s")),
}


def added(table: pa.Table, relation: str = "p") -> set[Fact]:
    batch = EmbeddedBatch(Database())
    batch.add_table(table, relation)
    return set(batch.store.facts(batch.distinct()))


def outcome(call: Callable[[pa.Table], set[Fact]], table: pa.Table) -> set[Fact] | str:
    try:
        return call(table)
    except LoadProblem as problem:
        return str(problem)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("arity", [1, 2, 3])
def test_all_types_of_columns(tmp_path: Path, name: str, arity: int) -> None:
    column = COLUMNS[name]
    numbers = pa.array(range(len(column)))
    columns = {"x": column, "n": numbers, "y": column}
    table = pa.table(dict(list(columns.items())[:arity]))
    path = tmp_path / "p.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
        writer.write_table(table)
    compare(path)
    if name != "far" and "coded" not in name:
        pq.write_table(table, tmp_path / "p.parquet", row_group_size=2)
        compare(tmp_path / "p.parquet")
    for part in (table, table.slice(1), table.slice(0, 1)):
        assert outcome(added, part) == outcome(lambda part: set(facts_of_table(part, "p")), part)


def test_a_relation_without_columns(tmp_path: Path) -> None:
    table = pa.table({"true": [True]}).replace_schema_metadata({"zodiacedge.arity": "0"})
    pq.write_table(table, tmp_path / "p.parquet")
    assert len(compare(tmp_path / "p.parquet")) == 1
    assert added(table) == set(facts_of_table(table, "p"))
