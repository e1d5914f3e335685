"""The ways of tables into a knowledge base and of answers out of it, beside loading N-Triples.

A way in ends when the change is committed; a way out starts with a knowledge base in memory and ends with a
table, or with a file. Times are of the processor, per row.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from zodiacedge.cli.output import csv_lines, export
from zodiacedge.opening import open_kb
from zodiacedge.terms import IRI
from zodiacedge_bench.measure.harness import WrongCountError, clocked
from zodiacedge_bench.workloads.tables import READING, RELATIONS, farm_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from zodiacedge.kb.answers import Answers
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge_bench.measure.harness import Run
    from zodiacedge_bench.workloads.tables import Row

NTRIPLES = "load N-Triples"
RUNS = 3


@dataclass(frozen=True, slots=True)
class TableFigure:
    """The time of one way in or out, and that of loading as many N-Triples."""

    way: str
    rows: int
    runs: tuple[Run, ...]
    triples: tuple[Run, ...]

    @property
    def cpu_seconds(self) -> float:
        """The processor time of the best run."""
        return min(run.cpu_seconds for run in self.runs)

    @property
    def speed(self) -> float:
        """The speed per row, as a share of that of N-Triples."""
        return min(run.cpu_seconds for run in self.triples) / self.cpu_seconds

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "way": self.way,
            "rows": self.rows,
            "cpu_seconds": self.cpu_seconds,
            "microseconds_per_row": 1e6 * self.cpu_seconds / self.rows,
            "speed": self.speed,
        }


class Way(NamedTuple):
    """A way in or out: its name, and a function that returns the number of rows that it moved."""

    name: str
    move: Callable[[], int]


class TableWays:
    """The facts of the wind farm in every form, in a folder and in memory."""

    def __init__(self, folder: Path, total: int) -> None:
        """Write the files, and load a knowledge base for the ways out."""
        tables = farm_tables(total)
        self.total = sum(map(len, tables.values()))
        self._folder = folder
        self._triples = folder / "farm.nt"
        with self._triples.open("w", encoding="utf-8") as file:
            for relation, rows in tables.items():
                file.writelines(row.triple(relation) for row in rows)
        self._csv = {name: folder / f"{n}.csv" for n, name in enumerate(RELATIONS)}
        self._parquet = {name: folder / f"{n}.parquet" for n, name in enumerate(RELATIONS)}
        self._arrow = {name: _arrow(name, rows) for name, rows in tables.items()}
        for name, rows in tables.items():
            with self._csv[name].open("w", encoding="utf-8") as file:
                file.writelines(row.csv() for row in rows)
            pq.write_table(self._arrow[name], self._parquet[name])
        self._kb = _loaded([str(self._triples)])
        if _count(self._kb) != self.total:
            raise WrongCountError("the knowledge base does not hold the facts of the tables")

    def ways(self) -> list[Way]:
        """Return all ways whose libraries are installed, N-Triples first."""
        ways = [
            Way(NTRIPLES, lambda: _count(_loaded([str(self._triples)]))),
            Way("load CSV", lambda: _count(_loaded(_specs(self._csv)))),
            Way("load Parquet", lambda: _count(_loaded(_specs(self._parquet)))),
            Way("add Arrow tables", lambda: _count(_added(self._arrow))),
        ]
        for name, convert in (("pandas", pa.Table.to_pandas), ("polars", _polars)):
            if find_spec(name):
                frames = {relation: convert(table) for relation, table in self._arrow.items()}
                ways.append(Way(f"add {name} frames", lambda frames=frames: _count(_added(frames))))  # type: ignore[misc]
        ways += [
            Way("query to_arrow", lambda: self._answered(lambda answers: answers.to_arrow().num_rows)),
            *(
                Way(f"query to_{name}", partial(self._framed, name))
                for name in ("pandas", "polars")
                if find_spec(name)
            ),
            Way("query as CSV", lambda: self._answered(self._csv_of_answers)),
            Way("export CSV", lambda: self._exported("csv")),
            Way("export Parquet", lambda: self._exported("parquet")),
        ]
        return ways

    def measure(self, way: Way, runs: int | None) -> tuple[Run, ...]:
        """Move all rows several times; raise if some are missing."""
        done: list[Run] = []
        for _ in range(runs or RUNS):
            gc.collect()
            run, moved = clocked(way.move)
            if moved != self.total:
                raise WrongCountError(f"{way.name}: {moved:,} rows instead of {self.total:,}")
            done.append(run)
        return tuple(done)

    def _answered(self, take: Callable[[Answers], int]) -> int:
        return sum(take(self._kb.query(f"?- <{relation}>(X, Y) .")) for relation in RELATIONS)

    def _framed(self, library: str) -> int:
        return self._answered(lambda answers: len(getattr(answers, f"to_{library}")()))

    def _csv_of_answers(self, answers: Answers) -> int:
        path = self._folder / "answers.csv"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(csv_lines(answers, plain=False))
        return path.read_bytes().count(b"\n") - 1

    def _exported(self, form: str) -> int:
        folder = self._folder / form
        report = export(self._kb, str(folder), form, everything=True)
        if form == "csv":
            return sum(file.path.read_bytes().count(b"\n") for file in report.files)
        return sum(pq.read_metadata(file.path).num_rows for file in report.files)


def _arrow(relation: str, rows: Iterable[Row]) -> pa.Table:
    first, second = zip(*rows, strict=True)
    kind = pa.float64() if relation == READING else pa.string()
    return pa.table({"first": pa.array(first, pa.string()), "second": pa.array(second, kind)})


def _polars(table: pa.Table) -> object:
    import polars as pl  # noqa: PLC0415 - may be missing

    return pl.from_arrow(table)


def _specs(files: Mapping[str, Path]) -> list[str]:
    return [f"<{relation}>={path}" for relation, path in files.items()]


def _loaded(specs: list[str]) -> KnowledgeBase:
    kb = open_kb()
    with kb.change() as change:
        change.load(*specs, strict=True)
    return kb


def _added(tables: Mapping[str, object]) -> KnowledgeBase:
    kb = open_kb()
    with kb.change() as change:
        for relation, table in tables.items():
            change.add_facts(table, relation=IRI(relation))
    return kb


def _count(kb: KnowledgeBase) -> int:
    return sum(kb.state.explicit_counts().values())
