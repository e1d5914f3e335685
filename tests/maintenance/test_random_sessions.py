"""After every change of a random session the embedded engine stands where the definition does.

Visible facts, explicit facts, every segment, counts and the reported net change must agree, by whichever
means a node is brought up to date.
"""

from __future__ import annotations

import pytest

from strategies import Seeded
from strategies.changes import RandomSession, random_session
from strategies.scale import examples
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.attempt import MEANS
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import ZodiacError
from zodiacedge.knowledge import KnowledgeBase
from zodiacedge.maintenance.change import Change

pytestmark = pytest.mark.slow


def changes_of(session: RandomSession) -> list[Change]:
    program = session.program
    first = Change(add_rules=program.rules, add_facts=program.facts)
    rest = [Change(c.add_rules, c.remove_rules, c.add_facts, c.remove_facts) for c in session.changes]
    return [first, *rest]


def follow(seed: int, means: str) -> int:
    """Play a session on both engines; return how many nodes were maintained."""
    expected = KnowledgeBase(ReferenceEngine(), Settings())
    engine = EmbeddedEngine(modules=bool(seed & 1), means=means, backward=bool(seed & 2))
    found = KnowledgeBase(engine, Settings())
    maintained = 0
    for place, change in enumerate(changes_of(random_session(Seeded(seed)))):
        where = f"seed {seed}, change {place}, {means}"
        try:
            told = expected.apply(change)
        except ZodiacError:
            with pytest.raises(ZodiacError):
                found.apply(change)
            assert found.facts() == expected.facts(), where
            continue
        report = found.apply(change)
        maintained += sum(node.means == "maintained" for node in report.nodes)
        assert found.facts() == expected.facts(), where
        assert found.explicit == expected.explicit, where
        assert (report.inserted, report.deleted) == (told.inserted, told.deleted), where
        assert report.net_counts() == told.net_counts(), where
        assert found.derived() == expected.derived(), where
        for node in expected.graph().order:
            rules = frozenset(node.rules)
            assert found.state.segment(rules) == expected.state.segment(rules), where
    return maintained


@pytest.mark.parametrize("means", MEANS)
def test_a_random_session_ends_where_the_definition_does(means: str) -> None:
    maintained = sum(follow(seed, means) for seed in range(100))
    assert (maintained > 0) == (means != "anew")


# A negated variable that a binding gives; groups that a binding gives, where one of its values is an error.
@pytest.mark.parametrize("seed", [58, 317])
def test_sessions_that_found_a_bug(seed: int) -> None:
    assert follow(seed, "maintain") > 0


@pytest.mark.soak
def test_very_many_random_sessions() -> None:
    for seed in range(2_000_000, 2_000_000 + examples(12_000)):
        follow(seed, MEANS[seed % len(MEANS)])
