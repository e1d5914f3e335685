"""Which partitions a flush writes: all that changed, and without a look at the rows of others."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import zodiacedge as ze
from strategies import RandomSession, examples, sessions
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.persistence.adapter import EmbeddedPersistence
from zodiacedge.engine.embedded.state import EmbeddedState
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.kb.change import Change
from zodiacedge.store.knowledge_base import StoredKnowledgeBase
from zodiacedge.store.location.base import location_of
from zodiacedge.store.log.record import facts_in
from zodiacedge.store.store import DurableStore

if TYPE_CHECKING:
    import pytest

    from zodiacedge.engine.persistence import PartitionKey

PERSISTENCE = EmbeddedPersistence()


def _state(kb: ze.KnowledgeBase) -> EmbeddedState:
    assert isinstance(kb.state, EmbeddedState)
    return kb.state


def _contents(state: EmbeddedState) -> dict[PartitionKey, frozenset[ze.Fact]]:
    return {
        key: frozenset(facts_in(key, table))
        for key, table in PERSISTENCE.tables(state, {*PERSISTENCE.signatures(state, {})})
    }


def _files(place: Path) -> dict[str, set[str]]:
    """Return the Parquet files of a store by folder."""
    found: dict[str, set[str]] = {}
    for path in place.rglob("*.parquet"):
        if "_delta_log" not in path.parts:
            found.setdefault(str(path.parent.relative_to(place)), set()).add(path.name)
    return found


@settings(max_examples=examples(40, one_in=100), phases=(Phase.explicit, Phase.generate))
@given(
    session=sessions(most_changes=5),
    strategy=st.sampled_from(["choose", "maintain", "recompute"]),
    modules=st.booleans(),
)
def test_a_partition_has_another_signature_if_its_facts_are_others_and_only_then(
    session: RandomSession, strategy: str, *, modules: bool
) -> None:
    engine = EmbeddedEngine(modules=modules, strategy=strategy)
    program = session.program
    with tempfile.TemporaryDirectory() as folder:
        store = DurableStore.open(location_of(Path(folder) / "kb"), create=True, writable=True)
        kb = StoredKnowledgeBase(engine, Settings(), store)
        kb.apply(Change(program.rules, (), program.facts, ()))
        kb.close()
        store = DurableStore.open(location_of(Path(folder) / "kb"), create=False, writable=True)
        kb = StoredKnowledgeBase(engine, Settings(), store)
        facts, signatures = _contents(_state(kb)), PERSISTENCE.signatures(_state(kb), {})
        for one in session.changes:
            kb.apply(Change(one.add_rules, one.remove_rules, one.add_facts, one.remove_facts))
            before, known = facts, signatures
            facts, signatures = _contents(_state(kb)), PERSISTENCE.signatures(_state(kb), {})
            assert facts.keys() == signatures.keys()
            for key in {*before, *facts}:
                assert (before.get(key) == facts.get(key)) == (known.get(key) == signatures.get(key)), key
        kb.close()


def test_opening_and_a_change_of_one_fact_look_at_no_row_of_other_partitions(
    farm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = ze.open(farm)
    with kb.change() as c:
        c.add_facts("quad(q, q, 1, 2) .")
    rows = vars(Table)["rows"].fget
    looked: list[int] = []

    def noted(table: Table) -> object:
        looked.append(id(table))
        return rows(table)

    changed = [
        id(table) for relation, table in _state(kb).store.explicit.tables.items() if relation.name == "quad"
    ]
    with monkeypatch.context() as patch:
        patch.setattr(Table, "rows", property(noted))
        signatures = PERSISTENCE.signatures(_state(kb), {})
        assert not looked
        kb.flush()
    assert len(signatures) > 10
    assert looked == changed
    kb.close()


def test_a_change_of_one_class_leaves_the_files_of_others(place: Path) -> None:
    with ze.open(place, create=True) as kb, kb.change() as c:
        c.add_rules("rdf:type(X, C) :- kind(X, C) .")
        c.add_facts([("kind", n, ze.iri(f"http://e/C{n % 3}")) for n in range(600)])
    before = _files(place)
    with ze.open(place) as kb, kb.change() as c:
        c.remove_facts([("kind", 0, ze.iri("http://e/C0"))])
    changed = {folder for folder, names in _files(place).items() if names != before.get(folder)}
    assert len(before) == 4
    assert {folder.split("/")[0].split("-")[0] for folder in changed} == {"relation=C0", "relation=kind"}


def test_a_node_that_is_recomputed_to_what_it_had_keeps_its_files(place: Path) -> None:
    engine = EmbeddedEngine(strategy="recompute")
    location = location_of(place)
    kb = StoredKnowledgeBase(engine, Settings(), DurableStore.open(location, create=True, writable=True))
    with kb.change() as c:
        c.add_rules("big(X) :- value(X, V), V > 10 . total(N) :- AGGREGATE(big(X)) WITH COUNT(X) AS N .")
        c.add_facts([("value", n, m) for n in range(500) for m in (5, 20, 30)])
    kb.close()
    before = _files(place)
    kb = StoredKnowledgeBase(engine, Settings(), DurableStore.open(location, create=False, writable=True))
    with kb.change() as c:
        c.remove_facts([("value", n, 30) for n in range(0, 500, 7)])
    assert any("recomputed" in run.strategy for run in kb.state.runs)
    kb.close()
    changed = {folder for folder, names in _files(place).items() if names != before[folder]}
    assert {folder.split("/")[0].split("-")[0] for folder in changed} == {"relation=value"}
