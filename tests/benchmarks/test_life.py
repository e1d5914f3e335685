"""A device that runs for ever, and what it pays."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from strategies.scale import examples
from zodiacedge_bench.command import command
from zodiacedge_bench.life import soak as module
from zodiacedge_bench.life import windows
from zodiacedge_bench.life.footprint import installations
from zodiacedge_bench.life.report import FLAT, SoakReport
from zodiacedge_bench.life.soak import SMALL, TENTHS, Size, soak
from zodiacedge_bench.measure.harness import WrongCountError
from zodiacedge_bench.measure.machine import this_machine

if TYPE_CHECKING:
    from pathlib import Path

WINDOWS = windows.SMALL
TINY = replace(SMALL, readings=400, window=200, check_every=1000)
# What the operating system or the neighbours of this process decide is not compared.
HELD = ("open_files", "terms", "dictionary_bytes", "disk_files", "disk_bytes", "resident_bytes")


def test_a_soak_measures_ten_tenths_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []
    monkeypatch.setattr(module, "_check", lambda kb: checked.append(kb.version))
    tenths = soak(TINY, tmp_path / "device")
    assert len(tenths) == TENTHS
    assert tenths[-1].readings - tenths[0].readings == TINY.readings * 9 // 10
    assert tenths[0].disk_bytes > TINY.most_bytes
    assert tenths[0].most_disk_bytes >= tenths[0].disk_bytes
    assert checked == sorted(checked)
    assert len(checked) == 2
    report = SoakReport(this_machine(), TINY, tuple(tenths))
    assert set(HELD) <= report.growth().keys()
    assert len(report.tables()[0].rows) == TENTHS
    json.dumps(report.to_dict())


@pytest.mark.slow
def test_a_soak_compares_with_the_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soak(replace(TINY, check_every=10), tmp_path / "right")
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(WrongCountError):
        soak(TINY, tmp_path / "wrong")


@pytest.mark.soak
def test_a_device_holds_no_more_at_the_end_than_at_the_begin(tmp_path: Path) -> None:
    # The first half fills caches of a bounded size.
    size = Size(readings=examples(2 * 10**5), batch=100, check_every=500, kept=timedelta(seconds=2))
    tenths = soak(size, tmp_path / "device")
    half = tenths[TENTHS // 2].to_dict()
    last = tenths[-1].to_dict()
    grown = {name: (half[name], last[name]) for name in HELD if last[name] > FLAT * half[name] + 4}  # type: ignore[operator]
    assert not grown


def test_the_package_alone_is_smaller_than_with_any_extra() -> None:
    alone, *extras = installations()
    assert not alone.extra
    assert alone.bytes > 0
    assert {one.extra for one in extras} <= {
        "store",
        "tables",
        "rdf",
        "compression",
        "drawing",
        "objects",
        "fleet",
        "spark",
        "all",
    }


@pytest.mark.slow
def test_the_footprint_of_processes(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["edge", "--small", "--json", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    programs = {one["program"]: one for one in document["footprints"]}
    assert programs["a rule and a fact"]["answers"] == 1
    assert programs["wind-farm slice"]["answers"] > 0
    for one in programs.values():
        assert 0 < one["python_bytes"] < one["opened_bytes"] <= one["answered_bytes"]
    agent = document["agent"]
    files = dict(agent["libraries"])
    assert agent["resident_bytes"] == agent["anonymous_bytes"] + sum(files.values())
    assert {"pyarrow", "numpy"} < set(files)
    # It neither flushes nor lists files by Delta, and finds only what the package brings.
    assert not {"deltalake", "pandas"} & set(files)


def test_windows_cost_what_is_due_and_all_systems_find_the_same(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["windows", "--small", "--json", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)["figures"]
    assert {figure["system"] for figure in figures} == {"zodiac", "evaluated anew", "DuckDB"}
    assert {figure["due"] for figure in figures} == {1, 2 * WINDOWS.a_second}


def test_a_system_that_finds_something_else_ends_the_benchmark() -> None:
    with pytest.raises(WrongCountError):
        windows._compare("some readings", {windows.OURS: [(1, 2)], windows.DUCKDB: [(1, 3)]})


@pytest.mark.parametrize("name", ["soak", "windows", "edge"])
def test_help_has_an_example(name: str) -> None:
    done = CliRunner().invoke(command, [name, "--help"], prog_name="zodiac bench")
    assert f"zodiac bench {name}" in done.stdout.partition("Example:")[2]
