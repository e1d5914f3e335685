"""`zodiac bench spark`, all of it, small, on a session of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from zodiacedge_bench.spark.growth import FACTORS
from zodiacedge_bench.spark.leaf import LEAVES
from zodiacedge_bench.spark.loops import NAIVE, TUNED
from zodiacedge_bench.spark.targets import SPARK

if TYPE_CHECKING:
    from pathlib import Path


IN_ROUNDS = ("same-generation (small)", "side-closure (small)", "points-to (small)")


@pytest.fixture(scope="module")
def document(java: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:  # noqa: ARG001 - needed
    """What a small run on a session of its own writes."""
    folder = tmp_path_factory.mktemp("bench")
    program = [sys.executable, "-m", "zodiacedge", "bench", "spark"]
    options = ["--small", "--runs", "1", "--master", "local[2]", "--json", "--out", str(folder)]
    done = subprocess.run(
        [*program, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found == json.loads((folder / "spark.json").read_text())
    return found


@pytest.mark.soak
def test_engines_and_loops_derive_the_same(document: dict[str, Any]) -> None:
    closure = [one for one in document["figures"] if one["workload"] == "closure (small)"]
    assert {one["engine"] for one in closure} >= {SPARK, NAIVE, TUNED, "zodiac embedded"}
    assert {one["derived_total"] for one in closure} == {1459}
    assert closure[0]["engine"] == SPARK
    assert closure[0]["ratio"] == 1
    assert {one["workload"] for one in document["figures"]} == {
        "closure (small)",
        "rs1 n=50",
        "rs2 n=50",
        "rs3 n=50",
        "lubm-1 (small)",
        *IN_ROUNDS,
    }
    assert [settings["spark.master"] for settings in document["settings"].values()] == ["local[2]"] * 2


@pytest.mark.soak
def test_leaf_rules_visit_one_node_and_data_grows(document: dict[str, Any]) -> None:
    changes = {one["change"]: one for one in document["changes"] if one["workload"] not in IN_ROUNDS}
    assert set(changes) == {f"{label} {way}" for label in LEAVES for way in ("out", "in")}
    assert all(changes[f"{label} in"]["nodes"] == 1 for label in LEAVES)
    # One job brings a rule in; without it nothing has to be looked at.
    assert {changes[f"{label} in"]["jobs"] for label in LEAVES} == {1}
    assert {changes[f"{label} out"]["jobs"] for label in LEAVES} == {0}
    growth = document["growth"]
    assert [one["factor"] for one in growth] == list(FACTORS)
    assert [one["derived_total"] for one in growth] == sorted({one["derived_total"] for one in growth})


@pytest.mark.soak
def test_recursion_in_rounds_is_beside_a_loop_and_under_change(document: dict[str, Any]) -> None:
    for workload in IN_ROUNDS:
        figures = {one["engine"]: one for one in document["figures"] if one["workload"] == workload}
        assert figures[SPARK]["derived"] == figures[NAIVE]["derived"]
        assert "semi-naive in rounds" in figures[SPARK]["how"]
        changes = [one["net_facts"] for one in document["changes"] if one["workload"] == workload]
        assert changes[0] == -changes[1] < 0


@pytest.mark.soak
def test_the_log_of_the_session_tells_where_time_went(document: dict[str, Any]) -> None:
    where = {(one["what"], one["engine"]): one for one in document["where_time_goes"]}
    ours = where["closure (small)", SPARK]
    loop = where["closure (small)", NAIVE]
    assert ours["purposes"] == {"bringing rules up to date in one task": 1}
    assert loop["jobs"] > 10
    assert loop["shuffled"] > 0
    assert loop["driver"] <= loop["seconds"]


def test_a_benchmark_that_is_ended_leaves_what_it_measured(tmp_path: Path) -> None:
    program = [
        sys.executable,
        "-m",
        "zodiacedge",
        "bench",
        "spark",
        "--small",
        "--only",
        "rs1",
        "--only",
        "rs2",
        "--only",
        "rs3",
        "--only",
        "leaf",
    ]
    options = ["--runs", "3", "--master", "local[2]", "--out", str(tmp_path)]
    kept = tmp_path / "spark-so-far.json"
    with subprocess.Popen(
        [*program, *options],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        # What is started in the background does not hear Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    ) as bench:
        while not kept.exists() and bench.poll() is None:
            time.sleep(0.1)
        # Python drops an interrupt that arrives while a connection to Java gives objects back: press again.
        while bench.poll() is None:
            bench.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                bench.wait(timeout=3)
        _, told = bench.communicate(timeout=120)
    assert bench.returncode != 0
    assert f"the results until then are in {kept}" in " ".join(told.split())
    found = json.loads(kept.read_text())
    assert found["figures"][0]["workload"] == "rs1 n=50"
    assert found["figures"][0]["derived_total"] > 0
    assert not (tmp_path / "spark.json").exists()


@pytest.mark.soak
@pytest.mark.parametrize(("name", "least"), [("explain", 4), ("windows", 6)])
def test_jobs_and_rows_read_are_told(name: str, least: int, java: None, tmp_path: Path) -> None:  # noqa: ARG001 - needed
    program = [sys.executable, "-m", "zodiacedge", "bench", name]
    done = subprocess.run(
        [*program, "--small", "--only", "spark", "--json", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    costs = json.loads(done.stdout)["costs"]
    assert len(costs) >= least
    assert all(cost["rows_read"] > 0 for cost in costs)
