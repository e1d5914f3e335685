"""Maintenance by stamps: the facts and segments of the definition, whatever supports what."""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING

import pytest

from spark.test_spark_store import on, segments
from zodiacedge.engine.api import Settings
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.engine.spark.evaluate import rounds
from zodiacedge.engine.spark.maintain.propagate import MAINTAINED_BY_STAMPS
from zodiacedge.engine.spark.storage import compaction
from zodiacedge.engine.spark.storage.files import Relation, Segment, read_file
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from zodiacedge.engine.spark.engine import SparkEngine

    Step = tuple[str, str]

BY_ROUNDS = Options(gather_rows=0, look_up_from=0, whole_rows=0)
# A non-linear closure: no argument is kept, so it is evaluated in rounds.
PATHS = "b: path(X, Y) :- edge(X, Y) . c: path(X, Y) :- path(X, Z), path(Z, Y), not closed(Z) .\n"
POINTS = """
a: points(V, O) :- alloc(V, O) .
s: points(V, O) :- assign(V, W), points(W, O) .
h: holds(O, P) :- store(V, W), points(V, O), points(W, P) .
l: points(V, P) :- load(V, W), points(W, O), holds(O, P) .
"""


def beside(engine: SparkEngine, program: str, steps: Iterable[Step]) -> list[str]:
    """Play changes of facts on Spark and on the definition; return how Spark's nodes were done in each."""
    expected, found = KnowledgeBase(ReferenceEngine(), Settings()), KnowledgeBase(engine, Settings())
    strategies: list[str] = []
    for text, removed in (("", program), *steps):
        told = []
        for kb in (expected, found):
            with kb.change() as change:
                for sign, lines in (("-", text), ("+", removed)):
                    for line in lines.splitlines():
                        _take(change, sign, line.strip())
            told.append(change.report)
        step = f"- {text}\n+ {removed}"
        assert found.facts() == expected.facts(), step
        for node in expected.graph().order:
            keys = frozenset(node.rules)
            assert found.state.segment(keys) == expected.state.segment(keys), step
        assert told[1].inserted == told[0].inserted, step
        assert told[1].deleted == told[0].deleted, step
        assert told[1].net_counts() == told[0].net_counts(), step
        strategies.append("; ".join(run.strategy for run in told[1].nodes))
    return strategies


def _take(change: object, sign: str, line: str) -> None:
    if line:
        kind = "rules" if ":-" in line else "facts"
        verb = "add" if sign == "+" else "remove"
        getattr(change, f"{verb}_{kind}")(line)


def by_stamps(strategies: list[str]) -> list[bool]:
    return [MAINTAINED_BY_STAMPS in strategy for strategy in strategies]


CYCLES = "r: p(X, Y) :- p(Y, X) .\nt: p(X, Z) :- p(X, Y), p(Y, Z), not closed(Y) .\n"


def check(make_engine: Callable[[Options], SparkEngine], program: str, *changes: str) -> None:
    """All changes are right, and made by stamps; each is a list of facts with their signs."""
    steps = [
        tuple(
            "\n".join(f"{fact} ." for sign, fact in re.findall(r"([+-])(\w+\(.*?\))", text) if sign == side)
            for side in "-+"
        )
        for text in changes
    ]
    found = beside(make_engine(BY_ROUNDS), program, [(gone, came) for gone, came in steps])
    assert by_stamps(found) == [False, *(True for _ in changes)]


def test_a_cycle_that_supports_itself_goes(make_engine: Callable[[Options], SparkEngine]) -> None:
    program = CYCLES + "p(a, b) . p(b, c) . p(x, y) ."
    check(make_engine, program, "-p(a, b)", "-p(b, c)", "+p(c, a)", "-p(c, a) -p(x, y) +p(y, c)")


def test_support_of_an_equal_stamp_does_not_hold_but_derives_again(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    # Two ways of one length from a to d, and a longer one; at last each supports what supports it.
    program = PATHS + "edge(a, b) . edge(b, d) . edge(a, c) . edge(c, d) ."
    program += "edge(a, e) . edge(e, f) . edge(f, d) ."
    check(make_engine, program, "-edge(b, d)", "-edge(c, d)", "-edge(f, d) +edge(d, a)", "-edge(a, b)")


def test_support_is_lost_twice_in_one_change(make_engine: Callable[[Options], SparkEngine]) -> None:
    program = PATHS + "edge(a, b) . edge(b, d) . edge(a, c) . edge(c, d) . edge(d, e) . edge(e, a) ."
    first, second = "edge(a, b) {0}edge(c, d)", "edge(b, d) {0}edge(a, c)"
    changes = ("-" + first.format("-"), "+" + first.format("+"), "-" + second.format("-"))
    check(make_engine, program, *changes)


def test_what_another_owner_loses_may_hang_on_what_it_supported(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    # p(a, b) is stated, and derived from what it derives.
    program = CYCLES + "p(a, b) . p(b, a) . p(b, c) ."
    check(make_engine, program, "-p(b, a)", "-p(a, b)", "-p(b, c) +p(a, b)", "+p(b, a)", "-p(a, b)")


def test_negated_facts_come_and_go(make_engine: Callable[[Options], SparkEngine]) -> None:
    program = PATHS + "edge(a, b) . edge(b, c) . edge(c, d) . edge(d, b) . edge(a, c) ."
    changes = ("+closed(b) +closed(d)", "-closed(b) +closed(c)", "-closed(c) -edge(a, b)")
    check(make_engine, program, *changes)


def test_one_change_inserts_and_deletes(make_engine: Callable[[Options], SparkEngine]) -> None:
    program = PATHS + "edge(a, b) . edge(b, c) . edge(c, d) ."
    # Another way comes as the first one goes; then what comes leans on what goes.
    changes = ("-edge(b, c) +edge(b, x) +edge(x, c)", "-edge(a, b) -edge(x, c) +edge(c, a)")
    check(make_engine, program, *changes)


def facts(dice: Random, nodes: int, count: int) -> list[str]:
    names = ("alloc", "assign", "store", "load", "edge")
    pairs = [
        f"{dice.choice(names)}(n{dice.randrange(nodes)}, n{dice.randrange(nodes)}) ." for _ in range(count)
    ]
    derived = [f"{name}(n{dice.randrange(nodes)}, n{dice.randrange(nodes)}) ." for name in ("points", "path")]
    return [*pairs, *derived, f"closed(n{dice.randrange(nodes)}) ."]


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 4 else pytest.mark.soak) for n in range(40)]
)
def test_random_changes(
    seed: int, make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    # More partitions than two, so that facts arrive at home late; all relations large, or broadcast.
    monkeypatch.setattr(rounds, "_LEAST_PARTITIONS", 2 + seed % 3)
    monkeypatch.setattr(rounds, "_BROADCAST_ROWS", (500_000, -1)[seed % 2])
    dice = Random(seed)
    nodes = 6 + seed % 5
    there = dict.fromkeys(facts(dice, nodes, 9 * nodes))
    steps = []
    program = "\n".join(there)
    for _ in range(8):
        gone = dice.sample(sorted(there), dice.choice((1, 1, 2, 6)))
        came = [fact for fact in facts(dice, nodes, dice.choice((0, 1, 4))) if fact not in there]
        came = dice.sample(came, dice.randrange(len(came) + 1))
        there = dict.fromkeys([fact for fact in there if fact not in gone] + came)
        steps.append(("\n".join(gone), "\n".join(came)))
    strategies = beside(make_engine(BY_ROUNDS), PATHS + POINTS + program, steps)
    assert sum(by_stamps(strategies)) >= 6


def test_a_rule_leaves_the_node_and_comes_back(make_engine: Callable[[Options], SparkEngine]) -> None:
    jump = "j: path(X, Y) :- path(X, Z), jump(Z, Y) .\n"
    program = PATHS + jump + "edge(a, b) . edge(b, c) . edge(c, a) . jump(a, d) . jump(d, c) . edge(a, d) ."
    steps = ((jump, ""), ("edge(a, b) .", ""), ("", jump), ("jump(a, d) .", ""), ("edge(a, d) .", ""))
    strategies = beside(make_engine(BY_ROUNDS), program, steps)
    # Stamps hold for the rules of a node. Delta plans, which take the new rule in, give none.
    assert by_stamps(strategies) == [False, False, True, False, False, False]


def test_a_store_keeps_no_stamps(make_engine: Callable[[Options], SparkEngine], tmp_path: Path) -> None:
    engine, place = make_engine(BY_ROUNDS), tmp_path / "paths.zodiac"
    jump = "j: path(X, Y) :- path(X, Z), jump(Z, Y) .\n"
    program = PATHS + jump + "edge(a, b) . edge(b, c) . edge(c, a) . edge(c, d) . edge(d, b) . jump(b, d) ."
    memory = KnowledgeBase(ReferenceEngine(), Settings())
    strategies: list[str] = []
    for number, (add, remove) in enumerate(
        (
            (program, ""),
            ("", "edge(a, b) ."),
            # Opened anew: what is concerned is looked up all the same, and rounds give stamps again.
            ("", "edge(b, c) ."),
            ("", jump),
            ("edge(b, c) .", "edge(d, b) ."),
        )
    ):
        if number in {0, 2}:
            kb = on(engine, place)
        for each in (kb, memory):
            with each.change() as change:
                change.add_rules(add)
                (change.remove_rules if ":-" in remove else change.remove_facts)(remove)
            if each is kb:
                strategies.append("; ".join(run.strategy for run in change.report.nodes))
        assert kb.facts() == memory.facts()
        assert segments(kb) == segments(memory)
        if number == 1:
            kb.close()
    assert by_stamps(strategies) == [False, True, False, False, True]


# The stamps themselves.


def stamps_of(segment: Segment, relation: Relation) -> dict[tuple[int, ...], int]:
    """Return the stamps of a relation's facts, by fingerprints."""
    stamps: dict[tuple[int, ...], int] = {}
    for plus, file in segment.content(relation).layers:
        rows = zip(*(column.tolist() for column in read_file(file, relation.width + 1)), strict=True)
        for *row, stamp in rows:
            # A row goes with the stamp that it came with.
            assert plus or stamps.pop(tuple(row)) == stamp
            if plus:
                assert tuple(row) not in stamps
                stamps[tuple(row)] = stamp
    return stamps


def supported(stamps: dict[tuple[int, ...], int], stated: set[tuple[int, ...]]) -> None:
    """Each path has an instance on paths of smaller stamps."""
    after: dict[int, list[int]] = {}
    for x, y in {*stamps, *stated}:
        after.setdefault(x, []).append(y)

    def stamp(*row: int) -> int:
        return 0 if row in stated else stamps[row]

    for (x, y), given in stamps.items():
        assert given > 0
        ways = (max(stamp(x, z), stamp(z, y)) for z in after[x] if y in after.get(z, ()))
        assert min(ways) < given, (x, y)


# In both, facts come home with smaller stamps than it gave them; in the second others lean on these.
@pytest.mark.parametrize(("seed", "local", "partitions"), [(11, 2, 3), (9, 64, 2)])
def test_stamps_support_each_other_in_order(
    seed: int,
    local: int,
    partitions: int,
    make_engine: Callable[[Options], SparkEngine],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounds, "_LEAST_PARTITIONS", partitions)
    monkeypatch.setattr(rounds, "_MOST_LOCAL_ROUNDS", local)
    monkeypatch.setattr(compaction, "_MOST_LAYERS", 5)
    dice = Random(seed)
    edges = sorted({(dice.randrange(20), dice.randrange(20)) for _ in range(36)})
    kb = KnowledgeBase(make_engine(BY_ROUNDS), Settings())
    with kb.change() as change:
        change.add_rules("c: path(X, Y) :- path(X, Z), path(Z, Y), not closed(Z) .")
        change.add_facts("\n".join(f"path(n{x}, n{y}) ." for x, y in edges))
    (keys,) = (frozenset(node.rules) for node in kb.graph().order)
    relation = Relation("path", 2)
    for number in range(4):
        segment = kb.state.segments[keys]  # type: ignore[attr-defined]
        assert segment.stamped
        (stated,) = (kb.state.explicit_files.content(relation),)  # type: ignore[attr-defined]
        rows: set[tuple[int, ...]] = set()
        for plus, file in stated.layers:
            listed = set(zip(*(column.tolist() for column in read_file(file, 2)), strict=True))
            rows = rows | listed if plus else rows - listed
        stamps = stamps_of(segment, relation)
        assert len(stamps) == segment.rows
        supported(stamps, rows)
        x, y = edges[8 * number]
        with kb.change() as change:
            change.remove_facts(f"path(n{x}, n{y}) .")
            change.add_facts(f"path(n{y}, n{(x + 7) % 20}) .")
        assert all(MAINTAINED_BY_STAMPS in run.strategy for run in change.report.nodes)
