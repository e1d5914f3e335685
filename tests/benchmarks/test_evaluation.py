"""The committed results, the page made from them, and a new run beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zodiacedge_bench.evaluation.accept import BASELINE, PAGE, accept
from zodiacedge_bench.evaluation.baseline import read_profiles, read_results, trimmed
from zodiacedge_bench.evaluation.compare import compare, geometric_mean
from zodiacedge_bench.evaluation.page import page, profile_of
from zodiacedge_bench.measure.embedded import OURS

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_committed_results_give() -> None:
    baseline = ROOT / BASELINE
    text = page(read_results(baseline), read_profiles(baseline))
    assert (ROOT / PAGE).read_text(encoding="utf-8") == text, "run `zodiac bench accept`"


def test_committed_results_have_no_times_of_single_runs() -> None:
    result = {
        "runs": [1],
        "seconds": 2.0,
        "changes": [{"cpu_seconds": [1, 2], "seconds": 3.0, "derived": {}}],
    }
    assert trimmed(result) == {"seconds": 2.0, "changes": [{"seconds": 3.0}]}


def test_accepting_keeps_the_results_of_other_benchmarks(tmp_path: Path) -> None:
    results, repository = tmp_path / "results", tmp_path / "repository"
    results.mkdir()
    machine = {"processor": "P", "cores": 2, "memory_gib": 1.0, "load": 0.0, "python": "3", "versions": {}}
    for name in ("churn", "quick"):
        (results / "new.json").write_text(
            json.dumps({"bench": name, "machine": machine, "latencies": [], "targets": []})
        )
        written = list(accept(results, repository))
    assert sorted(read_results(repository / BASELINE)) == ["churn", "quick"]
    assert written[-1] == repository / PAGE
    assert "| `quick` | P, 2 cores" in written[-1].read_text(encoding="utf-8")


def result(ours: float, peer: float, change: float) -> dict[str, object]:
    return {
        "figures": [
            {"workload": "rs2", "engine": OURS, "cpu_seconds": ours},
            {"workload": "rs2", "engine": "duckdb", "cpu_seconds": peer},
        ],
        "changes": [{"workload": "rs2", "change": "r1 in", "cpu_seconds": change}],
    }


def test_a_machine_of_half_the_speed_is_no_difference() -> None:
    same = compare(result(0.2, 2.0, 0.02), result(0.1, 1.0, 0.01))
    assert [comparison.slower for comparison in same] == pytest.approx([1.0, 1.0])


def test_what_became_slower_comes_first() -> None:
    first, second = compare(result(0.1, 1.0, 0.04), result(0.1, 1.0, 0.01))
    assert first.name == "rs2, r1 in"
    assert first.slower == pytest.approx(4.0)
    assert second.slower == pytest.approx(1.0)
    assert geometric_mean((first, second)) == pytest.approx(2.0)


def test_the_longest_entry_that_fits_a_missed_target_is_its_profile() -> None:
    profiles = {"lubm": "general", "lubm-10: fact out": "special"}
    assert profile_of("lubm-10: fact out, p99", profiles) == "special"
    assert profile_of("lubm-1: memory", profiles) == "general"
    assert profile_of("rs2", profiles) == "not profiled."
