"""`zodiac explain`, `zodiac why-not`, `zodiac run --explain`, `.explain` and `.why-not` of the shell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from zodiacedge.cli.app import zodiac as group

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

FARM = """@prefix ex: <http://example.org/> .
hot:   ex:hot(T) :- reading(T, C), C > 80 .
alarm: alarm(T) :- ex:hot(T), not muted(T) .
reading(wt1, 93) .  reading(wt2, 55) .  reading(wt3, 99) .  muted(wt3) .
"""
WHY_NOT = """hot(wt2) is not there
└─ hot with T = wt2, C = 55
   ├─ ✓ reading(wt2, 55)
   └─ ✗ C > 80 fails: 55 > 80

hot: ex:hot(T) :- reading(T, C), C > 80 .
"""


@pytest.fixture
def farm(zodiac: Zodiac, save: Save) -> str:
    """A rule file and a store of it."""
    save("farm.rules", FARM)
    assert zodiac("init", "farm", "--rules", "farm.rules").code == 0
    return "farm"


def test_explain_prints_a_tree_with_prefixes(zodiac: Zodiac, farm: str) -> None:
    done = zodiac("explain", farm, "alarm(wt1)")
    assert (done.code, done.err) == (0, "")
    tree, rules = done.out.split("\n\n")
    first, *rest = tree.splitlines()
    assert first == "alarm(wt1)  by alarm with T = wt1"
    assert rest[0] == "├─ ex:hot(wt1)  by hot with T = wt1, C = 93"
    assert rest[1].startswith("│  ├─ reading(wt1, 93)  ")
    assert rest[2:] == ["│  └─ C > 80: 93 > 80", "└─ no muted(wt1)"]
    assert rules.splitlines()[0] == "alarm: alarm(T) :- ex:hot(T), not muted(T) ."


def test_explain_takes_a_pattern_and_a_limit(zodiac: Zodiac, farm: str) -> None:
    done = zodiac("explain", farm, "ex:hot(X)", "--limit", "1", "--depth", "0")
    assert "ex:hot(wt1)  by hot with T = wt1, C = 93  … 1 fact folded\n" in done.out
    assert done.out.endswith("Further facts match; the first 1 are explained.\n")


@pytest.mark.parametrize("command", ["explain", "why-not"])
@pytest.mark.parametrize(
    ("ending", "start"),
    [("html", "<!doctype html>"), ("svg", "<svg"), ("md", "- "), ("json", "{"), ("txt", "")],
)
def test_the_extension_is_the_form(zodiac: Zodiac, farm: str, command: str, ending: str, start: str) -> None:
    fact = "alarm(wt1)" if command == "explain" else "alarm(wt2)"
    done = zodiac(command, farm, fact, "--out", f"why.{ending}")
    assert (done.code, done.out) == (0, f"wrote why.{ending}\n")
    text = Path(f"why.{ending}").read_text(encoding="utf-8")
    assert text.startswith(start)
    assert "alarm" in text


def test_json_is_the_document(zodiac: Zodiac, farm: str) -> None:
    document = zodiac("explain", farm, "alarm(wt1)", "--json").document
    assert document["kind"] == "proof"
    assert zodiac("explain", farm, "alarm(wt1)", "--format", "json").document == document
    assert zodiac("why-not", farm, "alarm(wt2)", "--json").document["asked"] == "alarm(wt2)"


def test_why_not_prints_what_fails(zodiac: Zodiac, farm: str) -> None:
    assert zodiac("why-not", farm, "ex:hot(wt2)").out == f"ex:{WHY_NOT}"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("explain", "farm", "alarm(wt2)"), 1, "zodiac why-not says why"),
        (("why-not", "farm", "alarm(wt1)"), 1, "zodiac explain says why"),
        (("explain", "farm", "alrm(wt1)"), 1, "did you mean alarm?"),
        (("explain", "farm", "alarm(wt1"), 1, "error L001"),
        (("explain", "farm", "alarm(wt1)", "--out", "why.pdf"), 2, "ends in no known form"),
        (("explain", "farm", "alarm(wt1)", "--json", "--format", "svg"), 2, "add --out FILE"),
        (("run", "farm.rules", "--explain", "alarm(wt2)"), 1, "--why-not says why"),
        (("run", "farm.rules", "--explain", "X > 3"), 1, "error X002"),
    ],
)
def test_mistakes_are_told(
    zodiac: Zodiac, farm: str, arguments: tuple[str, ...], code: int, message: str
) -> None:
    del farm
    done = zodiac(*arguments)
    assert done.code == code
    assert message in done.err


def test_run_explains_without_a_store(zodiac: Zodiac, farm: str) -> None:
    del farm
    arguments = ("run", "farm.rules", "--explain", "ex:hot(wt1)", "--why-not", "ex:hot(wt2)")
    done = zodiac(*arguments)
    assert "\n\nex:hot(wt1)  by hot with T = wt1, C = 93\n" in done.out
    assert done.out.endswith(f"\n\nex:{WHY_NOT}")
    explanations = zodiac(*arguments, "--json").document["explanations"]
    assert isinstance(explanations, list)
    assert [explanation["kind"] for explanation in explanations] == ["proof", "why-not"]


def test_the_shell_explains(farm: str) -> None:
    lines = ".explain ex:hot(wt1)\n.why-not ex:hot(wt2)\n.explain\n.why-not ex:hot(wt1)\n"
    done = CliRunner().invoke(group, ["shell", farm], input=lines)
    assert done.exit_code == 1
    assert done.stdout.startswith("ex:hot(wt1)  by hot with T = wt1, C = 93\n")
    assert done.stdout.endswith(f"\nex:{WHY_NOT}")
    assert ".explain what?" in done.stderr
    assert ".explain says why" in done.stderr


def test_why_changed_tells_the_versions_and_what_they_changed(zodiac: Zodiac, save: Save, farm: str) -> None:
    save("mute.rules", "muted(wt1) .\n")
    assert zodiac("apply", farm, "--add-rules", "mute.rules", "-m", "silence").code == 0
    done = zodiac("why-changed", farm, "alarm(wt1)")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "alarm(wt1) is not there since version 2"
    assert lines[1].startswith("├─ deleted at version 2, ")
    assert lines[1].endswith(": silence")
    assert lines[2:5] == [
        "│  ├─ + muted(wt1) .",
        "│  └─ the proof that it broke",
        "│     └─ alarm(wt1)  by alarm with T = wt1",
    ]
    assert "   ├─ + hot: ex:hot(T) :- reading(T, C), C > 80 ." in lines
    document = zodiac("why-changed", farm, "alarm(wt1)", "--json").document
    changes = document["changes"]
    assert isinstance(changes, list)
    assert [(change["version"], change["inserted"]) for change in changes] == [(2, False), (1, True)]
    assert changes[0]["edit"]["facts_added"] == [{"predicate": "muted", "args": ["<wt1>"]}]
    for ending in ("html", "svg", "md"):
        assert zodiac("why-changed", farm, "alarm(wt1)", "--out", f"why.{ending}").code == 0
        assert "deleted at version 2" in Path(f"why.{ending}").read_text(encoding="utf-8").replace(
            "</span>", ""
        )


def test_graph_marks_rules_and_predicates(zodiac: Zodiac, farm: str) -> None:
    del farm
    for name, marked in (("alarm", ["alarm"]), ("ex:hot/1", ["hot"])):
        nodes = zodiac("graph", "farm.rules", "--highlight", name, "--json").document["nodes"]
        assert isinstance(nodes, list)
        assert [node["rules"][0]["label"] for node in nodes if node["highlighted"]] == marked
    done = zodiac("graph", "farm.rules", "--highlight", "alrm")
    assert (done.code, "did you mean alarm?" in done.err) == (1, True)
