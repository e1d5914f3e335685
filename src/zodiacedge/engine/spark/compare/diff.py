"""The difference of two versions: tasks compare files, and only rows that differ are decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.spark.compare.checksums import mismatched_relations
from zodiacedge.engine.spark.evaluate.seminaive import owners_of
from zodiacedge.engine.spark.lookup.decode import Lookup
from zodiacedge.engine.spark.maintain.net_change import changes_between
from zodiacedge.engine.spark.storage.files import SignedFiles
from zodiacedge.engine.spark.storage.terms import TermFiles
from zodiacedge.engine.yield_point import ALONE

if TYPE_CHECKING:
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.language.ast import Fact


def diff(before: SparkVersion, after: SparkVersion) -> tuple[frozenset[Fact], frozenset[Fact]]:
    """Return the facts that only the version after has, and those that only the version before has."""
    relations = mismatched_relations(before, after, ALONE)
    if not relations:
        return frozenset(), frozenset()
    # Either version may have terms of its own.
    terms = TermFiles(tuple(dict.fromkeys((*before.terms.parts, *after.terms.parts))))
    old, new = (owners_of(state.explicit_files, state.segments) for state in (before, after))
    sides = changes_between(after.workspace, old, new, dict.fromkeys(relations), terms)
    lookup = Lookup(after.workspace, terms)
    inserted, deleted = (
        frozenset(
            fact
            for relation, files in side.items()
            for fact in lookup.facts(relation, [SignedFiles.of(*files)])
        )
        for side in sides
    )
    return inserted, deleted
