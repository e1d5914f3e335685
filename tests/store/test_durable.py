"""What a store keeps is what was in memory, version by version."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import PROGRAM, abandon, code
from zodiacedge.kb.change import Change
from zodiacedge.store.log import record_format

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.store.location.base import Location


def test_a_store_opens_as_it_was_closed(place: Path) -> None:
    with ze.open(place, create=True) as kb, kb.change() as c:
        c.add_rules(PROGRAM)
    facts, rules, explicit = kb.facts(), kb.rules, kb.explicit
    with ze.open(place) as again:
        assert again.version == 1
        assert again.facts() == facts
        assert again.explicit == explicit
        assert again.rules == rules
        assert again.derived() == kb.derived()
        assert again.verify(against="reference").ok


def test_what_only_the_log_has_is_replayed(logged: Path) -> None:
    with ze.open(logged) as kb:
        assert kb.version == 5
        assert kb.query("?- edge(d, e), not edge(a, b) .")
        assert not kb.query("?- path(a, b) .")
        assert kb.verify(against="reference").ok


def test_what_was_let_in_once_is_not_judged_again(place: Path) -> None:
    kb = ze.open(place, create=True)
    with kb.change() as c:
        c.add_rules("r: inverse(X, Z) :- value(X, Y), Z := 1 / Y .  value(a, 0) .  value(b, 1) .")
    abandon(kb)
    with ze.open(place, strict=True) as kb:
        assert len(kb.query("?- inverse(X, Y) .")) == 1
        with pytest.raises(ze.ZodiacError, match="strict mode"), kb.change() as c:
            c.add_facts("value(c, 0) .")
        assert kb.at(1).facts() == kb.facts()


def test_many_small_records_are_replayed_as_what_they_come_to(place: Path) -> None:
    kb = ze.open(place, create=True)
    with kb.change() as c:
        c.add_rules(PROGRAM)
    for n in range(30):
        with kb.change(f"change {n}") as c:
            c.add_facts([("edge", n % 7, n % 5), ("node", n % 3)])
            c.remove_facts([("edge", n % 4, n % 5)])
            if n == 11:
                c.remove_rules("r4")
            if n == 12:
                # More than is looked at one by one.
                c.add_facts([("value", n, "x" * 40 + str(m)) for m in range(500)])
            if n == 20:
                c.add_facts("@prefix ex: <http://e/> .  ex:p(ex:a, ex:b) .")
    abandon(kb)
    with ze.open(place) as again:
        assert again.version == 31
        assert again.facts() == kb.facts()
        assert again.explicit == kb.explicit
        assert again.verify(against="reference").ok
        assert again.query("?- ex:p(ex:a, X) .")
        for version in (1, 5, 12, 13, 14, 25):
            assert again.at(version).version == version
            assert again.at(version).verify().ok
        with again.change() as c:
            c.add_facts("edge(x, y) .")
        assert again.version == 32


def test_a_restored_state_is_maintained_like_any_other(farm: Path) -> None:
    with ze.open(farm) as kb:
        with kb.change() as c:
            c.add_facts("edge(d, a) .  kind(c, turbine) .")
            c.remove_facts("edge(b, c) .")
            c.add_rules("r9: lonely(X) :- node(X), not path(X, _) .")
        assert kb.verify(against="reference").ok
        with kb.change() as c:
            c.remove_rules("r2")
            c.remove_facts('kind(b, "odd") .')
        assert kb.verify(against="reference").ok
    with ze.open(farm, read_only=True) as kb:
        assert kb.verify(against="reference").ok


def test_prefixes_last(place: Path) -> None:
    with ze.open(place, create=True) as kb:
        with kb.change() as c:
            c.add_rules("@prefix ex: <http://e/> .  ex:p(ex:a, ex:b) .")
        abandon(kb)
        for _ in range(2):
            with ze.open(place) as again:
                assert again.query("?- ex:p(ex:a, X) .")


def test_the_log_says_who_changed_what(farm: Path) -> None:
    with ze.open(farm, read_only=True) as kb:
        first, second, third = kb.log()
    assert [e.message for e in (first, second, third)] == ["all there is", "one more", "a rule less"]
    assert len(first.rules_added) == 5
    assert (second.facts_added, second.facts_removed) == (1, 0)
    assert third.rules_removed[0].startswith("r4: ")
    assert json.dumps(third.to_dict())


@pytest.mark.parametrize("version", range(6))
def test_every_version_can_be_seen_again(logged: Path, version: int) -> None:
    with ze.open(logged, at=version) as kb:
        assert kb.version == version
        assert kb.verify(against="reference").ok
        assert bool(kb.query("?- edge(c, d) .")) == (version >= 2)
        with pytest.raises(ze.ZodiacError) as caught, kb.change() as c:
            c.add_facts("edge(x, y) .")
        assert code(caught.value) == "D009"


@pytest.mark.parametrize("version", [-1, 6, 99])
def test_a_version_that_is_not_there_is_refused(logged: Path, version: int) -> None:
    with pytest.raises(ze.ZodiacError, match="versions 0 to 5 are kept") as caught:
        ze.open(logged, at=version)
    assert code(caught.value) == "D008"


@pytest.mark.parametrize("version", range(5))
def test_rolling_back_makes_a_version_that_equals_an_earlier_one(logged: Path, version: int) -> None:
    with ze.open(logged) as kb:
        before = kb.at(version)
        kb.rollback(version)
        assert kb.version == 6
        assert kb.facts() == before.facts()
        assert set(kb.rules) == set(before.rules)
        assert kb.verify().ok


def test_a_store_without_versions_goes_back_to_none(place: Path) -> None:
    with ze.open(place, create=True) as kb:
        assert not kb.rollback(0).committed
        assert kb.version == 0
        assert kb.facts() == frozenset()


def test_a_change_without_effect_leaves_no_record(farm: Path) -> None:
    notices: list[ze.Notice] = []
    with ze.open(farm) as kb:
        before = kb.log()
        kb.subscribe(None, notices.append)
        known = next(iter(kb.explicit))
        with kb.change("again") as c:
            c.add_facts([(known.relation, *known.args)])
            c.remove_facts("nowhere(x) .")
        assert not c.report.committed
        assert not c.report.dry_run
        assert (c.report.version_before, c.report.version_after) == (3, 3)
        assert {warning.code for warning in c.report.warnings} == {"W012", "W013"}
        assert not kb.rollback(3).committed
        assert kb.log() == before
    assert not notices
    with ze.open(farm) as kb:
        assert (kb.version, kb.log()) == (3, before)


def test_prefixes_and_batches_are_recorded_without_any_other_effect(farm: Path) -> None:
    with ze.open(farm) as kb:
        with kb.change() as c:
            c.add_rules("@prefix zz: <http://e/zz#> .")
        assert c.report.committed
        assert kb.apply(Change(), stream=("s", 0)).committed
        with kb.change() as c:
            c.add_rules("@prefix zz: <http://e/zz#> .")
        assert not c.report.committed
    with ze.open(farm, read_only=True) as kb:
        assert (kb.version, kb.streams, kb.prefixes["zz"]) == (5, {"s": 0}, "http://e/zz#")


def test_a_refused_change_leaves_no_record(farm: Path) -> None:
    with ze.open(farm) as kb:
        with pytest.raises(ze.ZodiacError), kb.change() as c:
            c.add_rules("bad(X) :- node(Y) .")
        assert kb.version == 3
        assert len(kb.log()) == 3


def test_a_dry_run_leaves_no_record(farm: Path) -> None:
    with ze.open(farm) as kb:
        assert kb.dry_run(add_facts="edge(x, y) .").facts_added == 1
        assert len(kb.log()) == 3


def test_a_store_is_made_only_where_there_is_nothing(place: Path) -> None:
    place.mkdir()
    (place / "notes.txt").write_text("mine")
    with pytest.raises(ze.ZodiacError, match="not empty") as caught:
        ze.open(place, create=True)
    assert code(caught.value) == "D002"
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(place)
    assert code(caught.value) == "D002"


def test_the_engine_reference_opens_no_stores(place: Path) -> None:
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(place, create=True, engine="reference")
    assert code(caught.value) == "D011"


def test_a_long_log_is_flushed_on_the_way(farm: Path) -> None:
    kb = ze.open(farm)
    assert kb._store is not None
    kb._store.flush_bytes = 5000
    for n in range(12):
        with kb.change() as c:
            c.add_facts(f"edge(n{n}, n{n + 1}) .")
    abandon(kb)
    assert len(list((farm / "_wal").glob("*.log"))) > 1
    with ze.open(farm) as again:
        assert again.facts() == kb.facts()
        assert [entry.version for entry in again.log()] == list(range(1, 16))
        assert again.at(9).verify().ok


def test_threads_share_a_writer(place: Path) -> None:
    with ze.open(place, create=True) as kb:
        with kb.change() as c:
            c.add_rules("r1: path(X, Y) :- edge(X, Y) .")

        def work(name: int) -> None:
            for n in range(5):
                with kb.change(f"{name} {n}") as c:
                    c.add_facts([("edge", name, n)])

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        abandon(kb)
    with ze.open(place) as again:
        assert again.version == 21
        assert again.facts() == kb.facts()
        assert {e.message for e in again.log()[1:]} == {f"{n} {m}" for n in range(4) for m in range(5)}


def test_names_cannot_leave_the_folder(place: Path) -> None:
    names = ["../../../etc/passwd", "..", "a/b", "x" * 5000, "http://e/%2e%2e/#", "ü" * 300]
    with ze.open(place, create=True) as kb, kb.change() as c:
        c.add_facts([(name, ze.iri(name), name) for name in names])
    assert {path.name for path in place.parent.iterdir()} == {place.name}
    with ze.open(place) as again:
        assert again.facts() == kb.facts()


def test_a_rule_that_needs_a_function_needs_it_for_changes_only(place: Path) -> None:
    def double(x: int) -> int:
        return 2 * x

    with ze.open(place, create=True, functions=[double]) as kb, kb.change() as c:
        c.add_rules("twice(X, Y) :- value(X, V), Y := func:double(V) .  value(a, 2) .")
    with ze.open(place) as kb:
        assert list(kb.query("?- twice(a, Y) .")) == [(4,)]
        with pytest.raises(ze.ZodiacError, match="func:double") as caught, kb.change() as c:
            c.add_facts("value(b, 3) .")
        assert code(caught.value) == "D013"
        kb.function(double)
        with kb.change() as c:
            c.add_facts("value(b, 3) .")
        assert list(kb.query("?- twice(b, Y) .")) == [(6,)]
        abandon(kb)
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(place)
    assert code(caught.value) == "D013"
    with ze.open(place, functions=[double]) as kb:
        assert list(kb.query("?- twice(b, Y) .")) == [(6,)]


def test_a_vacuum_keeps_what_versions_need_and_no_more(logged: Path) -> None:
    with ze.open(logged) as kb:
        orphan = logged / "relation=edge-2-0" / "segment=explicit" / f"{'0' * 64}.parquet"
        orphan.parent.mkdir(parents=True)
        orphan.write_bytes(b"left by a killed process")
        unfinished = logged / "_wal" / f".{'0' * 64}.parquet.1.new"
        unfinished.write_bytes(b"left by another")
        assert kb.vacuum().first_version == 0
        assert not orphan.exists()
        assert not unfinished.exists()
        assert kb.at(1).verify().ok
        vacuumed = kb.vacuum(timedelta(0))
        assert vacuumed.first_version == 5
        assert vacuumed.files > 0
        with pytest.raises(ze.ZodiacError, match="only version 5 is kept"):
            kb.at(3)
        with kb.change() as c:
            c.add_facts("edge(y, z) .")
    with ze.open(logged) as kb:
        assert kb.version == 6
        assert kb.verify().ok
        assert kb.at(5).verify().ok


def test_all_name_the_same_versions_that_are_kept_after_a_vacuum(farm: Path) -> None:
    with ze.open(farm) as kb:
        for n in range(6):
            with kb.change() as c:
                c.add_facts([("edge", n, n)])
            if n == 2:
                kb.flush()
        first = kb.vacuum(timedelta(0)).first_version
        with kb.change() as c:
            c.add_facts("edge(y, z) .")
        told = f"versions {first} to {kb.version} are kept"
        for ask in (kb.at, kb.rollback):
            for wanted in (0, 99):
                with pytest.raises(ze.ZodiacError, match=told):
                    ask(wanted)


def test_readers_are_not_disturbed_by_a_vacuum(farm: Path) -> None:
    enough = threading.Event()
    problems: list[BaseException] = []
    seen: list[int] = []

    def read() -> None:
        while not enough.is_set():
            try:
                with ze.open(farm, read_only=True) as kb:
                    seen.append(kb.version)
                    assert len(kb.query("?- mark(N) .")) == max(kb.version - 3, 0)
            except BaseException as problem:  # noqa: BLE001 - it is told by the thread that waits
                problems.append(problem)
                return

    with ze.open(farm) as kb:
        reader = threading.Thread(target=read)
        reader.start()
        for n in range(25):
            with kb.change() as c:
                c.add_facts([("mark", n)])
            kb.vacuum(timedelta(0))
        enough.set()
        reader.join()
    assert problems == []
    assert seen


@pytest.mark.parametrize("read_only", [True, False])
def test_who_reads_the_log_is_not_disturbed_by_a_vacuum(
    farm: Path, monkeypatch: pytest.MonkeyPatch, *, read_only: bool
) -> None:
    really = record_format.files

    def vacuumed_meanwhile(place: Location) -> list[tuple[int, str]]:
        found = really(place)
        monkeypatch.setattr(record_format, "files", really)
        # Another process, or another thread of the writer.
        with ze.open(farm) if read_only else nullcontext(kb) as writer:
            for n in range(2):
                with writer.change() as c:
                    c.add_facts(f"edge(x, y{n}) .")
                writer.vacuum(timedelta(0))
        return found

    with ze.open(farm, read_only=read_only) as kb:
        monkeypatch.setattr(record_format, "files", vacuumed_meanwhile)
        assert [entry.version for entry in kb.log()] == [5]


def test_a_dry_vacuum_tells_and_removes_nothing(farm: Path) -> None:
    with ze.open(farm) as kb:
        before = sorted(path for path in farm.rglob("*") if path.is_file())
        told = kb.vacuum(timedelta(0), dry_run=True)
        assert sorted(path for path in farm.rglob("*") if path.is_file()) == before
        assert told.files > 0
        assert told.first_version == 3
        vacuumed = kb.vacuum(timedelta(0))
        assert (vacuumed.files, vacuumed.bytes, vacuumed.first_version) == (told.files, told.bytes, 3)


def whole_or_not_kept(kb: ze.StoredKnowledgeBase, version: int) -> bool:
    try:
        return kb.at(version).verify().ok
    except ze.ZodiacError as problem:
        return code(problem) == "D008"


@pytest.mark.parametrize("done", range(8))
def test_a_vacuum_that_is_interrupted_leaves_whole_versions(
    logged: Path, done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PowerFailure(BaseException):
        pass

    kb = ze.open(logged)
    left = done
    really = type(logged).unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - as the system has it
        nonlocal left
        left -= 1
        if left < 0:
            raise PowerFailure
        really(path, missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(type(logged), "unlink", unlink)
        with pytest.raises(PowerFailure):
            kb.vacuum(timedelta(0))
    abandon(kb)
    with ze.open(logged) as again:
        assert again.version == 5
        assert again.facts() == kb.facts()
        assert all(whole_or_not_kept(again, version) for version in range(6))
        assert again.vacuum(timedelta(0)).first_version == 5
        assert again.verify().ok


def test_a_vacuum_leaves_no_empty_folder(logged: Path) -> None:
    with ze.open(logged) as kb:
        with kb.change() as c:
            c.remove_rules("r1")
            c.remove_facts([("quad", ze.iri("a"), ze.iri("b"), 3, 4)])
        assert list(logged.glob("relation=quad-*"))
        kb.vacuum(timedelta(0))
        assert not list(logged.glob("relation=quad-*"))
        assert all(any(folder.iterdir()) for folder in logged.glob("relation=*/segment=*"))


def test_a_second_writer_is_told_who_the_first_is_and_readers_are_welcome(farm: Path) -> None:
    script = f"""
import sys, zodiacedge as ze
kb = ze.open({str(farm)!r})
with kb.change() as c: c.add_facts("edge(x, y) .")
print("ready", flush=True)
sys.stdin.readline()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(ze.ZodiacError, match=f"process {other.pid} on ") as caught:
            ze.open(farm)
        assert code(caught.value) == "D003"
        with ze.open(farm, read_only=True) as kb:
            assert kb.version == 4
        other.kill()
    # What a killed writer leaves behind is no lock.
    assert str(other.pid) in (farm / "_lock").read_text()
    with ze.open(farm) as kb:
        assert kb.version == 4


def test_a_node_without_facts_is_maintained_in_a_store_that_was_opened_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However quickly it was evaluated.
    monkeypatch.setattr("zodiacedge.engine.embedded.maintain.strategy._SECONDS_TO_PLAN", 0)
    with ze.open(place, create=True) as kb, kb.change() as c:
        c.add_rules("near(X, Y) :- near(Y, X) .  near(X, Z) :- near(X, Y), near(Y, Z) .")
    with ze.open(place) as again:
        with again.change() as c:
            c.add_facts("near(a, b) .")
        assert len(again.facts()) == 4
        assert again.verify().ok


def test_a_store_stays_where_it_is_when_the_process_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        with ze.open("farm", create=True) as kb, kb.change() as c:
            c.add_facts([(name, 1)])
    monkeypatch.chdir(tmp_path / "here")
    with ze.open("farm") as kb:
        monkeypatch.chdir(tmp_path / "there")
        with kb.change() as c:
            c.add_facts([("here", 2)])
    for name, count in (("here", 2), ("there", 1)):
        with ze.open(tmp_path / name / "farm", read_only=True) as kb:
            assert kb.explicit_counts() == {name: count}


def test_a_rollback_over_several_changes_warns_of_nothing(place: Path) -> None:
    with ze.open(place, create=True) as kb:
        with kb.change() as c:
            c.add_rules("r: q(X) :- p(X) .  p(a) .")
        with kb.change() as c:
            c.remove_rules("r")
            c.add_facts("p(b) .")
        with kb.change() as c:
            c.add_rules("r: q(X) :- p(X) .")
            c.remove_facts("p(a) .  p(b) .")
        with kb.change() as c:
            c.add_facts("p(a) .  p(c) .")
        report = kb.rollback(1)
        assert report.warnings == ()
        assert (report.rules_added, report.rules_removed) == ((), ())
        assert (report.facts_added, report.facts_removed) == (0, 1)
        assert kb.facts() == kb.at(1).facts()


def test_a_store_shows_where_it_is_and_its_size(tmp_path: Path) -> None:
    path = tmp_path / "s.zodiac"
    with ze.open(path, create=True) as kb:
        for text in ("q(a) . q(b) .", "p(X) :- q(X) . q(c) ."):
            with kb.change() as c:
                c.add_rules(text)
        shown = f"<StoredKnowledgeBase {path}, engine embedded, version 2: 1 rule, 3 explicit facts>"
        assert repr(kb) == shown
        assert repr(kb.at(1)).endswith("version 1: 0 rules, 2 explicit facts>")
    with ze.open(path) as kb:
        assert repr(kb) == shown


def test_prefixes_of_the_knowledge_base_are_kept_with_the_next_change(place: Path) -> None:
    with ze.open(place, create=True) as kb:
        kb.add_prefixes([("ex", "http://e/")])
        kb.flush()
        assert (kb.version, ze.open(place, read_only=True).prefixes) == (0, {})
        with kb.change() as c:
            c.add_facts("p(a) .")
        # The log has it, whether it is flushed or not.
        assert kb.log()[-1].prefixes == {"ex": "http://e/"}
        assert ze.open(place, read_only=True).prefixes == {"ex": "http://e/"}
    assert ze.open(place, read_only=True).prefixes == {"ex": "http://e/"}


@pytest.mark.parametrize("flushed", [True, False])
def test_a_rollback_gives_prefixes_their_meaning_back(place: Path, *, flushed: bool) -> None:
    with ze.open(place, create=True) as kb:
        for number, base in enumerate(("http://a/", "http://b/", "http://c/")):
            with kb.change() as c:
                c.add_rules(f"@prefix ex: <{base}> . @prefix n{number}: <http://n/> . p({number}) .")
            if flushed:
                kb.flush()
        report = kb.rollback(2)
        assert [w.code for w in report.warnings] == ["W019"]
        assert kb.prefixes["ex"] == "http://b/"
        # One that was declared since stays.
        assert "n2" in kb.prefixes
    assert ze.open(place, read_only=True).prefixes["ex"] == "http://b/"
