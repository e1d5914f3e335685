"""Nodes of chain rules: binary relations composed along a path from one variable of the head to the other.

    p(X,Y) :- a(X,Z), b(Z,W), c(W,Y)        any number of atoms, each in either direction

Same generation, points-to analysis and reachability by a context-free grammar have this shape (M.
Yannakakis: Graph-Theoretic Methods in Database Theory, 1990). Relations are sets of bits, so that one
instruction derives up to 63 facts (S. Chaudhuri: Subcubic Algorithms for Recursive State Machines, 2008). A
chain is composed from its end: `b(Z,W), c(W,Y)` is a relation of its own, restricted to the terms that `a`
leads to. `chain_kernels` has the fixpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.evaluate import chain_kernels as K
from zodiacedge.engine.embedded.kernels.jit import MEMORY, words
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.engine.embedded.types import Flags, Ids
    from zodiacedge.language.ast import Rule

# The memory of all sets in bytes: at least, per row that the node reads, and at most.
_BYTES_AT_LEAST = 1 << 20
_BYTES_PER_ROW = 1 << 13
_MOST_BYTES = 1 << 27
# The pairs that two relations outside the node may have together, per row that the node reads.
_PRODUCT_AT_LEAST = 1 << 16
_PRODUCT_PER_ROW = 16
# A number per term is quicker than sorting, up to so many terms per row.
_TERMS_PER_ROW = 32
# The words that a kernel reads, and the rows that it writes, between two calls of `watch`.
_WORDS_AT_ONCE = 1 << 22
_ROWS_AT_ONCE = 1 << 21
_NO_PAIRS = np.zeros((0, 2), np.int32)


@dataclass(frozen=True, slots=True)
class Link:
    """An atom of a chain, and whether the chain leads from its second argument to its first."""

    atom: Atom
    back: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain rule: the relation of its head, and the atoms from the head's first argument to its second."""

    head: str
    links: tuple[Link, ...]


def chains_of(rules: Sequence[Rule]) -> tuple[Chain, ...]:
    """Return the chains of a recursive node, or none if a rule is no chain."""
    chains = [chain for rule in rules if (chain := _chain(rule)) is not None]
    heads = {chain.head for chain in chains}
    own = [any(link.atom.relation in heads for link in chain.links) for chain in chains]
    return tuple(chains) if len(chains) == len(rules) and all(own) else ()


def _chain(rule: Rule) -> Chain | None:
    atoms = [conjunct for conjunct in rule.body if isinstance(conjunct, Atom) and _is_edge(conjunct)]
    if len(atoms) < len(rule.body) or not _is_edge(rule.head):
        return None
    here, end = rule.head.args
    links: list[Link] = []
    while atoms:
        following = [atom for atom in atoms if here in atom.args]
        if len(following) != 1 or here == end:
            return None
        (atom,) = following
        atoms.remove(atom)
        back = atom.args[1] == here
        here = atom.args[0 if back else 1]
        links.append(Link(atom, back))
    return Chain(rule.head.relation, tuple(links)) if here == end else None


def _is_edge(atom: Atom) -> bool:
    """Whether an atom has two different variables, and is not about classes."""
    are_variables = all(isinstance(arg, Variable) for arg in atom.args)
    return atom.relation != RDF_TYPE and are_variables and len(atom.args) == len(set(atom.args)) == 2


def evaluate_chains(
    chains: Sequence[Chain],
    outside: Callable[[Atom], Ids],
    targets: Mapping[str, Table],
    watch: Callable[[int], None],
) -> bool:
    """Fill empty tables with the segment of a node; return False, and do nothing, if the sets would be large.

    Args:
        chains: The node's rules.
        outside: Returns the distinct rows that an atom reads outside the segment.
        targets: The tables by the relation of the head.
        watch: Called at intervals with the number of facts so far.
    """
    atoms = {link.atom.relation: link.atom for chain in chains for link in chain.links}
    rows = {chain.head: _NO_PAIRS for chain in chains}
    rows |= {relation: outside(atom) for relation, atom in atoms.items()}
    nodes = _Nodes(chains, rows)
    if not nodes.columns:
        return True
    program = _Compositions(chains, nodes)
    if not program.is_affordable(sum(map(len, rows.values()))):
        return False
    sets = _Sets(program, {number: nodes.rows[relation] for relation, number in program.own.items()})
    sets.run(watch)
    for relation, number in program.own.items():
        sets.write(number, targets[relation], lambda: watch(sum(map(len, targets.values()))))
    return True


class _Nodes:
    """The numbering of the terms that a node reads: those that may be second arguments come first."""

    def __init__(self, chains: Sequence[Chain], rows: Mapping[str, Ids]) -> None:
        """Take the rows outside the node, by relation."""
        terms, places = _distinct_terms(np.concatenate([pairs.ravel() for pairs in rows.values()]))
        placed: dict[str, Ids] = {}
        start = 0
        for relation, pairs in rows.items():
            placed[relation] = places[start : start + pairs.size].reshape(-1, 2)
            start += pairs.size
        second = _second_arguments(chains, placed, len(terms))
        order = np.argsort(~second, kind="stable")
        numbers = np.zeros(len(terms), np.int32)
        numbers[order] = np.arange(len(terms), dtype=np.int32)
        self.names = np.ascontiguousarray(terms[order], np.int32)
        self.columns = int(np.count_nonzero(second))
        self.rows = {relation: np.ascontiguousarray(numbers[pairs]) for relation, pairs in placed.items()}
        """The rows, as numbers."""


def _distinct_terms(terms: Ids) -> tuple[Ids, Ids]:
    """Return the distinct terms, and the place of each term among them."""
    last = int(terms.max(initial=0))
    if last > _TERMS_PER_ROW * len(terms):
        names, numbers = np.unique(terms, return_inverse=True)
        return names, numbers.astype(np.int32)
    places: Ids = np.zeros(last + 1, np.int32)
    places[terms] = 1
    distinct: Ids = np.flatnonzero(places).astype(np.int32)
    places[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, places[terms]


def _second_arguments(chains: Sequence[Chain], rows: Mapping[str, Ids], terms: int) -> Flags:
    """Return flags of the terms that may be members of a set."""
    own = {chain.head for chain in chains}
    known: dict[tuple[str, int], Flags] = {}
    for relation, pairs in rows.items():
        for column in (0, 1):
            flags = known[relation, column] = np.zeros(terms, np.bool_)
            flags[pairs[:, column]] = True
    grew = True
    while grew:
        grew = False
        for chain in chains:
            first, last = chain.links[0], chain.links[-1]
            ends = ((0, first.atom.relation, int(first.back)), (1, last.atom.relation, int(not last.back)))
            for column, relation, given in ends:
                flags = known[chain.head, column]
                missing = known[relation, given] & ~flags
                if missing.any():
                    flags |= missing
                    grew = True
    transposed = {chain.links[-1].atom.relation for chain in chains if chain.links[-1].back} & own
    second: Flags = np.any([known[p, 1] for p in own] + [known[p, 0] for p in transposed], axis=0)
    return second


@dataclass(frozen=True, slots=True)
class _Lists:
    """For each term a list of terms: where it starts, and all lists one after the other."""

    starts: Ids
    targets: Ids

    @classmethod
    def of(cls, pairs: Ids, terms: int) -> _Lists:
        """Return the second columns of pairs by their first columns."""
        order = np.argsort(pairs[:, 0], kind="stable")
        starts = np.zeros(terms + 1, np.int32)
        np.cumsum(np.bincount(pairs[:, 0], minlength=terms), out=starts[1:])
        # Never empty, so that it has an address.
        return cls(starts, np.append(pairs[order, 1], np.int32(0)))


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of the delta of a relation, of one of the kinds of `chain_kernels`."""

    kind: int
    target: int
    given: int | _Lists
    """The number of a matrix, or lists."""
    wanted: Ids | None = None
    back: int = 0
    """The number of a matrix that gets the transposed pairs."""


class _Compositions:
    """The relations of a node and how each is used; sets are allocated later.

    The relations that the node derives come first, then transposed ones and compositions inside chains.
    Matrices have the numbers of their relations; those that are negative are transposed by a join.
    """

    def __init__(self, chains: Sequence[Chain], nodes: _Nodes) -> None:
        """Take a node's rules, and the numbered rows outside it."""
        self.nodes = nodes
        self.own = {relation: n for n, relation in enumerate(dict.fromkeys(chain.head for chain in chains))}
        self.uses: list[list[_Use]] = [[] for _ in self.own]
        self.products: list[tuple[int, Ids, _Lists]] = []
        """Compositions of relations outside the node: a relation, pairs, and the lists that follow them."""
        self.backs = 0
        self._transposed: dict[str, int] = {}
        for chain in chains:
            self._add(chain)

    def _add(self, chain: Chain) -> None:
        *before, last = chain.links
        target = self.own[chain.head]
        if not before:
            kind = K.TRANSPOSE if last.back else K.COPY
            self.uses[self.own[last.atom.relation]].append(_Use(kind, target, 0))
            return
        right = self._last(last)
        for n in range(len(before) - 1, -1, -1):
            composed = self._new() if n else target
            wanted = self._led_to(before[n - 1]) if n else None
            self._compose(before[n], right, composed, wanted)
            right = composed

    def _new(self) -> int:
        self.uses.append([])
        return len(self.uses) - 1

    def _last(self, link: Link) -> int | _Lists:
        relation = link.atom.relation
        if relation not in self.own:
            return _Lists.of(self._pairs(link), len(self.nodes.names))
        if not link.back:
            return self.own[relation]
        if relation not in self._transposed:
            self._transposed[relation] = self._new()
            self.uses[self.own[relation]].append(_Use(K.TRANSPOSE, self._transposed[relation], 0))
        return self._transposed[relation]

    def _pairs(self, link: Link) -> Ids:
        """Return the rows of an atom outside the node, in the direction of the chain."""
        pairs = self.nodes.rows[link.atom.relation]
        return pairs[:, ::-1] if link.back else pairs

    def _led_to(self, link: Link) -> Ids | None:
        """Return flags of the terms that an atom outside the node leads to."""
        if link.atom.relation in self.own:
            return None
        flags = np.zeros(len(self.nodes.names), np.int32)
        flags[self._pairs(link)[:, 1]] = 1
        return flags

    def _compose(self, link: Link, right: int | _Lists, target: int, wanted: Ids | None) -> None:
        left = self.own.get(link.atom.relation)
        if left is None:
            pairs = self._pairs(link)
            if wanted is not None:
                pairs = pairs[wanted[pairs[:, 0]] > 0]
            if isinstance(right, _Lists):
                self.products.append((target, np.ascontiguousarray(pairs), right))
            else:
                lists = _Lists.of(pairs[:, ::-1], len(self.nodes.names))
                self.uses[right].append(_Use(K.TO_LIST, target, lists))
        elif isinstance(right, _Lists):
            kind = K.LIST_TO_DELTA if link.back else K.JOIN_LISTS
            self.uses[left].append(_Use(kind, target, right, wanted))
        elif link.back:
            self.uses[left].append(_Use(K.SET_TO_DELTA, target, right, wanted))
            self.uses[right].append(_Use(K.TO_SET, target, left, wanted))
        else:
            self.backs += 1
            self.uses[left].append(_Use(K.JOIN_SETS, target, right, wanted, -self.backs))
            self.uses[right].append(_Use(K.TO_SET, target, -self.backs))

    def is_affordable(self, read: int) -> bool:
        """Whether the sets, and the compositions outside the node, are small for so many rows read."""
        terms, columns = len(self.nodes.names), self.nodes.columns
        size = 3 * len(self.uses) * terms * _width(columns) + self.backs * columns * _width(terms)
        product = sum(int(np.diff(lists.starts)[pairs[:, 1]].sum()) for _, pairs, lists in self.products)
        most = min(_MOST_BYTES, _BYTES_AT_LEAST + _BYTES_PER_ROW * read)
        return 8 * size <= most and product <= _PRODUCT_AT_LEAST + _PRODUCT_PER_ROW * read


def _width(columns: int) -> int:
    return -(-columns // K.SET_BITS)


class _Sets:
    """The memory of a node's relations."""

    def __init__(self, program: _Compositions, base: Mapping[int, Ids]) -> None:
        """Allocate the sets, and fill those that the node reads first.

        Args:
            program: The relations, and how each is used.
            base: The rows outside the node of the relations that it derives, by number.
        """
        terms = self._terms = len(program.nodes.names)
        self._columns = program.nodes.columns
        self._kept: list[NDArray[np.int64] | Ids] = []
        self._names = program.nodes.names
        count = len(program.uses)
        self._own = len(program.own)
        self._relations = words(count * K.RELATION_WORDS)
        self._at = MEMORY.address(self._relations)
        self._backs = [self._matrix(self._columns, terms) for _ in range(program.backs)]
        uses = [use for some in program.uses for use in some]
        first = 0
        for number, some in enumerate(program.uses):
            self._relation(number, first, len(some), separate=number in base and len(base[number]) > 0)
            first += len(some)
        encoded = [word for use in uses for word in self._encoded(use)] or [0]
        frame = self._frame = words(K.FRAME_WORDS)
        frame[K.F_RELATIONS] = self._at
        frame[K.F_USES] = self._keep(np.array(encoded, np.int64))
        frame[K.F_ROWS] = terms
        frame[K.F_PLACES] = count * terms
        frame[K.F_QUEUE] = self._keep(np.zeros(count * terms, np.int32))
        frame[K.F_BUFFER] = self._matrix(2, self._columns)
        frame[K.F_NAMES] = MEMORY.address(self._names)
        for number, pairs in base.items():
            K.add_pairs(self._frame_at, self._record(number), self._keep(pairs.ravel()), len(pairs))
        for number, pairs, lists in program.products:
            addresses = map(self._keep, (pairs.ravel(), lists.starts, lists.targets))
            K.compose_lists(self._frame_at, self._record(number), len(pairs), *addresses)

    @property
    def _frame_at(self) -> int:
        return MEMORY.address(self._frame)

    def _keep(self, array: NDArray[np.int64] | Ids) -> int:
        self._kept.append(array)
        return MEMORY.address(array)

    def _record(self, number: int) -> int:
        return self._at + 8 * K.RELATION_WORDS * number

    def _matrix(self, rows: int, columns: int) -> int:
        return self._keep(self._new_matrix(rows, columns))

    def _new_matrix(self, rows: int, columns: int) -> NDArray[np.int64]:
        width = _width(columns)
        groups = _width(width)
        sets, summaries = self._keep(words(rows * width)), self._keep(words(rows * groups))
        return np.array([width, groups, sets, summaries, rows], np.int64)

    def _relation(self, number: int, first: int, uses: int, *, separate: bool) -> None:
        record = self._relations[number * K.RELATION_WORDS : (number + 1) * K.RELATION_WORDS]
        for at in (K.R_ALL, K.R_DELTA):
            record[at : at + K.MATRIX_WORDS] = self._new_matrix(self._terms, self._columns)
        if separate:
            record[K.R_DERIVED] = self._keep(words(self._terms * _width(self._columns)))
        record[K.R_QUEUED] = self._keep(np.zeros(self._terms, np.int32))
        record[K.R_USES], record[K.R_USE_COUNT] = first, uses

    def _encoded(self, use: _Use) -> tuple[int, ...]:
        if isinstance(use.given, _Lists):
            given, lists = self._keep(use.given.starts), self._keep(use.given.targets)
        else:
            given, lists = self._sets(use.given), 0
        wanted = 0 if use.wanted is None else self._keep(use.wanted)
        return use.kind, self._record(use.target), given, lists, wanted, self._sets(use.back)

    def _sets(self, number: int) -> int:
        """Return the address of a matrix: all pairs of a relation, or the transposed pairs of a join."""
        return self._record(number) if number >= 0 else self._backs[-number - 1]

    def count(self, number: int) -> int:
        """Return the number of facts derived of a relation."""
        return int(self._relations[number * K.RELATION_WORDS + K.R_COUNT])

    def run(self, watch: Callable[[int], None]) -> None:
        """Compose until no set grows."""
        while K.propagate(self._frame_at, _WORDS_AT_ONCE):
            watch(sum(map(self.count, range(self._own))))

    def write(self, number: int, target: Table, watch: Callable[[], None]) -> None:
        """Append the facts derived of a relation to an empty table."""
        total = self.count(number)
        target.reserve(total)
        block = max(1, self._terms * _ROWS_AT_ONCE // max(total, 1))
        for row in range(0, self._terms, block):
            rows, count, _ = target.open_rows()
            last = min(row + block, self._terms)
            after = K.write_sets(self._frame_at, self._record(number), row, last, rows, count)
            target.close_rows(int(after) - count)
            watch()
