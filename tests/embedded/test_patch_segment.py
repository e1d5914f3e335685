"""Recomputed nodes whose old tables are kept and patched where little changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.maintain import patch_segment, propagate
from zodiacedge.engine.embedded.state import EmbeddedState
from zodiacedge.engine.embedded.storage.relation import Relation
from zodiacedge.engine.embedded.storage.segment import Segment
from zodiacedge.engine.embedded.versions.difference import TableDifference
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RULES = """
far: far(X, Y) :- near(X, Z), near(Z, Y), X != Y .
far2: far(X, Y) :- far(Y, X) .
many: many(X, N) :- AGGREGATE(near(X, Y)) ON X WITH COUNT(Y) AS N .
kind: rdf:type(X, C) :- many(X, C) .
"""


def _segments(kb: KnowledgeBase) -> dict[frozenset[str], Segment]:
    state = kb.state
    assert isinstance(state, EmbeddedState)
    return dict(state.store.segments)


def _loaded(*engines: EmbeddedEngine | ReferenceEngine) -> list[KnowledgeBase]:
    kbs = [KnowledgeBase(engine, Settings()) for engine in engines]
    for kb in kbs:
        with kb.change() as change:
            change.add_rules(_RULES)
            change.add_facts([("near", n, (n * 7) % 11) for n in range(20)])
    return kbs


def test_tables_stay_and_hold_what_the_evaluation_gave() -> None:
    ours, reference = _loaded(EmbeddedEngine(strategy="give up"), ReferenceEngine())
    before = _segments(ours)
    for come, go in (([(3, 4)], []), ([], [(5, 2), (3, 4)]), ([(0, 0), (30, 31)], [(1, 7)])):
        reports = []
        for kb in (ours, reference):
            with kb.change() as change:
                change.add_facts([("near", *pair) for pair in come])
                change.remove_facts([("near", *pair) for pair in go])
            reports.append((change.report.inserted, change.report.deleted))
        assert {node.strategy.partition(", ")[2] for node in change.report.nodes} <= {"given up", ""}
        assert reports[0] == reports[1]
        assert ours.facts() == reference.facts()
        for node in reference.graph().order:
            keys = frozenset(node.rules)
            assert ours.state.segment(keys) == reference.state.segment(keys)
            assert _segments(ours)[keys] is before[keys]


def test_a_dry_run_leaves_what_is_known_of_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    (kb,) = _loaded(EmbeddedEngine(strategy="give up"))
    kept: list[Segment] = []
    take = patch_segment.patch_segment

    def told(*args: object) -> None:
        take(*args)  # type: ignore[arg-type]
        kept.append(args[1])  # type: ignore[arg-type]

    monkeypatch.setattr(propagate, "patch_segment", told)
    known = {keys: (one.seconds, one.tries) for keys, one in _segments(kb).items()}
    kb.dry_run(add_facts=[("near", 3, 4)])
    assert kept
    assert {keys: (one.seconds, one.tries) for keys, one in _segments(kb).items()} == known


def test_much_that_changed_is_too_dear_to_keep() -> None:
    relation = Relation("p", 2)
    old, near, other = Segment(), Segment(), Segment()
    old.table(relation).insert(_rows(50_000))
    near.table(relation).insert(_rows(50_010))
    other.table(relation).insert(_rows(50_000) + 1)
    assert 20 * _asked(old, near)[-1] < _asked(old, other)[-1]


def test_how_much_differs_is_not_asked_where_looking_is_too_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    relation = Relation("p", 2)
    old, new = Segment(), Segment()
    old.table(relation).insert(_rows(50_000))
    new.table(relation).insert(_rows(50_010))

    def refuse(*_args: object) -> None:
        raise AssertionError

    monkeypatch.setattr(TableDifference, "estimate", property(refuse))
    assert not patch_segment.can_patch(old, new, lambda _seconds: False)
    with pytest.raises(AssertionError):
        patch_segment.can_patch(old, new, lambda _seconds: True)


def _asked(old: Segment, new: Segment) -> list[float]:
    seconds: list[float] = []
    patch_segment.can_patch(old, new, lambda one: not seconds.append(one))  # type: ignore[func-returns-value]
    return seconds


def _rows(count: int) -> NDArray[np.int32]:
    return np.repeat(2 * np.arange(count, dtype=np.int32), 2).reshape(-1, 2)


_RING = """
r1: p(X, Y) :- q(X, Y) .
r2: s(X, Y) :- p(X, Y) .
r3: p(X, Y) :- s(X, Y) .
r4: t(X, Z) :- s(X, Y), s(Y, Z) .
"""


def test_nodes_that_read_what_a_split_node_still_derives_are_not_visited() -> None:
    kb = KnowledgeBase(EmbeddedEngine(strategy="recompute"), Settings())
    with kb.change() as change:
        change.add_rules(_RING)
        change.add_facts([("q", n, (n * 7) % 11) for n in range(20)])
    for merge in (False, True):
        before = {id(t): t for s in _segments(kb).values() for r, t in s.tables.items() if r.name == "s"}
        with kb.change() as change:
            if merge:
                change.add_rules("r3: p(X, Y) :- s(X, Y) .")
            else:
                change.remove_rules("r3")
        visited = {rule for node in change.report.nodes for rule in node.rules}
        assert "r2" in visited
        assert "r4" not in visited
        assert not change.report.inserted | change.report.deleted
        after = [t for s in _segments(kb).values() for r, t in s.tables.items() if r.name == "s"]
        assert [id(table) for table in after] == list(before)
        assert kb.verify().ok


def test_a_recomputed_table_with_as_many_other_rows_replaces_the_old_one() -> None:
    kb = KnowledgeBase(EmbeddedEngine(strategy="recompute"), Settings())
    with kb.change() as change:
        change.add_rules(_RING)
        change.add_facts([("q", n, n + 1) for n in range(20)])
    with kb.change() as change:
        change.remove_facts([("q", 4, 5)])
        change.add_facts([("q", 4, 6)])
    assert {node.counted() for node in change.report.nodes} != {(0, 0)}
    assert kb.verify().ok
