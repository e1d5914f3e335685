"""A stream in a process of its own: its messages, Ctrl-C, and what is left when it is killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import zodiacedge as ze
from processes.streamer import MOMENTS
from spark.arriving import farm, landing, names, reading

__all__ = ["farm", "landing"]
STREAMER = Path(__file__).with_name("streamer.py")


def ours(words: str) -> list[str]:
    """Return what was told behind Java's own words at its start; there are no others of its."""
    starting = ("WARNING: ", "Using Spark's ", "Setting ", "To adjust logging level")
    lines = [line for line in words.splitlines() if not line.startswith(starting)]
    return [line for line in lines if " WARN " not in line]


def test_a_problem_is_told_in_one_message(farm: Path, landing: Path) -> None:
    (landing / "a.nt.gz").write_bytes(b"no gzip at all")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "zodiacedge", "stream", str(farm)),
            *("--from", str(landing), "--once", "--engine", "spark"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == "version 1: 1 rule, 0 explicit facts, 0 derived facts\n"
    told = ours(done.stderr)
    assert len(told) == 2
    assert told[0].startswith("error I0")


def test_killed_at_every_moment_nothing_is_lost_and_nothing_is_in_twice(farm: Path, landing: Path) -> None:
    told = []
    for number, moment in enumerate(MOMENTS):
        (landing / f"{number}.nt").write_text(reading(number, 20 + number * 10))
        done = subprocess.run(
            [sys.executable, "-W", "error", str(STREAMER), str(farm), str(landing), moment],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == (0 if moment == "never" else -signal.SIGKILL), done.stderr
        told.append(done.stdout.split("\n")[:-1])
        with ze.open(farm, read_only=True) as kb:
            assert kb.verify("reference").ok
    assert told == [[], [], ["again 0", "taken 1"], ["again 1", "taken 2"]]
    with ze.open(farm) as kb:
        entries = [(entry.batch, entry.facts_added) for entry in kb.log()]
        # The second run died with the first batch in the log, before it came to the file that had come since.
        assert entries == [(-1, 0), (0, 1), (1, 2), (2, 1)]
        assert kb.explicit_counts() == {"reading": 4}
        assert names(kb, "?- hot(T) .") == ["wt2", "wt3"]
        assert kb.streams == {kb.log()[-1].stream: 2}


def test_spark_and_the_folder_stream_take_turns_and_kills_and_no_file_is_in_twice(
    farm: Path, landing: Path
) -> None:
    runs = [(finder, moment) for moment in MOMENTS for finder in ("embedded", "spark")]
    for number, (finder, moment) in enumerate([*runs, ("embedded", "never"), ("spark", "never")]):
        (landing / f"{number}.nt").write_text(reading(number, number))
        done = subprocess.run(
            [sys.executable, "-W", "error", str(STREAMER), str(farm), str(landing), moment, finder],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == (0 if moment == "never" else -signal.SIGKILL), done.stderr
        with ze.open(farm, read_only=True) as kb:
            assert sum(entry.facts_added for entry in kb.log()) == sum(kb.explicit_counts().values())
            # A file that is taken twice would be loaded twice, with nothing to add.
            assert all(entry.facts_added for entry in kb.log()[1:])
    with ze.open(farm, read_only=True) as kb:
        assert kb.explicit_counts() == {"reading": len(runs) + 2}
        assert len(kb.streams) == 2
        assert kb.verify("reference").ok


@pytest.mark.soak
def test_killed_at_any_moment_nothing_is_lost_and_nothing_is_in_twice(farm: Path, landing: Path) -> None:
    chance = random.Random(7)
    taken: list[int] = []
    for run in range(12):
        for number in range(3):
            (landing / f"{run}-{number}.nt").write_text(reading(run * 3 + number, run))
        with subprocess.Popen(
            [sys.executable, str(STREAMER), str(farm), str(landing), "one by one"],
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            # From the first batch on: starting takes longer than all of them.
            first = process.stdout.readline()
            time.sleep(chance.uniform(0, 1.5))
            process.kill()
            said = [first, *process.stdout.read().splitlines(keepends=True)]
        taken += [int(line.split()[1]) for line in said if line.startswith("taken") and line.endswith("\n")]
        with ze.open(farm, read_only=True) as kb:
            batches = [entry.batch for entry in kb.log()[1:]]
            assert batches == list(range(len(batches)))
            assert set(taken) <= set(batches)
    subprocess.run([sys.executable, str(STREAMER), str(farm), str(landing), "one by one"], check=True)
    with ze.open(farm) as kb:
        # Files that Spark had found before it was killed may come in one batch with the next.
        added = [entry.facts_added for entry in kb.log()[1:]]
        assert kb.explicit_counts() == {"reading": 36}
        assert (sum(added), min(added)) == (36, 1)
        assert kb.verify("reference").ok


def test_ctrl_c_ends_a_stream_that_goes_on(farm: Path, landing: Path) -> None:
    (landing / "a.nt").write_text(reading(1, 40))
    words = ["stream", str(farm), "--from", str(landing), "--trigger", "0.2"]
    words += ["--engine", "spark", "--master", "local[1]"]
    with subprocess.Popen(
        [sys.executable, "-m", "zodiacedge", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A process that was started in the background ignores it, and so would this one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    ) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline(), process.stdout.readline()]
            (landing / "b.nt").write_text(reading(2, 50))
            lines.append(process.stdout.readline())
            process.send_signal(signal.SIGINT)
            rest, problems = process.communicate(timeout=120)
        finally:
            process.kill()
    assert [line.split(",")[0] for line in lines[1:]] == ["batch 0: 1 file", "batch 1: 1 file"]
    assert rest == "version 3: 1 rule, 2 explicit facts, 2 derived facts\n"
    assert ours(problems) == ["zodiac: interrupted"]
    assert process.returncode == 130
    # It was closed: the table has all of it, and the lock is free.
    assert time.time() - max(path.stat().st_mtime for path in (farm / "_delta_log").glob("*.json")) < 60
    with ze.open(farm) as kb:
        assert kb.version == 3
