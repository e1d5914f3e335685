"""Kernels of the modules: the nodes that each node reaches, and the classes of a symmetric relation.

Nodes are terms, numbered from 0; adjacency is a list of starts and a list of targets. The kernels write pairs
of term ids into a table's rows. `follow_links` searches along the rows of tables instead.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import count_bits, kernel, load32, lowest_bit, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.storage.hash_index import (
    append_row,
    find_pair,
    find_pair_chain,
    find_row,
    has_room,
)

# The frame: addresses of names, of the first steps, of the further steps, and of scratch memory.
_NAMES = 0
_FIRST_STARTS = 1
_FIRST_TARGETS = 2
_STARTS = 3
_TARGETS = 4
_SCRATCH = 5
_NODES = 8
_BACK = 9
_WRITTEN = 10
_SETS = 11  # a set of nodes per node, as bits
_SET_WORDS = 12

# Bits per word of a set: words stay positive.
SET_BITS = 63

# A table of pairs as links: its record, the record of its index on the column where links start, the record
# of the pairs that are left out, or 0, and that column.
LINK_WORDS = 4


@kernel
def write_pair(rows: int, at: int, first: int, second: int, back: int) -> None:
    """Write one row; swap its columns if the relation was mirrored (`back`)."""
    store32(rows, 2 * at, second if back else first)
    store32(rows, 2 * at + 1, first if back else second)


@kernel
def enqueue(seen: int, queue: int, behind: int, node: int, stamp: int) -> int:
    """Append a node to a queue of `behind` nodes, unless it was seen; return the new number of nodes."""
    if load32(seen, node) == stamp:
        return behind
    store32(seen, node, stamp)
    store32(queue, behind, node)
    return behind + 1


@kernel
def reach(frame: int, source: int, rows: int, count: int, capacity: int) -> int:
    """Write, for each source, the nodes behind its first steps, over one or more further steps.

    Return the next source; the kernel stops when the free rows may not suffice for one more source.
    """
    names = get(frame, _NAMES)
    first_starts = get(frame, _FIRST_STARTS)
    first_targets = get(frame, _FIRST_TARGETS)
    starts = get(frame, _STARTS)
    targets = get(frame, _TARGETS)
    nodes = get(frame, _NODES)
    back = get(frame, _BACK)
    # `seen` gets the number of the source when a node is enqueued, `written` when its pair is written.
    seen = get(frame, _SCRATCH)
    written = seen + 4 * nodes
    queue = written + 4 * nodes
    at = count
    while source < nodes and at + nodes <= capacity:
        stamp = source + 1
        behind = 0
        for n in range(load32(first_starts, source), load32(first_starts, source + 1)):
            node = load32(first_targets, n)
            behind = enqueue(seen, queue, behind, node, stamp)
        ahead = 0
        while ahead < behind:
            node = load32(queue, ahead)
            ahead += 1
            for n in range(load32(starts, node), load32(starts, node + 1)):
                other = load32(targets, n)
                if load32(written, other) != stamp:
                    store32(written, other, stamp)
                    write_pair(rows, at, load32(names, source), load32(names, other), back)
                    at += 1
                    behind = enqueue(seen, queue, behind, other, stamp)
        source += 1
    put(frame, _WRITTEN, at - count)
    return source


@kernel
def order_nodes(frame: int, order: int, stack: int, next_edge: int) -> None:
    """Order nodes in postorder of a depth-first search: targets first, except along back edges of cycles.

    `stack` and `next_edge` have room for every node; `next_edge` is zero.
    """
    starts = get(frame, _STARTS)
    targets = get(frame, _TARGETS)
    nodes = get(frame, _NODES)
    done = 0
    for root in range(nodes):
        if load32(next_edge, root):
            continue
        # The next edge of a node to follow, counted from 1; 0 if the node was not visited.
        store32(stack, 0, root)
        store32(next_edge, root, 1)
        depth = 1
        while depth:
            node = load32(stack, depth - 1)
            edge = load32(starts, node) + load32(next_edge, node) - 1
            if edge == load32(starts, node + 1):
                store32(order, done, node)
                done += 1
                depth -= 1
                continue
            store32(next_edge, node, load32(next_edge, node) + 1)
            other = load32(targets, edge)
            if not load32(next_edge, other):
                store32(next_edge, other, 1)
                store32(stack, depth, other)
                depth += 1


@kernel
def widen_sets(frame: int, order: int) -> bool:
    """Add to each node's set its targets and the sets of its targets; return whether a set grew."""
    starts = get(frame, _STARTS)
    targets = get(frame, _TARGETS)
    sets = get(frame, _SETS)
    words = get(frame, _SET_WORDS)
    grew = False
    for n in range(get(frame, _NODES)):
        node = load32(order, n)
        own = sets + 8 * node * words
        for edge in range(load32(starts, node), load32(starts, node + 1)):
            other = load32(targets, edge)
            bit = 1 << (other % SET_BITS)
            old = get(own, other // SET_BITS)
            if not old & bit:
                put(own, other // SET_BITS, old | bit)
                grew = True
            theirs = sets + 8 * other * words
            for word in range(words):
                old = get(own, word)
                both = old | get(theirs, word)
                if both != old:
                    put(own, word, both)
                    grew = True
    return grew


@kernel
def count_by_sets(frame: int) -> int:
    """Return the number of pairs that `reach_by_sets` will write."""
    first_starts = get(frame, _FIRST_STARTS)
    first_targets = get(frame, _FIRST_TARGETS)
    sets = get(frame, _SETS)
    words = get(frame, _SET_WORDS)
    total = 0
    for source in range(get(frame, _NODES)):
        begin = load32(first_starts, source)
        end = load32(first_starts, source + 1)
        for word in range(words if end > begin else 0):
            bits = 0
            for n in range(begin, end):
                bits |= get(sets + 8 * load32(first_targets, n) * words, word)
            total += count_bits(bits)
    return total


@kernel
def reach_by_sets(frame: int, source: int, rows: int, count: int, capacity: int) -> int:
    """Write the pairs that `reach` writes, from the sets of reached nodes; return the next source."""
    names = get(frame, _NAMES)
    first_starts = get(frame, _FIRST_STARTS)
    first_targets = get(frame, _FIRST_TARGETS)
    nodes = get(frame, _NODES)
    back = get(frame, _BACK)
    sets = get(frame, _SETS)
    words = get(frame, _SET_WORDS)
    at = count
    while source < nodes and at + nodes <= capacity:
        begin = load32(first_starts, source)
        end = load32(first_starts, source + 1)
        name = load32(names, source)
        for word in range(words if end > begin else 0):
            bits = 0
            for n in range(begin, end):
                bits |= get(sets + 8 * load32(first_targets, n) * words, word)
            while bits:
                node = word * SET_BITS + lowest_bit(bits)
                bits &= bits - 1
                write_pair(rows, at, name, load32(names, node), back)
                at += 1
        source += 1
    put(frame, _WRITTEN, at - count)
    return source


@kernel
def reach_unequal(frame: int, source: int, rows: int, count: int, capacity: int) -> int:
    """Write, for each source, the pairs that a transitive rule guarded by X != Y derives.

    A pair of two different nodes is derived if a path between them has a loop at either end or a third node.
    Every reached node that is not a first step has such a path. For a first step y of x the third node is
    reachable from x, neither x nor y, and has an edge to y or back to x.
    """
    names = get(frame, _NAMES)
    starts = get(frame, _STARTS)
    targets = get(frame, _TARGETS)
    nodes = get(frame, _NODES)
    seen = get(frame, _SCRATCH)
    between = seen + 4 * nodes
    queue = between + 4 * nodes
    at = count
    while source < nodes and at + nodes <= capacity:
        stamp = source + 1
        behind = 0
        loop = False
        # The nodes with an edge back to the source: none (-1), one node, or several.
        returning = -1
        several = False
        for n in range(load32(starts, source), load32(starts, source + 1)):
            node = load32(targets, n)
            if node == source:
                loop = True
            else:
                behind = enqueue(seen, queue, behind, node, stamp)
        direct = behind
        ahead = 0
        while ahead < behind:
            node = load32(queue, ahead)
            ahead += 1
            for n in range(load32(starts, node), load32(starts, node + 1)):
                other = load32(targets, n)
                if other == source:
                    several = several or returning >= 0
                    returning = node
                else:
                    # The edge is a loop or starts at a third node.
                    store32(between, other, stamp)
                    behind = enqueue(seen, queue, behind, other, stamp)
        for n in range(behind):
            node = load32(queue, n)
            if (
                n >= direct
                or loop
                or several
                or (returning >= 0 and returning != node)
                or load32(between, node) == stamp
            ):
                write_pair(rows, at, load32(names, source), load32(names, node), 0)
                at += 1
        source += 1
    put(frame, _WRITTEN, at - count)
    return source


@kernel
def find_root(parents: int, node: int) -> int:
    """Return the least node of a class, and shorten the path to it."""
    while load32(parents, node) != node:
        store32(parents, node, load32(parents, load32(parents, node)))
        node = load32(parents, node)
    return node


@kernel
def find_classes(pairs: int, count: int, parents: int, nodes: int) -> None:
    """Unite the classes of each pair's nodes; at the end a node's parent is the least node of its class."""
    for n in range(count):
        first = find_root(parents, load32(pairs, 2 * n))
        second = find_root(parents, load32(pairs, 2 * n + 1))
        if first < second:
            store32(parents, second, first)
        elif second < first:
            store32(parents, first, second)
    for node in range(nodes):
        store32(parents, node, find_root(parents, node))


@kernel
def class_pairs(
    members: int, sizes: int, classes: int, rows: int, count: int, capacity: int, equal: int, state: int
) -> int:
    """Write the pairs of each class, those of a node with itself only if `equal`; return the new row count.

    The kernel stops where the pairs of one more member may not fit, and continues from `state` when called
    again.
    """
    number = get(state, 0)
    start = get(state, 1)
    i = get(state, 2)
    at = count
    while number < classes:
        size = load32(sizes, number)
        while i < start + size and at + size <= capacity:
            first = load32(members, i)
            for j in range(start, start + size):
                if equal or i != j:
                    store32(rows, 2 * at, first)
                    store32(rows, 2 * at + 1, load32(members, j))
                    at += 1
            i += 1
        if i < start + size:
            break
        start += size
        number += 1
    put(state, 0, number)
    put(state, 1, start)
    put(state, 2, i)
    return at


@kernel
def follow_links(links: int, count: int, nodes: int, reached: int, stop: int, key: int) -> int:
    """Hand the labels of terms on to the terms that links lead to, until no term gets a new label.

    `nodes` and `reached` are labelled terms, perhaps the same: the addresses of a table of terms, of their
    labels as bits, and of the labels handed on so far. Return 1 at the end, 0 if `reached` may be full, -1 if
    a link leads to the term `stop`.
    """
    terms = get(nodes, 0)
    labels = get(nodes, 1)
    handed = get(nodes, 2)
    others = get(reached, 0)
    more = True
    while more:
        more = False
        node = 0
        while node < get(terms, L.T_COUNT):
            fresh = get(labels, node) & ~get(handed, node)
            if fresh:
                more = True
                term = load32(get(terms, L.T_ROWS), node)
                for number in range(count):
                    here = links + 8 * LINK_WORDS * number
                    rows = get(get(here, 0), L.T_ROWS)
                    without = get(here, 2)
                    column = get(here, 3)
                    following = get(get(here, 1), L.I_NEXT)
                    row = find_pair_chain(get(here, 1), rows, column, term)
                    while row >= 0:
                        other = load32(rows, 2 * row + 1 - column)
                        if (
                            without == 0
                            or find_pair(without, load32(rows, 2 * row), load32(rows, 2 * row + 1)) < 0
                        ):
                            if other == stop:
                                return -1
                            put(key, 0, other)
                            found = find_row(others, key)
                            if found < 0:
                                if not has_room(others, 1):
                                    return 0
                                append_row(others, key, -1 - found)
                                found = get(others, L.T_COUNT) - 1
                            put(get(reached, 1), found, get(get(reached, 1), found) | fresh)
                        row = load32(following, row)
                put(handed, node, get(handed, node) | fresh)
            node += 1
    return 1
