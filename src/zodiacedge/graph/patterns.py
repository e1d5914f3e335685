"""An index of atom patterns: which of them unify with a given one.

It finds them through their constants: a class among ten thousand under `rdf:type` is one look-up. What
a pattern is, and when two unify, is `language.unify`'s.
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
    """Return the predicate that passes between two patterns that unify: the narrower of the two.

    What `rdf:type(X, Y)` passes on to a reader of the class C are facts of C.
    """
    return (head if head.mask.bit_count() >= body.mask.bit_count() else body).predicate


# The constants of a pattern at some positions → the patterns that hold them there.
_Table = dict[tuple["Term | int", ...], dict[Pattern, None]]


class _Shelf:
    """The patterns of one relation and arity.

    `masks` counts the patterns per mask. A table belongs to a mask of the stored patterns and the part
    of it that a question has constants for, too; it is made when first asked for and then kept up to
    date. Tables follow from the patterns, so making one does not change the value.
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

    def changed(self, added: Iterable[Pattern], removed: Iterable[Pattern]) -> _Shelf:
        patterns, masks = dict(self.patterns), dict(self.masks)
        tables = {kind: dict(table) for kind, table in list(self.tables.items())}
        # Sets shared with the old shelf are copied once per change, however many patterns it brings.
        own: dict[tuple[int, int, tuple[Term | int, ...]], dict[Pattern, None]] = {}

        def writable(pattern: Pattern) -> Iterator[dict[Pattern, None]]:
            for (mask, shared), table in tables.items():
                if mask == pattern.mask:
                    key = _constants(pattern, shared)
                    mine = own.get((mask, shared, key))
                    if mine is None:
                        mine = own[mask, shared, key] = table[key] = dict(table.get(key, {}))
                    yield mine

        for pattern in removed:
            del patterns[pattern]
            masks[pattern.mask] -= 1
            for mine in writable(pattern):
                del mine[pattern]
        for pattern in added:
            patterns[pattern] = None
            masks[pattern.mask] = masks.get(pattern.mask, 0) + 1
            for mine in writable(pattern):
                mine[pattern] = None
        for (mask, shared, key), mine in own.items():
            if not mine:
                del tables[mask, shared][key]
        return _Shelf(patterns, {mask: count for mask, count in masks.items() if count}, tables)

    def matching(self, question: Pattern) -> Iterator[Pattern]:
        for mask in self.masks:
            shared = mask & question.mask
            for pattern in self._table(mask, shared).get(_constants(question, shared), ()):
                # With the shared constants equal, only a repeated variable can stand in the way.
                if (question.linear and pattern.linear) or unify(question, pattern):
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
    """An immutable set of patterns that answers which of them unify with a given one."""

    __slots__ = ("_shelves",)

    def __init__(self, shelves: CowDict[tuple[str, int], _Shelf] | None = None) -> None:
        """Take ownership of the shelves."""
        self._shelves: CowDict[tuple[str, int], _Shelf] = shelves if shelves is not None else CowDict()

    def unifying(self, question: Pattern) -> Iterator[Pattern]:
        """Yield the patterns that unify with the given one."""
        shelf = self._shelves.get((question.relation, len(question.args)))
        return shelf.matching(question) if shelf else iter(())

    def changed(self, added: Iterable[Pattern], removed: Iterable[Pattern] = ()) -> PatternIndex:
        """Return the index with patterns that are new to it and without some that it has."""
        moved: dict[tuple[str, int], tuple[list[Pattern], list[Pattern]]] = {}
        for pattern in added:
            moved.setdefault((pattern.relation, len(pattern.args)), ([], []))[0].append(pattern)
        for pattern in removed:
            moved.setdefault((pattern.relation, len(pattern.args)), ([], []))[1].append(pattern)
        shelves = self._shelves.copy()
        for place, (come, gone) in moved.items():
            shelf = shelves.get(place) or _Shelf({}, {}, {})
            shelves[place] = shelf.changed(come, gone)
            if not shelves[place].patterns:
                del shelves[place]
        return PatternIndex(shelves)


def _constants(pattern: Pattern, mask: int) -> tuple[Term | int, ...]:
    if mask == 0:
        return ()
    return tuple(arg for position, arg in enumerate(pattern.args) if mask >> position & 1)
