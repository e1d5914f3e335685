"""Files that arrive become changes without Spark, each once, wherever the process is killed."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import zodiacedge as ze
from processes.streamer import MOMENTS
from spark.arriving import farm, landing, names, reading
from store.conftest import code
from zodiacedge.pipeline.file_journal import FileJournal
from zodiacedge.pipeline.stream import Applied, FileSelection, Stream

__all__ = ["farm", "landing"]
STREAMER = Path(__file__).parents[1] / "processes" / "streamer.py"


def follow(kb: ze.KnowledgeBase, folder: Path, selection: FileSelection | None = None) -> list[Applied]:
    """Take what is there; return what became of it."""
    found: list[Applied] = []
    Stream(kb, folder, selection, found.append).follow()
    return found


def journal(farm: Path) -> Path:
    (path,) = (farm / "_streams").glob("*.jsonl")
    return path


def test_files_of_all_names_arrive_once(farm: Path, landing: Path) -> None:
    (landing / "ä b%20c.nt").write_text(reading(1, 40) + "no triple\n" + reading(2, 20))
    (landing / "day=1").mkdir()
    (landing / "day=1" / "reading.csv").write_text("<wt3>,50\n")
    (landing / "any.jsonl").write_text('{"predicate": "reading", "args": ["<wt5>", 70]}\n')
    (landing / "SHOUTED.NT").write_text(reading(7, 10))
    (landing / "small.nt.gz").write_bytes(gzip.compress(reading(6, 90).encode()))
    (landing / "_under_way.nt").write_text(reading(8, 99))
    (landing / ".hidden").mkdir()
    (landing / ".hidden" / "a.nt").write_text(reading(8, 99))
    (landing / "notes.txt").write_text("not for us")
    with ze.open(farm) as kb:
        (first,) = follow(kb, landing)
        assert (first.number, first.files, first.again) == (0, 5, False)
        assert (first.version, first.facts_added, first.bad_lines) == (2, 6, 1)
        (bad,) = first.examples
        assert str(bad).startswith(f"{bad.file}:{bad.line}: ")
        assert first.to_dict()["examples"] == [bad.to_dict()]
        assert names(kb, "?- hot(T) .") == ["wt1", "wt3", "wt5", "wt6"]
        assert follow(kb, landing) == []
        (landing / "other.csv").write_text("<wt9>,1\n")
        (landing / "more.nt").write_text(reading(6, 80))
        (second,) = follow(kb, landing, FileSelection(format="nt"))
        assert (second.number, second.files, second.version) == (1, 1, 3)
        assert kb.streams == {kb.log()[-1].stream: 1}


def test_a_batch_has_a_limit_of_files_and_a_batch_without_facts_is_noted(farm: Path, landing: Path) -> None:
    for number in range(5):
        (landing / f"{number}.nt").write_text(reading(number // 2, 40))
    with ze.open(farm) as kb:
        found = follow(kb, landing, FileSelection(most_files=2))
        assert [(one.number, one.files, one.facts_added) for one in found] == [
            (0, 2, 1),
            (1, 2, 1),
            (2, 1, 1),
        ]
        (landing / "again.nt").write_text(reading(0, 40))
        (last,) = follow(kb, landing)
        assert (last.number, last.facts_added, last.version) == (3, 0, 5)


def test_a_file_that_is_gone_before_its_batch_is_told(farm: Path, landing: Path) -> None:
    (landing / "a.nt").write_text(reading(1, 40))
    (landing / "b.nt.gz").write_bytes(b"no gzip at all")
    with ze.open(farm) as kb:
        with pytest.raises(ze.ZodiacError):
            follow(kb, landing)
        assert kb.version == 1
        (landing / "b.nt.gz").unlink()
        (landing / "c.nt").write_text(reading(3, 40))
        first, second = follow(kb, landing)
        assert (first.files, first.gone) == (1, (str(landing / "b.nt.gz"),))
        assert (second.number, second.files) == (1, 1)
        assert "without b.nt.gz" in kb.log()[-2].message


def test_a_file_that_grows_is_taken_when_it_is_settled(
    farm: Path, landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Applied] = []
    growing = landing / "grows.nt"

    def write(number: int) -> None:
        with growing.open("a") as file:
            file.write(reading(number, 40))
        # No look is late enough to find it old.
        os.utime(growing, (2e9, 4e9))

    looks = iter(range(1, 100))

    def between_looks(_: float) -> None:
        look = next(looks)
        if look < 4:
            assert not found
            write(look)
        if found:
            raise KeyboardInterrupt

    write(0)
    monkeypatch.setattr("zodiacedge.pipeline.folder_stream.time.sleep", between_looks)
    with ze.open(farm) as kb, pytest.raises(KeyboardInterrupt):
        Stream(kb, landing, None, found.append).follow(seconds=0.3)
    assert [(one.files, one.facts_added) for one in found] == [(1, 4)]


def test_ctrl_c_ends_a_stream_that_goes_on(farm: Path, landing: Path) -> None:
    (landing / "a.nt").write_text(reading(1, 40))
    words = ["stream", str(farm), "--from", str(landing), "--trigger", "0.1"]
    with subprocess.Popen(
        [sys.executable, "-m", "zodiacedge", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A process that was started in the background ignores it, and so would this one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        (landing / "b.nt").write_text(reading(2, 50))
        lines.append(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest, problems = process.communicate(timeout=120)
    assert [line.split(",")[0] for line in lines[1:]] == ["batch 0: 1 file", "batch 1: 1 file"]
    assert rest == "version 3: 1 rule, 2 explicit facts, 2 derived facts\n"
    assert (problems, process.returncode) == ("zodiac: interrupted\n", 130)


def test_killed_at_every_moment_nothing_is_lost_and_nothing_is_in_twice(farm: Path, landing: Path) -> None:
    told = []
    for number, moment in enumerate(MOMENTS):
        (landing / f"{number}.nt").write_text(reading(number, 20 + number * 10))
        done = subprocess.run(
            [sys.executable, str(STREAMER), str(farm), str(landing), moment, "embedded"],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == (0 if moment == "never" else -signal.SIGKILL), done.stderr
        told.append(done.stdout.split("\n")[:-1])
    # The second run applies the batch that the first one noted, and dies; the third takes two files at once.
    assert told == [[], [], ["taken 1"], ["taken 2"]]
    with ze.open(farm) as kb:
        assert [(entry.batch, entry.facts_added) for entry in kb.log()] == [(-1, 0), (0, 1), (1, 2), (2, 1)]
        assert kb.explicit_counts() == {"reading": 4}


def test_a_line_of_the_journal_that_was_not_written_to_its_end_is_no_batch(farm: Path, landing: Path) -> None:
    (landing / "a.nt").write_text(reading(1, 40))
    with ze.open(farm) as kb:
        follow(kb, landing)
        path = journal(farm)
        whole = path.read_bytes()
        path.write_bytes(whole + b'{"files": ["/never')
        (landing / "b.nt").write_text(reading(2, 40))
        (second,) = follow(kb, landing)
        assert (second.number, second.files, second.facts_added) == (1, 1, 1)
        assert path.read_bytes().startswith(whole)
        assert len(FileJournal(path).batches) == 2


@pytest.mark.parametrize("contents", [b"[]\n", b'{"stream": "s"}\n{"files": 1}\n', b"{\n"])
def test_a_damaged_journal_ends_the_stream(farm: Path, landing: Path, contents: bytes) -> None:
    (landing / "a.nt").write_text(reading(1, 40))
    with ze.open(farm) as kb:
        follow(kb, landing)
        journal(farm).write_bytes(contents)
        with pytest.raises(ze.ZodiacError) as caught:
            follow(kb, landing)
        assert code(caught.value) == "D016"


KEPT = """@time reading 3 . @keep reading 7 d . hot(S) :- reading(S, V, _), V > 30 ."""


def test_late_facts_of_a_batch_are_told_and_go_to_its_quarantine(tmp_path: Path, landing: Path) -> None:
    old = '["<s1>", 40, "\\"2025-01-01T12:00:00Z\\"^^xsd:dateTime"]\n'
    (landing / "reading.jsonl").write_text(old + old.replace("2025", "2026").replace("s1", "s2"))
    with ze.open(tmp_path / "kept", create=True) as kb:
        with kb.change() as c:
            c.add_rules(KEPT)
            c.tick("2026-01-02T12:00:00Z")
        (batch,) = follow(kb, landing, FileSelection(quarantine=tmp_path / "bad"))
        assert [warning.code for warning in batch.warnings] == ["W031"]
        assert names(kb, "?- hot(S) .") == ["s2"]
    (found,) = (tmp_path / "bad").rglob("*.jsonl")
    assert found.name == "late-facts-0001.jsonl"
    assert "s1" in found.read_text()


def test_a_stream_with_the_clock_of_the_system_forgets_while_nothing_arrives(
    tmp_path: Path, landing: Path
) -> None:
    with ze.open(tmp_path / "kept", create=True) as kb, kb.change() as c:
        c.add_rules("@keep status 2000 ms since stated . up(S) :- status(S) .")
    arrives = [sys.executable, "-m", "zodiacedge", "stream", str(tmp_path / "kept"), "--from", str(landing)]
    (landing / "status.csv").write_text("<s1>\n")
    with subprocess.Popen(
        [*arrives, "--trigger", "0.1", "--clock", "system"],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    ) as stream:
        try:
            with ze.open(tmp_path / "kept", read_only=True) as reader:
                deadline = time.monotonic() + 100
                while reader.version < 3 and time.monotonic() < deadline:
                    reader.refresh()
                    time.sleep(0.05)
        finally:
            stream.send_signal(signal.SIGINT)
    # The batch, and the tick that forgets what it stated; then nothing is due any more.
    with ze.open(tmp_path / "kept") as kb:
        assert kb.version == 3
        assert names(kb, "?- up(S) .") == []
        assert names(kb.at(2), "?- up(S) .") == ["s1"]
