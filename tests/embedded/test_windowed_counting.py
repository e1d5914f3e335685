"""Rules that read windows are maintained by counting, and give what an evaluation from nothing gives."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from strategies import Seeded
from strategies.lockstep import play
from strategies.scale import examples, first_seed
from zodiacedge.engine.embedded.maintain import propagate
from zodiacedge.engine.embedded.maintain.shapes import windowed
from zodiacedge.kb.change import Change
from zodiacedge.language.ast import Fact
from zodiacedge.language.parser import ground, parse_fact, parse_program
from zodiacedge.terms import Literal, date_time, double, integer, iri

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.maintain.shapes.windowed import WindowedShape
    from zodiacedge.engine.embedded.maintain.windowed_rows import WindowedRows
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.versions.draft import Draft

_START = datetime(2026, 1, 1, tzinfo=UTC)
_DECLARED = "@time r 3 . @time d 3 ."
_RULES = """
med(S, M) :- AGGREGATE(r(S, V, T) within {0} min) ON S WITH MED(V) AS M .
two(S, K, M, N) :- AGGREGATE(r(S, V, T) within {0} min, kind(S, K))
    ON S, K WITH MED(V) AS M, COUNT(V) AS N .
all(M, L) :- AGGREGATE(r(S, V, T) within {0} min) WITH MIN(V) AS M, MAX(V) AS L .
last(S, L, F) :- AGGREGATE(r(S, V, T) within {0} min) ON S WITH ARGMAX(V, T) AS L, MAX(T) AS F .
rate(S, D) :- D := L - F, AGGREGATE(r(S, V, T) within {0} min, not kind(S, q))
    ON S WITH ARGMAX(V, T) AS L, ARGMIN(V, T) AS F .
first(S, M) :- AGGREGATE(r(S, V, T), T > now - {0} min, T <= now - 1 min, V > 1) ON S
    WITH MIN(T) AS M .
sum(S, N) :- AGGREGATE(r(S, V, T) within {0} min) ON S WITH SUM(V) AS N .
mean(S, M, N) :- AGGREGATE(r(S, V, T) within {0} min) ON S WITH AVG(V) AS M, COUNT(DISTINCT V) AS N .
once(S, N, M) :- AGGREGATE(r(S, V, T) within {0} min, kind(S, _))
    ON S WITH SUM(DISTINCT V) AS N, MED(DISTINCT V) AS M .
kinds(N, M) :- AGGREGATE(r(S, V, T) within {0} min) WITH COUNT(DISTINCT S) AS N, SUM(V) AS M .
many(S, N) :- AGGREGATE(d(S, V, T) within {0} min) ON S WITH COUNT(V) AS N .
least(S, N) :- AGGREGATE(r(S, V, T) within {0} min, r(S, W, U) within 2 min) ON S WITH MIN(W) AS N .
silent(S) :- kind(S, _), not r(S, _, _) within {0} min .
still(S, K) :- kind(S, K), not d(S, V, _) within {0} min, K != V .
hot(S) :- r(S, V, _) within {0} min, V > 2 .
hot(S, V, T) :- r(S, V, T) within {0} min .
seen(a, S) :- r(S, _, T) within {0} min, d(S, _, T) .
pair(S, U) :- r(S, V, _) within {0} min, r(U, V, _) within 3 min .
twice(S) :- r(S, V, T) within {0} min, kind(S, K), d(U, _, T), not hot(U) .
d(S, V, T) :- r(S, V, T), kind(S, p) .
d(U, V, T) :- r(S, V, T), pair(S, U), V > 2 .
"""
_KINDS = _RULES.split(" .\n")[:-1]


def _values(dice: Seeded) -> list[Literal]:
    # Of one kind in most sessions, so that they have an order; of several in others.
    whole, real = [integer(n) for n in range(-2, 5)], [double(n / 2) for n in range(-4, 9)]
    large = [integer(n * 2**61 + n) for n in range(-2, 4)]
    uneven = [double(value) for value in (0.1, -0.1, 1e-9, 3.3e15, 7e22, -7e22, 1 / 3)]
    extreme = [double(value) for value in (1.5e308, -1.5e308, 5e-324, 1e-200, 1e100, 1.0)]
    kinds = (whole, real, real, large, uneven, extreme, [*whole, *real], [*real, Literal("none")])
    return dice.pick(kinds)


def _session(dice: Seeded, most_changes: int) -> list[Change]:
    values = _values(dice)
    now = _START
    sensors = [iri(name) for name in "abcd"]

    def fact() -> Fact:
        if dice.chance(15):
            return Fact("kind", (dice.pick(sensors), iri(dice.pick("pq"))))
        moment = now + timedelta(seconds=30 * dice.number(-6, 3))
        name = "d" if dice.chance(15) else "r"
        return Fact(name, (dice.pick(sensors), dice.pick(values), date_time(moment)))

    def rule() -> str:
        return f"{dice.pick(_KINDS)} .".format(dice.number(1, 4))

    declared = parse_program(f"{_DECLARED} @keep r 3 min ." if dice.chance(50) else _DECLARED).facts
    rules = [parse_program(rule()).rules[0] for _ in range(dice.number(2, 6))]
    there = [fact() for _ in range(dice.number(4, 20))]
    facts = (*map(ground, declared), *there)
    changes = [Change(tuple(rules), add_facts=facts, tick=now if dice.chance(70) else None)]
    for _ in range(dice.number(3, most_changes)):
        ticks = dice.chance(75)
        now += timedelta(seconds=30 * dice.number(0, 5)) if ticks else timedelta()
        added = tuple(fact() for _ in range(dice.number(0, 8)))
        removed = tuple(dice.pick(there) for _ in range(dice.number(0, 4)))
        new = (parse_program(rule()).rules[0],) if dice.chance(20) else ()
        gone = (dice.pick(rules),) if dice.chance(12) else ()
        changes.append(Change(new, gone, added, removed, tick=now if ticks else None))
        there += added
        rules += new
    return changes


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Let the smallest change be counted; return whether each node that was, was to the end."""
    counted: list[bool] = []
    original = windowed.maintain_windowed

    def noted(
        draft: Draft, node_rules: NodeRules, own: Segment, shape: WindowedShape, rows: WindowedRows
    ) -> int | None:
        grown = original(draft, node_rules, own, shape, rows)
        counted.append(grown is not None)
        return grown

    monkeypatch.setattr(windowed, "_MANY", 1)
    monkeypatch.setattr(propagate, "maintain_windowed", noted)
    return counted


@pytest.mark.parametrize("strategy", ["choose", "maintain"])
def test_counting_gives_what_the_definition_gives(strategy: str, counted: list[bool]) -> None:
    for seed in range(60):
        play(_session(Seeded(seed), 8), seed, strategy)
    assert counted.count(True) > 300
    assert counted.count(False) > 5


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["choose", "maintain", "give up"])
def test_very_many_counted_changes(strategy: str, counted: list[bool]) -> None:
    seeds = itertools.count(first_seed(5_000_000))
    left = examples(20_000) // 3
    while left > 0:
        left -= play(_session(Seeded(next(seeds)), 14), 0, strategy).steps
    assert strategy == "give up" or any(counted)


def test_an_aborted_change_leaves_the_counts_as_they_were(counted: list[bool]) -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules(
            "@time r 3 . med: med(S, M) :- AGGREGATE(r(S, V, T) within 10 min) ON S WITH MED(V) AS M ."
        )
        c.tick(_START)
        c.add_facts([("r", iri("a"), n, _START - timedelta(seconds=n)) for n in range(5)])
    kb.tick(_START + timedelta(seconds=1))
    with kb.change() as c:
        c.add_facts([("r", iri("a"), 9, _START)])
    assert list(kb.query("med(S, M)")) == [(iri("a"), 2.5)]
    tried = kb.dry_run(Change(add_facts=(parse_fact('r(a, 8, "2026-01-01T00:00:00Z"^^xsd:dateTime)'),)))
    assert len(tried.inserted) == 2
    with kb.change() as c:
        c.add_facts([("r", iri("a"), 10, _START)])
    assert list(kb.query("med(S, M)")) == [(iri("a"), 3)]
    assert any(counted)


def test_numbers_that_become_of_several_kinds_are_folded_by_the_definition(counted: list[bool]) -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules(
            "@time r 3 . med: med(S, M) :- AGGREGATE(r(S, V, T) within 10 min) ON S WITH MED(V) AS M ."
        )
        c.tick(_START)
        c.add_facts([("r", iri("a"), n, _START) for n in (1, 2, 3)])
    for value in (4, 5, 2.5):
        with kb.change() as c:
            c.add_facts([("r", iri("a"), value, _START)])
    assert list(kb.query("med(S, M)")) == [(iri("a"), 2.75)]
    assert kb.verify().ok
    assert not counted[-1]


def test_a_readings_term_may_be_freed_and_taken_again(counted: list[bool]) -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules(
            "@time r 3 . @keep r 10 s ."
            " last: last(S, L) :- AGGREGATE(r(S, V, T) within 5 s) ON S WITH ARGMAX(V, T) AS L ."
            " seen: seen(S) :- r(S, _, _) within 5 s ."
        )
        c.tick(_START)
    for n in range(400):
        now = _START + timedelta(seconds=n)
        with kb.change() as c:
            c.tick(now)
            c.add_facts([("r", iri(f"s{k % 7}"), n * 10 + k, now) for k in range(20)])
    assert kb.verify(against="reference").ok
    assert {row[1] for row in kb.query("last(S, L)")} <= set(range(3900, 4010))
    assert counted.count(True) > 500


def test_a_computed_moment_enters_a_window_at_a_later_tick(counted: list[bool]) -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules(
            "later(X, U) :- start(X, T), U := T + 1 min ."
            " due(X) :- later(X, U), U > now - 2 min, U <= now ."
            " many(N) :- AGGREGATE(later(X, U), U > now - 2 min, U <= now) WITH COUNT(X) AS N ."
        )
        c.tick(_START)
    for wave, seconds in enumerate((-100, -100, -30)):
        with kb.change() as c:
            moment = _START + timedelta(seconds=seconds)
            c.add_facts([("start", iri(f"w{wave}n{n}"), moment) for n in range(20)])
    assert list(kb.query("many(N)")) == [(40,)]
    kb.tick(_START + timedelta(seconds=60))
    assert list(kb.query("many(N)")) == [(60,)]
    assert kb.verify(against="reference").ok
    assert any(counted)
