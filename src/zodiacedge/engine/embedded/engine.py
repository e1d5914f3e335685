"""The engine `embedded`: node after node, each on the rule machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Answer, Dropped, NodeRun, Progress, Settings, refuse_errors
from zodiacedge.engine.embedded.node import NodeRun as Evaluation
from zodiacedge.engine.embedded.store import Store
from zodiacedge.engine.limits import Meter
from zodiacedge.language.ast import Atom, Fact, Query, Rule
from zodiacedge.language.printer import format_rule
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Predicate


@dataclass(frozen=True, slots=True)
class EmbeddedMaterialisation:
    """The state of the embedded engine."""

    store: Store
    runs: tuple[NodeRun, ...]
    dropped: Mapping[str, Dropped]

    def visible(self) -> frozenset[Fact]:
        """All facts: explicit ones and those of every segment."""
        return frozenset(self.store.facts(self.store.explicit)) | self.derived()

    def segment(self, rules: frozenset[str]) -> frozenset[Fact]:
        """All facts that the hyper-node of these rules derives."""
        return frozenset(self.store.facts(self.store.segments[rules]))

    def derived(self) -> frozenset[Fact]:
        """The union of all segments, explicit too or not."""
        return frozenset(f for s in self.store.segments.values() for f in self.store.facts(s))

    def derived_counts(self) -> Mapping[Predicate, int]:
        """Count the derived facts of each predicate, without listing them."""
        return self.store.counts(self.store.segments.values())

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of all visible facts."""
        return frozenset(self.store.counts((self.store.explicit, *self.store.segments.values())))

    def answer(self, query: Query, settings: Settings) -> Answer:
        """Answer a resolved query."""
        head = Atom("answers to a query", query.columns, query.span)
        rule = Rule(head, query.body, span=query.span)
        run = Evaluation(self.store, {"": rule}, settings.registry, lambda _rounds, _facts: None)
        result = run.evaluate()
        found = [fact.args for fact in self.store.facts(result.segment)]
        rows = sorted(found, key=lambda row: tuple(map(order_key, row)))
        return Answer(tuple(rows), result.dropped.get(""))


class EmbeddedEngine:
    """The engine `embedded`."""

    name = "embedded"

    def __init__(self, *, modules: bool = True) -> None:
        """Say whether nodes of a known shape go to the algorithm made for it."""
        self._modules = modules

    def materialise(
        self,
        rules: Mapping[str, Rule],
        graph: HyperGraph,
        facts: Iterable[Fact],
        settings: Settings,
    ) -> EmbeddedMaterialisation:
        """Evaluate checked and resolved rules, given by key, over explicit facts."""
        store = Store()
        store.load(facts)
        meter = Meter(settings.limits)
        runs: list[NodeRun] = []
        dropped: dict[str, Dropped] = {}
        total = 0
        for place, node in enumerate(graph.order):
            start = time.perf_counter()
            own = {key: rules[key] for key in node.rules}
            watch = _Watch(settings, meter, place, len(graph.order), tuple(own.values()), total)
            result = Evaluation(store, own, settings.registry, watch, modules=self._modules).evaluate()
            watch(result.rounds, len(result.segment))
            if settings.strict:
                refuse_errors(rules, result.dropped)
            store.add_segment(frozenset(own), result.segment)
            total += len(result.segment)
            dropped |= result.dropped
            seconds = time.perf_counter() - start
            runs.append(NodeRun(watch.labels, result.rounds, len(result.segment), seconds))
        return EmbeddedMaterialisation(store, tuple(runs), dropped)


@dataclass(frozen=True, slots=True)
class _Watch:
    # Called while a node runs: limits and progress.
    settings: Settings
    meter: Meter
    place: int
    nodes: int
    rules: tuple[Rule, ...]
    before: int

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(rule.label or format_rule(rule) for rule in self.rules)

    def __call__(self, rounds: int, facts: int) -> None:
        first = self.rules[0]
        name = first.label or format_rule(first)
        self.meter.look(name, first.span)
        self.meter.count(self.before + facts, rounds, name, first.span)
        if self.settings.progress:
            self.settings.progress(Progress(self.place, self.nodes, self.labels, rounds, self.before + facts))
