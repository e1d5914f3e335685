"""Facts in and out of files: RDF formats, CSV, TSV, JSON lines, Parquet and Arrow.

    problems    the codes I001 and on
    places      paths, and URIs of what Arrow has a file system for
    streams     bytes, compressed or not
    sources     which files: paths, folders, globs, relation=path, formats by extension
    report      bad lines, counts, progress
    formats     one module per file format
    read        files in, batches of facts and a report out
    rows        facts from Python values
    quarantine  files of bad lines
    names       file names for predicates
    ordered     rows in the total order, on disk where they are many
    export      the folder of an export: staged, listed in predicates.json, moved into place
    write       facts to a folder

`pyoxigraph` and `pyarrow` are loaded when a file needs them, not before. Applying facts to a knowledge
base, and drawing progress, is left to the callers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.io.export import ExportReport, StagedExport, WrittenFile, staged_export
from zodiacedge.io.formats.cells import read_cell, write_cell
from zodiacedge.io.formats.lines import ReadOptions
from zodiacedge.io.formats.tabular import csv_line, tsv_line
from zodiacedge.io.quarantine import quarantine
from zodiacedge.io.read import Load, read, read_all
from zodiacedge.io.report import BadLine, FileReport, LoadReport, Progress, ProgressCallback
from zodiacedge.io.rows import facts_of_rows
from zodiacedge.io.sources import Format, SourceFile, expand
from zodiacedge.io.write import rdf_lines, write_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from zodiacedge.language.ast import Fact
    from zodiacedge.terms import Term

__all__ = [
    "BadLine",
    "ExportReport",
    "FileReport",
    "Format",
    "Load",
    "LoadReport",
    "Progress",
    "ProgressCallback",
    "ReadOptions",
    "SourceFile",
    "StagedExport",
    "WrittenFile",
    "csv_line",
    "expand",
    "facts_of_rows",
    "facts_of_table",
    "quarantine",
    "rdf_lines",
    "read",
    "read_all",
    "read_cell",
    "staged_export",
    "table_of",
    "tsv_line",
    "write_cell",
    "write_facts",
]


def facts_of_table(table: pa.Table, relation: str) -> list[Fact]:
    """Return the facts of an Arrow table's rows; refuse the table if a row is none."""
    from zodiacedge.io.formats import arrow  # noqa: PLC0415 - loads pyarrow

    return arrow.facts_of_table(table, relation)


def table_of(rows: Sequence[Sequence[Term]], names: Sequence[str]) -> pa.Table:
    """Return rows of terms as an Arrow table, typed where one type holds a column exactly."""
    from zodiacedge.io.formats import arrow  # noqa: PLC0415 - loads pyarrow

    return arrow.table_of(rows, names)
