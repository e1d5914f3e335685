"""A reader moves to the versions that a writer commits, and its subscribers see each of them."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import abandon, code
from strategies.waiting import SECONDS, until
from zodiacedge.engine.embedded.persistence.adapter import EmbeddedPersistence
from zodiacedge.kb.change import Change

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from zodiacedge.engine.api import Progress

SEVERAL = ("edge(d, e) .", "edge(e, f) .", "node(n1) .")


@pytest.fixture
def writer(farm: Path) -> Iterator[ze.StoredKnowledgeBase]:
    """The writer of a store with three versions."""
    with ze.open(farm) as kb:
        yield kb


def add(kb: ze.StoredKnowledgeBase, facts: str) -> None:
    with kb.change() as c:
        c.add_facts(facts)


def same(reader: ze.StoredKnowledgeBase, writer: ze.StoredKnowledgeBase) -> bool:
    return (reader.version, reader.facts(), reader.rules, reader.prefixes, reader.streams) == (
        writer.version,
        writer.facts(),
        writer.rules,
        writer.prefixes,
        writer.streams,
    )


def test_each_new_version_has_a_report_and_a_notice(farm: Path, writer: ze.StoredKnowledgeBase) -> None:
    notices: list[ze.Notice] = []
    with ze.open(farm, read_only=True) as reader:
        reader.subscribe("path/2", notices.append)
        assert reader.refresh() == ()
        for facts in SEVERAL:
            add(writer, facts)
        with writer.change() as c:
            c.remove_rules("r2")
            c.add_rules("@prefix ex: <http://e/> . r9: far(X) :- path(ex:x, X) .")
        writer.apply(Change(), stream=("s", 4))
        reports = reader.refresh()
        assert [(r.version_before, r.version_after) for r in reports] == [(n, n + 1) for n in range(3, 8)]
        assert [r.facts_added for r in reports] == [1, 1, 1, 0, 0]
        assert [notice.version for notice in notices] == [4, 5, 7]
        assert reports[0].inserted >= notices[0].inserted
        assert same(reader, writer)
        assert reader.verify().ok
        assert reader.refresh() == ()


def test_it_goes_on_after_a_flush_and_over_files_of_the_log(
    farm: Path, writer: ze.StoredKnowledgeBase
) -> None:
    with ze.open(farm, read_only=True) as reader:
        for facts in SEVERAL:
            add(writer, facts)
            writer.flush()
            assert len(reader.refresh()) == 1
            assert same(reader, writer)
        writer.flush()
        assert reader.refresh() == ()


def test_a_reader_that_a_vacuum_left_behind_loads_the_newest_version(
    farm: Path, writer: ze.StoredKnowledgeBase
) -> None:
    notices: list[ze.Notice] = []
    with ze.open(farm, read_only=True) as reader:
        reader.subscribe("node/1", notices.append)
        for facts in SEVERAL:
            add(writer, facts)
            writer.flush()
        writer.vacuum(timedelta(0))
        before = reader.facts()
        (report,) = reader.refresh()
        assert (report.version_before, report.version_after, report.facts_added) == (3, 6, 3)
        assert report.inserted == writer.facts() - before
        assert [(notice.version, len(notice.inserted)) for notice in notices] == [(6, 1)]
        assert same(reader, writer)
        add(writer, "node(n2) .")
        assert [r.version_after for r in reader.refresh()] == [7]


def test_a_record_that_was_withdrawn_is_taken_back(farm: Path) -> None:
    kb = ze.open(farm)
    with ze.open(farm, read_only=True) as reader:
        add(kb, "node(first) .")
        reader.refresh()
        # A change that fails after its record was written, and another in its place.
        kb.store.withdraw(3)
        abandon(kb)
        with ze.open(farm) as writer:
            assert writer.version == 3
            add(writer, "node(second) .")
            reader.refresh()
            assert same(reader, writer)


def test_an_earlier_version_moves_to_the_newest(farm: Path, writer: ze.StoredKnowledgeBase) -> None:
    with ze.open(farm, at=1) as reader:
        assert [report.version_after for report in reader.refresh()] == [2, 3]
        assert same(reader, writer)


def test_a_subscriber_that_fails_does_not_lose_later_versions(
    farm: Path, writer: ze.StoredKnowledgeBase
) -> None:
    with ze.open(farm, read_only=True) as reader:
        failing = reader.subscribe(None, lambda _: 1 / 0)
        for facts in SEVERAL:
            add(writer, facts)
        notices: list[ze.Notice] = []
        reader.subscribe(None, notices.append)
        with pytest.raises(ExceptionGroup) as caught:
            reader.refresh()
        assert len(caught.value.exceptions) == 3
        assert [notice.version for notice in notices] == [4, 5, 6]
        assert same(reader, writer)
        failing.cancel()
        assert reader.refresh() == ()


def test_a_reader_in_another_thread_sees_the_version_before_or_the_newest(
    farm: Path, writer: ze.StoredKnowledgeBase
) -> None:
    with ze.open(farm, read_only=True, strict=True) as reader, ThreadPoolExecutor(1) as pool:
        asked: list[Future[tuple[int, int]]] = []
        unlocked: set[tuple[int, int, bool]] = set()

        def read() -> tuple[int, int]:
            with reader.reading():
                return reader.version, len(reader.explicit)

        def progress(_: Progress) -> None:
            unlocked.add((reader.version, len(reader.rules), reader.settings.strict))
            asked.append(pool.submit(read))
            until(lambda: reader._engine_lock.wanted)

        before = read()
        rules = len(reader.rules)
        for number, facts in enumerate(SEVERAL):
            with writer.change() as c:
                c.add_rules(f"{facts} again{number}(X) :- node(X) .")
        reader._settings = replace(reader.settings, progress=progress)
        reader.refresh()
        seen = [future.result(SECONDS) for future in asked]
        newest = writer.version, len(writer.explicit)
        assert seen[0] == before
        assert seen[-1] == newest == read()
        assert set(seen) == {before, newest}
        assert unlocked == {(before[0], rules, True)}


def test_a_refresh_waits_for_a_block_that_reads(farm: Path, writer: ze.StoredKnowledgeBase) -> None:
    with ze.open(farm, read_only=True) as reader, ThreadPoolExecutor(1) as pool:
        before = reader.version, reader.facts()
        for facts in SEVERAL:
            add(writer, facts)
        with reader.reading():
            refreshed = pool.submit(reader.refresh)
            until(lambda: reader._engine_lock.wanted)
            assert (reader.version, reader.facts()) == before
        assert len(refreshed.result(SECONDS)) == 3
        assert same(reader, writer)


def test_a_record_that_is_not_reproduced_leaves_the_version_before_it(
    farm: Path, writer: ze.StoredKnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices: list[ze.Notice] = []
    with ze.open(farm, read_only=True) as reader:
        reader.subscribe(None, notices.append)
        for facts in SEVERAL:
            add(writer, facts)
        counts = EmbeddedPersistence.counts_after
        taken = iter([0, 1])
        monkeypatch.setattr(
            EmbeddedPersistence,
            "counts_after",
            lambda *given: (counts(*given)[0] + next(taken), counts(*given)[1]),
        )
        with pytest.raises(ze.ZodiacError) as caught:
            reader.refresh()
        monkeypatch.undo()
        assert code(caught.value) == "D010"
        assert (reader.version, [notice.version for notice in notices]) == (4, [4])
        assert reader.verify().ok
        assert [report.version_after for report in reader.refresh()] == [5, 6]
        assert same(reader, writer)


def test_prefixes_of_a_reader_stay_until_a_change_declares_them(
    farm: Path, writer: ze.StoredKnowledgeBase
) -> None:
    with ze.open(farm, read_only=True) as reader:
        reader.add_prefixes([("own", "http://own/"), ("ex", "http://here/")])
        add(writer, "@prefix ex: <http://e/> . node(ex:n1) .")
        writer.flush()
        writer.vacuum(timedelta(0))
        reader.refresh()
        assert reader.prefixes == {**writer.prefixes, "own": "http://own/"}


def test_a_subscriber_of_a_reader_cannot_change_it(farm: Path, writer: ze.StoredKnowledgeBase) -> None:
    with ze.open(farm, read_only=True) as reader:
        reader.subscribe(None, lambda _: add(reader, "node(x) ."))
        add(writer, "node(n1) .")
        with pytest.raises(ExceptionGroup) as caught:
            reader.refresh()
        (problem,) = caught.value.exceptions
        assert isinstance(problem, ze.ZodiacError)
        assert code(problem) == "D009"
        assert same(reader, writer)


def test_a_writer_and_a_closed_reader_are_refused(farm: Path, writer: ze.StoredKnowledgeBase) -> None:
    with pytest.raises(ze.ZodiacError) as caught:
        writer.refresh()
    assert code(caught.value) == "U028"
    with ze.open(farm, read_only=True) as reader:
        pass
    with pytest.raises(ze.ZodiacError) as caught:
        reader.refresh()
    assert code(caught.value) == "D012"
