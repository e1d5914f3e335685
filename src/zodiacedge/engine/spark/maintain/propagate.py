"""One change: the nodes that it may reach, step by step, each brought up to date by its way.

Which nodes come next and by which way is left to `next_step`; here they are brought up to date, and what they
come to is kept.

Nothing of the old version changes: a new one has other files, and those that both have are shared. So a
change that fails, or a dry run, leaves nothing behind but files that nobody holds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from zodiacedge.engine.api import NodeRun, Progress, refuse_errors
from zodiacedge.engine.embedded.maintain.strategy import Policy
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.limits import Meter
from zodiacedge.engine.spark.evaluate import embedded_task as regions
from zodiacedge.engine.spark.evaluate import partitioned, pipelined
from zodiacedge.engine.spark.evaluate.embedded_task import RegionResult, RegionTask
from zodiacedge.engine.spark.evaluate.inputs import Wanted, inputs_for, want, wanted_by
from zodiacedge.engine.spark.evaluate.recompute import STRATEGIES, recompute, recompute_reason
from zodiacedge.engine.spark.evaluate.seminaive import Setting, owners_of
from zodiacedge.engine.spark.evaluate.strategy import Strategy, reason
from zodiacedge.engine.spark.maintain.affected_nodes import readers
from zodiacedge.engine.spark.maintain.change_state import ChangeState
from zodiacedge.engine.spark.maintain.compare import compared
from zodiacedge.engine.spark.maintain.incremental import Inherited, MaintainedNode
from zodiacedge.engine.spark.maintain.net_change import SparkNetChange
from zodiacedge.engine.spark.maintain.scheduler import Scheduler, Step
from zodiacedge.engine.spark.maintain.visible import Visible, rows_of
from zodiacedge.engine.spark.partition.merge_terms import merged
from zodiacedge.engine.spark.storage.compaction import compacted
from zodiacedge.engine.spark.storage.embedded_tables import constants
from zodiacedge.engine.spark.storage.files import DataFile, Relation, Segment
from zodiacedge.engine.spark.storage.terms import TermFiles, columns_of, write_terms
from zodiacedge.language.checks import body_atoms
from zodiacedge.language.printer import format_rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from zodiacedge.engine.api import Dropped, Settings
    from zodiacedge.engine.spark.ingest.batch import SparkFactDelta
    from zodiacedge.engine.spark.maintain.compare import Parts
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.graph.draft import HyperNode
    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

# Where nodes read and have no more rows than this, and derive no more, their task also tells what became
# visible: else it would write nearly all of it a second time, for somebody who may never ask.
_TOLD_AT_ONCE = 100_000
_Version = TypeVar("_Version", bound="SparkVersion")
IN_ONE_TASK = "in one task"
"""What the report of a change says of nodes that were done together."""
# How nodes are maintained on rows that were looked up: on others nothing could be said of them.
_ON_A_SLICE = Policy(modules=False, strategy="maintain", backward=False)


def propagate(
    before: _Version,
    rules: Mapping[str, Rule],
    graph: HyperGraph,
    effect: SparkFactDelta,
    settings: Settings,
) -> tuple[_Version, SparkNetChange]:
    """Return the version that a change leads to, and the net change."""
    work = _Work(before, rules, graph, effect, settings)
    with before.workspace.jobs.telling(work.tell_stage):
        work.run()
        return work.result(before)


@dataclass
class _Work(ChangeState):
    """A change under way, taken step by step."""

    def __post_init__(self) -> None:
        """Start with nothing done."""
        super().__post_init__()
        self.runs: list[NodeRun] = []
        self.net: tuple[Parts, Parts] | None = None
        self.terms = self.effect.terms
        self.names = self.before.names.with_terms(self.effect.names.known)
        self.introduced = set(self.before.introduced)
        self.meter = Meter(self.settings.limits)
        self.touched: Wanted = {}
        self.counted: Mapping[Relation, Mapping[int, int]] = {}
        self.seconds = dict(self.before.seconds)
        self._told = Progress(0, len(self.graph.nodes), (), 0, 0)

    def run(self) -> None:
        touched = dict(self.touched_at_first)
        self.touched = dict(touched)
        waiting = {node.id for keys, node in self.homes.items() if self.is_new(keys)}
        chooser = Scheduler(self)
        alone = True
        done: set[int] = set()
        while True:
            # A recursive node reads what it derives itself.
            waiting |= set(readers(self.graph, touched, self.keys)) - done
            if not waiting:
                break
            nodes = self.graph.plan(waiting)
            step = chooser.next(nodes)
            self.settings.turn.yield_to_waiters()
            self._tell(step.nodes)
            if not self._taken(step, net=alone and len(step.nodes) == len(nodes)):
                # What was looked up was not enough: another way will do.
                chooser.stop_looking_up(step.nodes)
                continue
            done |= {node.id for node in step.nodes}
            waiting -= done
            touched = self._changed(step.nodes)
            alone = False
            if step.strategy is None and len(step.nodes) == len(nodes):
                break

    def result(self, before: _Version) -> tuple[_Version, SparkNetChange]:
        after = replace(
            before,
            explicit_files=self.explicit_files,
            segments=self.segments,
            terms=self.terms,
            names=self.names.with_terms({key: term for term, key in self.keys.items()}),
            introduced=frozenset(self.introduced),
            runs=tuple(self.runs),
            dropped=self.dropped,
            registry=self.settings.registry,
            rules=self.rules,
            seconds={keys: one for keys, one in self.seconds.items() if keys in self.homes},
            counted=self.counted,
        )
        # What became visible may be more than all the rest; nobody may ask.
        visible = Visible(before, after, self.effect.sifted, self.touched, self.keys)
        net = self.net
        return after, SparkNetChange(after, visible.net if net is None else lambda: net)

    def _taken(self, step: Step, *, net: bool) -> bool:
        """Bring nodes up to date; tell whether that could be done."""
        way = step.strategy
        if way is None:
            net = net and (step.looked_up is not None or self._is_small(step.nodes))
            return self._gather(step, net=net)
        in_parts = way.by is not None and all(map(self.starts_from_nothing, step.nodes))
        if in_parts or len(step.nodes) > 1:
            self._evaluate_together(step, way)
        else:
            self._evaluate(step.nodes[0], way, step.rows)
        return True

    def _is_small(self, nodes: Sequence[HyperNode]) -> bool:
        """Whether what nodes read and have is so little that telling all that changed costs nothing."""
        rules = [self.rules[key] for node in nodes for key in node.rules]
        wanted = wanted_by(body_atoms(c for rule in rules for c in rule.body), self.keys)
        self._want_net(wanted, rules, self.keys)
        was, will = (
            rows_of(wanted, (stated, *segments.values()))
            for stated, segments in (
                (self.before.explicit_files, self.before.segments),
                (self.explicit_files, self.segments),
            )
        )
        return max(was, will) <= _TOLD_AT_ONCE

    def _changed(self, nodes: Sequence[HyperNode]) -> Wanted:
        """Return the relations that nodes gained or lost facts of."""
        found: Wanted = {}
        for node in nodes:
            keys = frozenset(node.rules)
            old, new = self.before.segments.get(keys, Segment()), self.segments[keys]
            for relation in {**old.contents, **new.contents}:
                was, will = old.content(relation), new.content(relation)
                if was != will and (was.rows or will.rows):
                    classes = frozenset({**was.classes(), **will.classes()}) if relation.typed else None
                    want(found, relation, classes)
                    want(self.touched, relation, classes)
        return found

    # One region.

    def _gather(self, step: Step, *, net: bool) -> bool:
        """Bring nodes up to date in one task; tell whether that could be done."""
        nodes, looked_up = step.nodes, step.looked_up
        own = {frozenset(node.rules) for node in nodes}
        rules = {key: self.rules[key] for node in nodes for key in node.rules}
        place, settings = self.workspace, self.settings
        keys = place.keys(term for rule in rules.values() for term in constants(rule))
        parents = set() if looked_up else self.parents(own)
        kept = {k: self.before.segments[k] for k in {*own, *parents} if k in self.before.segments}
        old_rules = {key: self.before.rules[key] for k in kept for key in k} if parents else {}
        keys |= place.keys(term for rule in old_rules.values() for term in constants(rule))
        read = [atom for one in (rules, old_rules) for rule in one.values() for atom in body_atoms(rule.body)]
        wanted = wanted_by(read, keys)
        if net:
            self._want_net(wanted, rules.values(), keys)
        before, after = self.outside({*own, *parents})
        held = sum(one.rows for k, one in self.segments.items() if k not in own)
        region = RegionTask(
            rules,
            keys,
            inputs_for(wanted, before, after),
            kept,
            self.terms,
            place.scratch.folder,
            place.hashing,
            {key: one for key, one in self.dropped.items() if key in rules},
            settings.registry,
            self.same_functions,
            settings.limits,
            settings.strict and looked_up is None,
            _ON_A_SLICE if looked_up else place.options.policy,
            held + sum(one.rows for one in kept.values()),
            tuple(term for term in keys if term not in self.introduced),
            net=_TOLD_AT_ONCE if net else 0,
            rows=looked_up.rows if looked_up else None,
            old_rules=old_rules,
            seconds={k: self.before.seconds[k] for k in kept if k in self.before.seconds},
        )
        outcome = place.jobs.one(regions.run, region, "bringing rules up to date in one task", settings.turn)
        if not outcome.exact:
            return False
        self.introduced |= keys.keys()
        self._take(step, outcome, parents)
        if outcome.told:
            came, went = (self._adopted(side) for side in (outcome.inserted, outcome.deleted))
            self.net = (
                {relation: (part,) for relation, part in came.items()},
                {relation: (part,) for relation, part in went.items()},
            )
        return True

    # Nodes by plans or in parts.

    def _evaluate(self, node: HyperNode, way: Strategy, rows: int) -> None:
        """Bring one node up to date by plans on data frames."""
        start = time.perf_counter()
        keys = frozenset(node.rules)
        rules = self.rules_of(node)
        place, settings = self.workspace, self.settings
        self._introduce()
        others = sum(one.rows for k, one in self.segments.items() if k != keys)
        first = next(iter(rules.values()))
        name = first.label or format_rule(first)

        def watch(rounds: int, facts: int) -> None:
            self.meter.look(name, first.span)
            self.meter.count(others + facts, rounds, name, first.span)
            self._tell((node,), rounds, facts)

        parents = self.merged_in(keys)
        old = {k: one for k, one in self.before.segments.items() if k not in parents}
        before = owners_of(self.before.explicit_files, old, keys)
        after = owners_of(self.explicit_files, self.segments, keys)
        setting = Setting(place, settings, self.keys, before, after, watch)
        kept = self.segments.get(keys)
        result, strategy = None, way.name
        because = (
            recompute_reason(rules, way, setting, self.before.seconds.get(keys)) if kept is not None else ""
        )
        if (kept is not None or parents) and self.same_functions and self.is_exact(node) and not because:
            added = tuple(key for key in rules if not any(key in old for old in parents))
            own = (
                Inherited(kept.contents, aggregate_rows=kept.aggregate_rows)
                if kept is not None
                else Inherited.of([self.before.segments[one] for one in parents], added)
            )
            result = MaintainedNode(rules, setting, self.terms, own).maintain()
            strategy = "maintained by plans"
        if result is None:
            strategy = STRATEGIES[way.name]
            result = recompute(rules, way, setting, self.terms, rows)
            if kept is not None:
                result.contents = compared(place, kept.contents, result.contents, settings.turn)
        if settings.strict:
            refuse_errors(self.rules, result.dropped)
        self._take_new_terms(result.terms)
        self._take_dropped(rules, result.dropped)
        hidden = result.aggregate_rows or (kept.aggregate_rows if kept is not None else {})
        segment = self.segments[keys] = Segment(result.contents, hidden)
        watch(result.rounds, segment.rows)
        labels = self.labels(node)
        seconds = time.perf_counter() - start
        if not strategy.startswith(regions.MAINTAINED):
            self.seconds[keys] = seconds
        strategy = f"{strategy}: {way.why(list(rules.values()))}{because}"
        estimate = self.before.seconds.get(keys, 0.0)
        moved = self.moved(keys, segment)
        self.runs.append(
            NodeRun(labels, result.rounds, segment.rows, seconds, strategy, estimate, moved=moved)
        )

    def _evaluate_together(self, step: Step, way: Strategy) -> None:
        """Evaluate nodes from nothing: by one plan, or all of them in each of some parts."""
        start = time.perf_counter()
        nodes = step.nodes
        rules = [self.rules_of(node) for node in nodes]
        self._introduce()
        own = {frozenset(node.rules) for node in nodes}
        after = owners_of(self.explicit_files, {k: one for k, one in self.segments.items() if k not in own})
        setting = Setting(self.workspace, self.settings, self.keys, after, after, _unwatched)
        if way.by is None:
            results = pipelined.evaluate(rules, setting, self.terms)
            strategy = f"{STRATEGIES[way.name]}, the same for {len(nodes)} nodes"
        else:
            results = partitioned.evaluate(rules, way.by, setting, self.terms, step.rows)
            strategy = STRATEGIES[way.name]
        if self.settings.strict:
            refuse_errors(self.rules, {key: one for result in results for key, one in result.dropped.items()})
        self._take_new_terms(results[-1].terms)
        seconds = (time.perf_counter() - start) / len(nodes)
        for node, result in zip(nodes, results, strict=True):
            keys = frozenset(node.rules)
            segment = self.segments[keys] = Segment(result.contents)
            self.seconds[keys] = seconds
            self._take_dropped(keys, result.dropped)
            labels, first = self.labels(node), self.rules[node.rules[0]]
            self.meter.look(labels[0], first.span)
            self.meter.count(self.rows, result.rounds, labels[0], first.span)
            why = way.why(self.rules_of(node).values())
            moved = self.moved(keys, segment)
            run = NodeRun(labels, result.rounds, segment.rows, seconds, f"{strategy}: {why}", moved=moved)
            self.runs.append(run)

    def _take_new_terms(self, terms: TermFiles) -> None:
        """Make terms known that came after those that are."""
        fresh = TermFiles(terms.parts[len(self.terms.parts) :])
        self.terms = merged(self.workspace, fresh, self.terms, self.settings.turn)

    def _take_dropped(self, keys: Iterable[str], dropped: Mapping[str, Dropped]) -> None:
        """Put what evaluation errors dropped in the place of what they had dropped before."""
        for key in keys:
            self.dropped.pop(key, None)
        self.dropped.update(dropped)

    def _introduce(self) -> None:
        """Make terms known that rules mention for the first time.

        Those of all rules: a term that one mentions may be what another computes.
        """
        place = self.workspace
        new = [term for term in self.keys if term not in self.introduced]
        if new:
            dictionary = Dictionary()
            dictionary.encode_all(new)
            part = write_terms(place.scratch.folder, columns_of(dictionary, place.hashing))
            self.terms = merged(place, TermFiles((place.adopt(part),)), self.terms, self.settings.turn)
            self.introduced.update(new)

    def _want_net(self, wanted: Wanted, rules: Iterable[Rule], keys: Mapping[Term, int]) -> None:
        """Want all that may become visible or vanish as well."""
        for relation, classes in (
            *self.touched_at_first.items(),
            *wanted_by((rule.head for rule in rules), keys).items(),
        ):
            want(wanted, relation, classes)

    def _take(self, step: Step, outcome: RegionResult, parents: Collection[frozenset[str]]) -> None:
        place = self.workspace
        for keys, found in outcome.segments.items():
            kept = self.before.segments.get(keys, Segment())
            adopted = place.adopt_segment(found, self.known_parts(keys))
            if keys not in outcome.whole:
                adopted = Segment(
                    {**kept.contents, **adopted.contents}, {**kept.aggregate_rows, **adopted.aggregate_rows}
                )
            self.segments[keys] = self._compacted(adopted) if step.looked_up else adopted
        for node in step.nodes:
            self.segments.setdefault(frozenset(node.rules), Segment())
        self._take_dropped((key for node in step.nodes for key in node.rules), outcome.dropped)
        self._take_terms(outcome.terms)
        self.seconds.update(outcome.seconds)
        if len(step.nodes) == len(self.homes):
            self.counted = outcome.counted
        self._report(step, outcome.runs, parents)

    def _compacted(self, segment: Segment) -> Segment:
        place, turn = self.workspace, self.settings.turn
        return Segment(
            {relation: compacted(place, relation, one, turn) for relation, one in segment.contents.items()},
            {
                key: compacted(place, self._rows_of(key), one, turn)
                for key, one in segment.aggregate_rows.items()
            },
        )

    def _rows_of(self, key: str) -> Relation:
        aggregate = self.rules[key].aggregate
        if aggregate is None:
            raise AssertionError(key)
        return Relation.of_rows(aggregate)

    def _report(self, step: Step, runs: Sequence[NodeRun], parents: Collection[frozenset[str]]) -> None:
        """Tell how nodes were brought up to date in one task; on some rows it knew nothing of others."""
        options = self.workspace.options
        if step.looked_up is None:
            where = f"{IN_ONE_TASK}: {reason(options.strategy, step.rows, options.gather_rows)}"
            told = {run.rules: replace(run, strategy=f"{run.strategy}, {where}") for run in runs}
            for node in step.nodes:
                labels = self.labels(node)
                if labels in told and self.has_other_parents(frozenset(node.rules), parents):
                    # The task knew nothing of what the node had when its rules were in another one.
                    told[labels] = replace(told[labels], moved=None)
            self.runs += told.values()
            return
        where = f"{IN_ONE_TASK} on {step.looked_up.count:,} rows, looked up by key: {step.rows:,} rows in all"
        facts = {self.labels(node): self.segments[frozenset(node.rules)].rows for node in step.nodes}
        self.runs += [
            replace(run, strategy=f"{run.strategy}, {where}", facts=facts[run.rules]) for run in runs
        ]

    def _take_terms(self, part: DataFile) -> None:
        if part.rows:
            self.terms = TermFiles((*self.terms.parts, self.workspace.adopt(part)))

    def _adopted(self, parts: Mapping[Relation, DataFile]) -> dict[Relation, DataFile]:
        return {relation: self.workspace.adopt(part) for relation, part in parts.items()}

    def _tell(self, nodes: Sequence[HyperNode], rounds: int = 0, more: int = 0) -> None:
        if self.settings.progress:
            labels = tuple(label for node in nodes for label in self.labels(node))
            facts = self.rows + more
            self._told = Progress(len(self.runs), len(self.graph.nodes), labels, rounds, facts)
            self.settings.progress(self._told)

    def tell_stage(self, why: str) -> None:
        """Tell what a job is for that is about to run."""
        if self.settings.progress:
            self.settings.progress(replace(self._told, stage=why))


def _unwatched(rounds: int, facts: int) -> None:
    """Let a plan run on: it has no rounds."""
    del rounds, facts
