"""After every change of a random session the embedded engine stands where the definition does.

Visible facts, explicit facts, every segment, counts and the reported net change must agree, by whichever
means a node is brought up to date.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import pytest

from strategies import Seeded
from strategies.changes import RandomSession, random_session
from strategies.scale import examples, first_seed
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.maintain.strategy import STRATEGIES
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import ZodiacError
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Rule
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.safety import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.engine.api import SegmentChange
    from zodiacedge.kb.report import ChangeReport

pytestmark = pytest.mark.slow


def changes_of(session: RandomSession) -> list[Change]:
    program = session.program
    first = Change(add_rules=program.rules, add_facts=program.facts)
    rest = [Change(c.add_rules, c.remove_rules, c.add_facts, c.remove_facts) for c in session.changes]
    return [first, *rest]


def moves(report: ChangeReport) -> dict[frozenset[str], SegmentChange | None]:
    """Return what each visited node gained and lost."""
    return {frozenset(node.rules): node.counted() for node in report.nodes}


class Played(NamedTuple):
    """How many changes were compared, and how many nodes maintained."""

    steps: int
    maintained: int


def follow(seed: int, strategy: str, most_changes: int = 6) -> Played:
    """Play a session on both engines."""
    expected = KnowledgeBase(ReferenceEngine(), Settings())
    engine = EmbeddedEngine(modules=bool(seed & 1), strategy=strategy, backward=bool(seed & 2))
    found = KnowledgeBase(engine, Settings())
    maintained = 0
    changes = changes_of(random_session(Seeded(seed), most_changes=most_changes))
    for place, change in enumerate(changes):
        where = f"seed {seed}, change {place}, {strategy}"
        try:
            told = expected.apply(change)
        except ZodiacError:
            with pytest.raises(ZodiacError):
                found.apply(change)
            assert found.facts() == expected.facts(), where
            continue
        report = found.apply(change)
        maintained += sum(node.strategy == "maintained" for node in report.nodes)
        assert found.facts() == expected.facts(), where
        assert found.explicit == expected.explicit, where
        assert (report.inserted, report.deleted) == (told.inserted, told.deleted), where
        assert report.net_counts() == told.net_counts(), where
        visited, all_nodes = moves(report), moves(told)
        assert visited.items() <= all_nodes.items(), where
        assert not any(any(all_nodes[rules] or ()) for rules in all_nodes.keys() - visited.keys()), where
        assert found.derived() == expected.derived(), where
        for node in expected.graph().order:
            rules = frozenset(node.rules)
            assert found.state.segment(rules) == expected.state.segment(rules), where
    return Played(len(changes), maintained)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_random_session_ends_where_the_definition_does(strategy: str) -> None:
    maintained = sum(follow(seed, strategy).maintained for seed in range(100))
    assert (maintained > 0) == (strategy in {"choose", "maintain"})


def test_all_at_once_is_one_by_one() -> None:
    parts = sum(one_by_one(seed) for seed in range(200, 260))
    assert parts > 500


def one_by_one(seed: int) -> int:
    """Play a session change by change, and again with each rule and fact in a change of its own."""
    whole, pieces = (KnowledgeBase(EmbeddedEngine(modules=bool(seed & 1)), Settings()) for _ in range(2))
    done = 0
    for change in changes_of(random_session(Seeded(seed))):
        try:
            whole.apply(change)
            for part in parts_of(change):
                pieces.apply(part)
                done += 1
        except ZodiacError:
            # Something on the way is not a program, or the whole is none.
            return done
        assert pieces.facts() == whole.facts(), f"seed {seed}"
        for node in whole.graph().order:
            rules = frozenset(node.rules)
            assert pieces.state.segment(rules) == whole.state.segment(rules), f"seed {seed}"
    return done


def parts_of(change: Change) -> Iterator[Change]:
    """Yield what a change comes to, piece by piece: what is removed and added again stays."""
    kept = {rule_key(resolve(rule)) for rule in change.add_rules}
    for rule in change.remove_rules:
        if isinstance(rule, Rule) and rule_key(resolve(rule)) not in kept:
            yield Change(remove_rules=(rule,))
    for fact in change.remove_facts:
        if fact not in change.add_facts:
            yield Change(remove_facts=(fact,))
    for rule in change.add_rules:
        yield Change(add_rules=(rule,))
    for fact in change.add_facts:
        yield Change(add_facts=(fact,))


# A negated variable that a binding gives; groups that a binding gives, where one of its values is an error.
# Then rules that move between nodes: a class rule joins one for all classes, and leaves it; an aggregate is
# added to a node without facts; facts of a further parent do not stay; no head of a part matches some facts;
# the rule of suspects is for all classes; no head of the rest matches suspects.
@pytest.mark.parametrize("seed", [58, 317, 30145, 191, 247, 297, 10217, 268, 10926, 376, 10408, 10958, 132])
def test_sessions_that_found_a_bug(seed: int) -> None:
    assert follow(seed, "maintain").maintained > 0


# So many changes of each kind of session are compared, long sessions among them.
@pytest.mark.soak
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_very_many_random_changes(strategy: str) -> None:
    left = examples(50_000) // len(STRATEGIES)
    seeds = itertools.count(first_seed(2_000_000))
    while left > 0:
        left -= follow(next(seeds), strategy, most_changes=14).steps
