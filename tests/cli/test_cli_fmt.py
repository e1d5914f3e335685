"""`zodiac fmt`: files, standard input, --check and --diff."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

UNTIDY = "# Why.\nr1: p(X):-q( X ).  q(a).\n"
TIDY = "# Why.\nr1: p(X) :- q(X) .\nq(a) .\n"


@pytest.fixture(autouse=True)
def files(save: Save) -> None:
    """Two files, one of them as it should be."""
    save("rules/untidy.rules", UNTIDY)
    save("rules/tidy.rules", TIDY)


def test_files_are_written_where_they_change(zodiac: Zodiac) -> None:
    before = Path("rules/tidy.rules").stat().st_mtime_ns
    done = zodiac("fmt", "rules")
    assert (done.code, done.out) == (0, "formatted rules/untidy.rules\n2 files, 1 changed\n")
    assert Path("rules/untidy.rules").read_text() == TIDY
    assert Path("rules/tidy.rules").stat().st_mtime_ns == before
    assert zodiac("fmt", "rules").out == "2 files, 0 changed\n"


def test_check_writes_nothing_and_fails(zodiac: Zodiac) -> None:
    done = zodiac("fmt", "rules", "--check")
    assert (done.code, done.out) == (1, "would change rules/untidy.rules\n2 files, 1 would change\n")
    assert Path("rules/untidy.rules").read_text() == UNTIDY
    assert zodiac("fmt", "rules/tidy.rules", "--check").code == 0


def test_diff_writes_nothing(zodiac: Zodiac) -> None:
    done = zodiac("fmt", "rules", "--diff")
    assert done.code == 0
    assert done.out == (
        "--- rules/untidy.rules\n+++ rules/untidy.rules (formatted)\n@@ -1,2 +1,3 @@\n # Why.\n"
        "-r1: p(X):-q( X ).  q(a).\n+r1: p(X) :- q(X) .\n+q(a) .\n"
    )
    assert Path("rules/untidy.rules").read_text() == UNTIDY
    assert zodiac("fmt", "rules", "--diff", "--check").code == 1


def test_machines_get_names(zodiac: Zodiac) -> None:
    assert zodiac("fmt", "rules", "--check", "--json").document == {
        "files": 2,
        "changed": ["rules/untidy.rules"],
    }


def test_no_file_is_written_if_one_has_an_error(zodiac: Zodiac, save: Save) -> None:
    save("rules/wrong.rules", "p(a) .\nq(X .\n")
    done = zodiac("fmt", "rules")
    assert (done.code, done.out) == (1, "")
    assert "rules/wrong.rules:2:5: error L001" in done.err
    assert Path("rules/untidy.rules").read_text() == UNTIDY


def test_standard_input_is_formatted_to_standard_output(folder: Path) -> None:
    command = [sys.executable, "-m", "zodiacedge", "fmt", "-"]
    done = subprocess.run(command, input=UNTIDY, cwd=folder, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (TIDY, "")


def test_standard_input_stands_alone(zodiac: Zodiac) -> None:
    done = zodiac("fmt", "-", "rules")
    assert done.code == 2
    assert "give it alone" in done.err


def test_a_file_is_replaced_behind_its_link_and_keeps_its_mode(zodiac: Zodiac) -> None:
    file, link = Path("rules/untidy.rules"), Path("link.rules")
    file.chmod(0o640)
    link.symlink_to(file)
    before = file.stat().st_ino
    assert zodiac("fmt", "link.rules").out == "formatted link.rules\n1 file, 1 changed\n"
    assert link.is_symlink()
    assert file.read_text() == TIDY
    assert file.stat().st_mode & 0o777 == 0o640
    assert file.stat().st_ino != before
    assert sorted(path.name for path in Path("rules").iterdir()) == ["tidy.rules", "untidy.rules"]


def test_a_failure_leaves_the_file_as_it_was(zodiac: Zodiac, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), handle)

    monkeypatch.setattr(os, "fsync", full)
    done = zodiac("fmt", "rules")
    assert (done.code, done.out) == (1, "")
    assert "error U005: rules/untidy.rules cannot be written: No space left on device" in done.err
    assert Path("rules/untidy.rules").read_text() == UNTIDY
    assert sorted(path.name for path in Path("rules").iterdir()) == ["tidy.rules", "untidy.rules"]


@pytest.fixture
def locked() -> None:
    """The file that should change may not be written."""
    Path("rules/untidy.rules").chmod(0o444)


@pytest.mark.usefixtures("locked", "ordinary_user")
def test_a_file_that_cannot_be_written(zodiac: Zodiac) -> None:
    done = zodiac("fmt", "rules/untidy.rules")
    assert (done.code, done.out) == (1, "")
    assert "error U005: rules/untidy.rules cannot be written: Permission denied" in done.err
    assert "check its rights" in done.err
