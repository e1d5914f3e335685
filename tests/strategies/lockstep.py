"""Plays changes on the embedded engine and on the definition, and compares them after each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import ZodiacError
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from zodiacedge.engine.api import SegmentChange
    from zodiacedge.kb.change import Change
    from zodiacedge.kb.report import ChangeReport


def moves(report: ChangeReport) -> dict[frozenset[str], SegmentChange | None]:
    """Return what each visited node gained and lost."""
    return {frozenset(node.rules): node.counted() for node in report.nodes}


class Played(NamedTuple):
    """How many changes were compared, and how many nodes maintained."""

    steps: int
    maintained: int


def play(changes: list[Change], seed: int, strategy: str, patience: int = 0) -> Played:
    """Apply changes on both engines, and compare what is there after each."""
    expected = KnowledgeBase(ReferenceEngine(), Settings())
    engine = EmbeddedEngine(
        modules=bool(seed & 1), strategy=strategy, backward=bool(seed & 2), patience=patience
    )
    found = KnowledgeBase(engine, Settings())
    maintained = 0
    for place, change in enumerate(changes):
        where = f"seed {seed}, change {place}, {strategy}"
        try:
            told = expected.apply(change)
        except ZodiacError:
            with pytest.raises(ZodiacError):
                found.apply(change)
            assert found.facts() == expected.facts(), where
            continue
        report = found.apply(change)
        maintained += sum(node.strategy == "maintained" for node in report.nodes)
        assert found.facts() == expected.facts(), where
        assert found.explicit == expected.explicit, where
        assert (report.inserted, report.deleted) == (told.inserted, told.deleted), where
        assert report.net_counts() == told.net_counts(), where
        visited, all_nodes = moves(report), moves(told)
        assert visited.items() <= all_nodes.items(), where
        assert not any(any(all_nodes[rules] or ()) for rules in all_nodes.keys() - visited.keys()), where
        assert found.derived() == expected.derived(), where
        for node in expected.graph().order:
            rules = frozenset(node.rules)
            assert found.state.segment(rules) == expected.state.segment(rules), where
    return Played(len(changes), maintained)
