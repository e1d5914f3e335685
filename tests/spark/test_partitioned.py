"""Hash-partitioned nodes: by which arguments, and with the same result as unpartitioned."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from engine.test_golden_programs import PROGRAMS, differences
from spark.conftest import CLUSTER, jobs_so_far
from spark.test_shared_suite import follow
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.state import SparkState
from zodiacedge.engine.spark.storage.files import read_table
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.errors import EvaluationProblem, LimitReached
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Fact
from zodiacedge.language.parser import parse_program
from zodiacedge.language.safety import resolve
from zodiacedge.plan.partition import CoPartitionedNodes, Partitioning
from zodiacedge.terms import iri

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zodiacedge.language.ast import Rule

# All of them take minutes: some with every run of the tests, all with the long ones.
_EVERY = 6


def rules_of(text: str) -> list[Rule]:
    return [resolve(rule) for rule in parse_program(text).rules]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p(X, Y) :- p(X, Z), e(Z, Y) .", {"p": 0, "e": None}),
        ("p(X, Y) :- e(X, Z), p(Z, Y) .", {"p": 1, "e": None}),
        ("p(X, Y) :- q(Y, X) . q(Y, X) :- p(X, Y), e(Y) .", {"p": 0, "q": 1, "e": None}),
        ("p(X, a) :- p(X, b), p(X, Y) .", {"p": 0}),
        # What has the term is dealt out too, negated or not.
        ("p(X, Y) :- e(Y, X), not f(Z, X), not g(Y) .", {"p": 0, "e": 1, "f": 1, "g": None}),
        # Members of one class may be dealt out while those of another are read whole.
        ("A(X) :- B(X), r(X, Y), C(Y) . B(X) :- A(X) .", {"A": 0, "B": 0, "r": 0, "C": None}),
        ("A(X) :- B(X), r(X, Y), A(Y) .", None),
        ("rdf:type(X, C) :- rdf:type(X, D), sub(D, C) .", {"rdf:type": 0, "sub": None}),
        ("A(X) :- rdf:type(X, D), r(X, Y), B(Y) .", None),
        # The same relation cannot be both.
        ("p(X, Z) :- e(X, Y), e(Y, Z) .", None),
        ("p(X, Y) :- p(X, Z), p(Z, Y) .", None),
        ("p(X, Y) :- p(Y, X) .", None),
        ("p(a, Y) :- p(b, Z), e(Z, Y) . p(b, Y) :- p(a, Y) .", None),
        # A computed term says nothing of where an instance belongs.
        ("p(M) :- q(N), M := N + 1 .", None),
        ("p(X, M) :- q(X, N), M := N + 1 .", {"p": 0, "q": 0}),
        ("some() :- q(X) .", None),
        ("n(X, C) :- AGGREGATE(e(X, Y)) ON X WITH COUNT(Y) AS C .", None),
    ],
)
def test_by_which_argument_a_node_is_partitioned(text: str, expected: dict[str, int | None] | None) -> None:
    found = Partitioning().with_node(rules_of(text))
    assert (found and {str(s).rpartition("#")[2]: at for s, at in found.positions.items()}) == (
        expected and {name.removeprefix("rdf:"): at for name, at in expected.items()}
    )


def test_nodes_wait_for_nodes_that_are_left_out() -> None:
    nodes = [
        "a: p(X, Y) :- e(X, Y) .",
        # By the other argument: left out, and so is all that reads what it derives.
        "b: q(Y) :- p(X, Y) .",
        "c: r(X) :- p(X, Y), q(X) .",
        "d: s(X) :- p(X, Y), not t(Y) .",
        "f: u(X) :- p(X, Y), v(Y) .",
    ]
    sizes = {"v": 7, "t": 5}
    for most, expected in ((12, "adf"), (11, "ad"), (4, "a")):
        together = CoPartitionedNodes(lambda source: sizes.get(str(source), 0), most)
        taken = [text[0] for text in nodes if together.take(rules_of(text), ready=True)]
        assert "".join(taken) == expected


# Copies, a recursion through classes, inverses, negation, values with errors; and what does not fit.
PROGRAM = """
r1: knows(X, Y) :- told(X, Y) .
r2: Person(X) :- knows(X, Y) .
r3: Person(Y) :- knows(X, Y) .
r4: Student(X) :- Person(X), takes(X, C), Course(C) .
r5: Person(X) :- Student(X) .
r6: Busy(X) :- Student(X), hours(X, N), N / 2 > 3 .
r7: Free(X) :- Person(X), not Busy(X), not takes(X, _) .
r8: taken(C, X) :- takes(X, C) .
r9: takes(X, C) :- taken(C, X) .
r10: half(X, M) :- hours(X, N), M := N / 2 .
r11: path(X, Y) :- knows(X, Y) .
r12: path(X, Y) :- path(X, Z), knows(Z, Y) .
r13: load(X, S) :- AGGREGATE(takes(X, C), hours(X, N)) ON X WITH SUM(N) AS S .
"""


def facts(seed: int, count: int) -> str:
    dice = random.Random(seed)
    lines = [f"told(n{dice.randrange(count)}, n{dice.randrange(count)}) ." for _ in range(count)]
    lines += [f"takes(n{dice.randrange(count)}, c{dice.randrange(9)}) ." for _ in range(count)]
    lines += [f"hours(n{n}, {dice.choice(('3', '8', '2.5', 'many'))}) ." for n in range(0, count, 3)]
    return "\n".join([*lines, "Course(c1) .", "Course(c4) .", "Person(n0) .", "Student(x) ."])


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(Options(gather_rows=100), id="little"),
        pytest.param(Options(gather_rows=0), id="none", marks=pytest.mark.soak),
        pytest.param(Options(strategy="partitioned"), id="asked", marks=pytest.mark.soak),
    ],
)
def test_a_program_in_parts(options: Options, make_engine: Callable[[Options], SparkEngine]) -> None:
    found, expected = (
        KnowledgeBase(make_engine(options), Settings()),
        KnowledgeBase(ReferenceEngine(), Settings()),
    )
    changes = (
        ("add", PROGRAM + facts(1, 40)),
        ("remove", "\n".join(facts(1, 40).splitlines()[:9])),
        ("remove", "r4: Student(X) :- Person(X), takes(X, C), Course(C) ."),
        ("add", "r4: Student(X) :- Person(X), takes(X, C), Course(C) . told(n1, n7) ."),
    )
    for kind, text in changes:
        told = []
        for kb in (found, expected):
            with kb.change() as change:
                (change.add_rules if kind == "add" else change.remove_rules)(text)
            told.append(change.report)
        assert found.facts() == expected.facts(), text
        for node in expected.graph().order:
            keys = frozenset(node.rules)
            assert found.state.segment(keys) == expected.state.segment(keys), keys
        dropped = [{key: one.count for key, one in report.dropped.items()} for report in told]
        assert dropped[0] == dropped[1], text
        assert (told[0].inserted, told[0].deleted) == (told[1].inserted, told[1].deleted), text
        if change.report is told[1] and text.startswith(PROGRAM):
            strategy = {node.rules[0]: node.strategy for node in told[0].nodes}
            assert strategy["r1"].startswith("partitioned: "), strategy
            assert strategy["r1"].endswith("knows by argument 1"), strategy


def test_what_parts_fail_with_is_told(make_engine: Callable[[Options], SparkEngine]) -> None:
    engine = make_engine(Options(strategy="partitioned"))
    strict = KnowledgeBase(engine, Settings(strict=True))
    numbers = " ".join(f"q(n{n}, {n}) ." for n in range(20))
    # All parts together count.
    with pytest.raises(EvaluationProblem, match="E002: rule d drops 20 bindings"), strict.change() as change:
        change.add_rules(f"d: p(X, Y) :- q(X, N), Y := N / 0 . {numbers}")
    assert not strict.facts()
    limited = KnowledgeBase(engine, Settings(limits=Limits(rounds=3)))
    with pytest.raises(LimitReached, match="3 rounds"), limited.change() as change:
        change.add_rules("n(X, Y) :- n(X, N), Y := N + 1 .  n(a, 0) .")
    assert not limited.facts()


def test_facts_and_terms_are_compared_in_parts(
    tmp_path: Path, make_engine: Callable[[Options], SparkEngine]
) -> None:
    engine = make_engine(Options(gather_rows=4000, split_bytes=1 << 18))
    path, again = tmp_path / "many.nt", tmp_path / "again.nt"
    path.write_text("".join(f"<n{n % 7000}> <p{n % 3}> <m{n // 2}> .\n" for n in range(12_000)))
    # Half of them are there, some stand twice, and some are new.
    lines = [f"<n{n % 7000}> <p{n % 3}> <m{n // 2}> .\n" for n in range(6000, 18_000)]
    again.write_text("".join([*lines, *lines[:500], "<n1> a <C> .\n"]))
    found, expected = KnowledgeBase(engine, Settings()), KnowledgeBase(EmbeddedEngine(), Settings())
    told = []
    for kb in (found, expected):
        for file in (path, again):
            with kb.change() as change:
                change.load(str(file))
        loaded = change.report
        absent = (Fact("p0", (iri("n0"), iri("nobody"))), Fact("p9", (iri("n0"), iri("m0"))))
        report = kb.apply(Change(remove_facts=(*sorted(kb.explicit, key=str)[:11_000], *absent)))
        warnings = [warning.render() for warning in report.warnings]
        told.append((loaded.net_counts(), report.net_counts(), warnings, kb.facts()))
    assert told[0] == told[1]
    state = found.state
    assert isinstance(state, SparkState)
    ids = np.concatenate([read_table(part.path)["id"].to_numpy() for part in state.terms.parts])
    assert len(ids) == len(np.unique(ids))


def test_a_clash_of_many_terms_is_found_in_whatever_part(java: None, tmp_path: Path) -> None:  # noqa: ARG001
    path = tmp_path / "many.nt"
    path.write_text("".join(f"<n{n}> <p> <m{n}> .\n" for n in range(12_000)))
    engine = SparkEngine(cluster=CLUSTER, bits=24, options=Options(gather_rows=4000))
    kb = KnowledgeBase(engine, Settings())
    with pytest.raises(EvaluationProblem, match="E005"), kb.change() as change:
        change.load(str(path))
    assert not kb.facts()


def test_parts_cost_two_jobs_however_many_nodes(make_engine: Callable[[Options], SparkEngine]) -> None:
    engine = make_engine(Options(gather_rows=50))
    found, expected = KnowledgeBase(engine, Settings()), KnowledgeBase(EmbeddedEngine(), Settings())
    rules = "\n".join(f"c{n}: p{n + 1}(X, Y) :- p{n}(X, Y), not q(X, Y) ." for n in range(12))
    for kb in (found, expected):
        with kb.change() as change:
            change.add_facts("\n".join(f"p0(a{n}, b{n % 7}) ." for n in range(60)) + " q(a3, b3) .")
        before = jobs_so_far(engine)
        with kb.change() as change:
            change.add_rules(rules)
        if kb is found:
            assert jobs_so_far(engine) - before == 2
            assert {node.strategy.partition(":")[0] for node in change.report.nodes} == {"partitioned"}
    assert found.facts() == expected.facts()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=() if number % _EVERY == 1 else pytest.mark.soak)
        for number, path in enumerate(PROGRAMS)
    ],
)
def test_a_golden_program_in_parts(path: Path, make_engine: Callable[[Options], SparkEngine]) -> None:
    assert differences(path, make_engine(Options(strategy="partitioned"))) == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_a_random_session_in_parts(seed: int, make_engine: Callable[[Options], SparkEngine]) -> None:
    follow(100 + seed, make_engine(Options(strategy="partitioned")))
