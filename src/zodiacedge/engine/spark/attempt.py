"""One change: which nodes it may reach, in regions, each brought up to date by its way.

Nothing of the old version changes: a new one has other files, and those that both have are shared. So a
change that fails, or a dry run, leaves nothing behind but files that nobody holds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from zodiacedge.engine.api import NodeRun, Progress, refuse_errors
from zodiacedge.engine.embedded.dictionary import Dictionary
from zodiacedge.engine.limits import Meter
from zodiacedge.engine.spark import partitioned
from zodiacedge.engine.spark import region as regions
from zodiacedge.engine.spark.columns import constants
from zodiacedge.engine.spark.compare import Parts, compared, visible_changes
from zodiacedge.engine.spark.inputs import Wanted, inputs_for, want, wanted_by
from zodiacedge.engine.spark.merge import merged
from zodiacedge.engine.spark.net import SparkNet
from zodiacedge.engine.spark.nodes import Node, Result, Setting, owners_of
from zodiacedge.engine.spark.region import Outcome, Region
from zodiacedge.engine.spark.scratch import Part, Relation, Segment
from zodiacedge.engine.spark.sizes import Sizes
from zodiacedge.engine.spark.vocabulary import Terms, columns_of, write_terms
from zodiacedge.engine.spark.ways import Way, way_alone
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.language.checks import body_atoms
from zodiacedge.language.printer import format_rule
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.api import Dropped, Settings
    from zodiacedge.engine.spark.batch import SparkEffect
    from zodiacedge.engine.spark.state import SparkState
    from zodiacedge.graph.draft import HyperNode
    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Argument, Rule
    from zodiacedge.terms import Term

# Where nodes read and have no more rows than this, their task also tells what became visible.
_TOLD_AT_ONCE = 100_000
# Stands for a class that no rule mentions: only an atom of any class reads it.
_UNMENTIONED = IRI("")


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


def work_out(
    before: SparkState,
    rules: Mapping[str, Rule],
    graph: HyperGraph,
    effect: SparkEffect,
    settings: Settings,
) -> SparkAttempt:
    """Work out what a change leads to."""
    return _Work(before, rules, graph, effect, settings).attempt()


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
        self.terms = self.effect.terms
        self.dropped = {key: one for key, one in before.dropped.items() if key in self.rules}
        self.same_functions = self.settings.registry is before.registry
        self.names = before.names.with_terms(self.effect.names.known)
        self.meter = Meter(self.settings.limits)
        self.touched: Wanted = {}

    def attempt(self) -> SparkAttempt:
        touched = self._touched_at_first()
        self.touched = dict(touched)
        waiting = {node.id for keys, node in self.homes.items() if self._is_new(keys)}
        alone = True
        done: set[int] = set()
        while True:
            # A recursive node reads what it derives itself.
            waiting |= set(self._readers(touched)) - done
            if not waiting:
                break
            nodes = self.graph.plan(waiting)
            region, way = self._next(nodes)
            self.settings.turn.pass_on()
            self._tell(region)
            if way is None:
                self._gather(region, net=alone and len(region) == len(nodes) and self._is_small(region))
            else:
                self._evaluate(region[0], way)
            done |= {node.id for node in region}
            waiting -= done
            touched = self._changed(region)
            alone = False
            if way is None and len(region) == len(nodes):
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
        )
        # What became visible may be more than all the rest; nobody may ask.
        return SparkAttempt(after, SparkNet(after, self._net))

    def _next(self, nodes: Sequence[HyperNode]) -> tuple[Sequence[HyperNode], Way | None]:
        """Return the nodes to come next, in topological order: a region for one task, or one by its way."""
        options = self.before.place.options
        if options.way == "gathered":
            return nodes, None
        sizes = Sizes(self.stated, self.segments, self._keys)
        fitting = 0
        for node in nodes if options.way == "choose" else nodes[:1]:
            sizes.add([self.rules[key] for key in node.rules], self.segments.get(frozenset(node.rules)))
            if sizes.total > options.gather_rows or options.way != "choose":
                break
            fitting += 1
        if fitting:
            return nodes[:fitting], None
        rules = [self.rules[key] for key in nodes[0].rules]
        return nodes[:1], way_alone(rules, options.way, sizes.total, options.gather_rows)

    def _is_small(self, nodes: Sequence[HyperNode]) -> bool:
        """Whether what nodes read and have is so little that telling all that changed costs nothing."""
        rules = [self.rules[key] for node in nodes for key in node.rules]
        wanted = wanted_by((a for rule in rules for a in (rule.head, *body_atoms(rule.body))), self._keys)
        return sum(self._rows(relation, classes) for relation, classes in wanted.items()) <= _TOLD_AT_ONCE

    def _rows(self, relation: Relation, classes: frozenset[int] | None) -> int:
        """Count what all owners have of a relation, or of some classes."""
        contents = [one.content(relation) for one in (self.stated, *self.segments.values())]
        if classes is None:
            return sum(content.rows for content in contents)
        return sum(content.classes().get(key, 0) for content in contents for key in classes)

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

    def _is_new(self, keys: frozenset[str]) -> bool:
        return keys not in self.segments or not self.same_functions

    @cached_property
    def _keys(self) -> dict[Term, int]:
        """The fingerprints of all terms that rules mention."""
        return self.before.place.keys(term for rule in self.rules.values() for term in constants(rule))

    # Who is concerned.

    def _touched_at_first(self) -> Wanted:
        """Return the relations of which facts came or went, of `rdf:type` the classes."""
        found: Wanted = {}
        sifted = self.effect.sifted
        for parts in (sifted.new, sifted.old):
            for relation, pieces in parts.items():
                classes = frozenset(key for part in pieces for key in part.classes)
                want(found, relation, classes if relation.typed else None)
        for segment in self.gone:
            for relation, content in segment.contents.items():
                if content.rows:
                    want(found, relation, frozenset(content.classes()) if relation.typed else None)
        return found

    def _readers(self, touched: Wanted) -> Iterator[int]:
        terms = {key: term for term, key in self._keys.items()}
        for relation, classes in touched.items():
            args: tuple[Argument, ...] = tuple(Variable(f"V{n}") for n in range(relation.arity))
            if classes is None:
                yield from self.graph.readers(Atom(relation.name, args)).all
                continue
            for term in {terms.get(key, _UNMENTIONED) for key in classes}:
                yield from self.graph.readers(Atom(relation.name, (args[0], term))).all

    # One region.

    def _gather(self, nodes: Sequence[HyperNode], *, net: bool) -> None:
        """Bring nodes up to date in one task."""
        own = {frozenset(node.rules) for node in nodes}
        rules = {key: self.rules[key] for node in nodes for key in node.rules}
        place, settings = self.before.place, self.settings
        keys = place.keys(term for rule in rules.values() for term in constants(rule))
        wanted = wanted_by((a for rule in rules.values() for a in body_atoms(rule.body)), keys)
        if net:
            self._want_net(wanted, rules.values(), keys)
        before, after = self._outside(own)
        kept = {k: self.before.segments[k] for k in own if k in self.before.segments}
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
            settings.strict,
            place.options.policy,
            held + sum(one.rows for one in kept.values()),
            tuple(term for term, key in keys.items() if key not in self.names.known),
            net=net,
        )
        outcome = place.jobs.one(regions.run, region, "bringing rules up to date in one task", settings.turn)
        self._take(own, rules, outcome)
        if net:
            came, went = (self._adopted(side) for side in (outcome.came, outcome.went))
            self.net = (
                {relation: (part,) for relation, part in came.items()},
                {relation: (part,) for relation, part in went.items()},
            )

    # One node by plans.

    def _evaluate(self, node: HyperNode, way: Way) -> None:
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

        before = owners_of(self.before.stated, self.before.segments, keys)
        after = owners_of(self.stated, self.segments, keys)
        setting = Setting(place, settings, self._keys, before, after, watch)
        kept = self.segments.get(keys)
        result, means = None, way.name
        exact = not any(key in self.dropped for key in rules)
        if kept is not None and self.same_functions and exact:
            result = Node(rules, setting, self.terms).maintain(kept)
            means = "maintained by plans"
        if result is None:
            means = {"plans": "evaluated by a plan", "rounds": "evaluated in rounds"}.get(
                way.name, "in parts"
            )
            if way.by is not None:
                result = partitioned.evaluate(rules, way.by, setting, Result(terms=self.terms))
            else:
                result = Node(rules, setting, self.terms).evaluate()
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
        labels = tuple(rule.label or format_rule(rule) for rule in rules.values())
        seconds = time.perf_counter() - start
        self.runs.append(NodeRun(labels, result.rounds, segment.rows, seconds, f"{means}: {way.reason}"))

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
            *self._touched_at_first().items(),
            *wanted_by((rule.head for rule in rules), keys).items(),
        ):
            want(wanted, relation, classes)

    def _take(self, own: Iterable[frozenset[str]], rules: Mapping[str, Rule], outcome: Outcome) -> None:
        place = self.before.place
        for keys, found in outcome.segments.items():
            kept = self.before.segments.get(keys, Segment())
            adopted = place.adopt_segment(found, kept.parts)
            if keys not in outcome.whole:
                adopted = Segment({**kept.contents, **adopted.contents}, {**kept.hidden, **adopted.hidden})
            self.segments[keys] = adopted
        for keys in own:
            self.segments.setdefault(keys, Segment())
        for key in rules:
            self.dropped.pop(key, None)
        self.dropped.update(outcome.dropped)
        self._take_terms(outcome.terms)
        self.runs += [replace(run, means=f"{run.means}, in one task") for run in outcome.runs]

    def _take_terms(self, part: Part) -> None:
        if part.rows:
            self.terms = Terms((*self.terms.parts, self.before.place.adopt(part)))

    def _adopted(self, parts: Mapping[Relation, Part]) -> dict[Relation, Part]:
        return {relation: self.before.place.adopt(part) for relation, part in parts.items()}

    def _tell(self, nodes: Sequence[HyperNode], rounds: int = 0, more: int = 0) -> None:
        if self.settings.progress:
            rules = (self.rules[key] for node in nodes for key in node.rules)
            labels = tuple(rule.label or format_rule(rule) for rule in rules)
            facts = sum(one.rows for one in self.segments.values()) + more
            self.settings.progress(Progress(len(self.runs), len(self.graph.nodes), labels, rounds, facts))

    # What became visible.

    def _net(self) -> tuple[Parts, Parts]:
        """Find out what became visible and what is visible no more."""
        if self.net is not None:
            return self.net
        before, after = self._outside(())
        came: Parts = {}
        went: Parts = {}
        unclear: Wanted = {}
        for relation, classes in self.touched.items():
            was, will = (
                [one.content(relation) for one in owners if one.content(relation).rows]
                for owners in (before, after)
            )
            stated = [one.content(relation) for one in (self.before.stated, self.stated)]
            if all(content in stated for content in (*was, *will)):
                for found, parts in ((came, self.effect.sifted.new), (went, self.effect.sifted.old)):
                    if relation in parts:
                        found[relation] = parts[relation]
            elif not was and len(will) == 1 and will[0].plain:
                came[relation] = tuple(will[0].parts)
            elif not will and len(was) == 1 and was[0].plain:
                went[relation] = tuple(was[0].parts)
            else:
                want(unclear, relation, classes)
        rows = sum(self._rows(relation, classes) for relation, classes in unclear.items())
        if unclear and not self.before.place.options.gathers(rows):
            old = owners_of(self.before.stated, self.before.segments)
            new = owners_of(self.stated, self.segments)
            more_came, more_went = visible_changes(self.before.place, tuple(unclear), old, new)
            came |= more_came
            went |= more_went
        elif unclear:
            outcome = self._compare(inputs_for(unclear, before, after))
            came |= {r: (part,) for r, part in self._adopted(outcome.came).items()}
            went |= {r: (part,) for r, part in self._adopted(outcome.went).items()}
        return came, went

    def _compare(self, inputs: tuple[regions.Input, ...]) -> Outcome:
        place = self.before.place
        region = Region({}, {}, inputs, {}, self.terms, place.scratch.folder, place.hashing, net=True)
        return place.jobs.one(regions.run, region, "comparing what is visible")
