"""Every strategy of a node gives the definition's facts, and the report states strategy and reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark.test_shared_suite import follow
from zodiacedge.engine.api import SegmentChange, Settings
from zodiacedge.engine.embedded.maintain.strategy import Policy
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.engine.spark.maintain.scheduler import Estimates
from zodiacedge.engine.spark.storage.files import TYPED, DataFile, Relation, Segment, SignedFiles
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.errors import EvaluationProblem, LimitReached
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.parser import parse_program
from zodiacedge.terms import iri

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.engine.spark.engine import SparkEngine

# All that a body can hold: recursion, negation that looks for witnesses, a variable class, values that are
# computed and compared, errors, groups, and facts without arguments.
PROGRAM = """
tb: path(X, Y) :- edge(X, Y) .
tc: path(X, Y) :- path(X, Z), edge(Z, Y) .
ex: Leaf(X) :- edge(_, X), not edge(X, _) .
an: rdf:type(X, C) :- kind(X, C), Leaf(X) .
va: twice(X, M) :- weight(X, N), M := N * 2, not weight(X, M), N / N = 1 .
ag: degree(X, N, S) :- AGGREGATE(edge(X, Y), weight(Y, W)) ON X WITH COUNT(Y) AS N, SUM(W) AS S .
be: some() :- Leaf(L), degree(X, N, S), N > 1 .
edge(a, b) . edge(b, c) . edge(c, d) . edge(d, b) . edge(a, e) . edge(e, f) .
weight(b, 2) . weight(c, 2.5) . weight(e, 4) . weight(f, 8) . weight(d, 0) . kind(f, <Even>) .
"""
CHANGES = (
    ("add", "edge(f, a) . weight(a, 3) . kind(g, <Odd>) . edge(c, g) ."),
    ("remove", "edge(c, d) . weight(e, 4) . tb: path(X, Y) :- edge(X, Y) ."),
)
QUERIES = ("?- path(a, X), not edge(X, _) .", "?- twice(X, M), M > 5 .", "?- some() .")
SMALL = """
tb: path(X, Y) :- edge(X, Y) .
tc: path(X, Y) :- path(X, Z), edge(Z, Y), not closed(Z) .
up: level(X, M) :- level(X, N), M := N + 1, M < 4 .
edge(a, b) . edge(b, c) . edge(c, d) . level(a, 1) . level(b, 2) . closed(z) .
"""


def seen(kb: KnowledgeBase, *, ask: bool) -> tuple[object, ...]:
    nodes = [frozenset(node.rules) for node in kb.graph().order]
    answers = [kb.query(text).rows for text in QUERIES] if ask else []
    return kb.facts(), kb.derived(), [kb.state.segment(rules) for rules in nodes], answers


def beside(engine: SparkEngine, texts: tuple[tuple[str, str], ...], *, ask: bool) -> list[str]:
    """Play changes on Spark and on the definition; return the means by which Spark's nodes were done."""
    expected = KnowledgeBase(ReferenceEngine(), Settings())
    found = KnowledgeBase(engine, Settings())
    strategy: list[str] = []
    for place, (kind, text) in enumerate(texts, 1):
        told = []
        for kb in (expected, found):
            with kb.change() as change:
                (change.add_rules if kind == "add" else change.remove_rules)(text)
            told.append(change.report)
        last = ask and place == len(texts)
        assert seen(found, ask=last) == seen(expected, ask=last), text
        assert told[1].inserted == told[0].inserted, text
        assert told[1].deleted == told[0].deleted, text
        assert told[1].net_counts() == told[0].net_counts(), text
        assert {k: d.count for k, d in told[1].dropped.items()} == {
            k: d.count for k, d in told[0].dropped.items()
        }, text
        strategy += [node.strategy for node in told[1].nodes]
    return strategy


def test_a_program_and_its_changes_by_plans(make_engine: Callable[[Options], SparkEngine]) -> None:
    strategy = beside(make_engine(Options(strategy="rounds")), (("add", PROGRAM), *CHANGES), ask=True)
    assert any(m.startswith("evaluated by a plan: rounds is asked for") for m in strategy)
    assert any(m.startswith("semi-naive in rounds: rounds is asked for") for m in strategy)
    assert any(m.startswith("maintained by delta plans") for m in strategy)
    assert not any("in one task" in m for m in strategy)


def test_a_recursion_in_parts(make_engine: Callable[[Options], SparkEngine]) -> None:
    changes = (("add", SMALL), ("add", "edge(d, e) . level(c, 1) ."), ("remove", "edge(a, b) ."))
    strategy = beside(make_engine(Options(strategy="partitioned")), changes, ask=False)
    parts = [m for m in strategy if m.startswith("partitioned")]
    assert any("path by argument 1" in m for m in parts)
    assert any("level by argument 1" in m for m in parts)


# All of them take minutes: two with every run of the tests.
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n in {14, 16} else pytest.mark.soak) for n in range(20)]
)
def test_a_random_session_in_rounds(seed: int, make_engine: Callable[[Options], SparkEngine]) -> None:
    # Every other one maintains by plans whatever it takes, much as a change may be.
    policy = Policy(strategy=("choose", "maintain")[seed % 2])
    follow(seed, make_engine(Options(strategy="rounds", policy=policy)))


def test_what_does_not_fit_one_task_takes_another_way(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    expected = KnowledgeBase(ReferenceEngine(), Settings())
    found = KnowledgeBase(make_engine(Options(gather_rows=60)), Settings())
    rules = "t: tc(X, Y) :- tc(X, Z), e(Z, Y) . b: tc(X, Y) :- e(X, Y) . s: small(X) :- e(X, <n3>) ."
    facts = "\n".join(f"e(n{i}, n{i + 1}) ." for i in range(12))
    for kb in (expected, found):
        with kb.change() as change:
            change.add_rules(rules + facts)
    strategy = {node.rules[0]: node.strategy for node in change.report.nodes}
    assert found.facts() == expected.facts()
    assert strategy["t"].startswith("partitioned: ")
    assert "tc by argument 1" in strategy["t"]
    assert "one task takes 60" in strategy["t"]
    assert "in one task" in strategy["s"]
    for kb in (expected, found):
        with kb.change() as change:
            change.add_facts("e(n12, n0) .")
    assert found.facts() == expected.facts()
    assert change.report.inserted == found.facts() - (found.facts() - change.report.inserted)


def test_strict_mode_and_limits_hold_on_plans(make_engine: Callable[[Options], SparkEngine]) -> None:
    engine = make_engine(Options(strategy="rounds"))
    strict = KnowledgeBase(engine, Settings(strict=True))
    with pytest.raises(EvaluationProblem, match="E002"), strict.change() as change:
        change.add_rules("d: p(X, Y) :- q(X, N), Y := N / 0 .  q(a, 1) .")
    assert not strict.facts()
    limited = KnowledgeBase(engine, Settings(limits=Limits(rounds=3)))
    with pytest.raises(LimitReached, match="3 rounds"), limited.change() as change:
        change.add_rules("n(Y) :- n(X), Y := X + 1 .  n(0) .")
    assert not limited.facts()


def test_what_a_region_reads_and_is_expected_to_derive() -> None:
    stated = Segment(
        {
            Relation("e", 2): SignedFiles.of(DataFile("", 40)),
            TYPED: SignedFiles.of(DataFile("", 9, {1: 5, 2: 4})),
        }
    )
    rules = parse_program(
        "b: p(X, Y) :- e(X, Y) . t: p(X, Y) :- p(X, Z), e(Z, Y) . c: C(X) :- C(X), D(X) ."
    ).rules
    sizes = Estimates([stated], {iri("C"): 1, iri("D"): 2})
    sizes.add(rules[:1], None)
    assert sizes.total == 40 + 40
    # What the first node will derive, ten times; what both read counts once.
    sizes.add(rules[1:2], None)
    assert sizes.total == 80 + 400
    # Members of two classes are read, and what the node had is what it is expected to have.
    sizes.add(rules[2:], Segment({Relation("x", 2): SignedFiles.of(DataFile("", 3))}))
    assert sizes.total == 480 + 9 + 3


def test_a_node_that_splits_gains_nothing_whichever_ways_its_heirs_take(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    kb = KnowledgeBase(make_engine(Options(gather_rows=30, look_up_from=10**6)), Settings())
    with kb.change() as change:
        change.add_rules("a: p() :- q(X) . b: p() :- p(), big(X, Y) . c: q(z) :- p(), s(X) . q(x1) . s(x1) .")
        change.add_facts("\n".join(f"big(x1, y{n}) ." for n in range(40)))
    with kb.change() as change:
        change.remove_rules("c")
    runs = {run.rules: run for run in change.report.nodes}
    assert "in one task" in runs["a",].strategy
    assert "in one task" not in runs["b",].strategy
    assert runs["a",].counted() in {None, SegmentChange()}
