"""After every change of a random session the embedded engine stands where the definition does.

Visible facts, explicit facts, every segment, counts and the reported net change must agree, by whichever
means a node is brought up to date.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from strategies import Seeded
from strategies.changes import RandomSession, random_session
from strategies.lockstep import Played, play
from strategies.scale import examples, first_seed
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.maintain.strategy import STRATEGIES
from zodiacedge.errors import ZodiacError
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Rule
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.safety import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.slow


def changes_of(session: RandomSession) -> list[Change]:
    program = session.program
    first = Change(add_rules=program.rules, add_facts=program.facts)
    rest = [Change(c.add_rules, c.remove_rules, c.add_facts, c.remove_facts) for c in session.changes]
    return [first, *rest]


def follow(seed: int, strategy: str, most_changes: int = 6, patience: int = 0) -> Played:
    """Play a session on both engines."""
    changes = changes_of(random_session(Seeded(seed), most_changes=most_changes))
    return play(changes, seed, strategy, patience)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_random_session_ends_where_the_definition_does(strategy: str) -> None:
    maintained = sum(follow(seed, strategy).maintained for seed in range(100))
    assert (maintained > 0) == (strategy in {"choose", "maintain"})


def test_a_node_may_be_given_up_at_any_point() -> None:
    maintained = sum(follow(seed, "give up", patience=1 + seed % 7).maintained for seed in range(300, 350))
    assert maintained > 0


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
