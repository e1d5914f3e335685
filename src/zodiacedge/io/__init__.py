"""Facts in and out of files: RDF formats, CSV, TSV, JSON lines, Parquet and Arrow.

    problems        the diagnostics, I001 and following
    paths           local paths, and URIs of object stores and HDFS
    streams         byte streams, compressed or not
    text            text files as a whole
    sources         the files of a load: paths, folders, globs, relation=path, formats by extension
    report          bad lines, counts, progress
    formats         one module per file format
    read            loads: files to batches of facts
    rows            facts from Python values
    tables          facts from Arrow tables and data frames
    quarantine      files of bad lines and late facts
    file_batch      files that arrived in a folder, for streams
    file_names      file names for predicates
    external_sort   external merge sort of rows
    export          the folder of an export: staging, predicates.json
    write           facts to a folder

`pyoxigraph` and `pyarrow` are imported at their first use. Applying facts to a knowledge base and showing
progress are left to the callers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.extras import need
from zodiacedge.io.export import ExportReport, StagedExport, WrittenFile, staged_export
from zodiacedge.io.formats.cells import plain_cell, read_cell, write_cell
from zodiacedge.io.formats.jsonl import json_cell
from zodiacedge.io.formats.lines import ReadOptions
from zodiacedge.io.formats.tabular import csv_line, csv_text, tsv_line
from zodiacedge.io.quarantine import QUARANTINED, quarantine, quarantine_late
from zodiacedge.io.read import Load, read, read_all
from zodiacedge.io.report import BadLine, FileReport, LoadProgress, LoadReport, ProgressCallback, table_report
from zodiacedge.io.rows import facts_of_rows
from zodiacedge.io.sources import Format, SourceFile, expand
from zodiacedge.io.tables import (
    arrow_table,
    columns_of_table,
    facts_of_table,
    is_spark_frame,
    is_table,
    no_relation,
    refuse_stream,
    spark_frame,
    spark_schema,
)
from zodiacedge.io.text import read_text
from zodiacedge.io.write import TABLES, rdf_lines, write_facts, write_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from zodiacedge.terms import Term

__all__ = [
    "QUARANTINED",
    "TABLES",
    "BadLine",
    "ExportReport",
    "FileReport",
    "Format",
    "Load",
    "LoadProgress",
    "LoadReport",
    "ProgressCallback",
    "ReadOptions",
    "SourceFile",
    "StagedExport",
    "WrittenFile",
    "arrow_table",
    "columns_of_table",
    "csv_line",
    "csv_text",
    "expand",
    "facts_of_rows",
    "facts_of_table",
    "is_spark_frame",
    "is_table",
    "json_cell",
    "no_relation",
    "plain_cell",
    "quarantine",
    "quarantine_late",
    "rdf_lines",
    "read",
    "read_all",
    "read_cell",
    "read_text",
    "refuse_stream",
    "spark_frame",
    "spark_schema",
    "staged_export",
    "table_of",
    "table_report",
    "tsv_line",
    "write_cell",
    "write_facts",
    "write_tables",
]


def table_of(rows: Sequence[Sequence[Term]], names: Sequence[str]) -> pa.Table:
    """Return rows of terms as an Arrow table; a column is typed if one type holds it exactly."""
    need("tables", "an Arrow table")
    from zodiacedge.io.formats import arrow  # noqa: PLC0415 - loads pyarrow

    return arrow.table_of(rows, names)
