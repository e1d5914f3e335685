"""Kernels that group triples: pairs by predicate, members by class."""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels.jit import kernel, load32, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put


@kernel
def group_of(triples: int, row: int, membership: int, terms: int) -> int:
    """Return the group of a triple: its predicate's id, or for `rdf:type` its class's id after all ids."""
    predicate = load32(triples, 3 * row + 1)
    return terms + load32(triples, 3 * row + 2) if predicate == membership else predicate


@kernel
def count_groups(
    triples: int, total: int, membership: int, terms: int, ranks: int, groups: int, sizes: int
) -> int:
    """List the groups in order of appearance, with their sizes; return their number.

    `ranks` has a zero for each possible group, and gets its position in the list, plus one.
    """
    count = 0
    for row in range(total):
        group = group_of(triples, row, membership, terms)
        rank = load32(ranks, group)
        if not rank:
            put(groups, count, group)
            put(sizes, count, 0)
            count += 1
            rank = count
            store32(ranks, group, rank)
        put(sizes, rank - 1, get(sizes, rank - 1) + 1)
    return count


@kernel
def scatter_triples(
    triples: int, total: int, membership: int, terms: int, ranks: int, places: int, words: int
) -> None:
    """Write each triple's row into its group: subject and object, or the member. `places` advances."""
    for row in range(total):
        group = group_of(triples, row, membership, terms)
        rank = load32(ranks, group) - 1
        place = get(places, rank)
        store32(words, place, load32(triples, 3 * row))
        place += 1
        if group < terms:
            store32(words, place, load32(triples, 3 * row + 2))
            place += 1
        put(places, rank, place)
