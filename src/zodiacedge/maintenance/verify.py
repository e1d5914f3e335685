"""Verification: what is kept, against the same program evaluated from nothing.

The visible facts and the segment of every hyper-node are compared predicate by predicate, by a count and a
sum of hashes, so neither side is ever listed as a whole; only where those differ are the facts of one
predicate listed. The digest is the sum of the SHA-256 hashes of all visible facts as text: it depends neither
on their order nor on the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from zodiacedge.errors import counted
from zodiacedge.language.printer import format_atom, format_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zodiacedge.engine.api import Materialisation
    from zodiacedge.language.ast import Fact, Predicate
    from zodiacedge.maintenance.program import Program

_DIGEST_BITS = 256
_HASH_BITS = 64
# After so many facts somebody else may have the turn.
_TOGETHER = 4096
_MOST = 6


@dataclass(frozen=True, slots=True)
class Difference:
    """Where what is kept is not what it should be: in the visible facts, or in a node's segment."""

    where: str
    predicate: Predicate
    missing: int
    """Facts that should be there."""
    extra: int
    """Facts that should not."""
    example: Fact

    def __str__(self) -> str:
        """Return the difference as one line."""
        name, arity = self.predicate
        return (
            f"{self.where}: {name}/{arity} has {counted(self.missing, 'fact')} too few and "
            f"{self.extra:,} too many, for example {format_atom(self.example)}"
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification found."""

    version: int
    engine: str
    """The engine that evaluated the program from nothing."""
    facts: int
    digest: str
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """Whether everything is as it should be."""
        return not self.differences

    def __str__(self) -> str:
        """Return what was found as a few lines."""
        outcome = "as it should be" if self.ok else counted(len(self.differences), "difference")
        lines = [
            f"version {self.version} against the engine {self.engine}: {outcome}",
            f"visible facts: {self.facts:,}",
            f"digest: {self.digest}",
            *map(str, self.differences[:_MOST]),
        ]
        if len(self.differences) > _MOST:
            lines.append(f"and {len(self.differences) - _MOST:,} more")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Return what was found as plain values for JSON."""
        return {
            "ok": self.ok,
            "version": self.version,
            "engine": self.engine,
            "facts": self.facts,
            "digest": self.digest,
            "differences": [
                {
                    "where": one.where,
                    "predicate": f"{one.predicate.name}/{one.predicate.arity}",
                    "missing": one.missing,
                    "extra": one.extra,
                    "example": format_atom(one.example),
                }
                for one in self.differences
            ],
        }


def digest(state: Materialisation, pause: Callable[[], None]) -> tuple[int, str]:
    """Return how many facts are visible, and their digest."""
    total, count = 0, 0
    for _, facts in state.each():
        for fact in _pausing(facts, pause):
            line = format_atom(fact, {})
            total += int.from_bytes(sha256(line.encode()).digest())
            count += 1
    return count, f"{total % 2**_DIGEST_BITS:0{_DIGEST_BITS // 4}x}"


def differences(
    kept: Materialisation, fresh: Materialisation, program: Program, pause: Callable[[], None]
) -> Iterator[Difference]:
    """Yield where one state differs from another of the same program; `pause` is called now and then."""
    places: list[tuple[str, frozenset[str] | None]] = [("visible facts", None)]
    for node in program.graph.order:
        rules = [program.rules[key] for key in sorted(node.rules)]
        names = ", ".join(rule.label or format_rule(rule) for rule in rules)
        places.append((f"segment of {names}", frozenset(node.rules)))
    for where, node_rules in places:
        ours, theirs = _tally(kept, node_rules, pause), _tally(fresh, node_rules, pause)
        for predicate in sorted({*ours, *theirs}):
            if ours.get(predicate) != theirs.get(predicate):
                have, should = (_facts(state, node_rules, predicate) for state in (kept, fresh))
                example = min((have ^ should), key=format_atom)
                yield Difference(where, predicate, len(should - have), len(have - should), example)


def _tally(
    state: Materialisation, rules: frozenset[str] | None, pause: Callable[[], None]
) -> dict[Predicate, tuple[int, int]]:
    found: dict[Predicate, tuple[int, int]] = {}
    for predicate, facts in state.each(rules):
        count, total = found.get(predicate, (0, 0))
        for fact in _pausing(facts, pause):
            count += 1
            total += hash(fact)
        found[predicate] = (count, total % 2**_HASH_BITS)
    return found


def _facts(state: Materialisation, rules: frozenset[str] | None, predicate: Predicate) -> frozenset[Fact]:
    return frozenset(fact for one, facts in state.each(rules) if one == predicate for fact in facts)


def _pausing(facts: Iterator[Fact], pause: Callable[[], None]) -> Iterator[Fact]:
    for number, fact in enumerate(facts, 1):
        yield fact
        if number % _TOGETHER == 0:
            pause()
