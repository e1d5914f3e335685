"""Which tables the atoms of a plan read, in which version, and which rows of them somebody else shows.

A relation stands in several tables, side by side. A source is one of them; where each row must be met once,
it leaves out the rows that tables before it have. By which access path it is read is left to `assemble`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from zodiacedge.engine.embedded.storage.relation import NO_CLASS, TableView
from zodiacedge.plan.algebra import RelationVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.language.ast import Aggregate, Atom


@dataclass(frozen=True, slots=True)
class TableSource:
    """One table of an atom, in some version, without rows that other tables hold."""

    part: TableView
    read: RelationVersion
    excluded: tuple[TableView, ...] = ()


class Reads(Protocol):
    """Where the steps of a plan find their rows."""

    def sources(
        self, atom: Atom, read: RelationVersion, *, exact: bool, distinct_rows: bool
    ) -> list[TableSource]:
        """Return what an atom reads.

        Args:
            atom: The atom.
            read: Which version of what the node itself derives.
            exact: Whether every row must be met exactly once.
            distinct_rows: Whether rows that stand in two tables should be met once.
        """

    def absent(self, atom: Atom) -> list[TableSource]:
        """Return where a negated atom must have no match."""

    def rows(self, aggregate: Aggregate) -> list[TableSource]:
        """Return the rows of an aggregate."""


@dataclass(frozen=True, slots=True)
class NodeReads:
    """Where a node finds its rows while it is evaluated from nothing."""

    outside: Callable[[Atom], Sequence[TableView]]
    own: Callable[[Atom], Sequence[TableView]]
    aggregate_rows: Callable[[Aggregate], Table]

    def sources(
        self, atom: Atom, read: RelationVersion, *, exact: bool, distinct_rows: bool
    ) -> list[TableSource]:
        """Return what an atom reads."""
        outside = sorted(
            (part for part in self.outside(atom) if len(part.table)),
            key=lambda part: -len(part.table),
        )
        own = self.own(atom)
        if not distinct_rows:
            # A row met twice costs one look at the target, less than looking for it in every other table.
            rest = (
                []
                if read is RelationVersion.DELTA
                else [TableSource(part, RelationVersion.NEW) for part in outside]
            )
            return rest + [TableSource(part, read) for part in own]
        if read is RelationVersion.DELTA:
            return [TableSource(part, read, _rivals(part, outside)) for part in own]
        found = [
            TableSource(part, RelationVersion.NEW, _rivals(part, outside[:n]))
            for n, part in enumerate(outside)
        ]
        # Own rows that the outside has too would only be met twice, which matters where each counts.
        return found + [TableSource(part, read, _rivals(part, outside) if exact else ()) for part in own]

    def absent(self, atom: Atom) -> list[TableSource]:
        """Return where a negated atom must have no match."""
        return [TableSource(part, RelationVersion.NEW) for part in self.outside(atom)]

    def rows(self, aggregate: Aggregate) -> list[TableSource]:
        """Return the rows of an aggregate."""
        return [TableSource(TableView(self.aggregate_rows(aggregate), NO_CLASS), RelationVersion.NEW)]


def _rivals(part: TableView, others: Sequence[TableView]) -> tuple[TableView, ...]:
    """Return the tables that may hold a row of this one too: those of another class cannot."""
    if not part.is_class:
        return tuple(others)
    return tuple(one for one in others if one.member_of in {part.member_of, NO_CLASS})
