"""Stores in an object store: a real server over HTTP, one or several who write, and what goes wrong there."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import PROGRAM, add_logged, code, make_farm
from zodiacedge.store.location.base import Location, location_of
from zodiacedge.store.log import object_store
from zodiacedge.store.versions import vacuum

if TYPE_CHECKING:
    from zodiacedge.store.layout import FileInfo

WRITER = Path(__file__).with_name("object_writer.py")


@pytest.fixture
def address(bucket: str) -> str:
    """Where a store may be made."""
    return f"{bucket}/plants/farm.zodiac"


@pytest.fixture
def farm(address: str) -> str:
    """A store with three versions, all flushed."""
    make_farm(address)
    return address


@pytest.fixture
def logged(farm: str) -> str:
    """The same store with two more versions that only the log has."""
    add_logged(farm)
    return farm


def logs(address: str) -> list[FileInfo]:
    return [one for one in location_of(address).listed("_wal") if one.name.endswith(".log")]


def add(kb: ze.KnowledgeBase, fact: str) -> None:
    with kb.change(fact) as c:
        c.add_facts(fact)


def refusal(kb: ze.KnowledgeBase, fact: str) -> str:
    with pytest.raises(ze.ZodiacError) as caught:
        add(kb, fact)
    return code(caught.value)


# What a store does


def test_a_store_of_objects_is_what_a_folder_is(farm: str, tmp_path: Path) -> None:
    with ze.open(tmp_path / "farm", create=True) as folder:
        for text in (PROGRAM, "edge(c, d) ."):
            with folder.change() as c:
                c.add_rules(text)
        with folder.change() as c:
            c.remove_rules("r4")
        with ze.open(farm) as kb:
            assert (kb.version, kb.facts(), kb.explicit) == (3, folder.facts(), folder.explicit)
            assert set(kb.rules) == set(folder.rules)
            assert kb.verify(against="reference").ok


def test_changes_that_nobody_flushed_are_there_when_it_is_opened_again(logged: str) -> None:
    with ze.open(logged, read_only=True) as kb:
        assert kb.version == 5
        assert kb.verify().ok
        assert [entry.message for entry in kb.log()][3:] == ["from the log", "from the log too"]
    with ze.open(logged) as kb:
        add(kb, "edge(e, f) .")
        assert kb.recovered == ()
    with ze.open(logged, read_only=True) as kb:
        assert kb.version == 6
        assert kb.query("?- path(d, f) .")


def test_versions_are_found_again_compared_and_undone(logged: str) -> None:
    with ze.open(logged) as kb:
        assert not kb.at(4).query("?- edge(e, f) .")
        assert kb.at(1).query("?- lonely(z) .")
        assert "edge" in {one.predicate.name for one in kb.diff(4, 5).deleted}
        kb.rollback(4)
        assert kb.version == 6
        assert kb.facts() == kb.at(4).facts()
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(logged, at=99)
    assert code(caught.value) == "D008"
    assert "versions 0 to 6 are kept" in str(caught.value)


def test_the_table_is_read_without_our_code(farm: str, endpoint: str) -> None:
    import polars as pl  # noqa: PLC0415 - heavy, and only here

    options = {"aws_endpoint_url": endpoint, "aws_allow_http": "true", "aws_region": "us-east-1"}
    facts = pl.read_delta(farm, storage_options=options)
    edges = facts.filter((pl.col("predicate") == "edge") & (pl.col("kind") == "explicit"))
    assert sorted(edges.select("a0", "a1").rows()) == [("a", "b"), ("b", "c"), ("c", "d")]


def test_a_slice_goes_from_one_address_to_another(farm: str, bucket: str, tmp_path: Path) -> None:
    with ze.open(farm, read_only=True) as kb:
        kb.export_slice(f"{bucket}/slice", "?- edge(a, X) .")
        kb.export_slice(tmp_path / "slice", "?- edge(a, X) .")
    with ze.open(f"{bucket}/slice") as device, ze.open(tmp_path / "slice") as beside:
        assert device.facts() == beside.facts()
        add(device, "edge(b, q) .")
        assert device.query("?- path(a, q) .")
        with pytest.raises(ze.ZodiacError) as caught:
            beside.export_slice(f"{bucket}/slice", "?- edge(a, X) .")
        assert code(caught.value) == "D014"
        with pytest.raises(ze.ZodiacError) as caught:
            beside.export_slice(bucket, "?- edge(a, X) .")
        assert code(caught.value) == "D002"


def test_a_long_log_is_flushed_in_the_background(address: str) -> None:
    with ze.open(address, create=True) as kb:
        assert kb.store is not None
        kb.store.flush_bytes = 300_000
        for number in range(20):
            add(kb, f"p(n{number}, {number}) .")
        kb._flusher.wait()
        assert len(location_of(address).listed("_delta_log")) > 1
    with ze.open(address, read_only=True) as kb:
        assert len(kb.query("?- p(X, Y) .")) == 20
        assert kb.verify().ok


def test_the_commands_take_addresses(address: str, bucket: str, tmp_path: Path) -> None:
    rules, facts = tmp_path / "farm.rules", tmp_path / "reading.csv"
    rules.write_text("alarm: alarm(T) :- reading(T, V), V > 80 .\n")
    facts.write_text("<wt1>,93\n<wt2>,55\n")

    def zodiac(*words: str, fails: bool = False) -> str:
        command = [sys.executable, "-m", "zodiacedge", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert bool(done.returncode) == fails, done.stderr
        return done.stdout + done.stderr

    assert "version 1" in zodiac("init", address, "--rules", str(rules), "--facts", str(facts))
    assert "D014" in zodiac("init", address, fails=True)
    facts.write_text("<wt2>,88\n")
    zodiac("apply", address, "--add-facts", str(facts), "-m", "noon")
    assert "wt2" in zodiac("query", address, "?- alarm(T) .")
    assert "wt2" not in zodiac("query", address, "?- alarm(T) .", "--at", "1")
    assert "noon" in zodiac("log", address)
    assert "alarm(wt2)" in zodiac("diff", address, "1", "2")
    assert "version 2 to 3" in zodiac("rollback", address, "1")
    assert "in use" in zodiac("stats", address)
    assert "alarm(" in zodiac("rules", address)
    zodiac("verify", address)
    zodiac("vacuum", address)
    zodiac("export", address, "--out", str(tmp_path / "out"), "--what", "all")
    zodiac("export", address, "--out", f"{bucket}/wt1", "--slice", "reading(wt1, _)")
    assert "wt1" in zodiac("query", f"{bucket}/wt1", "?- alarm(T) .")


# Several who write


def test_the_second_of_two_writers_is_refused_and_nothing_of_its_change_is_seen(farm: str) -> None:
    with ze.open(farm) as first, ze.open(farm) as second:
        add(first, "edge(x, y) .")
        before = second.facts()
        assert refusal(second, "edge(y, z) .") == "D018"
        assert refusal(second, "edge(y, z) .") == "D018"
        assert (second.version, second.facts()) == (3, before)
        add(first, "edge(z, z) .")
    with ze.open(farm) as again:
        assert again.version == 5
        add(again, "edge(y, z) .")
        assert again.query("?- path(x, z) .")
        assert again.verify().ok


def test_the_same_change_at_the_same_moment_is_still_two(farm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zodiacedge.store.store._now", lambda: "2026-01-01T00:00:00.000+00:00")
    with ze.open(farm) as first, ze.open(farm) as second:
        add(first, "edge(x, y) .")
        assert refusal(second, "edge(x, y) .") == "D018"


def test_an_answer_that_got_lost_is_no_refusal(bucket: str) -> None:
    place = location_of(bucket)
    assert place.put_new("one", b"mine")  # type: ignore[union-attr]
    # As the library asks again when it heard nothing.
    assert place.put_new("one", b"mine")  # type: ignore[union-attr]
    assert not place.put_new("one", b"yours")  # type: ignore[union-attr]
    assert place.read("one") == b"mine"


def test_the_last_flush_builds_on_those_of_others(logged: str) -> None:
    first = ze.open(logged)
    second = ze.open(logged)
    # The second flushes version 5, which the first has not flushed either.
    second.close()
    add(first, "edge(x, y) .")
    with first.change() as c:
        c.remove_facts("node(a) .  kind(a, turbine) .")
    first.close()
    with ze.open(logged) as kb:
        assert kb.version == 7
        assert kb.verify(against="reference").ok
        assert kb.at(5).verify().ok
        # And what was flushed since is built on in turn.
        add(kb, "edge(y, z) .")
    with ze.open(logged, read_only=True) as kb:
        assert kb.query("?- path(x, z) .")
        assert kb.verify().ok


def test_a_table_that_is_ahead_of_a_writer_stays_as_it_is(logged: str) -> None:
    behind = ze.open(logged)
    with ze.open(logged) as ahead:
        add(ahead, "edge(x, y) .")
    assert refusal(behind, "edge(y, z) .") == "D018"
    behind.close()
    with ze.open(logged, read_only=True) as kb:
        assert kb.version == 6
        assert kb.query("?- edge(x, y) .")


def test_of_several_who_make_a_store_one_has_made_it(address: str) -> None:
    maker = "import sys, zodiacedge as ze\nze.open(sys.argv[1], create=True).close()"
    makers = [
        subprocess.Popen([sys.executable, "-c", maker, address], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for one in makers:
        _, said = one.communicate()
        # Those that come later open it, or are told that it is there.
        assert one.returncode == 0 or "D014" in said, said
    with ze.open(address) as kb:
        add(kb, "p(a) .")
        assert kb.version == 1


@pytest.mark.slow
def test_two_processes_that_write_at_once_lose_nothing(address: str) -> None:
    with ze.open(address, create=True) as kb, kb.change() as c:
        c.add_rules("r1: seen(W) :- mark(W, _) .")
    # Rounds of a few changes, so that each meets the other's at any point.
    writers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", str(WRITER), address, name, "30", flush],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, flush in (("left", "200000"), ("right", "100000"))
    ]
    acknowledged: dict[int, tuple[str, int]] = {}
    refused = 0
    for name, writer in zip(("left", "right"), writers, strict=True):
        out, _ = writer.communicate()
        assert writer.returncode == 0
        for line in out.splitlines():
            match line.split():
                case ["done", version, number]:
                    assert int(version) not in acknowledged
                    acknowledged[int(version)] = name, int(number)
                case ["refused", count]:
                    refused += int(count)
    assert refused
    assert sorted(acknowledged) == list(range(2, 62))
    with ze.open(address, read_only=True) as kb:
        assert kb.version == 61
        marks = {(writer, int(str(number))) for writer, number in kb.query("?- mark(W, N) .")}
        assert marks == {(ze.iri(name), n) for name in ("left", "right") for n in range(30)}
        told = {entry.version: entry.message for entry in kb.log() if entry.version > 1}
        assert told == {version: f"{name} {n}" for version, (name, n) in acknowledged.items()}
        assert kb.verify().ok
        assert kb.at(30).verify().ok


@pytest.mark.slow
@pytest.mark.parametrize("flush", [10**9, 100_000], ids=["logged", "flushing"])
def test_a_writer_that_is_killed_loses_nothing(address: str, flush: int) -> None:
    with ze.open(address, create=True):
        pass
    version = 0
    for run in range(3):
        command = [sys.executable, "-W", "error", str(WRITER), address, f"run{run}", "100000", str(flush)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == f"open {version}\n"
            for _ in range(3 + 4 * run):
                done = writer.stdout.readline()
            writer.kill()
            rest = writer.stdout.read().splitlines()
        last = int([done, *rest][-1].split()[1])
        with ze.open(address, read_only=True) as kb:
            # The one that was under way may have got there before anybody could say so.
            assert kb.version in {last, last + 1}
            assert len(kb.query("?- mark(W, N) .")) == kb.version
            assert kb.verify().ok
            version = kb.version


# Sweeping


def test_nothing_young_is_removed_because_others_may_be_about_to_name_it(logged: str) -> None:
    place = location_of(logged)
    place.write("relation=p-1-0000000000000000/segment=explicit/left.parquet", b"")
    with ze.open(logged) as kb:
        vacuumed = kb.vacuum(timedelta(0))
        assert (vacuumed.files, vacuumed.first_version) == (0, 0)
        assert kb.at(1).verify().ok


def test_what_no_version_needs_is_removed_when_it_is_old(
    logged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuum, "YOUNG", timedelta(0))
    place = location_of(logged)
    left = "relation=p-1-0000000000000000/segment=explicit/left.parquet"
    place.write(left, b"")
    with ze.open(logged) as kb:
        vacuumed = kb.vacuum(timedelta(0))
        assert vacuumed.first_version == 5
        assert not place.has(left)
        add(kb, "edge(x, y) .")
    with ze.open(logged) as kb:
        assert kb.version == 6
        assert kb.verify().ok
        with pytest.raises(ze.ZodiacError) as caught:
            kb.at(2)
        assert code(caught.value) == "D008"


def test_a_writer_that_slept_while_its_version_was_removed_is_refused(
    logged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asleep = ze.open(logged)
    monkeypatch.setattr(vacuum, "YOUNG", timedelta(0))
    with ze.open(logged) as kb:
        add(kb, "edge(x, y) .")
        kb.flush()
        add(kb, "edge(y, z) .")
        kb.flush()
        kb.vacuum(timedelta(0))
    assert f"_wal/{6:020d}.log" not in [one.name for one in logs(logged)]
    monkeypatch.setattr(object_store, "_STALE_SECONDS", -1.0)
    assert refusal(asleep, "edge(z, z) .") == "D018"


# What goes wrong


def damage(place: Location, name: str, how: str) -> None:
    data = place.read(name)
    if how == "missing":
        place.remove([name], in_order=True)
    elif how == "truncated":
        place.write(name, data[: len(data) // 2])
    elif how == "empty":
        place.write(name, b"")
    else:
        place.write(name, data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])


@pytest.mark.parametrize("how", ["truncated", "empty", "flipped"])
def test_an_object_of_the_log_that_is_not_what_was_put_is_refused(logged: str, how: str) -> None:
    place = location_of(logged)
    damage(place, logs(logged)[-1].name, how)
    for read_only in (False, True):
        with pytest.raises(ze.ZodiacError) as caught:
            ze.open(logged, read_only=read_only)
        # It was put whole, so this is no record that a process did not get to write.
        assert code(caught.value) == "D004"
    with ze.open(logged, at=4) as kb:
        assert kb.verify().ok


def test_an_object_that_is_missing_between_others_is_found(logged: str) -> None:
    damage(location_of(logged), logs(logged)[-2].name, "missing")
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(logged)
    assert code(caught.value) == "D004"
    assert "version 4 is missing" in str(caught.value)


@pytest.mark.parametrize("how", ["missing", "truncated", "empty", "flipped"])
def test_facts_that_are_not_what_was_put_are_refused(farm: str, how: str) -> None:
    place = location_of(farm)
    name = next(one.name for one in place.listed() if one.name.startswith("relation=quad-4"))
    damage(place, name, how)
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(farm)
    assert code(caught.value) == "D005"
    assert f"{farm}/{name}" in str(caught.value)


def test_nothing_there_is_told_apart_from_something_else(bucket: str) -> None:
    location_of(bucket).write("other/notes.txt", b"hello")
    for address, expected in ((f"{bucket}/farm", "D001"), (f"{bucket}/other", "D002")):
        with pytest.raises(ze.ZodiacError) as caught:
            ze.open(address)
        assert code(caught.value) == expected
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(f"{bucket}/other", create=True)
    assert code(caught.value) == "D002"


@pytest.mark.parametrize("create", [False, True])
def test_a_bucket_that_is_not_there_is_told(endpoint: str, *, create: bool) -> None:
    del endpoint
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open("s3://nobody-has-this/farm", create=create)
    assert code(caught.value) == "D020"
    assert "bucket does not exist" in str(caught.value)


def test_without_credentials_that_is_what_is_said(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    # Nobody hands out credentials there.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(f"{bucket}/farm", create=True)
    assert code(caught.value) == "D020"
    assert "there are no credentials" in str(caught.value)


@pytest.mark.parametrize(
    "address", ["ftp://host/farm", "s3://", "s3://bucket/../farm", "s3://bucket/a?b", "s3://bucket/a b#c"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(address, create=True)
    assert code(caught.value) == "D002"


def test_a_folder_may_be_named_by_its_address(tmp_path: Path) -> None:
    with ze.open((tmp_path / "a farm").as_uri(), create=True) as kb:
        add(kb, "p(a) .")
    with ze.open(tmp_path / "a farm") as kb:
        assert kb.version == 1


def test_without_the_library_it_is_named() -> None:
    program = (
        "import sys; sys.modules['obstore'] = None; import zodiacedge as ze; ze.open('s3://bucket/farm')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "D019" in done.stderr
    assert 'pip install "zodiacedge[objects]"' in done.stderr
