"""A transitive node, symmetric or not, partitioned by its first argument.

`p(X, Y) :- p(X, Z), p(Z, Y)` keeps no argument of its head in one atom, so it cannot be partitioned as it is
written. Where `s` is what other owners have of `p`, `p(X, Y) :- p(X, Z), s(Z, Y)` derives the same pairs and
keeps `X`. A node that is symmetric as well steps along `s` in both directions, and starts from both ends of
each pair of `s`: it derives all pairs of each equivalence class.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate import partitioned
from zodiacedge.engine.spark.storage.files import Relation, Segment
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.plan.partition import Partitioning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.spark.evaluate.seminaive import Owners, Result, Setting
    from zodiacedge.engine.spark.storage.terms import TermFiles
    from zodiacedge.language.ast import Rule

_X, _Y, _Z = Variable("X"), Variable("Y"), Variable("Z")


def evaluate(rules: Mapping[str, Rule], setting: Setting, terms: TermFiles, rows: int) -> Result:
    """Evaluate a node of a transitive rule, or of a symmetric and a transitive one: two jobs."""
    first = next(iter(rules.values()))
    relation = Relation(first.head.relation, 2)
    head = Atom(relation.name, (_X, _Y))
    # Names that no predicate of a user can have: a relation has one partitioning under each name.
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
        owner: Segment({**one.contents, steps: one.content(relation), reverse: one.content(relation)})
        for owner, one in setting.after.items()
    }
    # The recursive node comes last, and derives again what the start gave it.
    return partitioned.evaluate(nodes, by, replace(setting, after=after), terms, rows)[-1]
