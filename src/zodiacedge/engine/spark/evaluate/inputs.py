"""The files that atoms read: by relation, the files of all owners before and after a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from zodiacedge.engine.spark.storage.files import Relation, Segment, SignedFiles
from zodiacedge.language.ast import Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.language.ast import Atom
    from zodiacedge.terms import Term

# The relations to read; of `rdf:type` the classes, None for all.
Wanted = dict[Relation, "frozenset[int] | None"]
_Key = TypeVar("_Key", bound=tuple[object, ...])


@dataclass(frozen=True)
class Input:
    """The files of a relation by owner: before a change and, if they differ, after it."""

    relation: Relation
    before: tuple[SignedFiles, ...]
    after: tuple[SignedFiles, ...] | None = None
    classes: frozenset[int] | None = None
    """Of `rdf:type`, the classes that are read; None for all."""


def read_by(atom: Atom, keys: Mapping[Term, int]) -> tuple[Relation, int | None]:
    """Return the relation that an atom reads and, if it reads one class of `rdf:type`, that class."""
    relation = Relation.of(atom)
    if not relation.typed or isinstance(atom.args[1], Variable):
        return relation, None
    return relation, keys[atom.args[1]]


def wanted_by(atoms: Iterable[Atom], keys: Mapping[Term, int]) -> Wanted:
    """Return the relations that atoms read, and the classes of `rdf:type`."""
    wanted: Wanted = {}
    for atom in atoms:
        relation, class_ = read_by(atom, keys)
        want(wanted, relation, None if class_ is None else frozenset({class_}))
    return wanted


def want(wanted: dict[_Key, frozenset[int] | None], key: _Key, classes: frozenset[int] | None) -> None:
    """Add a relation and classes to `wanted`, or the relation with something else as a key."""
    known = wanted.get(key, frozenset())
    wanted[key] = None if classes is None or known is None else known | classes


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
