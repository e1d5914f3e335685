"""An edit: a change as a user writes it, and the time of its commit.

The clock runs from the begin of the transaction until the change is in force, with parsing, checks, the graph
and every node. The net change, which a report computes lazily, is counted afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge_bench.measure.harness import WrongCountError, clocked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.api import NodeRun
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.language.ast import Fact
    from zodiacedge_bench.measure.harness import Run

    Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Edit:
    """Rules and facts to insert and delete in one transaction."""

    add_rules: str = ""
    """A program text."""
    remove_rules: tuple[str, ...] = ()
    """Labels."""
    add_facts: tuple[Fact, ...] = ()
    remove_facts: tuple[Fact, ...] = ()

    def commit(self, kb: KnowledgeBase) -> Committed:
        """Commit the edit, with the clock running."""
        add, remove = _rows(self.add_facts), _rows(self.remove_facts)

        def transaction() -> ChangeReport:
            with kb.change() as change:
                for label in self.remove_rules:
                    change.remove_rules(label)
                if self.add_rules:
                    change.add_rules(self.add_rules)
                if add:
                    change.add_facts(add)
                if remove:
                    change.remove_facts(remove)
            return change.report

        run, report = clocked(transaction)
        inserted, deleted = report.net_counts()
        self._check(report)
        return Committed(run, report.nodes, inserted, deleted, _moved(report.nodes))

    def _check(self, report: ChangeReport) -> None:
        # An edit without effect would be fast.
        expected = (bool(self.add_rules), len(self.remove_rules), len(self.add_facts), len(self.remove_facts))
        actual = (
            bool(report.rules_added),
            len(report.rules_removed),
            report.facts_added,
            report.facts_removed,
        )
        if actual != expected:
            raise WrongCountError(f"a change had less effect than it should: {report}")


@dataclass(frozen=True, slots=True)
class Committed:
    """The time of an edit, and its net change."""

    run: Run
    nodes: tuple[NodeRun, ...]
    """The visited hyper-nodes."""
    inserted: Counts
    deleted: Counts
    moved: int = 0
    """The number of facts that segments gained or lost, visible by another segment or not."""

    @property
    def strategy(self) -> tuple[str, ...]:
        """The strategy of each visited hyper-node."""
        return tuple(node.strategy for node in self.nodes)

    @property
    def grown(self) -> int:
        """The growth of the number of visible facts."""
        return sum(self.inserted.values()) - sum(self.deleted.values())

    @property
    def changed(self) -> int:
        """The number of facts inserted or deleted, explicit ones included."""
        return sum(self.inserted.values()) + sum(self.deleted.values())


def _moved(nodes: tuple[NodeRun, ...]) -> int:
    return sum(sum(change) for node in nodes if (change := node.counted()) is not None)


def _rows(facts: tuple[Fact, ...]) -> list[tuple[object, ...]]:
    return [(fact.relation, *fact.args) for fact in facts]
