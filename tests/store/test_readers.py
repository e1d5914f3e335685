"""Anything that reads Delta Lake reads a store, without our code; `docs/store.md` shows how."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import polars as pl
from deltalake import DeltaTable

import zodiacedge as ze

if TYPE_CHECKING:
    from pathlib import Path


def test_polars_sees_terms_that_a_person_can_read(farm: Path) -> None:
    frame = pl.read_delta(str(farm))
    edges = frame.filter((pl.col("predicate") == "edge") & (pl.col("kind") == "explicit"))
    assert sorted(edges.select("a0", "a1").rows()) == [("a", "b"), ("b", "c"), ("c", "d")]
    assert set(edges["a0_type"]) == {"iri"}
    values = frame.filter(pl.col("predicate") == "value")
    assert ("fünf", "@de") in values.select("a1", "a1_type").rows()
    assert ("5", "integer") in values.select("a1", "a1_type").rows()
    assert ("-5e-8", "double") in values.select("a1", "a1_type").rows()


def test_polars_sees_exactly_the_visible_facts(farm: Path) -> None:
    with ze.open(farm, read_only=True) as kb:
        counts: dict[tuple[str, int], int] = {}
        for fact in kb.facts():
            counts[fact.predicate] = counts.get(fact.predicate, 0) + 1
    frame = pl.read_delta(str(farm)).filter(pl.col("kind") != "aggregate")
    arguments = [name for name in frame.columns if name.startswith("a") and name != "arity"]
    seen = frame.unique(["predicate", "arity", *arguments]).group_by("predicate", "arity").len()
    assert {(name, arity): count for name, arity, count in seen.rows()} == counts


def test_duckdb_joins_what_polars_reads(farm: Path) -> None:
    table = DeltaTable(str(farm)).to_pyarrow_table()
    with duckdb.connect() as connection:
        connection.register("facts", table)
        found = connection.sql(
            "select x.a0, y.a1 from facts x join facts y on x.a1 = y.a0 "
            "where x.predicate = 'edge' and y.predicate = 'edge' order by all"
        ).fetchall()
    assert found == [("a", "c"), ("b", "d")]


def test_an_earlier_commit_can_be_read_without_our_code(logged: Path) -> None:
    with ze.open(logged):
        pass
    newest = DeltaTable(str(logged)).version()
    rows = [
        len(pl.read_delta(str(logged), version=version).filter(pl.col("predicate") == "edge"))
        for version in (0, newest - 1, newest)
    ]
    assert rows == [0, 3, 3]
