"""Modular materialisation: a node whose rules have a known shape is evaluated by an algorithm for it.

The segment is that of the semi-naive fixpoint. Shapes are recognised from the rules, never from names; a node
with any further rule is evaluated by the rule machine.

P. Hu, B. Motik, I. Horrocks: Modular Materialisation of Datalog Programs. AAAI 2019.

    steps                      p(X,Y) :- p(X,Z), q(Z,Y)        also mirrored
    transitive                 p(X,Y) :- p(X,Z), p(Z,Y)        also with X != Y
    symmetric and transitive   and p(X,Y) :- p(Y,X)            also with X != Y
    copies                     p(X,Y) :- q(X,Y)                also q(Y,X), any arity, and one column of any
    inverses                   p(X,Y) :- q(Y,X) and q(X,Y) :- p(Y,X), any number in a circle
    chains                     p(X,Y) :- q(Z,X), p(Z,W), r(W,Y)    compositions of any length, see `chains`
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.evaluate.chains import Chain, chains_of, evaluate_chains
from zodiacedge.engine.embedded.evaluate.closure_kernels import (
    SET_BITS,
    class_pairs,
    count_by_sets,
    find_classes,
    order_nodes,
    reach,
    reach_by_sets,
    reach_unequal,
    widen_sets,
)
from zodiacedge.engine.embedded.kernels.jit import MEMORY, words
from zodiacedge.engine.embedded.storage.relation import stored_arguments
from zodiacedge.engine.embedded.storage.table import distinct_terms
from zodiacedge.language.ast import Atom, Comparison, Rule, Variable
from zodiacedge.language.unify import unifiable
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.relation import TableView
    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.language.ast import Argument


# The largest sizes up to which reached nodes are kept as sets of bits.
_MOST_SET_WORDS = 1 << 23
_MOST_SET_STEPS = 1 << 25
# The rows that a kernel writes between two calls of `watch`: a few milliseconds.
_ROWS_AT_ONCE = 1 << 21


class Shape(Enum):
    """The shapes of nodes with an algorithm of their own."""

    STEPS = "steps"
    STEPS_BACK = "steps back"
    TRANSITIVE = "transitive"
    TRANSITIVE_UNEQUAL = "transitive, X != Y"
    CLASSES = "symmetric and transitive"
    CLASSES_UNEQUAL = "symmetric and transitive, X != Y"
    COPY = "copy"
    INVERSES = "inverses"
    CHAINS = "chains"


UNEQUAL_SHAPES = frozenset({Shape.TRANSITIVE_UNEQUAL, Shape.CLASSES_UNEQUAL})


@dataclass(frozen=True, slots=True)
class Module:
    """A shape, the atom of the steps or of the copied relation, the copied columns, and the chains."""

    shape: Shape
    step: Atom
    columns: tuple[int, ...] = ()
    chains: tuple[Chain, ...] = ()


def recognise(rules: Sequence[Rule]) -> Module | None:
    """Return the module of a node's rules, or None if they have no known shape."""
    if len(rules) == 1:
        copy = _copied(rules[0])
        if copy:
            return copy
    return _closed(rules) or _chained(rules)


def _chained(rules: Sequence[Rule]) -> Module | None:
    chains = chains_of(rules)
    if not chains:
        return None
    joins = any(len(chain.links) > 1 for chain in chains)
    return Module(Shape.CHAINS if joins else Shape.INVERSES, rules[0].head, chains=chains)


def _closed(rules: Sequence[Rule]) -> Module | None:
    heads = {rule.head.relation for rule in rules}
    if len(heads) != 1 or len(rules) > 2 or RDF_TYPE in heads:
        return None
    symmetric = [rule for rule in rules if _is_symmetric(rule)]
    others = [rule for rule in rules if rule not in symmetric]
    if len(others) != 1 or len(symmetric) != len(rules) - 1:
        return None
    chain = _chain(others[0])
    if chain is None:
        return None
    shape, step = chain
    if symmetric:
        both = {Shape.TRANSITIVE: Shape.CLASSES, Shape.TRANSITIVE_UNEQUAL: Shape.CLASSES_UNEQUAL}
        if shape not in both:
            return None
        shape = both[shape]
    return Module(shape, step)


def evaluate(
    module: Module,
    outside: Callable[[Atom], Iterable[TableView]],
    target: Table,
    atom: Atom,
    watch: Callable[[int], None],
) -> None:
    """Fill an empty table with the segment of a module.

    Args:
        module: The module.
        outside: Returns the tables that an atom reads outside the segment.
        target: The table.
        atom: An atom of the segment's relation, all variables.
        watch: Called at intervals with the number of facts so far, and with their total before it is large.
    """
    if module.shape is Shape.COPY:
        _copy([part.table.rows for part in outside(module.step)], module.columns, target)
        return
    base = _distinct(outside(atom))
    if module.shape in {Shape.CLASSES, Shape.CLASSES_UNEQUAL}:
        _fill_classes(base, target, watch, equal=module.shape is Shape.CLASSES)
        return
    step = base
    if module.shape in {Shape.STEPS, Shape.STEPS_BACK}:
        step = _distinct(outside(module.step))
    back = module.shape is Shape.STEPS_BACK
    if back:
        base, step = base[:, ::-1], step[:, ::-1]
    _fill_reached(base, step, target, watch, unequal=module.shape is Shape.TRANSITIVE_UNEQUAL, back=back)


def evaluate_composed(
    module: Module,
    outside: Callable[[Atom], Iterable[TableView]],
    targets: Mapping[str, Table],
    watch: Callable[[int], None],
) -> bool:
    """Fill empty tables, by relation, with the segment of chains; return False if the sets would be large."""
    if module.shape is Shape.INVERSES:
        _fill_inverses(module.chains, outside, targets, watch)
        return True
    return evaluate_chains(module.chains, lambda atom: _distinct(outside(atom)), targets, watch)


def _fill_inverses(
    chains: Sequence[Chain],
    outside: Callable[[Atom], Iterable[TableView]],
    targets: Mapping[str, Table],
    watch: Callable[[int], None],
) -> None:
    """Fill tables with the rows outside the node that lead to them, as they are or inverted."""
    atoms = {chain.links[0].atom.relation: chain.links[0].atom for chain in chains}
    filled: dict[frozenset[tuple[str, bool]], Table] = {}
    for head, target in targets.items():
        sources = inverse_sources(chains, head)
        inverted = frozenset((relation, not back) for relation, back in sources)
        if inverted in filled:
            target.append_distinct(filled[inverted].rows[:, ::-1])
        else:
            pieces = [
                part.table.rows[:, ::-1] if back else part.table.rows
                for relation, back in sources
                for part in outside(atoms[relation])
            ]
            _copy(pieces, (0, 1), target)
            filled[frozenset(sources)] = target
        watch(sum(map(len, targets.values())))


def inverse_sources(chains: Sequence[Chain], head: str) -> tuple[tuple[str, bool], ...]:
    """Return the relations whose rows outside a node of inverses lead to a head, and whether inverted."""
    links = [(chain.head, chain.links[0]) for chain in chains]
    sources: dict[tuple[str, bool], None] = {}
    waiting = [(head, False)]
    while waiting:
        relation, back = waiting.pop()
        reached = [(link.atom.relation, back != link.back) for name, link in links if name == relation]
        waiting += [source for source in reached if source not in sources]
        sources |= dict.fromkeys(reached)
    return tuple(sources)


def _copied(rule: Rule) -> Module | None:
    if len(rule.body) != 1:
        return None
    only = rule.body[0]
    if not isinstance(only, Atom) or unifiable(rule.head, only):
        return None
    head, source = stored_arguments(rule.head), stored_arguments(only)
    if not head or 1 < len(head) < len(source):
        return None
    names, wanted = _names(source), _names(head)
    if len(names) < len(source) or len(wanted) < len(head) or not wanted.keys() <= names.keys():
        return None
    ordered = [*names]
    return Module(Shape.COPY, only, tuple(map(ordered.index, wanted)))


def _names(args: Sequence[Argument]) -> dict[str, None]:
    """Return the names of the distinct variables among arguments; strings are quicker to compare."""
    return {arg.name: None for arg in args if isinstance(arg, Variable)}


def _copy(parts: Sequence[Ids], columns: tuple[int, ...], target: Table) -> None:
    if len(columns) == 1 and (len(parts) > 1 or any(rows.shape[1] > 1 for rows in parts)):
        target.append_distinct(distinct_terms(parts, columns[0])[:, None])
        return
    for n, rows in enumerate(sorted(parts, key=len, reverse=True)):
        if n:
            target.insert(rows[:, columns])
        else:
            target.append_distinct(rows[:, columns])


def _is_symmetric(rule: Rule) -> bool:
    match rule.head.args, rule.body:
        case (Variable() as x, Variable() as y), (Atom(relation=r, args=args),):
            return x != y and r == rule.head.relation and args == (y, x)
        case _:
            return False


def _chain(rule: Rule) -> tuple[Shape, Atom] | None:
    head = rule.head
    atoms = [c for c in rule.body if isinstance(c, Atom)]
    tests = [c for c in rule.body if not isinstance(c, Atom)]
    if len(head.args) != 2 or len(atoms) != 2 or any(len(a.args) != 2 for a in atoms):
        return None
    x, y = head.args
    first = next((a for a in atoms if a.args[0] == x), None)
    second = next((a for a in atoms if a is not first), None)
    if first is None or second is None or not _is_path(x, first, second, y):
        return None
    unequal = len(tests) == 1 and _is_guard(tests[0], x, y)
    if tests and not unequal:
        return None
    own = [a.relation == head.relation for a in (first, second)]
    if all(own):
        return (Shape.TRANSITIVE_UNEQUAL if unequal else Shape.TRANSITIVE), first
    if unequal or not any(own) or RDF_TYPE in {first.relation, second.relation}:
        return None
    return (Shape.STEPS, second) if own[0] else (Shape.STEPS_BACK, first)


def _is_path(x: object, first: Atom, second: Atom, y: object) -> bool:
    z = first.args[1]
    names = (x, z, y)
    return all(isinstance(v, Variable) for v in names) and len(set(names)) == 3 and second.args == (z, y)


def _is_guard(test: object, x: object, y: object) -> bool:
    return isinstance(test, Comparison) and test.operator == "!=" and {test.left, test.right} == {x, y}


def _distinct(parts: Iterable[TableView]) -> Ids:
    tables = [part.table for part in parts if len(part.table)]
    if not tables:
        return np.zeros((0, 2), np.int32)
    if len(tables) == 1:
        return tables[0].rows
    packed = np.concatenate([_packed(table.rows) for table in tables])
    return _unpacked(np.unique(packed))


def _packed(rows: Ids) -> NDArray[np.int64]:
    return (rows[:, 0].astype(np.int64) << 32) | rows[:, 1]


def _unpacked(packed: NDArray[np.int64]) -> Ids:
    return np.stack((packed >> 32, packed & 0xFFFFFFFF), axis=1).astype(np.int32)


def _adjacency(rows: Ids, nodes: int) -> tuple[Ids, Ids]:
    order = np.argsort(rows[:, 0], kind="stable")
    starts = np.zeros(nodes + 1, np.int32)
    np.cumsum(np.bincount(rows[:, 0], minlength=nodes), out=starts[1:])
    return starts, np.ascontiguousarray(rows[order, 1])


def _fill_reached(
    base: Ids, step: Ids, target: Table, watch: Callable[[int], None], *, unequal: bool, back: bool
) -> None:
    names, numbers = np.unique(np.concatenate((base.ravel(), step.ravel())), return_inverse=True)
    local = numbers.astype(np.int32)
    nodes = len(names)
    if not len(base):
        return
    first = _adjacency(local[: base.size].reshape(-1, 2), nodes)
    further = _adjacency(local[base.size :].reshape(-1, 2), nodes)
    names = np.ascontiguousarray(names, np.int32)
    scratch = np.zeros(4 * nodes + 4, np.int32)
    arrays = (names, *first, *further, scratch)
    frame = words(16)
    frame[: len(arrays)] = [MEMORY.address(array) for array in arrays]
    frame[8] = nodes
    frame[9] = int(back)
    source = 0
    kernel = reach_unequal if unequal else reach
    set_words = -(-nodes // SET_BITS)
    if not unequal and nodes * set_words <= _MOST_SET_WORDS and len(step) * set_words <= _MOST_SET_STEPS:
        sets = words(nodes * set_words)
        frame[11] = MEMORY.address(sets)
        frame[12] = set_words
        _widen(frame, nodes, watch)
        kernel = reach_by_sets
        total = int(count_by_sets(MEMORY.address(frame)))
        watch(total)
        target.reserve(total + nodes)
    while source < nodes:
        if len(target) + nodes > target.capacity:
            target.reserve(max(nodes, len(target) // 2))
        rows, count, capacity = target.open_rows()
        limit = min(capacity, count + max(nodes, _ROWS_AT_ONCE))
        source = int(kernel(MEMORY.address(frame), source, rows, count, limit))
        target.close_rows(int(frame[10]))
        frame[10] = 0
        watch(len(target))


def _widen(frame: NDArray[np.int64], nodes: int, watch: Callable[[int], None]) -> None:
    order = np.zeros(nodes, np.int32)
    stack = np.zeros(nodes, np.int32)
    next_edge = np.zeros(nodes, np.int32)
    address = MEMORY.address(frame)
    order_nodes(address, MEMORY.address(order), MEMORY.address(stack), MEMORY.address(next_edge))
    while widen_sets(address, MEMORY.address(order)):
        watch(0)


def _fill_classes(base: Ids, target: Table, watch: Callable[[int], None], *, equal: bool) -> None:
    if not len(base):
        return
    names, numbers = np.unique(base.ravel(), return_inverse=True)
    local = np.ascontiguousarray(numbers.astype(np.int32))
    parents = np.arange(len(names), dtype=np.int32)
    find_classes(MEMORY.address(local), len(base), MEMORY.address(parents), len(names))
    order = np.argsort(parents, kind="stable")
    members = np.ascontiguousarray(names[order], np.int32)
    sizes = np.unique(parents, return_counts=True)[1].astype(np.int32)
    total = int((sizes.astype(np.int64) ** 2).sum())
    watch(total)
    target.reserve(total)
    # The progress of the kernel: the class, its first member, and the member whose pairs are next.
    state = words(3)
    while state[0] < len(sizes):
        rows, count, capacity = target.open_rows()
        written = class_pairs(
            MEMORY.address(members),
            MEMORY.address(sizes),
            len(sizes),
            rows,
            count,
            min(capacity, count + max(int(sizes.max()), _ROWS_AT_ONCE)),
            int(equal),
            MEMORY.address(state),
        )
        target.close_rows(int(written) - count)
        watch(len(target))
    if not equal:
        loops = base[base[:, 0] == base[:, 1]]
        target.append_distinct(np.ascontiguousarray(loops))
