"""Indexes of files: which blocks of rows have a term in a column.

An index is a file of numbers, some two bytes for a row and column, and none for the column that the rows are
sorted by. It begins with the first term of each block in that column. For each other column follow its pairs
of a term and a block, grouped by the first bits of the hash of the term: where each group ends, then for each
pair a number of few bits, some more of the hash and the block. So a block may be named that has not the term,
but none that has it is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.spark.cluster.task_files import LOCAL, located
from zodiacedge.engine.spark.storage.row_order import Order, block_bits, distinct_hashes, hashes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.files import Folder

_PAIRS_IN_GROUP = 32
# A pair has two bytes unless its block leaves fewer bits than this to the hash.
_LEAST_CHECK = 4
_SHORT = 16
_LONG = 32
_ALIGNED = 8
# Of more keys than this all groups are read at one go, where the file is not mapped to memory.
_FEW = 64
# So many pairs of a key and a block are compared to leave blocks out.
_MOST_PAIRS = 1 << 20


class Listed(NamedTuple):
    """Where the pairs of a column are in an index."""

    at: int
    groups: int
    """The number of groups, a power of two."""
    pairs: int
    terms: int
    """The number of terms in the column."""


@dataclass(frozen=True)
class Index:
    """The index of a file: its path, how many rows the file has, and how columns are found."""

    path: str
    rows: int
    block: int
    """How many of them are a block."""
    lead: int | None = None
    """The column by which the rows are sorted."""
    lead_terms: int = 0
    second: int | None = None
    """The column by which the rows of each term of `lead` are sorted."""
    listed: Mapping[int, Listed] = field(default_factory=dict)

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.rows // self.block)

    def finds(self, column: int) -> bool:
        """Whether it tells which blocks have a term of a column."""
        return column in {self.lead, self.second} or column in self.listed

    def blocks_of_key(self, column: int) -> float:
        """Return how many blocks have a term of a column, on average."""
        if column == self.lead:
            return 1 + self.blocks / max(self.lead_terms, 1)
        if column == self.second:
            return self.lead_terms
        known = self.listed[column]
        return known.pairs / max(known.terms, 1)


def write_index(folder: Folder, order: Order) -> Index | None:
    """Write the index of a file whose rows are in an order; none of a file of one block."""
    rows = len(order.columns[0])
    block = folder.block
    if rows <= block:
        return None
    pieces: list[NDArray[np.generic]] = []
    if order.lead is not None:
        pieces.append(_firsts(order.columns[order.lead], block))
        if order.second is not None:
            pieces += [_firsts(order.columns[order.second], block), order.leads]
    at = sum(piece.nbytes for piece in pieces)
    listed: dict[int, Listed] = {}
    for column, pairs in order.pairs.items():
        groups = 1 << max(len(pairs) // _PAIRS_IN_GROUP, 1).bit_length()
        listed[column] = Listed(at, groups, len(pairs), distinct_hashes(pairs, rows, block))
        for piece in _grouped(pairs.view(np.uint64), groups, block_bits(rows, block)):
            pieces.append(piece)
            at += piece.nbytes
    path = folder.new_file("index")
    system, inner_path = located(path)
    with system.open_output_stream(inner_path) as stream:
        for piece in pieces:
            stream.write(np.ascontiguousarray(piece))
    return Index(path, rows, block, order.lead, order.lead_terms, order.second, listed)


def write_sorted_index(folder: Folder, column: Keys) -> Index | None:
    """Write the index of a file whose rows are sorted by its first column, which has distinct terms."""
    return write_index(folder, Order([column], 0, None, column[:0], len(column), {}, 0))


def _firsts(column: Keys, block: int) -> Keys:
    """Return the first term of each block, and the last of all."""
    return np.append(column[::block], column[-1:])


def _grouped(pairs: NDArray[np.uint64], groups: int, bits: int) -> Iterator[NDArray[np.generic]]:
    """Yield where the groups of sorted pairs end, and the pairs, each padded."""
    group_bits, dtype, check = _layout(groups, bits)
    counts = np.bincount((pairs >> np.uint64(64 - group_bits)).view(np.int64), minlength=groups)
    yield _padded(np.cumsum(counts).astype(np.uint32))
    checks = pairs >> np.uint64(64 - group_bits - check) & np.uint64((1 << check) - 1)
    yield _padded((checks << np.uint64(bits) | pairs & np.uint64((1 << bits) - 1)).astype(dtype))


def _layout(groups: int, bits: int) -> tuple[int, type[np.unsignedinteger], int]:
    """Return the bits of a group's number, the type of a pair, and how many of its bits are of the hash."""
    width = _SHORT if bits + _LEAST_CHECK <= _SHORT else _LONG
    return groups.bit_length() - 1, np.uint16 if width == _SHORT else np.uint32, width - bits


def _padded(values: NDArray[np.generic]) -> NDArray[np.generic]:
    more = -values.nbytes % _ALIGNED // values.itemsize
    return np.append(values, np.zeros(more, values.dtype))


class Found(NamedTuple):
    """For each of some keys, by position, the blocks that may have it: one after the other."""

    counts: Keys
    blocks: Keys

    @classmethod
    def ranges(cls, first: Keys, end: Keys) -> Found:
        """Return ranges of blocks."""
        counts = np.maximum(end - first, 0)
        return cls(counts, _spread(first, counts))

    def numbered(self, blocks: int) -> Keys:
        """Return each position and block as one number."""
        return np.repeat(np.arange(len(self.counts)) * blocks, self.counts) + self.blocks


class IndexReader:
    """Reads an index."""

    def __init__(self, index: Index) -> None:
        """Open the index: its file is mapped to memory if it is on this machine."""
        self.index = index
        system, inner_path = located(index.path)
        self._map = np.memmap(inner_path, np.uint8, "r") if system is LOCAL else None
        self._source = None if system is LOCAL else system.open_input_file(inner_path)

    def blocks(self, columns: Sequence[int], values: Keys) -> Keys | None:
        """Return the blocks that may have rows with some values in some columns; None if all may.

        Args:
            columns: The columns.
            values: The values, a row for each combination.
        """
        index = self.index
        usable = [n for n, c in enumerate(columns) if index.finds(c)]
        if not usable:
            return None
        usable.sort(key=lambda n: index.blocks_of_key(columns[n]))
        both: Keys | None = None  # of the combinations and their blocks
        if index.second is not None and {index.lead, index.second} <= set(columns):
            lead, second = (columns.index(c) for c in (index.lead, index.second))
            both = self._within(values[:, lead], values[:, second]).numbered(index.blocks)
            usable = [n for n in usable if n not in {lead, second}]
        for n in usable:
            keys, positions = np.unique(values[:, n], return_inverse=True)
            found = self._of(columns[n], keys)
            counts = found.counts[positions]
            if int(counts.sum()) > _MOST_PAIRS:
                if both is None:
                    return np.unique(found.blocks)
                break
            starts = (np.cumsum(found.counts) - found.counts)[positions]
            each = Found(counts, found.blocks[_spread(starts, counts)]).numbered(index.blocks)
            both = each if both is None else both[np.isin(both, each)]
        return np.unique(both % index.blocks) if both is not None else None

    def _of(self, column: int, keys: Keys) -> Found:
        """Return the blocks that may have the keys of a column."""
        index = self.index
        if column == index.lead:
            return Found.ranges(*self._led(keys))
        if column == index.second:
            leads = self._read(2 * (index.blocks + 1) * _ALIGNED, index.lead_terms, np.int64)
            several = [self._within(np.full(len(keys), lead), keys) for lead in leads]
            numbered = np.sort(np.concatenate([found.numbered(index.blocks) for found in several]))
            return Found(np.bincount(numbered // index.blocks, minlength=len(keys)), numbered % index.blocks)
        return self._listed(index.listed[column], keys)

    def _led(self, keys: Keys) -> tuple[Keys, Keys]:
        """Return the first block that may have each key of `lead`, and the one behind the last."""
        firsts = self._read(0, self.index.blocks + 1, np.int64)
        end = np.searchsorted(firsts[:-1], keys, "right")
        first = np.maximum(np.searchsorted(firsts[:-1], keys, "left") - 1, 0)
        return first, np.where(keys > firsts[-1], first, end)

    def _within(self, leads: Keys, keys: Keys) -> Found:
        """Return the blocks that may have rows of a term of `lead` and a key of `second`."""
        first, end = self._led(leads)
        seconds = self._read((self.index.blocks + 1) * _ALIGNED, self.index.blocks, np.int64)
        # But for the first of these blocks, all begin with the term of `lead`: there the others are sorted.
        for lead in np.unique(leads):
            here = np.flatnonzero((leads == lead) & (end > first))
            if len(here):
                begin, stop = int(first[here[0]]), int(end[here[0]])
                inner = seconds[begin + 1 : stop]
                end[here] = begin + 1 + np.searchsorted(inner, keys[here], "right")
                first[here] = begin + np.searchsorted(inner, keys[here], "left")
        return Found.ranges(first, end)

    def _listed(self, known: Listed, keys: Keys) -> Found:
        """Return the blocks of pairs whose terms may be the keys."""
        bits = block_bits(self.index.rows, self.index.block)
        group_bits, dtype, check = _layout(known.groups, bits)
        hashed = hashes(keys)
        groups = (hashed >> np.uint64(64 - group_bits)).astype(np.int64)
        ends = self._read(known.at, known.groups, np.uint32)
        first = np.where(groups > 0, ends[groups - 1], 0).astype(np.int64)
        counts = ends[groups].astype(np.int64) - first
        at = known.at + -(-known.groups * 4 // _ALIGNED) * _ALIGNED
        if self._map is None and len(keys) <= _FEW:
            size = np.dtype(dtype).itemsize
            parts = [
                self._read(at + f * size, n, dtype)
                for f, n in zip(first.tolist(), counts.tolist(), strict=True)
            ]
            pairs = np.concatenate(parts) if parts else np.zeros(0, dtype)
        else:
            pairs = self._read(at, known.pairs, dtype)[_spread(first, counts)]
        checks = (hashed >> np.uint64(64 - group_bits - check) & np.uint64((1 << check) - 1)).astype(np.int64)
        positions = np.repeat(np.arange(len(keys)), counts)
        chosen = pairs >> bits == checks[positions]
        blocks = (pairs[chosen] & dtype((1 << bits) - 1)).astype(np.int64)
        return Found(np.bincount(positions[chosen], minlength=len(keys)), blocks)

    def _read(self, at: int, count: int, dtype: type[np.generic]) -> NDArray[np.generic]:
        size = count * np.dtype(dtype).itemsize
        if self._map is not None:
            return self._map[at : at + size].view(dtype)
        if self._source is None:
            raise AssertionError(self.index)
        return np.frombuffer(self._source.read_at(size, at), dtype)


def _spread(first: Keys, counts: Keys) -> Keys:
    """Return the numbers of ranges, one after the other."""
    ends = np.cumsum(counts)
    numbers: Keys = np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - (ends - counts), counts)
    return numbers
