"""A library that is missing is named once, with the command that installs it; all else works without it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from zodiacedge.errors import UsageProblem
from zodiacedge.extras import LIBRARIES, has, need

if TYPE_CHECKING:
    from pathlib import Path

OPTIONAL = ("pyarrow", "deltalake", "pyoxigraph", "zstandard", "grandalf", "obstore", "pyspark", "pandas")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in OPTIONAL:
        monkeypatch.setitem(sys.modules, library, None)


def run(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process in which no optional library can be imported."""
    hide = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL!r}))\n"
    return subprocess.run(
        [sys.executable, "-c", hide + script], capture_output=True, text=True, check=False, env=os.environ
    )


def test_every_extra_is_there_or_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for extra, libraries in LIBRARIES.items():
        assert has(extra)
        need(extra, "this")
        with monkeypatch.context() as without:
            without.setitem(sys.modules, libraries[0], None)
            assert not has(extra)
            with pytest.raises(UsageProblem, match=rf"this needs {libraries[0]}.*") as found:
                need(extra, "this")
            assert f"pip install 'zodiacedge[{extra}]'" in str(found.value)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("name", "extra"),
    [("a.ttl", "rdf"), ("a.nt.zst", "compression"), ("reading=a.parquet", "tables")],
)
def test_a_file_that_needs_a_library_says_so(tmp_path: Path, name: str, extra: str) -> None:
    relation, _, file = name.rpartition("=")
    (tmp_path / file).write_bytes(b"<a> <b> <c> .\n")
    path = f"{relation}={tmp_path / file}" if relation else str(tmp_path / file)
    with ze.open() as kb, pytest.raises(UsageProblem) as found, kb.change() as c:
        c.load(path)
    assert [d.code for d in found.value.diagnostics] == ["U007"]
    assert f"zodiacedge[{extra}]" in str(found.value)


@pytest.mark.usefixtures("bare")
def test_a_store_that_needs_a_library_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match=r"a store needs pyarrow and deltalake"):
        ze.open(tmp_path / "s", create=True)
    with ze.open() as kb, pytest.raises(UsageProblem, match=r"zodiacedge\[store\]"):
        kb.export_slice(tmp_path / "s", "p(X)")
    assert not (tmp_path / "s").exists()


def test_a_command_that_needs_a_library_says_so() -> None:
    done = run("sys.argv = ['zodiac', 'stats', 'farm.zodiac']\nfrom zodiacedge.cli import main\nmain()")
    assert done.returncode == 1
    assert done.stderr.startswith("error U007: zodiac stats needs pyarrow and deltalake")
    assert "pip install 'zodiacedge[store]'" in done.stderr


def test_a_program_in_memory_needs_no_extra(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("".join(f'<http://a/{n}> <http://p> "v {n}" .\n' for n in range(3000)))
    (tmp_path / "r.csv").write_text("".join(f"{n},{n / 2}\n" for n in range(50)))
    done = run(
        f"""
import zodiacedge as ze
kb = ze.open()
with kb.change() as c:
    c.add_rules('long(X, Y) :- <http://p>(X, V), concat("a ", V) = Y .')
    c.load({str(tmp_path / "a.nt")!r}, {str(tmp_path / "r.csv")!r})
    c.add_facts([("reading", ze.iri("wt1"), 5)])
answers = kb.query("?- long(X, Y) .")
assert len(answers) == 3000 and answers.rows == tuple(sorted(answers.rows, key=str)), answers
assert kb.verify("reference").ok
with kb.change() as c:
    c.remove_facts([("reading", ze.iri("wt1"), 5)])
print(kb.explain('long(<http://a/1>, "a v 1")').complete)
"""
    )
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


def test_a_shell_in_memory_needs_no_extra(tmp_path: Path) -> None:
    (tmp_path / "farm.rules").write_text("hot(X) :- reading(X, C), C > 80 .\nreading(wt1, 93) .\n")
    shell = f"""
import io
sys.stdin = io.StringIO("hot(X)\\n+ reading(wt2, 99) .\\n.explain hot(wt2)\\n")
sys.argv = ['zodiac', 'shell', {str(tmp_path / "farm.rules")!r}]
from zodiacedge.cli import main
main()
"""
    done = run(shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("X\nwt1\n1 row\n")
    assert "reading(wt2, 99)  explicit" in done.stdout


def test_opening_in_memory_loads_no_optional_library() -> None:
    script = f"""
import sys, zodiacedge as ze
kb = ze.open()
with kb.change() as c:
    c.add_rules("p(X) :- q(X, Y) .  q(a, b) .")
assert kb.query("?- p(X) .")
print(*sorted(set({OPTIONAL!r}) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
