"""The forms of a query, and where commands take it from: the command line, files, standard input."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from zodiacedge.cli.app import zodiac as group

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

FILE = """# Which turbines are calm?
@prefix ex: <http://example.org/> .
?- ex:calm(T),
   not ex:muted(T) .
"""
FORMS = ["ex:calm(T)", "ex:calm(T) .", "?- ex:calm(T) .", "calm(T) :- ex:calm(T) ."]


@pytest.fixture
def farm(zodiac: Zodiac, save: Save) -> str:
    """A rule file and a store of it."""
    save("farm.rules", "@prefix ex: <http://example.org/> .\nex:calm(X) :- ex:t(X) .\nex:t(wt1) .\n")
    save("calm.query", FILE)
    assert zodiac("init", "farm", "--rules", "farm.rules").code == 0
    return "farm"


@pytest.mark.parametrize("query", FORMS)
def test_an_atom_is_a_query_wherever_one_is_taken(zodiac: Zodiac, farm: str, query: str) -> None:
    assert zodiac("query", farm, query).out == "T\nwt1\n1 row\n"
    assert zodiac("run", "farm.rules", "--query", query).out.endswith(f"\n{query}\nT\nwt1\n1 row\n")


@pytest.mark.parametrize("query", FORMS[:3])
def test_an_atom_is_a_slice(zodiac: Zodiac, farm: str, query: str) -> None:
    done = zodiac("export", farm, "--slice", query.replace("calm", "t"), "--out", "part")
    assert (done.code, done.out) == (0, "wrote 1 fact and 1 rule to part, 0 rules left behind\n")


def test_a_query_is_read_from_a_file(zodiac: Zodiac, farm: str) -> None:
    assert zodiac("query", farm, "--query-file", "calm.query").out == "T\nwt1\n1 row\n"
    done = zodiac("run", "farm.rules", "--query", "ex:t(X)", "--query-file", "calm.query")
    assert done.out.endswith(f"\n\nex:t(X)\nX\nwt1\n1 row\n\n{FILE}T\nwt1\n1 row\n")


def test_a_mistake_in_a_file_is_reported_with_its_place(zodiac: Zodiac, save: Save, farm: str) -> None:
    save("bad.query", "# A comment.\n?- ex:calm(T .\n")
    for command in (("query", farm), ("run", "farm.rules")):
        done = zodiac(*command, "--query-file", "bad.query")
        assert (done.code, done.out) == (1, "")
        assert "bad.query:2:14: error L001" in done.err


def test_a_file_holds_one_query(zodiac: Zodiac, save: Save, farm: str) -> None:
    save("two.query", "ex:calm(T) .\nex:t(T) .\n")
    done = zodiac("query", farm, "--query-file", "two.query")
    assert done.code == 1
    assert "two.query:2:1: error L001: expected the end" in done.err


def test_a_file_that_is_not_there(zodiac: Zodiac, farm: str) -> None:
    done = zodiac("query", farm, "--query-file", "nowhere.query")
    assert done.code == 1
    assert "error U004: there is no file nowhere.query" in done.err


@pytest.mark.parametrize("arguments", [(), ("ex:t(X)", "--query-file", "calm.query")])
def test_query_takes_one_query(zodiac: Zodiac, farm: str, arguments: tuple[str, ...]) -> None:
    done = zodiac("query", farm, *arguments)
    assert done.code == 2
    assert "Give one query: QUERY, or --query-file FILE." in done.err


@pytest.mark.parametrize("arguments", [("query", "farm", "-"), ("query", "farm", "--query-file", "-")])
@pytest.mark.usefixtures("farm")
def test_a_query_is_read_from_standard_input(folder: Path, arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "zodiacedge", *arguments]
    done = subprocess.run(command, input=FILE, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == "T\nwt1\n1 row\n"


@pytest.mark.usefixtures("farm")
def test_standard_input_is_read_once(zodiac: Zodiac) -> None:
    done = zodiac("run", "farm.rules", "--query", "-", "--query-file", "-")
    assert done.code == 2
    assert "Standard input can be read once" in done.err


def test_diagnostics_of_a_query_have_its_own_prefixes(zodiac: Zodiac, farm: str) -> None:
    query, message = "@prefix q: <http://q.org/> . q:p(X)", "unknown predicate q:p with 1 argument"
    assert message in CliRunner().invoke(group, ("shell", farm), input=f"{query}\n").stderr
    assert message in zodiac("run", "farm.rules", "--query", query).err
    assert message in zodiac("query", farm, query).err
    # They are not those of the next query.
    other = zodiac("run", "farm.rules", "--query", query, "--query", "<http://q.org/p>(X)").err
    assert "unknown predicate <http://q.org/p> with 1 argument" in other
