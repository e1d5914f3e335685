"""Which nodes a change reaches: those with an atom that matches something that came or went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate.inputs import Wanted, want
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from zodiacedge.engine.spark.ingest.fact_delta import ExplicitDelta
    from zodiacedge.engine.spark.storage.files import Segment
    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Argument
    from zodiacedge.terms import Term

# Stands for a class that no rule mentions: only an atom of any class reads it.
_UNMENTIONED = IRI("")


def touched_by(sifted: ExplicitDelta, gone: Iterable[Segment]) -> Wanted:
    """Return the relations of which facts came or went, of `rdf:type` the classes.

    Args:
        sifted: The explicit facts that came and went.
        gone: What nodes had that are no more.
    """
    found: Wanted = {}
    for parts in (sifted.new, sifted.old):
        for relation, pieces in parts.items():
            classes = frozenset(key for part in pieces for key in part.classes)
            want(found, relation, classes if relation.typed else None)
    for segment in gone:
        for relation, content in segment.contents.items():
            if content.rows:
                want(found, relation, frozenset(content.classes()) if relation.typed else None)
    return found


def readers(graph: HyperGraph, touched: Wanted, keys: Mapping[Term, int]) -> Iterator[int]:
    """Yield the nodes that read some relations, given the fingerprints of the terms that rules mention."""
    terms = {key: term for term, key in keys.items()}
    for relation, classes in touched.items():
        args: tuple[Argument, ...] = tuple(Variable(f"V{n}") for n in range(relation.arity))
        if classes is None:
            yield from graph.readers(Atom(relation.name, args)).all
            continue
        for term in {terms.get(key, _UNMENTIONED) for key in classes}:
            yield from graph.readers(Atom(relation.name, (args[0], term))).all
