"""One node from nothing, by its way; and when that is better than to maintain it by plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate import connected_components, partitioned, transitive_closure
from zodiacedge.engine.spark.evaluate.seminaive import Node, Result
from zodiacedge.engine.spark.storage.files import Relation, Segment
from zodiacedge.language.checks import body_atoms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.spark.evaluate.seminaive import Setting
    from zodiacedge.engine.spark.evaluate.strategy import Strategy
    from zodiacedge.engine.spark.storage.terms import TermFiles
    from zodiacedge.language.ast import Rule

STRATEGIES = {
    "plans": "evaluated by a plan",
    "rounds": "evaluated in rounds",
    "partitioned": "in parts",
    "classes": "evaluated in rounds, by classes",
}
"""What the report of a change says of each way."""


# Where more than one row in so many moved of what a node reads, it is evaluated anew.
_MUCH = 2
# A recursion that takes less than this in parts, from nothing, is not continued in rounds.
_PATIENCE = 20.0


def recompute_reason(
    rules: Mapping[str, Rule], way: Strategy, setting: Setting, seconds: float | None
) -> str:
    """Return why a node that could be maintained by plans is better evaluated anew, if it is.

    `seconds` is how long evaluating it took the last time, if anybody knows.
    """
    strategy = setting.workspace.options.policy.strategy
    if strategy != "choose":
        return "" if strategy == "maintain" else "; that is asked for"
    atoms = [atom for rule in rules.values() for atom in body_atoms(rule.body)]
    read = moved = 0
    for relation in {Relation.of(atom) for atom in atoms}:
        for owner in {**setting.before, **setting.after}:
            was, will = (
                side.get(owner, Segment()).content(relation) for side in (setting.before, setting.after)
            )
            read += will.rows
            moved += sum(part.rows for parts in was.moved(will) for part in parts)
    if moved * _MUCH > read:
        return "; much changed"
    quick = seconds is not None and seconds < _PATIENCE
    return "; quicker than in rounds" if way.name == "partitioned" and quick else ""


def recompute(
    rules: Mapping[str, Rule], way: Strategy, setting: Setting, terms: TermFiles, rows: int
) -> Result:
    """Evaluate a node from nothing; `rows` is how many it reads and is expected to derive."""
    if way.linear:
        return transitive_closure.evaluate(rules, setting, terms, rows)
    if way.by is not None:
        (result,) = partitioned.evaluate([rules], way.by, setting, terms, rows)
        return result
    if way.name == "classes":
        head = next(iter(rules.values())).head
        return connected_components.evaluate(Relation(head.relation, 2), setting, Result(terms=terms))
    return Node(rules, setting, terms).evaluate()
