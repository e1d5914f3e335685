"""The workload of the soak: sensors whose readings never repeat, and rules that come and go.

Every reading has a new value and a new moment, a second after the one before, and some bring a new IRI or a
new text. The clock moves with every batch: old readings are forgotten because `@keep` says so, and what has
no time of its own is deleted by name. One rule at a time is exchanged for another, with a new constant and a
new predicate.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

from zodiacedge.kb.change import Change
from zodiacedge.language.ast import Fact, fact
from zodiacedge.language.parser import ground, parse_program
from zodiacedge.terms import RDF_TYPE, date_time, double, iri, literal

if TYPE_CHECKING:
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

PROGRAM = """
@time reading 3 .
hot:    hot(S, V, T) :- reading(S, V, T), limit(S, L), V > L .
alarm:  alarm(W) :- hot(S, _, _), part_of(S, W), not muted(W) .
near:   reached(W) :- alarm(W) .
spread: reached(W) :- reached(U), next(U, W), open(W) .
silent: silent(S) :- sensor(S), not reading(S, _, _) within 10 min .
middle: middle(W, M) :- AGGREGATE(reading(S, V, T) within 30 min, part_of(S, W)) ON W WITH MED(V) AS M .
level:  level(W, M, N) :- AGGREGATE(reading(S, V, T), part_of(S, W)) ON W WITH AVG(V) AS M, COUNT(V) AS N .
late:   note(S, X) :- said(S, X), hot(S, _, _) .
text:   shown(S, Y) :- said(S, X), concat("sensor says ", X) = Y .
known:  Observed(O) :- made_by(O, S), hot(S, _, _) .
"""
_START = datetime(2026, 1, 1, tzinfo=UTC)
_SENSORS_PER_TURBINE = 20
# One reading in so many brings an observation with an IRI, and a text.
_RARE = 5


class Readings:
    """A stream of changes of the workload."""

    def __init__(self, sensors: int = 1000, window: int = 10_000, batch: int = 50, seed: int = 0) -> None:
        """Draw the readings of so many sensors; each change has `batch` of them."""
        self.batch = batch
        self._random = Random(seed)
        self._window = window
        self._sensors = [iri(f"http://farm.example/sensor/{n}") for n in range(sensors)]
        self._turbines = [
            iri(f"http://farm.example/turbine/{n}") for n in range(max(sensors // _SENSORS_PER_TURBINE, 1))
        ]
        self._kept: deque[list[Fact]] = deque()
        self._rule: Rule | None = None
        self._exchanged = 0
        self.made = 0
        """The number of readings so far."""

    def first(self) -> Change:
        """Return the change with the rules and with the facts that stay."""
        turbines = self._turbines
        facts = [fact("limit", sensor, double(90.0)) for sensor in self._sensors]
        facts += [fact("part_of", s, turbines[n % len(turbines)]) for n, s in enumerate(self._sensors)]
        facts += [fact("next", one, other) for one, other in pairwise(turbines)]
        facts += [fact("open", turbine) for turbine in turbines[::3] + turbines[1::3]]
        facts += [fact("muted", turbine) for turbine in turbines[::7]]
        facts += [Fact(RDF_TYPE, (sensor, iri("sensor"))) for sensor in self._sensors]
        program = parse_program(f"{PROGRAM} @keep reading {self._window} s .")
        facts += map(ground, program.facts)
        return Change(add_rules=program.rules, add_facts=tuple(facts), tick=_START)

    def next_change(self) -> Change:
        """Return the next readings, a tick, and what has no time and leaves the window."""
        came = [one for _ in range(self.batch) for one in self._reading()]
        self._kept.append([one for one in came if one.relation != "reading"])
        old = self._kept.popleft() if len(self._kept) * self.batch > self._window else []
        tick = _START + timedelta(seconds=self.made)
        return Change(add_facts=tuple(came), remove_facts=tuple(old), tick=tick)

    def next_rule(self) -> Change:
        """Return the change that exchanges a rule for another one."""
        number = self._exchanged = self._exchanged + 1
        sensor = self._sensors[number % len(self._sensors)].value
        text = (
            f'watch{number}: watched{number}(T, "watch {number}") :- '
            f"reading(<{sensor}>, V, T), V > {50 + number / 1e6:.6f}, not hot(<{sensor}>, V, T) ."
        )
        (rule,) = parse_program(text).rules
        before, self._rule = self._rule, rule
        return Change(add_rules=(rule,), remove_rules=(before,) if before else ())

    def _reading(self) -> list[Fact]:
        number, draw = self.made, self._random
        self.made += 1
        sensor = draw.choice(self._sensors)
        moment: Term = date_time(_START + timedelta(seconds=number))
        reading = fact("reading", sensor, double(draw.gauss(70, 10)), moment)
        if number % _RARE:
            return [reading]
        text = literal(f"{number} since the start, {'x' * draw.randrange(40)}")
        return [
            reading,
            fact("made_by", iri(f"http://farm.example/observation/{number}"), sensor),
            fact("said", sensor, text),
        ]
