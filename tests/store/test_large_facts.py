"""Facts beside the log, on the embedded engine: it writes none, and reads what other engines wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import PROGRAM, abandon, code
from zodiacedge.engine.embedded.persistence.adapter import EmbeddedPersistence
from zodiacedge.engine.persistence import PartitionFile
from zodiacedge.errors import StoreProblem
from zodiacedge.store.versions import replay

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pyarrow as pa

    from zodiacedge.engine.embedded.ingest.batch import EmbeddedFactDelta
    from zodiacedge.engine.persistence import PartitionKey, PartitionWriter

    Side = Iterable[tuple[PartitionKey, pa.Table | PartitionFile]]

# Members that come and go, values of all kinds, and a name that comes at another arity as its last fact goes.
CHANGES = (
    ("", "node(z) . up() . kind(b, turbine) ."),
    ("lower(a, b) . lower(a, c) . turbine(x) .", ""),
    ("lower(a, b, 1) . node(w) .", "lower(a, b) . lower(a, c) . turbine(x) ."),
    ("edge(c, a) .", 'value(a, "") . value(a, 5) . quad(a, b, 3, 4) .'),
)


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engine write all facts of changes beside the log."""
    in_record = EmbeddedPersistence.explicit_delta

    def written(
        self: EmbeddedPersistence, fact_delta: EmbeddedFactDelta, write: PartitionWriter
    ) -> tuple[Side, ...]:
        return tuple(
            [(key, facts if isinstance(facts, PartitionFile) else write(key, facts)) for key, facts in side]
            for side in in_record(self, fact_delta, write)
        )

    monkeypatch.setattr(EmbeddedPersistence, "explicit_delta", written)


def make(place: Path) -> list[frozenset[ze.Fact]]:
    """Make a store whose log has all of it; return the facts of each version."""
    kb = ze.open(place, create=True)
    versions = [kb.facts()]
    with kb.change() as change:
        change.add_rules(PROGRAM)
    versions.append(kb.facts())
    for come, go in CHANGES:
        with kb.change() as change:
            change.add_facts(come)
            change.remove_facts(go)
        versions.append(kb.facts())
    abandon(kb)
    return versions


def test_facts_beside_the_log_are_replayed_and_undone_without_being_listed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = make(place)
    assert list((place / "_wal").glob("*.parquet"))

    def listed(*_: object) -> None:
        raise AssertionError("facts beside the log are listed")

    monkeypatch.setattr(replay, "facts_in", listed)
    with ze.open(place) as kb:
        assert kb.facts() == versions[-1]
        assert kb.verify("reference").ok
        for version, facts in enumerate(versions):
            assert kb.at(version).facts() == facts
        # Undone, and that undone again.
        for facts in (versions[-2], versions[-1]):
            kb.rollback(kb.version - 1)
            assert kb.facts() == facts


def test_several_changes_with_facts_beside_the_log_are_undone_at_once(place: Path) -> None:
    versions = make(place)
    with ze.open(place) as kb:
        for version in (2, 4, 1):
            kb.rollback(version)
            assert kb.facts() == versions[version]


@pytest.mark.parametrize(
    ("data", "why"), [(None, "cannot be read"), (b"PAR1", "its checksum is not its name")]
)
def test_a_file_beside_the_log_that_is_gone_or_another_is_damage(
    place: Path, data: bytes | None, why: str
) -> None:
    make(place)
    for path in (place / "_wal").glob("*.parquet"):
        path.unlink()
        if data is not None:
            path.write_bytes(data)
    with pytest.raises(StoreProblem, match=why) as found:
        ze.open(place)
    assert code(found.value) == "D004"
