"""Files that arrive become changes, each batch once, whoever is killed in between."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import zodiacedge as ze
from spark.conftest import CLUSTER
from spark.streamer import MOMENTS
from store.conftest import bucket, code, endpoint
from zodiacedge.cli.app import zodiac
from zodiacedge.errors import LoadProblem, StoreProblem, UsageProblem
from zodiacedge.stream import Applied, Reading, Stream

if TYPE_CHECKING:
    from zodiacedge.engine.spark.engine import SparkEngine

__all__ = ["bucket", "endpoint"]
STREAMER = Path(__file__).with_name("streamer.py")


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """Where files arrive."""
    folder = tmp_path / "landing place {1}"
    folder.mkdir()
    return folder


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    """A store with a rule."""
    place = tmp_path / "farm.zodiac"
    with ze.open(place, create=True) as kb, kb.change("rules") as change:
        change.add_rules("hot: hot(T) :- reading(T, V), V > 30 .")
    return place


def follow(kb: ze.KnowledgeBase, folder: Path, reading: Reading | None = None) -> list[Applied]:
    """Take what is there; return what became of it."""
    found: list[Applied] = []
    Stream(kb, folder, reading, found.append, CLUSTER).follow()
    return found


def names(kb: ze.KnowledgeBase, query: str) -> list[str]:
    """Return the names that a query finds."""
    return [name.value for (name,) in kb.query(query) if isinstance(name, ze.IRI)]


def ours(words: str) -> list[str]:
    """Return what was told behind Java's own words at its start; there are no others of its."""
    starting = ("WARNING: ", "Using Spark's ", "Setting ", "To adjust logging level")
    lines = [line for line in words.splitlines() if not line.startswith(starting)]
    return [line for line in lines if " WARN " not in line]


def reading(turbine: int, value: int) -> str:
    """Return a line of N-Triples."""
    number = f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return f"<wt{turbine}> <reading> {number} .\n"


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_every_format_arrives_once(engine: str, spark: SparkEngine, farm: Path, landing: Path) -> None:
    assert spark.jobs.cores == 2
    (landing / "ä b%20c.nt").write_text(reading(1, 40) + "no triple\n" + reading(2, 20))
    (landing / "day=1").mkdir()
    (landing / "day=1" / "reading.csv").write_text("<wt3>,50\n")
    pq.write_table(pa.table({"t": ["<wt4>"], "v": [60]}), landing / "reading.parquet")
    (landing / "any.jsonl").write_text('{"predicate": "reading", "args": ["<wt5>", 70]}\n')
    (landing / "_under_way.nt").write_text(reading(8, 99))
    (landing / "notes.txt").write_text("not for us")
    with ze.open(farm, engine=engine) as kb:
        (first,) = follow(kb, landing)
        assert (first.number, first.files, first.again) == (0, 4, False)
        assert (first.version, first.facts_added, first.bad_lines) == (2, 5, 1)
        assert names(kb, "?- hot(T) .") == ["wt1", "wt3", "wt4", "wt5"]
        assert follow(kb, landing) == []
        (landing / "later.nt.gz").write_bytes(b"")
        (landing / "more.nt").write_text(reading(6, 80))
        (second,) = follow(kb, landing, Reading(format="nt", most_files=10))
        assert (second.number, second.version, second.facts_added) == (1, 3, 1)
        assert [(entry.batch, bool(entry.stream)) for entry in kb.log()] == [
            (-1, False),
            (0, True),
            (1, True),
        ]
        assert kb.verify("embedded").ok


def test_rows_of_tables_state_the_relation_that_is_named(
    spark: SparkEngine, farm: Path, landing: Path
) -> None:
    assert spark.jobs.cores == 2
    for number in range(3):
        (landing / f"2024-06-0{number + 1}.csv").write_text(f"turbine,value\n<wt{number}>,{number * 30}\n")
    with ze.open(farm) as kb:
        found = follow(kb, landing, Reading(relation="reading", header=True, most_files=1))
        assert [(one.number, one.files, one.facts_added) for one in found] == [(n, 1, 1) for n in range(3)]
        assert kb.explicit_counts() == {"reading": 3}


def test_bad_lines_of_a_batch_have_a_folder_of_their_own(
    spark: SparkEngine, farm: Path, landing: Path, tmp_path: Path
) -> None:
    assert spark.jobs.cores == 2
    bad = tmp_path / "bad"
    (landing / "a.nt").write_text("one\ntwo\n")
    with ze.open(farm) as kb:
        (first,) = follow(kb, landing, Reading(quarantine=bad))
        assert (first.facts_added, first.bad_lines) == (0, 2)
    (folder,) = bad.iterdir()
    assert folder.name.endswith("-000000")
    (file,) = folder.iterdir()
    assert [json.loads(line)["line"] for line in file.read_text().splitlines()] == [1, 2]


def test_a_batch_that_cannot_be_taken_ends_the_stream_and_comes_again(
    spark: SparkEngine, farm: Path, landing: Path
) -> None:
    assert spark.jobs.cores == 2
    (landing / "a.nt.gz").write_bytes(b"no gzip at all")
    with ze.open(farm) as kb:
        with pytest.raises(LoadProblem):
            follow(kb, landing)
        assert kb.version == 1
        with pytest.raises(LoadProblem):
            follow(kb, landing)
        assert kb.streams == {}
        # Whoever takes the file away lets the stream go on.
        (landing / "a.nt.gz").unlink()
        (landing / "b.nt").write_text(reading(1, 40))
        without, taken = follow(kb, landing)
        assert (without.number, without.version, without.facts_added) == (0, 2, 0)
        assert without.gone == (str((landing / "a.nt.gz").resolve()),)
        assert (taken.number, taken.version, taken.facts_added, taken.gone) == (1, 3, 1, ())


def test_a_file_that_is_taken_away_before_its_batch_comes_is_told(
    spark: SparkEngine, farm: Path, landing: Path
) -> None:
    assert spark.jobs.cores == 2
    for name in ("a.nt", "b c%20ü.nt"):
        (landing / name).write_text(reading(1, 40))
    (landing / "broken.nt.gz").write_bytes(b"no gzip at all")
    with ze.open(farm) as kb:
        with pytest.raises(LoadProblem):
            follow(kb, landing)
        # They were noted as a batch, and one of them goes unread.
        (landing / "b c%20ü.nt").unlink()
        (landing / "broken.nt.gz").unlink()
    done = CliRunner().invoke(zodiac, ["stream", str(farm), "--from", str(landing), "--once"])
    assert done.exit_code == 0, done.output
    assert "batch 0: 1 file, +1 fact, 2 files gone, version 2" in done.output
    assert "warning W016:" in done.stderr
    assert str(landing / "b c%20ü.nt") in done.stderr.replace("\n", "")
    with ze.open(farm, read_only=True) as kb:
        assert kb.log()[-1].message == f"batch 0 of {landing}, without b c%20ü.nt, broken.nt.gz"


def test_many_batches_are_noted_together_and_found_again(
    spark: SparkEngine, farm: Path, landing: Path
) -> None:
    assert spark.jobs.cores == 2
    with ze.open(farm) as kb:
        for number in range(12):
            (landing / f"{number}.nt").write_text(reading(number, 40))
            (taken,) = follow(kb, landing)
            assert (taken.number, taken.gone) == (number, ())
        assert list(farm.rglob("*.compact"))


def test_a_stream_into_an_object_store_notes_elsewhere_what_it_took(
    spark: SparkEngine, bucket: str, landing: Path, tmp_path: Path
) -> None:
    assert spark.jobs.cores == 2
    (landing / "a.nt").write_text(reading(1, 40))
    with ze.open(f"{bucket}/farm", create=True) as kb:
        with pytest.raises(StoreProblem) as found:
            Stream(kb, landing)
        assert code(found.value) == "D021"
        noted = Reading(checkpoint=tmp_path / "noted")
        (taken,) = follow(kb, landing, noted)
        assert (taken.version, taken.facts_added) == (1, 1)
    with ze.open(f"{bucket}/farm") as kb, ze.open(f"{bucket}/other", create=True) as other:
        assert follow(kb, landing, noted) == []
        # Another store has notes of its own in the same folder.
        assert len(follow(other, landing, noted)) == 1


def test_what_is_no_folder_or_no_store_is_refused(spark: SparkEngine, farm: Path, tmp_path: Path) -> None:
    assert spark.jobs.cores == 2
    with ze.open(farm) as kb:
        with pytest.raises(StoreProblem) as found:
            Stream(kb, tmp_path / "nowhere")
        assert code(found.value) == "D017"
    with pytest.raises(UsageProblem):
        Stream(ze.open(), tmp_path)


def test_the_command_line_takes_what_is_there(spark: SparkEngine, farm: Path, landing: Path) -> None:
    assert spark.jobs.cores == 2
    (landing / "a.nt").write_text(reading(1, 40) + "no triple\n")
    words = ["stream", str(farm), "--from", str(landing), "--once"]
    done = CliRunner().invoke(zodiac, words)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("batch 0: 1 file, +1 fact, 1 bad line skipped, version 2, ")
    assert done.stdout.endswith("version 2: 1 rule, 1 explicit fact, 1 derived fact\n")
    (landing / "b.nt").write_text(reading(2, 50))
    done = CliRunner().invoke(zodiac, [*words, "--json", "--engine", "spark"])
    document = json.loads(done.stdout)
    (batch,) = document["batches"]
    assert (document["version"], batch["number"], batch["facts_added"]) == (3, 1, 1)
    assert CliRunner().invoke(zodiac, [*words, "--trigger", "2"]).exit_code == 2


def test_a_problem_is_told_in_one_message(farm: Path, landing: Path) -> None:
    (landing / "a.nt.gz").write_bytes(b"no gzip at all")
    done = subprocess.run(
        [sys.executable, "-m", "zodiacedge", "stream", str(farm), "--from", str(landing), "--once"],
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
    words = ["stream", str(farm), "--from", str(landing), "--trigger", "0.2", "--master", "local[1]"]
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
