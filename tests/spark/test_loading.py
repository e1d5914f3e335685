"""Files are read in parallel on Spark, and give what the embedded engine reads."""

from __future__ import annotations

import bz2
import gc
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.spark.cluster.jobs import Jobs
from zodiacedge.engine.spark.ingest.read_files import read_bundle
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.errors import LoadProblem
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zodiacedge.engine.spark.engine import SparkEngine
    from zodiacedge.engine.spark.ingest.read_files import Bundle

# Lines of all lengths, so that splits of a few bytes cut them everywhere.
LINES = [
    "\ufeff<http://e/s0> <http://e/p> <http://e/o> .",
    "# a comment",
    "",
    '<http://e/s1> <http://e/age> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    "<http://e/s1> <http://e/broken> .",
    '<http://e/s2> <http://e/name> "Zoë"@en .',
    "_:b1 <http://e/p> _:b2 .",
    "<http://e/s3> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Turbine> .",
    "no triple at all",
    "\ufeff<http://e/late> <http://e/p> <http://e/mark> .",
    f'<http://e/s4> <http://e/long> "{"x" * 300}" .',
    "<http://e/s5> <http://e/p> <http://e/last> .",
]

# With the name of a graph, without one, and with what is none.
QUADS = [
    "<http://e/s0> <http://e/p> <http://e/o> <http://e/graph> .",
    "<http://e/s0> <http://e/p> <http://e/o> <http://e/another> .",
    "<http://e/s1> <http://e/p> _:b <http://e/graph> .",
    '<http://e/s1> <http://e/p> <http://e/o> "no graph" .',
    '_:b <http://e/q> "a\\nb"@en _:graph .',
    "<http://e/s2> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Turbine> .",
    "<http://e/s2> <http://e/p> <http://e/o> <http://e/graph> <http://e/more> .",
]


def write(folder: Path, ending: str = "\n") -> Path:
    path = folder / "facts.nt"
    path.write_bytes((ending.join(LINES)).encode())
    return path


def loaded(engine: object, *sources: str, **options: object) -> tuple[KnowledgeBase, object]:
    kb = KnowledgeBase(engine, Settings())  # type: ignore[arg-type]
    with kb.change() as change:
        report = change.load(*sources, **options)  # type: ignore[arg-type]
    return kb, report.to_dict() | {"seconds": 0}


@pytest.fixture
def bundles(monkeypatch: pytest.MonkeyPatch) -> list[Bundle]:
    """What tasks were given to read."""
    found: list[Bundle] = []
    each = Jobs.each

    def noted(self: Jobs, work: Callable[..., Any], given: Sequence[Any], *rest: Any, **more: Any) -> Any:  # noqa: ANN401
        found.extend(given if work is read_bundle else ())
        return each(self, work, given, *rest, **more)

    monkeypatch.setattr(Jobs, "each", noted)
    return found


def cut(bundles: Sequence[Bundle]) -> list[tuple[int, int | None]]:
    """Return where the stretches of a file begin and end that tasks read."""
    return [(split.start, split.end) for bundle in bundles for split in bundle.splits]


@pytest.mark.parametrize(("split", "ending"), [(7, "\n"), (64, "\r\n"), (1 << 20, "\n")])
def test_splits_of_any_size_give_the_same_facts_and_the_same_bad_lines(
    split: int,
    ending: str,
    tmp_path: Path,
    make_engine: Callable[[Options], SparkEngine],
    bundles: list[Bundle],
) -> None:
    path = write(tmp_path, ending)
    expected, told = loaded(EmbeddedEngine(), str(path))
    found, report = loaded(make_engine(Options(split_bytes=split)), str(path))
    assert found.facts() == expected.facts()
    assert report == told
    # No more stretches than two cores have tasks.
    size = path.stat().st_size
    step = max(split, -(-size // 32))
    assert cut(bundles) == [(start, min(start + step, size)) for start in range(0, size, step)]
    assert len(bundles) > 10 or split > 7


def test_a_path_from_here_is_found_by_tasks_that_work_elsewhere(
    tmp_path: Path, spark: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.jobs.cores == 2
    monkeypatch.chdir(write(tmp_path).parent)
    Path("reading.csv").write_text("wt1,5\nwt2\n")
    sources = ("facts.nt", "reading.csv")
    expected, told = loaded(EmbeddedEngine(), *sources, quarantine="here")
    found, report = loaded(spark, *sources, quarantine="there")
    assert found.facts() == expected.facts()
    # The report and the quarantine call the files what the user called them.
    assert report == told
    bad = quarantined(Path("there"))
    assert bad == quarantined(Path("here"))
    assert {one["file"] for one in bad} == set(sources)


def test_a_path_may_be_written_as_a_uri(
    tmp_path: Path, make_engine: Callable[[Options], SparkEngine]
) -> None:
    uri = write(tmp_path).as_uri()
    expected, told = loaded(EmbeddedEngine(), uri)
    found, report = loaded(make_engine(Options(split_bytes=64)), uri)
    assert found.facts() == expected.facts()
    assert report == told


def test_small_files_are_read_several_by_one_task(
    tmp_path: Path, spark: SparkEngine, bundles: list[Bundle]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for n in range(30):
        (data / f"some{n:02}.nt").write_text(f"_:b <http://e/p> <http://e/o{n}> .\nbad {n}\n\n_:b a\n")
        (data / f"more{n:02}.csv").write_text(f"wt{n},1\nwt{n}\n" * (n % 2))
    expected, told = loaded(EmbeddedEngine(), str(data), quarantine=tmp_path / "here")
    found, report = loaded(spark, str(data), quarantine=tmp_path / "there")
    assert [len(one.splits) for one in bundles] == [60]
    assert found.facts() == expected.facts()
    assert report == told
    assert quarantined(tmp_path / "there") == quarantined(tmp_path / "here")


def test_all_formats_of_a_folder_beside_each_other(tmp_path: Path, spark: SparkEngine) -> None:
    write(tmp_path)
    (tmp_path / "more.nt.gz").write_bytes(gzip.compress(b"_:b1 <http://e/q> _:b2 .\nbad\n"))
    (tmp_path / "some.ttl").write_text("@prefix e: <http://e/> . e:a e:p [ e:q 5 ] , 2.50 .")
    (tmp_path / "reading.csv").write_text("wt1,5\nwt2,6\nwt2\n")
    (tmp_path / "other.csv").write_text("wt1;5\nwt2;6\n")
    (tmp_path / "lines.jsonl").write_text('{"predicate": "r", "args": ["a", 5]}\n{}\n')
    expected, told = loaded(EmbeddedEngine(), str(tmp_path))
    found, report = loaded(spark, str(tmp_path))
    assert found.facts() == expected.facts()
    assert report == told
    assert "W017" in str(report)
    assert found.explicit_counts() == expected.explicit_counts()


def quarantined(folder: Path) -> list[dict[str, Any]]:
    (file,) = folder.iterdir()
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_quads_from_splits_are_facts_whichever_graph_states_them(
    tmp_path: Path, make_engine: Callable[[Options], SparkEngine], bundles: list[Bundle]
) -> None:
    path = tmp_path / "facts.nq"
    path.write_text("\n".join(QUADS * 3))
    engine = make_engine(Options(split_bytes=50))
    expected, told = loaded(EmbeddedEngine(), str(path), quarantine=tmp_path / "here")
    found, report = loaded(engine, str(path), quarantine=tmp_path / "there")
    assert found.facts() == expected.facts()
    assert len(expected.facts()) == 4
    assert report == told
    bad = quarantined(tmp_path / "there")
    assert bad == quarantined(tmp_path / "here")
    assert [one["line"] for one in bad] == [4, 7, 11, 14, 18, 21]
    assert len(bundles) == len(cut(bundles)) > 10


def every_kind_of_file(folder: Path) -> None:
    """Write files of all formats and compressions in two folders, bad lines in those that may have some."""
    below = folder / "below"
    below.mkdir(parents=True)
    (folder / "quads.nq.bz2").write_bytes(bz2.compress("\n".join(QUADS).encode()))
    (folder / "triples.nt.zst").write_bytes(zstandard.compress("\n".join(LINES).encode()))
    (below / "reading.csv.zst").write_bytes(zstandard.compress(b"wt1,5\nwt2\n<wt3>,2.50\n"))
    (below / "state.tsv").write_text("wt1\ton\nwt2\n")
    (below / "lines.ndjson.gz").write_bytes(gzip.compress(b'{"predicate": "r", "args": ["a", 5]}\n{}\n'))
    table = pa.table({"turbine": ["<wt1>", None, "<wt2>"], "power": [1.5, 2.5, 3.5]})
    pq.write_table(table, below / "power.parquet")
    (below / "more.parquet.gz").write_bytes(gzip.compress((below / "power.parquet").read_bytes()))
    with pa.OSFile(str(folder / "speed.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    (folder / "some.ttl.bz2").write_bytes(bz2.compress(b"@prefix e: <http://e/> . e:a e:p [ e:q 5 ] ."))
    (folder / "some.trig").write_text("@prefix e: <http://e/> . e:g { _:b e:p 2.50 . } e:a a e:Turbine .")
    (folder / "some.jsonld").write_text('{"@id": "http://e/a", "http://e/p": 7}')


def test_patterns_names_and_every_format_packed_or_not(tmp_path: Path, spark: SparkEngine) -> None:
    every_kind_of_file(tmp_path / "data")
    sources = [str(tmp_path / "data" / "**" / "*"), f"given={tmp_path}/data/below/state.tsv"]
    expected, told = loaded(EmbeddedEngine(), *sources, quarantine=tmp_path / "here")
    found, report = loaded(spark, *sources, quarantine=tmp_path / "there")
    assert found.facts() == expected.facts()
    assert found.explicit_counts() == expected.explicit_counts()
    assert report == told
    bad = quarantined(tmp_path / "there")
    assert bad == quarantined(tmp_path / "here")
    assert {(Path(one["file"]).name, one["unit"]) for one in bad} == {
        ("quads.nq.bz2", "line"),
        ("triples.nt.zst", "line"),
        ("reading.csv.zst", "line"),
        ("state.tsv", "line"),
        ("lines.ndjson.gz", "line"),
        ("power.parquet", "row"),
        ("more.parquet.gz", "row"),
        ("speed.arrow", "row"),
    }


def test_bad_lines_go_to_quarantine_with_their_place(
    tmp_path: Path, make_engine: Callable[[Options], SparkEngine]
) -> None:
    path = write(tmp_path)
    outcomes: list[list[dict[str, Any]]] = []
    for engine in (EmbeddedEngine(), make_engine(Options(split_bytes=40))):
        folder = tmp_path / f"bad-{len(outcomes)}"
        loaded(engine, str(path), quarantine=folder)
        outcomes.append(quarantined(folder))
    data = path.read_bytes()
    assert outcomes[1] == outcomes[0]
    assert [bad["line"] for bad in outcomes[1]] == [5, 9, 10]
    for bad in outcomes[1]:
        assert data[bad["offset"] :].decode().startswith(bad["text"])
        assert bad["reason"]
        assert bad["file"] == str(path)


def test_files_of_bad_lines_go_once_they_were_read(tmp_path: Path, spark: SparkEngine) -> None:
    path = tmp_path / "some.nt"
    path.write_text("bad\n" * 20)
    loaded(spark, str(path), quarantine=tmp_path / "bad")
    gc.collect()
    folder = Path(spark.empty().workspace.scratch.folder.uri)
    assert not [one for one in folder.iterdir() if one.name.startswith("bad-")]


def test_no_bad_line_no_quarantine(tmp_path: Path, spark: SparkEngine) -> None:
    path = tmp_path / "good.nt"
    path.write_text("<http://e/a> <http://e/p> <http://e/b> .\n")
    loaded(spark, str(path), quarantine=tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


def test_strict_loading_refuses_bad_lines(tmp_path: Path, spark: SparkEngine) -> None:
    kb = KnowledgeBase(spark, Settings())
    with pytest.raises(LoadProblem, match="3 bad lines"), kb.change() as change:
        change.load(str(write(tmp_path)), strict=True)
    assert not kb.facts()


def test_a_file_that_is_refused_whole_is_told_as_everywhere(
    tmp_path: Path, spark: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.jobs.cores == 2
    monkeypatch.chdir(tmp_path)
    # One of each kind of reader; what is permitted or there is looked at by the driver.
    Path("bad.ttl").write_text("<a> <b> .")
    Path("bad.parquet").write_text("none")
    Path("cut.nt.gz").write_bytes(gzip.compress(b"<http://e/a> <http://e/p> <http://e/b> .\n")[:-9])
    for name in ("bad.ttl", "bad.parquet", "cut.nt.gz"):
        told = []
        for engine in (EmbeddedEngine(), spark):
            with pytest.raises(LoadProblem) as caught:
                loaded(engine, name)
            told.append(caught.value.diagnostics)
        assert told[1] == told[0]
        assert told[1][0].message.startswith(name)
