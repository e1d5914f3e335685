"""`zodiac init` that failed or was killed: the next one makes what was wanted."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

ROWS = 60_000


@pytest.mark.parametrize(
    "first",
    [
        ("--facts", "nosuch.csv"),
        ("--facts", "damaged.parquet"),
        ("--facts", "bad.csv", "--strict"),
        ("--rules", "calls.rules", "--facts", "reading.csv"),
        (),
    ],
    ids=["missing", "damaged", "strict", "unregistered", "empty"],
)
def test_what_init_could_not_finish_is_taken_over(zodiac: Zodiac, save: Save, first: tuple[str, ...]) -> None:
    save("reading.csv", "<wt1>,60\n")
    save("damaged.parquet", "PAR1 and no more")
    save("bad.csv", '<wt1>,60\n"<wt1>\n')
    save("calls.rules", "p(X, Y) :- reading(X, V), Y := func:odd(V) .")
    assert zodiac("init", "farm", *first).code == (1 if first else 0)
    done = zodiac("init", "farm", "--facts", "reading.csv")
    assert (done.code, done.err) == (0, "")
    assert done.out == "version 1: 0 rules, 1 explicit fact, 0 derived facts\n"
    done = zodiac("init", "farm", "--facts", "reading.csv")
    assert done.code == 1
    assert "D014" in done.err


def test_a_store_whose_log_was_vacuumed_is_not_taken_over(zodiac: Zodiac, save: Save) -> None:
    save("reading.csv", "<wt1>,60\n")
    assert zodiac("init", "farm", "--facts", "reading.csv").code == 0
    assert zodiac("vacuum", "farm", "--keep-days", "0").code == 0
    assert "D014" in zodiac("init", "farm", "--facts", "reading.csv").err


def test_a_store_that_somebody_is_making_is_left_to_them(zodiac: Zodiac, save: Save) -> None:
    save("reading.csv", "<wt1>,60\n")
    with ze.open("farm", create=True):
        done = zodiac("init", "farm", "--facts", "reading.csv")
    assert done.code == 3
    assert "D003" in done.err


# A command for which the system takes no longer files than so many bytes, as a full disk does.
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
from zodiacedge.cli import main
main()
"""


@pytest.mark.parametrize("room", [0, 500, 20_000])
def test_what_a_full_disk_did_not_take_is_taken_over(zodiac: Zodiac, folder: Path, room: int) -> None:
    (folder / "reading.csv").write_text("".join(f"<wt{n}>,{n}\n" for n in range(ROWS // 3)))
    wanted = ("init", "farm", "--facts", "reading.csv")
    done = subprocess.run(
        [sys.executable, "-B", "-c", LIMITED, str(room), *wanted],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "cannot be written: File too large\n  = make room on the disk" in done.stderr
    assert done.stderr.startswith("error D007: farm")
    done_again = zodiac(*wanted)
    assert (done_again.code, done_again.err) == (0, "")
    assert done_again.out == f"version 1: 0 rules, {ROWS // 3:,} explicit facts, 0 derived facts\n"


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.2])
def test_what_a_killed_init_leaves_is_taken_over_at_any_time(
    zodiac: Zodiac, folder: Path, seconds: float
) -> None:
    (folder / "reading.csv").write_text("".join(f"<wt{n}>,{n}\n" for n in range(ROWS)))
    with subprocess.Popen(
        [sys.executable, "-m", "zodiacedge", "init", "farm", "--facts", "reading.csv"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    ) as process:
        while not (folder / "farm" / "_zodiac.json").exists():
            assert process.poll() is None
            time.sleep(0.001)
        time.sleep(seconds)
        process.kill()
    with ze.open("farm", read_only=True) as kb:
        finished = kb.version == 1
    done = zodiac("init", "farm", "--facts", "reading.csv")
    if finished:
        # Its change was on disk, and only closing was left.
        assert "D014" in done.err
    else:
        assert done.code == 0
    with ze.open("farm") as kb:
        assert (kb.version, sum(kb.explicit_counts().values())) == (1, ROWS)
