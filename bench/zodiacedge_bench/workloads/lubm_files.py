"""Writes universities as Arrow tables and as files, column by column and without terms.

The files equal those of `zodiacedge.io` for the same facts, except for the order of rows.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zodiacedge.io.export import ExportReport, staged_export
from zodiacedge.io.formats.arrow import PARQUET_CODECS
from zodiacedge.io.problems import problem, writing
from zodiacedge.io.streams import COMPRESSIONS, open_target
from zodiacedge.language.ast import Predicate
from zodiacedge.terms import RDF_TYPE
from zodiacedge_bench.workloads.lubm_university import CLASSES, LINKS, TEXTS, University

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from pathlib import Path

FORMATS = {"parquet": tuple(PARQUET_CODECS), "csv": ("", *COMPRESSIONS), "nt": ("", *COMPRESSIONS)}
_NAMES = (*CLASSES, *LINKS, *TEXTS)


def relation(name: str) -> str:
    """Return the relation of explicit facts of a class or property."""
    return f"src_{name}"


def tables(universities: Iterable[University], *, iris: bool) -> dict[str, pa.Table]:
    """Return the facts of universities as tables of cells, by relation."""
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in _NAMES}
    for university in universities:
        cells = _Cells(university, iris=iris)
        for name, rows in batches.items():
            rows.append(cells.batch(name))
    return {relation(n): pa.Table.from_batches(rows, _schema(n)) for n, rows in batches.items()}


def write(
    folder: str | os.PathLike[str],
    universities: Iterable[University],
    *,
    form: str,
    compression: str,
    iris: bool,
) -> ExportReport:
    """Write the facts of universities to a folder, one university at a time."""
    extension = _extension(form, compression)
    names = {name: f"{relation(name)}.{extension}" for name in _NAMES}
    rows = dict.fromkeys(_NAMES, 0)
    with staged_export(folder) as export:
        with writing(export.folder), ExitStack() as files:
            open_files = {n: _open(files, export.staged_path(names[n]), n, form, compression) for n in _NAMES}
            for university in universities:
                cells = _Cells(university, iris=iris or form == "nt")
                for name, file in open_files.items():
                    batch = cells.batch(name)
                    file.add(batch)
                    rows[name] += batch.num_rows
        for name in _NAMES:
            export.add(_predicate(name), names[name], rows[name])
    return export.report


class _Cells:
    # A university's names and texts as cells, and its facts as batches of them.

    def __init__(self, university: University, *, iris: bool) -> None:
        entities = pa.array(university.entities, pa.string())
        self._entities = pc.binary_join_element_wise("<", entities, ">", "") if iris else entities
        self._texts = pa.array(university.texts, pa.string())
        self._columns = university.columns

    def batch(self, name: str) -> pa.RecordBatch:
        pools = (self._entities, self._texts if name in TEXTS else self._entities)
        arrays = [pool.take(pa.array(at)) for pool, at in zip(pools, self._columns[name], strict=False)]
        return pa.RecordBatch.from_arrays(arrays, schema=_schema(name))


class _File(Protocol):
    def add(self, batch: pa.RecordBatch) -> None: ...


@dataclass(frozen=True, slots=True)
class _Lines:
    # A file of lines: `around` holds the text before, between and after the columns.

    stream: IO[bytes]
    around: tuple[str, ...]

    def add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        pieces = [self.around[0]]
        for column, after in zip(batch.columns, self.around[1:], strict=True):
            pieces += (column, after)
        lines = pc.binary_join_element_wise(*pieces, "")
        whole = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "")
        self.stream.write(whole[0].as_buffer())


@dataclass(frozen=True, slots=True)
class _Parquet:
    writer: pq.ParquetWriter

    def add(self, batch: pa.RecordBatch) -> None:
        # Small batches share a row group.
        self.writer.write_batch(batch)


def _open(files: ExitStack, path: Path, name: str, form: str, compression: str) -> _File:
    if form == "parquet":
        stream = files.enter_context(open_target(path, ""))
        codec = PARQUET_CODECS[compression]
        return _Parquet(files.enter_context(pq.ParquetWriter(stream, _schema(name), compression=codec)))
    stream = files.enter_context(open_target(path, compression))
    if form == "csv":
        return _Lines(stream, ("", "\n") if name in CLASSES else ("", ",", "\n"))
    if name in CLASSES:
        return _Lines(stream, ("", f" <{RDF_TYPE}> <{relation(name)}> .\n"))
    quote = '"' if name in TEXTS else ""
    return _Lines(stream, ("", f" <{relation(name)}> {quote}", f"{quote} .\n"))


def _extension(form: str, compression: str) -> str:
    if form not in FORMATS:
        raise problem("I017", f"{form} is not a format to write LUBM in", f"formats: {', '.join(FORMATS)}")
    if compression not in FORMATS[form]:
        offer = ", ".join(c for c in FORMATS[form] if c)
        raise problem("I017", f"{form} cannot be compressed with {compression}", f"choose one of: {offer}")
    return f"{form}.{compression}" if compression and form != "parquet" else form


def _predicate(name: str) -> Predicate:
    return Predicate(relation(name), 1 if name in CLASSES else 2)


def _schema(name: str) -> pa.Schema:
    return pa.schema([(f"c{at + 1}", pa.string()) for at in range(_predicate(name).arity)])
