"""A log file that cannot be begun, and disks that fail: what is said of a change is what became of it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import abandon, code
from store.test_faults import no_file_longer_than

if TYPE_CHECKING:
    from pathlib import Path


# Of the 32 bytes of a header: none, some, and all of them but none of the record.
@pytest.mark.parametrize("room", [0, 10, 32, 40])
def test_a_file_that_could_not_be_begun_is_begun_again(farm: Path, room: int) -> None:
    kb = ze.open(farm)
    for _ in range(2):
        with (
            no_file_longer_than(room),
            pytest.raises(ze.ZodiacError, match="nothing was changed") as caught,
            kb.change() as c,
        ):
            c.add_facts("edge(f, g) .")
        assert code(caught.value) == "D007"
        assert kb.version == 3
    with kb.change("now there is room") as c:
        c.add_facts("edge(f, g) .")
    abandon(kb)
    with ze.open(farm) as again:
        assert again.version == 4
        assert again.recovered == ()
        assert again.facts() == kb.facts()
        assert again.log()[-1].message == "now there is room"


def test_nothing_is_left_of_a_file_that_could_not_be_begun(farm: Path) -> None:
    before = sorted((farm / "_wal").iterdir())
    kb = ze.open(farm)
    with no_file_longer_than(10), pytest.raises(ze.ZodiacError), kb.change() as c:
        c.add_facts("edge(f, g) .")
    kb.close()
    assert sorted((farm / "_wal").iterdir()) == before
    with ze.open(farm, read_only=True) as again:
        assert again.version == 3
        assert again.recovered == ()


def test_a_file_whose_name_is_not_on_disk_takes_no_record(
    farm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = ze.open(farm)
    really = os.fsync
    folders = []

    def fails(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            folders.append(handle)
            if len(folders) == 1:
                raise OSError(5, "Input/output error")
        really(handle)

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(ze.ZodiacError, match="nothing was changed"), kb.change() as c:
        c.add_facts("edge(f, g) .")
    with kb.change() as c:
        c.add_facts("edge(f, g) .")
    # The disk was asked again for the name before the record was acknowledged.
    assert len(folders) == 2
    abandon(kb)


def test_a_full_disk_behind_a_change_does_not_deny_it(logged: Path) -> None:
    kb = ze.open(logged)
    with kb.change("in the log") as c:
        c.add_facts([("p", n) for n in range(200)])
    with no_file_longer_than(600), pytest.raises(ze.ZodiacError, match="make room") as caught:
        kb.close()
    assert code(caught.value) == "D007"
    assert "nothing was changed" not in str(caught.value)
    assert "all changes are in the log" in str(caught.value)
    with ze.open(logged, read_only=True) as again:
        assert again.log()[-1].message == "in the log"


def test_a_command_whose_change_is_in_does_not_deny_it(place: Path, tmp_path: Path) -> None:
    with ze.open(place, create=True) as kb, kb.change() as c:
        c.add_facts([("reading", f"sensor {n * 7919 % 10007}", n) for n in range(5000)])
    (tmp_path / "one.csv").write_text("x,1\n")
    # A shell counts in kilobytes: the record of the change fits, the file of all readings does not.
    shell = shutil.which("bash") or "bash"
    command = f"ulimit -f 8 && exec {sys.executable} -m zodiacedge apply {place} --add-facts reading=one.csv"
    done = subprocess.run(
        [shell, "-c", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "error D007" in done.stderr
    assert "nothing was changed" not in done.stderr
    assert "none is to be made again" in done.stderr
    with ze.open(place, read_only=True) as kb:
        assert kb.version == 2


def test_a_change_that_may_be_on_disk_is_not_called_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = ze.open(place, create=True)
    with kb.change() as c:
        c.add_facts("p(1) .")

    def fails(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(ze.ZodiacError, match="this process has the change") as caught, kb.change() as c:
            c.add_facts("p(2) .")
    assert code(caught.value) == "D007"
    assert "nothing was changed" not in str(caught.value)
    assert kb.query("?- p(2) .")
    with pytest.raises(ze.ZodiacError, match="takes no more changes"), kb.change() as c:
        c.add_facts("p(3) .")
    with pytest.raises(ze.ZodiacError, match="is seen when the store is opened again"):
        kb.close()
    with ze.open(place) as again:
        assert again.version in {1, 2}
        assert again.facts() == (kb.facts() if again.version == 2 else kb.at(1).facts())
