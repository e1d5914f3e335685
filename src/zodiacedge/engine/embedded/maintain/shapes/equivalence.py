"""The maintenance of a symmetric and transitive node: only the classes of changed pairs are computed again.

Each member of a class is paired with all others, so the pairs of one member give its class. The terms of the
changed pairs and the members of their classes are connected with no other term, in either version. The module
is evaluated on the pairs of these terms, and its result compared with the segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.evaluate.modules import Shape, evaluate
from zodiacedge.engine.embedded.maintain.delta_query import DELTA, DeltaQuery, evaluate_delta
from zodiacedge.engine.embedded.storage.relation import NO_CLASS, Relation, TableView
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.versions.draft import GaveUpError
from zodiacedge.engine.embedded.versions.ownership import OUTSIDE, OUTSIDE_BEFORE, OWN
from zodiacedge.language.ast import Atom, Variable

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.versions.draft import Draft


_CLASSES = (Shape.CLASSES, Shape.CLASSES_UNEQUAL)
# The cost of an index, per row.
_SECONDS_PER_ROW = 3e-8
_FIRST, _SECOND = Variable("X"), Variable("Y")


def maintain_equivalence(draft: Draft, node_rules: NodeRules, own: Segment) -> int | None:
    """Maintain an equivalence; return by how many facts it grows, None if the node is no equivalence."""
    module = node_rules.module
    if module is None or not is_equivalence(node_rules):
        return None
    relation = Relation(module.step.relation, 2)
    pairs = pairs_query(node_rules, relation)
    changed = draft.changed.rows(relation)
    marks = draft.flags(relation, changed, own)
    changed = changed[(marks & OUTSIDE_BEFORE != 0) != (marks & OUTSIDE != 0)]
    if not len(changed):
        return 0
    pairs_held = own.tables[relation]
    if not pairs_held.has_index(1) and len(pairs_held) * _SECONDS_PER_ROW > draft.clock.left():
        raise GaveUpError
    ends = np.unique(changed)
    before = evaluate_delta(draft, pairs, [(ends[:, None], NO_CLASS)], own, old=True)
    members = np.unique(np.concatenate((ends, before.ravel())))
    draft.check_time()
    sizes = np.unique(before[:, 0], return_counts=True)[1].astype(np.float64)
    if draft.clock.is_set and (sizes**2).sum() > len(own):
        raise GaveUpError
    rows = evaluate_delta(draft, pairs, [(members[:, None], NO_CLASS)], own, old=False)
    marks = draft.flags(relation, rows, own)
    edges, inside = rows[marks & OUTSIDE != 0], rows[marks & OWN != 0]
    if module.shape is Shape.CLASSES_UNEQUAL and draft.store.dictionary.may_be_equal([edges, inside]):
        return None
    result = Table(2)
    parts = [TableView(Table.of(edges), NO_CLASS)]
    evaluate(module, lambda _: parts, result, module.step, lambda _: None)
    overlay = draft.overlay(own, relation)
    overlay.remove(result.filter(inside, present=False))
    overlay.add(Table.of(inside).filter(result.rows, present=False))
    draft.count(1, len(own) + overlay.grown)
    return draft.settle(own)


def is_equivalence(node_rules: NodeRules) -> bool:
    """Whether a node is an equivalence."""
    return node_rules.module is not None and node_rules.module.shape in _CLASSES


def pairs_query(node_rules: NodeRules, relation: Relation) -> DeltaQuery:
    """Return the query for the pairs of a node's relation whose first terms are the delta rows."""
    return node_rules.delta_query(("pairs", ""), lambda: _pairs_of(relation))


def _pairs_of(relation: Relation) -> DeltaQuery:
    member, pair = Atom(DELTA, (_FIRST,)), Atom(relation.name, (_FIRST, _SECOND))
    return DeltaQuery((_FIRST, _SECOND), (member, pair), 0)
