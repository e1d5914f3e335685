"""A transitive node in parts: `p(X, Y) :- p(X, Z), p(Z, Y)` keeps no argument, and need not be followed so.

Whatever it reaches from a term, it reaches by steps along what others have of `p`, and where `s` is that,
`p(X, Y) :- p(X, Z), s(Z, Y)` says the same. The segment is the same too, all pairs that two or more steps
join, and the argument `X` is kept.
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
    """Evaluate a node of one transitive rule in parts."""
    ((key, rule),) = rules.items()
    relation = Relation(rule.head.relation, 2)
    # A name that no predicate of a user can have.
    steps = Relation(f"steps along {relation.name}", 2)
    linear = replace(
        rule,
        head=Atom(relation.name, (_X, _Y)),
        body=(Atom(relation.name, (_X, _Z)), Atom(steps.name, (_Z, _Y))),
    )
    after: Owners = {
        owner: Segment({**one.contents, steps: one.content(relation)}) for owner, one in setting.after.items()
    }
    by = Partitioning().with_node([linear])
    if by is None:
        raise AssertionError(linear)
    (result,) = partitioned.evaluate([{key: linear}], by, replace(setting, after=after), terms, rows)
    return result
