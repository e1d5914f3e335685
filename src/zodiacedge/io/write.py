"""An export: one file per predicate and a `predicates.json` that says which is which.

Rows come in the language's total order, so equal facts give equal files. Everything is written to a
hidden folder inside the target and moved into place at the end: a failed export leaves no half file.
An export over an earlier one replaces it: files that the old `predicates.json` lists and the new one
does not are removed. How terms and lines look is left to the formats.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.errors import LoadProblem
from zodiacedge.io.jsonl import json_line
from zodiacedge.io.names import file_names
from zodiacedge.io.problems import problem, writing
from zodiacedge.io.rdftext import check_rdf, nt_lines, turtle_lines
from zodiacedge.io.sources import MANIFEST, Format, listed_files
from zodiacedge.io.streams import COMPRESSIONS, open_target
from zodiacedge.io.tabular import tabular_lines
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

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


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One file of an export."""

    predicate: Predicate
    path: Path
    rows: int


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote."""

    folder: Path
    files: tuple[WrittenFile, ...]

    @property
    def rows(self) -> int:
        """How many facts were written."""
        return sum(f.rows for f in self.files)


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
    target = Path(folder)
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=".export-", dir=target))
    try:
        for predicate, rows in relations.items():
            with writing(target / names[predicate]):
                _write_one(stage / names[predicate], layout, predicate, rows)
        with writing(target / MANIFEST):
            (stage / MANIFEST).write_text(_manifest(relations, names), encoding="utf-8")
            _move(stage, target, [*names.values(), MANIFEST])
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    files = tuple(WrittenFile(p, target / names[p], len(rows)) for p, rows in relations.items())
    return ExportReport(target, files)


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


def _manifest(relations: dict[Predicate, Rows], names: dict[Predicate, str]) -> str:
    entries = [
        {"predicate": p.name, "arity": p.arity, "file": names[p], "rows": len(rows)}
        for p, rows in relations.items()
    ]
    return json.dumps({"predicates": entries}, indent=2, ensure_ascii=False) + "\n"


def _move(stage: Path, target: Path, names: Sequence[str]) -> None:
    try:
        earlier = set(listed_files(target))
    except LoadProblem:
        earlier = set()
    for name in names:
        (stage / name).replace(target / name)
    for name in earlier.difference(names):
        # A list from elsewhere must not make us remove files outside the folder.
        if Path(name).name == name:
            (target / name).unlink(missing_ok=True)
