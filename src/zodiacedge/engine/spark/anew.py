"""One node from nothing, by its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.spark import closure, components, partitioned
from zodiacedge.engine.spark.nodes import Node, Result
from zodiacedge.engine.spark.scratch import Relation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.spark.nodes import Setting
    from zodiacedge.engine.spark.vocabulary import Terms
    from zodiacedge.engine.spark.ways import Way
    from zodiacedge.language.ast import Rule

MEANS = {
    "plans": "evaluated by a plan",
    "rounds": "evaluated in rounds",
    "partitioned": "in parts",
    "classes": "evaluated in rounds, by classes",
}
"""What the report of a change says of each way."""


def anew(rules: Mapping[str, Rule], way: Way, setting: Setting, terms: Terms) -> Result:
    """Evaluate a node from nothing."""
    result = Result(terms=terms)
    if way.by is not None and way.linear:
        return closure.evaluate(rules, way.by, setting, result)
    if way.by is not None:
        return partitioned.evaluate(rules, way.by, setting, result)
    if way.name == "classes":
        head = next(iter(rules.values())).head
        return components.evaluate(Relation(head.relation, 2), setting, result)
    return Node(rules, setting, terms).evaluate()
