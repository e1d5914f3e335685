"""Odd values on the command line: each is one message that says what to do, never an internal error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

LATIN = b"caf\xe9"


@pytest.fixture
def farm(zodiac: Zodiac, save: Save) -> str:
    """A store with one version."""
    save("reading.csv", "<wt1>,60\n")
    save("new.csv", "<wt2>,70\n")
    assert zodiac("init", "farm", "--facts", "reading.csv").code == 0
    return "farm"


def process(folder: Path, *args: bytes | str, **environment: bytes) -> tuple[int, str, str]:
    """Run a command in a process of its own, with bytes as a terminal may send them."""
    done = subprocess.run(
        [sys.executable, "-m", "zodiacedge", *args],
        cwd=folder,
        env={**os.environb, **{name.encode(): value for name, value in environment.items()}},
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_message_that_is_not_utf_8_is_refused(zodiac: Zodiac, folder: Path, farm: str) -> None:
    code, out, err = process(folder, "apply", farm, "--add-facts", "reading=new.csv", "-m", LATIN, "--json")
    assert code == 1
    assert err.startswith("error U020: the message 'caf\\\\xe9' is not UTF-8")
    assert json.loads(out)["diagnostics"][0]["code"] == "U020"
    assert zodiac("log", farm, "--json").document["versions"]
    assert zodiac("query", farm, "?- reading(wt2, V) .").out.endswith("0 rows\n")


def test_an_account_whose_name_is_not_utf_8_may_write(zodiac: Zodiac, folder: Path, farm: str) -> None:
    code, _, err = process(folder, "apply", farm, "--add-facts", "reading=new.csv", LOGNAME=LATIN)
    assert (code, err) == (0, "")
    assert "caf\\xe9" in zodiac("log", farm).out


def test_a_store_whose_name_is_not_utf_8_is_refused(folder: Path) -> None:
    code, out, err = process(folder, "init", LATIN, "--json")
    assert code == 1
    assert err.startswith("error D002: ")
    assert "caf\\xe9 is no name for a store: it is not UTF-8" in err
    assert json.loads(out)["diagnostics"][0]["code"] == "D002"
    assert not list(folder.iterdir())


@pytest.mark.parametrize("days", ["800000", "nan", "inf", "-1", "-inf"])
def test_versions_are_kept_for_a_time_that_can_be_counted(zodiac: Zodiac, farm: str, days: str) -> None:
    done = zodiac("vacuum", farm, "--keep-days", days)
    assert done.code == 2
    assert "--keep-days" in done.err
    assert zodiac("vacuum", farm, "--keep-days", "36500").code == 0


@pytest.mark.parametrize("version", ["99", "2", "-1"])
def test_nobody_goes_back_to_a_version_that_is_not_there(zodiac: Zodiac, farm: str, version: str) -> None:
    done = zodiac("rollback", farm, "--", version)
    assert done.code == 1
    assert done.err.startswith(f"error D008: there is no version {version}")
    assert zodiac("stats", farm, "--json").document["version"] == 1


@pytest.mark.parametrize("landing", [".", "farm", "farm/landing", "link"])
def test_a_stream_does_not_follow_the_files_of_its_store(
    zodiac: Zodiac, folder: Path, farm: str, landing: str
) -> None:
    (folder / "farm" / "landing").mkdir()
    (folder / "link").symlink_to(folder)
    done = zodiac("stream", farm, "--from", landing, "--once", "--json")
    assert done.code == 1
    assert done.err.startswith(f"error D023: files cannot arrive in {landing}: ")
    assert done.document["errors"] == 1


def test_a_stream_does_not_take_its_own_bad_lines(zodiac: Zodiac, folder: Path, farm: str) -> None:
    (folder / "landing").mkdir()
    done = zodiac("stream", farm, "--from", "landing", "--once", "--quarantine", "landing/bad")
    assert done.code == 1
    assert done.err.startswith("error D023: files cannot arrive in landing: the folder for bad lines")


@pytest.mark.parametrize(
    "words",
    [
        ("run", ""),
        ("check", ""),
        ("fmt", ""),
        ("run", "farm.rules", "--facts", ""),
        ("run", "farm.rules", "--out", ""),
        ("apply", "farm.zodiac", "--sync", ""),
        ("apply", "farm.zodiac", "--add-facts", ""),
        ("export", "farm.zodiac", "--out", ""),
        ("graph", "farm.rules", "--out", ""),
    ],
)
def test_an_empty_name_is_not_the_current_folder(zodiac: Zodiac, save: Save, words: tuple[str, ...]) -> None:
    save("farm.rules", "p(X) :- q(X) .")
    done = zodiac(*words)
    assert done.code == 2
    assert "the name is empty" in done.err


@pytest.mark.parametrize("words", [("run", "farm.rules"), ("graph", "farm.rules"), ("export", "farm.zodiac")])
def test_files_are_not_written_to_a_uri(
    zodiac: Zodiac, save: Save, folder: Path, words: tuple[str, ...]
) -> None:
    save("farm.rules", "p(X) :- q(X) .")
    done = zodiac(*words, "--out", "s3://bucket/out.svg")
    assert done.code == 2
    assert "is a URI" in done.err
    assert not (folder / "s3:").exists()
