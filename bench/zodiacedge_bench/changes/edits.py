"""An edit: a change as a user writes it, and what committing it takes.

The clock runs from the begin of the transaction until the change is in force: parsing, checks, the graph,
every node, all is in it. What came and went, which a report finds when it is asked, is counted behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge_bench.measure.harness import WrongCountError, clocked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.language.ast import Fact
    from zodiacedge_bench.measure.harness import Run

    Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Edit:
    """Rules and facts that come and go in one transaction."""

    add_rules: str = ""
    """A program text."""
    remove_rules: tuple[str, ...] = ()
    """Labels."""
    add_facts: tuple[Fact, ...] = ()
    remove_facts: tuple[Fact, ...] = ()

    def commit(self, kb: KnowledgeBase) -> Committed:
        """Carry the edit out, with the clock running."""
        add, remove = _rows(self.add_facts), _rows(self.remove_facts)

        def work() -> ChangeReport:
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

        run, report = clocked(work)
        came, went = report.net_counts()
        self._check(report)
        return Committed(run, tuple(node.strategy for node in report.nodes), came, went)

    def _check(self, report: ChangeReport) -> None:
        # What is there already, or is not there to be removed, would make an edit quick.
        wanted = (bool(self.add_rules), len(self.remove_rules), len(self.add_facts), len(self.remove_facts))
        found = (
            bool(report.rules_added),
            len(report.rules_removed),
            report.facts_added,
            report.facts_removed,
        )
        if found != wanted:
            raise WrongCountError(f"a change had less effect than it should: {report}")


@dataclass(frozen=True, slots=True)
class Committed:
    """What an edit took, and what came of it."""

    run: Run
    strategy: tuple[str, ...]
    """How each hyper-node that was visited was brought up to date."""
    came: Counts
    went: Counts

    @property
    def grown(self) -> int:
        """By how much the number of visible facts grew or shrank."""
        return sum(self.came.values()) - sum(self.went.values())

    @property
    def touched(self) -> int:
        """How many facts came or went, explicit ones included."""
        return sum(self.came.values()) + sum(self.went.values())


def _rows(facts: tuple[Fact, ...]) -> list[tuple[object, ...]]:
    return [(fact.relation, *fact.args) for fact in facts]
