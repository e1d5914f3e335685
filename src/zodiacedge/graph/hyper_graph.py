"""The hyper rule dependency graph (HRDG): components of the rule dependency graph, in topological order.

A `HyperGraph` is a value. `update` removes and adds rules and returns a new graph with the lineage of its
nodes; if it refuses the change, nothing changes. Small changes go through a `GraphDraft`, rule by rule;
large ones recompute all components and compare.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from zodiacedge.graph.change import GraphChange, NodeLineage
from zodiacedge.graph.merge_split import GraphDraft, HyperNode
from zodiacedge.graph.patterns import carried
from zodiacedge.graph.rule_graph import RuleGraph, Walk
from zodiacedge.graph.stratify import check_stratified
from zodiacedge.language.unify import pattern_of, unify
from zodiacedge.util.cow_dict import CowDict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.graph.change import Fate
    from zodiacedge.language.ast import Atom, Fact, Predicate, Rule

# Adding a rule costs up to a pass over the node that it joins, a rebuild one pass over all rules.
_MAX_INCREMENTAL = 16
_INCREMENTAL_FRACTION = 64
# In smaller nodes, recomputing components is no slower than a test whether that is necessary.
_LARGE_NODE = 16


class Neighbours(NamedTuple):
    """The neighbours of a node by kind of edge, in topological order."""

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


class NodeDelta(NamedTuple):
    """Difference of two graphs: the nodes of the later one only, and of the earlier one only."""

    before: ref[HyperGraph]
    fresh: tuple[HyperNode, ...]
    former: tuple[HyperNode, ...]


@dataclass(frozen=True, eq=False)
class HyperGraph:
    """Rules, their hyper-nodes and the topological order; made by `build` or from `HyperGraph()`."""

    rules: RuleGraph = field(default_factory=RuleGraph)
    nodes: CowDict[int, HyperNode] = field(default_factory=CowDict)
    homes: CowDict[str, int] = field(default_factory=CowDict)
    """The id of each rule's node."""
    ranks: Sequence[int] = ()
    """All ranks in use, sorted."""
    next_id: int = 1
    delta: NodeDelta | None = None
    """Difference to the graph that it was updated from."""

    def _repr_svg_(self) -> str:
        """Return the picture of the graph for a notebook."""
        from zodiacedge.graph.draw.svg import to_svg  # noqa: PLC0415 - loads the layout library

        return to_svg(self)

    @classmethod
    def build(cls, rules: Mapping[str, Rule]) -> HyperGraph:
        """Return the graph of rules; ids increase from 1 in topological order."""
        return cls().update(rules)[0]

    def __len__(self) -> int:
        """Count the hyper-nodes."""
        return len(self.nodes)

    def __repr__(self) -> str:
        """Return the size only: graphs are large."""
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
        """Return the nodes with a rule that reads facts of this node."""
        nodes: tuple[set[int], set[int]] = (set(), set())
        for head in {self.rules.shapes[key].head for key in self.nodes[node].rules}:
            for reader, _, negative in self.rules.readers(head):
                nodes[negative].add(self.homes[reader])
        return self._neighbours(node, nodes)

    def readers(self, atom: Atom | Fact) -> Neighbours:
        """Return the nodes with a body atom that unifies with an atom."""
        nodes: tuple[set[int], set[int]] = (set(), set())
        for reader, _, negative in self.rules.readers(pattern_of(atom)):
            nodes[negative].add(self.homes[reader])
        return self._neighbours(None, nodes)

    def recursive(self, node: int) -> bool:
        """Whether the node's rules read their own facts."""
        rules = self.nodes[node].rules
        shape = self.rules.shapes[rules[0]]
        return len(rules) > 1 or any(unify(shape.head, p) for p in (*shape.positive, *shape.negative))

    def defines(self, node: int) -> tuple[Predicate, ...]:
        """Return the predicates of the node's heads, as users write them."""
        return tuple(dict.fromkeys(self.rule(key).head.predicate for key in self.nodes[node].rules))

    def edges(self) -> Iterator[Edge]:
        """Yield the hyper edges in topological order. They are not stored: their number may be quadratic."""
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
        """Return nodes and all nodes reachable from them, in topological order (Algorithm 4)."""
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
        """Return the graph without the removed rules and with the added ones, and the lineage of nodes.

        A rule in both lists is added. Adding a key that exists only changes how its rule is written;
        removing one that does not exist changes nothing. Raises StratificationProblem if a negative edge
        would be inside a node.
        """
        shapes = self.rules.shapes
        inserted = {key: rule for key, rule in added.items() if key not in shapes}
        deleted = dict.fromkeys(key for key in removed if key in shapes and key not in added)
        rewritten = {k: rule for k, rule in added.items() if k in shapes and shapes[k].rule != rule}
        rules = self.rules.renamed(rewritten) if rewritten else self.rules
        if not inserted and not deleted:
            graph = replace(self, rules=rules)
            return graph, GraphChange(self, graph, (), (), (), ())
        rules = rules.changed(inserted, deleted)
        draft = self._draft(rules, deleted, inserted)
        graph, lineages = self._settle(draft, inserted)
        dirty = self._ranked({self.homes[key] for key in deleted})
        dropped = tuple(node for node in dirty if all(key in deleted for key in node.rules))
        parents = {parent for line in lineages for parent in line.parents}
        delta = NodeDelta(
            ref(self),
            tuple(graph.nodes[line.node] for line in lineages),
            (*(self.nodes[parent] for parent in parents), *dropped),
        )
        graph = replace(graph, delta=delta)
        return graph, GraphChange(self, graph, tuple(inserted), tuple(deleted), lineages, dropped)

    def _draft(self, rules: RuleGraph, deleted: Collection[str], inserted: Collection[str]) -> GraphDraft:
        draft = GraphDraft(rules, self.nodes.copy(), self.homes.copy(), list(self.ranks))
        losses: dict[int, list[str]] = {}
        for key in deleted:
            losses.setdefault(self.homes[key], []).append(key)
        components = {node: self._components(rules, node, lost) for node, lost in losses.items()}
        groups = [group for node in components if len(components[node]) > 1 for group in components[node]]
        groups += [(key,) for key in inserted]
        # A first graph is built at once, however small: its nodes are then numbered in topological order.
        if not self.nodes or len(groups) > max(_MAX_INCREMENTAL, len(rules) // _INCREMENTAL_FRACTION):
            everything = rules.components(rules.shapes.keys())
            draft.replace_all((group, self._unchanged(group)) for group in everything)
            return draft
        for node, remaining in components.items():
            if len(remaining) == 1:
                draft.shrink(node, remaining[0])
            else:
                draft.drop(node)
        for group in groups:
            draft.insert(group)
        return draft

    def _components(self, rules: RuleGraph, node: int, lost: Collection[str]) -> list[tuple[str, ...]]:
        """Return the components of the remaining rules of a node."""
        rest = tuple(key for key in self.nodes[node].rules if key in rules.shapes)
        # A large node mostly stays connected without a rule, and that is quick to test.
        if len(lost) == 1 and len(rest) > _LARGE_NODE:
            shape = self.rules.shapes[next(iter(lost))]
            if rules.connected_without(shape, frozenset(rest)):
                return [rest]
        return rules.components(rest)

    def _unchanged(self, group: tuple[str, ...]) -> int | None:
        home = self.homes.get(group[0])
        return home if home is not None and self.nodes[home].rules == group else None

    def _settle(
        self, draft: GraphDraft, inserted: Collection[str]
    ) -> tuple[HyperGraph, tuple[NodeLineage, ...]]:
        """Check the new nodes, assign their ids, and return the graph with their lineage."""
        fresh = sorted((draft.nodes[node] for node in draft.fresh), key=lambda node: node.rank)
        origins = [Counter(self.homes[key] for key in node.rules if key not in inserted) for node in fresh]
        children = Counter(parent for origin in origins for parent in origin)
        ids, next_id = _assign_ids(origins, self.next_id)
        fates: list[Fate] = []
        for node, origin in zip(fresh, origins, strict=True):
            if not origin:
                fates.append("formed")
            elif len(origin) > 1 or origin.total() < len(node.rules):
                fates.append("merged")
            else:
                fates.append("split" if children[next(iter(origin))] > 1 else "shrunk")
        grown = [n for n, fate in zip(fresh, fates, strict=True) if fate in {"formed", "merged"}]
        check_stratified(draft.rules, [node.rules for node in grown])
        lineages = []
        for node, origin, fate, id_ in zip(fresh, origins, fates, ids, strict=True):
            del draft.nodes[node.id]
            new = tuple(key for key in node.rules if key in inserted)
            lineages.append(NodeLineage(id_, fate, tuple(sorted(origin)), node.rules, new))
        for node, id_ in zip(fresh, ids, strict=True):
            draft.nodes[id_] = replace(node, id=id_)
            draft.homes.update(dict.fromkeys(node.rules, id_))
        graph = HyperGraph(draft.rules, draft.nodes, draft.homes, draft.ranks, next_id)
        return graph, tuple(lineages)

    def _neighbours(self, node: int | None, nodes_by_sign: tuple[set[int], set[int]]) -> Neighbours:
        for nodes in nodes_by_sign:
            nodes.discard(-1 if node is None else node)
        positive, negative = (tuple(n.id for n in self._ranked(nodes)) for nodes in nodes_by_sign)
        return Neighbours(positive, negative)

    def _ranked(self, nodes: Iterable[int]) -> tuple[HyperNode, ...]:
        return tuple(sorted((self.nodes[node] for node in nodes), key=lambda node: node.rank))


def _assign_ids(origins: list[Counter[int]], next_id: int) -> tuple[list[int], int]:
    """Return an id for each new node: that of the parent with most rules in common, or an unused one."""
    claims = sorted(
        (-shared, parent, index) for index, origin in enumerate(origins) for parent, shared in origin.items()
    )
    ids: dict[int, int] = {}
    taken: set[int] = set()
    for _, parent, index in claims:
        if index not in ids and parent not in taken:
            ids[index] = parent
            taken.add(parent)
    for index in range(len(origins)):
        if index not in ids:
            ids[index] = next_id
            next_id += 1
    return [ids[index] for index in range(len(origins))], next_id
