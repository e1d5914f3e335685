"""The files that atoms read: by relation, the files of all owners before and after a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.storage.files import TYPED, Relation, Segment, SignedFiles
from zodiacedge.language.ast import Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.language.ast import Atom
    from zodiacedge.terms import Term

# The relations to read; of `rdf:type` the classes, None for all.
Wanted = dict[Relation, "frozenset[int] | None"]


@dataclass(frozen=True)
class Input:
    """The files of a relation by owner: before a change and, if they differ, after it."""

    relation: Relation
    before: tuple[SignedFiles, ...]
    after: tuple[SignedFiles, ...] | None = None
    classes: frozenset[int] | None = None
    """Of `rdf:type`, the classes that are read; None for all."""


def wanted_by(atoms: Iterable[Atom], keys: Mapping[Term, int]) -> Wanted:
    """Return the relations that atoms read, and the classes of `rdf:type`."""
    wanted: Wanted = {}
    for atom in atoms:
        relation = Relation.of(atom)
        if relation != TYPED or isinstance(atom.args[1], Variable):
            wanted[relation] = None
        else:
            want(wanted, relation, frozenset({keys[atom.args[1]]}))
    return wanted


def want(wanted: Wanted, relation: Relation, classes: frozenset[int] | None) -> None:
    """Add a relation and classes to `wanted`."""
    known = wanted.get(relation, frozenset())
    wanted[relation] = None if classes is None or known is None else known | classes


def inputs_of(
    atoms: Iterable[Atom], keys: Mapping[Term, int], before: Iterable[Segment], after: Iterable[Segment]
) -> tuple[Input, ...]:
    """Return the inputs of atoms, from the files of owners."""
    return inputs_for(wanted_by(atoms, keys), before, after)


def inputs_for(wanted: Wanted, before: Iterable[Segment], after: Iterable[Segment]) -> tuple[Input, ...]:
    """Return the inputs for wanted relations, from the files of owners."""
    old, new = tuple(before), tuple(after)
    inputs = []
    for relation, classes in wanted.items():
        was, will = (_contents(relation, owners, classes) for owners in (old, new))
        inputs.append(Input(relation, was, None if was == will else will, classes))
    return tuple(inputs)


def _contents(
    relation: Relation, owners: Iterable[Segment], classes: frozenset[int] | None
) -> tuple[SignedFiles, ...]:
    contents = (owner.content(relation) for owner in owners)
    return tuple(
        content
        for content in contents
        if content.layers
        and (classes is None or any(classes & file.classes.keys() for file in content.parts))
    )
