"""The nodes that a change affects: those with an atom that matches an inserted or deleted fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate.inputs import Wanted, want
from zodiacedge.engine.spark.storage.files import Segment, held
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from zodiacedge.engine.spark.ingest.fact_delta import ExplicitDelta
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.language.ast import Argument
    from zodiacedge.terms import Term

# Stands for a class that no rule mentions: only an atom with a variable for the class reads it.
_UNMENTIONED = IRI("")


def changed_relations(explicit: ExplicitDelta, deleted: Iterable[Segment]) -> Wanted:
    """Return the relations with inserted or deleted facts; for `rdf:type`, with the classes.

    Args:
        explicit: The inserted and deleted explicit facts.
        deleted: The segments of deleted nodes.
    """
    changed: Wanted = {}
    sides = (Segment(explicit.inserted), Segment(explicit.deleted), *deleted)
    for relation, contents in held(sides).items():
        for content in contents:
            want(changed, relation, frozenset(content.classes) if relation.typed else None)
    return changed


def readers(graph: HyperGraph, changed: Wanted, keys: Mapping[Term, int]) -> Iterator[int]:
    """Yield the nodes that read changed relations, given the fingerprints of the terms that rules mention."""
    terms = {key: term for term, key in keys.items()}
    for relation, classes in changed.items():
        args: tuple[Argument, ...] = tuple(Variable(f"V{n}") for n in range(relation.arity))
        if classes is None:
            yield from graph.readers(Atom(relation.name, args)).all
            continue
        for term in {terms.get(key, _UNMENTIONED) for key in classes}:
            yield from graph.readers(Atom(relation.name, (args[0], term))).all
