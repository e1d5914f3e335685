"""The maintenance of copies and inverses in a circle: each changed row is looked up where it may come from.

A row of such a node is a row of a relation outside it, as it is or inverted. So a fact goes when no relation
that leads to it holds it outside the node any more; nothing is proved, and no circle is followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.evaluate.modules import Shape, inverse_sources
from zodiacedge.engine.embedded.storage.relation import Relation
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.versions.ownership import OUTSIDE, OUTSIDE_BEFORE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.embedded.versions.draft import Draft


def maintain_inverses(draft: Draft, node_rules: NodeRules, own: Segment) -> int | None:
    """Maintain copies and inverses in a circle; return by how many facts they grow, None for other nodes."""
    module = node_rules.module
    if module is None or module.shape is not Shape.INVERSES:
        return None
    moved: dict[str, tuple[Ids, Ids]] = {}
    for relation in node_rules.read_of(draft.store, draft.changed):
        rows = draft.changed.rows(relation)
        marks = draft.flags(relation, rows, own)
        before, after = marks & OUTSIDE_BEFORE != 0, marks & OUTSIDE != 0
        moved[relation.name] = rows[before & ~after], rows[after & ~before]
    draft.check_time()
    for name in _own_names(node_rules):
        relation, sources = Relation(name, 2), inverse_sources(module.chains, name)
        come_from = [source for source in sources if source[0] in moved]
        lost = _together(_turned(moved[source][0], back) for source, back in come_from)
        gained = _together(_turned(moved[source][1], back) for source, back in come_from)
        draft.derivations += len(lost) + len(gained)
        for source, back in sources:
            if len(lost):
                marks = draft.flags(Relation(source, 2), _turned(lost, back), own)
                lost = lost[marks & OUTSIDE == 0]
        draft.check_time()
        if len(lost):
            draft.overlay(own, relation).remove(lost)
        gained = draft.held_rows(relation, gained, own, held=False)
        if len(gained):
            draft.overlay(own, relation).add(gained)
    grown = draft.settle(own)
    if grown > 0:
        draft.count(1, len(own) + grown)
    return grown


def _own_names(node_rules: NodeRules) -> Iterable[str]:
    """Return the names of the relations that a node derives, each once."""
    return dict.fromkeys(relation.name for relation in node_rules.heads.values())


def stays_outside(draft: Draft, node_rules: NodeRules, own: Segment, relation: Relation) -> bool:
    """Whether all facts of a relation that a node of the old version has are held outside it too.

    They are if no other relation leads to them: then each of them was copied from where it is, in a circle.
    """
    module = node_rules.module
    if module is None or module.shape is not Shape.INVERSES:
        return False
    return not any(
        draft.old(Relation(source, 2), own)
        for source, back in inverse_sources(module.chains, relation.name)
        if back or source != relation.name
    )


def _turned(rows: Ids, back: bool) -> Ids:
    return rows[:, ::-1] if back else rows


def _together(pieces: Iterable[Ids]) -> Ids:
    """Return the rows of several arrays, each once."""
    some = [rows for rows in pieces if len(rows)]
    if not some:
        return np.zeros((0, 2), np.int32)
    return some[0] if len(some) == 1 else Table.union(2, some).rows
