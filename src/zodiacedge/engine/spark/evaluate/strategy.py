"""The strategies for nodes that one task cannot hold: which one a node takes, and how it is recomputed.

    gathered      a region of nodes in one task, by the embedded engine
    partitioned   nodes hash-partitioned so that no partition needs another, recursive or not
    plans         a node that is not recursive, as one plan of Spark
    rounds        a recursive node, semi-naive: a plan per round

Whatever one task can hold is gathered: a job costs more than it does. `plans` and `rounds` work for every
node of every size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.evaluate.modules import Shape, recognise
from zodiacedge.engine.spark.evaluate import partitioned, transitive_closure
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
"""How the report of a change names each strategy."""
MAINTAINED = "maintained by delta plans"
"""How it names incremental maintenance."""
# Closures that a transitive rule gives, which linear recursion gives as well.
_CLOSURES = frozenset({Shape.TRANSITIVE, Shape.CLASSES})
# Where more than one row in so many changed of what a node reads, it is recomputed.
_MUCH = 2
# A recursion that takes fewer seconds than this partitioned, from scratch, is not continued in rounds.
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
        """Return the reason for some rules, with the arguments that their facts are partitioned by."""
        return self.reason if self.by is None else f"{self.reason}; {self.by.shown(rules)}"


def is_recursive(rules: Sequence[Rule]) -> bool:
    """Whether a node's rules feed each other."""
    heads = [rule.head for rule in rules]
    return any(recursive_atoms(rule, heads) for rule in rules)


def reason(wanted: str, rows: int, most: int) -> str:
    """Return why nodes that read and are expected to derive so many rows take one task, or do not."""
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
    """Return why a node that could be maintained by delta plans is recomputed instead, if it is.

    `seconds` is how long evaluating it from scratch took the last time, if that is known.
    """
    asked = setting.workspace.options.policy.strategy
    if asked != "choose":
        return "" if asked == "maintain" else "; that is asked for"
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
    quick = seconds is not None and seconds < _PATIENCE
    return "; quicker than in rounds" if strategy.name == "partitioned" and quick else ""


def recompute(
    rules: Mapping[str, Rule], strategy: NodeStrategy, setting: Setting, terms: TermFiles, rows: int
) -> Result:
    """Evaluate a node from scratch; `rows` is how many it reads and is expected to derive."""
    if strategy.closure:
        return transitive_closure.evaluate(rules, setting, terms, rows)
    if strategy.by is not None:
        (result,) = partitioned.evaluate([rules], strategy.by, setting, terms, rows)
        return result
    return Node(rules, setting, terms).evaluate()
