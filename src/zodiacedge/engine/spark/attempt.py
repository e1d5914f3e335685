"""One change: which nodes it may reach, in regions, each brought up to date by its way.

Nothing of the old version changes: a new one has other files, and those that both have are shared. So a
change that fails, or a dry run, leaves nothing behind but files that nobody holds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from math import inf
from typing import TYPE_CHECKING

from zodiacedge.engine.api import NodeRun, Progress, refuse_errors
from zodiacedge.engine.embedded.choose import Policy
from zodiacedge.engine.embedded.dictionary import Dictionary
from zodiacedge.engine.limits import Meter
from zodiacedge.engine.spark import chain, partitioned
from zodiacedge.engine.spark import region as regions
from zodiacedge.engine.spark.anew import MEANS, anew, anew_because
from zodiacedge.engine.spark.columns import constants
from zodiacedge.engine.spark.compact import compacted
from zodiacedge.engine.spark.compare import compared
from zodiacedge.engine.spark.dealing import Neighbours
from zodiacedge.engine.spark.inputs import Wanted, inputs_for, want, wanted_by
from zodiacedge.engine.spark.maintained import Inherited, MaintainedNode
from zodiacedge.engine.spark.merge import merged
from zodiacedge.engine.spark.net import SparkNet
from zodiacedge.engine.spark.nodes import Setting, owners_of
from zodiacedge.engine.spark.reach import readers, touched_by
from zodiacedge.engine.spark.region import Outcome, Region
from zodiacedge.engine.spark.scratch import Part, Relation, Segment
from zodiacedge.engine.spark.sizes import Sizes
from zodiacedge.engine.spark.small_change import Scope, look_up
from zodiacedge.engine.spark.values import hidden_relation
from zodiacedge.engine.spark.visible import Visible, rows_of
from zodiacedge.engine.spark.vocabulary import Terms, columns_of, write_terms
from zodiacedge.engine.spark.ways import Way, reason, way_alone
from zodiacedge.language.checks import body_atoms
from zodiacedge.language.printer import format_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.api import Dropped, Settings
    from zodiacedge.engine.spark.batch import SparkEffect
    from zodiacedge.engine.spark.compare import Parts
    from zodiacedge.engine.spark.dealing import Source
    from zodiacedge.engine.spark.small_change import LookedUp
    from zodiacedge.engine.spark.state import SparkState
    from zodiacedge.graph.draft import HyperNode
    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

# Where nodes read and have no more rows than this, and derive no more, their task also tells what became
# visible: else it would write nearly all of it a second time, for somebody who may never ask.
_TOLD_AT_ONCE = 100_000
IN_ONE_TASK = "in one task"
"""What the report of a change says of nodes that were done together."""
# How nodes are maintained on rows that were looked up: on others nothing could be said of them.
_ON_A_SLICE = Policy(modules=False, means="maintain", backward=False)


@dataclass(frozen=True)
class SparkAttempt:
    """A change that was worked out and is not in force yet."""

    after: SparkState
    net: SparkNet

    @property
    def runs(self) -> tuple[NodeRun, ...]:
        """The nodes that were visited, in order."""
        return self.after.runs

    @property
    def dropped(self) -> Mapping[str, Dropped]:
        """Bindings that evaluation errors dropped, by rule key."""
        return self.after.dropped

    def commit(self) -> SparkState:
        """Put the change in force."""
        return self.after


@dataclass(frozen=True)
class _Step:
    """The nodes to come next: all in one task, on rows that were looked up or on all, or by another way."""

    nodes: Sequence[HyperNode]
    way: Way | None = None
    looked_up: LookedUp | None = None
    rows: int = 0
    """How many rows they read and are expected to derive."""


def work_out(
    before: SparkState,
    rules: Mapping[str, Rule],
    graph: HyperGraph,
    effect: SparkEffect,
    settings: Settings,
) -> SparkAttempt:
    """Work out what a change leads to."""
    work = _Work(before, rules, graph, effect, settings)
    with before.place.jobs.telling(work.tell_stage):
        return work.attempt()


@dataclass
class _Work:
    before: SparkState
    rules: Mapping[str, Rule]
    graph: HyperGraph
    effect: SparkEffect
    settings: Settings
    runs: list[NodeRun] = field(default_factory=list)
    net: tuple[Parts, Parts] | None = None

    def __post_init__(self) -> None:
        before = self.before
        self.homes = {frozenset(node.rules): node for node in self.graph.nodes.values()}
        self.stated = self.effect.after
        self.segments = {keys: one for keys, one in before.segments.items() if keys in self.homes}
        self.gone = [one for keys, one in before.segments.items() if keys not in self.homes]
        self.touched_at_first = touched_by(self.effect.sifted, self.gone)
        self.terms = self.effect.terms
        self.dropped = {key: one for key, one in before.dropped.items() if key in self.rules}
        self.same_functions = self.settings.registry is before.registry
        self.names = before.names.with_terms(self.effect.names.known)
        self.meter = Meter(self.settings.limits)
        self.touched: Wanted = {}
        self.seconds = dict(before.seconds)
        self._told = Progress(0, len(self.graph.nodes), (), 0, 0)
        # Nodes for which too much would have to be looked up.
        self.not_to_look_up: set[int] = set()

    def attempt(self) -> SparkAttempt:
        touched = dict(self.touched_at_first)
        self.touched = dict(touched)
        waiting = {node.id for keys, node in self.homes.items() if self._is_new(keys)}
        alone = True
        done: set[int] = set()
        while True:
            # A recursive node reads what it derives itself.
            waiting |= set(readers(self.graph, touched, self._keys)) - done
            if not waiting:
                break
            nodes = self.graph.plan(waiting)
            step = self._next(nodes)
            self.settings.turn.pass_on()
            self._tell(step.nodes)
            if not self._taken(step, net=alone and len(step.nodes) == len(nodes)):
                # What was looked up was not enough: another way will do.
                self.not_to_look_up |= {node.id for node in step.nodes}
                continue
            done |= {node.id for node in step.nodes}
            waiting -= done
            touched = self._changed(step.nodes)
            alone = False
            if step.way is None and len(step.nodes) == len(nodes):
                break
        after = replace(
            self.before,
            stated=self.stated,
            segments=self.segments,
            terms=self.terms,
            names=self.names.with_terms({key: term for term, key in self._keys.items()}),
            runs=tuple(self.runs),
            dropped=self.dropped,
            registry=self.settings.registry,
            rules=self.rules,
            seconds={keys: one for keys, one in self.seconds.items() if keys in self.homes},
        )
        # What became visible may be more than all the rest; nobody may ask.
        visible = Visible(self.before, after, self.effect.sifted, self.touched, self._keys)
        net = self.net
        return SparkAttempt(after, SparkNet(after, visible.net if net is None else lambda: net))

    def _next(self, nodes: Sequence[HyperNode]) -> _Step:
        """Return the nodes to come next, in topological order: a region for one task, or one by its way."""
        options = self.before.place.options
        sizes = Sizes(self.stated, self.segments, self._keys)
        fitting = rows = 0
        for node in nodes[:1] if options.way in {"partitioned", "rounds"} else nodes:
            sizes.add(self._rules(node), self.segments.get(frozenset(node.rules)))
            if not options.gathers(sizes.total):
                break
            fitting, rows = fitting + 1, sizes.total
        if options.way == "gathered":
            return _Step(nodes, rows=rows)
        large = sizes.total > min(options.gather_rows, options.look_up_from)
        looked_up = self._look_up(nodes) if large and options.way == "choose" else None
        if looked_up is not None:
            return _Step(nodes[: looked_up.nodes], looked_up=looked_up, rows=sizes.total)
        if fitting < len(nodes) and options.way in {"choose", "partitioned"}:
            parts = self._in_parts(nodes)
            # A part is as quick as one task, and there are many at a time.
            if len(parts.nodes) > fitting:
                return _Step(parts.nodes, rows=parts.rows) if options.gathers(parts.rows) else parts
        if fitting:
            return _Step(nodes[:fitting], rows=rows)
        way = way_alone(self._rules(nodes[0]), options.way, sizes.total, options.gather_rows)
        return _Step(self._chain(nodes) if way.name == "plans" else nodes[:1], way, rows=sizes.total)

    def _in_parts(self, nodes: Sequence[HyperNode]) -> _Step:
        """Return the nodes that can be evaluated together in parts, with no other before them."""
        options = self.before.place.options
        sizes = Sizes(self.stated, self.segments, self._keys)
        chosen = options.way == "choose"
        neighbours = Neighbours(self._size_of(sizes), options.gather_rows if chosen else inf)
        found = []
        for node in nodes:
            rules = self._rules(node)
            if neighbours.take(rules, ready=self._starts_from_nothing(node)):
                sizes.add(rules, None)
                found.append(node)
        why = reason(options.way, sizes.total, options.gather_rows)
        return _Step(found, Way("partitioned", why, neighbours.dealing), rows=sizes.total)

    def _size_of(self, sizes: Sizes) -> Callable[[Source], int]:
        def size(source: Source) -> int:
            key = None if source.member_of is None else self._keys[source.member_of]
            return sizes.there(source.relation, key)

        return size

    def _chain(self, nodes: Sequence[HyperNode]) -> Sequence[HyperNode]:
        """Return the nodes that one plan derives: the first, and those after it that can go with it."""
        length, sizes = chain.Length(), Sizes(self.stated, self.segments, self._keys)
        found: list[HyperNode] = []
        for node in nodes:
            rules = self._rules(node)
            large = sizes.alone(rules) > self.before.place.options.gather_rows
            fits = chain.only_joins(rules) and self._is_new(frozenset(node.rules)) and (large or not found)
            if not fits or not length.takes(rules):
                break
            sizes.add(rules, None)
            found.append(node)
        return found or nodes[:1]

    def _rules(self, node: HyperNode) -> list[Rule]:
        return [self.rules[key] for key in node.rules]

    def _look_up(self, nodes: Sequence[HyperNode]) -> LookedUp | None:
        """Look up the rows that nodes need, as many of them as can be maintained on such rows alone."""
        kept = list(takewhile(self._can_be_looked_up, nodes))
        if not kept:
            return None
        rules = [{key: self.rules[key] for key in node.rules} for node in kept]
        atoms = [
            atom for one in rules for rule in one.values() for atom in (rule.head, *body_atoms(rule.body))
        ]
        relations = {*wanted_by(atoms, self._keys), *self.touched_at_first}
        before = owners_of(self.before.stated, self.before.segments)
        after = owners_of(self.stated, self.segments)
        place, turn = self.before.place, self.settings.turn
        found = look_up(Scope(place, turn, rules, self._keys, before, after, relations))
        if found is None or found.nodes < len(kept):
            self.not_to_look_up.add(kept[found.nodes if found else 0].id)
        return found

    def _can_be_looked_up(self, node: HyperNode) -> bool:
        known = self.same_functions and frozenset(node.rules) in self.segments
        exact = not any(key in self.dropped for key in node.rules)
        return known and exact and node.id not in self.not_to_look_up

    def _taken(self, step: _Step, *, net: bool) -> bool:
        """Bring nodes up to date; tell whether that could be done."""
        if step.way is not None and step.way.name == "plans" and len(step.nodes) > 1:
            self._evaluate_chain(step.nodes, step.way)
            return True
        if (
            step.way is not None
            and step.way.by is not None
            and all(map(self._starts_from_nothing, step.nodes))
        ):
            self._evaluate_parts(step.nodes, step.way, step.rows)
            return True
        if step.way is not None:
            self._evaluate(step.nodes[0], step.way, step.rows)
            return True
        net = net and (step.looked_up is not None or self._is_small(step.nodes))
        return self._gather(step, net=net)

    def _is_small(self, nodes: Sequence[HyperNode]) -> bool:
        """Whether what nodes read and have is so little that telling all that changed costs nothing."""
        rules = [self.rules[key] for node in nodes for key in node.rules]
        wanted = wanted_by((a for rule in rules for a in (rule.head, *body_atoms(rule.body))), self._keys)
        return rows_of(wanted, (self.stated, *self.segments.values())) <= _TOLD_AT_ONCE

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

    def _starts_from_nothing(self, node: HyperNode) -> bool:
        keys = frozenset(node.rules)
        return self._is_new(keys) and not self._merged_in(keys)

    def _is_new(self, keys: frozenset[str]) -> bool:
        return keys not in self.segments or not self.same_functions

    @cached_property
    def _keys(self) -> dict[Term, int]:
        """The fingerprints of all terms that rules mention."""
        return self.before.place.keys(term for rule in self.rules.values() for term in constants(rule))

    # One region.

    def _gather(self, step: _Step, *, net: bool) -> bool:
        """Bring nodes up to date in one task; tell whether that could be done."""
        nodes, looked_up = step.nodes, step.looked_up
        own = {frozenset(node.rules) for node in nodes}
        rules = {key: self.rules[key] for node in nodes for key in node.rules}
        place, settings = self.before.place, self.settings
        keys = place.keys(term for rule in rules.values() for term in constants(rule))
        parents = set() if looked_up else self._parents(own)
        kept = {k: self.before.segments[k] for k in {*own, *parents} if k in self.before.segments}
        old_rules = {key: self.before.rules[key] for k in kept for key in k} if parents else {}
        keys |= place.keys(term for rule in old_rules.values() for term in constants(rule))
        read = [atom for one in (rules, old_rules) for rule in one.values() for atom in body_atoms(rule.body)]
        wanted = wanted_by(read, keys)
        if net:
            self._want_net(wanted, rules.values(), keys)
        before, after = self._outside({*own, *parents})
        held = sum(one.rows for k, one in self.segments.items() if k not in own)
        region = Region(
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
            tuple(term for term, key in keys.items() if key not in self.names.known),
            net=_TOLD_AT_ONCE if net else 0,
            rows=looked_up.rows if looked_up else None,
            old_rules=old_rules,
            seconds={k: self.before.seconds[k] for k in kept if k in self.before.seconds},
        )
        outcome = place.jobs.one(regions.run, region, "bringing rules up to date in one task", settings.turn)
        if not outcome.exact:
            return False
        self._take(step, outcome)
        if outcome.told:
            came, went = (self._adopted(side) for side in (outcome.came, outcome.went))
            self.net = (
                {relation: (part,) for relation, part in came.items()},
                {relation: (part,) for relation, part in went.items()},
            )
        return True

    # One node by plans.

    def _evaluate(self, node: HyperNode, way: Way, rows: int) -> None:
        """Bring one node up to date by plans on data frames."""
        start = time.perf_counter()
        keys = frozenset(node.rules)
        rules = {key: self.rules[key] for key in node.rules}
        place, settings = self.before.place, self.settings
        self._introduce(rules.values())
        others = sum(one.rows for k, one in self.segments.items() if k != keys)
        first = next(iter(rules.values()))
        name = first.label or format_rule(first)

        def watch(rounds: int, facts: int) -> None:
            self.meter.look(name, first.span)
            self.meter.count(others + facts, rounds, name, first.span)
            self._tell((node,), rounds, facts)

        parents = self._merged_in(keys)
        old = {k: one for k, one in self.before.segments.items() if k not in parents}
        before = owners_of(self.before.stated, old, keys)
        after = owners_of(self.stated, self.segments, keys)
        setting = Setting(place, settings, self._keys, before, after, watch)
        kept = self.segments.get(keys)
        result, means = None, way.name
        exact = not any(key in self.dropped for key in rules)
        because = anew_because(rules, way, setting, self.before.seconds.get(keys)) if kept is not None else ""
        if (kept is not None or parents) and self.same_functions and exact and not because:
            added = tuple(key for key in rules if not any(key in old for old in parents))
            own = (
                Inherited(kept.contents, hidden=kept.hidden)
                if kept is not None
                else Inherited.of([self.before.segments[one] for one in parents], added)
            )
            result = MaintainedNode(rules, setting, self.terms, own).maintain()
            means = "maintained by plans"
        if result is None:
            means = MEANS[way.name]
            result = anew(rules, way, setting, self.terms, rows)
            if kept is not None:
                result.contents = compared(place, kept.contents, result.contents, settings.turn)
        if settings.strict:
            refuse_errors(self.rules, result.dropped)
        fresh = Terms(result.terms.parts[len(self.terms.parts) :])
        self.terms = merged(place, fresh, self.terms, settings.turn)
        for key in rules:
            self.dropped.pop(key, None)
        self.dropped.update(result.dropped)
        hidden = result.hidden or (kept.hidden if kept is not None else {})
        segment = self.segments[keys] = Segment(result.contents, hidden)
        watch(result.rounds, segment.rows)
        labels = self._labels(node)
        seconds = time.perf_counter() - start
        if not means.startswith(regions.MAINTAINED):
            self.seconds[keys] = seconds
        means = f"{means}: {way.why(list(rules.values()))}{because}"
        estimate = self.before.seconds.get(keys, 0.0)
        self.runs.append(NodeRun(labels, result.rounds, segment.rows, seconds, means, estimate))

    def _evaluate_chain(self, nodes: Sequence[HyperNode], way: Way) -> None:
        """Evaluate nodes from nothing by one plan."""
        start = time.perf_counter()
        rules = [{key: self.rules[key] for key in node.rules} for node in nodes]
        self._introduce(rule for one in rules for rule in one.values())
        own = {frozenset(node.rules) for node in nodes}
        after = owners_of(self.stated, {k: one for k, one in self.segments.items() if k not in own})
        setting = Setting(self.before.place, self.settings, self._keys, after, after, _unwatched)
        results = chain.evaluate(rules, setting, self.terms)
        seconds = (time.perf_counter() - start) / len(nodes)
        means = f"{MEANS[way.name]}, the same for {len(nodes)} nodes: {way.reason}"
        for node, result in zip(nodes, results, strict=True):
            keys = frozenset(node.rules)
            segment = self.segments[keys] = Segment(result.contents)
            self.seconds[keys] = seconds
            for key in keys:
                self.dropped.pop(key, None)
            labels, first = self._labels(node), self.rules[node.rules[0]]
            self.meter.look(labels[0], first.span)
            self.meter.count(sum(one.rows for one in self.segments.values()), 1, labels[0], first.span)
            self.runs.append(NodeRun(labels, 1, segment.rows, seconds, means))

    def _evaluate_parts(self, nodes: Sequence[HyperNode], way: Way, rows: int) -> None:
        """Evaluate nodes from nothing, all of them in each of some parts."""
        start = time.perf_counter()
        place, settings = self.before.place, self.settings
        rules = [{key: self.rules[key] for key in node.rules} for node in nodes]
        self._introduce(rule for one in rules for rule in one.values())
        own = {frozenset(node.rules) for node in nodes}
        after = owners_of(self.stated, {k: one for k, one in self.segments.items() if k not in own})
        setting = Setting(place, settings, self._keys, after, after, _unwatched)
        dealing = way.by
        if dealing is None:
            raise AssertionError(way)
        results = partitioned.evaluate(rules, dealing, setting, self.terms, rows)
        fresh = Terms(results[-1].terms.parts[len(self.terms.parts) :])
        self.terms = merged(place, fresh, self.terms, settings.turn)
        seconds = (time.perf_counter() - start) / len(nodes)
        for node, result in zip(nodes, results, strict=True):
            keys = frozenset(node.rules)
            segment = self.segments[keys] = Segment(result.contents)
            self.seconds[keys] = seconds
            for key in keys:
                self.dropped.pop(key, None)
            self.dropped.update(result.dropped)
            labels, first = self._labels(node), self.rules[node.rules[0]]
            total = sum(one.rows for one in self.segments.values())
            self.meter.look(labels[0], first.span)
            self.meter.count(total, result.rounds, labels[0], first.span)
            means = f"{MEANS[way.name]}: {way.why(self._rules(node))}"
            self.runs.append(NodeRun(labels, result.rounds, segment.rows, seconds, means))

    def _introduce(self, rules: Iterable[Rule]) -> None:
        """Make terms known that rules mention for the first time."""
        place = self.before.place
        keys = place.keys(term for rule in rules for term in constants(rule))
        new = [term for term, key in keys.items() if key not in self.names.known]
        if new:
            dictionary = Dictionary()
            dictionary.encode_all(new)
            part = write_terms(place.scratch.folder, columns_of(dictionary, place.hashing))
            self.terms = merged(place, Terms((place.adopt(part),)), self.terms, self.settings.turn)
            self.names = self.names.with_terms({keys[term]: term for term in new})

    def _outside(self, own: Iterable[frozenset[str]]) -> tuple[list[Segment], list[Segment]]:
        """Return what lies outside some nodes, before the change and after it."""
        inside = set(own)
        before = [one for keys, one in self.before.segments.items() if keys not in inside]
        after = [one for keys, one in self.segments.items() if keys not in inside]
        return [self.before.stated, *before], [self.stated, *after]

    def _want_net(self, wanted: Wanted, rules: Iterable[Rule], keys: Mapping[Term, int]) -> None:
        """Want all that may become visible or vanish as well."""
        for relation, classes in (
            *self.touched_at_first.items(),
            *wanted_by((rule.head for rule in rules), keys).items(),
        ):
            want(wanted, relation, classes)

    def _take(self, step: _Step, outcome: Outcome) -> None:
        place = self.before.place
        for keys, found in outcome.segments.items():
            kept = self.before.segments.get(keys, Segment())
            adopted = place.adopt_segment(found, self._known_parts(keys))
            if keys not in outcome.whole:
                adopted = Segment({**kept.contents, **adopted.contents}, {**kept.hidden, **adopted.hidden})
            self.segments[keys] = self._compacted(adopted) if step.looked_up else adopted
        for node in step.nodes:
            self.segments.setdefault(frozenset(node.rules), Segment())
            for key in node.rules:
                self.dropped.pop(key, None)
        self.dropped.update(outcome.dropped)
        self._take_terms(outcome.terms)
        self.seconds.update(outcome.seconds)
        self._report(step, outcome.runs)

    def _known_parts(self, keys: frozenset[str]) -> Iterator[Part]:
        """Yield the files of the old version that a node may have kept or taken over."""
        for old in {self._old_homes[key] for key in keys if key in self._old_homes}:
            yield from self.before.segments[old].parts

    def _parents(self, own: Collection[frozenset[str]]) -> set[frozenset[str]]:
        """Return the nodes that are no more, all of whose rules that still are have come into some nodes."""
        if not self.same_functions:
            return set()
        old_homes = {self._old_homes[key] for keys in own for key in keys if key in self._old_homes}
        found = set()
        for old in old_homes - self.homes.keys():
            heirs = {frozenset(self.graph.node_of(key).rules) for key in old if key in self.rules}
            if old <= self.before.rules.keys() and heirs <= set(own):
                found.add(old)
        return found

    @cached_property
    def _old_homes(self) -> dict[str, frozenset[str]]:
        """The nodes of the old version that rules were in."""
        return {key: keys for keys in self.before.segments for key in keys}

    def _merged_in(self, keys: frozenset[str]) -> list[frozenset[str]]:
        """Return the nodes that came together in a new one with all their rules."""
        parents = self._parents({keys}) if keys not in self.segments else set()
        return sorted(parents, key=sorted) if all(old <= keys for old in parents) else []

    def _compacted(self, segment: Segment) -> Segment:
        place, turn = self.before.place, self.settings.turn
        return Segment(
            {relation: compacted(place, relation, one, turn) for relation, one in segment.contents.items()},
            {key: compacted(place, self._rows_of(key), one, turn) for key, one in segment.hidden.items()},
        )

    def _rows_of(self, key: str) -> Relation:
        aggregate = self.rules[key].aggregate
        if aggregate is None:
            raise AssertionError(key)
        return hidden_relation(aggregate)

    def _report(self, step: _Step, runs: Sequence[NodeRun]) -> None:
        """Tell how nodes were brought up to date in one task; on some rows it knew nothing of others."""
        options = self.before.place.options
        if step.looked_up is None:
            where = f"{IN_ONE_TASK}: {reason(options.way, step.rows, options.gather_rows)}"
            self.runs += [replace(run, means=f"{run.means}, {where}") for run in runs]
            return
        where = f"{IN_ONE_TASK} on {step.looked_up.count:,} rows, looked up by key: {step.rows:,} rows in all"
        facts = {self._labels(node): self.segments[frozenset(node.rules)].rows for node in step.nodes}
        self.runs += [replace(run, means=f"{run.means}, {where}", facts=facts[run.rules]) for run in runs]

    def _labels(self, node: HyperNode) -> tuple[str, ...]:
        rules = (self.rules[key] for key in node.rules)
        return tuple(rule.label or format_rule(rule) for rule in rules)

    def _take_terms(self, part: Part) -> None:
        if part.rows:
            self.terms = Terms((*self.terms.parts, self.before.place.adopt(part)))

    def _adopted(self, parts: Mapping[Relation, Part]) -> dict[Relation, Part]:
        return {relation: self.before.place.adopt(part) for relation, part in parts.items()}

    def _tell(self, nodes: Sequence[HyperNode], rounds: int = 0, more: int = 0) -> None:
        if self.settings.progress:
            labels = tuple(label for node in nodes for label in self._labels(node))
            facts = sum(one.rows for one in self.segments.values()) + more
            self._told = Progress(len(self.runs), len(self.graph.nodes), labels, rounds, facts)
            self.settings.progress(self._told)

    def tell_stage(self, why: str) -> None:
        """Tell what a job is for that is about to run."""
        if self.settings.progress:
            self.settings.progress(replace(self._told, stage=why))


def _unwatched(rounds: int, facts: int) -> None:
    """Let a plan run on: it has no rounds."""
    del rounds, facts
