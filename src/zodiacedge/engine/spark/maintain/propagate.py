"""Propagates a change through the nodes that it affects, step by step.

The scheduler chooses the nodes of each step and its strategy; here the step is evaluated, and its segments go
into the new version. The old version is immutable, and the new one shares its unchanged files. So a change
that fails, or a dry run, leaves nothing behind but files without an owner.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from zodiacedge.engine.api import NodeRun, Progress, refuse_errors
from zodiacedge.engine.embedded.maintain.strategy import Policy
from zodiacedge.engine.limits import Meter
from zodiacedge.engine.spark.evaluate import embedded_task, partitioned
from zodiacedge.engine.spark.evaluate.embedded_task import (
    RegionInputs,
    RegionProgram,
    RegionTask,
    TaskSettings,
)
from zodiacedge.engine.spark.evaluate.inputs import Wanted, inputs_for, want, wanted_by
from zodiacedge.engine.spark.evaluate.seminaive import Setting
from zodiacedge.engine.spark.evaluate.strategy import (
    MAINTAINED,
    STRATEGIES,
    NodeStrategy,
    reason,
    recompute,
    recompute_reason,
)
from zodiacedge.engine.spark.maintain import by_stamps
from zodiacedge.engine.spark.maintain.affected_nodes import readers
from zodiacedge.engine.spark.maintain.change_state import ChangeState
from zodiacedge.engine.spark.maintain.incremental import Inherited, MaintainedNode
from zodiacedge.engine.spark.maintain.layers import layered
from zodiacedge.engine.spark.maintain.net_change import SparkNetChange, adopted, net_of, rows_of
from zodiacedge.engine.spark.maintain.scheduler import ScheduledStep, Scheduler
from zodiacedge.engine.spark.maintain.window_delta import EPOCH, windows_after, windows_of, with_new_terms
from zodiacedge.engine.spark.partition.merge_terms import merged
from zodiacedge.engine.spark.storage.compaction import compacted
from zodiacedge.engine.spark.storage.embedded_tables import constants
from zodiacedge.engine.spark.storage.files import Relation, Segment
from zodiacedge.engine.spark.storage.terms import TermFiles, entries_of, write_terms
from zodiacedge.language.ast import body_atoms
from zodiacedge.terms import date_time

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from zodiacedge.engine.api import Dropped, Settings
    from zodiacedge.engine.spark.evaluate.embedded_task import NodeFiles, RegionResult
    from zodiacedge.engine.spark.evaluate.seminaive import Result
    from zodiacedge.engine.spark.ingest.batch import SparkFactDelta
    from zodiacedge.engine.spark.maintain.net_change import Net
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.graph.merge_split import HyperNode
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

# The task of nodes that read and derive at most so many rows returns the net change too: of more, it would
# write nearly all rows a second time, for a user who may never ask.
_NET_AT_ONCE = 100_000
_Version = TypeVar("_Version", bound="SparkVersion")
MAINTAINED_BY_STAMPS = "maintained by stamps"
IN_ONE_TASK = "in one task"
"""How the report of a change names a region in one task."""
# A slice has the rows that DRed reads; Backward/Forward would read others.
_ON_A_SLICE = Policy(modules=False, strategy="maintain", backward=False)


def propagate(
    before: _Version,
    rules: Mapping[str, Rule],
    graph: HyperGraph,
    fact_delta: SparkFactDelta,
    settings: Settings,
) -> tuple[_Version, SparkNetChange]:
    """Return the version after a change, and the net change."""
    computed: dict[int, Term] = {}
    read, yield_point = windows_of(rules, graph), settings.yield_point
    while True:
        terms = with_new_terms(before, (*read, *computed.values()), fact_delta.terms, yield_point)
        windows = windows_after(before, read, fact_delta, terms, yield_point)
        state = ChangeState(before, rules, graph, fact_delta, settings, windows, terms)
        after, net = _propagated(before, state)
        fresh = windows.fresh(after.terms.parts)
        if fresh.keys() <= computed.keys():
            return after, net
        # Rules have computed moments that are in windows: again, with them.
        computed |= {key: date_time(EPOCH + timedelta(microseconds=micros)) for key, micros in fresh.items()}


def _propagated(before: _Version, state: ChangeState) -> tuple[_Version, SparkNetChange]:
    propagation = _Propagation(state)
    with before.workspace.jobs.telling(propagation.tell_stage, propagation.tell_tasks):
        propagation.run()
        return propagation.result(before)


class _Propagation:
    """A change in progress, step by step."""

    def __init__(self, state: ChangeState) -> None:
        """Start with the first delta, of explicit facts and deleted nodes."""
        self.state = state
        self.workspace = state.workspace
        self.settings = state.settings
        self.runs: list[NodeRun] = []
        self.net: Net | None = None
        self.terms = state.terms
        self.names = {**state.before.names, **state.fact_delta.names}
        self.introduced = {*state.before.introduced, *state.windows.windows}
        self.meter = Meter(state.settings.limits)
        self.changed: Wanted = dict(state.changed_facts)
        self.counted: Mapping[Relation, Mapping[int, int]] = {}
        self.seconds = dict(state.before.seconds)
        self._progress = Progress(0, len(state.graph.nodes), (), 0, 0)

    def run(self) -> None:
        """Evaluate steps until no affected node is left."""
        state = self.state
        scheduler = Scheduler(state)
        waiting = {node.id for keys, node in state.nodes.items() if state.is_new(keys)}
        delta = dict(state.changed_at_first)
        done: set[int] = set()
        while True:
            # A recursive node reads its own facts.
            waiting |= set(readers(state.graph, delta, state.keys)) - done
            if not waiting:
                break
            nodes = state.graph.plan(waiting)
            step = scheduler.next(nodes)
            self.settings.yield_point.yield_to_waiters()
            self._tell(step.nodes)
            in_all = len(step.nodes) == len(nodes)
            if not self._take(step, scheduler, net=in_all and not done):
                scheduler.stop_slicing(step.nodes)
                continue
            done |= {node.id for node in step.nodes}
            waiting -= done
            delta = self._delta(step.nodes)
            if step.strategy is None and in_all:
                break

    def result(self, before: _Version) -> tuple[_Version, SparkNetChange]:
        """Return the new version, and the net change."""
        state = self.state
        after = replace(
            before,
            explicit_files=state.explicit_files,
            segments=state.segments,
            terms=self.terms,
            names={**self.names, **{key: term for term, key in state.keys.items()}},
            introduced=frozenset(self.introduced),
            runs=tuple(self.runs),
            dropped=state.dropped,
            registry=self.settings.registry,
            rules=state.rules,
            seconds={keys: seconds for keys, seconds in self.seconds.items() if keys in state.nodes},
            counted=self.counted,
            windows=replace(state.windows, seen=frozenset(file.path for file in self.terms.parts)),
        )
        explicit, changed, keys, net = state.fact_delta.effective_delta, self.changed, state.keys, self.net
        if net is not None:
            return after, SparkNetChange(after, lambda: net)
        # The net change may be larger than the change itself: it is compared when a user asks.
        return after, SparkNetChange(after, lambda: net_of(before, after, explicit, changed, keys))

    def _take(self, step: ScheduledStep, scheduler: Scheduler, *, net: bool) -> bool:
        """Evaluate a step, with the net change if it is small; return False if too many rows were wanted."""
        if step.by_stamps:
            return self._by_stamps(step, scheduler.patience(node.rules for node in step.nodes), net=net)
        strategy = step.strategy
        if strategy is None:
            return self._in_one_task(step, net=net and (step.looked_up is not None or self._is_small(step)))
        if strategy.by is not None and all(map(self.state.starts_from_scratch, step.nodes)):
            self._partitioned(step.nodes, strategy, step.rows)
        else:
            self._alone(step.nodes[0], strategy, step.rows)
        return True

    def _is_small(self, step: ScheduledStep) -> bool:
        """Whether nodes read and have so few rows that their task may return the net change."""
        state = self.state
        rules = [state.rules[key] for node in step.nodes for key in node.rules]
        wanted = wanted_by(body_atoms(c for rule in rules for c in rule.body), state.keys)
        self._want_net(wanted, rules, state.keys)
        return all(
            rows_of(wanted, owners) <= _NET_AT_ONCE
            for owners in (state.before.read_owners.values(), state.owners.values())
        )

    def _delta(self, nodes: Sequence[HyperNode]) -> Wanted:
        """Return the relations in which nodes gained or lost facts."""
        delta: Wanted = {}
        for node in nodes:
            keys = frozenset(node.rules)
            old, new = self.state.before.segments.get(keys, Segment()), self.state.segments[keys]
            for relation in {**old.contents, **new.contents}:
                was, will = old.content(relation), new.content(relation)
                if was != will and (was.rows or will.rows):
                    classes = frozenset({**was.classes, **will.classes}) if relation.typed else None
                    want(delta, relation, classes)
                    want(self.changed, relation, classes)
        return delta

    # A region in one task.

    def _in_one_task(self, step: ScheduledStep, *, net: bool) -> bool:
        """Maintain nodes in one task; return False if a slice was not enough."""
        own = {frozenset(node.rules) for node in step.nodes}
        # The deleted nodes whose segments these nodes inherit.
        parents = set() if step.looked_up else self.state.parents(own)
        old = self.state.before.segments
        segments = {keys: old[keys] for keys in own | parents if keys in old}
        program = self._region_program(step.nodes, segments, inherits=bool(parents))
        task = RegionTask(
            program=program,
            inputs=self._region_inputs(program, segments, step, net=net),
            settings=self._task_settings(step, segments, net=net),
        )
        why = "bringing rules up to date in one task"
        result = self.workspace.jobs.one(embedded_task.run, task, why, self.settings.yield_point)
        if result is None:
            return False
        self.introduced |= program.keys.keys()
        self._take_segments(step, result)
        self._take_dropped(program.rules, result.dropped)
        self.seconds.update(result.seconds)
        self._report(step, parents, result)
        if result.net is not None:
            self.net = adopted(self.workspace, result.net)
        return True

    def _region_program(
        self, nodes: Sequence[HyperNode], segments: NodeFiles, *, inherits: bool
    ) -> RegionProgram:
        before, dropped = self.state.before, self.state.dropped
        rules = {key: self.state.rules[key] for node in nodes for key in node.rules}
        old_rules = {key: before.rules[key] for keys in segments for key in keys} if inherits else {}
        terms = (term for rule in (*rules.values(), *old_rules.values()) for term in constants(rule))
        keys = self.workspace.keys(terms)
        return RegionProgram(
            rules=rules,
            keys=keys,
            new_terms=tuple(term for term in keys if term not in self.introduced),
            old_rules=old_rules,
            dropped={key: dropped[key] for key in rules if key in dropped},
            seconds={keys: before.seconds[keys] for keys in segments if keys in before.seconds},
        )

    def _region_inputs(
        self, program: RegionProgram, segments: NodeFiles, step: ScheduledStep, *, net: bool
    ) -> RegionInputs:
        rules = (*program.rules.values(), *program.old_rules.values())
        wanted = wanted_by((atom for rule in rules for atom in body_atoms(rule.body)), program.keys)
        if net:
            self._want_net(wanted, program.rules.values(), program.keys)
        before, after = self.state.outside(segments)
        return RegionInputs(
            relations=inputs_for(wanted, before.values(), after.values()),
            terms=self.terms,
            segments=segments,
            slice_rows=step.looked_up.rows if step.looked_up else None,
        )

    def _task_settings(self, step: ScheduledStep, segments: NodeFiles, *, net: bool) -> TaskSettings:
        workspace, settings = self.workspace, self.settings
        others = self.state.rows_but(segments)
        return TaskSettings(
            folder=workspace.scratch.folder,
            hashing=workspace.hashing,
            registry=settings.registry,
            same_functions=self.state.same_functions,
            limits=settings.limits,
            strict=settings.strict and step.looked_up is None,
            policy=_ON_A_SLICE if step.looked_up else workspace.options.policy,
            total=others + sum(segment.rows for segment in segments.values()),
            net_rows=_NET_AT_ONCE if net else 0,
        )

    def _want_net(self, wanted: Wanted, rules: Iterable[Rule], keys: Mapping[Term, int]) -> None:
        """Add the relations that the net change may be of."""
        heads = wanted_by((rule.head for rule in rules), keys)
        for relation, classes in (*self.state.changed_facts.items(), *heads.items()):
            want(wanted, relation, classes)

    def _take_segments(self, step: ScheduledStep, result: RegionResult) -> None:
        state, workspace = self.state, self.workspace
        for keys, files in result.changed.items():
            segment = workspace.adopt_segment(files, state.known_files(keys))
            if keys not in result.replaced:
                kept = state.before.segments.get(keys, Segment())
                segment = Segment(
                    {**kept.contents, **segment.contents}, {**kept.aggregate_rows, **segment.aggregate_rows}
                )
            state.segments[keys] = self._compacted(segment) if step.looked_up else segment
        for node in step.nodes:
            state.segments.setdefault(frozenset(node.rules), Segment())
        self.terms = self.terms.with_files(workspace.adopt(result.terms))
        if len(step.nodes) == len(state.nodes):
            self.counted = result.counts

    def _compacted(self, segment: Segment) -> Segment:
        workspace, yield_point = self.workspace, self.settings.yield_point
        contents = {r: compacted(workspace, r, files, yield_point) for r, files in segment.contents.items()}
        aggregate_rows = {
            key: compacted(workspace, Relation.of_rows(self.state.rules[key].aggregate), files, yield_point)
            for key, files in segment.aggregate_rows.items()
        }
        return Segment(contents, aggregate_rows)

    def _report(self, step: ScheduledStep, parents: Collection[frozenset[str]], result: RegionResult) -> None:
        """Report the nodes of a region, corrected by facts that the task could not know."""
        state, options = self.state, self.workspace.options
        nodes = {frozenset(state.labels(node)): frozenset(node.rules) for node in step.nodes}
        for run in result.runs:
            keys = nodes[frozenset(run.rules)]
            if step.looked_up is None:
                where = f"{IN_ONE_TASK}: {reason(options.strategy, step.rows, options.gather_rows)}"
                # The task did not see the segments of rules that were in other nodes.
                moved = None if state.has_other_parents(keys, parents) else run.moved
                self.runs.append(replace(run, strategy=f"{run.strategy}, {where}", moved=moved))
            else:
                rows = f"{step.looked_up.count:,} rows, looked up by key: {step.rows:,} rows in all"
                facts = state.segments[keys].rows
                strategy = f"{run.strategy}, {IN_ONE_TASK} on {rows}"
                self.runs.append(replace(run, strategy=strategy, facts=facts))

    # One node by the stamps of its facts.

    def _by_stamps(self, step: ScheduledStep, seconds: float, *, net: bool) -> bool:
        """Maintain a node by stamps; return False if that takes too much."""
        start = time.perf_counter()
        (node,) = step.nodes
        maintained = by_stamps.maintain(self.state, node, seconds)
        if maintained is None:
            return False
        keys = frozenset(node.rules)
        self.state.segments[keys] = maintained.segment
        self._watch(node, maintained.rounds, self.state.rows)
        if net and maintained.net is not None:
            self.net = adopted(self.workspace, maintained.net)
        what = f"{maintained.read:,} rows, looked up by key: {step.rows:,} rows in all"
        strategy = f"{MAINTAINED_BY_STAMPS}, {IN_ONE_TASK} on {what}; {maintained.checked:,} facts in doubt"
        labels, rows, took = self.state.labels(node), maintained.segment.rows, time.perf_counter() - start
        run = NodeRun(labels, maintained.rounds, rows, took, strategy, moved=maintained.moved)
        self.runs.append(run)
        return True

    # Partitioned nodes, or one node by plans.

    def _partitioned(self, nodes: Sequence[HyperNode], strategy: NodeStrategy, rows: int) -> None:
        """Evaluate nodes from scratch, all of them on each partition."""
        start = time.perf_counter()
        state = self.state
        if strategy.by is None:
            raise AssertionError(strategy)
        self._introduce()
        own = {frozenset(node.rules) for node in nodes}
        _, after = state.outside(own)
        setting = Setting(self.workspace, self.settings, state.keys, after, after, _unwatched)
        rules = [state.rules_of(node) for node in nodes]
        results = partitioned.evaluate(rules, strategy.by, setting, self.terms, rows)
        self._refuse_errors({key: d for result in results for key, d in result.dropped.items()})
        self._take_new_terms(results[-1].terms)
        seconds = (time.perf_counter() - start) / len(nodes)
        for node, result in zip(nodes, results, strict=True):
            self._take_result(node, result, Segment(result.contents))
            self.seconds[frozenset(node.rules)] = seconds
            self._watch(node, result.rounds, state.rows)
            why = strategy.why(state.rules_of(node).values())
            self._add_run(node, result.rounds, seconds, f"{STRATEGIES[strategy.name]}: {why}")

    def _alone(self, node: HyperNode, strategy: NodeStrategy, rows: int) -> None:
        """Maintain one node by delta plans, or recompute it."""
        start = time.perf_counter()
        state, keys, rules = self.state, frozenset(node.rules), self.state.rules_of(node)
        self._introduce()
        setting = self._setting(node)
        kept = state.segments.get(keys)
        known = self.seconds.get(keys)
        because = recompute_reason(rules, strategy, setting, known) if kept is not None else ""
        result = None if because else self._maintained(node, setting)
        name = MAINTAINED
        if result is None:
            name = STRATEGIES[strategy.name]
            result = recompute(rules, strategy, setting, self.terms, rows)
            if kept is not None:
                result.contents = layered(
                    self.workspace, kept, result.contents, self.settings.yield_point, stamped=result.stamped
                )
        self._refuse_errors(result.dropped)
        self._take_new_terms(result.terms)
        aggregate_rows = result.aggregate_rows or (kept.aggregate_rows if kept is not None else {})
        stamped = result.stamped and all(content.stamped for content in result.contents.values())
        self._take_result(node, result, Segment(result.contents, aggregate_rows, stamped))
        setting.watch(result.rounds, state.segments[keys].rows)
        seconds = time.perf_counter() - start
        if name != MAINTAINED:
            self.seconds[keys] = seconds
        name = f"{name}: {strategy.why(rules.values())}{because}"
        self._add_run(node, result.rounds, seconds, name, known or 0.0)

    def _setting(self, node: HyperNode) -> Setting:
        state, keys = self.state, frozenset(node.rules)
        others = state.rows_but({keys})

        def watch(rounds: int, facts: int) -> None:
            self._watch(node, rounds, others + facts)
            self._tell((node,), rounds, facts)

        before, after = state.outside({keys, *state.merged_in(keys)})
        return Setting(self.workspace, self.settings, state.keys, before, after, watch)

    def _maintained(self, node: HyperNode, setting: Setting) -> Result | None:
        """Maintain a node from its segment or those merged into it; None if it must be recomputed."""
        state, keys, rules = self.state, frozenset(node.rules), self.state.rules_of(node)
        kept, parents = state.segments.get(keys), state.merged_in(keys)
        if (kept is None and not parents) or not state.same_functions or not state.is_exact(node):
            return None
        if kept is not None:
            own = Inherited(kept)
        else:
            added = tuple(key for key in rules if not any(key in old for old in parents))
            own = Inherited.of([state.before.segments[old] for old in parents], added)
        return MaintainedNode(rules, setting, self.terms, own).maintain()

    def _take_result(self, node: HyperNode, result: Result, segment: Segment) -> None:
        self._take_dropped(node.rules, result.dropped)
        self.state.segments[frozenset(node.rules)] = segment

    def _add_run(
        self, node: HyperNode, rounds: int, seconds: float, strategy: str, estimate: float = 0.0
    ) -> None:
        keys = frozenset(node.rules)
        labels, rows = self.state.labels(node), self.state.segments[keys].rows
        moved = self.state.moved(keys)
        self.runs.append(NodeRun(labels, rounds, rows, seconds, strategy, estimate, moved=moved))

    # Shared by all strategies.

    def _refuse_errors(self, dropped: Mapping[str, Dropped]) -> None:
        if self.settings.strict:
            refuse_errors(self.state.rules, dropped)

    def _take_new_terms(self, terms: TermFiles) -> None:
        """Merge the terms of the files that follow those of the known terms."""
        new = TermFiles(terms.parts[len(self.terms.parts) :])
        self.terms = merged(self.workspace, new, self.terms, self.settings.yield_point)

    def _take_dropped(self, keys: Collection[str], dropped: Mapping[str, Dropped]) -> None:
        """Replace the bindings that evaluation errors of these rules dropped."""
        for key in keys:
            self.state.dropped.pop(key, None)
        self.state.dropped.update(dropped)

    def _introduce(self) -> None:
        """Write the new terms of all rules: a term that one rule mentions may be computed by another."""
        workspace = self.workspace
        new = [term for term in self.state.keys if term not in self.introduced]
        if new:
            file = write_terms(workspace.scratch.folder, entries_of(new, workspace.hashing))
            files = TermFiles((workspace.adopt(file),))
            self.terms = merged(workspace, files, self.terms, self.settings.yield_point)
            self.introduced.update(new)

    def _watch(self, node: HyperNode, rounds: int, rows: int) -> None:
        """Check the limits."""
        label, span = self.state.labels(node)[0], self.state.rules[node.rules[0]].span
        self.meter.look(label, span)
        self.meter.count(rows, rounds, label, span)

    def _tell(self, nodes: Sequence[HyperNode], rounds: int = 0, more: int = 0) -> None:
        labels = tuple(label for node in nodes for label in self.state.labels(node))
        self.workspace.jobs.about(labels, rounds)
        if self.settings.progress:
            done, total = len(self.runs), len(self.state.graph.nodes)
            self._progress = Progress(done, total, labels, rounds, self.state.rows + more)
            self.settings.progress(self._progress)

    def tell_stage(self, why: str) -> None:
        """Report the purpose of a job that is about to run."""
        if self.settings.progress:
            self.settings.progress(replace(self._progress, stage=why))

    def tell_tasks(self, why: str, done: int, tasks: int) -> None:
        """Report how many tasks of a job are completed."""
        if self.settings.progress:
            self.settings.progress(replace(self._progress, stage=why, done=done, total=tasks, unit="task"))


def _unwatched(rounds: int, facts: int) -> None:
    """Check no limits between rounds: partitions have no rounds in common."""
    del rounds, facts
