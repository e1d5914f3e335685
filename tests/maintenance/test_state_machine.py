"""The laws, after every step of sessions that hypothesis makes up and shrinks.

All ways to bring a node up to date walk side by side: maintained with doubtful facts proved or deleted first,
with modules and without, evaluated anew, begun and given up, and whatever the engine chooses.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from strategies import apply_change, examples, random_program
from strategies.changes import random_change
from strategies.dice import Drawn
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import ZodiacError
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase

pytestmark = pytest.mark.slow

ENGINES = {
    "proved": EmbeddedEngine(strategy="maintain"),
    "proved, no modules": EmbeddedEngine(strategy="maintain", modules=False),
    "deleted first": EmbeddedEngine(strategy="maintain", backward=False),
    "recompute": EmbeddedEngine(strategy="recompute"),
    "given up": EmbeddedEngine(strategy="give up", modules=False),
    "chosen": EmbeddedEngine(),
}


class Sessions(RuleBasedStateMachine):
    """One knowledge base on the definition, and one for each way."""

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.program = random_program(Drawn(data.draw))
        self.seen = list(self.program.rules)
        self.expected = KnowledgeBase(ReferenceEngine(), Settings())
        self.found = {name: KnowledgeBase(engine, Settings()) for name, engine in ENGINES.items()}
        self.apply(Change(add_rules=self.program.rules, add_facts=self.program.facts))

    @rule(data=st.data())
    def change(self, data: st.DataObject) -> None:
        change = random_change(Drawn(data.draw), self.program, self.seen)
        self.seen += change.add_rules
        if self.apply(Change(change.add_rules, change.remove_rules, change.add_facts, change.remove_facts)):
            self.program = apply_change(self.program, change)

    def apply(self, change: Change) -> bool:
        """Change all; return whether the change was taken."""
        try:
            told = self.expected.apply(change)
        except ZodiacError:
            for kb in self.found.values():
                with pytest.raises(ZodiacError):
                    kb.apply(change)
            self.compare()
            return False
        for name, kb in self.found.items():
            report = kb.apply(change)
            assert (report.inserted, report.deleted) == (told.inserted, told.deleted), name
            assert report.net_counts() == told.net_counts(), name
        self.compare()
        return True

    def compare(self) -> None:
        """Check all laws."""
        visible, explicit = self.expected.facts(), self.expected.explicit
        nodes = [frozenset(node.rules) for node in self.expected.graph().order]
        for name, kb in self.found.items():
            assert kb.version == self.expected.version, name
            assert kb.facts() == visible, name
            assert kb.explicit == explicit, name
            assert kb.derived() == self.expected.derived(), name
            for rules in nodes:
                assert kb.state.segment(rules) == self.expected.state.segment(rules), name


def run(sessions: int, *, derandomize: bool) -> None:
    run_state_machine_as_test(
        Sessions,
        settings=settings(
            max_examples=sessions,
            stateful_step_count=12,
            deadline=None,
            derandomize=derandomize,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_sessions() -> None:
    run(25, derandomize=True)


@pytest.mark.soak
def test_very_many_sessions() -> None:
    run(examples(100, one_in=500), derandomize=False)
