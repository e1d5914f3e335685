"""The difference of two versions: tasks compare files, and only rows that differ are decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.spark.compare.checksums import mismatched_relations
from zodiacedge.engine.spark.lookup.decode import Decoder
from zodiacedge.engine.spark.maintain.net_change import changes_between
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
    terms = before.terms.with_files(*after.terms.parts)
    wanted = dict.fromkeys(relations)
    sides = changes_between(after.workspace, before.owners, after.owners, wanted, terms)
    lookup = Decoder(after.workspace, terms)
    inserted, deleted = (
        frozenset(fact for relation, content in side.items() for fact in lookup.facts(relation, [content]))
        for side in sides
    )
    return inserted, deleted
