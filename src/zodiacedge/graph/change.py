"""What a change of rules did to the hyper-nodes, and which of them it concerns.

A `GraphChange` tells for each node that is not as it was where its rules come from. From it follow the
paper's directly impacted hyper-nodes (its Algorithms 2 and 3) and its execution plan (Algorithm 4).
How their facts are brought up to date is left to the maintenance.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.graph.draft import HyperNode
    from zodiacedge.graph.hrdg import HyperGraph

Fate = Literal["formed", "merged", "split", "shrunk"]


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a new node's rules come from.

    - formed: all its rules were added
    - merged: rules of several old nodes, or of one with added rules
    - split: a part of one old node, whose rules now stand in several nodes
    - shrunk: what is left of one old node

    `parents` are ids in the old graph, `node` is an id in the new one. A node may carry on the id of
    one of its parents: of the one it shares most rules with.
    """

    node: int
    fate: Fate
    parents: tuple[int, ...]
    rules: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True)
class GraphChange:
    """The step from one graph to the next.

    `lineages` has a line per new or altered node, in topological order; every other node of the new
    graph was kept as it was, with its id. `dropped` are the old nodes none of whose rules is left.
    """

    before: HyperGraph = field(repr=False)
    after: HyperGraph = field(repr=False)
    added: tuple[str, ...]
    removed: tuple[str, ...]
    lineages: tuple[Lineage, ...]
    dropped: tuple[HyperNode, ...]

    @property
    def formed(self) -> tuple[Lineage, ...]:
        """Nodes of added rules only."""
        return self._of("formed")

    @property
    def merged(self) -> tuple[Lineage, ...]:
        """Nodes that join rules of several old nodes, or of one with added rules."""
        return self._of("merged")

    @property
    def split(self) -> tuple[Lineage, ...]:
        """Parts of old nodes that fell apart."""
        return self._of("split")

    @property
    def shrunk(self) -> tuple[Lineage, ...]:
        """Nodes that lost rules and stayed one node."""
        return self._of("shrunk")

    def kept(self) -> Iterator[HyperNode]:
        """Yield the nodes of the new graph that were in the old one with the same rules and id."""
        altered = {line.node for line in self.lineages}
        return (node for node in self.after.nodes.values() if node.id not in altered)

    def directly_impacted(self) -> tuple[HyperNode, ...]:
        """Return the new graph's directly impacted hyper-nodes (DIHN), in topological order.

        Added rules (Algorithm 2): the nodes they form, and the nodes that merged. Removed rules
        (Algorithm 3): what is left of the nodes that lost rules, and, where such a node was split or
        dropped, the old nodes that it led to, because the nodes they read from are no longer the same.

        The paper gives two examples, and the letter of Algorithm 3 fits only one of them. With its
        second loop over the dirty nodes, as it must be, it registers the successors of every dirty
        node. That is the r4 example: hn2 falls apart, and hn3 and hn4 are registered. In the r7 example
        hn2 only shrinks, the graph's structure stays, and the text says DIHN = {hn2} although hn3
        follows hn2; by the letter hn3 would be in it. Taking successors only where the structure
        changed fits both texts, and the deletion of r5-r7, too. The execution plan is the same under
        either reading: a successor of a node in the plan is in the plan.
        """
        found = {line.node for line in self.lineages}
        children = Counter(parent for line in self.lineages for parent in line.parents)
        unstable = [node.id for node in self.dropped]
        unstable += [parent for parent, count in children.items() if count > 1]
        for node in unstable:
            for successor in self.before.successors(node).all:
                # A successor that has children is found with them; another was kept or dropped.
                if successor in self.after.nodes and successor not in children:
                    found.add(successor)
        return tuple(sorted((self.after.nodes[node] for node in found), key=lambda node: node.rank))

    def plan(self) -> tuple[HyperNode, ...]:
        """Return the execution plan: all that the directly impacted nodes lead to, in order."""
        return self.after.plan(node.id for node in self.directly_impacted())

    def _of(self, fate: Fate) -> tuple[Lineage, ...]:
        return tuple(line for line in self.lineages if line.fate == fate)
