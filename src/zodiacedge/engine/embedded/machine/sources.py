"""Sources of a plan's atoms: tables, their versions, and the rows to exclude.

The rows of a relation are in several tables. A source is one of them; where each row must be read once, it
excludes the rows of the tables before it. `assemble` chooses the access path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from zodiacedge.engine.embedded.storage.relation import NO_CLASS, TableView
from zodiacedge.plan.algebra import RelationVersion
from zodiacedge.plan.order import OWN_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.language.ast import Aggregate, Atom


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table of an atom, in one version, without the rows of other tables."""

    view: TableView
    read: RelationVersion
    excluded: tuple[TableView, ...] = ()
    grows: bool = False
    """Whether the node itself derives the rows."""


class Reads(Protocol):
    """The sources of the steps of a plan."""

    def sources(
        self, atom: Atom, read: RelationVersion, *, exact: bool, distinct_rows: bool
    ) -> list[TableSource]:
        """Return the sources of an atom.

        Args:
            atom: The atom.
            read: The version of the facts that the node itself derives.
            exact: Whether every row must be read exactly once.
            distinct_rows: Whether rows that are in two tables should be read once.
        """

    def absent(self, atom: Atom) -> list[TableSource]:
        """Return the sources of a negated atom."""

    def rows(self, aggregate: Aggregate) -> list[TableSource]:
        """Return the rows of an aggregate."""


@dataclass(frozen=True, slots=True)
class NodeReads:
    """The sources of a node that is evaluated from scratch."""

    outside: Callable[[Atom], Sequence[TableView]]
    own: Callable[[Atom], Sequence[TableView]]
    aggregate_rows: Callable[[Aggregate], Table]
    delta: Callable[[Atom], Sequence[TableView]] | None = None
    """The tables of the node whose delta is read, if not all of `own`."""

    def sources(
        self, atom: Atom, read: RelationVersion, *, exact: bool, distinct_rows: bool
    ) -> list[TableSource]:
        """Return the sources of an atom."""
        views = (view for view in self.outside(atom) if len(view.table))
        outside = sorted(views, key=lambda view: -len(view.table))
        is_delta = read is RelationVersion.DELTA
        own = self.delta(atom) if is_delta and self.delta else self.own(atom)
        # A row read twice costs one lookup in the target, less than a lookup in every other table.
        excluded = outside if distinct_rows and (exact or is_delta) else []
        if not exact:
            # Rows of a small table that are derived again repeat a part of the first round, which costs less
            # than to look up every row of a delta, unless a bit tells.
            excluded = [view for view in excluded if view.table.is_marked or len(view.table) >= OWN_ROWS]
        own_sources = [TableSource(view, read, _may_share(view, excluded), grows=True) for view in own]
        if is_delta:
            return own_sources
        return [
            TableSource(view, RelationVersion.NEW, _may_share(view, outside[:n]) if distinct_rows else ())
            for n, view in enumerate(outside)
        ] + own_sources

    def absent(self, atom: Atom) -> list[TableSource]:
        """Return the sources of a negated atom."""
        return [TableSource(view, RelationVersion.NEW) for view in self.outside(atom)]

    def rows(self, aggregate: Aggregate) -> list[TableSource]:
        """Return the rows of an aggregate."""
        return [TableSource(TableView(self.aggregate_rows(aggregate), NO_CLASS), RelationVersion.NEW)]


def _may_share(view: TableView, others: Sequence[TableView]) -> tuple[TableView, ...]:
    """Return the tables that may hold a row of this table too: those of another class cannot."""
    if not view.is_class:
        return tuple(others)
    return tuple(other for other in others if other.member_of in {view.member_of, NO_CLASS})
