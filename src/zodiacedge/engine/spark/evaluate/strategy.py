"""Which way a node takes, by its shape and by the sizes of what it reads, and why.

    gathered      a region of nodes in one task, on the embedded engine's own maintenance
    partitioned   nodes in parts that never need each other, recursive or not
    plans         a node that is not recursive, as one plan of Spark
    rounds        a recursive node in rounds of plans
    classes       a symmetric and transitive node, by rounds that find the classes

Whatever one task can hold is gathered: a job costs more than it does. `plans` and `rounds` are the two sides
of one way, the one that works for every node of every size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.evaluate.modules import Shape, recognise
from zodiacedge.plan.partition import Partitioning
from zodiacedge.plan.variants import recursive_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from zodiacedge.language.ast import Rule


@dataclass(frozen=True)
class Strategy:
    """A way through a node, and the reason for it."""

    name: str
    reason: str
    by: Partitioning | None = None
    linear: bool = False
    """Whether the node is a closure that steps along what others have instead of along itself."""

    def why(self, rules: Iterable[Rule]) -> str:
        """Return the reason for some rules, with how their facts are dealt out if they are."""
        return self.reason if self.by is None else f"{self.reason}; {self.by.shown(rules)}"


def is_recursive(rules: Sequence[Rule]) -> bool:
    """Whether a node's rules feed each other."""
    heads = [rule.head for rule in rules]
    return any(recursive_places(rule, heads) for rule in rules)


def reason(wanted: str, rows: int, most: int) -> str:
    """Return why nodes that read and are expected to derive so many rows are done in one task, or are not."""
    return f"{rows:,} rows, one task takes {most:,}" if wanted == "choose" else f"{wanted} is asked for"


def strategy_alone(rules: Sequence[Rule], wanted: str, rows: int, most: int) -> Strategy:
    """Return the way of a node that is not gathered."""
    why = reason(wanted, rows, most)
    if not is_recursive(rules):
        return Strategy("plans", why)
    module = recognise(rules)
    if module is not None and module.shape is Shape.CLASSES:
        return Strategy("classes", f"{why}; symmetric and transitive")
    if module is not None and module.shape is Shape.TRANSITIVE and wanted in {"choose", "partitioned"}:
        return Strategy("partitioned", f"{why}; a closure, {module.step.relation} by argument 1", linear=True)
    by = Partitioning().with_node(rules) if wanted in {"choose", "partitioned"} else None
    if by is not None:
        return Strategy("partitioned", why, by)
    return Strategy("rounds", f"{why}; no argument is kept" if wanted != "rounds" else why)
