"""What the paper prints about its rule sets; times of single experiments stand beside the experiments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A row of the paper's table of data and rule sets."""

    number: int
    data: str
    nodes: int
    rules: int
    predicates: int
    facts: int
    turbines: int
    """The size of the data that the number of facts belongs to."""


RULE_SETS = (
    RuleSet(1, "DS1", 5, 6, 6, 160_800, 400),
    RuleSet(2, "DS2", 14, 18, 15, 424_300, 200),
    RuleSet(3, "DS2", 14, 18, 15, 423_101, 200),
)
