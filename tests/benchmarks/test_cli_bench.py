"""`zodiac bench`: tables, JSON, plots where matplotlib is, and errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from zodiacedge.benchmarks import plots
from zodiacedge.cli.bench import command

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bench(*args: str) -> Result:
    return CliRunner().invoke(command, args, prog_name="zodiac bench")


@pytest.mark.parametrize("name", ["graphs", "paper", "lubm", "peers"])
def test_help_has_an_example(name: str) -> None:
    done = bench(name, "--help")
    assert done.exit_code == 0
    assert f"zodiac bench {name}" in done.stdout.partition("Example:")[2]


def test_a_table_and_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "can_plot", lambda: False)
    done = bench("graphs", "--small", "--only", "closure", "--runs", "1")
    assert done.exit_code == 0, done.output
    machine, versions, _, head, first, second, *_ = done.stdout.splitlines()
    assert "cores" in machine
    assert "numba" in versions
    assert head.split() == ["workload", "engine", "derived", "seconds", "CPU", "s", "runs"]
    assert first.split()[:4] == ["closure", "(small)", "zodiac", "1,459"]
    assert "no modules" in second
    assert "no plots: matplotlib is not installed" in done.stdout
    assert [path.name for path in (folder / "bench" / "results").iterdir()] == ["graphs.json"]


def test_json_is_the_only_thing_on_standard_output(folder: Path) -> None:
    done = bench(
        "paper", "--small", "--only", "scratch", "--runs", "1", "--modules", "--json", "--out", "here"
    )
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document == json.loads((folder / "here" / "paper.json").read_text())
    assert [one["workload"] for one in document["figures"]] == ["rs1 n=50", "rs2 n=50", "rs3 n=50"]
    assert {"bench", "machine", "figures", "memory", "peers", "targets"} <= document.keys()
    assert {"seconds", "cpu_seconds", "runs", "derived", "derived_total"} <= document["figures"][0].keys()


def test_peers_that_are_not_installed_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zodiacedge.benchmarks.peers.prolog.Prolog.version", lambda _self: "")
    done = bench("peers", "--small", "--only", "closure", "--peer", "swi-prolog", "--runs", "1")
    assert done.exit_code == 0, done.output
    assert "not installed: swi-prolog" in done.stdout


def test_plots_where_matplotlib_is_installed(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    assert bench("graphs", "--small", "--only", "points-to", "--runs", "1").exit_code == 0
    written = {path.name for path in (folder / "bench" / "results").iterdir()}
    assert written == {"graphs.json", "graphs.png", "graphs.svg"}


def test_a_wrong_count_ends_with_1_and_no_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zodiacedge.benchmarks.embedded.EmbeddedTrial.counts", lambda _self: {"path": 1458})
    done = bench("graphs", "--small", "--only", "closure", "--runs", "1")
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "closure (small) derives wrong facts: path: 1,458 instead of 1,459" in done.stderr
    assert not (folder / "bench").exists()


def test_an_unknown_workload_is_a_usage_error() -> None:
    assert bench("graphs", "--only", "closur").exit_code == 2


def test_a_folder_that_cannot_be_written_is_told_before_the_work(folder: Path) -> None:
    (folder / "file").write_text("")
    done = bench("graphs", "--small", "--out", "file")
    assert done.exit_code == 1
    assert "U005" in done.stderr
