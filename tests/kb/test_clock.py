"""The clock of a knowledge base: ticks, windows that open and close, and what a tick is refused for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
@time reading 3 .
hot: hot(S) :- reading(S, V, T) within 10 min, V > 30 .
silent: silent(S) :- sensor(S), not reading(S, _, _) within 10 min .
median: median(S, M) :- AGGREGATE(reading(S, V, T) within 10 min) ON S WITH MED(V) AS M .
due: due(S, T2) :- reading(S, _, T), T2 := T + 10 min .
overdue: overdue(S) :- due(S, T), T <= now .
sensor(s1) . sensor(s2) .
reading(s1, 35, "2026-01-01T12:00:00Z"^^xsd:dateTime) .
reading(s2, 31, "2026-01-01T12:08:00Z"^^xsd:dateTime) .
"""


def at(minute: int) -> datetime:
    return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(minutes=minute)


def opened(path: Path | None = None, engine: str = "embedded") -> ze.KnowledgeBase:
    kb = ze.open(path, create=True, engine=engine) if path else ze.open(engine=engine)
    with kb.change() as c:
        c.add_rules(PROGRAM)
        c.tick(at(0))
    return kb


def names(kb: ze.KnowledgeBase, predicate: str) -> set[str]:
    return {str(row[0]) for row in kb.query(f"?- {predicate}(S) .").rows}


@pytest.mark.parametrize("engine", ["reference", "embedded"])
def test_facts_come_and_go_with_the_clock_alone(engine: str) -> None:
    kb = opened(engine=engine)
    assert kb.now == at(0)
    assert (names(kb, "hot"), names(kb, "silent"), names(kb, "overdue")) == ({"s1"}, {"s2"}, set())
    kb.tick(at(8))
    assert (names(kb, "hot"), names(kb, "silent")) == ({"s1", "s2"}, set())
    report = kb.tick("2026-01-01T12:10:00Z")
    assert (names(kb, "hot"), names(kb, "silent"), names(kb, "overdue")) == ({"s2"}, {"s1"}, {"s1"})
    assert (report.facts_added, report.facts_removed) == (1, 1)
    assert kb.verify("reference").ok
    assert kb.verify().ok


def test_a_tick_to_the_present_time_changes_nothing() -> None:
    kb = opened()
    report = kb.tick(at(0))
    assert not report.committed
    assert kb.version == 1


def test_a_clock_does_not_go_back() -> None:
    kb = opened()
    kb.tick(at(5))
    with pytest.raises(ze.ZodiacError, match="U034"):
        kb.tick(at(4))
    assert kb.now == at(5)


def test_a_clock_cannot_be_removed() -> None:
    kb = opened()
    fact = next(f for f in kb.explicit if f.predicate.name == "urn:zodiac:now")
    with pytest.raises(ze.ZodiacError, match="U034"), kb.change() as c:
        c.remove_facts([fact])


def test_a_fact_and_a_tick_are_one_change() -> None:
    kb = opened()
    with kb.change() as c:
        c.tick(at(20))
        c.add_facts([("reading", ze.iri("s1"), 40, at(20))])
    assert (names(kb, "hot"), names(kb, "silent")) == ({"s1"}, {"s2"})


def test_a_reading_from_the_future_waits() -> None:
    kb = opened()
    with kb.change() as c:
        c.add_facts([("reading", ze.iri("s2"), 40, at(3))])
    assert names(kb, "hot") == {"s1"}
    kb.tick(at(3))
    assert names(kb, "hot") == {"s1", "s2"}


def test_a_query_reads_the_clock() -> None:
    kb = opened()
    prepared = kb.prepare("?- reading(S, V, T) within 5 min .", "S")
    assert len(prepared(S=ze.iri("s1"))) == 1
    kb.tick(at(6))
    assert len(prepared(S=ze.iri("s1"))) == 0
    assert len(kb.query("?- reading(S, V, T), T > now - 10 min, T <= now .")) == 1
    with pytest.raises(ze.ZodiacError, match="C024"):
        kb.query("?- sensor(S), not reading(S, _, _) within 10 min .")


def test_rules_are_listed_as_they_were_written() -> None:
    kb = opened()
    assert [str(rule) for rule in kb.rules][1] == (
        "silent: silent(S) :- sensor(S), not reading(S, _, _) within 10 min ."
    )
    with kb.change() as c:
        c.remove_rules("silent(X) :- not reading(X, _, _) within 600 s, sensor(X) .")
    assert "silent" not in {rule.label for rule in kb.rules}


def test_a_change_does_not_tick_back() -> None:
    kb = opened()
    with kb.change() as c:
        c.tick("2026-01-01T13:04:00Z")
        with pytest.raises(ze.ZodiacError, match="U034"):
            c.tick("2026-01-01T13:03:00Z")
    assert kb.now == datetime(2026, 1, 1, 13, 4, tzinfo=UTC)
    with kb.change() as c:
        c.tick("2026-01-01T13:05:00Z")
        c.tick("2026-01-01T13:10:00Z")
    assert kb.now == datetime(2026, 1, 1, 13, 10, tzinfo=UTC)


def test_two_times_of_a_predicate_are_one_mistake() -> None:
    kb = ze.open()
    with pytest.raises(ze.ZodiacError, match="C023") as caught, kb.change() as c:
        c.add_rules("@time r 3 . @time r 2 . @time s 1 . @time s 2 .")
    assert [one.message for one in caught.value.diagnostics] == [
        "two @time name arguments of r",
        "two @time name arguments of s",
    ]


def test_a_time_stays_while_rules_have_windows_on_it() -> None:
    kb = opened()
    with pytest.raises(ze.ZodiacError, match="C023"), kb.change() as c:
        c.remove_rules("@time reading 3 .")
    with pytest.raises(ze.ZodiacError, match="C023"), kb.change() as c:
        c.add_rules("@time reading 2 .")
    with kb.change() as c:
        for label in ("hot", "silent", "median"):
            c.remove_rules(label)
        c.remove_rules("@time reading 3 .")
    assert {rule.label for rule in kb.rules} == {"due", "overdue"}


def test_a_store_keeps_the_time_of_each_version(tmp_path: Path) -> None:
    kb = opened(tmp_path / "s")
    for minute in (8, 10, 18):
        kb.tick(at(minute))
    expected = kb.verify().digest
    kb.close()
    with ze.open(tmp_path / "s") as again:
        assert again.now == at(18)
        assert again.verify("reference").ok
        assert again.verify().digest == expected
        assert again.at(2).now == at(8)
        assert names(again.at(2), "hot") == {"s1", "s2"}
        assert "silent(s1)" in {str(f) for f in again.diff(2, 3).inserted}
        again.tick(at(19))
        assert names(again, "silent") == {"s1", "s2"}
        again.rollback(2)
        assert again.now == at(8)
        assert names(again, "silent") == set()
        assert again.verify("reference").ok
        again.tick(at(30))
        assert names(again, "silent") == {"s1", "s2"}


def test_a_store_that_is_not_flushed_is_replayed_with_its_ticks(tmp_path: Path) -> None:
    kb = opened(tmp_path / "s")
    kb.tick(at(8))
    kb.tick(at(10))
    with ze.open(tmp_path / "s", read_only=True) as reader:
        assert reader.now == at(10)
        assert names(reader, "silent") == {"s1"}
        kb.tick(at(18))
        reader.refresh()
        assert reader.now == at(18)
        assert names(reader, "silent") == {"s1", "s2"}
    kb.close()


def test_a_slice_has_the_clock_and_the_declarations(tmp_path: Path) -> None:
    kb = opened()
    kb.export_slice(tmp_path / "slice", "reading(s1, _, _)", "sensor(s1)")
    with ze.open(tmp_path / "slice") as device:
        assert device.now == at(0)
        device.tick(at(10))
        assert names(device, "silent") == {"s1"}


def test_a_dry_run_ticks_without_ticking() -> None:
    kb = opened()
    transaction = kb.change()
    transaction.tick(at(10))
    report = transaction.dry_run()
    assert "silent(s1)" in {str(fact) for fact in report.inserted}
    assert kb.now == at(0)
