"""Propagation of a whole change, node by node in topological order.

A node is visited if its rules were not together before, or if one of its atoms matches a row that was
inserted or deleted. It is maintained from that delta and from the segments it inherits, or recomputed where
that is likely to be quicker.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from zodiacedge.engine.api import NodeRun, Progress, SegmentChange, refuse_errors
from zodiacedge.engine.embedded.evaluate.copies import CopyPass
from zodiacedge.engine.embedded.evaluate.modules import Shape
from zodiacedge.engine.embedded.evaluate.seminaive import NodeEvaluation
from zodiacedge.engine.embedded.kernels.jit import COMPILED
from zodiacedge.engine.embedded.maintain.incremental import NodeChange
from zodiacedge.engine.embedded.maintain.merge_split import Inheritance, node_changes
from zodiacedge.engine.embedded.maintain.patch_segment import can_patch, keep_equal_tables, patch_segment
from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
from zodiacedge.engine.embedded.maintain.shapes.closure import maintain_closure
from zodiacedge.engine.embedded.maintain.shapes.equivalence import maintain_equivalence
from zodiacedge.engine.embedded.maintain.shapes.inverses import maintain_inverses
from zodiacedge.engine.embedded.maintain.shapes.projection import is_quickly_maintained, maintain_projection
from zodiacedge.engine.embedded.maintain.shapes.windowed import is_counted, maintain_windowed
from zodiacedge.engine.embedded.maintain.strategy import GIVEN_UP, QUICKER, SMALL, expected_seconds
from zodiacedge.engine.embedded.maintain.transition import NextVersion
from zodiacedge.engine.embedded.maintain.windowed_rows import WindowedRows
from zodiacedge.engine.embedded.storage.database import WINDOWS
from zodiacedge.engine.embedded.storage.relation import stored_arguments
from zodiacedge.engine.embedded.storage.segment import Segment
from zodiacedge.engine.embedded.versions.difference import SegmentDifference
from zodiacedge.engine.embedded.versions.draft import Draft, GaveUpError
from zodiacedge.engine.limits import Meter
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from zodiacedge.engine.api import Dropped, Settings
    from zodiacedge.engine.embedded.evaluate.seminaive import NodeResult
    from zodiacedge.engine.embedded.ingest.batch import EmbeddedFactDelta
    from zodiacedge.engine.embedded.maintain.merge_split import Successor
    from zodiacedge.engine.embedded.maintain.strategy import ElasticChoice
    from zodiacedge.engine.embedded.maintain.transition import OldVersion, RuleChange
    from zodiacedge.engine.embedded.maintain.windows import WindowMove
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.graph.merge_split import HyperNode
    from zodiacedge.language.ast import Argument, Rule

    Counted = SegmentChange | Callable[[], SegmentChange]

# The most times that the time limit of a node doubles.
_MOST_TRIES = 6
# A placeholder for a class that no rule mentions: only an atom of any class reads it.
_UNMENTIONED = IRI("")
# What a node that copies a relation takes beside its rows, in seconds, if it is recomputed by itself; and the
# rows that a pass copies in the time that it spends on a node.
_SECONDS_ALONE = 50e-6
_ROWS_OF_A_NODE = 1000


class Propagation:
    """One change under way."""

    def __init__(
        self,
        old: OldVersion,
        change: RuleChange,
        fact_delta: EmbeddedFactDelta,
        settings: Settings,
        strategy: ElasticChoice,
        readers: dict[Relation, tuple[int, ...]],
        windows: WindowMove,
    ) -> None:
        """Start from a version.

        Args:
            old: That version.
            change: The rules of the next version.
            fact_delta: The explicit facts that are inserted and deleted.
            settings: Limits, functions and progress.
            strategy: Decides which nodes are maintained and which are recomputed.
            readers: The nodes of the next version's graph that read a relation, as far as they are known.
            windows: How the windows around the clock move.
        """
        self._old, self.change = old, change
        self._fact_delta = fact_delta
        self._windows = windows
        self.strategy = strategy
        self.settings = settings
        self.next = NextVersion(old.facts, dict(old.dropped), readers)
        self._successors: Mapping[frozenset[str], Successor] = {}
        # New nodes that copy a relation, which are evaluated together: position, rules and segment.
        self._copies = CopyPass()
        self._copying: list[tuple[int, NodeRules, Segment]] = []

    def draft(self) -> Draft:
        """Visit the nodes in topological order; return the next version, not in force yet."""
        watch = _Watch(self.settings, Meter(self.settings.limits), len(self.change.graph.nodes))
        draft = Draft(self._old.store, self.settings.registry, watch.look, watch.step)
        try:
            self._propagate(draft, watch)
        except BaseException:
            # An unfinished draft cannot be continued.
            draft.discard()
            raise
        return draft

    @property
    def inserted_rows(self) -> Mapping[Relation, Ids]:
        """The rows of explicit facts that the change inserts."""
        return self._fact_delta.inserted

    @property
    def inserted(self) -> int:
        """The number of explicit facts that the change inserts."""
        return self._fact_delta.added

    def _propagate(self, draft: Draft, watch: _Watch) -> None:
        nodes, rules = self.change.graph.nodes, self.change.rules
        self._change_explicit(draft)
        self._windowed = WindowedRows(draft, self._windows)
        inheritance = Inheritance(draft, self._old.store, self._old.graph, rules)
        waiting = [] if self.change.graph is self._old.graph else self._form_nodes(inheritance)
        if not self.change.same_functions:
            waiting = [(node.rank, node.id) for node in nodes.values()]
        heapq.heapify(waiting)
        seen = {number for _, number in waiting}
        while True:
            for node in self._readers(draft) if len(seen) < len(nodes) else ():
                if node.id not in seen:
                    seen.add(node.id)
                    heapq.heappush(waiting, (node.rank, node.id))
            if not waiting:
                break
            node = nodes[heapq.heappop(waiting)[1]]
            node_rules = self._node_rules({key: rules[key] for key in node.rules})
            position = len(seen) - len(waiting) - 1
            # Where all nodes are visited, none is found late that must come before a collected node.
            if len(seen) == len(nodes) and self._collect(draft, position, node_rules):
                if self._copies.is_full:
                    self._copy(draft, watch)
                continue
            self._copy(draft, watch)
            watch.begin(position, node_rules)
            self.settings.yield_point.yield_to_waiters()
            self._visit(inheritance, node_rules, watch)
        self._copy(draft, watch)
        if seen:
            watch.finish(self.next.facts)

    def _change_explicit(self, draft: Draft) -> None:
        explicit, fact_delta = self._old.store.explicit, self._fact_delta
        for relation in {*fact_delta.inserted, *fact_delta.deleted}:
            if relation not in explicit.tables:
                self.next.explicit[relation] = fact_delta.add.tables[relation]
                continue
            overlay = draft.overlay(explicit, relation)
            if relation in fact_delta.deleted:
                overlay.remove(fact_delta.deleted[relation])
            if relation in fact_delta.inserted:
                overlay.add(fact_delta.inserted[relation])
        draft.settle(explicit)
        if len(self._windows.inserted) or len(self._windows.deleted):
            overlay = draft.overlay(self._old.store.windows, WINDOWS)
            overlay.remove(self._windows.deleted)
            overlay.add(self._windows.inserted)
            draft.settle(self._old.store.windows)
        if self.next.explicit:
            draft.add_segment(Segment(dict(self.next.explicit)))

    def _form_nodes(self, inheritance: Inheritance) -> list[tuple[int, int]]:
        """Hand the segments of removed nodes over; return rank and id of the new nodes."""
        store, graph, new = self._old.store, self.change.graph, self.next
        lineages, new.removed = node_changes(store, self._old.graph, graph)
        modules = self.strategy.policy.modules and self.change.same_functions
        inheritance.hand_over(lineages, new.removed, self._old.node_rules if modules else {})
        self._successors = inheritance.successors
        for keys in new.removed:
            new.facts -= len(store.segments[keys])
            self.strategy.estimate -= store.segments[keys].seconds
            for key in keys - self.change.rules.keys():
                new.dropped.pop(key, None)
        for keys, successor in self._successors.items():
            new.segments[keys] = successor.segment
            new.facts += len(successor.segment)
            self.strategy.estimate += successor.segment.seconds
        formed = (graph.node_of(next(iter(lineage.keys))) for lineage in lineages)
        return [(node.rank, node.id) for node in formed]

    def _readers(self, draft: Draft) -> Iterator[HyperNode]:
        """Yield the nodes that read relations with rows changed since the last call."""
        relations = dict.fromkeys(draft.changed.unread)
        draft.changed.unread.clear()
        for relation in relations:
            for number in self._readers_of(relation):
                yield self.change.graph.nodes[number]

    def _readers_of(self, relation: Relation) -> tuple[int, ...]:
        """Return the nodes that read a relation."""
        numbers = self.next.readers.get(relation)
        if numbers is None:
            args: tuple[Argument, ...] = tuple(Variable(f"V{n}") for n in range(relation.arity))
            member_of = self._old.store.terms.mentioned(relation.member_of)
            if relation.is_class:
                args = (*args, member_of or _UNMENTIONED)
            numbers = self.change.graph.readers(Atom(relation.name, args)).all
            # An unmentioned class is not cached: a rule may mention it later.
            if not relation.is_class or member_of:
                self.next.readers[relation] = numbers
        return numbers

    def _is_read(self, keys: frozenset[str], segment: Segment) -> bool:
        """Whether other nodes read a segment of a node."""
        own = self.change.graph.homes[next(iter(keys))]
        return any(number != own for relation in segment.tables for number in self._readers_of(relation))

    def _node_rules(self, rules: Mapping[str, Rule]) -> NodeRules:
        # A profile is valid for the same functions and for rules that were written the same way.
        keys = frozenset(rules)
        known = self._old.node_rules.get(keys) if self.change.same_functions else None
        if known is None or any(known.rules[key] is not rule for key, rule in rules.items()):
            known = self.next.node_rules[keys] = NodeRules(rules, self._profiles_of_parents(keys))
        return known

    def _profiles_of_parents(self, keys: frozenset[str]) -> list[NodeRules]:
        successor = self._successors.get(keys)
        if successor is None or not self.change.same_functions:
            return []
        profiles = map(self._old.node_rules.get, successor.lineage.parents)
        return [profile for profile in profiles if profile is not None]

    # Nodes that copy a relation.

    def _collect(self, draft: Draft, position: int, node_rules: NodeRules) -> bool:
        """Collect a new node that copies a relation, and add its segment; return whether it does."""
        module = node_rules.module if self.strategy.policy.modules and COMPILED else None
        if module is None or module.shape is not Shape.COPY:
            return False
        if node_rules.keys in self._old.store.segments or node_rules.keys in self._successors:
            return False
        width = len(stored_arguments(module.step))
        sources = [
            table
            for relation in draft.relations(module.step)
            for table in draft.current(relation)
            if len(table) or self._copies.fills(table)
        ]
        if any(table.arity != width for table in sources):
            return False
        (rule,) = node_rules.rules.values()
        target = self._copies.add(module.columns, sources)
        segment = Segment({draft.store.filled_by(rule.head, pairs=False): target})
        draft.add_unfilled(segment)
        self._copying.append((position, node_rules, segment))
        return True

    def _copy(self, draft: Draft, watch: _Watch) -> None:
        """Evaluate the collected nodes."""
        if not self._copying:
            return
        start, begun = time.perf_counter(), time.thread_time()
        self._copies.run(len(draft.store.dictionary))
        worked, passed = time.thread_time() - begun, time.perf_counter() - start
        rows = [len(segment) + _ROWS_OF_A_NODE for _, _, segment in self._copying]
        whole = sum(rows)
        for (position, node_rules, segment), weight in zip(self._copying, rows, strict=True):
            draft.record_filled(segment)
            facts = len(segment)
            watch.passed(position, node_rules, facts)
            segment.seconds = worked * weight / whole + _SECONDS_ALONE
            gained = self._add_new(node_rules.keys, segment, {})
            seconds, strategy = passed * weight / whole, Shape.COPY.value
            self.next.runs.append(NodeRun(node_rules.labels, 1, facts, seconds, strategy, 0.0, facts, gained))
        watch.look(1)
        self._copies, self._copying = CopyPass(), []

    # One node.

    def _visit(self, inheritance: Inheritance, node_rules: NodeRules, watch: _Watch) -> None:
        draft, keys = inheritance.draft, node_rules.keys
        successor = self._successors.get(keys)
        before = successor.segment if successor else self._old.store.segments.get(keys)
        start = time.perf_counter()
        draft.derivations = 0
        self.strategy.expected = 0.0
        grown, why = (
            (None, "") if before is None else self._maintained(inheritance, node_rules, before, successor)
        )
        if before is not None and before.arrangements:
            # Without a part in this change they are no longer those of the bindings.
            draft.arranged(before)
        estimate = before.seconds if before is not None else 0.0
        if before is not None and grown is not None:
            self.next.facts += grown
            rounds, facts, strategy = watch.rounds, len(before) + grown, "maintained"
            expected = self.strategy.expected
            counted: Counted = _segment_change(draft, before, successor)
            if successor:
                self.strategy.estimate -= before.seconds
                before.seconds = expected_seconds(before.seconds, successor.inherited, facts)
                self.strategy.estimate += before.seconds
        else:
            result = self._evaluated(draft, node_rules, before, watch)
            rounds, facts = result.rounds, len(result.segment)
            strategy = result.module or "evaluated" if before is None else _recomputed(result.module, why)
            expected = estimate
            counted = self._install(draft, keys, result, before, successor, why)
            draft.derivations += result.derivations
        seconds = time.perf_counter() - start
        self.next.runs.append(
            NodeRun(
                node_rules.labels,
                rounds,
                facts,
                seconds,
                strategy,
                estimate,
                draft.derivations,
                counted,
                expected,
            )
        )
        watch.before += facts

    def _maintained(
        self, inheritance: Inheritance, node_rules: NodeRules, before: Segment, successor: Successor | None
    ) -> tuple[int | None, str]:
        """Maintain a node; return by how many facts it grows, or None and why it must be recomputed."""
        draft, policy = inheritance.draft, self.strategy.policy
        if not self.change.same_functions:
            return None, "functions changed"
        # Only recomputing a node counts its dropped bindings.
        if any(key in self._old.dropped for key in node_rules.rules):
            return None, "bindings were dropped"
        if successor and self._old.graph is None:
            return None, ""
        # Windows that are given as facts do not say what enters and leaves.
        counts = successor is None and not self._windows.new.given
        shape = node_rules.windowed if counts and policy.strategy in {"choose", "maintain"} else None
        small = policy.strategy != "choose"
        if shape and is_counted(shape, before, self._windowed, small=small):
            grown = maintain_windowed(draft, node_rules, before, shape, self._windowed)
            if grown is not None:
                return grown, ""
            draft.revert(before)
        may_be_quick = successor is None and policy.modules and policy.strategy == "choose"
        if may_be_quick and is_quickly_maintained(draft, node_rules, before):
            return maintain_projection(draft, node_rules, before), ""
        in_full: list[Rule] = []
        if successor:
            in_full += [node_rules.rules[key] for key in successor.lineage.added]
            in_full += inheritance.lost_rules(node_rules)
        is_read = partial(self._is_read, node_rules.keys, before)
        why = self.strategy.recompute_reason(draft, node_rules, before, in_full, is_read=is_read)
        if why is not None:
            return None, why
        grown = None
        self.strategy.begin(draft, before)
        try:
            grown = self._grown(inheritance, node_rules, before, successor)
            why = "" if grown is not None else "bindings are dropped"
        except GaveUpError:
            why = GIVEN_UP
        finally:
            self.strategy.end(draft, in_vain=grown is None)
        if grown is None:
            draft.revert(before)
        return grown, why

    def _grown(
        self, inheritance: Inheritance, node_rules: NodeRules, before: Segment, successor: Successor | None
    ) -> int | None:
        draft, policy = inheritance.draft, self.strategy.policy
        if successor is None:
            if policy.modules and node_rules.module:
                for maintain in (
                    maintain_projection,
                    maintain_closure,
                    maintain_equivalence,
                    maintain_inverses,
                ):
                    grown = maintain(draft, node_rules, before)
                    if grown is not None:
                        return grown
            return NodeChange(draft, node_rules, before, backward=policy.backward).process()
        suspects = inheritance.suspects(successor.lineage.keys, node_rules)
        added = successor.lineage.added
        change = NodeChange(
            draft, node_rules, before, backward=policy.backward, suspects=suspects, added=added
        )
        grown = change.process()
        if grown is not None:
            successor.copied = inheritance.settle(successor)
        return grown

    def _evaluated(
        self, draft: Draft, node_rules: NodeRules, before: Segment | None, watch: _Watch
    ) -> NodeResult:
        begun = time.thread_time()
        view = draft.snapshot(node_rules.atoms, before)
        result = NodeEvaluation(
            view,
            node_rules.rules,
            self.settings.registry,
            watch.step,
            module=node_rules.module if self.strategy.policy.modules else None,
            yield_point=self.settings.yield_point,
        ).evaluate()
        watch.step(result.rounds, len(result.segment))
        if self.settings.strict:
            refuse_errors(self.change.rules, result.dropped)
        result.segment.seconds = time.thread_time() - begun
        result.segment.multiplicity = max(result.derivations / max(len(result.segment), 1), 1.0)
        return result

    def _install(
        self,
        draft: Draft,
        keys: frozenset[str],
        result: NodeResult,
        before: Segment | None,
        successor: Successor | None,
        why: str,
    ) -> Counted:
        """Make the result of evaluating a node its segment; return the change of the segment."""
        new = result.segment
        counted = self._add_new(keys, new, result.dropped)
        if before is None:
            draft.add_segment(new)
            return counted
        self.next.facts -= len(before)
        self.strategy.estimate -= before.seconds
        # A node that was too slow to maintain may have lacked a hash set or an index that it has next time.
        tries = min(before.tries + 1, _MOST_TRIES) if why in {GIVEN_UP, QUICKER, SMALL} else 0
        may_patch = tries and successor is None
        if may_patch and can_patch(before, new, lambda seconds: self.strategy.may_spend(draft, seconds)):
            patch_segment(draft, before, new)
            del self.next.segments[keys]
            self.next.patched[keys] = (new.seconds, tries)
            return draft.segment_change(before)
        new.tries = tries
        olds = [before, *(successor.merged_in if successor else ())]
        if self._is_read(keys, new):
            keep_equal_tables(olds, new)
        draft.replace(olds, new)
        return SegmentDifference(self._old.store, olds, new)

    def _add_new(
        self, keys: frozenset[str], segment: Segment, dropped: Mapping[str, Dropped]
    ) -> SegmentChange:
        """Make a segment that was evaluated from scratch the one of a node."""
        for key in keys:
            self.next.dropped.pop(key, None)
        self.next.dropped |= dropped
        self.next.facts += len(segment)
        self.next.segments[keys] = segment
        self.strategy.estimate += segment.seconds
        return SegmentChange(len(segment), 0)


def _recomputed(module: str, why: str) -> str:
    """Return the strategy that the report states for a recomputed node."""
    strategy = f"recomputed as {module}" if module else "recomputed"
    return f"{strategy}, {why}" if why else strategy


def _segment_change(draft: Draft, before: Segment, successor: Successor | None) -> SegmentChange:
    """Count the facts that a maintained segment gained and lost."""
    gained, lost = draft.segment_change(before)
    if successor is None:
        return SegmentChange(gained, lost)
    # Facts copied from other nodes are no gain if they are kept, and a loss if they are deleted.
    return SegmentChange(gained - successor.copied.gained, lost + successor.copied.lost)


@dataclass(slots=True)
class _Watch:
    # Limits and progress while a node runs. `before` counts the facts of the nodes visited before it.
    settings: Settings
    meter: Meter
    nodes: int
    position: int = 0
    before: int = 0
    node_rules: NodeRules = field(init=False)
    rounds: int = 0

    def begin(self, position: int, node_rules: NodeRules) -> None:
        self.position, self.node_rules, self.rounds = position, node_rules, 0
        self._report(0, 0)

    def passed(self, position: int, node_rules: NodeRules, facts: int) -> None:
        """Report a node that was evaluated with others, and the number of its facts."""
        self.position, self.node_rules, self.rounds = position, node_rules, 1
        self._report(0, 0)
        self.settings.yield_point.yield_to_waiters()
        span = next(iter(node_rules.rules.values())).span
        self.before += facts
        self.meter.count(self.before, 1, node_rules.labels[0], span)
        self._report(1, 0)

    def finish(self, total: int) -> None:
        """Compare the number of all facts with its limit: nodes may have lost facts that others gained."""
        self.meter.count(total, 0, self.node_rules.labels[0], next(iter(self.node_rules.rules.values())).span)

    def look(self, rounds: int) -> None:
        self.step(rounds, 0)
        self.settings.yield_point.yield_to_waiters()

    def step(self, rounds: int, facts: int) -> None:
        self.rounds = max(self.rounds, rounds)
        span = next(iter(self.node_rules.rules.values())).span
        labels = self.node_rules.labels
        self.meter.look(labels[0], span)
        self.meter.count(self.before + facts, rounds, labels[0], span)
        self._report(rounds, facts)

    def _report(self, rounds: int, facts: int) -> None:
        if self.settings.progress:
            labels = self.node_rules.labels
            self.settings.progress(Progress(self.position, self.nodes, labels, rounds, self.before + facts))
