"""The changes that the paper measures, small: after each, every engine stands where the definition does.

Rules go and come back one by one and in the groups of the paper's figures; turbines go and come back one by
one and by the share. Facts, segments, counts and the reported net change must agree, by whichever means a
node is brought up to date, and what comes back must undo what went.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strategies.beside import EMBEDDED, Expected, played
from zodiacedge.kb.change import Change
from zodiacedge.language.parser import parse_program
from zodiacedge_bench.workloads.paper import USUAL_TEMPERATURE, data_set, rule_set, temperature, turbine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from zodiacedge.engine.api import Engine
    from zodiacedge.language.ast import Fact, Rule

pytestmark = pytest.mark.slow

RULES: dict[int, dict[str, Rule]] = {
    number: {rule.label: rule for rule in parse_program(rule_set(number)).rules} for number in (1, 2, 3)
}
# How long a chain of turbines is. Rule set 1 has one chain, the others have four.
LENGTH = {1: 6, 2: 4, 3: 4}
# The rules that go and come together: the bars of the paper's figures, and others across the graph.
GROUPS = (
    ("r10", "r15", "r17"),
    ("r10", "r15", "r18"),
    ("r2", "r3"),
    ("r7", "r8"),
    ("r12", "r13", "r14"),
    ("r1", "r4", "r6"),
)


def facts_of(number: int, more: int = 0) -> list[Fact]:
    """Return a rule set's data; in rule set 1 one turbine is warmer than the others, so that r6 finds it."""
    facts = data_set(number, LENGTH[number] + more)
    usual, warm = temperature(3, USUAL_TEMPERATURE), temperature(3, 40)
    return [warm if fact == usual else fact for fact in facts]


def loaded(number: int) -> Change:
    return Change(add_rules=tuple(RULES[number].values()), add_facts=tuple(facts_of(number)))


def rules_out_and_in(number: int, labels: Sequence[str]) -> Iterator[Change]:
    yield loaded(number)
    yield Change(remove_rules=tuple(labels))
    yield Change(add_rules=tuple(RULES[number][label] for label in labels))


def facts_out_and_in(number: int, facts: Iterable[Fact]) -> Iterator[Change]:
    moved = tuple(facts)
    yield loaded(number)
    yield Change(remove_facts=moved)
    yield Change(add_facts=moved)


def one_by_one(number: int, labels: Sequence[str]) -> Iterator[Change]:
    """Take rules away until none is left, and bring them back, the first one last."""
    yield loaded(number)
    for label in labels:
        yield Change(remove_rules=(label,))
    for label in reversed(labels):
        yield Change(add_rules=(RULES[number][label],))


def turbines_of(number: int) -> list[int]:
    return list(range(1, LENGTH[1] + 1)) if number == 1 else list(range(4 * LENGTH[number] + 1))


def facts_about(number: int, which: int) -> list[Fact]:
    return [fact for fact in facts_of(number) if turbine(which) in fact.args]


def more_turbines(number: int, more: int) -> list[Fact]:
    there = set(facts_of(number))
    return [fact for fact in facts_of(number, more) if fact not in there]


def stories() -> Iterator[tuple[str, Expected]]:
    for number, rules in RULES.items():
        for label in rules:
            yield f"RS{number} {label}", Expected(tuple(rules_out_and_in(number, [label])))
        for which in turbines_of(number):
            moved = facts_about(number, which)
            yield f"RS{number} turbine {which}", Expected(tuple(facts_out_and_in(number, moved)))
        for more in (1, 2, 3):
            coming = tuple(more_turbines(number, more))
            changes = (loaded(number), Change(add_facts=coming), Change(remove_facts=coming))
            yield f"RS{number} {more} more turbines", Expected(changes)
        yield f"RS{number} all rules", Expected(tuple(one_by_one(number, tuple(rules))))
        backwards = tuple(reversed(rules))
        yield f"RS{number} all rules, backwards", Expected(tuple(one_by_one(number, backwards)))
    for labels in GROUPS:
        yield f"RS2 {' '.join(labels)}", Expected(tuple(rules_out_and_in(2, labels)))
    yield "RS3 r6 r10_new", Expected(tuple(rules_out_and_in(3, ("r6", "r10_new"))))


STORIES = dict(stories())


@pytest.mark.parametrize("engine", EMBEDDED.values(), ids=EMBEDDED)
@pytest.mark.parametrize("story", STORIES)
def test_a_change_of_the_paper_leads_where_the_definition_does(story: str, engine: Engine) -> None:
    expected = STORIES[story]
    found = played(engine, expected.changes)
    assert [one.differences(wanted) for one, wanted in zip(found, expected.seen, strict=True)] == [
        [] for _ in expected.changes
    ]


@pytest.mark.parametrize("story", STORIES)
def test_what_comes_back_undoes_what_went(story: str) -> None:
    seen = STORIES[story].seen
    assert (seen[-1].facts, seen[-1].segments) == (seen[0].facts, seen[0].segments)
    for out, back in zip(seen[1:], reversed(seen[1:]), strict=True):
        assert (out.inserted, out.deleted) == (back.deleted, back.inserted)


def test_every_story_but_r14_moves_a_fact() -> None:
    still = {name for name, one in STORIES.items() if not one.seen[1].inserted | one.seen[1].deleted}
    # r14 gives back to p20 what came from it.
    assert still == {"RS2 r14", "RS3 r14"}
