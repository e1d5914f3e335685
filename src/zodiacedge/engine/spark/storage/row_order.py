"""The order of the rows of a file: an order in which little must be written to find rows by any column.

A file is read in blocks of rows. To find the rows of a term one must know the blocks that have it: pairs of a
term and a block. Rows often arrive with what belongs together side by side, then there are few pairs. Where
there would be fewer, rows are sorted by the column with the fewest terms, which needs no pairs at all, and
those of one term by the column with the next fewest: the rows of the others' terms are few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Keys

    Columns = Sequence[Keys]

# Of a column with so few terms, the rows of each are sorted by the next: that needs no pairs, either.
FEW_TERMS = 16
# About how many bytes a term takes in a block of a file, and a pair in an index.
_TERM_BYTES = 8
_PAIR_BYTES = 2.2
# Terms are written as differences where at least this share of the rows have one of their own.
_MOSTLY_DISTINCT = 0.75
# Spreads fingerprints of few bits, too.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Order(NamedTuple):
    """The rows of a file in order, and what follows from it."""

    columns: list[Keys]
    lead: int | None
    """The column that they are sorted by; None if they are as they arrived, but for the order in a block."""
    second: int | None
    """The column by which the rows of a term of `lead` are sorted, if it has few terms."""
    leads: Keys
    """The terms of `lead`, if they are few."""
    lead_terms: int
    pairs: dict[int, Keys]
    """For each other column the pairs of a term and a block: the hash of the term above, the block below."""
    ascending: int | None
    """The column whose terms ascend in each block, if most of them differ."""


def ordered(columns: Columns, width: int, block: int, lead: int | None = None) -> Order:
    """Return rows in an order.

    Args:
        columns: The rows.
        width: How many columns rows are looked up by, the first of all.
        block: How many of them are a block.
        lead: The column that they must be sorted by, if any.
    """
    rows = len(columns[0])
    if width == 1 or lead is not None:
        lead = lead or 0
        return _sorted(columns, [lead, *(n for n in range(width) if n != lead)], block)
    natural = {n: pairs_of(column, block) for n, column in enumerate(columns[:width])}
    terms = {n: distinct_hashes(pairs, rows, block) for n, pairs in natural.items()}
    by = sorted(terms, key=lambda n: (terms[n], n))
    first = by[0]
    # Sorted by one column, others have a pair for each of their terms at least.
    least = _bytes(terms[first], sum(terms.values()) - terms[first])
    as_is = _bytes(0, sum(map(len, natural.values())))
    if as_is > least:
        order = _sorted(columns, by, block)
        if as_is > _bytes(terms[first], sum(map(len, order.pairs.values()))):
            return order
    most = max(natural, key=lambda n: (len(natural[n]), -n))
    ascending = most if len(natural[most]) >= rows * _MOSTLY_DISTINCT else None
    if ascending is not None:
        places = _in_blocks(columns[ascending], block)
        columns = [column[places] for column in columns]
    return Order(list(columns), None, None, np.zeros(0, np.int64), 0, natural, ascending)


def pairs_of(column: Keys, block: int) -> Keys:
    """Return the pairs of the terms of a column and their blocks, sorted: the hashes above, blocks below."""
    bits = np.uint64(block_bits(len(column), block))
    blocks = np.arange(len(column), dtype=np.uint64) // np.uint64(block)
    pairs = hashes(column) >> bits << bits | blocks
    pairs.sort()
    return pairs[_starts(pairs)].view(np.int64)


def distinct_hashes(pairs: Keys, rows: int, block: int) -> int:
    """Return how many terms there are in pairs of a file with so many rows."""
    return int(np.count_nonzero(_starts(pairs.view(np.uint64) >> np.uint64(block_bits(rows, block)))))


def hashes(keys: Keys) -> NDArray[np.uint64]:
    """Return hashes of fingerprints."""
    return np.ascontiguousarray(keys).view(np.uint64) * _MULTIPLIER


def block_bits(rows: int, block: int) -> int:
    """Return how many bits the numbers of the blocks of so many rows have."""
    return max((rows - 1) // block, 0).bit_length()


def _bytes(sorted_terms: int, pairs: int) -> float:
    return sorted_terms * _TERM_BYTES + pairs * (_TERM_BYTES + _PAIR_BYTES)


def _sorted(columns: Columns, by: Sequence[int], block: int) -> Order:
    """Return rows sorted by the first of some columns; those of one term by the second of them."""
    rows, (lead, *others) = len(columns[0]), by
    order = np.argsort(columns[lead])
    starts = np.flatnonzero(_starts(columns[lead][order]))
    second: int | None = None
    leads = columns[lead][order[starts]] if len(starts) <= FEW_TERMS else np.zeros(0, np.int64)
    if others and len(starts) < rows:
        second = others[0]
        if len(leads):
            for part in np.split(order, starts[1:]):
                part[:] = part[np.argsort(columns[second][part])]
        else:
            order = order[_within(columns[second][order], starts)]
    arranged = [column[order] for column in columns]
    exact = second if len(leads) else None
    pairs = {n: pairs_of(arranged[n], block) for n in others if n != exact}
    many = [n for n in (lead, second) if n is not None and _mostly_distinct(arranged[n])]
    return Order(arranged, lead, exact, leads, len(starts), pairs, many[0] if many else None)


def _within(second: Keys, starts: Keys) -> Keys:
    """Return the places of rows that are in runs, with each run sorted, but for the last bits of a term."""
    runs = np.zeros(len(second), np.uint64)
    runs[starts[1:]] = 1
    bits = np.uint64(max(len(starts) - 1, 1).bit_length())
    places: Keys = np.argsort(
        np.cumsum(runs, dtype=np.uint64) << (np.uint64(64) - bits) | _unsigned(second) >> bits
    )
    return places


def _in_blocks(column: Keys, block: int) -> Keys:
    """Return the places of rows with each block sorted by a column."""
    whole = len(column) // block * block
    places = np.argsort(column[:whole].reshape(-1, block), axis=1) + np.arange(0, whole, block)[:, None]
    return np.concatenate((places.ravel(), whole + np.argsort(column[whole:])))


def _mostly_distinct(column: Keys) -> bool:
    """Whether most of the terms of a column differ from those of the rows before."""
    return bool(np.count_nonzero(_starts(column)) >= len(column) * _MOSTLY_DISTINCT)


def _starts(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Return which values differ from the one before."""
    starts = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=starts[1:])
    return starts


def _unsigned(keys: Keys) -> NDArray[np.uint64]:
    return np.ascontiguousarray(keys).view(np.uint64) ^ np.uint64(1 << 63)
