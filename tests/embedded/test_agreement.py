"""The embedded engine agrees with the definition on random programs: facts, segments, dropped bindings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from strategies import Seeded, evaluate_program, random_program
from strategies.scale import examples
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.reference import ReferenceEngine

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


# A rule that can fail, all of whose variables are in its head, over facts that are explicit and derived.
@pytest.mark.parametrize("seed", [1_000_302])
def test_programs_that_found_a_bug(seed: int) -> None:
    assert_agreement(seed, EmbeddedEngine(modules=False))


@pytest.mark.soak
def test_many_random_programs() -> None:
    for seed in range(1_000_000, 1_000_000 + examples(20_000)):
        assert_agreement(seed, EmbeddedEngine(modules=bool(seed % 2)))


def test_the_same_code_runs_without_a_compiler() -> None:
    script = (
        "from embedded.test_agreement import assert_agreement, EmbeddedEngine\n"
        "from zodiacedge.engine.embedded.compiled import COMPILED\n"
        "assert not COMPILED\n"
        "for seed in range(5_000, 5_060): assert_agreement(seed, EmbeddedEngine(modules=seed % 2 == 0))\n"
    )
    environment = os.environ | {"ZODIAC_PURE_PYTHON": "1", "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
