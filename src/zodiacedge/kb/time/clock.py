"""The clock of a knowledge base: its time is an explicit fact, and a tick is a change of that fact.

A clock moves forward. Only a rollback brings an earlier time back, with the facts of that time.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Settings
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.language.ast import Atom, Fact, Predicate, Query, Variable
from zodiacedge.language.checks import declared_times
from zodiacedge.language.printer import format_term
from zodiacedge.language.vocabulary import CLOCK, NOW_RELATION, TIME_FACTS, TIME_RELATION
from zodiacedge.terms import IRI, XSD_DATETIME, Literal, date_time, literal, value_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from zodiacedge.engine.api import Batch, FactDelta, State
    from zodiacedge.kb.change import Change

NOW = Predicate(NOW_RELATION, 2)
_MOMENT = Variable("moment")
_POSITION = Variable("position")
_NOW_ATOM = Atom(NOW_RELATION, (IRI(CLOCK), _MOMENT))
_ANY_TIME = Atom(TIME_RELATION, (Variable("predicate"), _POSITION))
_HINT = 'a datetime, or a text such as "2026-01-01T12:00:00Z"'


def system_time() -> datetime:
    """Return the time of the system, in UTC."""
    return datetime.now(UTC)


def given_moment(value: object) -> datetime:
    """Return a moment in UTC, to the microsecond, or raise."""
    if isinstance(value, datetime) and value.tzinfo is UTC:
        return value
    moment: object = None
    if isinstance(value, datetime):
        moment = value_of(date_time(value))
    elif isinstance(value, str):
        moment = value_of(literal(value, XSD_DATETIME))
    elif isinstance(value, Literal):
        moment = value_of(value)
    if isinstance(moment, datetime):
        return moment
    raise UsageProblem(Diagnostic("U013", f"expected a moment, found {value!r}", f"give {_HINT}"))


def later_of(tick: datetime | None, moment: datetime) -> datetime:
    """Return the moment of the later tick of a change, or raise if it is earlier than the one before."""
    if tick is not None and moment < tick:
        raise _goes_back(tick, moment)
    return moment


def now_fact(moment: datetime) -> Fact:
    """Return the fact that states the time."""
    return Fact(NOW_RELATION, (IRI(CLOCK), date_time(moment)))


def clock_of(state: State, settings: Settings) -> datetime | None:
    """Return the time of a version, None before its first tick."""
    if not state.explicit_predicates({NOW_RELATION}):
        return None
    rows = state.answer(Query((_MOMENT,), (_NOW_ATOM,)), settings).rows
    return given_moment(rows[0][0]) if len(rows) else None


def ticked(change: Change, now: datetime | None) -> Change:
    """Return a change with the facts of its tick, or raise if the clock would go back.

    A fact of the clock among those to add is a tick too.
    """
    if change.accepted:
        return change
    stated = [f for f in change.add_facts if f.relation == NOW_RELATION]
    if any(f.relation == NOW_RELATION for f in change.remove_facts):
        raise _refused("the clock cannot be removed", "it moves: kb.tick(…)")
    moments = [given_moment(f.args[-1]) for f in stated]
    if change.tick:
        moments.append(change.tick)
    if not moments:
        return change
    moment = max(moments)
    if now and min(moments) < now:
        raise _goes_back(now, min(moments))
    others = tuple(f for f in change.add_facts if f.relation != NOW_RELATION)
    if moment == now:
        return replace(change, add_facts=others)
    gone = (now_fact(now),) if now else ()
    return replace(
        change,
        add_facts=(*others, now_fact(moment)),
        remove_facts=(*change.remove_facts, *gone),
        tick=moment,
    )


def clock_after(
    fact_delta: FactDelta, change: Change, batches: Collection[Batch], now: datetime | None
) -> datetime | None:
    """Return the time after a change, or raise if its files bring another one."""
    if not any(NOW in batch.predicates() for batch in batches):
        if change.tick and change.tick.tzinfo is UTC and not change.accepted:
            return change.tick
        if not any(f.relation == NOW_RELATION for f in (*change.add_facts, *change.remove_facts)):
            return now
    stated = list(fact_delta.matching(_NOW_ATOM))
    if len(stated) > 1:
        raise _refused("the files bring a clock, and there is one already", "leave its fact out of them")
    return given_moment(stated[0].args[-1]) if stated else None


def times_after(fact_delta: FactDelta) -> dict[str, int]:
    """Return the argument that is the time of each predicate after a change."""
    return declared_times(fact_delta.matching(_ANY_TIME))


def times_in(state: State) -> dict[str, int]:
    """Return the argument that is the time of each predicate in a version."""
    if not state.explicit_predicates({TIME_RELATION}):
        return {}
    columns = tuple(arg for arg in _ANY_TIME.args if isinstance(arg, Variable))
    rows = state.answer(Query(columns, (_ANY_TIME,)), Settings()).rows
    return declared_times(Fact(TIME_RELATION, tuple(row)) for row in rows)


def time_facts(state: State, settings: Settings) -> Iterator[Fact]:
    """Yield the facts of the clock and of declarations, which every slice has."""
    for relation, arity in TIME_FACTS.items():
        if state.explicit_predicates({relation}):
            columns = tuple(Variable(f"V{n}") for n in range(arity))
            rows = state.answer(Query(columns, (Atom(relation, columns),)), settings).rows
            yield from (Fact(relation, tuple(row)) for row in rows)


def _goes_back(now: datetime, moment: datetime) -> UsageProblem:
    before, after = (format_term(date_time(each)) for each in (now, moment))
    return _refused(
        f"the clock would go back: from {before} to {after}",
        "tick to a later time; kb.now is the time of the knowledge base",
    )


def _refused(message: str, note: str) -> UsageProblem:
    return UsageProblem(Diagnostic("U034", message, note))
