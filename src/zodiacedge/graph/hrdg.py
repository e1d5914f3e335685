"""The hyper rule dependency graph: components of the rule dependency graph, in topological order.

A `HyperGraph` is a value. `update` takes rules out and in and returns a new graph, with what became
of each node; a change that it refuses has touched nothing. Small changes go through a `Draft`, rule by
rule; large ones take all components anew and compare.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from zodiacedge.graph.change import GraphChange, Lineage
from zodiacedge.graph.draft import Draft, HyperNode
from zodiacedge.graph.patterns import carried
from zodiacedge.graph.rdg import RuleGraph, Walk
from zodiacedge.graph.stratify import check_stratified
from zodiacedge.language.unify import pattern_of, unify
from zodiacedge.util.cow_dict import CowDict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.graph.change import Fate
    from zodiacedge.language.ast import Atom, Fact, Predicate, Rule

# One rule more costs up to a pass over the node it joins, a rebuild one pass over everything.
_FEW = 16
_SHARE = 64
# Below this, taking components outright is no dearer than asking first whether that is needed.
_LARGE = 16


class Neighbours(NamedTuple):
    """The nodes at the other end of a node's edges, in topological order."""

    positive: tuple[int, ...]
    negative: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        """Both kinds, each node once."""
        return tuple(dict.fromkeys(self.positive + self.negative))


class Edge(NamedTuple):
    """A hyper edge, with the predicates that carry it."""

    source: int
    target: int
    negative: bool
    via: tuple[Predicate, ...]


class Step(NamedTuple):
    """What is not the same in two graphs: the nodes that only the later one has, and only the earlier one."""

    before: ref[HyperGraph]
    fresh: tuple[HyperNode, ...]
    former: tuple[HyperNode, ...]


@dataclass(frozen=True, eq=False)
class HyperGraph:
    """Rules, their hyper-nodes, and the order of these. Make one with `build` or from `HyperGraph()`."""

    rules: RuleGraph = field(default_factory=RuleGraph)
    nodes: CowDict[int, HyperNode] = field(default_factory=CowDict)
    homes: CowDict[str, int] = field(default_factory=CowDict)
    """The id of each rule's node."""
    ranks: Sequence[int] = ()
    """All ranks in use, sorted."""
    next_id: int = 1
    step: Step | None = None
    """How it came from the graph before it."""

    @classmethod
    def build(cls, rules: Mapping[str, Rule]) -> HyperGraph:
        """Return the graph of some rules; ids count up from 1 in topological order."""
        return cls().update(rules)[0]

    def __len__(self) -> int:
        """Count the hyper-nodes."""
        return len(self.nodes)

    def __repr__(self) -> str:
        """Show the size only: graphs are large."""
        return f"<HyperGraph of {len(self.rules)} rules in {len(self.nodes)} hyper-nodes>"

    @cached_property
    def order(self) -> tuple[HyperNode, ...]:
        """All nodes in topological order."""
        return self._ranked(self.nodes)

    def rule(self, key: str) -> Rule:
        """Return a rule by its key."""
        return self.rules.shapes[key].rule

    def node_of(self, key: str) -> HyperNode:
        """Return the node that holds a rule."""
        return self.nodes[self.homes[key]]

    def successors(self, node: int) -> Neighbours:
        """Return the nodes with a rule that reads what this node derives."""
        found: tuple[set[int], set[int]] = (set(), set())
        for head in {self.rules.shapes[key].head for key in self.nodes[node].rules}:
            for reader, _, negative in self.rules.readers(head):
                found[negative].add(self.homes[reader])
        return self._neighbours(node, found)

    def predecessors(self, node: int) -> Neighbours:
        """Return the nodes with a rule that derives what this node reads."""
        shapes = [self.rules.shapes[key] for key in self.nodes[node].rules]
        reads = {p for s in shapes for p in s.positive}, {p for s in shapes for p in s.negative}
        positive, negative = (
            {self.homes[key] for body in bodies for key in self.rules.deriving(body)} for bodies in reads
        )
        return self._neighbours(node, (positive, negative))

    def readers(self, atom: Atom | Fact) -> Neighbours:
        """Return the nodes that have an atom which can match the given one."""
        found: tuple[set[int], set[int]] = (set(), set())
        for reader, _, negative in self.rules.readers(pattern_of(atom)):
            found[negative].add(self.homes[reader])
        return self._neighbours(None, found)

    def recursive(self, node: int) -> bool:
        """Whether the node's rules can feed each other or themselves."""
        rules = self.nodes[node].rules
        shape = self.rules.shapes[rules[0]]
        return len(rules) > 1 or any(unify(shape.head, p) for p in (*shape.positive, *shape.negative))

    def defines(self, node: int) -> tuple[Predicate, ...]:
        """Return the predicates of the node's heads, as people see them."""
        return tuple(dict.fromkeys(self.rule(key).head.predicate for key in self.nodes[node].rules))

    def edges(self) -> Iterator[Edge]:
        """Yield the hyper edges in topological order. There may be very many: they are not stored."""
        for node in self.order:
            via: dict[tuple[int, bool], dict[Predicate, None]] = {}
            for head in dict.fromkeys(self.rules.shapes[key].head for key in node.rules):
                for body in self.rules.bodies.unifying(head):
                    predicate = carried(head, body)
                    for negative, readers in enumerate((self.rules.positive, self.rules.negative)):
                        for reader in readers[body]:
                            via.setdefault((self.homes[reader], bool(negative)), {})[predicate] = None
            for target, negative in sorted(via, key=lambda edge: (self.nodes[edge[0]].rank, edge[1])):
                if target != node.id:
                    yield Edge(node.id, target, negative, tuple(via[target, negative]))

    def plan(self, starts: Iterable[int]) -> tuple[HyperNode, ...]:
        """Return the given nodes and all that they lead to, in topological order (Algorithm 4)."""
        seen = set(starts)
        waiting = list(seen)
        walk = Walk(self.rules)
        while waiting:
            for key in walk.forward(self.nodes[waiting.pop()].rules):
                home = self.homes[key]
                if home not in seen:
                    seen.add(home)
                    waiting.append(home)
        return self._ranked(seen)

    def update(
        self, added: Mapping[str, Rule], removed: Iterable[str] = ()
    ) -> tuple[HyperGraph, GraphChange]:
        """Return the graph without the removed rules and with the added ones, and what became of nodes.

        A rule in both lists is added. A key that is there already changes nothing but the way its rule
        is written; one to remove that is not there, nothing at all. Raises StratificationProblem if a
        negative edge would stand inside a node.
        """
        shapes = self.rules.shapes
        come = {key: rule for key, rule in added.items() if key not in shapes}
        gone = dict.fromkeys(key for key in removed if key in shapes and key not in added)
        rewritten = {k: rule for k, rule in added.items() if k in shapes and shapes[k].rule != rule}
        rules = self.rules.renamed(rewritten) if rewritten else self.rules
        if not come and not gone:
            graph = replace(self, rules=rules)
            return graph, GraphChange(self, graph, (), (), (), ())
        rules = rules.changed(come, gone)
        draft = self._draft(rules, gone, come)
        graph, lineages = self._settle(draft, come)
        dirty = self._ranked({self.homes[key] for key in gone})
        dropped = tuple(node for node in dirty if all(key in gone for key in node.rules))
        parents = {parent for line in lineages for parent in line.parents}
        step = Step(
            ref(self),
            tuple(graph.nodes[line.node] for line in lineages),
            (*(self.nodes[parent] for parent in parents), *dropped),
        )
        graph = replace(graph, step=step)
        return graph, GraphChange(self, graph, tuple(come), tuple(gone), lineages, dropped)

    def _draft(self, rules: RuleGraph, gone: Collection[str], come: Collection[str]) -> Draft:
        draft = Draft(rules, self.nodes.copy(), self.homes.copy(), list(self.ranks))
        torn: dict[int, list[str]] = {}
        for key in gone:
            torn.setdefault(self.homes[key], []).append(key)
        parts = {node: self._parts(rules, node, lost) for node, lost in torn.items()}
        groups = [group for node in parts if len(parts[node]) > 1 for group in parts[node]]
        groups += [(key,) for key in come]
        # A first graph is taken whole, too, however small: its nodes are then numbered as rules came.
        if not self.nodes or len(groups) > max(_FEW, len(rules) // _SHARE):
            everything = rules.components(rules.shapes.keys())
            draft.replace_all((group, self._unaltered(group)) for group in everything)
            return draft
        for node, left in parts.items():
            if len(left) == 1:
                draft.shrink(node, left[0])
            else:
                draft.drop(node)
        for group in groups:
            draft.insert(group)
        return draft

    def _parts(self, rules: RuleGraph, node: int, lost: Collection[str]) -> list[tuple[str, ...]]:
        """Return the components of what is left of a node."""
        rest = tuple(key for key in self.nodes[node].rules if key in rules.shapes)
        # Most rules of a large node are not what holds it together, and that is soon seen.
        if len(lost) == 1 and len(rest) > _LARGE:
            shape = self.rules.shapes[next(iter(lost))]
            if rules.connected_without(shape, frozenset(rest)):
                return [rest]
        return rules.components(rest)

    def _unaltered(self, group: tuple[str, ...]) -> int | None:
        home = self.homes.get(group[0])
        return home if home is not None and self.nodes[home].rules == group else None

    def _settle(self, draft: Draft, come: Collection[str]) -> tuple[HyperGraph, tuple[Lineage, ...]]:
        """Check the new nodes, give them their ids, and say where they come from."""
        fresh = sorted((draft.nodes[node] for node in draft.fresh), key=lambda node: node.rank)
        shares = [Counter(self.homes[key] for key in node.rules if key not in come) for node in fresh]
        children = Counter(parent for share in shares for parent in share)
        names, next_id = _names(shares, self.next_id)
        fates: list[Fate] = []
        for node, share in zip(fresh, shares, strict=True):
            if not share:
                fates.append("formed")
            elif len(share) > 1 or share.total() < len(node.rules):
                fates.append("merged")
            else:
                fates.append("split" if children[next(iter(share))] > 1 else "shrunk")
        grown = [n for n, fate in zip(fresh, fates, strict=True) if fate in {"formed", "merged"}]
        check_stratified(draft.rules, [node.rules for node in grown])
        lineages = []
        for node, share, fate, name in zip(fresh, shares, fates, names, strict=True):
            del draft.nodes[node.id]
            new = tuple(key for key in node.rules if key in come)
            lineages.append(Lineage(name, fate, tuple(sorted(share)), node.rules, new))
        for node, name in zip(fresh, names, strict=True):
            draft.nodes[name] = replace(node, id=name)
            draft.homes.update(dict.fromkeys(node.rules, name))
        graph = HyperGraph(draft.rules, draft.nodes, draft.homes, draft.ranks, next_id)
        return graph, tuple(lineages)

    def _neighbours(self, node: int | None, found: tuple[set[int], set[int]]) -> Neighbours:
        for some in found:
            some.discard(-1 if node is None else node)
        positive, negative = (tuple(n.id for n in self._ranked(some)) for some in found)
        return Neighbours(positive, negative)

    def _ranked(self, nodes: Iterable[int]) -> tuple[HyperNode, ...]:
        return tuple(sorted((self.nodes[node] for node in nodes), key=lambda node: node.rank))


def _names(shares: list[Counter[int]], next_id: int) -> tuple[list[int], int]:
    """Return an id for each new node: that of the parent it shares most with, or one never used."""
    claims = sorted(
        (-shared, parent, place) for place, share in enumerate(shares) for parent, shared in share.items()
    )
    names: dict[int, int] = {}
    taken: set[int] = set()
    for _, parent, place in claims:
        if place not in names and parent not in taken:
            names[place] = parent
            taken.add(parent)
    for place in range(len(shares)):
        if place not in names:
            names[place] = next_id
            next_id += 1
    return [names[place] for place in range(len(shares))], next_id
