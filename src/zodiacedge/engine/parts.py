"""How the facts of a state are divided for a store: by owner, predicate and arity.

A part is a table of readable terms, two columns per argument: `a0` is what a person would write and `a0_type`
what kind of term that is. Engines turn parts into their own form and back, a column at a time:

    a0                      a0_type
    http://e/wt1            iri
    b1                      blank
    cold front              string
    kalt                    @de
    -7                      integer (decimal, double, float, boolean, dateTime likewise)
    abc                     <http://www.w3.org/2001/XMLSchema#integer>

Any other literal has its datatype in angle brackets, so a number that is none cannot be taken for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["explicit", "derived", "aggregate"]


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """Whose facts, and of which predicate.

    `owner` are the keys of the rules of a hyper-node, none for explicit facts. The rows that an aggregate
    keeps, groups before results, are a part too: `predicate` is the key of its rule then.
    """

    kind: Kind
    owner: frozenset[str]
    predicate: str
    arity: int


def column_names(arity: int) -> list[str]:
    """Return the names of the columns that hold the arguments."""
    return [name for n in range(arity) for name in (f"a{n}", f"a{n}_type")]
