"""Files by URI: what a path gives, a URI gives; in S3 from a real server over HTTP."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
import pytest
from pyarrow import fs

import zodiacedge as ze
from store.conftest import bucket, endpoint
from zodiacedge.errors import LoadProblem
from zodiacedge.io import expand, paths, read, read_all, write_facts
from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import integer, string

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["bucket", "endpoint"]

FACTS = [fact("p", integer(n), string(f"a{n}")) for n in range(100)] + [fact("C", string("x"))]
NT = b"<a> <p> <b> .\n<a> <p> .\n<b> <p> <c> .\n"


def problem(code: str, call: Callable[[], object], *words: str) -> None:
    with pytest.raises(LoadProblem) as caught:
        call()
    (found,) = caught.value.diagnostics
    assert found.code == code
    for word in words:
        assert word in str(caught.value)


def put(address: str, data: bytes) -> str:
    """Put an object, whatever signs its name has."""
    system, _ = fs.FileSystem.from_uri(address[: address.index("/", len("s3://"))])
    with system.open_output_stream(address.removeprefix("s3://"), compression=None) as stream:
        stream.write(data)
    return address


def names(*specs: str) -> list[str]:
    return [file.path.name for file in expand(specs)]


def sorted_facts(facts: list[Fact]) -> list[str]:
    return sorted(map(str, facts))


# A path with file:// before it


def test_a_path_may_be_written_as_a_uri(tmp_path: Path) -> None:
    folder = tmp_path / "day=1, fünf %"
    folder.mkdir()
    (folder / "edge.csv").write_text("1,2\n")
    uri = folder.as_uri()
    for spec in (uri, f"{uri}/edge.csv", f"{uri}/*.csv", f"file://localhost{uri.removeprefix('file://')}"):
        assert read_all(spec)[0] == [fact("edge", integer(1), integer(2))]
    assert read_all(f"link={uri}/edge.csv")[0] == [fact("link", integer(1), integer(2))]
    assert names(str(folder), uri) == ["edge.csv"]


def test_a_uri_that_leads_nowhere_is_told_as_it_was_given(tmp_path: Path) -> None:
    problem("I001", lambda: read(f"{tmp_path.as_uri()}/none.nt"), "file:///", "none.nt does not exist")
    problem("I003", lambda: read(f"{tmp_path.as_uri()}/*.nt"), "file:///", "*.nt matches no file")


@pytest.mark.parametrize(
    "uri",
    ["https://e.org/a.nt", "file://other/a.nt", "s3:///a.nt", "s3://a*/b.nt"],
)
def test_a_uri_that_no_file_is_read_from(uri: str) -> None:
    problem("I021", lambda: read(uri), f"{uri} is not a location that files", "s3://bucket/path")


def test_a_secret_in_a_uri_is_refused_and_not_told() -> None:
    with pytest.raises(LoadProblem) as caught:
        read("s3://me:key@bucket/a.nt")
    assert "s3://…@bucket/a.nt is not a location that files" in str(caught.value)
    assert "key" not in str(caught.value)


# Objects


@pytest.mark.parametrize("form", ["nt", "csv", "jsonl", "parquet", "arrow"])
def test_an_export_is_loaded_from_objects_as_from_its_folder(form: str, bucket: str, tmp_path: Path) -> None:
    facts = [one for one in FACTS if form != "nt"] or [
        fact("C", ze.iri("x")),
        fact("p", ze.iri("x"), integer(5)),
    ]
    write_facts(facts, tmp_path / "out", form=form)
    fs.copy_files(str(tmp_path / "out"), f"{bucket}/out")
    for spec in ("out", "out/", f"out/*.{form}", f"**/*.{form}"):
        assert sorted_facts(read_all(f"{bucket}/{spec}")[0]) == sorted_facts(facts)
    assert names(f"{bucket}/out") == names(str(tmp_path / "out"))


@pytest.mark.parametrize("compression", ["gz", "bz2", "zst"])
def test_compressed_objects_are_read(compression: str, bucket: str, tmp_path: Path) -> None:
    write_facts(FACTS, tmp_path / "out", form="csv", compression=compression)
    fs.copy_files(str(tmp_path / "out"), f"{bucket}/out")
    assert sorted_facts(read_all(f"{bucket}/out")[0]) == sorted_facts(FACTS)


def test_patterns_mean_objects_as_they_mean_files(bucket: str, tmp_path: Path) -> None:
    for name in ("a.nt", "b1/c.nt", "b1/.h.nt", "b2/d/e.nt", "b2/d/e.ttl", ".f/g.nt", "x[1].nt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
        put(f"{bucket}/root/{name}", b"")
    for pattern in (
        "*.nt",
        "?.nt",
        "**/*.nt",
        "b*/*.nt",
        "b[12]/**/*.nt",
        "b2/**",
        "*/d/e.*",
        "b1/.*",
        "x[1].nt",
    ):
        assert names(f"{bucket}/root/{pattern}") == names(f"{tmp_path}/{pattern}"), pattern
    problem("I003", lambda: read(f"{bucket}/root/*.csv"), f"{bucket}/root/*.csv matches no file")
    problem("I003", lambda: read(f"{bucket}/nowhere/*.csv"), "matches no file")


def test_a_name_is_taken_as_it_stands_and_may_be_of_any_signs(bucket: str) -> None:
    put(f"{bucket}/day=1/http%3A%2F%2Fe%2Fp q.jsonl", b"")
    put(f"{bucket}/day=1/http%3A%2F%2Fe%2Fp.csv", b"1\n")
    assert read_all(f"{bucket}/day=1/http%3A%2F%2Fe%2Fp.csv")[0] == [fact("http://e/p", integer(1))]
    assert read_all(f"q={bucket}/day=1/*.csv")[0] == [fact("q", integer(1))]
    assert read_all(bucket.replace("s3:", "s3a:") + "/day=1")[0] == [fact("http://e/p", integer(1))]


def test_a_load_tells_of_objects_by_their_uri(bucket: str) -> None:
    address = put(f"{bucket}/f.nt.gz", gzip.compress(NT))
    kb = ze.open()
    with kb.change() as c:
        report = c.load(address)
    assert len(kb.facts()) == 2
    assert [(file.file, file.facts, file.bad) for file in report.files] == [(address, 2, 1)]
    assert str(report.bad_lines[0]).startswith(f"{address}:2: ")


def test_a_command_takes_objects(bucket: str, tmp_path: Path) -> None:
    address = put(f"{bucket}/p.csv", b"1,2\n")
    (tmp_path / "f.rules").write_text("q(Y, X) :- p(X, Y) .")
    args = [sys.executable, "-m", "zodiacedge", "run", "f.rules", "--facts", address, "--json"]
    done = subprocess.run(args, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["derived"] == {"q": 1}


# What goes wrong there


def test_no_such_object_and_no_such_bucket(bucket: str) -> None:
    problem("I001", lambda: read(f"{bucket}/none.nt"), f"{bucket}/none.nt does not exist", "check the URI")
    problem(
        "I001", lambda: read("s3://nobody-has-this/none.nt"), "s3://nobody-has-this/none.nt does not exist"
    )
    problem("I003", lambda: read("s3://nobody-has-this/*.nt"), "s3://nobody-has-this/*.nt matches no file")


def test_an_object_that_goes_away_before_it_is_read(bucket: str) -> None:
    load = read(put(f"{bucket}/f.nt", NT))
    fs.FileSystem.from_uri(bucket)[0].delete_file(f"{bucket.removeprefix('s3://')}/f.nt")
    problem("I001", lambda: list(load), f"{bucket}/f.nt does not exist")


def test_an_object_that_is_cut_short(bucket: str) -> None:
    address = put(f"{bucket}/f.nt.gz", gzip.compress(NT)[:-9])
    problem("I008", lambda: read_all(address), f"{address} is damaged or was cut short")


@pytest.mark.parametrize(
    ("code", "said", "words"),
    [
        (
            "I002",
            "AWS Error ACCESS_DENIED during HeadObject operation: No response body.",
            "credentials come from",
        ),
        (
            "I019",
            "AWS Error SLOW_DOWN during GetObject operation: Reduce your rate (Request ID: 5)",
            "f.nt cannot be read: Reduce your rate (SLOW_DOWN)",
        ),
        (
            "I002",
            "google::cloud::Status(UNAVAILABLE: Could not create a OAuth2 access token error_info={reason=})",
            "Could not create a OAuth2 access token\n",
        ),
    ],
)
def test_what_arrow_says_is_one_message(
    code: str, said: str, words: str, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = put(f"{bucket}/f.nt", NT)

    class Broken:
        def get_file_info(self, _: object) -> NoReturn:
            raise OSError(f"When reading for key 'f.nt' in bucket 'b': {said}")

    monkeypatch.setattr(paths.RemotePath, "_system", lambda _: Broken())
    problem(code, lambda: read(address), words)


@pytest.mark.usefixtures("endpoint")
def test_an_endpoint_where_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    problem("I019", lambda: read("s3://farm/f.nt"), "s3://farm/f.nt cannot be read", "connect")


def test_an_arrow_without_that_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> NoReturn:
        raise pa.ArrowNotImplementedError("Got GCS URI but Arrow compiled without GCS support")

    monkeypatch.setattr(fs, "FileSystem", type("FileSystem", (), {"from_uri": staticmethod(refuse)}))
    problem(
        "I021",
        lambda: read("gs://farm-none/f.nt"),
        "Arrow has no file system for gs://farm-none/",
        "without GCS",
    )


def test_a_machine_without_hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> NoReturn:
        raise OSError("Unable to load libjvm\ndlopen failed")

    monkeypatch.setattr(fs, "FileSystem", type("FileSystem", (), {"from_uri": staticmethod(refuse)}))
    problem("I021", lambda: read("hdfs://farm:8020/f.nt"), "Unable to load libjvm", "HADOOP_HOME")


def test_arrow_is_not_loaded_for_paths(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("1\n")
    program = f"import sys; from zodiacedge.io import read_all; read_all('{(tmp_path / 'f.csv').as_uri()}'); "
    program += "assert 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
