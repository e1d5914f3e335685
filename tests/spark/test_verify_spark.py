"""Verification on Spark: sums that tasks make find what is wrong, in files of segments and in layers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from kb.test_verify import FACTS, RULES
from zodiacedge.engine.api import Mismatch, Settings
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.engine.spark.compare.digest import digest
from zodiacedge.engine.spark.state import SparkState
from zodiacedge.engine.spark.storage.files import TYPED, Relation, Segment, held, read_file, table_of
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.engine.state_compare import summed
from zodiacedge.engine.yield_point import ALONE
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Fact, Predicate, fact
from zodiacedge.terms import IRI, RDF_TYPE, iri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zodiacedge.engine.api import Engine
    from zodiacedge.engine.spark.engine import SparkEngine
    from zodiacedge.kb.verify import Verification

NEAR = Relation("near", 2)


def made(engine: Engine) -> KnowledgeBase:
    kb = KnowledgeBase(engine, Settings())
    for text in (RULES, FACTS, "near(d, e) .", "near(e, a) ."):
        with kb.change() as change:
            change.add_rules(text)
    with kb.change() as change:
        change.remove_facts("near(e, a) .")
    return kb


def state_of(kb: KnowledgeBase) -> SparkState:
    assert isinstance(kb.state, SparkState)
    return kb.state


@pytest.fixture(scope="module")
def shared(make_engine: Callable[[Options], SparkEngine]) -> KnowledgeBase:
    # The driver reads nothing itself: all is compared in tasks.
    return made(make_engine(Options(driver_rows=0)))


@pytest.fixture
def kb(shared: KnowledgeBase) -> Iterator[KnowledgeBase]:
    """Return a knowledge base whose state may be damaged: the next test has it as it was."""
    state = shared.state
    yield shared
    shared._state = state


def owners(state: SparkState) -> tuple[Segment, ...]:
    return (state.explicit_files, *state.segments.values())


def keys(state: SparkState, *names: str) -> list[np.ndarray]:
    return [np.array([state.workspace.hashing.key(iri(name))]) for name in names]


def damage(
    kb: KnowledgeBase, relation: Relation, rows: list[np.ndarray], *, inserted: bool
) -> frozenset[str]:
    """Let rows come to a node that has the relation, or go from it, without anybody being told; return it."""
    state = state_of(kb)
    part = state.workspace.adopt(state.workspace.scratch.folder.write_rows(relation, rows))
    # Where several nodes have members of classes, the one that has those of this class.
    (node,) = (
        rules
        for rules, segment in state.segments.items()
        if part.classes.keys() <= segment.content(relation).classes.keys() and segment.content(relation).rows
    )
    segment = state.segments[node]
    content = segment.content(relation).then((part,) if inserted else (), () if inserted else (part,))
    wrong = Segment({**segment.contents, relation: content}, segment.aggregate_rows)
    kb._state = replace(state, segments={**state.segments, node: wrong})
    return node


def segment_of_near(kb: KnowledgeBase) -> str:
    """Return what a node is called whose rules stand in the order of their keys."""
    labels = [rule.label for _, rule in sorted(kb._program.rules.items())]
    return f"segment of {', '.join(label for label in labels if label in {'near', 'back'})}"


def told(found: Verification) -> list[tuple[str, Predicate, int, int, Fact]]:
    return [(d.where, d.predicate, d.missing, d.extra, d.example) for d in found.differences]


def test_what_is_right_passes_with_the_digest_of_every_engine(kb: KnowledgeBase) -> None:
    expected = made(ReferenceEngine())
    found = kb.verify()
    assert told(found) == []
    assert (found.engine, found.version) == ("spark", kb.version)
    assert (found.facts, found.digest) == (len(expected.facts()), expected.verify().digest)
    assert kb.verify("spark").ok


def test_a_derived_fact_too_many_is_found(kb: KnowledgeBase) -> None:
    state = state_of(kb)
    before = kb.verify()
    damage(kb, NEAR, keys(state, "a", "d"), inserted=True)
    found = kb.verify()
    assert sorted(told(found)) == [
        (where, Predicate("near", 2), 0, 1, fact("near", iri("a"), iri("d")))
        for where in (segment_of_near(kb), "visible facts")
    ]
    assert found.facts == before.facts + 1
    assert found.digest != before.digest


def test_a_derived_fact_that_is_missing_is_found(kb: KnowledgeBase) -> None:
    state = state_of(kb)
    before = kb.verify()
    damage(kb, TYPED, keys(state, "d", "town"), inserted=False)
    found = kb.verify()
    lost = Fact(RDF_TYPE, (iri("d"), IRI("town")))
    assert told(found) == [
        ("visible facts", Predicate("town", 1), 1, 0, lost),
        ("segment of kinds", Predicate("town", 1), 1, 0, lost),
    ]
    assert found.facts == before.facts - 1


def test_a_fact_that_others_have_too_is_missing_in_its_segment_alone(kb: KnowledgeBase) -> None:
    state = state_of(kb)
    damage(kb, NEAR, keys(state, "a", "b"), inserted=False)
    ((where, _, missing, extra, example),) = told(kb.verify())
    assert where == segment_of_near(kb)
    assert (missing, extra, example) == (1, 0, fact("near", iri("a"), iri("b")))


@pytest.mark.parametrize(
    "options",
    [Options(), Options(driver_rows=0, gather_rows=0)],
    ids=["the driver", "tasks that have parts of them"],
)
def test_it_does_not_matter_who_reads_the_files(kb: KnowledgeBase, options: Options) -> None:
    state, program = state_of(kb), kb._program
    fresh = state.recompute(program.rules, program.graph, kb.settings)
    nodes = [damage(kb, NEAR, keys(state, "a", "d"), inserted=True)]
    nodes.append(damage(kb, TYPED, keys(state, "d", "town"), inserted=False))
    place = replace(state.workspace, options=options)
    ours, theirs = (replace(one, workspace=place) for one in (state_of(kb), fresh))
    more, less = fact("near", iri("a"), iri("d")), Fact(RDF_TYPE, (iri("d"), IRI("town")))
    assert set(ours.mismatches(theirs, nodes, ALONE)) == {
        Mismatch(None, more.predicate, 0, 1, more),
        Mismatch(nodes[0], more.predicate, 0, 1, more),
        Mismatch(None, less.predicate, 1, 0, less),
        Mismatch(nodes[1], less.predicate, 1, 0, less),
    }
    # A relation that two have, and what several know of classes.
    for relation in (NEAR, TYPED):
        wrong, right = ({relation: held(one)[relation]} for one in (owners(ours), owners(theirs)))
        facts = {one for one in made(ReferenceEngine()).facts() if one.relation == relation.name}
        assert digest(place, right, theirs.terms, ALONE) == summed(facts)
        facts ^= {more} if relation == NEAR else {less}
        assert digest(place, wrong, ours.terms, ALONE) == summed(facts)


def test_rows_in_the_place_of_others_are_found_though_their_number_is_right(kb: KnowledgeBase) -> None:
    size = Relation("size", 2)
    (part,) = (part for one in state_of(kb).segments.values() for part in one.content(size).parts)
    who, how_many = read_file(part, 2)
    assert len(np.unique(how_many)) > 1
    pq.write_table(table_of([who, np.roll(how_many, 1)]), part.path)
    found = kb.verify().differences
    pq.write_table(table_of([who, how_many]), part.path)
    places = [(d.where, d.predicate.name) for d in found]
    assert places == [("visible facts", "size"), ("segment of size", "size")]
    assert all(d.missing == d.extra > 0 for d in found)


def test_a_segment_that_is_gone_is_missing_as_a_whole(kb: KnowledgeBase) -> None:
    state = state_of(kb)
    rows = {one for one in made(ReferenceEngine()).facts() if one.relation == "near"}
    left = {rules: one for rules, one in state.segments.items() if not one.content(NEAR).rows}
    kb._state = replace(state, segments=left)
    found = {d.where: (d.missing, d.extra) for d in kb.verify().differences}
    stated = state.explicit_counts()[Predicate(*NEAR)]
    assert found == {"visible facts": (len(rows) - stated, 0), segment_of_near(kb): (len(rows), 0)}
