"""The maintenance of a projection: a node that copies columns of one relation.

Where the projection keeps all columns, each row inserted or deleted is a row to insert or delete in the
segment, without a lookup. Where it keeps one column, a term is deleted only with the last row that has it.
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


def is_quickly_maintained(draft: Draft, node_rules: NodeRules, own: Segment) -> bool:
    """Whether a node is a projection of so few changed rows that maintaining it takes hardly any time."""
    columns = _projected_columns(node_rules)
    if columns is None:
        return False
    read = node_rules.read_of(draft.store, draft.changed)
    bases = draft.bases_of(read)
    # An index finds out whether another row has the term of a deleted row.
    looked_up = any(len(columns) < source.arity for source in read)
    return (
        all(table.has_hash_set for table in (*own.tables.values(), *bases))
        and (not looked_up or all(table.has_indexes for table in bases))
        and sum(map(draft.changed.count, read)) <= FEW
    )


def maintain_projection(draft: Draft, node_rules: NodeRules, own: Segment) -> int | None:
    """Maintain a projection; return by how many facts it grows, None if the node is no projection."""
    columns = _projected_columns(node_rules)
    if columns is None:
        return None
    draft.check_time()
    (key,) = node_rules.rules
    relation = draft.store.filled_by(node_rules.rules[key].head, pairs=False)
    for source in node_rules.read_of(draft.store, draft.changed):
        rows = draft.changed.rows(source)
        lost, gained = split_changes(rows[:, columns], draft.flags(source, rows))
        draft.derivations += len(gained)
        if len(columns) < source.arity:
            lost, gained = distinct(lost), distinct(gained)
            if len(lost):
                delta_rows = [(lost, relation.member_of)]
                lost = difference(
                    lost, evaluate_delta(draft, node_rules.supported(key), delta_rows, own, old=False)[:, :1]
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


def _projected_columns(node_rules: NodeRules) -> tuple[int, ...] | None:
    module = node_rules.module
    if module is None or module.shape is not Shape.COPY:
        return None
    # The table of the members of all classes has another layout.
    return None if node_rules.typed or is_any_class(module.step) else module.columns
