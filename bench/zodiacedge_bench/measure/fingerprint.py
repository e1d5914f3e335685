"""What a store holds, in a few numbers that can be compared with those of another store.

The explicit facts, the segment of every hyper-node and the rows of every aggregate have, relation by
relation, a count and a sum of hashes of their rows. Ids are replaced by hashes of their terms first, so two
stores that met the same terms in another order agree. It is what `kb.verify` compares, by columns: ten
million facts take a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.storage.relation import NO_CLASS
from zodiacedge_bench.measure.embedded import term_hashes
from zodiacedge_bench.measure.harness import WrongCountError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge_bench.measure.embedded import Loaded

    Hashes = NDArray[np.uint64]
    Place = tuple[frozenset[str], str, int, int]
    """The rules of a node, none for explicit facts; a relation's name and arity; its class, as a hash."""

_EXPLICIT: frozenset[str] = frozenset()
_WORD = 2**64
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
# So many rows are hashed at once, to stay in the cache.
_TOGETHER = 65_536


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Rows and the sum of their hashes, for each table that is not empty."""

    tables: Mapping[Place, tuple[int, int]]

    @property
    def rows(self) -> int:
        """All rows of all tables."""
        return sum(count for count, _ in self.tables.values())

    def check(self, when: str, wanted: Fingerprint) -> None:
        """Raise if this is not the state that it should be."""
        if self == wanted:
            return
        places = {*self.tables, *wanted.tables}
        wrong = min((p for p in places if self.tables.get(p) != wanted.tables.get(p)), key=_order)
        rules, relation, arity, _ = wrong
        where = "a segment has" if rules else "the explicit facts have"
        have, should = (one.tables.get(wrong, (0, 0))[0] for one in (self, wanted))
        what = f"{have:,} rows instead of {should:,}" if have != should else "other rows than it should"
        raise WrongCountError(f"{when}: of {relation}/{arity}, {where} {what}")


def fingerprint(store: Database, loaded: Loaded) -> Fingerprint:
    """Return the fingerprint of a store that was filled with these facts first."""
    hashes = np.concatenate([loaded.hashes, _hashed(store, len(loaded.terms))])
    owners: list[tuple[frozenset[str], Segment]] = [(_EXPLICIT, store.explicit), *store.segments.items()]
    return Fingerprint(
        {place: found for rules, segment in owners for place, found in _segment(rules, segment, hashes)}
    )


def _hashed(store: Database, first: int) -> Hashes:
    return term_hashes(map(store.dictionary.decode, range(first, len(store.dictionary))))


def _segment(
    rules: frozenset[str], segment: Segment, hashes: Hashes
) -> Iterator[tuple[Place, tuple[int, int]]]:
    for relation, table in segment.tables.items():
        if len(table):
            place = (rules, relation.name, relation.arity, _class(relation, hashes))
            yield place, (len(table), _sum(table.rows, hashes))
    for rule, table in segment.aggregate_rows.items():
        if len(table):
            yield (rules, f"groups of {rule}", table.arity, NO_CLASS), (len(table), _sum(table.rows, hashes))


def _class(relation: Relation, hashes: Hashes) -> int:
    return NO_CLASS if relation.member_of == NO_CLASS else int(hashes[relation.member_of])


def _sum(rows: NDArray[np.int32], hashes: Hashes) -> int:
    total = 0
    for start in range(0, len(rows), _TOGETHER):
        piece = rows[start : start + _TOGETHER]
        mixed = np.ones(len(piece), np.uint64)
        for column in range(piece.shape[1]):
            # The columns have an order, and a sum of rows must not be the sum of their columns.
            mixed = (mixed * _FACTOR) ^ hashes[piece[:, column]]
            mixed ^= mixed >> _SHIFT
        total += int((mixed * _FACTOR).sum(dtype=np.uint64))
    return total % _WORD


def _order(place: Place) -> tuple[int, str, int]:
    rules, relation, arity, _ = place
    return len(rules), relation, arity
