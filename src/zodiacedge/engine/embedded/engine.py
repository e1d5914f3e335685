"""The engine `embedded`: node after node, each on the rule machine."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Answer, Dropped, NodeRun, Progress, Settings
from zodiacedge.engine.embedded.node import NodeRun as Evaluation
from zodiacedge.engine.embedded.store import Store
from zodiacedge.engine.limits import Meter
from zodiacedge.errors import Diagnostic, EvaluationProblem
from zodiacedge.language.ast import Atom, Fact, Query, Rule, Variable
from zodiacedge.language.printer import format_rule
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.graph.hrdg import HyperGraph


@dataclass(frozen=True, slots=True)
class EmbeddedMaterialisation:
    """The state of the embedded engine."""

    store: Store
    runs: tuple[NodeRun, ...]
    dropped: Mapping[str, Dropped]
    _cache: dict[str, frozenset[Fact]] = field(default_factory=dict)

    def visible(self) -> frozenset[Fact]:
        """All facts: explicit ones and those of every segment."""
        return frozenset(self.store.facts(self.store.explicit)) | self.derived()

    def segment(self, rules: frozenset[str]) -> frozenset[Fact]:
        """All facts that the hyper-node of these rules derives."""
        return frozenset(self.store.facts(self.store.segments[rules]))

    def derived(self) -> frozenset[Fact]:
        """The union of all segments, explicit too or not."""
        return frozenset(f for s in self.store.segments.values() for f in self.store.facts(s))

    def answer(self, query: Query, settings: Settings) -> Answer:
        """Answer a resolved query."""
        names = tuple(c for c in query.columns if isinstance(c, Variable))
        head = Atom("answers to a query", query.columns, query.span)
        rule = Rule(head, query.body, span=query.span)
        run = Evaluation(self.store, {"": rule}, settings.registry, lambda _rounds, _facts: None)
        result = run.evaluate()
        del names
        found = [fact.args for fact in self.store.facts(result.segment)]
        for table in result.segment.tables.values():
            table.drop()
        rows = sorted(found, key=lambda row: tuple(map(order_key, row)))
        return Answer(tuple(rows), result.dropped.get(""))


class EmbeddedEngine:
    """The engine `embedded`."""

    name = "embedded"

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
            labels = tuple(r.label or format_rule(r) for r in own.values())
            first = next(iter(own.values()))

            def watch(rounds: int, count: int, place: int = place, labels: tuple[str, ...] = labels) -> None:
                meter.look(labels[0], first.span)  # noqa: B023 - called while the node runs
                meter.count(total + count, rounds, labels[0], first.span)  # noqa: B023
                if settings.progress:
                    settings.progress(Progress(place, len(graph.order), labels, rounds, total + count))

            result = Evaluation(store, own, settings.registry, watch).evaluate()
            watch(result.rounds, len(result.segment))
            store.add_segment(frozenset(own), result.segment)
            total += len(result.segment)
            dropped |= result.dropped
            if settings.strict and result.dropped:
                raise EvaluationProblem(
                    [
                        Diagnostic(
                            "E002",
                            f"rule {rules[k].label or format_rule(rules[k])} drops {d.count:,} bindings: "
                            f"{d.example}",
                            "strict mode refuses evaluation errors; nothing was changed",
                            rules[k].span,
                        )
                        for k, d in result.dropped.items()
                    ]
                )
            runs.append(NodeRun(labels, result.rounds, len(result.segment), time.perf_counter() - start))
        return EmbeddedMaterialisation(store, tuple(runs), dropped)
