"""Recursion in rounds on hash partitions: the facts of the definition, whatever is placed and however."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.engine.spark.evaluate import rounds
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.errors import LimitReached
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.engine.spark.engine import SparkEngine

# Joins without a common variable, a negation by another variable than the join, members of classes,
# inequality, propositions, three arguments, stated facts of derived relations.
PROGRAM = """
s1: sg(X, Y) :- parent(P, X), sg(P, Q), parent(Q, Y) .
n1: path(X, Y) :- path(X, Z), path(Z, Y), not closed(Z), X != Y .
n2: path(X, Y) :- path(Y, X), open(), not parent(Y, X) .
h1: holds(O, P) :- store(V, W), points(V, O), points(W, P) .
h2: points(V, P) :- load(V, W), points(W, O), holds(O, P) .
h3: points(V, O) :- assign(V, W), points(W, O) .
k1: Near(Y) :- Near(X), path(X, Y), Far(Y), not Shut(Y) .
k2: Far(X) :- Near(X), parent(X, X) .
t1: way(X, Y, T) :- way(X, Z, T), way(Z, Y, T), tag(T, T) .
o1: lit() :- lit(), open() .
lit() . open() . Near(n0) . Shut(n5) . tag(t0, t0) .
"""
_NODES = 9


def facts(random: Random) -> str:
    """Return random facts of the relations that `PROGRAM` reads."""

    def node() -> str:
        return f"n{random.randrange(_NODES)}"

    pairs = ("parent", "sg", "path", "store", "load", "assign", "points")
    stated = [f"{name}({node()}, {node()}) ." for name in pairs for _ in range(10)]
    stated += [f"way({node()}, {node()}, t{random.randrange(2)}) ." for _ in range(12)]
    stated += [f"Far({node()}) . closed({node()}) ." for _ in range(5)]
    return "\n".join(stated)


def rules(random: Random) -> str:
    """Return random rules that derive p, q and C from each other and from e, f and g."""
    lines = []
    for number in range(5):
        body = [_atom(random, ("p", "q", "C"))]
        body += [_atom(random, ("p", "q", "C", "e", "f", "g")) for _ in range(random.randrange(1, 3))]
        bound = sorted({v for atom in body for v in "XYZW" if v in atom})
        name = random.choice(("p", "q", "C"))
        args = [random.choice(bound) for _ in range(1 if name == "C" else 2)]
        if random.random() < 0.4:
            body.append(f"not f({random.choice(bound)}, {random.choice([*bound, '_'])})")
        if random.random() < 0.3:
            body.append(f"{random.choice(bound)} != {random.choice([*bound, 'n1'])}")
        lines.append(f"r{number}: {name}({', '.join(args)}) :- {', '.join(body)} .")
    stated = [
        f"{name}(n{random.randrange(_NODES)}, n{random.randrange(_NODES)}) ."
        for name in ("e", "f", "p", "q")
        for _ in range(8)
    ]
    stated += [f"{name}(n{random.randrange(_NODES)}) ." for name in ("g", "C") for _ in range(4)]
    return "\n".join(lines + stated)


def _atom(random: Random, names: tuple[str, ...]) -> str:
    name = random.choice(names)
    return f"{name}({', '.join(random.choice('XYZW') for _ in range(1 if name in 'Cg' else 2))})"


def beside(engine: SparkEngine, text: str) -> list[str]:
    """Compare the facts of a program with the definition's; return the strategies."""
    expected = KnowledgeBase(ReferenceEngine(), Settings())
    found = KnowledgeBase(engine, Settings())
    for kb in (expected, found):
        with kb.change() as change:
            change.add_rules(text)
    assert found.facts() == expected.facts(), text
    for node in expected.graph().order:
        keys = frozenset(node.rules)
        assert found.state.segment(keys) == expected.state.segment(keys), text
    return [node.strategy for node in change.report.nodes]


# Everything that the node does not derive is broadcast, or nothing is; few local rounds and many partitions.
@pytest.mark.parametrize(("broadcast", "local", "rows"), [(500_000, 64, 500_000), (-1, 6, 200)])
def test_a_program_in_rounds(
    broadcast: int,
    local: int,
    rows: int,
    make_engine: Callable[[Options], SparkEngine],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounds, "_BROADCAST_ROWS", broadcast)
    monkeypatch.setattr(rounds, "_MOST_LOCAL_ROUNDS", local)
    engine = make_engine(Options(strategy="rounds", gather_rows=rows))
    jobs: list[str] = []
    with engine.jobs.telling(jobs.append):
        strategies = beside(engine, PROGRAM + facts(Random(broadcast)))
    assert sum(strategy.startswith("semi-naive in rounds") for strategy in strategies) == 6
    # No plan of Spark.
    assert {job for job in jobs if not job.startswith("deriving facts in partitions")} <= {
        "shuffling facts",
        "writing facts",
        "comparing terms",
        "reading facts",
    }


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(40))
def test_random_rules_in_rounds(
    seed: int, make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "_BROADCAST_ROWS", seed % 2 * 500_000 - 1)
    monkeypatch.setattr(rounds, "_MOST_LOCAL_ROUNDS", 1 + seed % 3)
    beside(make_engine(Options(strategy="rounds", gather_rows=10 + 50 * (seed % 2))), rules(Random(seed)))


def test_the_limit_of_rounds_holds_within_a_partition(make_engine: Callable[[Options], SparkEngine]) -> None:
    line = "".join(f"e(n{n}, n{n + 1}) ." for n in range(40))
    kb = KnowledgeBase(make_engine(Options(strategy="rounds")), Settings(limits=Limits(rounds=3)))
    with pytest.raises(LimitReached, match="3 rounds"), kb.change() as change:
        change.add_rules("b: p(X, Y) :- e(X, Y) . t: p(X, Y) :- p(X, Z), e(Z, Y) ." + line)
    assert not kb.facts()
