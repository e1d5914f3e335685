"""Copies of relations, evaluated many nodes at a time in one pass of a kernel.

A node that copies or projects a relation takes a few microseconds in a kernel, and ten times that in Python.
So such nodes are collected, in topological order, and evaluated together. A node may read tables that nodes
before it fill in the same pass: the number of their rows is bounded when they are added, and known when they
are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import MEMORY, kernel, load32, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.storage.hash_index import (
    build_hash_set,
    clear_bits,
    collect_terms,
    insert_rows,
)
from zodiacedge.engine.embedded.storage.table import SCRATCH, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

# A pass that may write so many rows, in some ten milliseconds, takes no further node.
_MOST_ROWS = 1 << 20

# A node, in words: the table that it fills, the number of tables that it reads, how its rows are kept
# distinct, the columns that it copies, and the tables.
_TARGET = 0
_COUNT = 1
_HOW = 2
_COLUMNS = 3
_AS_THEY_ARE = 0
_BY_BITS = 1
_BY_HASH_SET = 2


class CopyPass:
    """Nodes that copy relations, collected to be evaluated together."""

    def __init__(self) -> None:
        """Start with no nodes."""
        self._steps: list[int] = []
        self._targets: list[Table] = []
        self._kept: list[Sequence[Table]] = []
        # The most rows that a table of this pass may get, by the address of its record.
        self._bounds: dict[int, int] = {}
        self._rows = 0

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self._targets)

    @property
    def is_full(self) -> bool:
        """Whether the pass should run before further nodes are added."""
        return self._rows >= _MOST_ROWS

    def fills(self, table: Table) -> bool:
        """Whether a node of the pass fills a table."""
        return table.at in self._bounds

    def add(self, columns: tuple[int, ...], sources: Sequence[Table]) -> Table:
        """Add a node; return the table that it will fill.

        Args:
            columns: One column, or all columns of each table in any order.
            sources: The tables that the node reads. Each has its rows, or a node before this one fills it.
        """
        rows = [self._bounds.get(table.at, len(table)) for table in sources]
        bound = sum(rows)
        how = _AS_THEY_ARE
        target = Table(len(columns), bound)
        if len(sources) > 1:
            # The rows of the largest table are not looked up.
            largest = rows.index(max(rows))
            sources = [sources[largest], *sources[:largest], *sources[largest + 1 :]]
            how = _BY_HASH_SET
        if len(columns) == 1 and (len(sources) > 1 or any(table.arity > 1 for table in sources)):
            how = _BY_BITS
        elif how == _BY_HASH_SET:
            target.allocate_hash_set(bound)
        self._steps += (target.at, len(sources), how, *columns, *(table.at for table in sources))
        self._targets.append(target)
        self._kept.append(sources)
        self._bounds[target.at] = bound
        self._rows += bound
        return target

    def run(self, terms: int) -> None:
        """Fill the tables of all nodes; there are so many terms."""
        steps = np.array(self._steps, np.int64)
        bits = np.zeros(terms // 8 + 1, np.uint8)
        copy_relations(MEMORY.address(steps), len(self), MEMORY.address(bits), SCRATCH.address)
        for table in self._targets:
            table.settle()
            table.trim()


@kernel
def copy_relations(steps: int, nodes: int, bits: int, key: int) -> None:
    """Fill the table of one node after the other. All bits are clear before and afterwards."""
    at = 0
    for _ in range(nodes):
        target = get(steps, at + _TARGET)
        count = get(steps, at + _COUNT)
        how = get(steps, at + _HOW)
        arity = get(target, L.T_ARITY)
        sources = at + _COLUMNS + arity
        if how == _BY_BITS:
            for n in range(sources, sources + count):
                add_column(target, get(steps, n), get(steps, at + _COLUMNS), bits)
            clear_bits(bits, get(target, L.T_ROWS), get(target, L.T_COUNT))
        else:
            for n in range(sources, sources + count):
                source = get(steps, n)
                stage_rows(target, source, steps, at + _COLUMNS)
                rows = get(source, L.T_COUNT)
                if n == sources:
                    put(target, L.T_COUNT, rows)
                    if how == _BY_HASH_SET:
                        build_hash_set(target)
                else:
                    # A row is read before a row is written to its place.
                    staged = get(target, L.T_ROWS) + 4 * arity * get(target, L.T_COUNT)
                    insert_rows(target, staged, rows, key)
        at = sources + count


@kernel
def add_column(target: int, source: int, column: int, bits: int) -> None:
    """Append the terms of a column whose bits are clear, and set the bits."""
    rows = get(source, L.T_ROWS)
    total = get(source, L.T_COUNT)
    out = get(target, L.T_ROWS)
    count = collect_terms(bits, rows, total, get(source, L.T_ARITY), column, out, get(target, L.T_COUNT))
    put(target, L.T_COUNT, count)


@kernel
def stage_rows(target: int, source: int, steps: int, columns: int) -> None:
    """Write the columns of a table behind the last row of another table, and do not count them."""
    arity = get(target, L.T_ARITY)
    count = get(source, L.T_COUNT)
    rows = get(source, L.T_ROWS)
    width = get(source, L.T_ARITY)
    out = get(target, L.T_ROWS) + 4 * arity * get(target, L.T_COUNT)
    in_order = width == arity
    for column in range(arity):
        in_order = in_order and get(steps, columns + column) == column
    if in_order:
        for n in range(count * arity):
            store32(out, n, load32(rows, n))
        return
    for n in range(count):
        for column in range(arity):
            store32(out, n * arity + column, load32(rows, n * width + get(steps, columns + column)))
