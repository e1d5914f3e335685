"""What became visible between two versions, and what is visible no more: files of rows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.ingest.batch import class_predicate
from zodiacedge.engine.spark.lookup.decode import Lookup
from zodiacedge.engine.spark.lookup.row_filter import ALL, RowFilter
from zodiacedge.engine.spark.storage.files import SignedFiles
from zodiacedge.language.ast import Predicate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zodiacedge.engine.spark.maintain.compare import Parts
    from zodiacedge.engine.spark.storage.files import Relation
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.language.ast import Fact


class SparkNetChange:
    """Rows by relation, each once; found out when somebody asks."""

    def __init__(self, after: SparkVersion, find: Callable[[], tuple[Parts, Parts]]) -> None:
        """Take the version after the change, and what finds out what became visible and what is no more."""
        self.after = after
        self._find: Callable[[], tuple[Parts, Parts]] | None = find

    @cached_property
    def _sides(self) -> tuple[Parts, Parts]:
        if self._find is None:
            raise AssertionError
        found = self._find()
        # The files of the version before are needed no more.
        self._find = None
        return found

    def counts(self) -> tuple[Mapping[Predicate, int], Mapping[Predicate, int]]:
        """Count the facts that came and those that went, without listing them."""
        came, went = self._sides
        return self._counted(came), self._counted(went)

    def _counted(self, side: Parts) -> dict[Predicate, int]:
        found: dict[Predicate, int] = {}
        for relation, parts in side.items():
            content = SignedFiles.of(*parts)
            if not relation.typed:
                found[Predicate(*relation)] = content.rows
                continue
            classes = content.classes()
            names = self.after.named(classes)
            for key, count in classes.items():
                predicate = class_predicate(names[key])
                found[predicate] = found.get(predicate, 0) + count
        return found

    def facts(
        self, wanted: Callable[[Predicate], bool] | None = None
    ) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """The facts that came, and those that went; of the predicates that are wanted, if not of all."""
        came, went = self._sides
        return self._listed(came, wanted), self._listed(went, wanted)

    def _listed(self, side: Parts, wanted: Callable[[Predicate], bool] | None) -> frozenset[Fact]:
        contents = {relation: SignedFiles.of(*parts) for relation, parts in side.items()}
        lookup = Lookup(self.after.workspace, self.after.terms)
        return frozenset(
            fact
            for relation, content in contents.items()
            if wanted is None or relation.typed or wanted(Predicate(*relation))
            for fact in lookup.facts(relation, [content], self._choice(relation, content, wanted))
        )

    def _choice(
        self, relation: Relation, content: SignedFiles, wanted: Callable[[Predicate], bool] | None
    ) -> RowFilter:
        """Return what is wanted of a relation that something is wanted of: of members, some classes."""
        if wanted is None or not relation.typed:
            return ALL
        classes = content.classes()
        names = self.after.named(classes)
        return RowFilter(frozenset(key for key in classes if wanted(class_predicate(names[key]))))
