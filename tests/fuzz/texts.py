"""Programs, queries and sessions: findings, never an exception; and what is read prints as it was read."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fuzz.mutate import harmed_text
from zodiacedge.cli.sessions.format import parse_session
from zodiacedge.errors import ZodiacError
from zodiacedge.graph import HyperGraph
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Subject, check
from zodiacedge.language.parser import parse_query, parse_rule, read_program
from zodiacedge.language.printer import format_query, format_rule
from zodiacedge.language.safety import resolve

if TYPE_CHECKING:
    from random import Random

_GOLDEN = Path(__file__).parent.parent / "golden"
_QUERIES = (
    "?- path(X, Y), not edge(Y, X), X != Y .",
    "ans(X, N) :- AGGREGATE(reading(X, V), V > 5) ON X WITH COUNT(V) AS N, MAX(V) AS M .",
    '?- p(X, "a\\"b"@en, _), Z := X * 2 + 1, Z < 10 .',
)


@cache
def _texts(ending: str) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in sorted(_GOLDEN.rglob(f"*{ending}")))


def program(dice: Random, _folder: Path) -> None:
    """Read a harmed program, check it, build its graph, print it and read it again."""
    texts = _texts(".rules")
    text = harmed_text(dice, dice.choice(texts), texts)
    read, found = read_program(text, "<fuzzed>")
    for one in found:
        assert one.code
        str(one)
    found = check(Subject(read.rules, read.facts))
    if any(one.severity == "error" for one in found):
        return
    try:
        HyperGraph.build({rule_key(rule): rule for rule in map(resolve, read.rules)})
    except ZodiacError:
        return
    for rule in read.rules:
        assert rule_key(parse_rule(format_rule(rule, {}))) == rule_key(rule)


def query(dice: Random, _folder: Path) -> None:
    """Read a harmed query, print it and read it again."""
    try:
        found = parse_query(harmed_text(dice, dice.choice(_QUERIES), _QUERIES))
    except ZodiacError:
        return
    again = parse_query(format_query(found, {}))
    assert again.body == found.body


def session(dice: Random, _folder: Path) -> None:
    """Read a harmed session."""
    texts = _texts(".session")
    try:
        parse_session(harmed_text(dice, dice.choice(texts), texts), "<fuzzed>")
    except ZodiacError:
        return
