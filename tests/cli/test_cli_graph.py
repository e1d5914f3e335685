"""`zodiac graph`, and what all commands share."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
        ("g.html", "<!doctype html>"),
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
    for form in ("text", "dot", "svg", "html", "json"):
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


def nodes_of(done: Done) -> list[dict[str, Any]]:
    nodes = done.document["nodes"]
    assert isinstance(nodes, list)
    return nodes


def node_names(done: Done) -> list[str]:
    return [rule["label"] for node in nodes_of(done) for rule in node["rules"]]


@pytest.mark.usefixtures("rules")
def test_with_facts_nodes_and_predicates_have_counts(zodiac: Zodiac, save: Save) -> None:
    save("t.csv", "<a>\n<b>\n")
    done = zodiac("graph", "a.rules", "--facts", "t=t.csv")
    assert done.code == 0
    assert "s/1   2 facts\n" in done.out
    assert "  t/1           2        0\n" in done.out
    sizes = {n["rules"][0]["label"]: n["size"] for n in nodes_of(zodiac("graph", "a.rules", "--json"))}
    assert sizes == {"r1": None, "r2": None, "r3": None}


@pytest.mark.usefixtures("rules")
def test_the_graph_of_a_store_has_its_rules_and_counts(zodiac: Zodiac, save: Save) -> None:
    save("t.csv", "<a>\n<b>\n")
    assert zodiac("init", "farm.zodiac", "--rules", "a.rules", "--facts", "t=t.csv").code == 0
    of_files = zodiac("graph", "a.rules", "--facts", "t=t.csv")
    assert zodiac("graph", "farm.zodiac").out == of_files.out
    assert zodiac("apply", "farm.zodiac", "--remove-rules", "r1").code == 0
    assert node_names(zodiac("graph", "farm.zodiac", "--json")) == ["r3", "r2"]
    assert node_names(zodiac("graph", "farm.zodiac", "--json", "--at", "1")) == ["r3", "r2", "r1"]


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("farm.zodiac", "a.rules"), "farm.zodiac is a store: name it alone"),
        (("farm.zodiac", "--facts", "t=t.csv"), "leave out --facts"),
        (("a.rules", "--at", "1"), "--at names a version of a store"),
        (("a.rules", "--depth", "2"), "--depth is a distance from"),
    ],
)
def test_what_does_not_go_together_is_a_usage_error(
    zodiac: Zodiac, arguments: tuple[str, ...], problem: str
) -> None:
    assert zodiac("init", "farm.zodiac", "--rules", "a.rules").code == 0
    done = zodiac("graph", *arguments)
    assert (done.code, done.out) == (2, "")
    assert problem in done.err


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("--around", "r1"), {"r1", "r2"}),
        (("--around", "r1", "--depth", "0"), {"r1"}),
        (("--around", "r1", "--depth", "2"), {"r1", "r2", "r3"}),
        (("--around", "hn1"), {"r2", "r3"}),
        (("--predicate", "u"), {"r3"}),
        (("--predicate", "s/1"), {"r1", "r2"}),
        (("--predicate", "u", "--depth", "1"), {"r2", "r3"}),
        (("--predicate", "q", "--around", "r3", "--depth", "0"), {"r1", "r3"}),
    ],
)
def test_a_part_of_the_graph(zodiac: Zodiac, arguments: tuple[str, ...], shown: set[str]) -> None:
    assert set(node_names(zodiac("graph", "a.rules", "--json", *arguments))) == shown


@pytest.mark.usefixtures("rules")
def test_a_part_in_a_file_is_counted(zodiac: Zodiac) -> None:
    done = zodiac("graph", "a.rules", "--around", "r1", "--out", "part.svg")
    assert done.out == "wrote part.svg: 2 hyper-nodes of 2 rules\n"


@pytest.mark.usefixtures("rules")
def test_a_part_that_is_not_there_is_an_error_with_a_suggestion(zodiac: Zodiac, save: Save) -> None:
    assert "error U006: there is no rule r9" in zodiac("graph", "a.rules", "--around", "r9").err
    save("b.rules", "@prefix ex: <http://e/> . ex:alarm(X) :- ex:reading(X, C), C > 80 .\n")
    done = zodiac("graph", "b.rules", "--predicate", "ex:alram")
    assert done.code == 1
    assert "error U006: no rule has the predicate ex:alram" in done.err
    assert "did you mean ex:alarm?" in done.err


def test_names_have_the_prefixes_of_the_program_or_store(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", "@prefix ex: <http://e/> . ex:p(X, Y) :- ex:q(X, Y) .\n")
    assert zodiac("init", "a.zodiac", "--rules", "a.rules").code == 0
    for program in ("a.rules", "a.zodiac"):
        assert "ex:p(X, Y) :- ex:q(X, Y) ." in zodiac("graph", program).out
        assert "match ex:q(X, Y) by scan" in zodiac("plan", program).out
        assert "ex:p" in zodiac("graph", program, "--format", "html").out
        # Programs read names in full.
        (node,) = nodes_of(zodiac("graph", program, "--json"))
        assert node["defines"] == ["<http://e/p>/2"]
        assert nodes_of(zodiac("graph", program, "--format", "json")) == [node]
        assert "match <http://e/q>(X, Y) by scan" in zodiac("plan", program, "--json").out


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
    assert json.loads(done.out)["queries"][0]["rows"] == [["größer"]]


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
