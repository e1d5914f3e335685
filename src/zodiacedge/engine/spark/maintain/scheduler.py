"""What comes next in a change: as many of the waiting nodes as one step takes, and the way of that step.

A step is a region of nodes in one task, on all rows that they read or only on rows that were looked up; or
nodes in parts; or a chain of them by one plan; or one node by its way (`ways`). It is chosen by how much the
nodes read and are expected to derive (`sizes`). How a step is taken is left to `attempt`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile
from math import inf
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate import pipelined
from zodiacedge.engine.spark.evaluate.inputs import wanted_by
from zodiacedge.engine.spark.evaluate.seminaive import owners_of
from zodiacedge.engine.spark.evaluate.strategy import Strategy, reason, strategy_alone
from zodiacedge.engine.spark.maintain.estimates import Estimates
from zodiacedge.engine.spark.maintain.slice_search import Scope, look_up
from zodiacedge.engine.spark.storage.files import Relation
from zodiacedge.language.checks import body_atoms
from zodiacedge.plan.partition import CoPartitionedNodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from zodiacedge.engine.spark.maintain.change_state import ChangeState
    from zodiacedge.engine.spark.maintain.slice_search import LookedUp
    from zodiacedge.engine.spark.storage.files import Segment
    from zodiacedge.graph.draft import HyperNode
    from zodiacedge.language.ast import Rule
    from zodiacedge.plan.partition import PartitionedRelation


@dataclass(frozen=True)
class Step:
    """The nodes to come next: all in one task, on rows that were looked up or on all, or by another way."""

    nodes: Sequence[HyperNode]
    strategy: Strategy | None = None
    looked_up: LookedUp | None = None
    rows: int = 0
    """How many rows they read and are expected to derive."""


@dataclass
class Scheduler:
    """Chooses step after step, as a change stands by then."""

    standing: ChangeState
    # Nodes for which too much would have to be looked up.
    _not_to_look_up: set[int] = field(default_factory=set)

    def next(self, nodes: Sequence[HyperNode]) -> Step:
        """Return the step for the first of some nodes, in topological order."""
        options, before = self.standing.workspace.options, self.standing.before
        # One task maintains nodes from what there was.
        sizes = self._sizes((before.explicit_files, *before.segments.values()))
        fitting = rows = 0
        for node in nodes[:1] if options.strategy in {"partitioned", "rounds"} else nodes:
            sizes.add(self._rules(node), self.standing.segments.get(frozenset(node.rules)))
            if not options.gathers(sizes.total):
                break
            fitting, rows = fitting + 1, sizes.total
        if options.strategy == "gathered":
            return Step(nodes, rows=rows)
        large = sizes.total > min(options.gather_rows, options.look_up_from)
        looked_up = self._look_up(nodes) if large and options.strategy == "choose" else None
        if looked_up is not None:
            return Step(nodes[: looked_up.nodes], looked_up=looked_up, rows=sizes.total)
        if fitting < len(nodes) and options.strategy in {"choose", "partitioned"}:
            parts = self._in_parts(nodes)
            # A part is as quick as one task, and there are many at a time.
            if len(parts.nodes) > fitting:
                return Step(parts.nodes, rows=parts.rows) if options.gathers(parts.rows) else parts
        if fitting:
            return Step(nodes[:fitting], rows=rows)
        way = strategy_alone(self._rules(nodes[0]), options.strategy, sizes.total, options.gather_rows)
        return Step(self._chain(nodes) if way.name == "plans" else nodes[:1], way, rows=sizes.total)

    def stop_looking_up(self, nodes: Iterable[HyperNode]) -> None:
        """Take another way from now on: for these nodes, what can be looked up is not enough."""
        self._not_to_look_up.update(node.id for node in nodes)

    def _in_parts(self, nodes: Sequence[HyperNode]) -> Step:
        """Return the nodes that can be evaluated together in parts, with no other before them."""
        options = self.standing.workspace.options
        sizes = self._sizes()
        chosen = options.strategy == "choose"
        together = CoPartitionedNodes(self._size_of(sizes), options.gather_rows if chosen else inf)
        found = []
        for node in nodes:
            rules = self._rules(node)
            if together.take(rules, ready=self.standing.starts_from_nothing(node)):
                sizes.add(rules, None)
                found.append(node)
        why = reason(options.strategy, sizes.total, options.gather_rows)
        return Step(found, Strategy("partitioned", why, together.partitioning), rows=sizes.total)

    def _chain(self, nodes: Sequence[HyperNode]) -> Sequence[HyperNode]:
        """Return the nodes that one plan derives: the first, and those after it that can go with it."""
        length, sizes = pipelined.Length(), self._sizes()
        found: list[HyperNode] = []
        for node in nodes:
            rules = self._rules(node)
            large = sizes.alone(rules) > self.standing.workspace.options.gather_rows
            new = self.standing.is_new(frozenset(node.rules))
            fits = pipelined.only_joins(rules) and new and (large or not found)
            if not fits or not length.takes(rules):
                break
            sizes.add(rules, None)
            found.append(node)
        return found or nodes[:1]

    def _look_up(self, nodes: Sequence[HyperNode]) -> LookedUp | None:
        """Look up the rows that nodes need, as many of them as can be maintained on such rows alone."""
        kept = list(takewhile(self._can_be_looked_up, nodes))
        if not kept:
            return None
        standing = self.standing
        rules = [standing.rules_of(node) for node in kept]
        atoms = [
            atom for one in rules for rule in one.values() for atom in (rule.head, *body_atoms(rule.body))
        ]
        relations = {*wanted_by(atoms, standing.keys), *standing.touched_at_first}
        before = owners_of(standing.before.explicit_files, standing.before.segments)
        after = owners_of(standing.explicit_files, standing.segments)
        turn = standing.settings.turn
        found = look_up(Scope(standing.workspace, turn, rules, standing.keys, before, after, relations))
        if found is None or found.nodes < len(kept):
            self.stop_looking_up([kept[found.nodes if found else 0]])
        return found

    def _can_be_looked_up(self, node: HyperNode) -> bool:
        known = not self.standing.is_new(frozenset(node.rules))
        return known and self.standing.is_exact(node) and node.id not in self._not_to_look_up

    def _sizes(self, before: Iterable[Segment] = ()) -> Estimates:
        return Estimates(self.standing.explicit_files, self.standing.segments, self.standing.keys, before)

    def _size_of(self, sizes: Estimates) -> Callable[[PartitionedRelation], int]:
        def size(read: PartitionedRelation) -> int:
            key = None if read.member_of is None else self.standing.keys[read.member_of]
            return sizes.there(Relation(read.name, read.arity), key)

        return size

    def _rules(self, node: HyperNode) -> list[Rule]:
        return list(self.standing.rules_of(node).values())
