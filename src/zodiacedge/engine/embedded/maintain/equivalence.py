"""A symmetric and transitive node under change: only the classes that a change concerns are looked at again.

The members of a class are what each of them is paired with, so the classes of the changed pairs' ends are
soon found. Nothing outside them is connected with them, before or after: a new pair has its ends among
them. What the module makes of the pairs there are now is compared with what there was.
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
# What an index costs for each row.
_SECONDS_PER_ROW = 3e-8
_FIRST, _SECOND = Variable("X"), Variable("Y")


def maintain_equivalence(draft: Draft, shape: NodeRules, own: Segment) -> int | None:
    """Bring a node of classes up to date; return by how many facts it grows, None if it is no such node."""
    module = shape.module
    if module is None or module.shape not in _CLASSES:
        return None
    relation = Relation(module.step.relation, 2)
    pairs = shape.question(("pairs",), lambda: _pairs_of(relation))
    touched = draft.touched.rows(relation)
    marks = draft.flags(relation, touched, own)
    changed = touched[(marks & OUTSIDE_BEFORE != 0) != (marks & OUTSIDE != 0)]
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
    found = Table(2)
    parts = [TableView(Table.of(edges), NO_CLASS)]
    evaluate(module, lambda _: parts, found, module.step, lambda _: None)
    there = Table.of(inside)
    overlay = draft.overlay(own, relation)
    overlay.remove(found.filter(inside, present=False))
    overlay.add(there.filter(found.rows, present=False))
    draft.count(1, len(own) + overlay.grown)
    return draft.settle(own)


def _pairs_of(relation: Relation) -> DeltaQuery:
    given, pair = Atom(DELTA, (_FIRST,)), Atom(relation.name, (_FIRST, _SECOND))
    return DeltaQuery((_FIRST, _SECOND), (given, pair), 0)
