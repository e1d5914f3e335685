"""Files that arrive become changes, each batch once, whoever is killed in between."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import zodiacedge as ze
from spark.arriving import farm, landing, names, reading
from spark.conftest import CLUSTER
from store.conftest import bucket, code, endpoint
from zodiacedge.cli.app import zodiac
from zodiacedge.engine.spark.streaming.file_stream import FileStream, Landing
from zodiacedge.errors import LoadProblem, StoreProblem, UsageProblem
from zodiacedge.kb.time.clock import system_time
from zodiacedge.pipeline.stream import Applied, FileSelection, Stream

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.engine.spark.engine import SparkEngine
    from zodiacedge.io.file_batch import FileBatch

__all__ = ["bucket", "endpoint", "farm", "landing"]


def follow(kb: ze.KnowledgeBase, folder: Path, reading: FileSelection | None = None) -> list[Applied]:
    """Take what is there; return what became of it."""
    found: list[Applied] = []
    Stream(kb, folder, reading, found.append, CLUSTER).follow()
    return found


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_every_format_arrives_once(engine: str, spark: SparkEngine, farm: Path, landing: Path) -> None:
    assert spark.jobs.cores == 2
    (landing / "ä b%20c.nt").write_text(reading(1, 40) + "no triple\n" + reading(2, 20))
    (landing / "day=1").mkdir()
    (landing / "day=1" / "reading.csv").write_text("<wt3>,50\n")
    pq.write_table(pa.table({"t": ["<wt4>"], "v": [60]}), landing / "reading.parquet")
    (landing / "any.jsonl").write_text('{"predicate": "reading", "args": ["<wt5>", 70]}\n')
    (landing / "SHOUTED.NT").write_text(reading(7, 10))
    (landing / "_under_way.nt").write_text(reading(8, 99))
    (landing / "notes.txt").write_text("not for us")
    with ze.open(farm, engine=engine) as kb:
        (first,) = follow(kb, landing)
        assert (first.number, first.files, first.again) == (0, 5, False)
        assert (first.version, first.facts_added, first.bad_lines) == (2, 6, 1)
        assert names(kb, "?- hot(T) .") == ["wt1", "wt3", "wt4", "wt5"]
        assert follow(kb, landing) == []
        (landing / "later.nt.gz").write_bytes(b"")
        (landing / "more.nt").write_text(reading(6, 80))
        (second,) = follow(kb, landing, FileSelection(format="nt", most_files=10))
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
        found = follow(kb, landing, FileSelection(relation="reading", header=True, most_files=1))
        assert [(one.number, one.files, one.facts_added) for one in found] == [(n, 1, 1) for n in range(3)]
        assert kb.explicit_counts() == {"reading": 3}


def test_tables_of_a_stream_have_a_prefix_of_the_store_and_a_delimiter(
    spark: SparkEngine, farm: Path, landing: Path
) -> None:
    assert spark.jobs.cores == 2
    with ze.open(farm) as kb:
        kb.add_prefixes([("ex", "http://e/")])
        (landing / "a.csv").write_text("<wt1>;93\n<wt2>;70\n")
        (first,) = follow(kb, landing, FileSelection(relation="ex:reading", delimiter=";"))
        assert (first.facts_added, first.warnings) == (2, ())
        assert {f.predicate for f in kb.explicit} == {ze.Predicate("http://e/reading", 2)}
        (landing / "b.csv").write_text("<wt3>;93\n")
        (second,) = follow(kb, landing, FileSelection(relation="seen"))
        assert [warning.code for warning in second.warnings] == ["W017"]
        with pytest.raises(UsageProblem, match="U012: there is no prefix x:"):
            Stream(kb, landing, FileSelection(relation="x:reading"), cluster=CLUSTER)


def test_bad_lines_of_a_batch_have_a_folder_of_their_own(
    spark: SparkEngine, farm: Path, landing: Path, tmp_path: Path
) -> None:
    assert spark.jobs.cores == 2
    bad = tmp_path / "bad"
    (landing / "a.nt").write_text("one\ntwo\n")
    with ze.open(farm) as kb:
        (first,) = follow(kb, landing, FileSelection(quarantine=bad))
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


def test_a_batch_that_comes_when_nobody_takes_one_any_more_comes_again(
    spark: SparkEngine, landing: Path, tmp_path: Path
) -> None:
    (landing / "a.nt").write_text(reading(1, 40))
    taken: list[FileBatch] = []
    place = Landing(landing.resolve(), "*.nt", tmp_path / "noted")
    stopped = FileStream(spark.jobs, place, taken.append)
    # As Ctrl-C leaves it for a moment, before Spark hears of it.
    stopped._stopped = True
    stopped.follow(None)
    assert taken == []
    FileStream(spark.jobs, place, taken.append).follow(None)
    assert [batch.number for batch in taken] == [0]


class _Ticked(Exception):
    """A stream has ticked while nothing came."""


def test_a_stream_on_spark_ticks_by_itself_while_nothing_comes(
    spark: SparkEngine, landing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.jobs.cores == 2
    (landing / "a.nt").write_text(reading(1, 40))
    with ze.open(tmp_path / "store", engine="spark", create=True, clock="system") as kb:
        with kb.change() as c:
            c.add_rules("@time ping 2 . quiet(S) :- sensor(S), not ping(S, _) within 20 s . sensor(s1) .")
            c.add_facts([("ping", ze.iri("s1"), system_time() - timedelta(seconds=1))])
        assert not names(kb, "?- quiet(S) .")
        due = kb.tick_when_due

        def ticks() -> None:
            if due():
                raise _Ticked

        monkeypatch.setattr(kb, "tick_when_due", ticks)
        applied: list[Applied] = []
        with pytest.raises(_Ticked):
            Stream(kb, landing, None, applied.append, CLUSTER).follow(0.2)
        assert names(kb, "?- quiet(S) .") == ["s1"]


def test_a_store_is_known_to_a_stream_whatever_it_is_called(
    spark: SparkEngine, farm: Path, landing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.jobs.cores == 2
    (landing / "a.nt").write_text(reading(1, 40))
    noted = FileSelection(checkpoint=tmp_path / "noted")
    monkeypatch.chdir(farm.parent)
    with ze.open(farm.name) as kb:
        assert len(follow(kb, landing, noted)) == 1
    with ze.open(farm) as kb:
        assert follow(kb, landing, noted) == []
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with ze.open(farm.name, create=True) as kb:
        # Another one of that name has taken nothing yet.
        assert len(follow(kb, landing, noted)) == 1


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
    words = ["stream", str(farm), "--from", str(landing), "--once", "--engine", "spark"]
    done = CliRunner().invoke(zodiac, words)
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
        noted = FileSelection(checkpoint=tmp_path / "noted")
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
    done = CliRunner().invoke(zodiac, [*words, "--engine", "spark"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("batch 0: 1 file, +1 fact, 1 bad line skipped, version 2, ")
    assert done.stdout.endswith("version 2: 1 rule, 1 explicit fact, 1 derived fact\n")
    (landing / "b.nt").write_text(reading(2, 50))
    done = CliRunner().invoke(zodiac, [*words, "--json", "--engine", "spark"])
    document = json.loads(done.stdout)
    (batch,) = document["batches"]
    assert (document["version"], batch["number"], batch["facts_added"]) == (3, 1, 1)
    assert CliRunner().invoke(zodiac, [*words, "--trigger", "2"]).exit_code == 2
    (landing / "c.nt.gz").write_bytes(b"no gzip at all")
    done = CliRunner().invoke(zodiac, [*words, "--json"])
    document = json.loads(done.stdout)
    assert (done.exit_code, document["errors"], document["version"], document["batches"]) == (1, 1, 3, [])
