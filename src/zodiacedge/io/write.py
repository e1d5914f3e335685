"""Facts to a folder, one file per predicate.

Rows are written in the language's total order, so equal facts give equal files. Sorting is left to
`ordered`, the text of terms and lines to the formats, the folder and its `predicates.json` to `export`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.extras import need
from zodiacedge.io.export import ExportReport, staged_export
from zodiacedge.io.external_sort import Relations, Row
from zodiacedge.io.file_names import file_names
from zodiacedge.io.formats.arrow_rows import ChunkedRows
from zodiacedge.io.formats.jsonl import json_line
from zodiacedge.io.formats.rdftext import Turtle, check_rdf, nt_lines
from zodiacedge.io.formats.tabular import tabular_lines
from zodiacedge.io.problems import problem, writing
from zodiacedge.io.sources import Format
from zodiacedge.io.streams import COMPRESSIONS, open_target

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import IO

    from zodiacedge.language.ast import Fact, Predicate

WRITABLE = (
    Format.NTRIPLES,
    Format.TURTLE,
    Format.CSV,
    Format.TSV,
    Format.JSONL,
    Format.PARQUET,
    Format.ARROW,
)
TABLES = (Format.CSV, Format.PARQUET, Format.ARROW)
"""The formats that `write_tables` writes."""
_CHUNK_ROWS = 1 << 16
_COLUMNAR = {Format.PARQUET: ("", "gz", "zst"), Format.ARROW: ("", "zst")}


def write_facts(  # noqa: PLR0913 - each keyword is an option that users set alone
    facts: Iterable[Fact],
    folder: str | os.PathLike[str],
    *,
    form: Format | str = Format.CSV,
    compression: str = "",
    predicates: Iterable[Predicate] = (),
    prefixes: Mapping[str, str] | None = None,
    base: str = "",
) -> ExportReport:
    """Write facts to a folder, one file per predicate, in bounded memory.

    Args:
        facts: The facts; duplicates are written once.
        folder: The target, created if missing.
        form: `nt ttl csv tsv jsonl parquet arrow`.
        compression: `gz bz2 zst` or none; Parquet (gz, zst) and Arrow (zst) compress inside the file.
        predicates: Predicates that get a file even without facts.
        prefixes: For Turtle, the prefixes to declare and to abbreviate IRIs with.
        base: For Turtle, the `@base` to declare, against which readers resolve relative IRIs.
    """
    layout = _layout(form, compression, Turtle(prefixes, base))
    with Relations(predicates) as relations:
        relations.add(facts)
        if layout.form in {Format.NTRIPLES, Format.TURTLE}:
            check_rdf(relations)
        return _write_files(folder, layout, relations)


def write_tables(
    tables: Mapping[Predicate, ChunkedRows | Iterable[Row]],
    folder: str | os.PathLike[str],
    *,
    form: Format | str = Format.CSV,
    compression: str = "",
) -> ExportReport:
    """Write relations whose rows are distinct and in order to a folder, as `write_facts` does: `TABLES`."""
    return _write_files(folder, _layout(form, compression, Turtle(None, "")), dict(sorted(tables.items())))


def _write_files(
    folder: str | os.PathLike[str],
    layout: _Layout,
    relations: Mapping[Predicate, ChunkedRows | Iterable[Row]],
) -> ExportReport:
    names = file_names(relations, layout.extension)
    with staged_export(folder) as export:
        for predicate, rows in relations.items():
            name = names[predicate]
            with writing(export.folder / name):
                count = _write_file(export.staged_path(name), layout, predicate, rows)
            export.add(predicate, name, count)
    return export.report


def rdf_lines(facts: Iterable[Fact]) -> Iterator[str]:
    """Yield facts as lines of N-Triples, in order; raise first if RDF cannot express one of them."""
    # The caller may stop before the last line, so nothing is written to disk.
    relations = Relations(most=sys.maxsize)
    relations.add(facts)
    check_rdf(relations)
    return (line for predicate, rows in relations.items() for line in nt_lines(predicate, rows))


@dataclass(frozen=True, slots=True)
class _Layout:
    """Format and compression of the files of an export."""

    form: Format
    compression: str
    turtle: Turtle

    @property
    def columnar(self) -> bool:
        return self.form in _COLUMNAR

    @property
    def extension(self) -> str:
        outside = self.compression and not self.columnar
        return f"{self.form.value}.{self.compression}" if outside else self.form.value


def _layout(form: Format | str, compression: str, turtle: Turtle) -> _Layout:
    known = {f.value: f for f in WRITABLE}
    name = form.value if isinstance(form, Format) else form
    chosen = known.get(name)
    if chosen is None:
        raise problem("I017", f"{name} is not a format to write", f"formats: {', '.join(known)}")
    allowed = _COLUMNAR.get(chosen, ("", *COMPRESSIONS))
    if compression not in allowed:
        offer = ", ".join(c for c in allowed if c)
        raise problem("I017", f"{name} cannot be compressed with {compression}", f"choose one of: {offer}")
    return _Layout(chosen, compression, turtle)


def _write_file(path: Path, layout: _Layout, predicate: Predicate, rows: ChunkedRows | Iterable[Row]) -> int:
    """Write a file; return its number of rows."""
    counted = _CountedRows(rows)
    with open_target(path, "" if layout.columnar else layout.compression) as stream:
        # A class with one member may have to be written in full.
        if isinstance(rows, ChunkedRows) and len(rows) > 1:
            _write_chunks(stream, layout, predicate.arity, rows)
            return len(rows)
        if layout.columnar:
            need("tables", "a Parquet or Arrow file")
            from zodiacedge.io.formats.arrow import write_columnar  # noqa: PLC0415 - loads pyarrow

            write_columnar(stream, layout.form, layout.compression, predicate.arity, list(counted))
        else:
            for line in _lines(layout, predicate, counted):
                stream.write(line.encode() + b"\n")
    return counted.count


def _write_chunks(stream: IO[bytes], layout: _Layout, arity: int, rows: ChunkedRows) -> None:
    # All load pyarrow.
    import pyarrow as pa  # noqa: PLC0415

    from zodiacedge.io.formats.arrow import write_table  # noqa: PLC0415
    from zodiacedge.io.formats.csv_columns import csv_blocks  # noqa: PLC0415

    chunks = rows.chunks(_CHUNK_ROWS)
    if layout.columnar:
        write_table(stream, layout.form, layout.compression, arity, pa.concat_tables(chunks))
        return
    for table in chunks:
        for lines in csv_blocks(table):
            stream.write(lines)


class _CountedRows:
    """Rows that are counted while they are iterated."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = rows
        self.count = 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.count += 1
            yield row


def _lines(layout: _Layout, predicate: Predicate, rows: Iterable[Row]) -> Iterator[str]:
    match layout.form:
        case Format.NTRIPLES:
            return nt_lines(predicate, rows)
        case Format.TURTLE:
            return layout.turtle.lines(predicate, rows)
        case Format.JSONL:
            return (json_line(predicate.name, row) for row in rows)
        case _:
            return tabular_lines(layout.form, predicate.arity, rows)
