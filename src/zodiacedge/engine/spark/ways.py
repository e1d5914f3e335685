"""Which way a node takes, by its shape and by the sizes of what it reads, and why.

    gathered      a region of nodes in one task, on the embedded engine's own maintenance
    partitioned   a recursive node in parts that never need each other, one stage
    plans         a node that is not recursive, as one plan of Spark
    rounds        a recursive node in rounds of plans
    classes       a symmetric and transitive node, by rounds that find the classes

Whatever one task can hold is gathered: a job costs more than it does. `plans` and `rounds` are the two sides
of one way, the one that works for every node of every size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.modules import Shape, recognise
from zodiacedge.engine.spark.partitioned import Positions, positions
from zodiacedge.engine.spark.scratch import Relation
from zodiacedge.plan.variants import recursive_places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zodiacedge.language.ast import Rule

WAYS = ("choose", "gathered", "partitioned", "rounds")


@dataclass(frozen=True)
class Way:
    """A way through a node, and the reason for it."""

    name: str
    reason: str
    by: Positions | None = None
    linear: bool = False
    """Whether the node is a closure that steps along what others have instead of along itself."""


def is_recursive(rules: Sequence[Rule]) -> bool:
    """Whether a node's rules feed each other."""
    heads = [rule.head for rule in rules]
    return any(recursive_places(rule, heads) for rule in rules)


def way_alone(rules: Sequence[Rule], wanted: str, rows: int, most: int) -> Way:
    """Return the way of a node that is not gathered."""
    why = f"{rows:,} rows, one task takes {most:,}" if wanted == "choose" else f"{wanted} is asked for"
    if not is_recursive(rules):
        return Way("plans", why)
    module = recognise(rules)
    if module is not None and module.shape is Shape.CLASSES:
        return Way("classes", f"{why}; symmetric and transitive")
    if module is not None and module.shape is Shape.TRANSITIVE and wanted in {"choose", "partitioned"}:
        relation = Relation(module.step.relation, 2)
        return Way(
            "partitioned", f"{why}; a closure, {relation.name} by argument 1", {relation: 0}, linear=True
        )
    by = positions(rules) if wanted in {"choose", "partitioned"} else None
    if by is not None:
        kept = ", ".join(f"{relation.name} by argument {place + 1}" for relation, place in by.items())
        return Way("partitioned", f"{why}; {kept}", by)
    return Way("rounds", f"{why}; no argument is kept" if wanted != "rounds" else why)
