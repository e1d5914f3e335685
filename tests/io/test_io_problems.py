"""Every problem is one clear message with a code, and a failed export leaves nothing half done."""

from __future__ import annotations

import bz2
import errno
import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard

from zodiacedge.errors import LoadProblem
from zodiacedge.io import Format, expand, read, read_all, staged_export, streams, write_facts
from zodiacedge.language.ast import Fact, Predicate, fact
from zodiacedge.terms import IRI, BlankNode, Literal, Term, integer, string

if TYPE_CHECKING:
    from collections.abc import Callable


def problem(code: str, call: Callable[[], object], *words: str) -> str:
    with pytest.raises(LoadProblem) as caught:
        call()
    found = caught.value.diagnostics
    assert {d.code for d in found} == {code}
    text = str(caught.value)
    for word in words:
        assert word in text
    assert "Traceback" not in text
    return text


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    problem("I001", lambda: read(tmp_path / "none.nt"), "none.nt does not exist")
    problem("I001", lambda: read(f"p={tmp_path}/none.csv"), "none.csv does not exist")


def test_a_file_that_goes_away_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "f.nt").touch()
    load = read(tmp_path / "f.nt")
    (tmp_path / "f.nt").unlink()
    problem("I001", lambda: list(load), "f.nt does not exist")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f.nt").touch()

    def denied(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(streams._CountingFile, "readinto", denied)
    problem("I002", lambda: read_all(tmp_path / "f.nt"), "f.nt may not be read")


def test_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    problem("I003", lambda: read(f"{tmp_path}/*.nt"), "*.nt matches no file")


@pytest.mark.parametrize("name", ["data", "data.txt", "data.gz", "data.txt.gz", ".nt"])
def test_an_extension_that_says_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    problem("I004", lambda: read(tmp_path / name), name, ".nt, ", ".parquet", ".zst")


def test_a_folder_with_nothing_to_load(tmp_path: Path) -> None:
    (tmp_path / "README").touch()
    (tmp_path / ".hidden.nt").touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "f.nt").touch()
    problem("I005", lambda: read(tmp_path), "holds no file to load", ".nt")


def test_names_that_no_relation_can_have(tmp_path: Path) -> None:
    (tmp_path / "my edges.csv").touch()
    problem("I006", lambda: read(tmp_path / "my edges.csv"), "'my edges' cannot be the name", "name=path")
    problem("I006", lambda: read(f"a b={tmp_path}/my edges.csv"), "'a b'")
    problem("I006", lambda: read("=x.csv"), "neither a path nor name=path")
    assert read(f"edges={tmp_path}/my edges.csv").files[0].relation == "edges"


def test_rdf_cannot_be_given_a_name(tmp_path: Path) -> None:
    (tmp_path / "f.nt").touch()
    problem("I007", lambda: read(f"p={tmp_path}/f.nt"), "f.nt is RDF")


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": zstandard.compress,
}


@pytest.mark.parametrize("form", ["nt", "ttl", "csv", "tsv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("packed", PACKERS)
def test_a_compressed_file_that_ends_early(form: str, packed: str, tmp_path: Path) -> None:
    whole = PACKERS[packed](b"".join(b"<a> <p> <b%d> .\n" % i for i in range(20_000)))
    path = tmp_path / f"f.{form}.{packed}"
    path.write_bytes(whole[: len(whole) // 2])
    problem("I008", lambda: read_all(path), str(path), "damaged or was cut short")


@pytest.mark.parametrize("packed", PACKERS)
def test_a_file_that_is_not_compressed_as_it_says(packed: str, tmp_path: Path) -> None:
    (tmp_path / f"f.nt.{packed}").write_bytes(b"<a> <p> <b> .\n" * 10)
    problem("I008", lambda: read_all(tmp_path / f"f.nt.{packed}"), "damaged")


@pytest.mark.parametrize("form", ["parquet", "arrow", "feather"])
@pytest.mark.parametrize(
    "content", [b"", b"x", b"PAR1 and more PAR1", b"ARROW1 and more ARROW1", b"x" * 5000]
)
def test_a_file_that_is_not_columnar(form: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / f"f.{form}").write_bytes(content)
    problem("I010", lambda: read_all(tmp_path / f"f.{form}"), f"f.{form} is not a")


def test_a_columnar_file_with_a_hole(tmp_path: Path) -> None:
    write_facts([fact("p", integer(i), integer(i * i)) for i in range(9000)], tmp_path, form="parquet")
    data = bytearray((tmp_path / "p.parquet").read_bytes())
    data[50:2050] = bytes(2000)
    (tmp_path / "p.parquet").write_bytes(data)
    problem("I010", lambda: read_all(tmp_path / "p.parquet"), "damaged")


def test_a_read_that_the_system_breaks_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f.nt").write_bytes(b"<a> <p> <b> .\n")

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(streams._CountingFile, "readinto", broken)
    problem("I019", lambda: read_all(tmp_path / "f.nt"), "cannot be read: input/output error")


@pytest.mark.parametrize(
    "content", ["", "[]", '{"predicates": [5]}', '{"predicates": [{"predicate": "p"}]}', "\x00"]
)
def test_a_list_of_predicates_that_is_not_ours(content: str, tmp_path: Path) -> None:
    (tmp_path / "predicates.json").write_text(content)
    (tmp_path / "p.csv").touch()
    problem("I020", lambda: read(tmp_path), "predicates.json")


FOREIGN: list[tuple[Fact, str]] = [
    (fact("p"), "p has arity 0"),
    (fact("p", IRI("a"), IRI("b"), IRI("c")), "p has arity 3"),
    (fact("C", string("x")), "C has a literal as subject in 1 of 1 facts"),
    (fact("p", integer(5), IRI("b")), "p has a literal as subject"),
]


@pytest.mark.parametrize("form", ["nt", "ttl"])
@pytest.mark.parametrize(("foreign", "words"), FOREIGN)
def test_a_fact_that_rdf_cannot_say(foreign: Fact, words: str, form: str, tmp_path: Path) -> None:
    problem("I014", lambda: write_facts([foreign], tmp_path / "out", form=form), words, "export to csv")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["nt", "ttl", "csv", "tsv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize(
    "term",
    [BlankNode("a b"), BlankNode(""), IRI("a b"), string("\ud800"), string("x", "e n"), Literal("x", "a>b")],
)
def test_a_term_that_no_file_can_hold_leaves_nothing_behind(term: Term, form: str, tmp_path: Path) -> None:
    found = [fact("a", IRI("x"), IRI("y")), fact("p", IRI("x"), term)]
    problem("I015", lambda: write_facts(found, tmp_path, form=form))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "zst"])
def test_a_full_disk_leaves_the_export_before_it_whole(
    compression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_facts([fact("p", IRI("old"))], tmp_path, compression=compression)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    real = Path.open

    def full(
        path: Path,
        mode: str = "r",
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> object:
        # Every write to this device fails as a write to a full disk does.
        if path.name.startswith("q"):
            return real(Path("/dev/full"), "wb")
        return real(path, mode, encoding=encoding, errors=errors, newline=newline)

    new = [fact("p", IRI("new")), *(fact("q", integer(i), integer(i)) for i in range(5_000))]
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        words = ("q.csv", "no space left", "free some space")
        problem("I016", lambda: write_facts(new, tmp_path, compression=compression), *words)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_an_interrupted_export_leaves_the_one_before_it_whole(tmp_path: Path) -> None:
    write_facts([fact("p", IRI("old"))], tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def interrupted() -> None:
        with staged_export(tmp_path) as export:
            export.staged_path("p.csv").write_text("new\n")
            export.add(Predicate("p", 1), "p.csv", 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_texts_of_a_table_that_are_no_texts(tmp_path: Path, form: str) -> None:
    write_facts([fact("p", string("wordword"), string("b"))], tmp_path, form=form)
    path = tmp_path / f"p.{form}"
    data = path.read_bytes()
    assert b"wordword" in data
    path.write_bytes(data.replace(b"wordword", b"wor\xff\xff\xffrd"))
    problem("I010", lambda: read_all(path), "is not a", "damaged")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    problem("I016", lambda: write_facts([], tmp_path / "file" / "out"), "cannot be written")


def test_formats_and_compressions_that_are_not_there(tmp_path: Path) -> None:
    problem("I017", lambda: write_facts([], tmp_path, form="xlsx"), "xlsx is not a format to write", "csv")
    problem("I017", lambda: write_facts([], tmp_path, form=Format.TRIG), "trig is not a format to write")
    problem("I017", lambda: write_facts([], tmp_path, compression="zip"), "gz, bz2, zst")
    problem("I017", lambda: write_facts([], tmp_path, form="parquet", compression="bz2"), "gz, zst")
    problem("I017", lambda: write_facts([], tmp_path, form="arrow", compression="gz"), "zst")


def test_a_base_to_write_that_is_none(tmp_path: Path) -> None:
    found = [fact("p", IRI("a"), IRI("b"))]
    problem("I018", lambda: write_facts(found, tmp_path, form="ttl", base="nowhere"))


def test_folders_patterns_and_names_say_which_files(tmp_path: Path) -> None:
    for name in ("b.nt", "a.csv.gz", "http%3A%2F%2Fex.org%2Fp.CSV", "notes.md", "_part.nt"):
        (tmp_path / name).touch()
    (tmp_path / "y=1").mkdir()
    (tmp_path / "y=1" / "c.v2.tsv").touch()

    def found(*specs: str) -> list[tuple[str, str, str, str]]:
        return [(f.path.name, f.format.value, f.compression, f.relation) for f in expand(specs)]

    first, second, third = (
        ("a.csv.gz", "csv", "gz", "a"),
        ("b.nt", "nt", "", ""),
        ("http%3A%2F%2Fex.org%2Fp.CSV", "csv", "", "http://ex.org/p"),
    )
    assert found(str(tmp_path)) == [first, second, third]
    assert found(f"{tmp_path}/*.nt", str(tmp_path / "b.nt")) == [("_part.nt", "nt", "", ""), second]
    assert found(f"{tmp_path}/y=*/*.tsv") == [("c.v2.tsv", "tsv", "", "c.v2")]
    assert found(f"{tmp_path}/y=1/c.v2.tsv") == [("c.v2.tsv", "tsv", "", "c.v2")]
    assert found(f"p={tmp_path}/y=1/c.v2.tsv") == [("c.v2.tsv", "tsv", "", "p")]
    assert found(f"<http://ex.org/x?a=b>={tmp_path}/a.csv.gz")[0][3] == "http://ex.org/x?a=b"
    assert found(f"http://ex.org/x={tmp_path}/a.csv.gz")[0][3] == "http://ex.org/x"


def test_importing_io_loads_neither_pyarrow_nor_pyoxigraph() -> None:
    script = "import sys, zodiacedge.io; print(*{'pyarrow', 'pyoxigraph', 'zstandard'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == ""
