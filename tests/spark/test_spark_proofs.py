"""Explanations on Spark: rows are looked up by key, and proofs are those of the other engines."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from explain.proving import checked, patience
from explain.test_random_proofs import assert_proved
from maintenance.test_random_sessions import changes_of
from spark.conftest import jobs_so_far
from spark.test_spark_store import on
from strategies import Seeded, random_program, random_session
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.spark.cluster.task_files import rows_read
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.errors import ZodiacError
from zodiacedge.explain.missing import BodyFails, FailedComparison
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import fact
from zodiacedge.terms import IRI, integer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zodiacedge.engine.spark.engine import SparkEngine

RULES = """
r1: alarm(X) :- reading(X, V), V > 80, not muted(X, _) .
r2: path(X, Z) :- path(X, Y), path(Y, Z) .
r3: path(X, Y) :- near(X, Y) .
r4: peak(X, M) :- AGGREGATE(reading(X, V)) ON X WITH MAX(V) AS M .
"""


@pytest.fixture(scope="module")
def farm(make_engine: Callable[[Options], SparkEngine]) -> KnowledgeBase:
    # Relations of more than ten rows count as large.
    kb = KnowledgeBase(make_engine(Options(whole_rows=10)), Settings())
    nodes = [IRI(f"wt{n}") for n in range(40)]
    facts = [fact("reading", node, integer(n + 50)) for n, node in enumerate(nodes)]
    facts += [fact("near", a, b) for a, b in itertools.pairwise(nodes)]
    with kb.change() as c:
        c.add_rules(RULES)
        c.add_facts([*facts, fact("muted", nodes[38], nodes[0])])
    return kb


def test_proofs_are_right_and_flat(farm: KnowledgeBase) -> None:
    assert checked(farm, farm.explain("alarm(wt39)", budget=patience())).height == 1
    proof = checked(farm, farm.explain("path(wt3, wt20)", budget=patience()))
    assert proof.least
    assert proof.height == 6
    assert checked(farm, farm.explain("peak(wt3, 53)", budget=patience())).height == 1


def test_a_missing_fact_is_explained(farm: KnowledgeBase) -> None:
    (failure,) = farm.why_not("alarm(wt3)", budget=patience()).rules
    assert isinstance(failure, BodyFails)
    (failing,) = failure.attempts[0].failing
    assert isinstance(failing, FailedComparison)


def test_a_proof_of_one_fact_takes_few_jobs(farm: KnowledgeBase) -> None:
    engine = farm._engine
    before = jobs_so_far(engine)  # type: ignore[arg-type] # Spark's
    farm.explain("alarm(wt35)", budget=patience())
    assert jobs_so_far(engine) - before <= 4  # type: ignore[arg-type]


# Classes with rules over many relations, which lean on each other, and whose members have terms in common.
KINDS = 8
SCHOOL = "\n".join(
    [f"i{n}: Person(X) :- has{n}(X, _) ." for n in range(KINDS)]
    + [f"s{n}: has{n}(X, Y) :- said{n}(X, Y) ." for n in range(KINDS)]
    + [
        "a: Student(X) :- Person(X), takes(X, Y), Course(Y) .",
        "b: Course(Y) :- teaches(_, Y) .",
        "c: Person(X) :- Student(X) .",
        "d: takes(X, Y) :- enrolled(Y, X) .",
        "e: Course(X) :- Seminar(X) .",
        "f: Person(X) :- Teacher(X) .",
        "g: Teacher(X) :- teaches(X, Y), Course(Y) .",
        "h: Busy(X) :- Student(X), Teacher(X), not Ill(X) .",
    ]
)


def test_a_fact_that_many_rules_may_derive_takes_few_jobs_and_no_scan(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    # No query and no larger node fits one task, so nothing is gathered instead of looked up.
    engine = make_engine(Options(gather_rows=150, whole_rows=0))
    kb = KnowledgeBase(engine, Settings())
    people, courses = [IRI(f"p{n}") for n in range(3000)], [IRI(f"c{n}") for n in range(50)]
    facts = [
        fact(f"said{(n + k) % KINDS}", person, integer(k)) for n, person in enumerate(people) for k in (0, 5)
    ]
    facts += [
        fact("enrolled", courses[(n * k) % 50], person) for n, person in enumerate(people) for k in (1, 3)
    ]
    facts += [fact("teaches", person, courses[n % 50]) for n, person in enumerate(people[:90])]
    with kb.change() as c:
        c.add_rules(SCHOOL)
        c.add_facts(facts)
    for kind, height, some in (("Student", 3, (200, 301)), ("Person", 2, (7, 8)), ("Busy", 4, (33, 34))):
        for person in some:
            before = jobs_so_far(engine)
            proof = kb.explain(f"{kind}(p{person})", budget=patience())
            assert jobs_so_far(engine) - before <= 6
            assert checked(kb, proof).least
            assert proof.height == height


# Of every relation that is read, and of `rdf:type`, there are so many rows.
LARGE = 30_000
# A look-up by the second argument, in a large class, in the middle of wide rows, and in what rules derive.
LARGE_RULES = """
after: after(X, Z) :- link(X, Y), link(Y, Z) .
met:   Met(Y) :- link(X, Y), Node(X) .
known: known(Y) :- Met(Y), after(X, Y) .
told:  told(C, A) :- wide(A, _, C, _, _) .
heard: heard(A) :- told(C, A), Met(C) .
late:  late(Y) :- link(X, Y), not Node(X) .
"""


@pytest.mark.parametrize("kept", [False, True])
def test_no_lookup_of_a_proof_reads_a_large_file_whole(
    make_engine: Callable[[Options], SparkEngine], tmp_path: Path, *, kept: bool
) -> None:
    options = Options()
    numbers = np.arange(LARGE)
    link = pa.table({"a": numbers, "b": (numbers * 7 + 1) % LARGE})
    columns = zip("abcde", (1, 11, 7, 13, 17), strict=True)
    wide = pa.table({name: (numbers * prime) % LARGE for name, prime in columns})
    kb, expected = on(make_engine(options), tmp_path), KnowledgeBase(EmbeddedEngine(), Settings())
    for each in (kb, expected):
        with each.change() as c:
            c.add_rules(LARGE_RULES)
            c.add_facts(link, "link")
            c.add_facts(wide, "wide")
            c.add_facts(pa.table({"n": numbers[1:]}), "Node")
    if kept:
        # Another session finds the facts in the store.
        kb.close()
        kb = on(make_engine(options), tmp_path)
    questions = {
        f"after(5, {(36 * 7 + 1) % LARGE})": 1,
        "Met(36)": 1,
        "known(36)": 2,
        "told(21, 3)": 1,
        f"heard({3})": 2,
        "late(1)": 1,
    }
    for question, height in questions.items():
        with rows_read() as read:
            proof = kb.explain(question, budget=patience())
        assert (proof.least, proof.height) == (True, height)
        assert proof.supports.keys() == expected.explain(question).supports.keys()
        # A group of rows for each look-up, and of terms for each term.
        assert 0 < read.rows < LARGE


def test_a_dry_run_is_explained(farm: KnowledgeBase) -> None:
    report = farm.dry_run(add_facts="reading(wt1, 99) .")
    assert report.explain("alarm(wt1)").height == 1


def test_windows_are_explained_on_spark(spark: SparkEngine) -> None:
    kb = KnowledgeBase(spark, Settings())
    with kb.change() as c:
        c.add_rules("""
            @time reading 3 .
            hot: hot(S) :- reading(S, V, _) within 10 min, V > 80 .
            alarm: alarm(S) :- sensor(S), not reading(S, _, _) within 10 min .
            sensor(s1) .
            reading(s1, 85, "2026-01-01T12:00:00Z"^^xsd:dateTime) .
        """)
        c.tick("2026-01-01T12:08:00Z")
    proof = kb.explain("hot(s1)", budget=patience())
    assert proof.least
    assert proof.height == 1
    told = str(kb.why_not("alarm(s1)", budget=patience()))
    assert 'reading(s1, 85, "2026-01-01T12:00:00Z"^^xsd:dateTime) within 10 min is there' in told
    assert "✗ reading(s2, V, _): no such fact" in str(kb.why_not("hot(s2)", budget=patience()))


def test_random_programs_are_proved_on_spark(spark: SparkEngine) -> None:
    for seed in (3, 8):
        program = random_program(Seeded(seed))
        kb = KnowledgeBase(spark, Settings())
        kb.apply(Change(add_rules=program.rules, add_facts=program.facts))
        assert_proved(kb, f"seed {seed}")


@pytest.mark.soak
def test_every_version_of_a_random_session_is_proved_on_spark(spark: SparkEngine) -> None:
    for seed in range(4):
        kb = KnowledgeBase(spark, Settings())
        for number, change in enumerate(changes_of(random_session(Seeded(seed), most_changes=4))):
            with contextlib.suppress(ZodiacError):
                kb.apply(change)
            assert_proved(kb, f"seed {seed}, change {number}")
