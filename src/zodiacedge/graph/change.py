"""The effect of a rule change on the hyper-nodes: their lineage, and the nodes to maintain.

A `GraphChange` has the lineage of each node that changed. From it follow the paper's directly impacted
hyper-nodes (DIHN, Algorithms 2 and 3) and its execution plan (Algorithm 4). The maintenance of their facts
is left to the engines.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.graph.merge_split import HyperNode

Fate = Literal["formed", "merged", "split", "shrunk"]


@dataclass(frozen=True, slots=True)
class NodeLineage:
    """The origin of a new node's rules.

    - formed: all its rules were added
    - merged: rules of several old nodes, or of one with added rules
    - split: some rules of one old node, whose rules are in several nodes now
    - shrunk: the remaining rules of one old node

    `parents` are ids in the old graph, `node` is an id in the new one. A node may have the id of a
    parent: of the one with most rules in common.
    """

    node: int
    fate: Fate
    parents: tuple[int, ...]
    rules: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True)
class GraphChange:
    """The step from one graph to the next.

    `lineages` has an entry per new or altered node, in topological order; all other nodes of the new graph
    are unchanged and keep their ids. `dropped` are the old nodes without remaining rules.
    """

    before: HyperGraph = field(repr=False)
    after: HyperGraph = field(repr=False)
    added: tuple[str, ...]
    removed: tuple[str, ...]
    lineages: tuple[NodeLineage, ...]
    dropped: tuple[HyperNode, ...]

    @property
    def formed(self) -> tuple[NodeLineage, ...]:
        """The nodes of added rules only."""
        return self._of("formed")

    @property
    def merged(self) -> tuple[NodeLineage, ...]:
        """The nodes with rules of several old nodes, or of one and added rules."""
        return self._of("merged")

    @property
    def split(self) -> tuple[NodeLineage, ...]:
        """The nodes with some of the rules of an old node that was split."""
        return self._of("split")

    def kept(self) -> Iterator[HyperNode]:
        """Yield the nodes of the new graph that the old one has with the same rules and id."""
        altered = {line.node for line in self.lineages}
        return (node for node in self.after.nodes.values() if node.id not in altered)

    def directly_impacted(self) -> tuple[HyperNode, ...]:
        """Return the new graph's directly impacted hyper-nodes (DIHN), in topological order.

        Added rules (Algorithm 2): the nodes they form, and the nodes that merged. Removed rules
        (Algorithm 3): the remains of nodes that lost rules, and, where such a node was split or dropped, its
        old successors, because the nodes they read from are no longer the same.

        The paper gives two examples, and the letter of Algorithm 3 fits only one of them. With its
        second loop over the dirty nodes, as it must be, it registers the successors of every dirty
        node. That is the r4 example: hn2 is split, and hn3 and hn4 are registered. In the r7 example
        hn2 only shrinks, the graph's structure stays, and the text says DIHN = {hn2} although hn3
        follows hn2; by the letter hn3 would be in it. Taking successors only where the structure
        changed fits both texts, and the deletion of r5-r7, too. The execution plan is the same under
        either reading: a successor of a node in the plan is in the plan.
        """
        impacted = {line.node for line in self.lineages}
        children = Counter(parent for line in self.lineages for parent in line.parents)
        unstable = [node.id for node in self.dropped]
        unstable += [parent for parent, count in children.items() if count > 1]
        for node in unstable:
            for successor in self.before.successors(node).all:
                # A successor with children is impacted through them; any other was kept or dropped.
                if successor in self.after.nodes and successor not in children:
                    impacted.add(successor)
        return tuple(sorted((self.after.nodes[node] for node in impacted), key=lambda node: node.rank))

    def plan(self) -> tuple[HyperNode, ...]:
        """Return the execution plan: all nodes reachable from the directly impacted ones, in order."""
        return self.after.plan(node.id for node in self.directly_impacted())

    def _of(self, fate: Fate) -> tuple[NodeLineage, ...]:
        return tuple(line for line in self.lineages if line.fate == fate)
