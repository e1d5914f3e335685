"""One store, two engines: each opens, changes and flushes what the other wrote, with the same answers."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

import zodiacedge as ze
from maintenance.test_random_sessions import changes_of
from spark.conftest import jobs_so_far
from spark.driver_cap import MOST_ROWS, cap
from store.conftest import PROGRAM, abandon, code
from strategies import Seeded
from strategies.changes import random_session
from zodiacedge.cli.app import zodiac
from zodiacedge.cli.output import export
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.maintain.strategy import Policy
from zodiacedge.engine.spark.cluster.jobs import Jobs
from zodiacedge.engine.spark.persistence.adapter import SparkPersistence
from zodiacedge.engine.spark.state import SparkState
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.errors import Diagnostic, StoreProblem, UsageProblem, ZodiacError
from zodiacedge.io import external_sort
from zodiacedge.store.knowledge_base import StoredKnowledgeBase
from zodiacedge.store.location.base import location_of
from zodiacedge.store.store import DurableStore
from zodiacedge.store.versions import replay
from zodiacedge.terms import string

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from zodiacedge.engine.spark.engine import SparkEngine
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.transaction import Transaction
    from zodiacedge.language.ast import Fact

    Step = Callable[[Transaction], None]

STEPS: Sequence[tuple[str, Step]] = (
    ("all there is", lambda c: c.add_rules(PROGRAM)),
    ("one more", lambda c: c.add_facts("edge(c, d) . kind(c, turbine) . kind(d, 7) .")),
    ("a rule less", lambda c: c.remove_rules("r4")),
    ("something goes", lambda c: c.remove_facts('edge(a, b) . kind(b, "odd") . up() .')),
    ("a rule more", lambda c: c.add_rules("r6: far(X, N) :- reach(X, N), N > 1 . edge(d, e) .")),
    ("all goes", lambda c: c.remove_facts("edge(b, c) . edge(c, d) . edge(d, e) .")),
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a store may be made."""
    return tmp_path / "farm.zodiac"


def on(
    engine: SparkEngine, place: Path, *, writable: bool = True, at: int | None = None
) -> StoredKnowledgeBase:
    """Open a store on Spark, or make it."""
    store = DurableStore.open(
        location_of(place), create=True, writable=writable, persistence=SparkPersistence()
    )
    return StoredKnowledgeBase(engine, Settings(), store, at)


def segments(kb: KnowledgeBase) -> dict[frozenset[str], frozenset[Fact]]:
    """What every node derives."""
    return {frozenset(node.rules): kb.state.segment(frozenset(node.rules)) for node in kb.graph().order}


def agree(kb: KnowledgeBase, memory: KnowledgeBase) -> None:
    """Check that two knowledge bases are the same."""
    assert kb.facts() == memory.facts()
    assert kb.explicit == memory.explicit
    assert kb.rules == memory.rules
    assert segments(kb) == segments(memory)
    assert kb.derived() == memory.derived()
    assert kb.explicit_counts() == memory.explicit_counts()


def test_engines_take_turns_on_one_store(spark: SparkEngine, place: Path) -> None:
    memory = ze.open()
    versions = [memory.facts()]
    for number, (message, step) in enumerate(STEPS):
        with memory.change() as expected:
            step(expected)
        versions.append(memory.facts())
        kb = on(spark, place) if number % 2 else ze.open(place, create=True)
        with kb.change(message) as change:
            step(change)
        assert change.report.inserted == expected.report.inserted
        assert change.report.deleted == expected.report.deleted
        # Every third change stays in the log, and the other engine replays it.
        (abandon if number % 3 == 1 else StoredKnowledgeBase.close)(kb)
        for reader in (on(spark, place, writable=False), ze.open(place, read_only=True)):
            agree(reader, memory)
            assert reader.verify("embedded").ok
    for reader in (on(spark, place), ze.open(place, read_only=True)):
        assert [entry.message for entry in reader.log()] == [message for message, _ in STEPS]
        for version, facts in enumerate(versions):
            assert reader.at(version).facts() == facts
        found = reader.diff(1, 4)
        assert (found.inserted, found.deleted) == (versions[4] - versions[1], versions[1] - versions[4])
        reader.close()


def test_rolling_back_undoes_what_the_other_engine_did(spark: SparkEngine, place: Path) -> None:
    kept = []
    for number, (message, step) in enumerate(STEPS):
        with on(spark, place) if number % 2 == 0 else ze.open(place) as kb:
            with kb.change(message) as change:
                step(change)
            kept.append((kb.facts(), set(kb.rules)))
    with on(spark, place) as kb:
        kb.rollback(2)
        assert (kb.facts(), set(kb.rules)) == kept[1]
    with ze.open(place) as kb:
        assert (kb.facts(), set(kb.rules)) == kept[1]
        kb.rollback(1)
    with on(spark, place) as kb:
        assert (kb.facts(), set(kb.rules)) == kept[0]
        assert kb.verify("reference").ok


@pytest.mark.parametrize("seed", range(4))
def test_a_random_session_goes_from_engine_to_engine(seed: int, spark: SparkEngine, place: Path) -> None:
    chance = Seeded(seed)
    memory = ze.open()
    for number, change in enumerate(changes_of(random_session(Seeded(seed)))):
        kb = on(spark, place) if (number + seed) % 2 else ze.open(place, create=True)
        try:
            expected = memory.apply(change)
        except ZodiacError as problem:
            with pytest.raises(type(problem)):
                kb.apply(change)
        else:
            report = kb.apply(change)
            assert (report.inserted, report.deleted) == (expected.inserted, expected.deleted)
        (StoredKnowledgeBase.close if chance.number(0, 1) else abandon)(kb)
        with on(spark, place, writable=False) as reader:
            assert reader.facts() == memory.facts()
            assert segments(reader) == segments(memory)
    with ze.open(place, read_only=True) as kb:
        agree(kb, memory)
        assert kb.verify().ok


def test_what_spark_wrote_is_read_without_our_code(spark: SparkEngine, place: Path) -> None:
    with on(spark, place) as kb:
        with kb.change() as change:
            change.add_rules(PROGRAM)
        counts: dict[tuple[str, int], int] = {}
        for fact in kb.facts():
            counts[fact.predicate] = counts.get(fact.predicate, 0) + 1
    frame = pl.read_delta(str(place)).filter(pl.col("kind") != "aggregate")
    arguments = [name for name in frame.columns if name.startswith("a") and name != "arity"]
    seen = frame.unique(["predicate", "arity", *arguments]).group_by("predicate", "arity").len()
    assert {(name, arity): count for name, arity, count in seen.rows()} == counts
    values = frame.filter(pl.col("predicate") == "value").select("a1", "a1_type").rows()
    assert {("fünf", "@de"), ("5", "integer"), ("-5e-8", "double"), ("x", "<http://e/t>")} <= set(values)
    with duckdb.connect() as connection:
        connection.register("facts", DeltaTable(str(place)).to_pyarrow_table())
        found = connection.sql(
            "select x.a0, y.a1 from facts x join facts y on x.a1 = y.a0 "
            "where x.predicate = 'edge' and y.predicate = 'edge' order by all"
        ).fetchall()
    assert found == [("a", "c")]


@pytest.fixture
def tiny(make_engine: Callable[[Options], SparkEngine]) -> SparkEngine:
    """An engine whose tasks hold two hundred rows, and whose driver holds twenty."""
    return make_engine(Options(gather_rows=200, driver_rows=20))


LARGE = """
    r1: near(X, Y) :- edge(X, Y) .
    r2: degree(X, N) :- AGGREGATE(edge(X, Y)) ON X WITH COUNT(Y) AS N .
    r3: rdf:type(X, C) :- kind(X, C) .
"""


def large(count: int, first: int = 0) -> list[tuple[object, ...]]:
    """Return facts of many kinds."""
    facts: list[tuple[object, ...]] = []
    for n in range(first, first + count):
        facts += [("edge", ze.iri(f"http://e/{n}"), ze.iri(f"http://e/{n % 7}")), ("value", n, n / 4)]
        facts += [("kind", ze.iri(f"http://e/{n}"), ze.iri(f"C{n % 3}")), ("kind", n, "odd" if n % 2 else 5)]
        facts.append(("label", n, string(f"Nummer {n}", "de")))
    return facts


@pytest.mark.soak
def test_what_no_task_holds_is_written_by_plans_and_logged_in_files(tiny: SparkEngine, place: Path) -> None:
    memory = ze.open()
    kb = on(tiny, place)
    for one in (memory, kb):
        with one.change() as change:
            change.add_rules(LARGE)
            change.add_facts(large(300))
    beside = list((place / "_wal").glob("*.parquet"))
    assert beside
    abandon(kb)
    # The log alone has it: the other engine replays it from the files beside it.
    with ze.open(place, read_only=True) as reader:
        agree(reader, memory)
    kb = on(tiny, place)
    agree(kb, memory)
    kb.close()
    assert len([path for path in DeltaTable(str(place)).file_uris() if "edge" in path]) >= 2
    with ze.open(place) as kb:
        agree(kb, memory)
        assert kb.verify().ok
    for one in (memory, on(tiny, place)):
        with one.change() as change:
            change.remove_facts(large(40, 10))
            change.add_facts(large(40, 1000))
        if one is not memory:
            agree(one, memory)
            one.close()
    with ze.open(place, read_only=True) as kb:
        agree(kb, memory)


def log_large_changes(engine: SparkEngine, place: Path) -> KnowledgeBase:
    """Log two large changes, with facts that come and go, and flush neither; return what they come to."""
    memory = ze.open()
    kb = on(engine, place)
    for one in (memory, kb):
        with one.change() as change:
            change.add_rules(LARGE)
            change.add_facts([*large(300), ("turbine", ze.iri("wt1")), ("up",)])
        with one.change() as change:
            change.remove_facts([*large(150, 20), ("turbine", ze.iri("wt1")), ("up",)])
            change.add_facts(large(100, 1000))
    abandon(kb)
    return memory


def test_tasks_alone_read_large_changes_of_the_log(
    tiny: SparkEngine, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = log_large_changes(tiny, place)

    def refuse(*_: object) -> None:
        raise UsageProblem(Diagnostic("U014", "there is no Java"))

    # What keeps tasks from reading them is no damage of the store.
    with monkeypatch.context() as patch:
        patch.setattr(Jobs, "each", refuse)
        with pytest.raises(UsageProblem, match="U014"):
            on(tiny, place, writable=False)
    cap(monkeypatch)
    kb = on(tiny, place)
    assert kb.version == 2
    assert kb.derived() == memory.derived()
    assert kb.explicit_counts() == memory.explicit_counts()
    assert kb.explicit_counts()["edge"] == 250 > MOST_ROWS
    monkeypatch.undo()
    agree(kb, memory)
    before = kb.at(1).facts()
    # So it is when one of them is undone.
    cap(monkeypatch)
    kb.rollback(1)
    monkeypatch.undo()
    assert kb.facts() == before


def test_large_changes_of_the_log_are_read_by_columns(
    tiny: SparkEngine, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = log_large_changes(tiny, place)

    def listed(*_: object) -> None:
        raise AssertionError("facts of large changes are not listed")

    monkeypatch.setattr(replay, "facts_in", listed)
    with ze.open(place, read_only=True) as kb:
        agree(kb, memory)
        assert kb.verify().ok
        earlier = kb.at(1)
    assert earlier.explicit_counts()["edge"] == 300


def test_parts_with_the_same_rows_share_a_file_beside_the_log(tiny: SparkEngine, place: Path) -> None:
    kb = on(tiny, place)
    rows = [(n, n + 1) for n in range(30)]
    with kb.change() as change:
        change.add_facts(rows, "first")
        change.add_facts(rows, "second")
    abandon(kb)
    assert len(list((place / "_wal").glob("*.parquet"))) == 1
    for reader in (on(tiny, place, writable=False), ze.open(place, read_only=True)):
        assert reader.explicit_counts() == {"first": 30, "second": 30}


@pytest.mark.soak
def test_versions_are_compared_by_tasks_and_exported_some_facts_at_a_time(
    tiny: SparkEngine, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = log_large_changes(tiny, place)
    kb = on(tiny, place)
    for one in (memory, kb):
        with one.change() as change:
            change.add_rules("r4: far(X, Y) :- edge(X, Y), not near(Y, X) .")
            change.add_facts('edge(<http://e/5>, new) . kind(new, "odd") . value(1, "new") .')
            change.remove_facts([*large(2, 250), ("edge", ze.iri("http://e/5"), ze.iri("http://e/5"))])
    before, after = kb.at(2), kb.at(3)
    expected = after.facts() - before.facts(), before.facts() - after.facts()
    came = frozenset(one for one in expected[0] if one.relation != "far")

    def listed(*_: object) -> None:
        raise AssertionError("all facts at once")

    for name in ("visible", "derived", "explicit"):
        monkeypatch.setattr(SparkState, name, listed)
    monkeypatch.setattr(external_sort, "_MAX_ROWS", 100)
    for one, name in ((memory, "embedded"), (kb, "spark")):
        export(one, str(tmp_path / name), "jsonl", everything=False)
    for path in (tmp_path / "embedded").iterdir():
        assert path.read_bytes() == (tmp_path / "spark" / path.name).read_bytes()
    assert after.state.diff(before.state) == expected
    assert len(expected[0]) > MOST_ROWS > len(came)
    # What little tells them apart is all that reaches the driver.
    with kb.change() as change:
        change.remove_rules("r4")
    third = kb.at(4)
    cap(monkeypatch)
    assert third.state.diff(before.state) == (came, expected[1])


def test_a_flipped_bit_in_a_file_beside_the_log_is_found(tiny: SparkEngine, place: Path) -> None:
    kb = on(tiny, place)
    with kb.change() as change:
        change.add_facts(large(30))
    abandon(kb)
    (path, *_) = (place / "_wal").glob("*.parquet")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    openers: tuple[Callable[[], KnowledgeBase], ...] = (lambda: ze.open(place), lambda: on(tiny, place))
    for reopen in openers:
        with pytest.raises(StoreProblem) as found:
            reopen()
        assert code(found.value) == "D004"
        assert path.name in str(found.value)


def test_vacuum_removes_files_beside_the_log_that_no_version_needs(tiny: SparkEngine, place: Path) -> None:
    def beside() -> set[str]:
        return {path.name for path in (place / "_wal").glob("*.parquet")}

    with on(tiny, place) as kb:
        with kb.change() as change:
            change.add_facts(large(30))
        kb.flush()
        first = beside()
        with kb.change() as change:
            change.add_facts(large(30, 100))
    second = beside() - first
    assert first
    assert second
    with ze.open(place) as kb:
        facts = kb.facts()
        kb.vacuum(timedelta(0))
    # The last version has its record still: whoever rolls it back needs it.
    assert beside() == second
    with on(tiny, place) as kb:
        assert kb.facts() == facts


def test_a_large_part_that_only_grows_gets_files_beside_those_it_has(spark: SparkEngine, place: Path) -> None:
    def files() -> set[str]:
        return {path for path in DeltaTable(str(place)).file_uris() if "relation=value" in path}

    with on(spark, place) as kb, kb.change() as change:
        change.add_facts([(n, n + 1) for n in range(60_000)], "value")
    first = files()
    with on(spark, place) as kb, kb.change() as change:
        change.add_facts("value(-1, 0) .")
    assert first < files()
    with ze.open(place) as kb:
        assert kb.explicit_counts() == {"value": 60_001}
        with kb.change() as change:
            change.remove_facts("value(-1, 0) .")
    assert len(files()) == 1
    with on(spark, place, writable=False) as kb:
        assert kb.explicit_counts() == {"value": 60_000}


def test_damage_is_told_as_by_the_other_engine(spark: SparkEngine, place: Path) -> None:
    with ze.open(place, create=True) as kb, kb.change() as change:
        change.add_rules(PROGRAM)
    path = next(place.glob("relation=edge*/*/*.parquet"))
    data = bytearray(path.read_bytes())
    data[20] ^= 4
    path.write_bytes(data)
    with pytest.raises(StoreProblem) as found:
        on(spark, place)
    assert code(found.value) == "D005"


def test_opening_with_the_name_of_the_engine(spark: SparkEngine, place: Path) -> None:
    assert spark.jobs.cores == 2
    with ze.open(place, create=True, engine="spark") as kb, kb.change("made") as change:
        change.add_rules(PROGRAM)
    assert isinstance(kb.state, SparkState)
    with ze.open(place, engine="spark", at=0) as kb:
        assert not kb.facts()
    with pytest.raises(StoreProblem) as found:
        ze.open(place, engine="reference")
    assert code(found.value) == "D011"


def test_the_command_line_opens_stores_on_spark(spark: SparkEngine, tmp_path: Path) -> None:
    assert spark.jobs.cores == 2
    store = str(tmp_path / "farm")
    (tmp_path / "farm.rules").write_text("r1: hot(T) :- reading(T, N), N > 30 .\nreading(wt1, 35) .\n")
    (tmp_path / "reading.csv").write_text("<wt2>,40\n<wt3>,20\n")

    def run(*words: str) -> dict[str, object]:
        done = CliRunner().invoke(zodiac, [*words, "--json"])
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert isinstance(found, dict)
        return found

    run("init", store, "--rules", str(tmp_path / "farm.rules"), "--engine", "spark")
    run("apply", store, "--add-facts", str(tmp_path / "reading.csv"), "--engine", "spark", "-m", "noon")
    for engine in ("embedded", "spark"):
        rows = run("query", store, "?- hot(T) .", "--engine", engine)["rows"]
        assert rows == [["<wt1>"], ["<wt2>"]]
        assert run("stats", store, "--engine", engine)["derived"] == {"hot": 2}
        assert run("diff", store, "1", "2", "--engine", engine)["inserted"] == {"hot": 1, "reading": 2}
        verified = run("verify", store, "--engine", engine)
        assert (verified["ok"], verified["engine"]) == (True, engine)
    run("rollback", store, "1", "--engine", "spark")
    assert run("query", store, "?- hot(T) .")["rows"] == [["<wt1>"]]
    run("vacuum", store, "--engine", "spark")


def test_the_first_change_of_rules_after_opening_takes_over_what_rules_had(
    make_engine: Callable[[Options], SparkEngine], place: Path
) -> None:
    chains = "\n".join(f"e(a{n}_{i}, a{n}_{i + 1}) ." for n in range(40) for i in range(8))
    rules = "b: p(X, Y) :- e(X, Y) . t: p(X, Y) :- p(X, Z), e(Z, Y) . q: q(X, Y) :- p(X, Y), m(X) . m(a1_1) ."
    more = "r: p(Y, X) :- q(X, Y) ."
    told = {}
    for name in ("in memory", "opened"):
        engine = make_engine(Options(policy=Policy(strategy="maintain")))
        kb = on(engine, place / name)
        with kb.change() as change:
            change.add_rules(rules)
            change.add_facts(chains)
        if name == "opened":
            kb.close()
            kb = on(engine, place / name)
        before = jobs_so_far(engine)
        with kb.change() as change:
            change.add_rules(more)
        strategy = {frozenset(node.rules): node.strategy.partition(":")[0] for node in change.report.nodes}
        told[name] = (strategy, jobs_so_far(engine) - before, kb.facts())
        kb.close()
    # Two nodes become one, which starts from what they had: the same jobs, whether they were opened or not.
    assert told["in memory"] == told["opened"]
    assert told["opened"][0] == {frozenset("tqr"): "maintained, in one task"}
    assert told["opened"][1] == 1
