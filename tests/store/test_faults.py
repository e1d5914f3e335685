"""What breaks in the world: each fault gives one clear message, and never a wrong answer."""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zodiacedge as ze
from store.conftest import abandon, code
from zodiacedge.store.table.delta_table import FactTable

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOBODY = 65534


def last_log(store: Path) -> Path:
    return max((store / "_wal").glob("*.log"))


def parquet(store: Path) -> Path:
    """Return the file of the explicit edges of the last version."""
    with ze.open(store, read_only=True) as kb:
        assert kb._store is not None
        commit = next(kb._store._table.commits())
        names = [one for one in kb._store._table.files(commit) if one.startswith("relation=edge-2")]
    return store / names[0]


@pytest.mark.parametrize("missing", [1, 5, 30, 400])
def test_a_torn_last_record_is_left_out_and_told(logged: Path, missing: int) -> None:
    path = last_log(logged)
    data = path.read_bytes()
    path.write_bytes(data[:-missing])
    with ze.open(logged, read_only=True) as kb:
        assert kb.version == 4
        (told,) = kb.recovered
        assert (told.code, "a writer is at it now" in told.note) == ("W014", True)
    with ze.open(logged) as kb:
        assert kb.version == 4
        (told,) = kb.recovered
        assert (told.code, told.severity) == ("W014", "warning")
        assert kb.verify().ok
        with kb.change() as c:
            c.add_facts("edge(n, m) .")
        abandon(kb)
    with ze.open(logged) as kb:
        assert kb.version == 5
        assert kb.recovered == ()
        assert kb.query("?- edge(n, m) .")


def test_blocks_that_never_reached_the_disk_are_a_torn_record(logged: Path) -> None:
    path = last_log(logged)
    data = path.read_bytes()
    # Disks write blocks of 512 bytes, and the last record has more than one.
    lost = (len(data) - 1) % 512 + 1
    path.write_bytes(data[:-lost] + bytes(lost))
    with ze.open(logged) as kb:
        assert kb.version == 4
        assert len(kb.recovered) == 1


def test_a_file_of_the_log_that_was_only_begun_is_left_out(farm: Path) -> None:
    (farm / "_wal" / f"{4:020d}.log").write_bytes(b"ZODI")
    with ze.open(farm) as kb:
        assert kb.version == 3
        with kb.change() as c:
            c.add_facts("edge(n, m) .")
        abandon(kb)
    with ze.open(farm) as kb:
        assert kb.version == 4


def test_a_flipped_byte_of_the_log_is_never_taken_for_something_else(logged: Path) -> None:
    path = last_log(logged)
    data = path.read_bytes()
    with ze.open(logged, read_only=True) as kb:
        facts = kb.facts()
    # Every byte of the front of each record, and some of the rest.
    for at in (*range(120), *range(120, len(data), 97), len(data) - 1):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        if 12 <= at < 16:
            # Nobody reads the header's padding.
            with ze.open(logged, read_only=True) as kb:
                assert kb.facts() == facts
            continue
        with pytest.raises(ze.ZodiacError) as caught:
            ze.open(logged, read_only=True)
        assert code(caught.value) in {"D004", "D006"}, at


def test_a_damaged_record_is_named_and_what_came_before_can_be_read(logged: Path) -> None:
    path = last_log(logged)
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ze.ZodiacError, match=r"(?s)record 2 of .*0004\.log, at byte .* --at 4") as caught:
        ze.open(logged)
    assert code(caught.value) == "D004"
    with ze.open(logged, at=4) as kb:
        assert kb.verify().ok


def test_a_record_left_out_of_the_middle_is_found(logged: Path) -> None:
    kb = ze.open(logged)
    assert kb._store is not None
    first, second = kb._store.records(3, 5)
    abandon(kb)
    path = last_log(logged)
    data = path.read_bytes()
    path.write_bytes(data[: first.offset] + data[second.offset :])
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(logged)
    assert code(caught.value) == "D004"


def test_a_file_of_the_log_that_is_missing_is_found(place: Path) -> None:
    kb = ze.open(place, create=True)
    for n in range(3):
        with kb.change() as c:
            c.add_facts([("p", n, n)])
        assert kb._store is not None
        assert kb._store._writer is not None
        kb._store._writer.rotate()
    abandon(kb)
    files = sorted((place / "_wal").iterdir())
    assert len(files) == 3
    files[1].unlink()
    with pytest.raises(ze.ZodiacError, match="version 2 is missing") as caught:
        ze.open(place)
    assert code(caught.value) == "D004"


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-10]), "is damaged"),
        (lambda path: path.write_bytes(b""), "is damaged"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"edge", b"egde", 1)), "is damaged"),
        (lambda path: path.unlink(), "cannot be read"),
    ],
    ids=["truncated", "empty", "flipped", "missing"],
)
def test_a_harmed_parquet_file_is_named(farm: Path, harm: object, words: str) -> None:
    path = parquet(farm)
    assert callable(harm)
    harm(path)
    with pytest.raises(ze.ZodiacError, match=words) as caught:
        ze.open(farm)
    assert code(caught.value) == "D005"
    assert path.name in str(caught.value)
    # The lock was given back.
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(farm)
    assert code(caught.value) == "D005"


def test_another_file_in_the_place_of_one_is_found(farm: Path) -> None:
    path = parquet(farm)
    log = max((farm / "_delta_log").glob("*.json"))
    text = log.read_text()
    log.write_text(text.replace(path.name, f"{'0' * 64}.parquet"))
    with pytest.raises(ze.ZodiacError, match="does not hold the files of version") as caught:
        ze.open(farm)
    assert code(caught.value) == "D005"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x.parquet", "relation=a/segment=b/../../x.parquet"])
def test_a_table_that_points_elsewhere_is_refused(farm: Path, path: str) -> None:
    mine = parquet(farm)
    log = max((farm / "_delta_log").glob("*.json"))
    log.write_text(log.read_text().replace(str(mine.relative_to(farm)), path))
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(farm)
    assert code(caught.value) == "D005"


def test_a_commit_of_another_program_that_changed_the_facts_is_passed_over(farm: Path) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415

    DeltaTable(str(farm)).delete("predicate = 'edge'")
    with ze.open(farm) as kb:
        # The last commit of ours is whole: that is the version there is.
        assert kb.version == 3
        assert kb.query("?- edge(a, b) .")


def test_a_torn_commit_of_the_table_is_told_in_one_line(farm: Path) -> None:
    log = max((farm / "_delta_log").glob("*.json"))
    log.write_bytes(log.read_bytes()[:-50])
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(farm)
    assert code(caught.value) == "D005"
    assert "\n" not in caught.value.diagnostics[0].message


@pytest.mark.parametrize("what", ["delete", "z-order", "a column"])
def test_what_another_program_did_to_the_table_is_undone_by_the_next_flush(farm: Path, what: str) -> None:
    from deltalake import DeltaTable, Field  # noqa: PLC0415
    from deltalake.schema import PrimitiveType  # noqa: PLC0415

    with ze.open(farm) as kb:
        before = kb.facts()
    table = DeltaTable(str(farm))
    if what == "delete":
        table.delete("predicate = 'edge'")
    elif what == "z-order":
        table.optimize.z_order(["a0"])
    else:
        table.alter.add_columns([Field("x", PrimitiveType("string"))])
    with ze.open(farm) as kb:
        with kb.change() as change:
            change.add_facts("edge(far, away) .")
        after = kb.facts()
        kb.flush()
    assert before < after
    with ze.open(farm) as kb:
        assert kb.facts() == after
        assert kb.verify().ok
        with kb.change() as change:
            change.remove_facts("edge(far, away) .")
    with ze.open(farm) as kb:
        assert kb.facts() == before


def test_a_newer_format_is_refused(farm: Path) -> None:
    marker = farm / "_zodiac.json"
    marker.write_text(json.dumps({"format": 99}))
    with pytest.raises(ze.ZodiacError, match="has the format 99") as caught:
        ze.open(farm)
    assert code(caught.value) == "D006"


def test_a_newer_format_of_the_table_is_refused(farm: Path) -> None:
    log = max((farm / "_delta_log").glob("*.json"))
    log.write_text(log.read_text().replace('\\"format\\": 1', '\\"format\\": 99'))
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(farm)
    assert code(caught.value) == "D006"


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Let the system refuse longer files, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_refuses_a_change_and_nothing_has_changed(logged: Path) -> None:
    with ze.open(logged) as kb:
        with kb.change() as c:
            c.add_facts("edge(f, g) .")
        facts, size = kb.facts(), last_log(logged).stat().st_size
        with (
            no_file_longer_than(size + 300),
            pytest.raises(ze.ZodiacError, match="make room") as caught,
            kb.change() as c,
        ):
            c.add_facts("edge(g, h) .")
        assert code(caught.value) == "D007"
        assert kb.facts() == facts
        assert last_log(logged).stat().st_size == size
        # There is room again.
        with kb.change() as c:
            c.add_facts("edge(g, h) .")
        assert kb.version == 7
        abandon(kb)
    with ze.open(logged) as kb:
        assert kb.version == 7
        assert kb.recovered == ()
        assert kb.verify().ok


def test_a_full_disk_while_flushing_loses_nothing(logged: Path) -> None:
    kb = ze.open(logged)
    with no_file_longer_than(600), pytest.raises(ze.ZodiacError) as caught:
        kb.close()
    assert code(caught.value) == "D007"
    with ze.open(logged) as again:
        assert again.version == 5
        assert again.facts() == kb.facts()


def test_a_full_disk_behind_a_commit_is_no_second_truth(place: Path) -> None:
    """Delta writes a checkpoint with every hundredth commit, when the commit is there already."""
    kb = ze.open(place, create=True)
    with kb.change() as c:
        c.add_facts([(f"p{n}", n, m) for n in range(60) for m in range(3)])
    kb.flush()
    checkpoints = list((place / "_delta_log").glob("*.checkpoint.parquet"))
    assert checkpoints == []
    for n in range(105):
        with kb.change() as c:
            c.add_facts([("q", n, n)])
        # A commit fits, a checkpoint does not.
        with no_file_longer_than(9_000):
            kb.flush()
    assert not list((place / "_delta_log").glob("*.checkpoint.parquet"))
    kb.close()
    with ze.open(place) as again:
        assert again.facts() == kb.facts()
        assert again.verify().ok


def test_a_full_disk_that_takes_no_commit_is_told_as_one(place: Path) -> None:
    kb = ze.open(place, create=True)
    with kb.change() as c:
        c.add_rules("\n".join(f"r{n}: q(X, Y) :- p(X, Y), X > {n} ." for n in range(300)))
        c.add_facts("p(1, 2) .")
    with no_file_longer_than(9_000), pytest.raises(ze.ZodiacError, match="make room") as caught:
        kb.flush()
    assert code(caught.value) == "D007"
    with kb.change() as c:
        c.add_facts("p(2, 3) .")
    kb.close()
    with ze.open(place) as again:
        assert again.facts() == kb.facts()
        assert len(again.rules) == 300


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Root may write everywhere: let the system see somebody who may not."""
    if os.geteuid():
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_may_not_be_written_is_refused_to_writers_only(farm: Path) -> None:
    with TemporaryDirectory() as open_to_all:
        store = Path(open_to_all) / "farm"
        shutil.copytree(farm, store)
        for path in (store.parent, store, *store.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with as_somebody_else():
            with ze.open(store, read_only=True) as kb:
                assert kb.version == 3
            with pytest.raises(ze.ZodiacError, match="cannot be written") as caught:
                ze.open(store)
            assert code(caught.value) == "D007"
            with pytest.raises(ze.ZodiacError) as caught:
                ze.open(store.parent / "another", create=True)
            assert code(caught.value) == "D007"
        for path in (store.parent, store, *store.rglob("*")):
            path.chmod(0o755)


def test_a_damaged_checkpoint_is_named_before_delta_breaks_on_it(farm: Path) -> None:
    with ze.open(farm) as kb:
        kb.vacuum(timedelta(0))
    (path,) = farm.rglob("*.checkpoint.parquet")
    whole = path.read_bytes()
    damaged = 0
    for at in range(4, len(whole), len(whole) // 40):
        data = whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
        path.write_bytes(data)
        try:
            pq.ParquetFile(io.BytesIO(data)).read().validate(full=True)
        except (pa.ArrowException, OSError, ValueError):
            damaged += 1
            with pytest.raises(ze.ZodiacError, match=f"{path.name} cannot be read: ") as caught:
                ze.open(farm, read_only=True)
            assert code(caught.value) == "D005"
            assert "\n" not in caught.value.diagnostics[0].message
    assert damaged


def test_what_delta_breaks_on_all_the_same_is_damage(farm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As the library raises it, for a checkpoint that is sound as a Parquet file and says nonsense.
    broken = type("PanicException", (BaseException,), {})

    def breaks(*_: object) -> None:
        raise broken("an executor has crashed")

    monkeypatch.setattr(FactTable, "_delta", breaks)
    # Delta is asked where its log does not give the files of the commit.
    monkeypatch.setattr(FactTable, "_replayed", lambda *_: {"others"})
    with pytest.raises(ze.ZodiacError, match="_delta_log cannot be read: an executor has crashed") as caught:
        ze.open(farm, read_only=True)
    assert code(caught.value) == "D005"


def test_a_checkpoint_that_says_nonsense_is_damage(farm: Path) -> None:
    with ze.open(farm) as kb:
        kb.vacuum(timedelta(0))
    (path,) = farm.rglob("*.checkpoint.parquet")
    pq.write_table(pa.table({"add": [1]}), path)
    with pytest.raises(ze.ZodiacError, match=f"{path.name} cannot be read: ") as caught:
        ze.open(farm, read_only=True)
    assert code(caught.value) == "D005"


@pytest.mark.parametrize("closed", ["farm", "farm/_wal", "farm/_delta_log", "farm/_zodiac.json", "."])
def test_a_store_that_may_not_be_read_is_told_as_one(farm: Path, closed: str) -> None:
    with TemporaryDirectory() as open_to_all:
        store = Path(open_to_all) / "farm"
        shutil.copytree(farm, store)
        for path in (store.parent, store, *store.rglob("*")):
            path.chmod(0o777)
        (store.parent / closed).chmod(0)
        with as_somebody_else():
            for read_only in (True, False):
                with pytest.raises(ze.ZodiacError, match="cannot be read: Permission denied") as caught:
                    ze.open(store, read_only=read_only)
                assert code(caught.value) == "D024"
            for make in (lambda: ze.open(store, create=True), lambda: ze.open().export_slice(store, "p(_)")):
                with pytest.raises(ze.ZodiacError) as caught:
                    make()
                assert code(caught.value) in {"D007", "D014", "D024"}
        (store.parent / closed).chmod(0o777)


@pytest.mark.parametrize("name", ["a" * 300, "circle", "circle/farm"])
def test_a_name_that_the_system_does_not_take_is_told_as_one(tmp_path: Path, name: str) -> None:
    (tmp_path / "circle").symlink_to("circle")
    for create, expected in ((True, "D007"), (False, "D024")):
        with pytest.raises(ze.ZodiacError) as caught:
            ze.open(tmp_path / name, create=create)
        assert code(caught.value) == expected


@given(data=st.data())
def test_whatever_the_log_holds_is_opened_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = _source(tmp_path_factory)
    store = tmp_path_factory.mktemp("fuzzed") / "farm"
    shutil.copytree(source, store)
    path = data.draw(st.sampled_from(sorted(one for one in store.rglob("*") if one.is_file())))
    old = path.read_bytes()
    start = data.draw(st.integers(0, len(old)))
    end = data.draw(st.integers(start, min(len(old), start + 40)))
    path.write_bytes(old[:start] + data.draw(st.binary(max_size=40)) + old[end:])
    with ze.open(source, read_only=True) as kb:
        facts = {kb.at(version).facts() for version in (2, 3)}
    try:
        with ze.open(store, read_only=True) as kb:
            assert kb.facts() in facts
    except ze.ZodiacError:
        pass
    shutil.rmtree(store)


def _source(factory: pytest.TempPathFactory) -> Path:
    place = factory.getbasetemp() / "source-of-fuzzing"
    if not place.exists():
        with ze.open(place, create=True) as kb:
            with kb.change() as c:
                c.add_rules("path(X, Y) :- edge(X, Y) .  path(X, Z) :- path(X, Y), edge(Y, Z) .")
            with kb.change() as c:
                c.add_facts("edge(a, b) .  edge(b, c) .")
        kb = ze.open(place)
        with kb.change() as c:
            c.add_facts("edge(c, d) .")
        abandon(kb)
    return place
