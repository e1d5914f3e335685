"""The members of a class in one table, for a node that reads a class of several owners.

In an ontology a class has a dozen owners that share most of their members. One pass over them sets a bit per
member. Then a scan meets each member once, and a lookup is one bit, where it was a hash set per owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.storage.relation import TableView
from zodiacedge.engine.embedded.storage.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zodiacedge.language.ast import Atom

# The most terms per row for which bits are worth their memory.
_TERMS_PER_ROW = 64
_LEAST_TERMS = 1 << 16


class MergedClasses:
    """The tables that the atoms of a node read, those of each class merged."""

    def __init__(self, outside: Callable[[Atom], Sequence[TableView]], terms: int) -> None:
        """Take the function that gives the tables of an atom, and the number of terms, which stays."""
        self._outside = outside
        self._terms = terms
        # By the identity of an atom, which the rules keep alive, and by class.
        self._known: dict[int, Sequence[TableView]] = {}
        self._merged: dict[int, Sequence[TableView]] = {}

    def __call__(self, atom: Atom) -> Sequence[TableView]:
        """Return the tables of an atom."""
        known = self._known.get(id(atom))
        if known is None:
            known = self._known[id(atom)] = self._merge(self._outside(atom))
        return known

    def _merge(self, parts: Sequence[TableView]) -> Sequence[TableView]:
        if len(parts) < 2:
            return parts
        member_of = parts[0].member_of
        if any(part.member_of != member_of or not part.is_class for part in parts):
            return parts
        merged = self._merged.get(member_of)
        if merged is None:
            rows = sum(len(part.table) for part in parts)
            if self._terms > max(_LEAST_TERMS, _TERMS_PER_ROW * rows):
                return parts
            table = Table(1)
            table.mark(self._terms)
            for part in sorted(parts, key=lambda part: -len(part.table)):
                table.insert_unmarked(part.table.rows)
            table.settle()
            merged = self._merged[member_of] = (TableView(table, member_of),)
        return merged
