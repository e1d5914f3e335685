"""What the commands that change a store share: waiting, limits, bad lines; and whole rule files."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

RULES = "near: near(X, Y) :- near(Y, X) .  hot: hot(T) :- reading(T, C), C > 80 .  reading(wt1, 90) ."
REACHED = "reached(Y) :- reached(X), edge(X, Y) .  reached(0) .\n"


@pytest.fixture
def farm(zodiac: Zodiac, save: Save) -> str:
    """A store with two rules and a fact."""
    save("farm.rules", RULES)
    save("reading.csv", "<wt2>,95\n")
    assert zodiac("init", "farm", "--rules", "farm.rules").code == 0
    return "farm"


COMMANDS = [
    ("apply", "--add-facts", "reading.csv"),
    ("rollback", "0"),
    ("vacuum",),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_busy_store_has_an_exit_code_of_its_own(
    zodiac: Zodiac, farm: str, command: tuple[str, ...]
) -> None:
    with ze.open(farm):
        name, *rest = command
        done = zodiac(name, farm, *rest)
        assert done.code == 3
        assert "error D003" in done.err
        assert zodiac(name, farm, *rest, "--wait", "0.2").code == 3
        assert zodiac("query", farm, "?- hot(T) .").code == 0


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("wait", [("--wait",), ("--wait", "60")], ids=["as long as it takes", "a minute"])
def test_a_command_waits_for_the_writer(
    zodiac: Zodiac, farm: str, command: tuple[str, ...], wait: tuple[str, ...]
) -> None:
    writer = ze.open(farm)
    threading.Timer(0.3, writer.close).start()
    name, *rest = command
    assert zodiac(name, farm, *rest, *wait).code == 0


def test_a_change_of_a_store_has_limits(zodiac: Zodiac, save: Save) -> None:
    save("reached.rules", REACHED)
    save("edge.csv", "".join(f"{n},{n + 1}\n" for n in range(20)))
    assert zodiac("init", "reached", "--rules", "reached.rules").code == 0
    for limit in (("--max-facts", "10"), ("--max-rounds", "3"), ("--max-seconds", "0")):
        done = zodiac("apply", "reached", "--add-facts", "edge.csv", *limit)
        assert (done.code, "E001" in done.err) == (1, True), (limit, done.err)
        done = zodiac("init", "other", "--rules", "reached.rules", "--facts", "edge.csv", *limit)
        assert (done.code, "E001" in done.err) == (1, True), (limit, done.err)
    assert zodiac("apply", "reached", "--add-facts", "edge.csv").code == 0
    assert zodiac("rollback", "reached", "0").code == 0
    done = zodiac("rollback", "reached", "2", "--max-facts", "10")
    assert (done.code, "E001" in done.err) == (1, True)


def test_bad_lines_of_a_change_go_to_a_folder(zodiac: Zodiac, save: Save, farm: str, folder: Path) -> None:
    save("mixed/reading.csv", "<wt3>,99\nbad\n")
    assert zodiac("apply", farm, "--add-facts", "mixed/reading.csv", "--quarantine", "bad").code == 0
    (path,) = (folder / "bad").iterdir()
    assert "mixed/reading.csv" in path.read_text()
    assert zodiac("init", "new", "--facts", "mixed/reading.csv", "--quarantine", "bad2").code == 0
    assert len(list((folder / "bad2").iterdir())) == 1


def test_sync_makes_the_rules_those_of_a_file(zodiac: Zodiac, save: Save, farm: str) -> None:
    save("new.rules", "hot: hot(T) :- reading(T, C), C > 99 .  cold: cold(T) :- reading(T, C), C < 5 .")
    dry = zodiac("apply", farm, "--sync", "new.rules", "--dry-run")
    assert dry.err == ""
    assert dry.out.splitlines()[5:-1] == [
        "+ hot: hot(T) :- reading(T, C), C > 99 .",
        "+ cold: cold(T) :- reading(T, C), C < 5 .",
        "- near: near(X, Y) :- near(Y, X) .",
        "- hot: hot(T) :- reading(T, C), C > 80 .",
        "predicate  inserted  deleted",
        "hot              +0       -1",
        "- hot(wt1)  was by hot, which is removed",
        "touched: near; hot; hot; cold",
    ]
    assert zodiac("apply", farm, "--sync", "new.rules", "--json").document["version_after"] == 2
    assert {rule.split(":")[0] for rule in zodiac("rules", farm).out.splitlines()} == {"hot", "cold"}
    again = zodiac("apply", farm, "--sync", "new.rules")
    assert again.out.startswith("version 2 (nothing changed)")
    assert again.err == ""
    assert zodiac("query", farm, "?- reading(wt1, X) .").out.endswith("1 row\n")


def test_a_preview_says_what_samples_rest_on(zodiac: Zodiac, save: Save, farm: str, folder: Path) -> None:
    save(
        "more.rules",
        "@prefix ex: <http://e/> .\nwarm: ex:warm(T) :- hot(T), not ex:cool(T) .\nex:cool(wt9) .",
    )
    apply = ("apply", farm, "--add-rules", "more.rules", "--dry-run")
    done = zodiac(*apply, "--html", "preview.html")
    assert "+ ex:warm(wt1)  by warm from hot(wt1), no ex:cool(wt1)" in done.out
    assert "+ ex:cool(wt9)  a fact of the change" in done.out
    page = (folder / "preview.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert 'class="box marked"' in page
    assert "<code>ex:warm(wt1)</code>" in page
    assert "http://www.w3.org/2000/svg" in page
    assert "samples" in zodiac(*apply, "--json").document
    assert "by warm" not in zodiac(*apply, "--samples", "0").out
    assert zodiac("apply", farm, "--add-rules", "more.rules", "--html", "p.html").code == 2
    save("quiet.rules", "alarm: alarm(T) :- hot(T), not muted(T) .")
    assert zodiac("apply", farm, "--add-rules", "quiet.rules").code == 0
    save("mute.rules", "muted(wt1) .")
    muted = zodiac("apply", farm, "--add-rules", "mute.rules", "--dry-run")
    assert "- alarm(wt1)  was by alarm, and muted(wt1) comes" in muted.out
    gone = zodiac("apply", farm, "--remove-rules", "hot", "--dry-run")
    assert "- alarm(wt1)  was by alarm from hot(wt1), which goes" in gone.out


def test_sync_previews_and_gives_new_labels(zodiac: Zodiac, save: Save, farm: str) -> None:
    save("new.rules", "hot: near(X, Y) :- near(Y, X) .  warm: hot(T) :- reading(T, C), C > 80 .")
    dry = zodiac("apply", farm, "--sync", "new.rules", "--dry-run")
    assert dry.out.splitlines()[1:10] == [
        "rules: 0 added, 0 removed, 2 relabelled (near is hot, hot is warm)",
        "explicit facts: 0 added, 0 removed",
        "visible facts: none",
        "visited: 0 hyper-nodes",
        "+ hot: near(X, Y) :- near(Y, X) .",
        "+ warm: hot(T) :- reading(T, C), C > 80 .",
        "- near: near(X, Y) :- near(Y, X) .",
        "- hot: hot(T) :- reading(T, C), C > 80 .",
        "no fact was inserted or deleted",
    ]
    assert zodiac("apply", farm, "--sync", "new.rules").code == 0
    assert {rule.split(":")[0] for rule in zodiac("rules", farm).out.splitlines()} == {"hot", "warm"}
    save("base.rules", "base: hot(T) :- reading(T, C), C > 80 .  fine: fine(T) :- hot(T), not bad(T) .")
    assert zodiac("apply", farm, "--sync", "base.rules").code == 0
    save("next.rules", "fine(T) :- hot(T), not bad(T) .  base: hot(T) :- reading(T, C), C > 80 .  bad(wt1) .")
    lost = zodiac("apply", farm, "--sync", "next.rules", "--dry-run").out
    assert "- fine(wt1)  was by fine, and bad(wt1) comes" in lost
    assert zodiac("apply", farm, "--sync", "base.rules").out.startswith("version 3 (nothing changed)")


def test_a_large_change_has_samples_too(
    zodiac: Zodiac, save: Save, farm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zodiacedge.kb.preview.samples._MOST_LISTED", 0)
    save("more.rules", "warm: warm(T) :- hot(T) .")
    done = zodiac("apply", farm, "--add-rules", "more.rules", "--dry-run")
    assert "+ warm(wt1)  by warm from hot(wt1)" in done.out
    done = zodiac("apply", farm, "--remove-rules", "hot", "--dry-run")
    assert "- hot(wt1)  was by hot, which is removed" in done.out


def test_a_rule_replaces_the_one_of_its_label(zodiac: Zodiac, save: Save, farm: str) -> None:
    save("hot.rules", "hot: hot(T) :- reading(T, C), C > 99 .")
    refused = zodiac("apply", farm, "--add-rules", "hot.rules")
    assert (refused.code, "error C" in refused.err) == (1, True)
    assert zodiac("apply", farm, "--add-rules", "hot.rules", "--replace").code == 0
    assert zodiac("rules", farm).out.splitlines() == [
        "near: near(X, Y) :- near(Y, X) .",
        "hot: hot(T) :- reading(T, C), C > 99 .",
    ]
    again = zodiac("apply", farm, "--add-rules", "hot.rules", "--replace")
    assert (again.err, again.out[:27]) == ("", "version 2 (nothing changed)")


@pytest.mark.parametrize(
    "options",
    [("--sync", "farm.rules", "--add-rules", "farm.rules"), ("--replace", "--add-facts", "reading.csv")],
)
def test_what_makes_no_sense_together_is_refused(zodiac: Zodiac, farm: str, options: tuple[str, ...]) -> None:
    assert zodiac("apply", farm, *options).code == 2


def test_changes_that_would_lose_rules_are_refused(zodiac: Zodiac, save: Save, farm: str) -> None:
    before = zodiac("rules", farm).out
    save("same.rules", "hot: near(A, B) :- near(B, A) .")
    replaced = zodiac("apply", farm, "--add-rules", "same.rules", "--replace")
    assert (replaced.code, "error C015" in replaced.err, "remove near in the same" in replaced.err) == (
        1,
        True,
        True,
    )
    save("empty.rules", "# no rules\n")
    synced = zodiac("apply", farm, "--sync", "empty.rules")
    assert (synced.code, "error C016" in synced.err) == (1, True)
    assert zodiac("rules", farm).out == before
