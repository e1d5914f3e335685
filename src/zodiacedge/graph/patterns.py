"""An index of atom patterns by unification.

Patterns are looked up by their constants: a class among ten thousand under `rdf:type` is one lookup.
Patterns and their unification are defined in `language.unify`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.language.unify import Pattern, unify
from zodiacedge.util.cow_dict import CowDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zodiacedge.language.ast import Predicate
    from zodiacedge.terms import Term


def carried(head: Pattern, body: Pattern) -> Predicate:
    """Return the predicate of an edge between two patterns that unify: the more specific of the two.

    A rule with head `rdf:type(X, Y)` provides facts of C to a reader of the class C.
    """
    return (head if head.mask.bit_count() >= body.mask.bit_count() else body).predicate


# Constants at certain positions → the patterns with these constants.
_Table = dict[tuple["Term | int", ...], dict[Pattern, None]]


class _RelationIndex:
    """The patterns of one relation and arity.

    `masks` counts the patterns per mask. A table belongs to a mask of stored patterns and to the positions
    of it that are constants of the lookup too; it is built at its first use and maintained afterwards.
    Tables are derived from the patterns, so building one does not change the value.
    """

    __slots__ = ("masks", "patterns", "tables")

    def __init__(
        self,
        patterns: dict[Pattern, None],
        masks: dict[int, int],
        tables: dict[tuple[int, int], _Table],
    ) -> None:
        self.patterns = patterns
        self.masks = masks
        self.tables = tables

    def changed(self, added: Iterable[Pattern], removed: Iterable[Pattern]) -> _RelationIndex:
        patterns, masks = dict(self.patterns), dict(self.masks)
        tables = {kind: dict(table) for kind, table in list(self.tables.items())}
        # Sets shared with the old value are copied once per change, however many patterns change.
        own: dict[tuple[int, int, tuple[Term | int, ...]], dict[Pattern, None]] = {}

        def writable(pattern: Pattern) -> Iterator[dict[Pattern, None]]:
            for (mask, shared), table in tables.items():
                if mask == pattern.mask:
                    key = _constants(pattern, shared)
                    members = own.get((mask, shared, key))
                    if members is None:
                        members = own[mask, shared, key] = table[key] = dict(table.get(key, {}))
                    yield members

        for pattern in removed:
            del patterns[pattern]
            masks[pattern.mask] -= 1
            for members in writable(pattern):
                del members[pattern]
        for pattern in added:
            patterns[pattern] = None
            masks[pattern.mask] = masks.get(pattern.mask, 0) + 1
            for members in writable(pattern):
                members[pattern] = None
        for (mask, shared, key), members in own.items():
            if not members:
                del tables[mask, shared][key]
        return _RelationIndex(patterns, {mask: count for mask, count in masks.items() if count}, tables)

    def matching(self, query: Pattern) -> Iterator[Pattern]:
        for mask in self.masks:
            shared = mask & query.mask
            for pattern in self._table(mask, shared).get(_constants(query, shared), ()):
                # The shared constants are equal: only a repeated variable can prevent unification.
                if (query.linear and pattern.linear) or unify(query, pattern):
                    yield pattern

    def _table(self, mask: int, shared: int) -> _Table:
        table = self.tables.get((mask, shared))
        if table is None:
            table = {}
            for pattern in self.patterns:
                if pattern.mask == mask:
                    table.setdefault(_constants(pattern, shared), {})[pattern] = None
            self.tables[mask, shared] = table
        return table


class PatternIndex:
    """An immutable set of patterns with lookup by unification."""

    __slots__ = ("_indexes",)

    def __init__(self, indexes: CowDict[tuple[str, int], _RelationIndex] | None = None) -> None:
        """Take ownership of the tables by relation and arity."""
        self._indexes: CowDict[tuple[str, int], _RelationIndex] = (
            indexes if indexes is not None else CowDict()
        )

    def unifying(self, query: Pattern) -> Iterator[Pattern]:
        """Yield the patterns that unify with a pattern."""
        index = self._indexes.get((query.relation, len(query.args)))
        return index.matching(query) if index else iter(())

    def changed(self, added: Iterable[Pattern], removed: Iterable[Pattern] = ()) -> PatternIndex:
        """Return the index with added patterns, which must be new, and without removed ones."""
        changes: dict[tuple[str, int], tuple[list[Pattern], list[Pattern]]] = {}
        for pattern in added:
            changes.setdefault((pattern.relation, len(pattern.args)), ([], []))[0].append(pattern)
        for pattern in removed:
            changes.setdefault((pattern.relation, len(pattern.args)), ([], []))[1].append(pattern)
        indexes = self._indexes.copy()
        for signature, (inserted, deleted) in changes.items():
            index = indexes.get(signature) or _RelationIndex({}, {}, {})
            indexes[signature] = index.changed(inserted, deleted)
            if not indexes[signature].patterns:
                del indexes[signature]
        return PatternIndex(indexes)


def _constants(pattern: Pattern, mask: int) -> tuple[Term | int, ...]:
    if mask == 0:
        return ()
    return tuple(arg for position, arg in enumerate(pattern.args) if mask >> position & 1)
