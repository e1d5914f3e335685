"""Windows: conditions on `now` as atoms of a hidden relation, which all other stages treat like any other.

`T > now - 10 min, T <= now` in a body becomes one atom, `window(T, "(-PT10M,PT0S]")`: the moment T is in that
window around the clock. `atom within length` is the atom and the window of its time, the argument that
`@time` names. `not atom within length` becomes the negation of a hidden predicate, `recent:<digest>`, of the
variables that the rest of the body binds, with a rule of its own. A rule keeps the form its author wrote as
`source`.

An engine may fill the relation of windows, with the moments that it knows. `by_clock` rewrites the atoms to
comparisons with the clock, which is a fact, for the others and for queries. What has no moment as its value
is in no window.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic
from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Conjunct,
    Expression,
    Fold,
    Negation,
    Now,
    Rule,
    Variable,
    conjuncts,
    operands,
    variables,
)
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.printer import format_argument, format_predicate
from zodiacedge.language.safety import bound_in
from zodiacedge.language.vocabulary import (
    CLOCK,
    LATEST,
    NOW_RELATION,
    RECENT_BASE,
    TIME_BASE,
    WINDOW_RELATION,
)
from zodiacedge.terms import IRI, Literal, date_time, duration, integer, literal, microseconds, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

WINDOW_TYPE = TIME_BASE + "window"
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_NOTE = "`now` stands in comparisons of a moment with now plus or minus a length: T > now - 10 min, T <= now"


_EARLIEST, _LATEST = -(1 << 62), 1 << 62


@dataclass(frozen=True, slots=True)
class Window:
    """Moments from `low` to `high`, in microseconds from the clock; None is without an end."""

    low: int | None = None
    low_is_in: bool = False
    high: int | None = None
    high_is_in: bool = False

    def narrowed(self, operator: str, bound: int) -> Window:
        """Return the part of the window whose moments compare so with a bound."""
        window = self
        if operator in {">", ">=", "="}:
            least = (bound, operator == ">")
            if self.low is None or least > (self.low, not self.low_is_in):
                window = replace(window, low=bound, low_is_in=operator != ">")
        if operator in {"<", "<=", "="}:
            greatest = (bound, operator != "<")
            if self.high is None or greatest < (self.high, self.high_is_in):
                window = replace(window, high=bound, high_is_in=operator != "<")
        return window

    def span(self, clock: int) -> tuple[int, int]:
        """Return the microseconds after which, and up to which, moments are in the window."""
        low = _EARLIEST if self.low is None else clock + self.low - self.low_is_in
        high = _LATEST if self.high is None else clock + self.high - (not self.high_is_in)
        return low, max(low, high)

    @property
    def term(self) -> Literal:
        """The window as a term: `(-PT10M,PT0S]`."""
        low = "" if self.low is None else _length(self.low).lexical
        high = "" if self.high is None else _length(self.high).lexical
        return Literal(
            f"{'[' if self.low_is_in else '('}{low},{high}{']' if self.high_is_in else ')'}", WINDOW_TYPE
        )

    @classmethod
    def of(cls, term: Literal) -> Window:
        """Return the window of a term."""
        low, high = (_micros(text) for text in term.lexical[1:-1].split(","))
        return cls(low, term.lexical[0] == "[", high, term.lexical[-1] == "]")

    def comparisons(self) -> Iterator[tuple[str, int]]:
        """Yield the comparisons of a moment with the clock plus a number of microseconds."""
        if self.low is not None:
            yield ">=" if self.low_is_in else ">", self.low
        if self.high is not None:
            yield "<=" if self.high_is_in else "<", self.high


def _length(micros: int) -> Literal:
    return duration(timedelta(microseconds=micros))


def _micros(text: str) -> int | None:
    value = value_of(literal(text, duration(timedelta()).datatype)) if text else None
    return microseconds(value) if isinstance(value, timedelta) else None


# Findings


def misplaced_now(rule: Rule) -> Iterator[Diagnostic]:
    """Yield a finding for each `now` that is no bound of a window."""
    for conjunct in conjuncts(rule.body):
        if isinstance(conjunct, Comparison) and _condition(conjunct):
            continue
        for node in operands(conjunct):
            if isinstance(node, Now):
                yield Diagnostic("C021", "`now` cannot stand here", _NOTE, node.span or rule.span)
                break


def untimed_windows(rule: Rule, times: Mapping[str, int]) -> Iterator[Diagnostic]:
    """Yield a finding for each `within`, and each LATEST, of an atom whose time no `@time` names."""
    for conjunct in conjuncts(rule.body):
        atom = conjunct.atom if isinstance(conjunct, Negation) else conjunct
        if not isinstance(atom, Atom) or not atom.within:
            continue
        name, arity = atom.predicate
        shown = format_predicate(name)
        position = times.get(name, 0)
        if not position:
            note = f"declare it: @time {shown} {arity} . says that argument {arity} is when it was so"
            yield Diagnostic("C022", f"no @time says which argument of {shown} is its time", note, atom.span)
        elif position > arity:
            note = f"{shown} has {arity} here: correct the @time"
            yield Diagnostic("C022", f"@time names argument {position} of {shown}", note, atom.span)

    for fold in rule.aggregate.folds if rule.aggregate else ():
        if fold.op == LATEST and rule.aggregate and _time_behind(fold, rule.aggregate, times) is None:
            shown = format_argument(fold.argument)
            note = f"or name the moment: ARGMAX({shown}, T)"
            message = f"LATEST needs one atom with {shown} whose time an @time names"
            yield Diagnostic("C022", message, note, fold.span)


def _time_behind(fold: Fold, aggregate: Aggregate, times: Mapping[str, int]) -> Variable | None:
    """Return the time of the one timed atom that has the argument of a LATEST."""
    atoms = [
        c for c in aggregate.body if isinstance(c, Atom) and 0 < times.get(c.predicate.name, 0) <= len(c.args)
    ]
    found = [_time_of(atom, times) for atom in atoms if fold.argument in atom.args]
    return found[0] if len(found) == 1 and isinstance(found[0], Variable) else None


def _by_time(fold: Fold, aggregate: Aggregate, times: Mapping[str, int]) -> Fold:
    by = _time_behind(fold, aggregate, times) if fold.op == LATEST else None
    return replace(fold, op="ARGMAX", by=by) if by else fold


def is_window(conjunct: Conjunct) -> bool:
    """Whether a conjunct matches moments in a window, under whatever name a delta of them has."""
    if not isinstance(conjunct, Atom) or len(conjunct.args) != 2:
        return False
    window = conjunct.args[1]
    return isinstance(window, Literal) and window.datatype == WINDOW_TYPE


def has_windows(rule: Rule) -> bool:
    """Whether a rule, as written, has a condition on `now`, a `within` or a LATEST."""
    if rule.aggregate and any(fold.op == LATEST for fold in rule.aggregate.folds):
        return True
    return any(_is_windowed(conjunct) for conjunct in conjuncts(rule.body))


def _is_windowed(conjunct: Conjunct) -> bool:
    if isinstance(conjunct, Comparison):
        return _condition(conjunct) is not None
    atom = conjunct.atom if isinstance(conjunct, Negation) else conjunct
    return isinstance(atom, Atom) and atom.within is not None


def _condition(comparison: Comparison) -> tuple[Variable, str, int] | None:
    """Return the variable, the operator and the bound of a condition on `now`, if a comparison is one."""
    for left, sign, right in (
        (comparison.left, comparison.operator, comparison.right),
        (comparison.right, _MIRRORED[comparison.operator], comparison.left),
    ):
        bound = _bound(right)
        if isinstance(left, Variable) and bound is not None and sign != "!=":
            return left, sign, bound
    return None


def _bound(expression: Expression) -> int | None:
    """Return the microseconds of `now`, `now + length`, `length + now` or `now - length`."""
    match expression:
        case Now():
            return 0
        case Binary(operator="+", left=Now(), right=Literal() as length):
            return _micros_of(length)
        case Binary(operator="+", left=Literal() as length, right=Now()):
            return _micros_of(length)
        case Binary(operator="-", left=Now(), right=Literal() as length):
            micros = _micros_of(length)
            return None if micros is None else -micros
        case _:
            return None


def _micros_of(length: Literal) -> int | None:
    value = value_of(length)
    return microseconds(value) if isinstance(value, timedelta) else None


# From windows as written to atoms


def with_atoms(rule: Rule, times: Mapping[str, int]) -> tuple[Rule, tuple[Rule, ...]]:
    """Return a checked and resolved rule with its windows as atoms, and the hidden rules that it needs.

    Args:
        rule: The rule.
        times: The position of the time in the arguments of a predicate, from 1, by its name.
    """
    if not has_windows(rule):
        return rule, ()
    hidden: list[Rule] = []
    body = _body(rule.body, times, hidden)
    return replace(rule, body=body, source=rule), tuple(hidden)


def _body(body: tuple[Conjunct, ...], times: Mapping[str, int], hidden: list[Rule]) -> tuple[Conjunct, ...]:
    windows: dict[Variable, Window] = {}
    kept: list[Conjunct] = []
    bound = bound_in(body)
    for conjunct in body:
        match conjunct:
            case Atom(within=Literal() as length):
                kept.append(replace(conjunct, within=None))
                _narrow_to_length(windows, _time_of(conjunct, times), length)
            case Negation(atom=Atom(within=Literal()) as atom):
                rule = _recent(atom, bound, times)
                hidden.append(rule)
                shown = atom, rule.head.args
                kept.append(Negation(replace(rule.head, span=atom.span, shown=shown)))
            case Comparison() if condition := _condition(conjunct):
                variable, sign, micros = condition
                windows[variable] = windows.get(variable, Window()).narrowed(sign, micros)
            case Aggregate():
                folds = tuple(_by_time(fold, conjunct, times) for fold in conjunct.folds)
                kept.append(replace(conjunct, body=_body(conjunct.body, times, hidden), folds=folds))
            case _:
                kept.append(conjunct)
    aggregate = [kept.pop()] if kept and isinstance(kept[-1], Aggregate) else []
    atoms = (Atom(WINDOW_RELATION, (variable, window.term)) for variable, window in windows.items())
    return (*kept, *atoms, *aggregate)


def _time_of(atom: Atom, times: Mapping[str, int]) -> Expression:
    # A class has one argument, and the atom of one another.
    return atom.args[times[atom.predicate.name] - 1]


def _narrow_to_length(windows: dict[Variable, Window], time: Expression, length: Literal) -> None:
    if isinstance(time, Variable):
        window = windows.get(time, Window())
        windows[time] = window.narrowed(">", -(_micros_of(length) or 0)).narrowed("<=", 0)


def _recent(atom: Atom, bound: frozenset[Variable], times: Mapping[str, int]) -> Rule:
    """Return the hidden rule of an atom negated within a length: its head has the bound variables."""
    shared = tuple(v for v in dict.fromkeys(variables(atom)) if v in bound)
    # Two arguments at least: a predicate of one is a class.
    padding = (IRI(RECENT_BASE),) * max(2 - len(shared), 0)
    written = Rule(Atom(RECENT_BASE, (*shared, *padding)), (atom,))
    windows: list[Rule] = []
    body = _body(written.body, times, windows)
    rule = replace(written, body=body)
    digest = hashlib.sha256(rule_key(rule).encode()).hexdigest()[:16]
    head = replace(rule.head, relation=RECENT_BASE + digest)
    return replace(rule, head=head, source=replace(written, head=head))


def as_written(rule: Rule) -> Rule:
    """Return a rule with its windows as its author wrote them."""
    return replace(rule.source, label=rule.label, source=None) if rule.source else rule


def is_hidden(rule: Rule) -> bool:
    """Whether a rule was made for a window of other rules."""
    return rule.head.relation.startswith(RECENT_BASE)


# From atoms to comparisons with the clock


def by_clock(rule: Rule) -> Rule:
    """Return a rule with its windows as comparisons with the clock."""
    body = body_by_clock(rule.body)
    return rule if body is rule.body else replace(rule, body=body)


def body_by_clock(body: tuple[Conjunct, ...]) -> tuple[Conjunct, ...]:
    """Return a body with its windows as comparisons with the clock."""
    if not any(isinstance(c, Atom) and c.relation == WINDOW_RELATION for c in conjuncts(body)):
        return body
    return tuple(part for conjunct in body for part in _by_clock(conjunct))


def _by_clock(conjunct: Conjunct) -> Iterator[Conjunct]:
    match conjunct:
        case Aggregate():
            yield replace(conjunct, body=body_by_clock(conjunct.body))
        case Atom(relation=relation, args=(moment, Literal() as window)) if relation == WINDOW_RELATION:
            # Of a term that is no moment, the hours have no value, and the comparisons no order.
            clock = Variable(f"clock of {moment}")
            yield Atom(NOW_RELATION, (IRI(CLOCK), clock), conjunct.span)
            hours = Call("coalesce", (Call("hours", (moment,)), integer(-1)))
            yield Comparison(hours, ">=", integer(0))
            for sign, micros in Window.of(window).comparisons():
                yield Comparison(moment, sign, Binary("+", clock, _length(micros)))
        case _:
            yield conjunct


def at_time(rule: Rule, now: datetime | None) -> Rule:
    """Return a rule with its windows as comparisons with moments: what it says at a time of the clock.

    While the clock has no time, all windows of a body are one atom, the fact of the clock that is missing.
    """
    return replace(rule, body=_at_time(rule.body, now))


def _at_time(body: tuple[Conjunct, ...], now: datetime | None) -> tuple[Conjunct, ...]:
    parts: list[Conjunct] = []
    clocks: set[Expression] = set()
    for conjunct in body_by_clock(body):
        match conjunct:
            case Aggregate():
                parts.append(replace(conjunct, body=_at_time(conjunct.body, now)))
            case Atom(relation=relation, args=(_, clock)) if relation == NOW_RELATION:
                if now is None and not clocks:
                    parts.append(Atom(NOW_RELATION, (IRI(CLOCK), Variable("Now")), conjunct.span))
                clocks.add(clock)
            case Comparison(right=Binary(left=clock, right=Literal() as length)) if clock in clocks:
                if now is not None:
                    moment = now + timedelta(microseconds=_micros_of(length) or 0)
                    parts.append(replace(conjunct, right=date_time(moment)))
            case Comparison(left=Call(function="coalesce", args=(Call(function="hours"), _))):
                continue
            case _:
                parts.append(conjunct)
    return tuple(parts)


def computed(rule: Rule) -> Rule:
    """Return a rule with those windows as comparisons whose moments the rule computes itself."""

    def rewritten(body: tuple[Conjunct, ...]) -> tuple[Conjunct, ...]:
        targets = {c.variable for c in body if isinstance(c, Binding)}
        parts: list[Conjunct] = []
        for conjunct in body:
            if isinstance(conjunct, Atom) and conjunct.relation == WINDOW_RELATION:
                parts += _by_clock(conjunct) if conjunct.args[0] in targets else (conjunct,)
            elif isinstance(conjunct, Aggregate):
                parts.append(replace(conjunct, body=rewritten(conjunct.body)))
            else:
                parts.append(conjunct)
        return tuple(parts)

    return replace(rule, body=rewritten(rule.body))
