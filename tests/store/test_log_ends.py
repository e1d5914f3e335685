"""The end of a log: what a killed writer left is told from damage, to readers as to writers."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import abandon, code
from store.test_faults import last_log

if TYPE_CHECKING:
    from pathlib import Path


def test_a_whole_record_whose_end_mark_is_lost_is_not_left_out(logged: Path) -> None:
    path = last_log(logged)
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes(1))
    with ze.open(logged, read_only=True) as kb:
        assert kb.version == 5
        assert kb.recovered == ()
        assert kb.log()[-1].message == "from the log too"
    kb = ze.open(logged)
    assert (kb.version, kb.recovered) == (5, ())
    # The next record stands behind it.
    with kb.change("behind it") as c:
        c.add_facts("edge(n, m) .")
    abandon(kb)
    with ze.open(logged) as again:
        assert again.version == 6
        assert [one.version for one in again.log()] == [1, 2, 3, 4, 5, 6]
        assert again.verify().ok


def test_zeros_that_are_no_blocks_never_hide_a_version(logged: Path) -> None:
    path = last_log(logged)
    data = path.read_bytes()
    versions: list[int] = []
    block = (len(data) - 1) // 512 * 512
    for lost in range(2, len(data) - block, 3):
        if not data[block:-lost].strip(b"\0"):
            # The whole block is zeros now.
            break
        path.write_bytes(data[:-lost] + bytes(lost))
        with suppress(ze.ZodiacError), ze.open(logged, read_only=True) as kb:
            versions.append(kb.version)
    # Zeros in place of zeros and of the end mark are not missed; with all others it is refused.
    assert set(versions) <= {5}
    assert len(versions) < 4
    for read_only in (True, False):
        with pytest.raises(ze.ZodiacError, match="its checksum does not fit") as caught:
            ze.open(logged, read_only=read_only)
        assert code(caught.value) == "D004"
    # The writer that was refused has cut nothing off.
    assert len(path.read_bytes()) == len(data)


def test_a_reader_waits_a_moment_for_a_writer_at_work(logged: Path) -> None:
    path = last_log(logged)
    data = path.read_bytes()
    path.write_bytes(data[:-30])
    # The rest comes while the reader looks; it looks for 50 ms, so it is given several chances.
    for _ in range(20):
        path.write_bytes(data[:-30])
        rest = threading.Timer(0.02, lambda: path.write_bytes(data))
        rest.start()
        with ze.open(logged, read_only=True) as kb:
            rest.join()
            seen = kb.version, kb.recovered
        if seen == (5, ()):
            return
    pytest.fail(f"the reader never saw the record that was completed meanwhile: {seen}")


@pytest.mark.parametrize(("missing", "sound"), [(1, 2), (20, 2), (200, 2), (900, 1)])
def test_a_record_that_the_table_has_is_damaged_if_it_is_short(farm: Path, missing: int, sound: int) -> None:
    path = last_log(farm)
    data = path.read_bytes()
    path.write_bytes(data[:-missing])
    for read_only in (True, False):
        with pytest.raises(
            ze.ZodiacError, match=f"is damaged: it ends too early(?s:.*)--at {sound}"
        ) as caught:
            ze.open(farm, read_only=read_only)
        assert code(caught.value) == "D004"
    # The table has all facts, and the records before are sound.
    for version in (3, *range(sound + 1)):
        with ze.open(farm, at=version) as kb:
            assert kb.verify().ok
    path.write_bytes(data)
    with ze.open(farm) as kb:
        with kb.change("after") as c:
            c.add_facts("edge(n, m) .")
        assert [one.version for one in kb.log()] == [1, 2, 3, 4]
