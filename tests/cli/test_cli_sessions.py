"""`zodiac run --apply`: sessions played on what was derived, their reports, and wrong ones."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from zodiacedge.engine.select import ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

FARM = """\
hot:   hot(T) :- reading(T, C), C > 80 .
alarm: alarm(T) :- hot(T), not muted(T) .
reading(wt1, 93) .
muted(wt2) .
"""
COOLER = """\
# wt1 cools down, and wt2 warms up.
begin
- reading(wt1, 93) .
+ reading(wt1, 60) .
+ reading(wt2, 85) .
commit
- reading(wt1, 93) .
+ reading(wt1, 60) .
+ reading(wt2, 85) .
- hot(wt1) .
+ hot(wt2) .
- alarm(wt1) .
"""
LOUDER = """\
begin
- alarm
+ alarm: alarm(T) :- hot(T) .
commit
+ alarm(wt2) .
"""


@pytest.fixture(autouse=True)
def farm(save: Save) -> None:
    save("farm.rules", FARM)
    save("cooler.session", COOLER)
    save("louder.session", LOUDER)


def without_times(text: str) -> str:
    text = re.sub(r"[0-9]+\.[0-9]{3} s$", "0.000 s", text, flags=re.MULTILINE)
    return re.sub(r"^visited: .*$", "visited: some", text, flags=re.MULTILINE)


def entries(done: Done, name: str = "changes") -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(done.out)[name]
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_each_change_is_reported_and_the_end_is_shown(zodiac: Zodiac, engine: str) -> None:
    done = zodiac(
        *("run", "farm.rules", "--engine", engine, "--query", "?- alarm(T) ."),
        *("--apply", "cooler.session", "--apply", "louder.session"),
    )
    assert (done.code, done.err) == (0, "")
    assert (
        without_times(done.out)
        == """\
predicate  derived
alarm            1
hot              1
2 explicit facts, 2 derived facts, 2 hyper-nodes, 0.000 s

cooler.session:2
version 1 to 2 in 0.000 s
rules: 0 added, 0 removed
explicit facts: 2 added, 1 removed
visible facts: +3 -3 (reading +2 -1, hot +1 -1, alarm -1)
visited: some

louder.session:1
version 2 to 3 in 0.000 s
rules: 1 added (alarm), 1 removed (alarm)
explicit facts: 0 added, 0 removed
visible facts: +1 (alarm +1)
visited: some

predicate  derived
alarm            1
hot              1
3 explicit facts, 2 derived facts, 2 hyper-nodes

?- alarm(T) .
T
wt2
1 row
"""
    )


def test_the_json_document_lists_the_reports(zodiac: Zodiac) -> None:
    done = zodiac("run", "farm.rules", "--apply", "cooler.session", "--apply", "louder.session", "--json")
    assert (done.code, done.err) == (0, "")
    document = done.document
    first, second = entries(done)
    assert (first["file"], first["line"]) == ("cooler.session", 2)
    assert first["inserted"] == {"hot": 1, "reading": 2}
    assert first["deleted"] == {"alarm": 1, "hot": 1, "reading": 1}
    assert (second["version_before"], second["version_after"]) == (2, 3)
    assert second["rules_added"] == ["alarm: alarm(T) :- hot(T) ."]
    assert document["shortfalls"] == []
    assert document["explicit"] == 3
    assert document["derived"] == {"alarm": 1, "hot": 1}


def test_without_a_session_the_document_has_no_changes(zodiac: Zodiac) -> None:
    assert not {"changes", "shortfalls"} & set(zodiac("run", "farm.rules", "--json").document)


WRONG = """\
begin
+ reading(wt3, 99) .
commit
+ reading(wt3, 99) .
+ hot(wt3) .
+ hot(wt4) .
count hot 2
count alarm 7

begin
+ reading(wt4, 99) .
refuse C001

begin
- reading(wt3, 99) .
commit none
"""


def test_what_does_not_hold_is_told_with_its_line_and_the_session_goes_on(
    zodiac: Zodiac, save: Save, folder: Path
) -> None:
    save("wrong.session", WRONG)
    done = zodiac("run", "farm.rules", "--apply", "wrong.session", "--out", "results")
    assert done.code == 1
    assert [line for line in done.err.splitlines() if "S002" in line] == [
        "wrong.session:6:1: error S002: missing: + hot(wt4)",
        "wrong.session:3:1: error S002: not expected: + alarm(wt3)",
        "wrong.session:8:1: error S002: alarm has 2 facts, expected 7",
        "wrong.session:12:1: error S002: committed, expected to be refused with C001",
        "wrong.session:16:1: error S002: not expected: - alarm(wt3)",
        "wrong.session:16:1: error S002: not expected: - hot(wt3)",
        "wrong.session:16:1: error S002: not expected: - reading(wt3, 99)",
    ]
    assert done.out.count("\nversion ") == 3
    assert (folder / "results" / "alarm.csv").read_text() == "<wt1>\n<wt4>\n"


def test_what_does_not_hold_is_in_the_json_document(zodiac: Zodiac, save: Save) -> None:
    save("wrong.session", WRONG)
    done = zodiac("run", "farm.rules", "--apply", "wrong.session", "--json")
    assert done.code == 1
    shortfalls = entries(done, "shortfalls")
    assert [(one["code"], one["file"], one["line"]) for one in shortfalls[:2]] == [
        ("S002", "wrong.session", 6),
        ("S002", "wrong.session", 3),
    ]
    assert len(shortfalls) == 7


REFUSED = f"""\
{COOLER}
begin
- muted(wt2) .
+ bad: loud(T, L) :- hot(T) .
commit

begin
+ muted(wt9) .
commit none
"""


def test_a_refused_change_ends_the_run(zodiac: Zodiac, save: Save, folder: Path) -> None:
    save("refused.session", REFUSED)
    done = zodiac(
        *("run", "farm.rules", "--apply", "refused.session", "--query", "?- alarm(T) ."),
        *("--out", "results"),
    )
    assert done.code == 1
    assert "refused.session:16:8: error C001: L in the head is bound by nothing" in done.err
    assert "refused.session:17:1: error S002: refused with C001, expected not at all" in done.err
    assert done.out.endswith("\n\nrefused.session:14\nrefused, nothing changed\n")
    assert not (folder / "results").exists()


def test_a_refused_change_ends_the_json_run(zodiac: Zodiac, save: Save) -> None:
    save("refused.session", REFUSED)
    done = zodiac("run", "farm.rules", "--apply", "refused.session", "--json")
    assert done.code == 1
    assert done.document["errors"] == 2
    assert [one["code"] for one in entries(done, "diagnostics")] == ["C001", "S002"]
    assert len(entries(done)) == 1


def test_a_change_that_is_refused_as_expected_changes_nothing(zodiac: Zodiac, save: Save) -> None:
    save(
        "refused.session",
        "begin\n- muted(wt2) .\n+ loud(T, L) :- hot(T) .\nrefuse C001\ncount muted 1\n"
        "begin\n+ hot(a, b, c) .\nrefuse C011\n",
    )
    done = zodiac("run", "farm.rules", "--apply", "refused.session", "--query", "?- muted(T) .")
    assert (done.code, done.err) == (0, "")
    assert "\nrefused.session:1\nrefused with C001 as expected, nothing changed\n" in done.out
    assert "\nrefused.session:6\nrefused with C011 as expected, nothing changed\n" in done.out
    assert done.out.endswith("T\nwt2\n1 row\n")
    done = zodiac("run", "farm.rules", "--apply", "refused.session", "--json")
    assert [one["refused"] for one in entries(done)] == [["C001"], ["C011"]]
    # A fact that a session states is shown where it stands.
    assert json.loads(done.out)["changes"][1]["diagnostics"][0]["line"] == 7


def test_a_change_that_is_refused_for_another_reason_ends_the_run(zodiac: Zodiac, save: Save) -> None:
    save("refused.session", "begin\n+ loud(T, L) :- hot(T) .\nrefuse G001\nbegin\ncommit none\n")
    done = zodiac("run", "farm.rules", "--apply", "refused.session")
    assert done.code == 1
    assert "refused.session:3:1: error S002: refused with C001, expected with G001" in done.err
    assert "refused.session:4" not in done.out


def test_a_limit_refuses_a_change(zodiac: Zodiac, save: Save) -> None:
    save(
        "endless.session",
        "begin\n+ reading(wt1, C) :- reading(wt1, D), C := D + 1 .\nrefuse E001\ncount hot 1\n",
    )
    done = zodiac("run", "farm.rules", "--apply", "endless.session", "--max-facts", "50")
    assert done.code == 0
    assert "endless.session:2:39: warning W025" in done.err


def test_wrong_sessions_are_all_reported_before_the_work_starts(zodiac: Zodiac, save: Save) -> None:
    save("a.session", "begin\nadd p(a) .\ncommit\n")
    save("b.session", "begin\n+ p(a .\ncommit\n")
    done = zodiac("run", "farm.rules", "--apply", "a.session", "--apply", "b.session")
    assert (done.code, done.out) == (1, "")
    assert "a.session:2:1: error S001" in done.err
    assert "b.session:2:7: error L001" in done.err


def test_a_session_that_is_not_there_is_told(zodiac: Zodiac) -> None:
    done = zodiac("run", "farm.rules", "--apply", "nowhere.session")
    assert (done.code, done.out) == (1, "")
    assert "error U004: there is no file nowhere.session" in done.err


def test_folders_and_globs_name_sessions_in_order(zodiac: Zodiac, save: Save) -> None:
    save("night/1.session", COOLER)
    save("night/2.session", LOUDER)
    save("night/notes.txt", "not a session")
    for name in ("night", "night/*.session"):
        done = zodiac("run", "farm.rules", "--apply", name, "--json")
        assert done.code == 0
        assert [one["file"] for one in entries(done)] == ["night/1.session", "night/2.session"]


def test_a_session_that_is_named_twice_is_played_twice(zodiac: Zodiac, save: Save) -> None:
    save("more.session", "begin\n+ reading(wt5, 99) .\ncommit\n")
    done = zodiac("run", "farm.rules", *("--apply", "more.session") * 2, "--json")
    assert [one["facts_added"] for one in entries(done)] == [1, 0]


def test_a_session_may_use_the_prefixes_of_the_rules(zodiac: Zodiac, save: Save) -> None:
    save("ex.rules", "@prefix ex: <http://example.org/> .\nex:p(X) :- ex:q(X) .\n")
    save("ex.session", "begin\n+ ex:q(ex:a) .\ncommit\n+ ex:q(ex:a) .\n+ ex:p(ex:a) .\n")
    assert zodiac("run", "ex.rules", "--apply", "ex.session").code == 0
