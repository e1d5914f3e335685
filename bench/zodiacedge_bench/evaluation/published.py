"""What the paper prints about its rule sets; times of single experiments stand beside the experiments."""

from __future__ import annotations

from dataclasses import dataclass

FEATURES = ("EDB negation", "IDB negation", "aggregation")


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A row of the paper's table of data and rule sets."""

    number: int
    data: str
    nodes: int
    rules: int
    predicates: int
    features: tuple[str, ...]
    """The columns of `FEATURES` that the paper ticks."""
    facts: int
    turbines: int
    """The size of the data that the number of facts belongs to."""


RULE_SETS = (
    RuleSet(1, "DS1", 5, 6, 6, ("aggregation",), 160_800, 400),
    RuleSet(2, "DS2", 14, 18, 15, ("EDB negation",), 424_300, 200),
    RuleSet(3, "DS2", 14, 18, 15, ("IDB negation",), 423_101, 200),
)

RS3_SCRATCH = {"r6 in": 24.134, "r10_new in": 24.134, "r6 out": 24.7, "r10_new out": 23.347}
"""Seconds from scratch in the two tables about RS3."""
