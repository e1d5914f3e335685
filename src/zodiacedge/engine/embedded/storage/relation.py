"""Relations, and the layout of `rdf:type` facts in tables.

A class is a unary predicate: its members are a relation of their own, one column of ids. A node that derives
`rdf:type` with a variable class keeps all its `rdf:type` facts in one table of pairs instead, `TYPED`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.errors import Diagnostic, EvaluationProblem
from zodiacedge.language.ast import Variable
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.language.ast import Argument, Atom
    from zodiacedge.terms import Term

NO_CLASS = -1


class Relation(NamedTuple):
    """The name of a table, its number of columns, and the id of the class whose members it holds."""

    name: str
    arity: int
    member_of: int = NO_CLASS

    @classmethod
    def of_class(cls, number: int) -> Relation:
        """Return the relation of a class's members."""
        return cls(RDF_TYPE, 1, number)

    @property
    def is_class(self) -> bool:
        """Whether the rows are members of one class."""
        return self.member_of != NO_CLASS


TYPED = Relation(RDF_TYPE, 2)


@dataclass(frozen=True, slots=True)
class TableView:
    """One table of a relation, as an atom sees it."""

    table: Table
    member_of: int

    @property
    def is_class(self) -> bool:
        """Whether the rows are members of one class."""
        return self.member_of != NO_CLASS


def is_type_atom(atom: Atom) -> bool:
    """Whether an atom is about members of classes."""
    return atom.relation == RDF_TYPE and len(atom.args) == 2


def is_any_class(atom: Atom) -> bool:
    """Whether an atom matches the members of any class."""
    return is_type_atom(atom) and isinstance(atom.args[1], Variable)


def class_of(atom: Atom) -> Term | None:
    """Return the class whose members an atom matches, or None where it is any class, or no class."""
    if atom.relation != RDF_TYPE or len(atom.args) != 2:
        return None
    member_of = atom.args[1]
    return None if isinstance(member_of, Variable) else member_of


def in_pairs(heads: Iterable[Atom]) -> bool:
    """Whether a node with these heads keeps the members of all classes in one table of pairs."""
    return any(map(is_any_class, heads))


def stored_arguments(atom: Atom, *, pairs: bool = False) -> tuple[Argument, ...]:
    """Return the arguments that are columns of a table: the first only for a class, unless kept in pairs."""
    return atom.args if class_of(atom) is None or pairs else atom.args[:1]


def as_pairs(relation: Relation, members: Ids) -> Ids:
    """Return the members of a class as rows of `TYPED`."""
    return np.insert(members, 1, relation.member_of, axis=1)


def members_of(relation: Relation, pairs: Ids) -> Ids:
    """Return the members of a class among rows of `TYPED`."""
    members: Ids = pairs[pairs[:, 1] == relation.member_of][:, :1]
    return members


def by_class(relation: Relation, rows: Ids) -> Iterator[tuple[Relation, Ids]]:
    """Yield rows with their relation, those of `TYPED` class by class."""
    if relation != TYPED:
        yield relation, rows
        return
    for one_class in map(Relation.of_class, np.unique(rows[:, 1]).tolist()):
        yield one_class, members_of(one_class, rows)


def too_wide(name: str, arity: int, most: int) -> EvaluationProblem:
    """Return the problem of a relation or a function with more arguments than the engine takes."""
    message = f"{name} has {arity} arguments, and the embedded engine takes at most {most}"
    return EvaluationProblem(Diagnostic("E004", message, "use fewer, or the engine reference"))
