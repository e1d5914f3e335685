"""The search for proofs of least height, backward from the facts that are asked for.

The instances that derive a fact are looked up level by level: first those of the asked facts, then those of
their premises, and so on. Heights are taken forward over the instances found so far. When `n` levels are
done, every proof of height `n` or less is known, so a fact whose height is at most `n` has its least height.
Facts whose least height is known are not followed further. InstanceLookups found once are kept, heights only
decrease, and the chosen instance of a fact has only premises of smaller heights: a proof never leans on
itself.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING

from zodiacedge.explain.closure import (
    PathEdge,
    edges_between,
    joins_of,
    layers,
    recognise,
    shortest_path,
)
from zodiacedge.explain.instances import Instance, LookupRule
from zodiacedge.explain.linear_closure import has_explicit, recognise_linear, shortest_edges
from zodiacedge.explain.look_ahead import patterns_about
from zodiacedge.language.ast import Atom, Fact, Variable
from zodiacedge.language.unify import pattern_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.explain.budget import Budget
    from zodiacedge.explain.closure import Closure, Edges
    from zodiacedge.explain.instances import InstanceLookups
    from zodiacedge.explain.linear_closure import LinearClosure
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

# The instances of a fact that are looked at before the others: one of explicit facts only ends the search.
_FIRST = 64
# A path of few edges is looked for first, so far and among so many edges.
_NEAR_LAYERS = 8
_NEAR_EDGES = 400


class LookupRules:
    """The rules of a version, as lookups read them."""

    def __init__(self, rules: Mapping[str, Rule], graph: HyperGraph) -> None:
        """Take rules by key and their graph."""
        self.rules = rules
        self.graph = graph
        self._shapes: dict[str, LookupRule] = {}
        self._closures: dict[str, Closure | None] = {}
        self._linear: dict[str, LinearClosure | None] = {}
        self._with_explicit: dict[str, bool] = {}

    def shape(self, key: str) -> LookupRule:
        """Return a rule as lookups read it."""
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = LookupRule(key, self.rules[key])
        return shape

    def deriving(self, fact: Atom | Fact) -> list[LookupRule]:
        """Return the rules whose heads match a fact or a pattern, in the order of their keys."""
        return [self.shape(key) for key in sorted(self.graph.rules.deriving(pattern_of(fact)))]

    def closure(self, fact: Fact) -> Closure | None:
        """Return the transitive relation that a fact belongs to, if its rules have that shape."""
        if len(fact.args) != 2:
            return None
        if fact.relation not in self._closures:
            self._closures[fact.relation] = recognise(fact.relation, self._of_pairs(fact), self.graph)
        return self._closures[fact.relation]

    def linear_closure(self, fact: Fact, instances: InstanceLookups) -> LinearClosure | None:
        """Return the relation of paths that a fact belongs to, if its rules have that shape."""
        if len(fact.args) != 2 or not instances.joins_explicit:
            return None
        if fact.relation not in self._linear:
            self._linear[fact.relation] = recognise_linear(
                fact.relation, self._of_pairs(fact), self.graph, instances
            )
        return self._linear[fact.relation]

    def _of_pairs(self, fact: Fact) -> list[LookupRule]:
        pattern = pattern_of(Atom(fact.relation, (Variable("X"), Variable("Y"))))
        return [self.shape(key) for key in sorted(self.graph.rules.deriving(pattern))]

    def has_explicit_edges(self, closure: Closure, instances: InstanceLookups) -> bool:
        """Return whether a transitive relation has explicit facts."""
        if closure.relation not in self._with_explicit:
            self._with_explicit[closure.relation] = has_explicit(closure.relation, instances)
        return self._with_explicit[closure.relation]


class Search:
    """A search for proofs in one version, with what it has found so far."""

    def __init__(self, shapes: LookupRules, instances: InstanceLookups, budget: Budget) -> None:
        """Start with nothing."""
        self._shapes = shapes
        self._instances = instances
        self.budget = budget
        self.explicit: set[Fact] = set()
        self.heights: dict[Fact, int] = {}
        """Heights of proofs found so far; those of `final` facts are the least."""
        self.chosen: dict[Fact, Instance] = {}
        """The instance that gives a derived fact its height."""
        self.final: set[Fact] = set()
        self.expanded: dict[Fact, list[Instance]] = {}
        """All instances of facts, as far as they were looked up."""
        self.least = True
        """Whether heights of final facts are the least, as far as the budget did not end."""
        self._asked: set[Fact] = set()
        self._uses: dict[Fact, list[Instance]] = {}
        self._few = False
        self._used: set[tuple[str, tuple[Term, ...]]] = set()

    def solve(self, roots: Collection[Fact]) -> None:
        """Find proofs of least height of facts that are there, or what the budget allows."""
        roots = list(dict.fromkeys(roots))
        if self._instances.looks_ahead:
            self._instances.look_ahead((), patterns_about(roots, self._shapes.deriving))
        self._look_at(roots)
        open_roots = [fact for fact in roots if fact not in self.final]
        level: dict[Fact, int] = {}
        frontier = open_roots
        levels = since = 0
        while frontier and not self.budget.ended:
            self._expand(frontier)
            level.update(dict.fromkeys(frontier, levels))
            levels += 1
            since += len(frontier)
            open_roots = [f for f in open_roots if self.heights.get(f, levels + 1) > levels]
            if not open_roots:
                break
            if since * 4 >= len(level):
                # The walk over all levels is as long as the work since the last one.
                level, frontier = self._live(open_roots, level, levels)
                since = 0
            else:
                frontier = [f for f in self._premises(frontier) if f not in self.final and f not in level]
        if not self.budget.ended:
            self.final.update(roots)

    def find_any(self, roots: Iterable[Fact], budget: Budget) -> None:
        """Find proofs of any height after the budget has ended: depth first, some instances of each fact.

        A fact is entered once, and an instance with a premise that was entered and has no proof is passed
        over; what is proved on the way may help later, so the walk is repeated while it proves anything.
        """
        self.budget, self._few = budget, True
        for root in roots:
            proved = -1
            while root not in self.heights and proved < len(self.heights) and not budget.ended:
                proved = len(self.heights)
                self._walk(root)

    def _walk(self, root: Fact) -> None:
        entered = {root}
        waiting = [(root, self._choices(root))]
        while waiting and root not in self.heights and not self.budget.look():
            fact, choices = waiting[-1]
            if fact in self.heights:
                waiting.pop()
                continue
            for instance in choices:
                unproved = [premise for premise in instance.premises if premise not in self.heights]
                if unproved and not any(premise in entered for premise in unproved):
                    # The same instance again, once its first premise is proved.
                    waiting[-1] = fact, chain((instance,), choices)
                    entered.add(unproved[0])
                    waiting.append((unproved[0], self._choices(unproved[0])))
                    break
            else:
                waiting.pop()

    def _choices(self, fact: Fact) -> Iterator[Instance]:
        """Return the instances of a fact, those with the fewest premises to prove first."""
        if fact not in self.expanded:
            self._expand([fact])
        found = self.expanded.get(fact, [])
        return iter(sorted(found, key=lambda i: sum(p not in self.heights for p in i.premises)))

    def _live(
        self, roots: Iterable[Fact], level: Mapping[Fact, int], levels: int
    ) -> tuple[dict[Fact, int], list[Fact]]:
        """Return the facts that an open root still depends on: those with a level, and the next ones."""
        live: dict[Fact, int] = {}
        frontier: dict[Fact, None] = {}
        waiting = list(roots)
        seen = set(waiting)
        while waiting:
            fact = waiting.pop()
            if fact in self.final:
                continue
            if fact not in level:
                frontier[fact] = None
                continue
            if self.heights.get(fact, levels + 1) <= levels - level[fact]:
                self.final.add(fact)
                continue
            live[fact] = level[fact]
            for premise in self._premises((fact,)):
                if premise not in seen:
                    seen.add(premise)
                    waiting.append(premise)
        return live, list(frontier)

    def _premises(self, facts: Iterable[Fact]) -> Iterator[Fact]:
        found = dict.fromkeys(p for f in facts for i in self.expanded.get(f, ()) for p in i.premises)
        yield from found

    def _expand(self, facts: Sequence[Fact]) -> None:
        """Look up all instances of facts, and take the heights that follow."""
        new = [fact for fact in facts if fact not in self.expanded and fact not in self.final]
        by_rule: dict[str, list[Fact]] = {}
        for fact in new:
            closure = self._shapes.closure(fact)
            if closure and self._instances.joins_explicit and self._join_edges(closure, fact):
                continue
            linear = self._shapes.linear_closure(fact, self._instances)
            if linear and self._follow_edges(linear, fact):
                continue
            self.expanded[fact] = []
            for shape in self._shapes.deriving(fact):
                by_rule.setdefault(shape.key, []).append(fact)
        if self._instances.looks_ahead:
            wanted = [(self._shapes.shape(key), by_rule[key]) for key in sorted(by_rule)]
            asked = chain.from_iterable(by_rule.values())
            self._instances.look_ahead(wanted, patterns_about(asked, self._shapes.deriving))
        for key in sorted(by_rule):
            if self.budget.look():
                break
            self._look_up(self._shapes.shape(key), by_rule[key])
        if self.budget.ended:
            # Facts without instances were not looked up, or not by all rules.
            for fact in new:
                if not self.expanded.get(fact):
                    self.expanded.pop(fact, None)

    def _look_up(self, shape: LookupRule, facts: list[Fact]) -> None:
        facts = [fact for fact in facts if self.heights.get(fact, 2) > 1]
        if not facts:
            return
        most = min(_FIRST * len(facts), self.budget.left)
        found, complete = self._instances.heads(shape, facts, self.budget, most)
        self._add(found)
        if complete or self._few:
            return
        facts = [fact for fact in facts if self.heights.get(fact, 2) > 1]
        if facts and not self.budget.ended:
            found, complete = self._instances.heads(shape, facts, self.budget, self.budget.left)
            self._add(found)
            if not complete:
                self.budget.ended = True

    def _add(self, instances: Iterable[Instance]) -> None:
        known = {(i.shape.key, i.row) for fact in {i.fact for i in instances} for i in self.expanded[fact]}
        new = [i for i in instances if (i.shape.key, i.row) not in known]
        for instance in new:
            self.expanded[instance.fact].append(instance)
        self._use(new)

    def _use(self, instances: Sequence[Instance]) -> None:
        """Take heights from instances, now and when those of their premises become smaller."""
        instances = [i for i in instances if (i.shape.key, i.row) not in self._used]
        self._used.update((i.shape.key, i.row) for i in instances)
        self._look_at(dict.fromkeys(premise for instance in instances for premise in instance.premises))
        for instance in instances:
            for premise in instance.premises:
                self._uses.setdefault(premise, []).append(instance)
        self.take_heights(instances)

    def _join_edges(self, closure: Closure, fact: Fact) -> bool:
        """Prove a fact of a transitive relation by a path of edges; return False if that is not possible."""
        start, end = fact.args
        if closure.unequal and start == end:
            return False
        path = self._near_path(closure, fact, _NEAR_LAYERS, _NEAR_EDGES)
        if path is None:
            found = edges_between(closure, fact, self._instances)
            if found.complete:
                path = shortest_path(self._measured(closure, found), start, end)
            else:
                path = self._near_path(closure, fact, None, self.budget.left)
        if path is None:
            return False
        joined = [
            closure.joined(path[first].start, path[middle].start, path[last - 1].end)
            for first, middle, last in joins_of(path)
        ]
        if None in joined:
            return False
        self.take_heights([instance for instance in joined if instance])
        self.final.add(fact)
        return True

    def _follow_edges(self, closure: LinearClosure, fact: Fact) -> bool:
        """Prove a fact of a relation of paths by a shortest path; return False if the budget ends."""
        start, end = fact.args
        path = shortest_edges(closure, start, end, self._instances, self.budget)
        if path is None:
            return False
        self._look_at(closure.edges_of(path))
        joined = closure.instances_of(path)
        self.take_heights(joined)
        self.final.update(instance.fact for instance in joined)
        return True

    def _near_path(
        self, closure: Closure, fact: Fact, most_layers: int | None, most_edges: int
    ) -> list[PathEdge] | None:
        """Return a path of the fewest edges, found layer by layer from its start.

        If the layers are limited, only a path that is certainly joined in the flattest tree is returned.
        """
        start, end = fact.args
        edges: dict[tuple[Term, Term], PathEdge] = {}
        for number, layer in enumerate(layers(closure, fact, self._instances, most_edges)):
            edges.update(((edge.start, edge.end), edge) for edge in self._measured(closure, layer))
            path = shortest_path(edges.values(), start, end)
            if path:
                lowest = 0 if self._shapes.has_explicit_edges(closure, self._instances) else 1
                if all(edge.height == lowest for edge in path):
                    return path
                # Further layers may hold a longer path of smaller heights.
                self.least = self.least and most_layers is not None
                return path if most_layers is None else None
            if not layer.complete or number + 1 == most_layers or self.budget.ended:
                return None
        return None

    def _measured(self, closure: Closure, found: Edges) -> list[PathEdge]:
        """Return edges with their heights, and the same edges turned where the relation is symmetric."""
        self.budget.spend(len(found.explicit) + len(found.instances))
        for fact in found.explicit:
            self._asked.add(fact)
            self.explicit.add(fact)
            self.final.add(fact)
            self.heights[fact] = 0
        self._look_at(dict.fromkeys(i.fact for i in found.instances))
        self._use(found.instances)
        derived = [i for i in found.instances if i.fact not in self.explicit]
        self.solve(dict.fromkeys(premise for i in derived for premise in i.premises))
        facts = dict.fromkeys((*found.explicit, *(i.fact for i in found.instances)))
        edges = [
            PathEdge(fact.args[0], fact.args[1], self.heights[fact]) for fact in facts if fact in self.heights
        ]
        turned = [instance for instance in map(closure.turned, edges) if instance]
        self._look_at(dict.fromkeys(instance.fact for instance in turned))
        self._use([instance for instance in turned if instance.fact not in self.explicit])
        ends = dict.fromkeys(instance.fact for instance in turned)
        more = [
            PathEdge(fact.args[0], fact.args[1], self.heights[fact]) for fact in ends if fact in self.heights
        ]
        return edges + more

    def _look_at(self, facts: Iterable[Fact]) -> None:
        """Find out which facts are explicit."""
        unknown = [fact for fact in facts if fact not in self._asked]
        if not unknown:
            return
        self._asked.update(unknown)
        for fact in self._instances.explicit_among(unknown):
            self.explicit.add(fact)
            self.final.add(fact)
            self.heights[fact] = 0

    def take_heights(self, instances: Iterable[Instance]) -> None:
        """Take the heights that follow from instances, and pass on those that become smaller."""
        waiting = deque(instances)
        heights = self.heights
        while waiting:
            instance = waiting.popleft()
            height = 0
            for premise in instance.premises:
                below = heights.get(premise)
                if below is None:
                    break
                height = max(height, below)
            else:
                known = heights.get(instance.fact)
                if known is None or height + 1 < known:
                    heights[instance.fact] = height + 1
                    self.chosen[instance.fact] = instance
                    waiting.extend(self._uses.get(instance.fact, ()))
