"""LUBM's files hold the facts that the generator makes, whatever the format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from zodiacedge.errors import LoadProblem
from zodiacedge.io import facts_of_table, read_all, write_facts
from zodiacedge.language.ast import fact
from zodiacedge.terms import integer
from zodiacedge_bench.workloads import lubm

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.language.ast import Fact

FORMS = [
    *(("parquet", ""), ("parquet", "gz"), ("parquet", "zst")),
    *(("csv", ""), ("csv", "gz"), ("csv", "bz2"), ("csv", "zst")),
    *(("nt", ""), ("nt", "gz"), ("nt", "bz2"), ("nt", "zst")),
]


@pytest.fixture(scope="module")
def strings() -> set[Fact]:
    return set(lubm.facts(2, departments=1))


@pytest.fixture(scope="module")
def iris() -> set[Fact]:
    return set(lubm.facts(2, departments=1, iris=True))


@pytest.mark.parametrize(("form", "compression"), FORMS)
def test_what_is_written_is_read_back(
    tmp_path: Path, strings: set[Fact], iris: set[Fact], form: str, compression: str
) -> None:
    report = lubm.write(tmp_path, 2, form=form, compression=compression, departments=1)
    facts, load = read_all(tmp_path)
    assert load.bad == 0
    assert set(facts) == (iris if form == "nt" else strings)
    assert len(facts) == report.rows == sum(file.rows for file in report.files)
    assert {f.path.name: f.rows for f in report.files} == {
        entry["file"]: entry["rows"]
        for entry in json.loads((tmp_path / "predicates.json").read_bytes())["predicates"]
    }


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_tables_hold_iris_if_asked(tmp_path: Path, iris: set[Fact], form: str) -> None:
    lubm.write(tmp_path, 2, form=form, departments=1, iris=True)
    facts, _ = read_all(tmp_path)
    assert set(facts) == iris


@pytest.mark.parametrize("form", ["csv", "nt"])
def test_lines_are_what_an_export_would_write(tmp_path: Path, form: str) -> None:
    lubm.write(tmp_path / "ours", 1, form=form, departments=1)
    write_facts(lubm.facts(1, departments=1, iris=form == "nt"), tmp_path / "export", form=form)
    names = sorted(path.name for path in (tmp_path / "export").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "ours").iterdir())
    for name in names:
        ours, export = ((tmp_path / folder / name).read_text() for folder in ("ours", "export"))
        assert sorted(ours.splitlines()) == sorted(export.splitlines())


@pytest.mark.parametrize("form", ["parquet", "csv", "nt"])
def test_the_same_call_writes_the_same_bytes(tmp_path: Path, form: str) -> None:
    for folder in ("a", "b"):
        lubm.write(tmp_path / folder, 2, form=form, departments=1)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_tables_in_memory_are_the_same_facts(strings: set[Fact], iris: set[Fact]) -> None:
    for with_iris, facts in ((False, strings), (True, iris)):
        tables = lubm.tables(2, departments=1, iris=with_iris)
        assert len(tables) == 30
        assert {f for relation, table in tables.items() for f in facts_of_table(table, relation)} == facts


def test_no_university_gives_empty_tables_and_files(tmp_path: Path) -> None:
    assert {table.num_rows for table in lubm.tables(0).values()} == {0}
    assert lubm.write(tmp_path, 0, form="csv").rows == 0
    assert read_all(tmp_path)[0] == []


def test_an_export_that_was_there_is_replaced(tmp_path: Path) -> None:
    write_facts([fact("p", integer(1), integer(2))], tmp_path)
    lubm.write(tmp_path, 1, form="csv", departments=1)
    lubm.write(tmp_path, 1, form="nt", departments=1)
    assert {path.suffix for path in tmp_path.iterdir()} == {".nt", ".json"}
    assert len(list(tmp_path.iterdir())) == 31


@pytest.mark.parametrize(("form", "compression"), [("xls", ""), ("parquet", "bz2"), ("csv", "rar")])
def test_an_unknown_format_is_refused_before_anything_is_written(
    tmp_path: Path, form: str, compression: str
) -> None:
    with pytest.raises(LoadProblem) as caught:
        lubm.write(tmp_path / "out", 1, form=form, compression=compression)
    assert caught.value.diagnostics[0].code == "I017"
    assert not (tmp_path / "out").exists()


def test_a_place_that_is_a_file_is_a_problem_with_words(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("here already")
    with pytest.raises(LoadProblem) as caught:
        lubm.write(tmp_path / "out", 1, departments=1)
    assert caught.value.diagnostics[0].code == "I016"
