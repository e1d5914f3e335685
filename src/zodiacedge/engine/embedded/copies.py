"""A node that copies a relation, under change: what came and went there comes and goes here.

Where the copy keeps all columns, every row stands for one of the other relation, so nothing has to be looked
up. Where it keeps one column of several, a term goes only when its last row did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.modules import Shape
from zodiacedge.engine.embedded.owners import AFTER, BEFORE
from zodiacedge.engine.embedded.programs import ask
from zodiacedge.engine.embedded.rows import without
from zodiacedge.engine.embedded.store import is_any_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.shape import NodeShape
    from zodiacedge.engine.embedded.store import Segment
    from zodiacedge.engine.embedded.versions import Draft

    Ids = NDArray[np.int32]

# So few rows that came or went are followed without asking what it costs, where all tables are ready.
_FEW = 32


def is_soon_followed(draft: Draft, shape: NodeShape, own: Segment) -> bool:
    """Whether so little came and went that following it takes no time to speak of."""
    if not _is_copy(shape):
        return False
    read = shape.read_of(draft.store, draft.touched)
    return (
        all(table.has_row_set for table in own.tables.values())
        and all(table.has_row_set for table in draft.bases_of(read))
        and sum(map(draft.touched.count, read)) <= _FEW
    )


def follow(draft: Draft, shape: NodeShape, own: Segment) -> int | None:
    """Bring a copy up to date; return by how many facts it grows or shrinks, None if it is no copy."""
    if not _is_copy(shape) or shape.module is None:
        return None
    draft.check_time()
    columns = shape.module.columns
    (key,) = shape.rules
    relation = draft.store.filled_by(shape.rules[key].head, pairs=False)
    for source in shape.read_of(draft.store, draft.touched):
        rows = draft.touched.rows(source)
        lost, gained = _lost_and_gained(rows[:, columns], draft.flags(source, rows))
        draft.derivations += len(gained)
        if len(columns) < source.arity:
            lost, gained = _each_once(lost), _each_once(gained)
            if len(lost):
                given = [(lost, relation.member_of)]
                lost = without(lost, ask(draft, shape.supported(key), given, own, old=False)[:, :1])
            if len(gained):
                gained = gained[~draft.held(relation, gained, own)]
        if len(lost):
            draft.overlay(own, relation).remove(lost)
        if len(gained):
            draft.overlay(own, relation).add(gained)
    grown = draft.settle(own)
    if grown > 0:
        draft.count(1, len(own) + grown)
    return grown


def _is_copy(shape: NodeShape) -> bool:
    module = shape.module
    if module is None or module.shape is not Shape.COPY:
        return False
    # Members of all classes in one table have a layout of their own.
    return not shape.typed and not is_any_class(module.step)


def _lost_and_gained(rows: Ids, marks: NDArray[np.int8]) -> tuple[Ids, Ids]:
    if len(rows) == 1:
        # The usual case, and much quicker without arrays.
        was, will = bool(marks.item(0) & BEFORE), bool(marks.item(0) & AFTER)
        none = rows[:0]
        return rows if was and not will else none, rows if will and not was else none
    were, will_be = marks & BEFORE != 0, marks & AFTER != 0
    return rows[were & ~will_be], rows[will_be & ~were]


def _each_once(terms: Ids) -> Ids:
    return np.unique(terms)[:, None] if len(terms) > 1 else terms
