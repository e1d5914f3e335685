"""Evaluation of a transitive node, symmetric or not, partitioned by its first argument.

`p(X, Y) :- p(X, Z), p(Z, Y)` has no variable that the head and both atoms share, so it cannot be partitioned
as it is written. Let `s` be the facts of `p` of other owners: `p(X, Y) :- p(X, Z), s(Z, Y)` derives the same
pairs, and its head and its recursive atom share `X`. A node that is also symmetric follows `s` in both
directions, and starts from both ends of each pair of `s`: it derives all pairs of each equivalence class.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate import partitioned
from zodiacedge.engine.spark.storage.files import Owners, Relation, Segment
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.plan.partition import Partitioning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.spark.evaluate.seminaive import Result, Setting
    from zodiacedge.engine.spark.storage.terms import TermFiles
    from zodiacedge.language.ast import Rule

_X, _Y, _Z = Variable("X"), Variable("Y"), Variable("Z")


def evaluate(rules: Mapping[str, Rule], setting: Setting, terms: TermFiles, rows: int) -> Result:
    """Evaluate a node of a transitive rule, or of a symmetric and a transitive rule, in two jobs."""
    first = next(iter(rules.values()))
    relation = Relation(first.head.relation, 2)
    head = Atom(relation.name, (_X, _Y))
    # Names that no predicate of a user can have: one for each partitioning of the relation.
    steps = Relation(f"steps along {relation.name}", 2)
    reverse = Relation(f"reverse of {relation.name}", 2)
    directions = (Atom(steps.name, (_Z, _Y)), Atom(steps.name, (_Y, _Z)))
    linear = {
        key: replace(rule, head=head, body=(Atom(relation.name, (_X, _Z)), step))
        for (key, rule), step in zip(rules.items(), directions, strict=False)
    }
    starts = {reverse.name: replace(first, head=head, body=(Atom(reverse.name, (_Y, _X)),))}
    nodes = [linear] if len(rules) == 1 else [starts, linear]
    by = Partitioning().with_node([rule for node in nodes for rule in node.values()])
    if by is None:
        raise AssertionError(nodes)
    after: Owners = {
        owner: Segment(
            {**segment.contents, steps: segment.content(relation), reverse: segment.content(relation)}
        )
        for owner, segment in setting.after.items()
    }
    # The last node is the recursive one, whose segment includes the facts of the first.
    return partitioned.evaluate(nodes, by, replace(setting, after=after), terms, rows)[-1]
