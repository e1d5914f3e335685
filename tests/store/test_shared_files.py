"""Programs with many predicates: parts of a few rows share files, and everybody sees the right rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zodiacedge as ze
from store.conftest import code
from zodiacedge.store.table.parquet_files import FEW_ROWS, SHARED_FOLDER, slices_of

if TYPE_CHECKING:
    from pathlib import Path

PREDICATES = 100


@pytest.fixture
def wide(place: Path) -> Path:
    """A store with many predicates, half of them derived, of different arities."""
    with ze.open(place, create=True) as kb, kb.change() as c:
        c.add_rules("\n".join(f"r{n}: q{n}(X) :- p{n}(X, _) ." for n in range(PREDICATES)))
        c.add_facts([(f"p{n}", ze.iri(f"a{m}"), m) for n in range(PREDICATES) for m in range(3)])
        c.add_facts("up() .  quad(a, b, c, d) .")
    return place


def files(store: Path) -> list[str]:
    """Return the files of the last version, by their folders."""
    with ze.open(store, read_only=True) as kb:
        assert kb.store is not None
        table = kb.store._table
        return [name.rsplit("/", 1)[0] for name in table.files(next(table.commits()))]


def rows(store: Path, predicate: str) -> list[tuple[object, ...]]:
    """Return what others read of a predicate."""
    facts = pl.read_delta(str(store)).filter(pl.col("predicate") == predicate)
    return sorted(facts.select("a0", "a1").rows())


def test_many_small_parts_are_in_one_file_and_read_as_if_they_were_not(wide: Path) -> None:
    assert files(wide) == [SHARED_FOLDER]
    assert rows(wide, "p7") == [("a0", "0"), ("a1", "1"), ("a2", "2")]
    assert rows(wide, "q7") == [("a0", None), ("a1", None), ("a2", None)]
    assert rows(wide, "quad") == [("a", "b")]
    with ze.open(wide) as kb:
        assert kb.query("?- up() .")
        assert kb.query("?- quad(a, b, c, d) .")
        assert kb.verify(against="reference").ok


def test_a_part_that_changes_stays_with_the_others(wide: Path) -> None:
    with ze.open(wide) as kb, kb.change() as c:
        c.add_facts("p7(n, 9) .")
        c.remove_facts("p7(a0, 0) .  p8(a0, 0) .  p8(a1, 1) .  p8(a2, 2) .")
    assert files(wide) == [SHARED_FOLDER]
    assert rows(wide, "p7") == [("a1", "1"), ("a2", "2"), ("n", "9")]
    assert (rows(wide, "p8"), rows(wide, "q8")) == ([], [])
    with ze.open(wide) as kb:
        assert kb.verify(against="reference").ok
        assert kb.at(1).query("?- p8(a0, 0) .")


def test_a_part_that_grows_gets_a_file_of_its_own_and_keeps_one(wide: Path) -> None:
    many = [("p7", ze.iri(f"n{m}"), m) for m in range(FEW_ROWS)]
    with ze.open(wide) as kb, kb.change() as c:
        c.add_facts(many)
    assert sorted(one.split("-")[0] for one in files(wide)) == [
        "relation=many/segment=many",
        "relation=p7",
        "relation=q7",
    ]
    assert len(rows(wide, "p7")) == FEW_ROWS + 3
    with ze.open(wide) as kb, kb.change() as c:
        c.remove_facts(many)
    assert len(files(wide)) == 3
    assert len(rows(wide, "p7")) == 3
    with ze.open(wide) as kb:
        assert kb.verify(against="reference").ok


def test_rules_that_go_leave_nothing_in_the_file(wide: Path) -> None:
    with ze.open(wide) as kb, kb.change() as c:
        for n in range(PREDICATES):
            c.remove_rules(f"r{n}")
        c.remove_facts([(f"p{n}", ze.iri(f"a{m}"), m) for n in range(1, PREDICATES) for m in range(3)])
    assert set(pl.read_delta(str(wide))["predicate"]) == {"p0", "up", "quad"}
    with ze.open(wide) as kb:
        assert len(kb.facts()) == 5


def test_a_few_small_parts_have_their_own_files(place: Path) -> None:
    with ze.open(place, create=True) as kb, kb.change() as c:
        c.add_facts("p(a, b) .  q(a) .")
    assert len(files(place)) == 2
    assert SHARED_FOLDER not in files(place)


@pytest.mark.parametrize(
    "said",
    [
        None,
        "no json",
        "[" * 10_000,
        [],
        [["relation=p-1-0/segment=explicit", 4]],
        [["relation=p-1-0/segment=explicit", 2]],
        [["relation=p-1-0/segment=explicit", -3]],
        [["relation=p-1-0/segment=explicit", 3, 5]],
        [[7, 3]],
        {"relation=p-1-0/segment=explicit": 3},
    ],
)
def test_a_file_that_says_something_else_about_its_parts_is_refused(said: object) -> None:
    text = said if isinstance(said, str) else json.dumps(said)
    rows_there = pa.table({"a0": ["x", "y", "z"]}).replace_schema_metadata(
        {} if said is None else {"zodiac.parts": text}
    )
    out = pa.BufferOutputStream()
    pq.write_table(rows_there, out)
    with pytest.raises(ze.ZodiacError) as caught:
        slices_of("many", out.getvalue().to_pybytes())
    assert code(caught.value) == "D005"
