"""Random sessions with a clock: windows in every place, ticks, facts from the past and the future.

The programs are drawn over a few fixed predicates, with minutes as the only lengths, so that moments enter
and leave windows at almost every tick. Some rules are refused: both engines must refuse them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from zodiacedge.kb.change import Change
from zodiacedge.language.parser import parse_fact, parse_program

if TYPE_CHECKING:
    from strategies.dice import Dice
    from zodiacedge.language.ast import Fact, Rule

_START = datetime(2026, 1, 1, tzinfo=UTC)
_THINGS = ("a", "b", "c")
_DECLARED = "@time e 3 . @time p1 2 . @time p3 3 ."
# What is no moment is in no window: a number, a text, a date and a dateTime without a value.
_NO_MOMENTS = ("5", '"now"', '"2026-01-01"^^xsd:date', '"2026-13-01T00:00:00Z"^^xsd:dateTime')
# Heads by level; rules negate and aggregate what is below.
_HEADS = (("p1(X, T)", 1), ("p2(X)", 1), ("p3(X, Y, T)", 2), ("p4(X)", 3), ("p5(X, T)", 3))
_ATOMS = (
    ("e(X, V, T)", 0),
    ("e(Y, V, T)", 0),
    ("e(X, _, T)", 0),
    ("b(X, Y)", 0),
    ("s(X)", 0),
    ("p1(X, T)", 1),
    ("p1(Y, T)", 1),
    ("p2(Y)", 1),
    ("p3(Y, X, T)", 2),
    ("p4(Y)", 3),
    ("p5(Y, T)", 3),
)
_NEGATED = (("p2(X)", 1), ("p4(X)", 3), ("b(X, _)", 0), ("e(X, _, T)", 0))
_FOLDS = ("COUNT(V)", "MED(V)", "MAX(M)", "ARGMAX(V, M)", "ARGMIN(M, V)", "LATEST(V)")
_SILENT = (("e(X, _, _)", 0), ("e(X, 1, _)", 0), ("e(_, _, T)", 0), ("p1(X, _)", 1), ("p3(_, X, _)", 2))


def random_timed_changes(dice: Dice, most_changes: int = 7, start: datetime = _START) -> list[Change]:
    """Return a program and changes of it, the clock among them."""
    now = start
    first = parse_program(_DECLARED)
    rules = [_rule(dice) for _ in range(dice.number(2, 5))]
    facts = tuple(_fact(dice, now) for _ in range(dice.number(3, 9)))
    declared = tuple(parse_fact(f"<{atom.relation}>({atom.args[0]}, {atom.args[1]})") for atom in first.facts)
    changes = [Change(tuple(rules), add_facts=(*declared, *facts), tick=now if dice.chance(50) else None)]
    there = list(facts)
    for _ in range(dice.number(2, most_changes)):
        tick = dice.chance(70)
        now += timedelta(minutes=dice.number(0, 3), seconds=dice.number(0, 1) * 30) if tick else timedelta()
        added = tuple(_fact(dice, now) for _ in range(dice.number(0, 2)))
        removed = tuple(dice.pick(there) for _ in range(dice.number(0, 1)))
        new = tuple(_rule(dice) for _ in range(1 if dice.chance(30) else 0))
        gone = tuple(dice.pick(rules) for _ in range(1 if dice.chance(20) else 0))
        changes.append(Change(new, gone, added, removed, tick=now if tick else None))
        rules += new
        there += added
    return changes


def _fact(dice: Dice, now: datetime) -> Fact:
    thing = dice.pick(_THINGS)
    kind = dice.number(0, 9)
    if kind == 0:
        return parse_fact(f"s({thing})")
    if kind <= 2:
        return parse_fact(f"b({thing}, {dice.pick(_THINGS)})")
    moment = now + timedelta(seconds=30 * dice.number(-8, 5))
    time = f'"{moment:%Y-%m-%dT%H:%M:%S}Z"^^xsd:dateTime' if dice.chance(92) else dice.pick(_NO_MOMENTS)
    return parse_fact(f"e({thing}, {dice.number(0, 2)}, {time})")


def _rule(dice: Dice) -> Rule:
    head, level = dice.pick(_HEADS)
    parts = [atom for atom, at in (dice.pick(_ATOMS) for _ in range(dice.number(1, 2))) if at <= level]
    whole = ["e(X, _, T)" if level else "", *parts]
    if "Y" in head:
        whole.append("b(X, Y)")
    body = [f"{atom}{_within(dice, atom)}" for atom in dict.fromkeys(whole) if atom]
    if dice.chance(60):
        body += _condition(dice, "T")
    if dice.chance(35):
        body += [f"not {atom}" for atom, at in [dice.pick(_NEGATED)] if at < level]
    if dice.chance(45):
        body += [
            f"not {atom} within {dice.number(0, 4)} min" for atom, at in [dice.pick(_SILENT)] if at < level
        ]
    if dice.chance(20):
        # A moment of its own: the rule ends because what it computes is in a window.
        body += ["U := T + 1 min", *_condition(dice, "U", past=True)]
        head = head.replace("T", "U")
    if dice.chance(20):
        inner = f"e(X, V, M){_within(dice, 'e')}"
        body.append(f"AGGREGATE({inner}) ON X WITH {dice.pick(_FOLDS)} AS N")
        head = "n(X, N)"
    return parse_program(f"{head} :- {', '.join(body)} .").rules[0]


def _within(dice: Dice, atom: str) -> str:
    timed = atom.startswith(("e", "p1", "p3"))
    return f" within {dice.number(0, 4)} min" if timed and dice.chance(35) else ""


def _condition(dice: Dice, moment: str, *, past: bool = False) -> list[str]:
    if past:
        return [f"{moment} <= now + {dice.number(0, 2)} min"]
    bound = f"now {dice.pick('+-')} {dice.number(0, 4)} min"
    kind = dice.number(0, 4)
    if kind == 0:
        return [f"{bound} {dice.pick(('<', '<=', '>', '>='))} {moment}"]
    if kind == 1:
        return [f"{moment} = now - {dice.number(0, 2)} min"]
    return [f"{moment} {dice.pick(('<', '<=', '>', '>='))} {bound}"]
