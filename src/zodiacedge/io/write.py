"""Facts to a folder, one file per predicate.

Rows come in the language's total order, so equal facts give equal files. How terms and lines look is left
to the formats, the folder and its `predicates.json` to `export`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.io.export import ExportReport, staged_export
from zodiacedge.io.jsonl import json_line
from zodiacedge.io.names import file_names
from zodiacedge.io.problems import problem, writing
from zodiacedge.io.rdftext import check_rdf, nt_lines, turtle_lines
from zodiacedge.io.sources import Format
from zodiacedge.io.streams import COMPRESSIONS, open_target
from zodiacedge.io.tabular import tabular_lines
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from zodiacedge.language.ast import Fact, Predicate
    from zodiacedge.terms import Term

Rows = list[tuple["Term", ...]]
WRITABLE = (
    Format.NTRIPLES,
    Format.TURTLE,
    Format.CSV,
    Format.TSV,
    Format.JSONL,
    Format.PARQUET,
    Format.ARROW,
)
_COLUMNAR = {Format.PARQUET: ("", "gz", "zst"), Format.ARROW: ("", "zst")}


def write_facts(  # noqa: PLR0913 - each keyword is an option that users set alone
    facts: Iterable[Fact],
    folder: str | os.PathLike[str],
    *,
    form: Format | str = Format.CSV,
    compression: str = "",
    predicates: Iterable[Predicate] = (),
    base: str = "",
) -> ExportReport:
    """Write facts to a folder, one file per predicate.

    Args:
        facts: The facts; one that comes twice is written once.
        folder: Where to write; made where it does not exist.
        form: `nt ttl csv tsv jsonl parquet arrow`.
        compression: `gz bz2 zst` or none; Parquet (gz, zst) and Arrow (zst) compress inside the file.
        predicates: Predicates that get a file even where they have no facts.
        base: For Turtle, the `@base` to declare, against which readers resolve relative IRIs.
    """
    layout = _layout(form, compression, base)
    relations = _relations(facts, predicates)
    if layout.form in {Format.NTRIPLES, Format.TURTLE}:
        check_rdf(relations)
    names = file_names(relations, layout.extension)
    with staged_export(folder) as export:
        for predicate, rows in relations.items():
            name = names[predicate]
            with writing(export.folder / name):
                _write_one(export.place(name), layout, predicate, rows)
            export.add(predicate, name, len(rows))
    return export.report


def rdf_lines(facts: Iterable[Fact]) -> Iterator[str]:
    """Yield facts as lines of N-Triples, in order; refuse what RDF cannot say before the first."""
    relations = _relations(facts, ())
    check_rdf(relations)
    return (line for predicate, rows in relations.items() for line in nt_lines(predicate, rows))


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the files of an export look."""

    form: Format
    compression: str
    base: str

    @property
    def columnar(self) -> bool:
        return self.form in _COLUMNAR

    @property
    def extension(self) -> str:
        outside = self.compression and not self.columnar
        return f"{self.form.value}.{self.compression}" if outside else self.form.value


def _layout(form: Format | str, compression: str, base: str) -> _Layout:
    known = {f.value: f for f in WRITABLE}
    name = form.value if isinstance(form, Format) else form
    made = known.get(name)
    if made is None:
        raise problem("I017", f"{name} is not a format to write", f"formats: {', '.join(known)}")
    allowed = _COLUMNAR.get(made, ("", *COMPRESSIONS))
    if compression not in allowed:
        offer = ", ".join(c for c in allowed if c)
        raise problem("I017", f"{name} cannot be compressed with {compression}", f"choose one of: {offer}")
    return _Layout(made, compression, base)


def _relations(facts: Iterable[Fact], predicates: Iterable[Predicate]) -> dict[Predicate, Rows]:
    found: dict[Predicate, set[tuple[Term, ...]]] = {p: set() for p in predicates}
    for fact in facts:
        predicate = fact.predicate
        args = fact.args if predicate.arity == len(fact.args) else fact.args[:1]
        found.setdefault(predicate, set()).add(args)
    return {p: sorted(found[p], key=_row_key) for p in sorted(found)}


def _row_key(row: tuple[Term, ...]) -> tuple[tuple[int, object, str, str, str], ...]:
    return tuple(map(order_key, row))


def _write_one(path: Path, layout: _Layout, predicate: Predicate, rows: Rows) -> None:
    with open_target(path, "" if layout.columnar else layout.compression) as stream:
        if layout.columnar:
            from zodiacedge.io.arrow import write_columnar  # noqa: PLC0415 - loads pyarrow

            write_columnar(stream, layout.form, layout.compression, predicate.arity, rows)
        else:
            for line in _lines(layout, predicate, rows):
                stream.write(line.encode() + b"\n")


def _lines(layout: _Layout, predicate: Predicate, rows: Rows) -> Iterator[str]:
    match layout.form:
        case Format.NTRIPLES:
            return nt_lines(predicate, rows)
        case Format.TURTLE:
            return turtle_lines(predicate, rows, layout.base)
        case Format.JSONL:
            return (json_line(predicate.name, row) for row in rows)
        case _:
            return tabular_lines(layout.form, predicate.arity, rows)
