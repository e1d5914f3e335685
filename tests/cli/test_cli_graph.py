"""`zodiac graph`, and what all commands share."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from zodiacedge.cli import app
from zodiacedge_bench.workloads.paper import rule_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
RULES = "r1: p(X) :- q(X), not s(X) .\nr2: s(X) :- t(X) .\nr3: t(X) :- t(X), u(X) .\n"


@pytest.fixture
def rules(save: Save) -> None:
    save("a.rules", RULES)


@pytest.mark.usefixtures("rules")
def test_text_is_what_one_gets(zodiac: Zodiac) -> None:
    done = zodiac("graph", "a.rules")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("3 rules in 3 hyper-nodes, 2 edges, 1 of them negative\n")
    for label in ("r1: p(X)", "r2: s(X)", "r3: t(X)"):
        assert label in done.out
    assert done.out == zodiac("graph", "a.rules", "--format", "text").out


@pytest.mark.usefixtures("rules")
def test_json_is_one_document_however_it_is_asked_for(zodiac: Zodiac) -> None:
    document = zodiac("graph", "a.rules", "--json").document
    assert document["format"] == "zodiacedge-graph"
    assert document["rules"] == 3
    assert zodiac("graph", "a.rules", "--format", "json").document == document
    assert zodiac("graph", "a.rules", "--format", "json", "--json").document == document


@pytest.mark.usefixtures("rules")
def test_dot_and_svg(zodiac: Zodiac) -> None:
    assert zodiac("graph", "a.rules", "--format", "dot").out.startswith("digraph ")
    picture = ET.fromstring(zodiac("graph", "a.rules", "--format", "svg").out)  # noqa: S314 - our own
    assert picture.tag == f"{SVG}svg"


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("g.svg", "<svg "),
        ("g.dot", "digraph "),
        ("g.json", "{"),
        ("g.txt", "3 rules"),
        ("new/g.SVG", "<svg "),
    ],
)
@pytest.mark.usefixtures("rules")
def test_the_name_of_the_file_says_the_format(zodiac: Zodiac, folder: Path, name: str, start: str) -> None:
    done = zodiac("graph", "a.rules", "--out", name)
    assert (done.code, done.out) == (0, f"wrote {name}: 3 hyper-nodes of 3 rules\n")
    assert (folder / name).read_text(encoding="utf-8").startswith(start)


@pytest.mark.usefixtures("rules")
def test_a_picture_beside_the_json(zodiac: Zodiac, folder: Path) -> None:
    done = zodiac("graph", "a.rules", "--json", "--format", "svg", "--out", "picture")
    assert done.document["rules"] == 3
    assert (folder / "picture").read_text(encoding="utf-8").startswith("<svg ")


@pytest.mark.usefixtures("rules")
def test_two_things_cannot_both_go_to_standard_output(zodiac: Zodiac) -> None:
    done = zodiac("graph", "a.rules", "--json", "--format", "svg")
    assert (done.code, done.out) == (2, "")
    assert "add --out FILE" in done.err


@pytest.mark.usefixtures("rules")
def test_a_file_that_cannot_be_written_is_said(zodiac: Zodiac, folder: Path) -> None:
    (folder / "there").mkdir()
    done = zodiac("graph", "a.rules", "--out", "there")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error U005: there cannot be written: Is a directory")
    assert "error U005" in zodiac("graph", "a.rules", "--out", "a.rules/g.svg").err


def test_broken_rules_have_no_graph(zodiac: Zodiac, save: Save) -> None:
    save("bad.rules", "p(X) :- q(X), not p(X) .\n")
    done = zodiac("graph", "bad.rules", "--json")
    assert done.code == 1
    assert done.document["errors"] == 1
    assert "error G001" in done.err


def test_no_rules_are_a_graph_too(zodiac: Zodiac, save: Save) -> None:
    save("empty.rules", "")
    for form in ("text", "dot", "svg", "json"):
        done = zodiac("graph", "empty.rules", "--format", form)
        assert (done.code, done.err) == (0, "")


def test_the_rule_sets_of_the_paper(zodiac: Zodiac, save: Save) -> None:
    for number, nodes in ((1, 5), (2, 14), (3, 14)):
        save("rs.rules", rule_set(number))
        found = zodiac("graph", "rs.rules", "--json").document["nodes"]
        assert isinstance(found, list)
        assert len(found) == nodes


def test_the_picture_of_the_readme_is_what_the_command_draws(zodiac: Zodiac) -> None:
    def words(picture: str) -> list[str]:
        return ["".join(text.itertext()) for text in ET.fromstring(picture).iter(f"{SVG}text")]  # noqa: S314

    drawn = zodiac(
        "graph", str(ROOT / "bench/zodiacedge_bench/workloads/rules/rs2.rules"), "--format", "svg"
    ).out
    kept = (ROOT / "docs/images/rule-graph.svg").read_text(encoding="utf-8")
    again = "zodiac graph bench/zodiacedge_bench/workloads/rules/rs2.rules --out docs/images/rule-graph.svg"
    assert words(kept) == words(drawn), f"draw it again: {again}"
    assert again in (ROOT / "README.md").read_text(encoding="utf-8")


def commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield all commands, and those within them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)


COMMANDS = dict(commands(app.zodiac))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(zodiac: Zodiac, path: tuple[str, ...]) -> None:
    done = zodiac(*path, "--help")
    assert done.code == 0
    assert f"\n  Example:\n    zodiac {' '.join(path)}" in done.out
    if not isinstance(COMMANDS[path], click.Group):
        assert "--json" in done.out
        assert "--debug" in done.out


def test_the_group_lists_all_commands(zodiac: Zodiac) -> None:
    done = zodiac("--help")
    assert done.code == 0
    for command, *within in COMMANDS:
        assert within or f"\n  {command} " in done.out
    assert zodiac().code == 2
    assert zodiac("--version").out.startswith("zodiac, version ")


def test_json_is_readable_as_written(zodiac: Zodiac, save: Save) -> None:
    save("ü.rules", 'p("größer") .\n')
    done = zodiac("run", "ü.rules", "--query", "?- p(X) .", "--json")
    assert "größer" in done.out
    assert json.loads(done.out)["queries"][0]["rows"] == [['"größer"']]


def test_an_unknown_ending_is_a_usage_error(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", "p(X) :- q(X) .\n")
    done = zodiac("graph", "a.rules", "--out", "a.pdf")
    assert (done.code, done.out) == (2, "")
    assert "a.pdf ends in no known format" in done.err


def test_the_plans_of_no_rules_are_no_plans(zodiac: Zodiac, save: Save) -> None:
    save("facts.rules", "p(a) .\n")
    assert zodiac("plan", "facts.rules").code == 0
    assert zodiac("plan", "facts.rules", "--json").document == {"plans": []}
    assert "error U006: there is no rule r1" in zodiac("plan", "facts.rules", "--rule", "r1").err
