"""A query with a limit: distinct rows of the answer, so many or all, and little is read for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from spark.conftest import jobs_so_far
from strategies import Seeded, evaluate_program, random_program
from strategies.scale import examples
from zodiacedge.engine.api import Settings
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.engine.spark.cluster.task_files import rows_read
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.query import followed, limited
from zodiacedge.engine.spark.query.bindings import Bindings
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Query, Variable, variables
from zodiacedge.language.printer import format_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zodiacedge.engine.spark.query.one_task import QueryTask

# Edges of a ring with chords, members of classes, facts that are explicit and derived, and some that went.
NODES = 300
PROGRAM = """
e: link(X, Y) :- wire(X, Y) .
h: Hub(X) :- wire(X, 0) .
"""
QUERIES = (
    "?- link(X, Y) .",
    "?- link(X, Y), wire(Y, Z), link(Z, U) .",
    "?- link(X, Y), not Site(Y), not wire(Y, X) .",
    "?- link(X, Y), X > Y + 200 .",
    "?- link(X, Y), Z = X + 1, not Site(Z) .",
    "ans(X, 7) :- link(X, _), link(_, X) .",
    "?- Site(X), Hub(X) .",
    "?- rdf:type(X, C), rdf:type(Y, C), X < Y .",
    "?- rdf:type(X, C), link(X, X) .",
    "?- link(X, 0), Hub(Y) .",
    "?- link(12, X), link(X, Y) .",
    "?- link(X, X) .",
    "?- link(_, _), not absent(3) .",
    "?- link(1, 8), not link(8, 1) .",
    "?- ready(), link(X, Y) .",
    "?- off(), link(X, Y) .",
    "?- not link(0, 1) .",
    "?- link(X, absent) .",
    "?- wire(X, Z), N > 2, AGGREGATE(link(X, Y)) ON X WITH COUNT(Y) AS N .",
    "?- link(X, Y), Z = 100 / X, Z < 3 .",
)
LIMITS = (1, 5, 100_000)


@pytest.mark.parametrize("shared", [0, 1, 2])
@pytest.mark.parametrize(("left", "right"), [(0, 5), (5, 0), (7, 9), (40, 40)])
def test_bindings_are_joined_by_all_that_they_share(shared: int, left: int, right: int) -> None:
    dice = np.random.default_rng(left)
    a, b, c, d = map(Variable, "ABCD")
    ours = Bindings((a, b, c), dice.integers(0, 4, (left, 3)))
    theirs = Bindings((*(a, b)[:shared], d), dice.integers(0, 4, (right, shared + 1)))
    expected = sorted(
        [*x, y[-1]] for x in ours.rows.tolist() for y in theirs.rows.tolist() if x[:shared] == y[:-1]
    )
    assert sorted(ours.joined(theirs, 10_000).rows.tolist()) == expected
    some = ours.joined(theirs, 3).rows.tolist()
    assert len(some) == min(3, len(expected))
    assert all(row in expected for row in some)


def rows(numbers: np.ndarray) -> pa.Table:
    return pa.table({"a": numbers.ravel() % NODES, "b": (numbers * 7 + 1).ravel() % NODES})


def fill(kb: KnowledgeBase) -> KnowledgeBase:
    """Have rules, facts in several files, and facts that were deleted and inserted again."""
    numbers = np.arange(NODES)
    with kb.change() as c:
        c.add_rules(PROGRAM)
        c.add_facts(rows(numbers), "wire")
        c.add_facts(pa.table({"a": numbers[::3]}), "Site")
        c.add_facts([("ready",)])
    with kb.change() as c:
        c.add_facts(rows(numbers[:200:2]), "link")
        c.add_facts(pa.table({"a": numbers[:40], "b": numbers[:40] // 20}), "wire")
    with kb.change() as c:
        c.remove_facts([("link", 2, 15), ("wire", 4, 29), ("wire", 0, 1), ("Site", 3)])
    with kb.change() as c:
        c.add_facts([("wire", 4, 29)])
    return kb


@pytest.fixture(scope="module")
def expected() -> KnowledgeBase:
    return fill(KnowledgeBase(ReferenceEngine(), Settings()))


def jobs_of(kb: KnowledgeBase) -> int:
    assert isinstance(kb._engine, SparkEngine)
    return jobs_so_far(kb._engine)


def check(found: KnowledgeBase, expected: KnowledgeBase, query: str, limit: int) -> None:
    """Compare the rows of a query with all rows of its answer."""
    answers, everything = found.query(query, limit=limit), expected.query(query)
    # As texts: 1 and 1.0 are two terms.
    listed, whole = ([repr(row) for row in each.rows] for each in (answers, everything))
    assert len(listed) == len(set(listed)) == min(limit, len(whole))
    assert listed == [row for row in whole if row in set(listed)]
    if limit > len(everything):
        dropped = [each.dropped and each.dropped.count for each in (answers, everything)]
        assert dropped[0] == dropped[1]


@pytest.fixture(scope="module")
def found(make_engine: Callable[[Options], SparkEngine]) -> KnowledgeBase:
    return fill(KnowledgeBase(make_engine(Options(gather_rows=0, look_up_from=0)), Settings()))


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_distinct_answers(query: str, found: KnowledgeBase, expected: KnowledgeBase) -> None:
    for limit in LIMITS:
        check(found, expected, query, limit)


@pytest.mark.parametrize(
    "case",
    [(0, (1, 3, 4, 5, 7, 13, 16, 18, 19), 2), (300, (0, 3, 8, 9, 11, 14, 19), 7)],
    ids=["by a plan", "in waves"],
)
def test_rows_are_distinct_answers_without_look_ups(
    case: tuple[int, tuple[int, ...], int],
    expected: KnowledgeBase,
    make_engine: Callable[[Options], SparkEngine],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gather_rows, some, by_waves = case
    monkeypatch.setattr(followed, "_MOST_FOLLOWED", 0)
    monkeypatch.setattr(limited, "_LEAST_ROWS", 1)
    tasks: list[int] = []
    divided = limited.LimitedQuery._tasks
    monkeypatch.setattr(limited.LimitedQuery, "_tasks", lambda self: _counted(divided(self), tasks))
    found = fill(KnowledgeBase(make_engine(Options(gather_rows=gather_rows, look_up_from=0)), Settings()))
    for number in some:
        check(found, expected, QUERIES[number], LIMITS[number % 3])
    assert len([count for count in tasks if count]) == by_waves
    assert max(tasks) > 1


def _counted(tasks: Iterator[QueryTask], counts: list[int]) -> Iterator[QueryTask]:
    listed = list(tasks)
    counts.append(len(listed))
    return iter(listed)


def test_rows_that_join_with_very_many(
    expected: KnowledgeBase, make_engine: Callable[[Options], SparkEngine]
) -> None:
    """Where more rows match than the driver takes, fewer bindings are followed, or a plan is made."""
    options = Options(gather_rows=0, driver_rows=100)
    found = fill(KnowledgeBase(make_engine(options), Settings()))
    queries = (
        "?- link(X, 0), link(Y, 0), X < Y .",
        "?- link(X, Y), link(Z, U) .",
        "?- rdf:type(X, C), rdf:type(Y, C), X > Y .",
        "?- link(1, 8), not link(_, _) .",
        "?- Z = 0, not link(_, Z) .",
    )
    for query in queries:
        for limit in (3, 100):
            check(found, expected, query, limit)


def test_what_is_dropped_while_rows_are_followed_is_counted_once(
    make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed, "_MOST_FOLLOWED", 1)
    monkeypatch.setattr(limited, "_LEAST_ROWS", 1)
    counts = []
    for engine in (make_engine(Options(gather_rows=1000)), ReferenceEngine()):
        kb = KnowledgeBase(engine, Settings())
        with kb.change() as c:
            c.add_facts(pa.table({"a": np.arange(3000), "b": np.arange(3000) % 10}), "reading")
        answers = kb.query("?- reading(X, Y), Z = 10 / Y, Z > 100 .", limit=5)
        assert len(answers) == 0
        assert answers.dropped is not None
        counts.append(answers.dropped.count)
    assert counts == [300, 300]


def test_bodies_of_random_rules(make_engine: Callable[[Options], SparkEngine]) -> None:
    """All facts of a random program are given, and the body of each rule is a query."""
    engine = make_engine(Options(gather_rows=0))
    asked = 0
    for seed in range(400, 400 + examples(25)):
        program = random_program(Seeded(seed))
        facts = sorted(evaluate_program(program).result.visible(), key=str)
        found, expected = (KnowledgeBase(each, Settings()) for each in (engine, ReferenceEngine()))
        for kb in (found, expected):
            kb.apply(Change(add_facts=tuple(facts)))
            kb.apply(Change(remove_facts=tuple(facts[::5])))
        for rule in program.rules:
            if rule.aggregate is None and rule.body:
                columns = tuple(v for v in dict.fromkeys(variables(rule.head)))
                query = format_query(Query(columns, rule.body))
                for limit in (1, 4, 1000):
                    check(found, expected, query, limit)
                asked += 1
    assert asked > 50


LARGE = 1_000_000
# Joins, with a negation and a comparison; a product; a constant; a class. And how many of ten rows there are.
OF_LARGE = {
    "?- near(X, Y), far(Y, Z) .": 10,
    "?- near(X, Y), far(Y, Z), near(Z, U), not Odd(U) .": 10,
    "?- near(X, Y), far(Y, Z), X < Z .": 10,
    "?- near(X, Y), far(Z, U) .": 10,
    "?- far(77, X), near(X, Y) .": 1,
    "?- Odd(X), near(X, Y) .": 10,
}


@pytest.fixture(scope="module")
def large(make_engine: Callable[[Options], SparkEngine]) -> KnowledgeBase:
    kb = KnowledgeBase(make_engine(Options(gather_rows=0)), Settings())
    numbers = np.random.default_rng(3).permutation(LARGE)
    with kb.change() as c:
        c.add_facts(pa.table({"a": numbers, "b": (numbers * 7 + 1) % LARGE}), "near")
        c.add_facts(pa.table({"a": numbers, "b": (numbers * 11 + 5) % LARGE}), "far")
        c.add_facts(pa.table({"a": numbers[numbers % 2 == 1]}), "Odd")
    return kb


@pytest.mark.parametrize("query", OF_LARGE)
def test_a_limit_reads_little_and_starts_no_job(query: str, large: KnowledgeBase) -> None:
    jobs = jobs_of(large)
    with rows_read() as read:
        assert len(large.query(query, limit=10)) == OF_LARGE[query]
    assert jobs_of(large) == jobs
    assert read.rows < LARGE / 2


def test_rare_answers_are_found_in_the_first_files_that_have_them(
    make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are read in waves: what is in the first is found without reading the last."""
    monkeypatch.setattr(followed, "_MOST_FOLLOWED", 0)
    monkeypatch.setattr(limited, "_LEAST_ROWS", 1)
    kb = KnowledgeBase(make_engine(Options(gather_rows=1000)), Settings())
    for first in range(0, 25_000, 5000):
        numbers = np.arange(first, first + 5000)
        with kb.change() as c:
            c.add_facts(pa.table({"a": numbers, "b": numbers % 1000}), "reading")
    read = []
    for limit, rows in ((3, 3), (1000, 90)):
        with rows_read() as tally:
            assert len(kb.query("?- reading(X, Y), Y > 990, X < 10000 .", limit=limit)) == rows
        read.append(tally.rows)
    # Two of five files, one for each core.
    assert 2.2 * read[0] < read[1]
