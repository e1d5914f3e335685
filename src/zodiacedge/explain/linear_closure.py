"""Proofs of least height in a relation of paths that grow edge by edge: shortest paths.

    base: p(X,Y) :- e(X,Y)     step: p(X,Y) :- p(X,Z), e(Z,Y)     or step: p(X,Y) :- e(X,Z), p(Z,Y)

Where `e` has explicit facts only and `p` has none, the least height of p(a,z) is the number of edges of a
shortest path. A search from both ends, layer by layer, looks at few edges of a large graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from zodiacedge.engine.api import EXPLICIT_FACTS
from zodiacedge.explain.instances import Join
from zodiacedge.language.ast import Atom, Fact, Variable
from zodiacedge.language.unify import pattern_of
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zodiacedge.explain.budget import Budget
    from zodiacedge.explain.instances import Instance, InstanceLookups, LookupRule
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

_FROM, _TO = Variable(".from"), Variable(".to")


@dataclass(frozen=True, eq=False)
class LinearClosure:
    """A relation of paths: the relation of its edges, and its two rules."""

    edge: str
    base: LookupRule
    step: LookupRule
    grows_at_end: bool
    """Whether a step adds an edge at the end of a path; otherwise at its start."""

    def instances_of(self, path: Sequence[Term]) -> list[Instance]:
        """Return the instances that prove the fact of a path's ends, each after those that it needs."""
        last = len(path) - 1
        first = path[:2] if self.grows_at_end else path[-2:]
        found = [_instance(self.base, first[0], first[1])]
        if self.grows_at_end:
            found += [_instance(self.step, path[0], path[n], path[n - 1]) for n in range(2, last + 1)]
        else:
            found += [_instance(self.step, path[n], path[last], path[n + 1]) for n in range(last - 2, -1, -1)]
        return found

    def edges_of(self, path: Sequence[Term]) -> list[Fact]:
        """Return the edges of a path."""
        return [Fact(self.edge, ends) for ends in pairwise(path)]


def recognise_linear(
    relation: str, shapes: Sequence[LookupRule], graph: HyperGraph, instances: InstanceLookups
) -> LinearClosure | None:
    """Return the closure that the rules of a relation define, or None if they have another shape."""
    if len(shapes) != 2 or relation == RDF_TYPE:
        return None
    for base, step in (shapes, shapes[::-1]):
        edge, turn = _edge_of(base.rule), _turn_of(step.rule)
        if edge and turn and turn[0] == edge != relation:
            pattern = pattern_of(Atom(edge, (_FROM, _TO)))
            if any(graph.rules.deriving(pattern)) or has_explicit(relation, instances):
                return None
            return LinearClosure(edge, base, step, turn[1])
    return None


def shortest_edges(
    closure: LinearClosure, start: Term, end: Term, instances: InstanceLookups, budget: Budget
) -> list[Term] | None:
    """Return the terms on a shortest path of at least one edge, or None if the budget ends."""
    # A path from a term back to itself has edges too, so the start does not count as reached.
    before: dict[Term, Term] = {}
    after: dict[Term, Term | None] = {end: None}
    onward, backward = [start], [end]
    while onward and backward and not budget.look():
        ahead = not before or len(onward) <= len(backward)
        body = (Atom(closure.edge, (_FROM, _TO)),)
        given, frontier = (_FROM, onward) if ahead else (_TO, backward)
        join = Join(("edges of", closure.edge, ahead), body, (given,), (_FROM, _TO))
        rows, complete = instances.rows(join, [(term,) for term in frontier], budget.left)
        budget.spend(len(rows))
        if not complete:
            return None
        reached: list[Term] = []
        for tail, head in rows:
            new, known = (head, before) if ahead else (tail, after)
            if new not in known:
                known[new] = tail if ahead else head
                reached.append(new)
        meeting = next((term for term in reached if term in (after if ahead else before)), None)
        if meeting is not None:
            return _through(meeting, start, before, after)
        onward, backward = (reached, backward) if ahead else (onward, reached)
    return None


def _through(
    meeting: Term, start: Term, before: dict[Term, Term], after: dict[Term, Term | None]
) -> list[Term]:
    path = [meeting, before[meeting]]
    while path[-1] != start:
        path.append(before[path[-1]])
    path.reverse()
    following = after[meeting]
    while following is not None:
        path.append(following)
        following = after[following]
    return path


def _instance(shape: LookupRule, start: Term, end: Term, middle: Term | None = None) -> Instance:
    values = dict(zip(shape.rule.head.args, (start, end), strict=True))
    return shape.instance(tuple(values.get(v, middle) for v in shape.variables))  # type: ignore[misc] # a middle


def _edge_of(rule: Rule) -> str | None:
    """Return the relation that a rule copies, or None if it does something else."""
    match rule.head.args, rule.body:
        case (Variable() as first, Variable() as last), (Atom(relation=relation, args=args),) if (
            first != last
        ):
            return relation if args == (first, last) else None
    return None


def _turn_of(rule: Rule) -> tuple[str, bool] | None:
    """Return the relation of the edge that a rule adds to a path, and whether it adds it at the end."""
    match rule.head.args, rule.body:
        case (Variable() as first, Variable() as last), (Atom() as left, Atom() as right) if first != last:
            for one, two in ((left, right), (right, left)):
                if len(one.args) != 2 or one.args[0] != first or two.args != (one.args[1], last):
                    continue
                middle = one.args[1]
                if not isinstance(middle, Variable) or middle in {first, last}:
                    continue
                if one.relation == rule.head.relation != two.relation:
                    return two.relation, True
                if two.relation == rule.head.relation != one.relation:
                    return one.relation, False
    return None


def has_explicit(relation: str, instances: InstanceLookups) -> bool:
    """Return whether a relation of pairs has explicit facts."""
    body = (Atom(EXPLICIT_FACTS + relation, (_FROM, _TO)),)
    rows, complete = instances.rows(Join(("any explicit", relation), body, (), (_FROM, _TO)), [()], 1)
    return bool(rows) or not complete
