"""A change on the embedded engine: which nodes it visits, and by which means each is brought up to date.

A node is visited if its rules were not together before, or if an atom of it matches something that came or
went. It is maintained from what changed, and from what it takes over of nodes that are no more, or evaluated
anew where that is likely to be quicker.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Dropped, NodeRun, Progress, SegmentChange, Settings, refuse_errors
from zodiacedge.engine.embedded.evaluate.seminaive import NodeEvaluation
from zodiacedge.engine.embedded.maintain.equivalence import maintain_equivalence
from zodiacedge.engine.embedded.maintain.incremental import NodeChange
from zodiacedge.engine.embedded.maintain.merge_split import Inheritance, Successor, altered
from zodiacedge.engine.embedded.maintain.patch_segment import can_patch, patch_segment
from zodiacedge.engine.embedded.maintain.projection import is_quickly_maintained, maintain_projection
from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
from zodiacedge.engine.embedded.maintain.strategy import GIVEN_UP, QUICKER, SMALL
from zodiacedge.engine.embedded.storage.database import NO_CLASS, Database, Relation, Segment
from zodiacedge.engine.embedded.versions.difference import SegmentDifference
from zodiacedge.engine.embedded.versions.draft import Draft, GaveUpError
from zodiacedge.engine.limits import Meter
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from zodiacedge.engine.embedded.evaluate.seminaive import NodeResult
    from zodiacedge.engine.embedded.ingest.batch import EmbeddedFactDelta
    from zodiacedge.engine.embedded.maintain.strategy import Strategy
    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.graph.draft import HyperNode
    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Argument, Rule

# Patience doubles so many times.
_MOST_TRIES = 6
# Stands for a class that no rule mentions: only an atom of any class reads it.
_UNMENTIONED = IRI("")


@dataclass(slots=True)
class Propagation:
    """A change under way."""

    store: Database
    before_dropped: Mapping[str, Dropped]
    rules: Mapping[str, Rule]
    before: HyperGraph | None
    """The graph of the old version; None if there was none."""
    graph: HyperGraph
    effect: EmbeddedFactDelta
    settings: Settings
    choice: Strategy
    same_functions: bool
    known_shapes: Mapping[frozenset[str], NodeRules]
    readers: dict[Relation, tuple[int, ...]]
    """The nodes of the graph that read a relation, as far as somebody asked."""
    total: int
    segments: dict[frozenset[str], Segment] = field(default_factory=dict)
    """The segments of nodes that were not there before or were evaluated anew."""
    shapes: dict[frozenset[str], NodeRules] = field(default_factory=dict)
    """The shapes of nodes that were not known yet."""
    kept: dict[frozenset[str], tuple[float, int]] = field(default_factory=dict)
    """Nodes that were evaluated anew and kept their segments: how long it took, and how often that was."""
    gone: list[frozenset[str]] = field(default_factory=list)
    """The nodes that are no more."""
    runs: list[NodeRun] = field(default_factory=list)
    dropped: dict[str, Dropped] = field(default_factory=dict)
    explicit: dict[Relation, Table] = field(default_factory=dict)
    _heirs: Mapping[frozenset[str], Successor] = field(default_factory=dict)

    def draft(self) -> Draft:
        """Work the change out, node after node in topological order."""
        nodes = self.graph.nodes
        watch = _Watch(self.settings, Meter(self.settings.limits), len(nodes))
        draft = Draft(self.store, self.settings.registry, watch.look, watch.step)
        try:
            self._work_out(draft, watch)
        except BaseException:
            # Whatever was interrupted half-way, nobody goes on from it.
            draft.discard()
            raise
        return draft

    def _work_out(self, draft: Draft, watch: _Watch) -> None:
        nodes = self.graph.nodes
        self.dropped.update(self.before_dropped)
        self._state_facts(draft)
        inheritance = Inheritance(draft, self.store, self.before, self.rules)
        waiting = [] if self.graph is self.before else self._formed(inheritance)
        if not self.same_functions:
            waiting = [(node.rank, node.id) for node in nodes.values()]
        heapq.heapify(waiting)
        seen = {number for _, number in waiting}
        while True:
            for node in self._readers(draft):
                if node.id not in seen:
                    seen.add(node.id)
                    heapq.heappush(waiting, (node.rank, node.id))
            if not waiting:
                break
            node = nodes[heapq.heappop(waiting)[1]]
            own = {key: self.rules[key] for key in node.rules}
            shape = self._shape(frozenset(own), own)
            watch.begin(len(seen) - len(waiting) - 1, shape)
            self.settings.turn.yield_to_waiters()
            self._visit(inheritance, shape, watch)
        if seen:
            watch.finish(self.total)

    def _formed(self, inheritance: Inheritance) -> list[tuple[int, int]]:
        """Hand over what nodes had that are no more; return rank and id of those that were not there."""
        lines, self.gone = altered(self.store, self.before, self.graph)
        inheritance.take(lines, self.gone)
        self._heirs = inheritance.heirs
        for keys in self.gone:
            self.total -= len(self.store.segments[keys])
            self.choice.estimate -= self.store.segments[keys].seconds
            for key in keys - self.rules.keys():
                self.dropped.pop(key, None)
        for keys, heir in self._heirs.items():
            self.segments[keys] = heir.segment
            self.total += len(heir.segment)
            self.choice.estimate += heir.segment.seconds
        formed = (self.graph.node_of(next(iter(line.keys))) for line in lines)
        return [(node.rank, node.id) for node in formed]

    def _readers(self, draft: Draft) -> Iterator[HyperNode]:
        """Yield the nodes that read what was noted as touched since the last time."""
        news = dict.fromkeys(draft.touched.news)
        draft.touched.news.clear()
        for relation in news:
            found = self.readers.get(relation)
            if found is None:
                args: tuple[Argument, ...] = tuple(Variable(f"V{n}") for n in range(relation.arity))
                member_of = self.store.terms.mentioned(relation.member_of)
                if relation.member_of != NO_CLASS:
                    args = (*args, member_of or _UNMENTIONED)
                found = self.graph.readers(Atom(relation.name, args)).all
                # Rules that were not evaluated yet may mention more classes.
                if relation.member_of == NO_CLASS or member_of:
                    self.readers[relation] = found
            for number in found:
                yield self.graph.nodes[number]

    def _state_facts(self, draft: Draft) -> None:
        explicit = self.store.explicit
        for relation in {*self.effect.new, *self.effect.old}:
            table = explicit.tables.get(relation)
            if table is None:
                # Nothing was there, so what is to be added is all there is.
                self.explicit[relation] = self.effect.add.tables[relation]
                continue
            overlay = draft.overlay(explicit, relation)
            if relation in self.effect.old:
                overlay.remove(self.effect.old[relation])
            if relation in self.effect.new:
                overlay.add(self.effect.new[relation])
        draft.settle(explicit)
        if self.explicit:
            draft.put(Segment(dict(self.explicit)))

    def _visit(self, inheritance: Inheritance, shape: NodeRules, watch: _Watch) -> None:
        draft, keys = inheritance.draft, shape.keys
        heir = self._heirs.get(keys)
        before = heir.segment if heir else self.store.segments.get(keys)
        start = time.perf_counter()
        draft.derivations = 0
        grown, why = (None, "") if before is None else self._maintained(inheritance, shape, before, heir)
        estimate = before.seconds if before is not None else 0.0
        if before is not None and grown is not None:
            self.total += grown
            rounds, facts, strategy = watch.rounds, len(before) + grown, "maintained"
            moved: SegmentChange | Callable[[], SegmentChange] = _moved(draft, before, heir)
        else:
            result = self._evaluated(draft, shape, before, watch)
            moved = self._take(draft, keys, result, before, heir, why)
            rounds, facts, strategy = result.rounds, len(result.segment), result.module or "evaluated"
            strategy = f"{strategy}, {why}" if why else strategy
            draft.derivations += result.derivations
        seconds = time.perf_counter() - start
        self.runs.append(
            NodeRun(shape.labels, rounds, facts, seconds, strategy, estimate, draft.derivations, moved)
        )
        watch.before += facts

    def _evaluated(self, draft: Draft, shape: NodeRules, before: Segment | None, watch: _Watch) -> NodeResult:
        begun = time.thread_time()
        view = draft.snapshot(shape.atoms, before)
        result = NodeEvaluation(
            view,
            shape.rules,
            self.settings.registry,
            watch.step,
            module=shape.module if self.choice.policy.modules else None,
            turn=self.settings.turn,
        ).evaluate()
        watch.step(result.rounds, len(result.segment))
        if self.settings.strict:
            refuse_errors(self.rules, result.dropped)
        result.segment.seconds = time.thread_time() - begun
        return result

    def _take(
        self,
        draft: Draft,
        keys: frozenset[str],
        result: NodeResult,
        before: Segment | None,
        heir: Successor | None,
        why: str,
    ) -> SegmentChange | Callable[[], SegmentChange]:
        """Let what evaluating a node gave be what it has in the next version; tell what it gains by that."""
        for key in keys:
            self.dropped.pop(key, None)
        self.dropped |= result.dropped
        new = result.segment
        self.total += len(new) - (len(before) if before is not None else 0)
        self.choice.estimate += new.seconds - (before.seconds if before is not None else 0.0)
        moved: SegmentChange | Callable[[], SegmentChange] = SegmentChange(len(new), 0)
        if before is None:
            draft.put(new)
        else:
            # What was too slow this time may lack a table that is ready the next time.
            tries = min(before.tries + 1, _MOST_TRIES) if why in {GIVEN_UP, QUICKER, SMALL} else 0
            if (
                tries
                and heir is None
                and why != SMALL
                and can_patch(before, new, lambda seconds: self.choice.may_spend(draft, seconds))
            ):
                patch_segment(draft, before, new)
                self.kept[keys] = (new.seconds, tries)
                return draft.moved(before)
            new.tries = tries
            olds = [before, *(heir.poured if heir else ())]
            draft.replace(olds, new)
            moved = SegmentDifference(self.store, olds, new)
        self.segments[keys] = new
        return moved

    def _maintained(
        self,
        inheritance: Inheritance,
        shape: NodeRules,
        before: Segment,
        heir: Successor | None,
    ) -> tuple[int | None, str]:
        """Maintain a node; return by how many facts it grows, or why it must be evaluated anew."""
        draft = inheritance.draft
        if not self.same_functions:
            return None, "functions changed"
        # Where bindings were dropped, only evaluating anew tells how many are now.
        if any(key in self.before_dropped for key in shape.rules):
            return None, "bindings were dropped"
        if heir and self.before is None:
            return None, ""
        may_follow = heir is None and self.choice.policy.modules and self.choice.policy.strategy == "choose"
        if may_follow and is_quickly_maintained(draft, shape, before):
            return maintain_projection(draft, shape, before), ""
        why = self.choice.recompute_reason(draft, shape, before)
        if why is not None:
            return None, why
        grown = None
        self.choice.begin(draft, before)
        try:
            grown = self._change_of(inheritance, shape, before, heir)
            why = "" if grown is not None else "bindings are dropped"
        except GaveUpError:
            why = GIVEN_UP
        finally:
            self.choice.end(draft, in_vain=grown is None)
        if grown is None:
            draft.forget(before)
        return grown, why

    def _change_of(
        self, inheritance: Inheritance, shape: NodeRules, before: Segment, heir: Successor | None
    ) -> int | None:
        draft, backward = inheritance.draft, self.choice.policy.backward
        if heir is None:
            if self.choice.policy.modules:
                for maintain in (maintain_projection, maintain_equivalence):
                    grown = maintain(draft, shape, before)
                    if grown is not None:
                        return grown
            return NodeChange(draft, shape, before, backward=backward).process()
        suspects = inheritance.suspects(heir.line.keys, shape)
        added = heir.line.added
        change = NodeChange(draft, shape, before, backward=backward, suspects=suspects, added=added)
        grown = change.process()
        if grown is not None:
            heir.copied = inheritance.settle(heir)
        return grown

    def _shape(self, keys: frozenset[str], own: Mapping[str, Rule]) -> NodeRules:
        # What is known was found out with the same functions, and from rules that were written the same way.
        found = self.known_shapes.get(keys) if self.same_functions else None
        if found is None or any(found.rules[key] is not rule for key, rule in own.items()):
            found = self.shapes[keys] = NodeRules(own)
        return found


def _moved(draft: Draft, before: Segment, heir: Successor | None) -> SegmentChange:
    """Count what a segment gains and loses that is maintained."""
    gained, lost = draft.moved(before)
    # Of what was copied into it from other nodes, it gains nothing that stays, and loses what does not.
    return (
        SegmentChange(gained - heir.copied.gained, lost + heir.copied.lost)
        if heir
        else SegmentChange(gained, lost)
    )


@dataclass(slots=True)
class _Watch:
    # Called while a node runs: limits and progress. `before` are the facts of the nodes visited before it.
    settings: Settings
    meter: Meter
    nodes: int
    place: int = 0
    before: int = 0
    shape: NodeRules = field(init=False)
    rounds: int = 0

    def begin(self, place: int, shape: NodeRules) -> None:
        self.place, self.shape, self.rounds = place, shape, 0

    def finish(self, total: int) -> None:
        """Compare all facts with their limit: some nodes may have lost what others gained."""
        self.meter.count(total, 0, self.shape.labels[0], next(iter(self.shape.rules.values())).span)

    def look(self, rounds: int) -> None:
        self.step(rounds, 0)
        self.settings.turn.yield_to_waiters()

    def step(self, rounds: int, facts: int) -> None:
        self.rounds = max(self.rounds, rounds)
        span = next(iter(self.shape.rules.values())).span
        labels = self.shape.labels
        self.meter.look(labels[0], span)
        self.meter.count(self.before + facts, rounds, labels[0], span)
        if self.settings.progress:
            self.settings.progress(Progress(self.place, self.nodes, labels, rounds, self.before + facts))
