"""Terms that nothing uses are freed and their ids used again, and nobody ever sees another term instead.

The sessions run with a cycle of reclamation after every change, or with cycles in parts so small that they go
on for many changes; facts that come and go beside the session take the ids that are free.
"""

from __future__ import annotations

import itertools
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from strategies import Seeded
from strategies.changes import random_session
from strategies.scale import examples, first_seed
from strategies.timed import random_timed_changes
from zodiacedge import open as open_kb
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.maintain.strategy import STRATEGIES
from zodiacedge.engine.embedded.state import EmbeddedState
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import ZodiacError
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import IRI, RDF_TYPE, double, iri, string

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.kb.report import ChangeReport

WHOLE = 1 << 62
PARTS = (WHOLE, 40, 1)


def database(kb: KnowledgeBase) -> Database:
    state = kb.state
    assert isinstance(state, EmbeddedState)
    return state.store


def insist(kb: KnowledgeBase, part: int = 1 << 62) -> None:
    """Let cycles run all the time, with so much work in each step; by default a whole one."""
    reclamation = database(kb).reclamation
    reclamation._least, reclamation._part = 0, part


def insisting(engine: EmbeddedEngine, part: int) -> KnowledgeBase:
    kb = KnowledgeBase(engine, Settings())
    insist(kb, part)
    return kb


def noise(step: int) -> tuple[Fact, ...]:
    """Return facts with terms that no other step has: texts of several lengths, numbers, IRIs."""
    return tuple(
        fact(
            "noise",
            iri(f"http://noise/{step}/{n}"),
            string("x" * (step % 30) + str(step)),
            double(step + n / 7.0),
        )
        for n in range(4)
    )


def follow(seed: int, strategy: str, part: int, most_changes: int = 6) -> int:
    """Play a session on both engines; return the number of terms freed."""
    engine = EmbeddedEngine(modules=bool(seed & 1), strategy=strategy, backward=bool(seed & 2), patience=3)
    expected, found = KnowledgeBase(ReferenceEngine(), Settings()), insisting(engine, part)
    session = random_session(Seeded(seed), most_changes=most_changes)
    program = session.program
    changes = [Change(add_rules=program.rules, add_facts=program.facts)]
    changes += [Change(c.add_rules, c.remove_rules, c.add_facts, c.remove_facts) for c in session.changes]
    kept: list[tuple[ChangeReport, ChangeReport]] = []
    for place, change in enumerate(changes):
        where = f"seed {seed}, change {place}, {strategy}, parts of {part}"
        for kb in (expected, found):
            kb.apply(Change(add_facts=noise(place), remove_facts=noise(place - 1) if place else ()))
        try:
            tried = expected.dry_run(change)
            kept.append((tried, found.dry_run(change)))
            told = expected.apply(change)
        except ZodiacError:
            with pytest.raises(ZodiacError):
                found.apply(change)
            continue
        kept.append((told, found.apply(change)))
        assert found.facts() == expected.facts(), where
        assert found.explicit == expected.explicit, where
        assert found.derived() == expected.derived(), where
        for node in expected.graph().order:
            rules = frozenset(node.rules)
            assert found.state.segment(rules) == expected.state.segment(rules), where
        assert found.state.predicates() == expected.state.predicates(), where
    # Net changes are read long after the facts are gone.
    for told, report in kept:
        assert (report.inserted, report.deleted) == (told.inserted, told.deleted), f"seed {seed}, {strategy}"
    return database(found).reclamation.freed


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sessions_with_ids_used_again_end_where_the_definition_does(strategy: str, part: int) -> None:
    assert sum(follow(seed, strategy, part) for seed in range(6)) > (6 if part > 1 else 0)


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_windows_come_and_go_where_ids_are_used_again(strategy: str, part: int) -> None:
    for seed in range(4):
        expected = KnowledgeBase(ReferenceEngine(), Settings())
        found = insisting(EmbeddedEngine(modules=bool(seed & 1), strategy=strategy), part)
        freed = 0
        for day in range(1, 4):
            changes = random_timed_changes(Seeded(10 * seed + day), start=datetime(2026, 1, day, tzinfo=UTC))
            for place, change in enumerate(changes):
                for kb in (expected, found):
                    kb.apply(Change(add_facts=noise(place), remove_facts=noise(place - 1) if place else ()))
                try:
                    expected.apply(change)
                except ZodiacError:
                    with pytest.raises(ZodiacError):
                        found.apply(change)
                    continue
                found.apply(change)
                where = f"seed {seed}, day {day}, change {place}, {strategy}, parts of {part}"
                assert found.facts() == expected.facts(), where
                assert found.derived() == expected.derived(), where
            # Windows do not keep terms.
            assert part == 1 or database(found).reclamation.freed > freed
            freed = database(found).reclamation.freed
            for kb in (expected, found):
                kb.apply(Change(remove_rules=tuple(kb.rules)))
            for place in range(3):
                for kb in (expected, found):
                    kb.apply(Change(add_facts=noise(100 + place), remove_facts=noise(99 + place)))
        assert database(found).reclamation.freed > freed or part == 1


def test_windows_and_the_dictionary_hold_no_more_after_many_readings_than_after_few() -> None:
    kb = insisting(EmbeddedEngine(), 40)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    with kb.change() as c:
        c.add_rules(
            "@time reading 3 ."
            "hot: hot(S) :- reading(S, V, _) within 1 min, V > 90 ."
            "silent: silent(S) :- sensor(S), not reading(S, _, _) within 1 min ."
            "middle: middle(S, M) :- AGGREGATE(reading(S, V, _) within 1 min) ON S WITH MED(V) AS M ."
        )
        c.add_facts([("sensor", iri(f"s{n}")) for n in range(5)])
    sizes: list[tuple[int, ...]] = []
    for step in range(600):
        now = start + timedelta(seconds=step)
        with kb.change() as c:
            c.tick(now)
            c.add_facts([("reading", iri(f"s{step % 4}"), 80.0 + step % 20, now)])
            if step >= 90:
                old = step - 90
                c.remove_facts(
                    [("reading", iri(f"s{old % 4}"), 80.0 + old % 20, start + timedelta(seconds=old))]
                )
        if step in {200, 599}:
            store = database(kb)
            (table,) = store.windows.every_table()
            sizes.append((len(table), store.dictionary.used, len(store.dictionary), len(store.terms.moments)))
            assert kb.verify("reference").ok
    few, many = sizes
    assert many[0] == few[0]
    assert all(after <= before + 60 for before, after in zip(few, many, strict=True))
    assert {str(row[0]) for row in kb.query("?- silent(S) .").rows} == {"s4"}


@pytest.mark.soak
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_very_many_sessions_with_ids_used_again(strategy: str, part: int) -> None:
    seeds = itertools.count(first_seed(3_000_000))
    for _ in range(examples(5000) // len(STRATEGIES) // len(PARTS) // 10):
        follow(next(seeds), strategy, part, most_changes=14)


def test_what_comes_and_goes_leaves_the_dictionary_as_it_was() -> None:
    kb = insisting(EmbeddedEngine(), WHOLE)
    with kb.change() as c:
        # The constant of the rule is a term of a fact, too: the rule is planned when noise comes.
        c.add_rules("long: seen(X, T) :- noise(X, T, V), V > 1 .  kept(a, b) .  kept(a, 1) .")
    dictionary = database(kb).dictionary
    used, size = dictionary.used, dictionary.nbytes
    for step in range(50):
        kb.apply(Change(add_facts=noise(step), remove_facts=noise(step - 1)))
    kb.apply(Change(remove_facts=noise(49)))
    kb.apply(Change(add_facts=(fact("kept", IRI("c"), IRI("d")),)))
    # A text that others shared bytes with is reclaimed one time later than they are.
    kb.apply(Change(add_facts=(fact("kept", IRI("d"), IRI("c")),)))
    assert dictionary.used == used + 2
    assert dictionary.nbytes <= size + 1000
    assert kb.verify("reference").ok


def test_terms_of_rules_that_are_gone_are_freed() -> None:
    kb = insisting(EmbeddedEngine(), WHOLE)
    with kb.change() as c:
        c.add_rules("base: p(X, Y) :- q(X, Y) .  q(a, b) .")
    before = database(kb).dictionary.used
    for number in range(20):
        with kb.change() as c:
            c.add_rules(f'r: Hit{number}(X) :- q(X, Y), Y != "text {number}", not q(X, "none {number}") .')
        assert kb.query(f"?- Hit{number}(X) .")[0] == (iri("a"),)
        with kb.change() as c:
            c.remove_rules("r")
    kb.apply(Change(add_facts=(fact("q", IRI("a"), IRI("a")),)))
    assert database(kb).dictionary.used <= before + 1
    assert len(database(kb)._owners) < 6
    assert kb.verify("reference").ok


@pytest.mark.parametrize("part", [1, 7, 40])
def test_a_result_computed_long_ago_is_a_term_as_long_as_it_is_in_use(part: int) -> None:
    kb = insisting(EmbeddedEngine(), part)
    texts = [string(f"text {n} {'x' * (n % 5)}") for n in range(12)]
    with kb.change() as c:
        c.add_rules('r: shown(X, Y) :- said(X), concat("says ", X) = Y .')
        c.add_facts([("text", text, text) for text in texts])
        # To mark these takes many changes.
        c.add_facts([("many", n, n) for n in range(2000)])
    dice = Seeded(part)
    for step in range(300):
        text = dice.pick(texts)
        facts = (Fact(RDF_TYPE, (text, IRI("said"))),)
        kb.apply(Change(remove_facts=facts) if step % 2 else Change(add_facts=facts))
        kb.apply(Change(add_facts=noise(step % 40), remove_facts=noise((step - 1) % 40)))
        shown = {(str(x), str(y)) for x, y in kb.query("?- shown(X, Y) .").rows}
        assert all(y == f'"says {x[1:]}' for x, y in shown), (step, shown)


def test_a_query_prepared_long_ago_still_means_its_constants() -> None:
    kb = insisting(EmbeddedEngine(), WHOLE)
    ask = kb.prepare('?- noise(X, "no such text", V), V > L .', "L")
    assert not ask(L=0.0)
    for step in range(20):
        kb.apply(Change(add_facts=noise(step), remove_facts=noise(step - 1)))
        assert not ask(L=0.0)
    kb.apply(Change(add_facts=(fact("noise", IRI("a"), string("no such text"), double(1.0)),)))
    assert len(ask(L=0.5)) == 1


def test_facts_loaded_for_a_change_keep_their_terms(tmp_path: Path) -> None:
    kb = insisting(EmbeddedEngine(), WHOLE)
    file = tmp_path / "some.nt"
    file.write_text("".join(f'<http://a/{n}> <http://p> "value {n}" .\n' for n in range(50)))
    transaction = kb.change()
    transaction.load(file)
    for step in range(20):
        kb.apply(Change(add_facts=noise(step), remove_facts=noise(step - 1)))
    kb.apply(transaction.collected())
    assert kb.query('?- <http://p>(X, "value 7") .')[0] == (iri("http://a/7"),)
    assert len(kb.query("?- <http://p>(X, Y) .")) == 50


def test_no_id_is_freed_while_a_file_is_read(tmp_path: Path) -> None:
    kb = insisting(EmbeddedEngine(), WHOLE)
    file = tmp_path / "some.nt"
    file.write_text("".join(f'<http://a/{n}> <http://p> "value {n % 97}" .\n' for n in range(40_000)))
    done = threading.Event()

    def churn() -> None:
        for step in itertools.count():
            if done.is_set():
                return
            kb.apply(Change(add_facts=noise(step), remove_facts=noise(step - 1)))

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(3):
            with kb.change() as c:
                c.load(file)
            assert len(kb.query("?- <http://p>(X, Y) .")) == 40_000
            assert len(kb.query('?- <http://p>(X, "value 96") .')) == 412
            with kb.change() as c:
                c.unload(file)
    finally:
        done.set()
        thread.join()
    assert kb.verify("reference").ok


def test_readers_in_threads_see_their_own_terms() -> None:
    kb = insisting(EmbeddedEngine(), 40)
    with kb.change() as c:
        c.add_rules('r: seen(X, Y) :- noise(X, T, V), concat("seen ", T) = Y .')
    done = threading.Event()
    wrong: list[object] = []
    reports: list[ChangeReport] = []

    def read() -> None:
        ask = kb.prepare("?- seen(X, Y), noise(X, T, V), V > L .", "L")
        while not done.is_set():
            for x, y, t, *_ in ask(L=-1.0).rows:
                step = str(x).rsplit("/", 2)[-2]
                if f"seen {'x' * (int(step) % 30)}{step}" not in str(y) or step not in str(t):
                    wrong.append((x, y, t))
            for report in reports[-5:]:
                wrong.extend(f for f in report.inserted if f.relation not in {"noise", "seen"})

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for step in range(150):
            # Readers look at the list meanwhile.
            reports += [kb.apply(Change(add_facts=noise(step), remove_facts=noise(step - 2)))]
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not wrong
    for step, report in enumerate(reports):
        assert {f for f in report.inserted if f.relation == "noise"} == set(noise(step))


def test_a_flush_writes_the_terms_that_it_has_captured(tmp_path: Path) -> None:
    with open_kb(tmp_path / "s", create=True) as kb:
        insist(kb)
        kb.store.flush_bytes = 2000
        for step in range(60):
            kb.apply(Change(add_facts=noise(step), remove_facts=noise(step - 1)))
            if step % 5 == 0:
                pending = kb._pending_flush()
                kb.apply(Change(add_facts=noise(1000 + step)))
                kb.apply(Change(remove_facts=noise(1000 + step)))
                if pending:
                    kb._flusher.wait()
                    kb.store.flush(pending)
        expected = kb.facts()
    with open_kb(tmp_path / "s", read_only=True) as kb:
        assert kb.facts() == expected == frozenset(noise(59))


def test_a_table_gives_its_memory_back_after_most_of_it_is_deleted() -> None:
    kb = KnowledgeBase(EmbeddedEngine(), Settings())
    with kb.change() as c:
        c.add_rules("r: big(X, Z) :- many(X, Y, Z), few(Y) .  few(1) .")
    rows = [
        fact("many", iri(f"http://a/{n}"), double(float(n % 3)), string(f"text {n}")) for n in range(50_000)
    ]
    kb.apply(Change(add_facts=tuple(rows)))
    store = database(kb)
    (table,) = [table for relation, table in store.explicit.tables.items() if relation.name == "many"]
    before, terms = sum(table.nbytes), store.dictionary.nbytes
    kb.apply(Change(remove_facts=tuple(rows[100:])))
    for step in range(300):
        kb.apply(Change(add_facts=noise(step), remove_facts=noise(step - 1)))
    assert sum(table.nbytes) < before / 20
    assert store.dictionary.nbytes < terms / 20
    assert kb.verify("reference").ok


@pytest.mark.parametrize("part", PARTS)
def test_moments_give_their_memory_back_after_most_are_freed(part: int) -> None:
    kb = insisting(EmbeddedEngine(), part)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    with kb.change() as c:
        c.add_rules("@time r 2 . @keep r 1 h . seen: seen(S) :- r(S, _) within 10 min .")
        c.tick(start)
        c.add_facts([("r", iri("a"), start - timedelta(seconds=n)) for n in range(500)])
    # Its report holds the terms of what came.
    del c
    moments = database(kb).terms.moments
    full = moments.nbytes
    assert (len(moments), moments.unused_bytes) == (500, 0)
    now = start + timedelta(hours=2)
    for n in range(600 if part == 1 else 40):
        kb.tick(now + timedelta(seconds=n))
        assert moments.unused_bytes <= moments.nbytes // 2
    assert len(moments) < 100
    assert moments.nbytes < full / 2
    assert kb.verify("reference").ok


def test_a_store_that_was_just_opened_uses_all_its_terms(tmp_path: Path) -> None:
    with open_kb(tmp_path / "s", create=True) as kb, kb.change() as c:
        c.add_facts([("reading", f"sensor {n}", n) for n in range(500)])
    with open_kb(tmp_path / "s") as kb:
        assert database(kb).reclamation.unused < 20
        with kb.change() as c:
            c.remove_facts([("reading", f"sensor {n}", n) for n in range(500)])
        assert database(kb).reclamation.unused > 400
