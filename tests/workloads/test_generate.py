"""`zodiac generate`: data of the benchmarks as files that `zodiac run` takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from zodiacedge.cli.rule_files import check_rules, parse_rules
from zodiacedge.io import read_all
from zodiacedge.language.ast import Fact
from zodiacedge_bench.generate import command
from zodiacedge_bench.workloads import graphs, lubm, paper

if TYPE_CHECKING:
    from pathlib import Path

Make = Callable[[bool], Iterable[Fact]]

# How many rules, and the facts with nodes that are IRIs or not.
SETS: dict[tuple[str, ...], tuple[int, Make]] = {
    ("lubm", "--departments", "1"): (128, lambda iris: lubm.facts(1, departments=1, iris=iris)),
    ("paper-ds1", "--turbines", "20"): (6, lambda _: paper.ds1(20)),
    ("paper-ds2", "--turbines", "20"): (18, lambda _: paper.ds2(20)),
    ("paper-ds2", "--turbines", "5", "--rule-set", "3"): (18, lambda _: paper.ds2(5)),
    ("closure-dense",): (2, lambda iris: graphs.closure_dense().facts(iris=iris)),
    ("closure-sparse",): (2, lambda iris: graphs.closure_sparse().facts(iris=iris)),
}


@pytest.mark.parametrize(
    ("form", "args"),
    [(form, args) for form in ("parquet", "csv", "nt") for args in list(SETS)[:-1]]
    + [("nt", ("closure-sparse",))],
)
def test_the_folder_holds_the_data_and_its_rules(tmp_path: Path, form: str, args: tuple[str, ...]) -> None:
    rules, make = SETS[args]
    done = CliRunner().invoke(command, [*args, "--out", str(tmp_path), "--format", form, "--json"])
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    facts, _ = read_all(tmp_path)
    assert set(facts) == set(make(form == "nt"))
    assert document["facts"] == len(facts) == sum(document["predicates"].values())
    assert sorted([*document["files"], *document["rules"], "predicates.json"]) == sorted(
        path.name for path in tmp_path.iterdir()
    )
    assert len(check_rules(parse_rules([str(tmp_path)])).program.rules) == rules


def test_a_person_is_told_what_to_do_next(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["paper-ds2", "--turbines", "5", "--out", str(tmp_path)])
    assert done.stdout.splitlines()[:2] == ["predicate  facts", "p1             5"]
    assert "wrote 20 facts to 4 files in " in done.stdout
    assert f"next: zodiac run {tmp_path}/rs2.rules --facts {tmp_path}\n" in done.stdout


def test_options_make_other_universities(tmp_path: Path) -> None:
    args = ["lubm", "--universities", "2", "--departments", "1", "--seed", "5", "--iris"]
    done = CliRunner().invoke(
        command, [*args, "--format", "csv", "--compression", "gz", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0
    assert set(read_all(tmp_path)[0]) == set(lubm.facts(2, departments=1, seed=5, iris=True))


def test_a_compression_that_parquet_lacks_is_said(tmp_path: Path) -> None:
    for name in ("lubm", "closure-dense"):
        done = CliRunner().invoke(command, [name, "--compression", "bz2", "--out", str(tmp_path)])
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.startswith("error I017: parquet cannot be compressed with bz2\n")


def test_a_folder_that_cannot_be_is_said_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    done = CliRunner().invoke(command, ["lubm", "--universities", "1000", "--out", str(tmp_path / "a")])
    assert done.exit_code == 1
    assert "U005" in done.stderr


@pytest.mark.parametrize("name", ["", "lubm", "paper-ds1", "paper-ds2", "closure-dense", "closure-sparse"])
def test_help_has_an_example(name: str) -> None:
    done = CliRunner().invoke(command, [*([name] if name else []), "--help"])
    assert f"Example:\n    zodiac generate {name}" in done.stdout
