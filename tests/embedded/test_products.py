"""Heads that are derived as products agree with the reference evaluator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.evaluate import seminaive
from zodiacedge.engine.embedded.kernels.jit import COMPILED
from zodiacedge.engine.embedded.machine import execute, sources
from zodiacedge.engine.embedded.machine.assemble import Assembly
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.kb.knowledge_base import KnowledgeBase

TESTS = Path(__file__).resolve().parents[1]
_TERMS = 7
# What a part of a body may be, from a term to another.
_PATHS = (
    "{2}({0}, {1})",
    "{2}({1}, {0})",
    "{2}({0}, {0}W), {3}({0}W, {1})",
    "{2}({0}W, {0}), {3}({0}W, {1}), {0}W != {1}",
    "{2}({0}, {1}), not {3}({1}, {0})",
    "rdf:type({1}, c), {2}({0}, {1})",
)


def random_case(random: Random) -> tuple[str, list[tuple[str, int, int]]]:
    """Return recursive rules whose bodies fall in two parts, often; and facts, some of what rules derive."""
    names = ["a", "b", "p", "q"]
    rules = ["p(X, Y) :- a(X, Y) .", "q(X, Y) :- b(Y, X) ."]
    for _ in range(random.randint(1, 4)):
        # Not negated: q and p are recursive.
        paths = [
            random.choice(_PATHS).format(*ends, random.choice(names), random.choice("ab"))
            for ends in (("K", "X"), ("V", "Y"))
        ]
        if random.random() < 0.4:
            paths[1] = "" if random.random() < 0.5 else paths[1]
        delta = random.choice(["p(K, V)", "q(K, V)", "p(K, Y)" if not paths[1] else "q(K, V)"])
        test = random.choice(["", "", "a(K, _)", "b(K, U), c2(U)", "X != Y", "K != 1"])
        delta = delta if paths[1] else delta.replace("V", "Y")
        body = [part for part in (paths[0], delta, paths[1], test) if part]
        random.shuffle(body)
        head = random.choice(["p(X, Y)", "q(X, Y)", "p(Y, X)", "p(K, Y)", "q(Y, K)"])
        rules.append(f"{head} :- {', '.join(body)} .")
    density = random.choice([0.1, 0.3])
    pairs = [(n, m) for n in range(_TERMS) for m in range(_TERMS)]
    facts = [(name, n, m) for name in names for n, m in pairs if random.random() < density]
    return "\n".join(rules), facts


def assert_agreement(seed: int) -> None:
    rules, facts = random_case(Random(seed))
    visible = []
    for engine in (EmbeddedEngine(modules=False), ReferenceEngine()):
        kb = KnowledgeBase(engine, Settings())
        with kb.change() as change:
            change.add_rules(rules)
            for name, n, m in facts:
                change.add_facts([(n, m)], name)
            change.add_facts([(n,) for n in range(0, _TERMS, 2)], "c")
            change.add_facts([(n,) for n in range(0, _TERMS, 3)], "c2")
        visible.append(frozenset(kb.facts()))
    assert visible[0] == visible[1], f"seed {seed}\n{rules}"


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each plan that might be a product was assembled as one."""
    seen: list[bool] = []
    add = Assembly._product

    def recording(self: Assembly, *args: object) -> bool:
        seen.append(add(self, *args))  # type: ignore[arg-type]
        return seen[-1]

    monkeypatch.setattr(Assembly, "_product", recording)
    return seen


@pytest.mark.parametrize("budget", [3, 3_000_000], ids=["in slices", "at once"])
@pytest.mark.parametrize("known", [0, 100_000], ids=["known rows are skipped", "known rows are read again"])
def test_random_products(
    budget: int, known: int, products: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "_BUDGET", budget)
    monkeypatch.setattr(sources, "OWN_ROWS", known)
    for seed in range(120):
        assert_agreement(seed)
    assert sum(products) > 100


@pytest.mark.slow
def test_products_in_small_pieces() -> None:
    # Interpreted kernels take another size of the buffers.
    script = (
        "from embedded.test_products import assert_agreement\n"
        "from zodiacedge.engine.embedded.kernels import jit, layout\n"
        "assert not jit.COMPILED\n"
        "for size in (1, 2, 3):\n"
        "    layout.GATHERED_TERMS = size\n"
        "    for seed in range(1000 * size, 1000 * size + 12): assert_agreement(seed)\n"
    )
    environment = os.environ | {"ZODIAC_PURE_PYTHON": "1", "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not COMPILED, reason="it takes a minute without a compiler")
@pytest.mark.parametrize(
    "rule",
    [
        "p(X, Y) :- up(K, X), p(K, Y) .",
        "p(X, Y) :- up(K, X), p(K, V), near(V, Y) .",
        "p(X, Y) :- up(K, U), near(U, X), p(K, V), near(V, Y) .",
    ],
)
def test_more_terms_than_a_buffer_holds(rule: str, products: list[bool]) -> None:
    kb = KnowledgeBase(EmbeddedEngine(modules=False), Settings())
    count = 9_000
    with kb.change() as change:
        change.add_rules(f"p(X, Y) :- first(X, Y) . {rule}")
        change.add_facts([(0, 100 + n) for n in range(count)], "first")
        change.add_facts([(0, 1), (0, 2), (0, 3)], "up")
        change.add_facts([(n, n) for n in (1, 2, 3, *range(100, 100 + count))], "near")
    assert any(products)
    assert kb.derived()["p"] == 4 * count


@pytest.mark.skipif(not COMPILED, reason="interpreted kernels run in one thread")
@pytest.mark.slow
def test_two_threads_derive_products_in_rounds(products: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seminaive, "has_two_cores", lambda: True)
    monkeypatch.setattr(seminaive, "_ROWS_FOR_HALVES", 0)
    monkeypatch.setattr(seminaive, "_ROWS_FOR_ROUND", 0)
    for seed in range(5_000, 5_100):
        assert_agreement(seed)
    assert sum(products) > 100
