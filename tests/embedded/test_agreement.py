"""The embedded engine agrees with the definition on random programs: facts, segments, dropped bindings."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from strategies import Seeded, evaluate_program, random_program
from strategies.scale import examples
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.evaluate import seminaive as nodes
from zodiacedge.engine.embedded.evaluate.exchange import Exchange
from zodiacedge.engine.embedded.kernels.jit import COMPILED
from zodiacedge.engine.embedded.machine import execute
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import LimitReached
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.opening import open_kb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zodiacedge.engine.embedded.evaluate.two_threads import TwoThreads
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.embedded.storage.segment import Segment

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parents[1]


def assert_agreement(seed: int, engine: EmbeddedEngine) -> None:
    program = random_program(Seeded(seed))
    expected = evaluate_program(program, engine=ReferenceEngine())
    got = evaluate_program(program, engine=engine)
    assert got.result.visible() == expected.result.visible(), f"seed {seed}"
    for node in expected.graph.order:
        rules = frozenset(node.rules)
        assert got.result.segment(rules) == expected.result.segment(rules), f"seed {seed}"
    assert {k: d.count for k, d in got.result.dropped.items()} == {
        k: d.count for k, d in expected.result.dropped.items()
    }, f"seed {seed}"
    assert got.result.derived_counts() == expected.result.derived_counts(), f"seed {seed}"


@pytest.mark.parametrize("modules", [True, False], ids=["modules", "machine"])
def test_random_programs(modules: bool) -> None:  # noqa: FBT001 - the parameter under test
    for seed in range(200):
        assert_agreement(seed, EmbeddedEngine(modules=modules))


# A rule that can fail, all of whose variables are in its head, over facts that are explicit and derived;
# numbers of one value and several types under a guard X != Y; a class among all classes, where errors count.
@pytest.mark.parametrize("seed", [1_000_302, 1_004_051, 1_004_369, 1_005_597])
def test_programs_that_found_a_bug(seed: int) -> None:
    assert_agreement(seed, EmbeddedEngine(modules=bool(seed % 2)))


@pytest.mark.soak
def test_many_random_programs() -> None:
    for seed in range(1_000_000, 1_000_000 + examples(10_000, one_in=5)):
        assert_agreement(seed, EmbeddedEngine(modules=bool(seed % 2)))


def test_the_same_code_runs_without_a_compiler() -> None:
    script = (
        "from embedded.test_agreement import assert_agreement, EmbeddedEngine\n"
        "from zodiacedge.engine.embedded.kernels.jit import COMPILED\n"
        "assert not COMPILED\n"
        "for seed in range(5_000, 5_060): assert_agreement(seed, EmbeddedEngine(modules=seed % 2 == 0))\n"
    )
    environment = os.environ | {"ZODIAC_PURE_PYTHON": "1", "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("modules", [True, False], ids=["modules", "machine"])
def test_two_threads_do_what_one_does(modules: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001 - the parameter under test
    shared: list[object] = []
    run_in_two = nodes.NodeEvaluation._run_in_two

    def counted(self: nodes.NodeEvaluation) -> int:
        shared.append(self)
        return run_in_two(self)

    monkeypatch.setattr(nodes, "has_two_cores", lambda: True)
    monkeypatch.setattr(nodes, "_ROWS_FOR_TWO", 1)
    monkeypatch.setattr(nodes.NodeEvaluation, "_run_in_two", counted)
    for seed in range(3_000, 3_150):
        assert_agreement(seed, EmbeddedEngine(modules=modules))
    assert len(shared) > 50


@pytest.mark.parametrize("modules", [True, False], ids=["modules", "machine"])
def test_two_threads_share_a_fixpoint(modules: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001 - the parameter under test
    shared: list[object] = []
    in_halves = nodes.NodeEvaluation._run_in_halves

    def counted(self: nodes.NodeEvaluation, halves: TwoThreads) -> int:
        shared.append(self)
        return in_halves(self, halves)

    monkeypatch.setattr(nodes, "has_two_cores", lambda: True)
    monkeypatch.setattr(nodes, "_ROWS_FOR_HALVES", 0)
    monkeypatch.setattr(nodes.NodeEvaluation, "_run_in_halves", counted)
    for seed in range(4_000, 4_300):
        assert_agreement(seed, EmbeddedEngine(modules=modules))
    assert len(shared) > 20


def in_rounds(monkeypatch: pytest.MonkeyPatch, rows: int) -> list[object]:
    """Let two threads evaluate every fixpoint that they can, and return those that they did in rounds.

    The second thread takes part in rounds of so many rows.
    """
    shared: list[object] = []
    run_in_rounds = nodes.NodeEvaluation._run_in_rounds

    def counted(self: nodes.NodeEvaluation, relations: Sequence[Relation]) -> int:
        shared.append(self)
        return run_in_rounds(self, relations)

    monkeypatch.setattr(nodes, "has_two_cores", lambda: True)
    monkeypatch.setattr(nodes, "_ROWS_FOR_HALVES", 0)
    monkeypatch.setattr(nodes, "_ROWS_FOR_ROUND", rows)
    monkeypatch.setattr(nodes.NodeEvaluation, "_run_in_rounds", counted)
    return shared


@pytest.mark.parametrize("rows", [0, 4, 1000], ids=["always both", "both in large rounds", "in turns"])
def test_two_threads_share_a_fixpoint_that_keeps_no_argument(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = in_rounds(monkeypatch, rows)
    for seed in range(4_000, 4_150):
        assert_agreement(seed, EmbeddedEngine(modules=False))
    if COMPILED:
        assert len(shared) > 30


def test_two_threads_derive_a_fact_of_a_round_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = in_rounds(monkeypatch, 0)
    tables: list[tuple[int, int]] = []
    result = Exchange.result

    def checked(self: Exchange) -> Segment:
        segment = result(self)
        tables.extend((len(t), len(np.unique(t.rows, axis=0))) for t in segment.tables.values())
        return segment

    monkeypatch.setattr(Exchange, "result", checked)
    # Every pair is derived in some forty ways, most of them in the same round by both threads.
    rules = "near(X, Y) :- link(X, Y) . near(X, Z) :- near(Y, X), near(Y, Z), near(X, X) ."
    kb = KnowledgeBase(EmbeddedEngine(modules=False), Settings())
    with kb.change() as c:
        c.add_rules(rules)
        c.add_facts([(n, (7 * n + k) % 120) for n in range(120) for k in range(20)], "link")
    if COMPILED:
        assert shared
        assert all(rows == distinct for rows, distinct in tables)
        assert tables
    assert kb.verify().ok


@pytest.mark.skipif(not COMPILED, reason="interpreted kernels run in one thread")
def test_the_facts_of_a_round_count_against_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = in_rounds(monkeypatch, 0)
    threads = threading.active_count()
    for limit, fails in ((9_000, True), (20_000, False)):
        kb = KnowledgeBase(EmbeddedEngine(modules=False), Settings(limits=Limits(facts=limit)))
        change = kb.change()
        change.add_rules("p(X, Y) :- up(X, A), p(A, B), up(Y, B) .")
        change.add_facts([(n + 1, n // 2) for n in range(100)], "up")
        change.add_facts([(0, n) for n in range(100)], "p")
        change.add_facts([(n, 0) for n in range(100)], "p")
        change.add_facts([(n, m) for n in range(1, 100) for m in range(60)], "p")
        if fails:
            with pytest.raises(LimitReached):
                kb.apply(change.collected())
        else:
            kb.apply(change.collected())
            assert kb.verify().ok
    assert shared
    assert threading.active_count() == threads


def test_equal_atoms_of_two_rules_are_halved_for_one_of_them_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "has_two_cores", lambda: True)
    monkeypatch.setattr(nodes, "_ROWS_FOR_HALVES", 0)
    rules = """
        r1: path(Y, Z) :- edge(Y, Z), path(Y, Y) .
        r2: path(X, Z) :- path(X, Y), edge(Y, Z) .
    """
    kb = KnowledgeBase(EmbeddedEngine(modules=False), Settings())
    with kb.change() as c:
        c.add_rules(rules)
        c.add_facts([(n, (3 * n + 1) % 40) for n in range(40)], "edge")
        c.add_facts([(n, n) for n in range(0, 40, 3)], "path")
    assert kb.verify().ok


def test_facts_of_both_halves_count_against_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "has_two_cores", lambda: True)
    monkeypatch.setattr(nodes, "_ROWS_FOR_HALVES", 1)
    monkeypatch.setattr(execute, "_BUDGET", 1000)
    threads = threading.active_count()
    for limit, fails in ((39_999, True), (40_200, False)):
        kb = KnowledgeBase(EmbeddedEngine(modules=False), Settings(limits=Limits(facts=limit)))
        change = kb.change()
        change.add_rules("path(X, Z) :- path(X, Y), edge(Y, Z) .")
        change.add_facts([(n, (n + 1) % 200) for n in range(200)], "edge")
        change.add_facts([(n, n) for n in range(200)], "path")
        if fails:
            with pytest.raises(LimitReached):
                kb.apply(change.collected())
        else:
            kb.apply(change.collected())
            assert kb.derived()["path"] == 40_000
    assert threading.active_count() == threads


def test_a_failure_in_one_half_ends_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "has_two_cores", lambda: True)
    monkeypatch.setattr(nodes, "_ROWS_FOR_TWO", 1)
    monkeypatch.setattr(execute, "_BUDGET", 1000)
    kb = open_kb(limits=Limits(facts=5_000))
    threads = threading.active_count()
    change = kb.change()
    change.add_rules("p(X, Y, Z) :- q(X), q(Y), q(Z) .")
    change.add_facts([(n,) for n in range(60)], "q")
    with pytest.raises(LimitReached):
        kb.apply(change.collected())
    assert threading.active_count() == threads
    assert not kb.facts()
