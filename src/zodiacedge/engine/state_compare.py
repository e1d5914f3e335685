"""Comparison of states by listing their facts, for engines whose facts are in this process.

Neither state is copied: the facts of each predicate are counted and their hashes summed, and only predicates
that differ are compared fact by fact. To list all differences, hashes are summed by hash partition, and only
the facts of partitions that differ are kept in memory.
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
# The number of facts between two yield points.
_FACTS_BETWEEN_YIELDS = 4096
# With this many hash partitions, a difference of a thousand facts keeps one fact in 250 in memory.
_PARTITIONS = 1 << 18


def summed(facts: Iterable[Fact]) -> tuple[int, int]:
    """Count facts, and sum the SHA-256 hashes of their texts, in any order."""
    count = total = 0
    for fact in facts:
        count += 1
        total += int.from_bytes(sha256(format_atom(fact, {}).encode()).digest())
    return count, total % _DIGEST


def added(sums: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Sum the counts and hashes of several sets of facts."""
    count = total = 0
    for facts, hashes in sums:
        count += facts
        total += hashes
    return count, total % _DIGEST


def digest(state: Materialisation, yield_point: YieldPoint) -> tuple[int, int]:
    """Count the visible facts of a state, and sum the hashes of their texts."""
    return added(summed(_yielding(facts, yield_point)) for _, facts in state.each())


def mismatches(
    ours: Materialisation, theirs: Materialisation, nodes: Sequence[frozenset[str]], yield_point: YieldPoint
) -> Iterator[Mismatch]:
    """Yield the mismatches of two states of the same program."""
    for node in (None, *nodes):
        left, right = _tally(ours, node, yield_point), _tally(theirs, node, yield_point)
        for predicate in {*left, *right}:
            if left.get(predicate) != right.get(predicate):
                our_facts, their_facts = (_facts(state, node, predicate) for state in (ours, theirs))
                missing, extra = their_facts - our_facts, our_facts - their_facts
                example = min(missing | extra, key=format_atom)
                yield Mismatch(node, predicate, len(missing), len(extra), example)


def diff(before: Materialisation, after: Materialisation) -> tuple[frozenset[Fact], frozenset[Fact]]:
    """Return the facts of the second state only, and those of the first state only."""
    sums = array("Q", bytes(8 * _PARTITIONS))
    predicates: dict[Predicate, int] = {}
    for state, sign in ((before, -1), (after, 1)):
        for predicate, facts in state.each():
            total = 0
            for fact in facts:
                number = hash(fact)
                total += number
                partition = number % _PARTITIONS
                sums[partition] = (sums[partition] + sign * number) % _WORD
            predicates[predicate] = (predicates.get(predicate, 0) + sign * total) % _WORD

    def candidates(state: Materialisation) -> Iterator[Fact]:
        for predicate, facts in state.each():
            if predicates[predicate]:
                yield from (fact for fact in facts if sums[hash(fact) % _PARTITIONS])

    deleted = set(candidates(before))
    inserted = set()
    for fact in candidates(after):
        if fact in deleted:
            deleted.remove(fact)
        else:
            inserted.add(fact)
    return frozenset(inserted), frozenset(deleted)


def _tally(
    state: Materialisation, node: frozenset[str] | None, yield_point: YieldPoint
) -> dict[Predicate, tuple[int, int]]:
    tally: dict[Predicate, tuple[int, int]] = {}
    for predicate, facts in state.each(node):
        count, total = tally.get(predicate, (0, 0))
        for fact in _yielding(facts, yield_point):
            count += 1
            total += hash(fact)
        tally[predicate] = (count, total % _WORD)
    return tally


def _facts(state: Materialisation, node: frozenset[str] | None, predicate: Predicate) -> frozenset[Fact]:
    return frozenset(fact for name, facts in state.each(node) if name == predicate for fact in facts)


def _yielding(facts: Iterator[Fact], yield_point: YieldPoint) -> Iterator[Fact]:
    for number, fact in enumerate(facts, 1):
        yield fact
        if number % _FACTS_BETWEEN_YIELDS == 0:
            yield_point.yield_to_waiters()
