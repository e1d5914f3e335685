"""A node that copies a relation, under change: what came and went there comes and goes here.

Where the copy keeps all columns, every row stands for one of the other relation, so nothing has to be looked
up. Where it keeps one column of several, a term goes only when its last row did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.evaluate.modules import Shape
from zodiacedge.engine.embedded.maintain.delta_query import evaluate_delta
from zodiacedge.engine.embedded.maintain.strategy import FEW
from zodiacedge.engine.embedded.storage.relation import is_any_class
from zodiacedge.engine.embedded.storage.row_algebra import difference, distinct
from zodiacedge.engine.embedded.versions.ownership import split_changes

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.versions.draft import Draft


def is_quickly_maintained(draft: Draft, shape: NodeRules, own: Segment) -> bool:
    """Whether so little came and went that following it takes no time to speak of."""
    columns = _copied_columns(shape)
    if columns is None:
        return False
    read = shape.read_of(draft.store, draft.touched)
    bases = draft.bases_of(read)
    # Whether other rows have the term that one loses is looked up by an index.
    looked_up = any(len(columns) < source.arity for source in read)
    return (
        all(table.has_hash_set for table in (*own.tables.values(), *bases))
        and (not looked_up or all(table.has_indexes for table in bases))
        and sum(map(draft.touched.count, read)) <= FEW
    )


def maintain_projection(draft: Draft, shape: NodeRules, own: Segment) -> int | None:
    """Bring a copy up to date; return by how many facts it grows or shrinks, None if it is no copy."""
    columns = _copied_columns(shape)
    if columns is None:
        return None
    draft.check_time()
    (key,) = shape.rules
    relation = draft.store.filled_by(shape.rules[key].head, pairs=False)
    for source in shape.read_of(draft.store, draft.touched):
        rows = draft.touched.rows(source)
        lost, gained = split_changes(rows[:, columns], draft.flags(source, rows))
        draft.derivations += len(gained)
        if len(columns) < source.arity:
            lost, gained = distinct(lost), distinct(gained)
            if len(lost):
                given = [(lost, relation.member_of)]
                lost = difference(
                    lost, evaluate_delta(draft, shape.supported(key), given, own, old=False)[:, :1]
                )
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


def _copied_columns(shape: NodeRules) -> tuple[int, ...] | None:
    module = shape.module
    if module is None or module.shape is not Shape.COPY:
        return None
    # Members of all classes in one table have a layout of their own.
    return None if shape.typed or is_any_class(module.step) else module.columns
