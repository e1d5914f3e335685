"""The choice of a strategy for nodes that do not fit into one task.

    gathered      a region of nodes in one task, by the embedded engine
    partitioned   nodes in independent hash partitions, recursive or not
    plans         a node that is not recursive, as one Spark plan
    rounds        a recursive node, semi-naive on hash partitions that derive facts of each other; where its
                  facts cannot be placed, one plan per round

Nodes that fit into one task are gathered, since further jobs cost more. `plans` and `rounds` work for every
node of every size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.evaluate.modules import Shape, recognise
from zodiacedge.engine.spark.evaluate import partitioned, rounds, transitive_closure
from zodiacedge.engine.spark.evaluate.seminaive import Node
from zodiacedge.engine.spark.storage.files import Relation, Segment
from zodiacedge.language.ast import body_atoms
from zodiacedge.plan.partition import Partitioning
from zodiacedge.plan.variants import recursive_atoms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from zodiacedge.engine.spark.evaluate.seminaive import Result, Setting
    from zodiacedge.engine.spark.storage.terms import TermFiles
    from zodiacedge.language.ast import Rule

STRATEGIES = {
    "plans": "evaluated by a plan",
    "rounds": "semi-naive in rounds",
    "partitioned": "partitioned",
}
"""The name of each strategy in the report of a change."""
MAINTAINED = "maintained by delta plans"
"""The name of incremental maintenance in the report."""
# Shapes of nodes that can be rewritten to linear recursion.
_CLOSURES = frozenset({Shape.TRANSITIVE, Shape.CLASSES})
# A node is recomputed if more than one in so many of the rows that it reads changed.
_MUCH = 2
# A recursive node whose partitioned recomputation takes fewer seconds than this is not maintained in rounds.
_PATIENCE = 20.0


@dataclass(frozen=True)
class NodeStrategy:
    """A strategy for a node, and the reason for it."""

    name: str
    reason: str
    by: Partitioning | None = None
    closure: bool = False
    """Whether the node is a transitive closure, which is partitioned as linear recursion."""

    def why(self, rules: Iterable[Rule]) -> str:
        """Return the reason, with the arguments by which the facts of rules are partitioned."""
        return self.reason if self.by is None else f"{self.reason}; {self.by.shown(rules)}"


def is_recursive(rules: Sequence[Rule]) -> bool:
    """Whether a node's rules are recursive."""
    heads = [rule.head for rule in rules]
    return any(recursive_atoms(rule, heads) for rule in rules)


def reason(wanted: str, rows: int, most: int) -> str:
    """Return the reason why nodes with an expected number of rows are gathered, or are not."""
    return f"{rows:,} rows, one task takes {most:,}" if wanted == "choose" else f"{wanted} is asked for"


def strategy_alone(rules: Sequence[Rule], wanted: str, rows: int, most: int) -> NodeStrategy:
    """Return the strategy of a node that is not gathered."""
    why = reason(wanted, rows, most)
    if not is_recursive(rules):
        return NodeStrategy("plans", why)
    if wanted == "rounds":
        return NodeStrategy("rounds", why)
    module = recognise(rules)
    if module is not None and module.shape in _CLOSURES:
        argument = f"{rules[0].head.relation} by argument 1"
        return NodeStrategy("partitioned", f"{why}; a closure, {argument}", closure=True)
    by = Partitioning().with_node(rules)
    if by is not None:
        return NodeStrategy("partitioned", why, by)
    return NodeStrategy("rounds", f"{why}; no argument is kept")


def recompute_reason(
    rules: Mapping[str, Rule], strategy: NodeStrategy, setting: Setting, seconds: float | None
) -> str:
    """Return why a node is recomputed instead of maintained by delta plans; empty if it is maintained.

    `seconds` is the time of its last evaluation from scratch, if known.
    """
    requested = setting.workspace.options.policy.strategy
    if requested != "choose":
        return "" if requested == "maintain" else "; that is asked for"
    atoms = [atom for rule in rules.values() for atom in body_atoms(rule.body)]
    read = changed = 0
    for relation in {Relation.of(atom) for atom in atoms}:
        for owner in {**setting.before, **setting.after}:
            was, will = (
                side.get(owner, Segment()).content(relation) for side in (setting.before, setting.after)
            )
            read += will.rows
            changed += sum(file.rows for files in was.moved(will) for file in files)
    if changed * _MUCH > read:
        return "; much changed"
    if strategy.name == "rounds" and rounds.placement_of(rules, setting.keys, setting.after) is not None:
        return "; quicker than by delta plans"
    quick = seconds is not None and seconds < _PATIENCE
    return "; quicker than in rounds" if strategy.name == "partitioned" and quick else ""


def recompute(
    rules: Mapping[str, Rule], strategy: NodeStrategy, setting: Setting, terms: TermFiles, rows: int
) -> Result:
    """Evaluate a node from scratch; `rows` is the expected number of rows read and derived."""
    if strategy.closure:
        return transitive_closure.evaluate(rules, setting, terms, rows)
    if strategy.by is not None:
        (result,) = partitioned.evaluate([rules], strategy.by, setting, terms, rows)
        return result
    placement = rounds.placement_of(rules, setting.keys, setting.after) if strategy.name == "rounds" else None
    if placement is not None:
        return rounds.evaluate(placement, setting, terms)
    return Node(rules, setting, terms).evaluate()
