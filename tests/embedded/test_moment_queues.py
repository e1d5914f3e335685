"""What `@keep` forgets is looked up in the order of moments, and is what a scan of the table finds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

import zodiacedge as ze
from strategies import Seeded
from strategies.lockstep import play
from zodiacedge.engine.embedded import moment_queues
from zodiacedge.errors import ZodiacError
from zodiacedge.kb.change import Change
from zodiacedge.language.ast import Fact
from zodiacedge.language.parser import ground, parse_program
from zodiacedge.terms import Literal, date_time, integer

_START = datetime(2026, 1, 1, tzinfo=UTC)
_PROGRAM = """
@time r 2 . @time d 2 . @keep r 3 min . @keep d 5 min .
d(X, T) :- r(X, T), X > 3 .
"""
_WINDOW = "recent(X) :- r(X, T) within 2 min ."


@pytest.fixture(autouse=True)
def _always_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moment_queues, "_FEW", 1)


def _session(dice: Seeded) -> list[Change]:
    program, window = parse_program(_PROGRAM), parse_program(_WINDOW).rules
    now, there = _START, list[Fact]()

    def fact() -> Fact:
        moment = now + timedelta(seconds=30 * dice.number(-14, 4))
        time: Literal = date_time(moment) if dice.chance(90) else integer(5)
        return Fact(dice.pick(("r", "r", "d")), (integer(dice.number(0, 6)), time))

    rules = (*program.rules, *(window if dice.chance(40) else ()))
    changes = [Change(rules, add_facts=tuple(map(ground, program.facts)), tick=now)]
    for _ in range(14):
        now += timedelta(seconds=30 * dice.number(0, 3))
        added = tuple(fact() for _ in range(dice.number(0, 5)))
        removed = tuple(dice.pick(there) for _ in range(dice.number(0, 1) if there else 0))
        new, gone = (window, ()) if dice.chance(8) else ((), window if dice.chance(8) else ())
        changes.append(Change(new, gone, added, removed, tick=now if dice.chance(80) else None))
        there += added
    return changes


def test_engines_forget_alike() -> None:
    for seed in range(60):
        play(_session(Seeded(seed)), seed, "choose")


def test_a_refused_tick_and_a_rollback_forget_nothing_for_good() -> None:
    draw, kb = Random(3), ze.open()
    with kb.change() as c:
        c.add_rules("@time r 2 . @keep r 10 s . bad: p(X, Y) :- r(X, _), bound(Y) .")
        c.tick(_START)
        c.add_facts([("r", n, _START + timedelta(seconds=n / 10)) for n in range(100)])
    kb.tick(_START + timedelta(seconds=12))
    assert len(kb.query("r(X, T)")) == 80
    for second in range(13, 20):
        now = _START + timedelta(seconds=second)
        refused = parse_program("q(X) :- r(X, _), not q(X) .").rules
        with pytest.raises(ZodiacError):
            kb.apply(Change(refused, tick=now))
        kb.tick(now)
        with kb.change() as c:
            c.add_facts([("r", 1000 + second, now - timedelta(seconds=draw.random() * 9))])
        assert kb.verify(against="reference").ok
        bound = now - timedelta(seconds=10)
        late = f'"{bound:%Y-%m-%dT%H:%M:%S}Z"^^xsd:dateTime'
        assert not kb.query(f"r(X, T), T < {late}")
        assert len(kb.query("r(X, T), X < 1000")) == 100 - 10 * (second - 10)
