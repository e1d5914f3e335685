"""`zodiac bench`: tables, JSON, plots where matplotlib is, and errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from zodiacedge_bench.command import command
from zodiacedge_bench.report import plots

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bench(*args: str) -> Result:
    return CliRunner().invoke(command, args, prog_name="zodiac bench")


@pytest.mark.parametrize("name", ["graphs", "paper", "lubm", "churn", "explain", "tables", "peers"])
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
    own = [one["workload"] for one in document["figures"] if one["engine"] == "zodiac"]
    assert own == ["rs1 n=50", "rs2 n=50", "rs3 n=50"]
    assert {"bench", "machine", "figures", "memory", "peers", "targets"} <= document.keys()
    assert {"seconds", "cpu_seconds", "runs", "derived", "derived_total"} <= document["figures"][0].keys()


def test_tables_and_answers_are_compared_with_ntriples() -> None:
    done = bench("tables", "--small", "--runs", "1", "--json")
    assert done.exit_code == 0, done.output
    first, *others = json.loads(done.stdout)["ways"]
    assert first["way"] == "load N-Triples"
    assert first["speed"] == 1.0
    assert {"load CSV", "load Parquet", "query to_arrow", "export CSV"} <= {way["way"] for way in others}
    assert {way["rows"] for way in others} == {first["rows"]}


def test_a_way_that_loses_rows_ends_without_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zodiacedge_bench.measure.tables._count", lambda _kb: 0)
    done = bench("tables", "--small", "--runs", "1")
    assert done.exit_code == 1
    assert "does not hold the facts" in done.output


def test_peers_that_are_not_installed_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zodiacedge_bench.peers.prolog.Prolog.version", lambda _self: "")
    done = bench("peers", "--small", "--only", "closure", "--peer", "swi-prolog", "--runs", "1")
    assert done.exit_code == 0, done.output
    assert "not installed: swi-prolog" in done.stdout


def test_plots_where_matplotlib_is_installed(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    assert bench("graphs", "--small", "--only", "points-to", "--runs", "1").exit_code == 0
    written = {path.name for path in (folder / "bench" / "results").iterdir()}
    assert written == {"graphs.json", "graphs.png", "graphs.svg"}


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (("paper", "--only", "deletion"), {"paper-deletion"}),
        (("paper", "--only", "data"), {"paper-data"}),
        (("graphs", "--only", "closure", "--only", "points-to"), {"graphs", "graphs-memory"}),
    ],
)
def test_every_experiment_has_its_plot(folder: Path, args: tuple[str, ...], names: set[str]) -> None:
    pytest.importorskip("matplotlib")
    assert bench(*args, "--small", "--runs", "1").exit_code == 0
    plots_written = {path.stem for path in (folder / "bench" / "results").glob("*.svg")}
    assert plots_written == names


def test_a_change_stands_beside_from_scratch_and_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "can_plot", lambda: False)
    done = bench("paper", "--small", "--only", "rs3", "--runs", "1")
    assert done.exit_code == 0, done.output
    table = done.stdout.split("\n\n")[1].splitlines()
    assert table[0].split()[:4] == ["experiment", "workload", "change", "facts"]
    assert [line.split()[:5] for line in table[1:]] == [
        ["rs3", "rs3", "n=50", "r6", "in"],
        ["rs3", "rs3", "n=50", "r10_new", "in"],
        ["rs3", "rs3", "n=50", "r6", "out"],
        ["rs3", "rs3", "n=50", "r10_new", "out"],
    ]
    assert [line.split()[-3:-1] for line in table[1:]] == [
        ["0.2789", "87"],
        ["2.335", "10"],
        ["7.304", "3.4"],
        ["6.073", "3.8"],
    ]


def test_explain_tells_percentiles_of_proofs(folder: Path) -> None:
    done = bench("explain", "--small", "--proofs", "3", "--json")
    document = json.loads(done.stdout)
    assert document == json.loads((folder / "bench" / "results" / "explain.json").read_text())
    kinds = [(latency["workload"], latency["change"]) for latency in document["latencies"]]
    assert kinds[1:] == [(kinds[0][0], "why not"), ("closure", "proof"), ("class", "proof")]
    assert all(latency["changes"] == 3 for latency in document["latencies"])


def test_churn_tells_percentiles_and_writes_every_latency(folder: Path) -> None:
    done = bench("churn", "--small", "--only", "links", "--changes", "4", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document == json.loads((folder / "bench" / "results" / "churn.json").read_text())
    out, into, *watched = document["latencies"]
    assert (out["change"], into["change"]) == ("fact out", "fact in")
    assert [one["change"] for one in watched] == [f"fact of a watched node {way}" for way in ("out", "in")]
    assert out["changes"] == len(out["seconds"]) == 4
    assert out["p50_seconds"] <= out["p95_seconds"] <= out["p99_seconds"] <= out["worst_seconds"]
    assert [one["target"] for one in document["targets"]] == [
        f"1,000 links: {kind} {way}, p{percent}"
        for kind in ("fact", "fact of a watched node")
        for way in ("out", "in")
        for percent in (50, 99)
    ]


def test_a_state_that_differs_ends_with_1_and_no_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zodiacedge_bench.measure.task.Task.without", lambda task, *_labels: task)
    done = bench("paper", "--small", "--only", "deletion", "--runs", "1")
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "deletion, rs2 n=50, after r3 out: of p11/2, a segment has " in done.stderr
    assert not (folder / "bench").exists()


def test_a_wrong_count_ends_with_1_and_no_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "zodiacedge_bench.measure.embedded.EmbeddedTrial.counts", lambda _self: {"path": 1458}
    )
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
