"""The scheduler of a change: which of the waiting nodes the next step evaluates, and by which strategy.

A step is a region of nodes in one task, on all rows that they read or on a slice of them; or nodes that are
partitioned together; or one node by a plan or semi-naive rounds (`evaluate.strategy`). The scheduler decides
by how many rows the nodes read and are expected to derive (`Estimates`). `propagate` takes the step.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import takewhile
from math import inf
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate.inputs import read_by, wanted_by
from zodiacedge.engine.spark.evaluate.strategy import NodeStrategy, is_recursive, reason, strategy_alone
from zodiacedge.engine.spark.maintain.by_stamps import can_go_by_stamps, moved_rows
from zodiacedge.engine.spark.maintain.slice_search import Scope, look_up
from zodiacedge.engine.spark.storage.files import Relation, Segment
from zodiacedge.language.ast import Atom, body_atoms
from zodiacedge.plan.partition import CoPartitionedNodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from zodiacedge.engine.spark.maintain.change_state import ChangeState
    from zodiacedge.engine.spark.maintain.slice_search import LookedUp
    from zodiacedge.graph.merge_split import HyperNode
    from zodiacedge.language.ast import Rule
    from zodiacedge.plan.partition import PartitionedRelation
    from zodiacedge.terms import Term

# How many facts a recursive node without a segment is expected to derive from each that it reads.
_GROWTH = 10
# The search for the rows of a slice may take this share of the seconds that evaluating the nodes again takes.
_PATIENCE = 1 / 10
_LEAST_PATIENCE = 2.0
# A relation, or a class of it.
_Source = tuple[Relation, "int | None"]


@dataclass(frozen=True)
class ScheduledStep:
    """The nodes of the next step: without a strategy, in one task on a slice or on all rows."""

    nodes: Sequence[HyperNode]
    strategy: NodeStrategy | None = None
    looked_up: LookedUp | None = None
    by_stamps: bool = False
    """Whether the node is maintained by the stamps of its facts."""
    rows: int = 0
    """The estimate of the rows that they read and derive."""


@dataclass
class Scheduler:
    """Schedules the steps of a change."""

    state: ChangeState
    # Nodes that need too many rows for a slice.
    _not_sliced: set[int] = field(default_factory=set)

    def next(self, nodes: Sequence[HyperNode]) -> ScheduledStep:
        """Return the step for the first of the waiting nodes, given in topological order."""
        options, before = self.state.workspace.options, self.state.before
        # One task maintains nodes from the old version.
        estimates = self._estimates(before.read_owners.values())
        fitting = rows = 0
        for node in nodes[:1] if options.strategy in {"partitioned", "rounds"} else nodes:
            estimates.add(self._rules(node), self.state.segments.get(frozenset(node.rules)))
            if not options.gathers(estimates.total):
                break
            fitting, rows = fitting + 1, estimates.total
        if options.strategy == "gathered":
            return ScheduledStep(nodes, rows=rows)
        large = estimates.total > min(options.gather_rows, options.look_up_from)
        if large and options.strategy == "choose" and self._goes_by_stamps(nodes[0]):
            return ScheduledStep(nodes[:1], by_stamps=True, rows=estimates.total)
        looked_up = self._look_up(nodes) if large and options.strategy == "choose" else None
        if looked_up is not None:
            return ScheduledStep(nodes[: looked_up.nodes], looked_up=looked_up, rows=estimates.total)
        if fitting < len(nodes) and options.strategy in {"choose", "partitioned"}:
            step = self._partitioned(nodes)
            # A partition takes as long as one task, and many run in parallel.
            if len(step.nodes) > fitting:
                return ScheduledStep(step.nodes, rows=step.rows) if options.gathers(step.rows) else step
        if fitting:
            return ScheduledStep(nodes[:fitting], rows=rows)
        rules, most = self._rules(nodes[0]), options.gather_rows
        strategy = strategy_alone(rules, options.strategy, estimates.total, most)
        return ScheduledStep(nodes[:1], strategy, rows=estimates.total)

    def stop_slicing(self, nodes: Iterable[HyperNode]) -> None:
        """Stop looking up the rows of these nodes: they need too many."""
        self._not_sliced.update(node.id for node in nodes)

    def _partitioned(self, nodes: Sequence[HyperNode]) -> ScheduledStep:
        """Return the step of all nodes that can be partitioned together and wait for no other node."""
        options = self.state.workspace.options
        estimates = self._estimates()

        def size(read: PartitionedRelation) -> int:
            key = None if read.member_of is None else self.state.keys[read.member_of]
            return estimates.existing(Relation(read.name, read.arity), key)

        collected = CoPartitionedNodes(size, options.gather_rows if options.strategy == "choose" else inf)
        together = []
        for node in nodes:
            rules = self._rules(node)
            if collected.take(rules, ready=self.state.starts_from_scratch(node)):
                estimates.add(rules, None)
                together.append(node)
        why = reason(options.strategy, estimates.total, options.gather_rows)
        return ScheduledStep(
            together, NodeStrategy("partitioned", why, collected.partitioning), rows=estimates.total
        )

    def _look_up(self, nodes: Sequence[HyperNode]) -> LookedUp | None:
        """Look up the slice for the first nodes, as many as can be maintained on one."""
        kept = list(takewhile(self._can_be_sliced, nodes))
        if not kept:
            return None
        state = self.state
        rules = [state.rules_of(node) for node in kept]
        atoms = [
            atom for node in rules for rule in node.values() for atom in (rule.head, *body_atoms(rule.body))
        ]
        relations = {*wanted_by(atoms, state.keys), *state.changed_at_first}
        before, after = state.before.read_owners, state.owners
        patience, yield_point = self.patience(rules), state.settings.yield_point
        looked_up = look_up(
            Scope(state.workspace, yield_point, rules, state.keys, before, after, relations, patience)
        )
        if looked_up is None or looked_up.nodes < len(kept):
            self.stop_slicing([kept[looked_up.nodes if looked_up else 0]])
        return looked_up

    def patience(self, nodes: Iterable[Iterable[str]]) -> float:
        """Return the seconds of processor time that looking up rows of nodes may take."""
        again = sum(self.state.before.seconds.get(frozenset(node), inf) for node in nodes)
        return max(_LEAST_PATIENCE, again * _PATIENCE)

    def _can_be_sliced(self, node: HyperNode) -> bool:
        return self._can_be_looked_up(node) and not self._goes_by_stamps(node)

    def _can_be_looked_up(self, node: HyperNode) -> bool:
        known = not self.state.is_new(frozenset(node.rules))
        return known and self.state.is_exact(node) and node.id not in self._not_sliced

    def _goes_by_stamps(self, node: HyperNode) -> bool:
        """Whether a node's facts have stamps, and few of the rows that it reads moved."""
        if not self._can_be_looked_up(node) or not can_go_by_stamps(self.state, node):
            return False
        return moved_rows(self.state, node) <= self.state.workspace.options.driver_rows

    def _estimates(self, before: Iterable[Segment] = ()) -> Estimates:
        return Estimates(self.state.owners.values(), self.state.keys, before)

    def _rules(self, node: HyperNode) -> list[Rule]:
        return list(self.state.rules_of(node).values())


class Estimates:
    """Estimates how many rows a region of nodes reads and derives, node after node.

    A node with a segment is expected to derive as many facts again; any other, as many as the smallest atom
    of each rule matches, times a growth factor where it is recursive. The facts that a node is expected to
    derive count for the nodes after it.
    """

    def __init__(
        self,
        after: Iterable[Segment],
        keys: Mapping[Term, int],
        before: Iterable[Segment] = (),
    ) -> None:
        """Count the rows of all owners; of two versions, the larger count."""
        self._keys = keys
        self._existing = _counted(after) | _counted(before)
        self._expected: Counter[_Source] = Counter()
        self._expected_of_any_class = 0
        self._read: set[_Source] = set()
        self.total = 0

    def add(self, rules: Sequence[Rule], kept: Segment | None) -> None:
        """Add a node, with its segment if it was evaluated before."""
        for atom in (atom for rule in rules for atom in body_atoms(rule.body)):
            source = read_by(atom, self._keys)
            if source not in self._read:
                self._read.add(source)
                self.total += self._existing[source]
        if kept is not None:
            self.total += kept.rows
            return
        smallest = (
            min((self._size(atom) for atom in rule.body if isinstance(atom, Atom)), default=1)
            for rule in rules
        )
        derived = sum(smallest) * (_GROWTH if is_recursive(rules) else 1)
        self.total += derived
        for relation, member_of in {read_by(rule.head, self._keys) for rule in rules}:
            self._expected[relation, member_of] += derived
            if member_of is not None:
                self._expected[relation, None] += derived
            elif relation.typed:
                self._expected_of_any_class += derived

    def existing(self, relation: Relation, member_of: int | None) -> int:
        """Return the number of facts that all owners have of a relation, or of a class of it."""
        return self._existing[relation, member_of]

    def _size(self, atom: Atom) -> int:
        source = read_by(atom, self._keys)
        of_any = self._expected_of_any_class if source[1] is not None else 0
        return self._existing[source] + self._expected[source] + of_any


def _counted(owners: Iterable[Segment]) -> Counter[_Source]:
    counts: Counter[_Source] = Counter()
    for owner in owners:
        for relation, content in owner.contents.items():
            counts[relation, None] += content.rows
            for key, count in content.classes.items():
                counts[relation, key] += count
    return counts
