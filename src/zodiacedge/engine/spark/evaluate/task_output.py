"""The output of a task: the maintained segments of a region, written as files of fingerprints.

A small table is rewritten when it changes. Of a large table, only the inserted and deleted rows are written,
as an additional layer of its files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from zodiacedge.engine.embedded.storage.relation import Relation as TableName
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.spark.storage.files import TYPED, DataFile, Relation, Segment, SignedFiles
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.state import EmbeddedUncommitted
    from zodiacedge.engine.embedded.storage.overlay import Overlay
    from zodiacedge.engine.embedded.storage.segment import Segment as Tables
    from zodiacedge.engine.spark.storage.embedded_tables import Translation
    from zodiacedge.engine.spark.storage.files import Folder

    Ids = NDArray[np.int32]

_Name = TypeVar("_Name", TableName, str)
# A table with at most so many rows is rewritten when it changes.
_REWRITTEN = 50_000
# A table with so many layers is rewritten, however large.
_MOST_LAYERS = 16
# A table is rewritten if more than one in so many of its rows changed.
_SHARE = 4


@dataclass(frozen=True)
class _TableChange:
    """A change of a table: the rows before it, and those that it inserts and deletes."""

    before: Ids
    inserted: Ids
    deleted: Ids

    @property
    def count(self) -> int:
        return len(self.inserted) + len(self.deleted)

    def after(self) -> Ids:
        rows = self.before
        if len(self.deleted):
            deleted = Table(self.deleted.shape[1])
            deleted.insert(self.deleted)
            rows = deleted.filter(rows, present=False)
        return np.concatenate((rows, self.inserted)) if len(self.inserted) else rows

    def as_new(self) -> _TableChange:
        """Return the change that inserts all rows of the table into an empty table."""
        return _TableChange(self.before[:0], self.after(), self.deleted[:0])


@dataclass(frozen=True)
class _NodeChange:
    """The changes of a node's tables and aggregate rows, and the files before the change."""

    files: Segment
    tables: Mapping[TableName, _TableChange]
    aggregate_rows: Mapping[str, _TableChange]


class SegmentWriter:
    """A writer of the changes of a region's segments."""

    def __init__(
        self,
        change: EmbeddedUncommitted,
        files: Mapping[frozenset[str], Segment],
        translation: Translation,
        folder: Folder,
        *,
        rewrites: bool,
    ) -> None:
        """Take a change of the embedded engine, and the files of the segments before it.

        `rewrites` is true if all rows of the segments are loaded, so that files can be rewritten.
        """
        self._change = change
        self._files = files
        self._translation = translation
        self._folder = folder
        self._rewrites = rewrites
        self.changed_rows = 0

    def segment(self, keys: frozenset[str], rows_of: Callable[[str], Relation]) -> Segment | None:
        """Write the change of a node's segment; return the changed files, None if nothing changed.

        A replaced segment is returned with all its files. `rows_of` returns the relation of a rule's
        aggregate rows.
        """
        node = self._node_change(keys)
        by_relation: dict[Relation, list[tuple[TableName, _TableChange]]] = {}
        for name, change in node.tables.items():
            by_relation.setdefault(_relation_of(name), []).append((name, change))
        contents = {
            relation: content
            for relation, changes in by_relation.items()
            if (content := self._content(relation, node.files.content(relation), changes)) is not None
        }
        aggregate_rows = {}
        for key, change in node.aggregate_rows.items():
            relation = rows_of(key)
            kept = node.files.aggregate_rows.get(key, SignedFiles())
            content = self._content(relation, kept, [(TableName(*relation), change)])
            if content is not None:
                aggregate_rows[key] = content
            elif keys in self._change.segments:
                aggregate_rows[key] = kept
        if keys in self._change.segments:
            unchanged = node.files.contents
            contents = {**{r: unchanged[r] for r in by_relation if r in unchanged}, **contents}
        elif not contents and not aggregate_rows:
            return None
        return Segment(contents, aggregate_rows)

    def distinct(self, rows: Mapping[TableName, list[Ids]]) -> dict[Relation, DataFile]:
        """Write the distinct rows among rows with duplicates."""
        by_relation: dict[Relation, list[tuple[TableName, Ids]]] = {}
        for name, pieces in rows.items():
            distinct = pieces[0]
            if len(pieces) > 1:
                table = Table(name.arity)
                for piece in pieces:
                    table.insert(piece)
                distinct = table.rows
            by_relation.setdefault(_relation_of(name), []).append((name, distinct))
        files = {relation: self._file(relation, named) for relation, named in by_relation.items()}
        return {relation: file for relation, file in files.items() if file.rows}

    def _node_change(self, keys: frozenset[str]) -> _NodeChange:
        before = self._change.before.store.segments.get(keys)
        replaced = self._change.segments.get(keys)
        files = self._files.get(keys, Segment())
        if before is None and replaced is not None:
            return self._new_node(replaced)
        if before is None:
            raise AssertionError(keys)
        if replaced is not None:
            return _NodeChange(
                files,
                _replaced(before.tables, replaced.tables),
                _replaced(before.aggregate_rows, replaced.aggregate_rows),
            )
        overlays, aggregate_overlays = self._change.overlays(before)
        return _NodeChange(
            files, _overlaid(before.tables, overlays), _overlaid(before.aggregate_rows, aggregate_overlays)
        )

    def _new_node(self, segment: Tables) -> _NodeChange:
        """Return the change of a new node: tables that it did not inherit are written completely."""
        files = self._inherited(segment)
        overlays, aggregate_overlays = self._change.overlays(segment)
        return _NodeChange(
            files,
            {
                name: change if _relation_of(name) in files.contents else change.as_new()
                for name, change in _overlaid(segment.tables, overlays).items()
            },
            {
                key: change if key in files.aggregate_rows else change.as_new()
                for key, change in _overlaid(segment.aggregate_rows, aggregate_overlays).items()
            },
        )

    def _inherited(self, successor: Tables) -> Segment:
        """Return the files of deleted nodes whose tables a new node inherited unchanged."""
        contents: dict[Relation, SignedFiles] = {}
        aggregate_rows: dict[str, SignedFiles] = {}
        for keys, segment in self._change.before.store.segments.items():
            files = self._files[keys]
            for name, table in segment.tables.items():
                # Class members are many tables in one set of files: they are rewritten.
                if successor.tables.get(name) is table and name.name != RDF_TYPE:
                    relation = Relation(name.name, name.arity)
                    contents[relation] = files.content(relation)
            for key, rows in segment.aggregate_rows.items():
                if successor.aggregate_rows.get(key) is rows:
                    aggregate_rows[key] = files.aggregate_rows.get(key, SignedFiles())
        return Segment(contents, aggregate_rows)

    def _content(
        self, relation: Relation, kept: SignedFiles, changes: Sequence[tuple[TableName, _TableChange]]
    ) -> SignedFiles | None:
        """Write the changed rows, or all rows; return the files after the change, None if unchanged."""
        changed = sum(change.count for _, change in changes)
        self.changed_rows += changed
        if not changed:
            return None
        rows = sum(len(c.before) + len(c.inserted) - len(c.deleted) for _, c in changes)
        few = rows > _REWRITTEN and changed * _SHARE <= rows and len(kept.layers) < _MOST_LAYERS
        if few or not self._rewrites:
            plus = self._file(relation, ((name, change.inserted) for name, change in changes))
            minus = self._file(relation, ((name, change.deleted) for name, change in changes))
            return kept.then((plus,), (minus,))
        return SignedFiles.of(self._file(relation, ((name, change.after()) for name, change in changes)))

    def _file(self, relation: Relation, tables: Iterable[tuple[TableName, Ids]]) -> DataFile:
        pieces = [self._translation.columns(name, rows) for name, rows in tables if len(rows)]
        return self._folder.write_pieces(relation, pieces)


def _relation_of(name: TableName) -> Relation:
    return TYPED if name.is_class else Relation(name.name, name.arity)


def _replaced(before: Mapping[_Name, Table], after: Mapping[_Name, Table]) -> dict[_Name, _TableChange]:
    """Return the changes between tables and their replacements."""
    changes = {}
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        arity = (old if old is not None else after[name]).arity
        was, will = (table if table is not None else Table(arity) for table in (old, new))
        inserted = was.filter(will.rows, present=False) if len(was) else will.rows
        deleted = will.filter(was.rows, present=False) if len(was) else was.rows
        changes[name] = _TableChange(was.rows, inserted, deleted)
    return changes


def _overlaid(tables: Mapping[_Name, Table], overlays: Mapping[_Name, Overlay]) -> dict[_Name, _TableChange]:
    """Return the changes of tables by overlays."""
    changes = {}
    for name in {**tables, **overlays}:
        table, overlay = tables.get(name), overlays.get(name)
        arity = table.arity if table is not None else overlays[name].plus.arity
        empty = np.zeros((0, arity), np.int32)
        inserted, deleted = (overlay.plus.rows, overlay.minus.rows) if overlay else (empty, empty)
        changes[name] = _TableChange(table.rows if table is not None else empty, inserted, deleted)
    return changes
