"""Proofs of least height in a transitive relation: a path of edges, joined in a tree as flat as can be.

    t: p(X,Z) :- p(X,Y), p(Y,Z)     also with X != Z, and beside s: p(X,Y) :- p(Y,X)

Edges are the facts of `p` that are explicit or that other rules derive. A fact `p(a,z)` has as many instances
as there are facts between `a` and `z`, so they are not enumerated. A proof of height H joins the edges of a
path from `a` to `z` in a binary tree in which an edge of height h is at depth H-h at most. Such a tree exists
if blocks of 2**h, each at a multiple of its size, fit into 2**H one after the other (R. Yeung: Alphabetic
codes revisited, 1991). The position behind the last block is the length of the path; it grows with the
position before it, so Dijkstra's algorithm finds the shortest path. A symmetric step is best taken at an
edge: on a joined part it adds one to all edges below.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.api import EXPLICIT_FACTS
from zodiacedge.engine.semantics.expressions import compare
from zodiacedge.explain.instances import Join
from zodiacedge.language.ast import Atom, Comparison, Fact, Variable
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from zodiacedge.explain.instances import Instance, InstanceLookups, LookupRule
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.language.ast import Conjunct, Rule
    from zodiacedge.terms import Term

# The most edges between two terms that are looked up together; beyond them, layer by layer from one end.
_MOST_EDGES = 20_000
_FROM, _TO = Variable(".from"), Variable(".to")


class PathEdge(NamedTuple):
    """An edge of a path, with the height of its fact."""

    start: Term
    end: Term
    height: int


@dataclass(frozen=True, eq=False)
class Closure:
    """A transitive relation: its rules, and those that give it edges."""

    relation: str
    transitive: LookupRule
    symmetric: LookupRule | None
    edges: tuple[LookupRule, ...]

    @property
    def unequal(self) -> bool:
        """Whether only different ends are joined."""
        return any(isinstance(c, Comparison) for c in self.transitive.rule.body)

    def fact(self, start: Term, end: Term) -> Fact:
        """Return the fact of two ends."""
        return Fact(self.relation, (start, end))

    def joined(self, start: Term, middle: Term, end: Term) -> Instance | None:
        """Return the instance that joins two parts, or None if its ends may not be joined."""
        rule = self.transitive.rule
        if any(isinstance(c, Comparison) and not compare(start, c.operator, end) for c in rule.body):
            return None
        first, last = rule.head.args
        values = {first: start, last: end}
        return self.transitive.instance(tuple(values.get(v, middle) for v in self.transitive.variables))

    def turned(self, edge: PathEdge) -> Instance | None:
        """Return the symmetric instance of an edge, or None if there is none."""
        if self.symmetric is None:
            return None
        rule = self.symmetric.rule
        if any(
            isinstance(c, Comparison) and not compare(edge.end, c.operator, edge.start) for c in rule.body
        ):
            return None
        values = dict(zip(rule.head.args, (edge.end, edge.start), strict=True))
        return self.symmetric.instance(tuple(values[v] for v in self.symmetric.variables))


def recognise(relation: str, shapes: Sequence[LookupRule], graph: HyperGraph) -> Closure | None:
    """Return the closure that the rules of a relation define, or None if they have another shape."""
    if relation == RDF_TYPE:
        return None
    transitive = [shape for shape in shapes if _is_transitive(shape.rule)]
    if len(transitive) != 1:
        return None
    symmetric = [shape for shape in shapes if _is_symmetric(shape.rule)]
    others = [shape for shape in shapes if shape not in transitive and shape not in symmetric]
    node = graph.node_of(transitive[0].key).rules
    if len(symmetric) > 1 or any(shape.key in node or not _is_plain(shape) for shape in others):
        return None
    return Closure(relation, transitive[0], symmetric[0] if symmetric else None, tuple(others))


def _is_transitive(rule: Rule) -> bool:
    match rule.head.args:
        case (Variable() as first, Variable() as last) if first != last:
            pass
        case _:
            return False
    atoms = [c for c in rule.body if isinstance(c, Atom)]
    if len(atoms) != 2 or not _has_only_guard(rule, 3):
        return False
    if any(atom.relation != rule.head.relation or len(atom.args) != 2 for atom in atoms):
        return False
    for left, right in (atoms, atoms[::-1]):
        middle = left.args[1]
        if (
            isinstance(middle, Variable)
            and middle not in {first, last}
            and (left.args[0], right.args) == (first, (middle, last))
        ):
            return True
    return False


def _is_symmetric(rule: Rule) -> bool:
    match rule.head.args, rule.body[0]:
        case (Variable() as first, Variable() as last), Atom(relation=relation, args=args) if first != last:
            return relation == rule.head.relation and args == (last, first) and _has_only_guard(rule, 2)
    return False


def _has_only_guard(rule: Rule, most: int) -> bool:
    """Return whether a body has, beside its atoms, at most the comparison X != Y of the head's variables."""
    others = [c for c in rule.body if not isinstance(c, Atom)]
    return len(rule.body) <= most and all(
        isinstance(c, Comparison) and c.operator == "!=" and {c.left, c.right} == set(rule.head.args)
        for c in others
    )


def _is_plain(shape: LookupRule) -> bool:
    """Return whether a rule can be joined with both ends of its head."""
    return len(shape.head_variables) == 2 and not shape.computed and shape.aggregate is None


class Edges(NamedTuple):
    """Edges between two terms: explicit facts, instances of rules, and whether these are all."""

    explicit: Collection[Fact]
    instances: Sequence[Instance]
    complete: bool


def edges_between(closure: Closure, fact: Fact, instances: InstanceLookups) -> Edges:
    """Return the edges that a path between the ends of a fact can have, in one lookup per rule and end."""
    start, end = fact.args
    explicit: dict[Fact, None] = {}
    found: dict[tuple[str, object], Instance] = {}
    complete = True
    for source in (None, *closure.edges):
        for join, given in _joins(closure, source, start, end):
            rows, all_rows = instances.rows(join, [given], _MOST_EDGES)
            complete = complete and all_rows
            for row in rows:
                if source is None:
                    explicit[Fact(closure.relation, row)] = None
                else:
                    found[source.key, row] = source.instance(row)
    return Edges(explicit, list(found.values()), complete)


def _joins(
    closure: Closure, source: LookupRule | None, start: Term, end: Term
) -> Iterator[tuple[Join, tuple[Term, ...]]]:
    """Yield the lookups of edges: those between both ends, at the start, at the end, and the direct ones."""
    body, head, columns = _source(closure, source)
    before, after = Atom(closure.relation, (_FROM, head[0])), Atom(closure.relation, (head[1], _TO))
    name = ("edges", closure.relation, source.key if source else "")
    yield Join((*name, "between"), (*body, before, after), (_FROM, _TO), columns), (start, end)
    yield Join((*name, "start"), (*body, after), (head[0], _TO), columns), (start, end)
    yield Join((*name, "end"), (*body, before), (_FROM, head[1]), columns), (start, end)
    yield Join((*name, "direct"), body, head, columns), (start, end)


def _source(
    closure: Closure, source: LookupRule | None
) -> tuple[tuple[Conjunct, ...], tuple[Variable, Variable], tuple[Variable, ...]]:
    if source is None:
        ends = Variable(".start"), Variable(".end")
        return (Atom(EXPLICIT_FACTS + closure.relation, ends),), ends, ends
    first, last = (v for v in source.rule.head.args if isinstance(v, Variable))
    return source.body, (first, last), source.variables


def layers(closure: Closure, fact: Fact, instances: InstanceLookups, most: int) -> Iterator[Edges]:
    """Yield the edges that lead away from the start of a fact, layer by layer, until all are found."""
    start, end = fact.args
    seen = {start}
    frontier = [start]
    spent = 0
    while frontier and spent < most:
        explicit: dict[Fact, None] = {}
        found: list[Instance] = []
        complete = True
        for source in (None, *closure.edges):
            for join in _leaving(closure, source):
                rows, all_rows = instances.rows(join, [(term, end) for term in frontier], most)
                complete = complete and all_rows
                spent += len(rows)
                if source is None:
                    explicit.update(dict.fromkeys(Fact(closure.relation, row) for row in rows))
                else:
                    found += map(source.instance, rows)
        yield Edges(explicit, found, complete)
        reached = {term for edge in (*explicit, *(i.fact for i in found)) for term in edge.args}
        frontier = [term for term in reached if term not in seen]
        seen.update(frontier)


def _leaving(closure: Closure, source: LookupRule | None) -> Iterator[Join]:
    """Yield the lookups of edges that leave some terms, onward to the end of a path or straight to it."""
    body, head, columns = _source(closure, source)
    name = ("layer", closure.relation, source.key if source else "")
    for first, last in (head, head[::-1]) if closure.symmetric else (head,):
        onward = Atom(closure.relation, (last, _TO))
        yield Join((*name, first, "on"), (*body, onward), (first, _TO), columns)
        yield Join((*name, first, "there"), body, (first, last), columns)


def shortest_path(edges: Collection[PathEdge], start: Term, end: Term) -> list[PathEdge] | None:
    """Return the edges of the path between two terms that is joined in the flattest tree, or None."""
    leaving: dict[Term, list[PathEdge]] = {}
    for edge in edges:
        leaving.setdefault(edge.start, []).append(edge)
    reached: dict[Term, tuple[int, PathEdge]] = {}
    done: set[Term] = set()
    serial = 0
    waiting: list[tuple[int, int, Term]] = [(0, 0, start)]
    first = True
    while waiting:
        position, _, term = heapq.heappop(waiting)
        if not first and term in done:
            continue
        if not first and term == end:
            break
        if not first:
            done.add(term)
        first = False
        for edge in leaving.get(term, ()):
            following = _behind(position, edge.height)
            known = reached.get(edge.end)
            if known is None or following < known[0]:
                reached[edge.end] = following, edge
                serial += 1
                heapq.heappush(waiting, (following, serial, edge.end))
    if end not in reached:
        return None
    path = [reached[end][1]]
    while path[-1].start != start:
        path.append(reached[path[-1].start][1])
    return path[::-1]


def _behind(position: int, height: int) -> int:
    """Return the position behind a block of 2**height at the next multiple of its size."""
    return (-(-position >> height) + 1) << height


def joins_of(path: Sequence[PathEdge]) -> Iterator[tuple[int, int, int]]:
    """Yield how the edges of a path are joined, parts before the whole: first, middle and last position."""
    starts: list[int] = []
    position = 0
    for edge in path:
        position = _behind(position, edge.height)
        starts.append(position - (1 << edge.height))
    height = (position - 1).bit_length()
    yield from _parts(starts, 0, len(path), 0, height)


def _parts(
    starts: Sequence[int], first: int, last: int, base: int, level: int
) -> Iterator[tuple[int, int, int]]:
    while last - first > 1:
        level -= 1
        half = base + (1 << level)
        middle = next((n for n in range(first, last) if starts[n] >= half), last)
        if first < middle < last:
            yield from _parts(starts, first, middle, base, level)
            yield from _parts(starts, middle, last, half, level)
            yield first, middle, last
            return
        base = half if middle == first else base
