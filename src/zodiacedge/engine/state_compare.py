"""States compared by listing what they have, fact by fact: for engines whose facts are in this process.

Neither side is ever held as a whole: predicate by predicate there is a count and a sum of hashes, and only
where those differ are the facts of one predicate held side by side. Where all that differs is to be told,
there is a sum for each of many shares that facts fall into by their hashes, and only unlike shares are held.
"""

from __future__ import annotations

from array import array
from hashlib import sha256
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Mismatch
from zodiacedge.language.printer import format_atom

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from zodiacedge.engine.api import Materialisation
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.language.ast import Fact, Predicate

_DIGEST = 2**256
_WORD = 2**64
# After so many facts somebody else may have the turn.
_TOGETHER = 4096
# Facts fall into so many shares: a difference of a thousand facts holds one fact in 250.
_SHARES = 1 << 18


def summed(facts: Iterable[Fact]) -> tuple[int, int]:
    """Count facts, and add up the SHA-256 hashes of their texts: in any order, and in any parts."""
    count = total = 0
    for fact in facts:
        count += 1
        total += int.from_bytes(sha256(format_atom(fact, {}).encode()).digest())
    return count, total % _DIGEST


def added(sums: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return what facts come to that were summed in parts."""
    count = total = 0
    for one, more in sums:
        count += one
        total += more
    return count, total % _DIGEST


def digest(state: Materialisation, turn: YieldPoint) -> tuple[int, int]:
    """Count the visible facts of a state, and add up the hashes of their texts."""
    return added(summed(_pausing(facts, turn)) for _, facts in state.each())


def mismatches(
    ours: Materialisation, theirs: Materialisation, nodes: Sequence[frozenset[str]], turn: YieldPoint
) -> Iterator[Mismatch]:
    """Yield where two states of the same program differ."""
    for node in (None, *nodes):
        have, should = _tally(ours, node, turn), _tally(theirs, node, turn)
        for predicate in {*have, *should}:
            if have.get(predicate) != should.get(predicate):
                mine, others = (_facts(state, node, predicate) for state in (ours, theirs))
                example = min(mine ^ others, key=format_atom)
                yield Mismatch(node, predicate, len(others - mine), len(mine - others), example)


def diff(before: Materialisation, after: Materialisation) -> tuple[frozenset[Fact], frozenset[Fact]]:
    """Return the facts that only the second of two states has, and those that only the first has."""
    shares = array("Q", bytes(8 * _SHARES))
    predicates: dict[Predicate, int] = {}
    for state, sign in ((before, -1), (after, 1)):
        for predicate, facts in state.each():
            total = 0
            for fact in facts:
                number = hash(fact)
                total += number
                share = number % _SHARES
                shares[share] = (shares[share] + sign * number) % _WORD
            predicates[predicate] = (predicates.get(predicate, 0) + sign * total) % _WORD

    def doubtful(state: Materialisation) -> Iterator[Fact]:
        for predicate, facts in state.each():
            if predicates[predicate]:
                yield from (fact for fact in facts if shares[hash(fact) % _SHARES])

    went = set(doubtful(before))
    came = set()
    for fact in doubtful(after):
        if fact in went:
            went.remove(fact)
        else:
            came.add(fact)
    return frozenset(came), frozenset(went)


def _tally(
    state: Materialisation, node: frozenset[str] | None, turn: YieldPoint
) -> dict[Predicate, tuple[int, int]]:
    found: dict[Predicate, tuple[int, int]] = {}
    for predicate, facts in state.each(node):
        count, total = found.get(predicate, (0, 0))
        for fact in _pausing(facts, turn):
            count += 1
            total += hash(fact)
        found[predicate] = (count, total % _WORD)
    return found


def _facts(state: Materialisation, node: frozenset[str] | None, predicate: Predicate) -> frozenset[Fact]:
    return frozenset(fact for one, facts in state.each(node) if one == predicate for fact in facts)


def _pausing(facts: Iterator[Fact], turn: YieldPoint) -> Iterator[Fact]:
    for number, fact in enumerate(facts, 1):
        yield fact
        if number % _TOGETHER == 0:
            turn.yield_to_waiters()
