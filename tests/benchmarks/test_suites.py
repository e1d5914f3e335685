"""Every benchmark at a small size: counts, memory, targets, and other engines that agree."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.language.ast import fact
from zodiacedge.terms import IRI, Literal, integer
from zodiacedge_bench import suites
from zodiacedge_bench.measure.embedded import NO_MODULES, ON_ONE_CORE, OURS, EmbeddedTrial, Loaded, Memory
from zodiacedge_bench.measure.harness import Expected, Measurement, Run, WrongCountError, measure
from zodiacedge_bench.measure.machine import this_machine
from zodiacedge_bench.measure.task import Task, graph_tasks, lubm_files_task, lubm_task, paper_task
from zodiacedge_bench.peers import PEERS, Peer
from zodiacedge_bench.peers.clingo import DIALECT
from zodiacedge_bench.peers.portable import COUNT, portable
from zodiacedge_bench.peers.reference import REFERENCES
from zodiacedge_bench.peers.souffle import program_text
from zodiacedge_bench.report.report import Figure, Report
from zodiacedge_bench.report.targets import memory_verdicts, speed_verdicts
from zodiacedge_bench.suites import Options
from zodiacedge_bench.workloads import lubm

if TYPE_CHECKING:
    from pathlib import Path

SMALL = Options(runs=1, small=True)
SCRATCH = replace(SMALL, only=("scratch",))
TASKS = {
    task.name: task
    for task in (
        *(paper_task(number, 50) for number in (1, 2, 3)),
        *graph_tasks(small=True).values(),
        lubm_task(1, departments=1),
    )
}


def trial(task: Task, *, modules: bool = True) -> EmbeddedTrial:
    return EmbeddedTrial(task.loaded.store(), task.rules, task.graph, modules=modules)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("modules", [True, False])
def test_a_trial_derives_what_the_engine_derives(name: str, modules: bool) -> None:  # noqa: FBT001
    task = TASKS[name]
    engine = EmbeddedEngine(modules=modules)
    state = engine.materialise(task.rules, task.graph, task.make_facts(), Settings())
    expected = {predicate.name: count for predicate, count in state.derived_counts().items()}
    assert measure(name, lambda: trial(task, modules=modules), task.expected, 1).counts == expected


def test_a_trial_leaves_the_next_one_a_fresh_store() -> None:
    loaded = Loaded.of([fact("p", IRI("a"), integer(1)), fact("C", Literal("x"))])
    first, second = loaded.store(), loaded.store()
    first.dictionary.encode(IRI("new"))
    assert len(second.dictionary) == len(loaded.terms)
    assert set(second.facts(second.explicit)) == {fact("p", IRI("a"), integer(1)), fact("C", Literal("x"))}
    assert len(loaded) == 2


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
@pytest.mark.parametrize("name", TASKS)
def test_other_engines_derive_as_many_facts(name: str, peer: Peer) -> None:
    if not peer.version():
        pytest.skip(f"{peer.name} is not installed")
    task = TASKS[name]
    program = portable(task, peer.aggregates)
    ours = measure(name, lambda: trial(task), task.expected, 1)
    expected = Expected(ours.counts).restricted(program.missing)
    assert measure(name, lambda: peer.trial(program), expected, 1).derived > 0


def test_a_peer_without_an_aggregate_is_spared_its_rules_and_what_needs_them() -> None:
    task = TASKS["rs1 n=50"]
    median = {"hasMedianAirTemperatureMeasurementNearby", "SensorAnomalyWindTurbine"}
    count = {"hasNeighbourAirTemperatureMeasurementNumber", "MoreThan3Neighbours"}
    assert portable(task, frozenset({"count"})).missing == median
    assert portable(task, frozenset()).missing == median | count


def test_graphs_has_both_ways_of_each_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = os.sched_getaffinity(0)
    monkeypatch.setattr(suites, "usable_cores", lambda: 2)
    report = suites.graphs(replace(SMALL, only=("closure", "same-generation", "points-to")))
    assert {figure.engine for figure in report.figures} == {OURS, NO_MODULES, *ON_ONE_CORE.values()}
    assert len(report.figures) == 12
    assert os.sched_getaffinity(0) == cores
    assert all(one.bytes_per_row > 0 for one in report.memory)


def test_only_and_modules_choose() -> None:
    figures = suites.graphs(replace(SMALL, only=("closure",), modules=False)).figures
    assert {figure.workload for figure in figures} == {"closure (small)"}
    assert {figure.engine for figure in figures} <= {NO_MODULES, ON_ONE_CORE[NO_MODULES]}


def test_paper_shows_what_the_paper_gives() -> None:
    figures = [figure for figure in suites.paper(SCRATCH).figures if figure.engine == OURS]
    assert [figure.measurement.derived for figure in figures] == [2600, 27_325, 27_026]
    assert [paper_task(n, size).published for n, size in ((1, 400), (2, 200), (3, 200))] == [474, 99, 24.134]


def test_lubm_without_known_counts_must_at_least_agree_with_itself() -> None:
    first, *others = suites.lubm(SCRATCH).figures
    assert [other.measurement.counts for other in others] == [first.measurement.counts] * len(others)
    assert others


def test_lubm_reads_csv_files_and_their_expected_counts(tmp_path: Path) -> None:
    lubm.write(tmp_path, 1, form="csv", departments=1)
    derived = measure("lubm", lambda: trial(TASKS["lubm-1 (small)"]), Expected(), 1)
    known = {"per_predicate": dict(derived.counts), "idb_total": derived.derived}
    (tmp_path / "expected.json").write_text(json.dumps(known))
    assert suites.lubm(SCRATCH, data=tmp_path).figures[0].measurement.counts == derived.counts
    (tmp_path / "expected.json").write_text(json.dumps(known | {"idb_total": 1}))
    task = lubm_files_task(tmp_path)
    with pytest.raises(WrongCountError, match="instead of 1"):
        measure("lubm", lambda: trial(task), task.expected, 1)


def test_peers_compares_on_the_same_facts_and_lists_who_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zodiacedge_bench.peers.nemo.Nemo.version", lambda _self: "")
    monkeypatch.setattr(suites, "usable_cores", lambda: 1)
    pytest.importorskip("clingo")
    report = suites.peers(replace(SMALL, only=("rs2",)), ("clingo", "nemo"))
    assert [figure.engine for figure in report.figures] == [OURS, NO_MODULES, "clingo"]
    assert report.not_installed == ("nemo",)
    times = report.tables()[0]
    assert times.columns[-1] == "ratio"
    assert times.rows[0][-1] == "1.0"


def test_a_peer_that_derives_something_else_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("clingo")
    monkeypatch.setattr("zodiacedge_bench.peers.clingo.ClingoTrial.counts", lambda _self: {"path": 1})
    with pytest.raises(WrongCountError, match=r"clingo on closure \(small\) derives wrong facts: path"):
        suites.peers(replace(SMALL, only=("closure",)), ("clingo",))


def figure(workload: str, engine: str, seconds: float) -> Figure:
    return Figure(workload, engine, Measurement((Run(seconds, seconds),), {"p": 1}))


def test_targets_are_met_or_missed() -> None:
    figures = [
        figure("rs2 n=200", OURS, 0.1),
        figure("rs2 n=200", "clingo", 2.1),
        figure("rs2 n=200", "nemo", 6.9),
    ]
    clingo, nemo = speed_verdicts(figures)
    assert (clingo.word, nemo.word) == ("met", "missed")
    assert clingo.shown == "21.0x"
    size = Memory("lubm-10", 1, 8, 8, 10, 80, 0, 321, terms=10, dictionary_bytes=420)
    rows, dictionary = memory_verdicts([size])
    assert (rows.shown, rows.word) == ("40.1", "missed")
    assert (dictionary.shown, dictionary.word) == ("42.0", "met")


def test_the_document_of_a_report_is_plain() -> None:
    figures = (figure("rs2 n=200", OURS, 0.1), figure("rs2 n=200", "clingo", 2.0))
    report = Report("peers", this_machine(), figures, versions={"clingo": "5"}, not_installed=("nemo",))
    document = json.loads(json.dumps(report.to_dict()))
    assert document["peers"] == {"clingo": "5", "nemo": "not installed"}
    assert document["figures"][1]["ratio"] == pytest.approx(20)
    assert document["figures"][1]["runs"] == [{"seconds": 2.0, "cpu_seconds": 2.0}]
    assert document["machine"]["cores"] >= 1


def test_souffle_binds_the_groups_of_a_count_outside_its_braces() -> None:
    lines = "\n".join(program_text(portable(paper_task(1, 50), COUNT))).splitlines()
    declared = next(line for line in lines if line.startswith(".decl groups_"))
    name = declared.removeprefix(".decl ").partition("(")[0]
    body = "z_hasNeighbour(VX, VY), z_hasAirTemperatureMesurement(VY, VT)"
    assert f"{name}(VX) :- {body} ." in lines
    assert any(line.endswith(f":- {name}(VX), VZ = count : {{ {body} }} .") for line in lines)
    assert [line for line in lines if line.startswith(".input")] == [
        ".input z_hasNeighbour",
        ".input z_hasAirTemperatureMesurement",
    ]
    assert ".output z_hasNeighbour" in lines


def test_targets_against_souffle_compare_processor_time() -> None:
    own = Figure("lubm-1", OURS, Measurement((Run(0.1, 0.2),), {}))
    peer = Figure("lubm-1", "souffle", Measurement((Run(0.1, 0.6),), {}))
    (verdict,) = speed_verdicts((own, peer))
    assert (verdict.shown, verdict.word) == ("3.0x", "met")


def test_souffle_is_estimated_by_duckdb_where_it_is_not_installed() -> None:
    def took(engine: str, seconds: float) -> Figure:
        return Figure("lubm-1", engine, Measurement((Run(9.0, seconds), Run(8.0, seconds + 1)), {}))

    reference = REFERENCES["lubm-1"]
    # A machine on which DuckDB takes twice as long is taken to be half as fast for Soufflé as well.
    souffle = reference.souffle / reference.ours * reference.again * 2
    figures = [took(OURS, souffle / 4), took("duckdb", 2 * reference.duckdb)]
    (verdict,) = [v for v in speed_verdicts(figures) if v.target.peer == "souffle"]
    assert verdict.target.text.endswith("against souffle by CPU, estimated")
    assert (verdict.shown, verdict.word) == ("4.0x", "met")
    (verdict,) = [v for v in speed_verdicts([*figures, took("souffle", 0)]) if v.target.peer == "souffle"]
    assert verdict.target.text.endswith("by CPU")
    assert verdict.word == "missed"


def test_two_cores_are_compared_with_one_by_wall_time() -> None:
    figures = [figure("points-to", NO_MODULES, 0.2), figure("points-to", ON_ONE_CORE[NO_MODULES], 0.3)]
    (verdict,) = speed_verdicts(figures)
    assert (verdict.shown, verdict.word) == ("1.5x", "met")


def test_constants_in_atoms_are_refused_to_peers() -> None:
    task = Task("constant", "p(X, Y) :- q(X, Y, 5) .", list, Expected())
    with pytest.raises(NotImplementedError, match="no constants"):
        list(DIALECT.rules(portable(task, frozenset())))
