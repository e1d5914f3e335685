"""`zodiac check`: every finding of every file in one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

SIX_MISTAKES = """\
# six different mistakes
r1: p(X, Y) :- q(X) .
r2: big(X) :- size(X, N), N > foo(3) .
r3: s(X) :- q(X, "open) .
r4: alarm(T) :- hot(T), not silent(T) .
r4: silent(T) :- quiet(T) .
win(X) :- move(X, Y), not win(Y) .
ex:t(X) :- q(X) .
fine(X) :- q(X) .
"""
SIX_FINDINGS = """\
six.rules:2:5: error C001: Y in the head is bound by nothing
    2 | r1: p(X, Y) :- q(X) .
            ^^^^^^^
  = bind it in the body: in a positive atom, or with Y := expression
six.rules:3:31: error L016: foo is not a function
    3 | r2: big(X) :- size(X, N), N > foo(3) .
                                      ^^^
  = did you mean floor?
six.rules:4:18: error L019: a string that does not end
    4 | r3: s(X) :- q(X, "open) .
                         ^
  = close it with " on the same line
six.rules:6:1: error C010: the label r4 is in use
    6 | r4: silent(T) :- quiet(T) .
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
six.rules:5:1: first used here
    5 | r4: alarm(T) :- hot(T), not silent(T) .
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = choose another label; to replace the rule in force, --replace or replace=True
"""


def test_a_file_with_six_mistakes_gets_six_errors(zodiac: Zodiac, save: Save) -> None:
    save("six.rules", SIX_MISTAKES)
    done = zodiac("check", "six.rules")
    assert done.code == 1
    assert done.err.startswith(SIX_FINDINGS)
    shown = [line.split(":")[1:4] for line in done.err.splitlines() if ": error " in line]
    assert [(int(line), code.split()[1]) for line, _, code in shown] == [
        (2, "C001"),
        (3, "L016"),
        (4, "L019"),
        (6, "C010"),
        (7, "G001"),
        (8, "L018"),
    ]
    assert done.out == "1 file, 5 rules, 0 facts: 6 errors, 0 warnings\n"


def test_the_same_as_json(zodiac: Zodiac, save: Save) -> None:
    save("six.rules", SIX_MISTAKES)
    done = zodiac("check", "six.rules", "--json")
    assert done.code == 1
    document = done.document
    assert (document["errors"], document["warnings"]) == (6, 0)
    found = document["diagnostics"]
    assert isinstance(found, list)
    assert found[0] == {
        "code": "C001",
        "severity": "error",
        "message": "Y in the head is bound by nothing",
        "note": "bind it in the body: in a positive atom, or with Y := expression",
        "file": "six.rules",
        "line": 2,
        "column": 5,
    }


def test_a_good_program(zodiac: Zodiac, save: Save) -> None:
    save("ok.rules", "r1: p(X) :- q(X) .\nq(a) .\nq(b) .\n")
    done = zodiac("check", "ok.rules")
    assert (done.code, done.out, done.err) == (0, "1 file, 1 rule, 2 facts: 0 errors, 0 warnings\n", "")


def test_a_good_program_as_json(zodiac: Zodiac, save: Save) -> None:
    save("ok.rules", "r1: p(X) :- q(X) .\nq(a) .\n")
    assert zodiac("check", "ok.rules", "--json").document == {
        "files": ["ok.rules"],
        "rules": 1,
        "facts": 1,
        "hyper_nodes": 1,
        "errors": 0,
        "warnings": 0,
        "diagnostics": [],
    }


def test_a_warning_is_no_error(zodiac: Zodiac, save: Save) -> None:
    save("twice.rules", "p(X) :- q(X) .\np(Y) :- q(Y) .\n")
    done = zodiac("check", "twice.rules")
    assert done.code == 0
    assert "twice.rules:2:1: warning W002" in done.err
    assert "0 errors, 1 warning\n" in done.out


def test_a_warning_is_given_once_and_left_out_on_demand(zodiac: Zodiac, save: Save) -> None:
    save("once.rules", "p(X) :- q(X, Y) .\nq(a, b) .\n")
    for command in ("check", "run"):
        done = zodiac(command, "once.rules")
        assert done.err.count("warning W020") == 1
        done = zodiac(command, "once.rules", "--ignore", "W020", "--ignore", "W021")
        assert (done.code, done.err) == (0, "")
    assert "0 errors, 1 warning\n" in zodiac("check", "once.rules", "--ignore", "W021").out
    assert "0 errors, 0 warnings\n" in zodiac("check", "once.rules", "--ignore", "W020").out
    assert zodiac("run", "once.rules", "--json").document["warnings"] != []
    assert zodiac("run", "once.rules", "--json", "--ignore", "W020").document["warnings"] == []


def test_only_warnings_can_be_left_out(zodiac: Zodiac, save: Save) -> None:
    save("once.rules", "p(X) :- q(X, Y) .\n")
    done = zodiac("check", "once.rules", "--ignore", "C001")
    assert done.code == 2
    assert "C001 is not the code of a warning" in done.err


def test_an_empty_file_is_a_program(zodiac: Zodiac, save: Save) -> None:
    save("empty.rules", "")
    done = zodiac("check", "empty.rules")
    assert (done.code, done.out) == (0, "1 file, 0 rules, 0 facts: 0 errors, 0 warnings\n")


def test_a_byte_order_mark_is_passed_over(zodiac: Zodiac, folder: Path) -> None:
    (folder / "bom.rules").write_bytes(b"\xef\xbb\xbfp(a) .\n")
    assert zodiac("check", "bom.rules").code == 0


def test_files_folders_and_globs_are_one_program_each_file_once(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", "r1: p(X) :- q(X) .\n")
    save("more/b.rules", "r1: p(X) :- s(X) .\n")
    save("more/deep/c.rules", "q(a) .\n")
    done = zodiac("check", "a.rules", "more", "*.rules", "more/*.rules")
    assert done.code == 1
    assert "more/b.rules:1:1: error C010: the label r1 is in use" in done.err
    assert "a.rules:1:1: first used here" in done.err
    assert done.out.startswith("3 files, 2 rules, 1 fact: ")


def test_a_circle_over_two_files_is_found(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", "p(X) :- e(X), not q(X) .\n")
    save("b.rules", "q(X) :- p(X) .\n")
    assert "error G001" in zodiac("check", "a.rules", "b.rules").err
    assert zodiac("check", "a.rules").code == 0


def test_a_circle_is_found_beside_other_errors_but_not_through_broken_rules(
    zodiac: Zodiac, save: Save
) -> None:
    save("a.rules", "p(X, Y) :- e(X), not q(X) .\nq(X) :- p(X, Z) .\nw(X) :- e(X), not w(X) .\n")
    done = zodiac("check", "a.rules")
    assert done.err.count("error C001") == 1
    assert done.err.count("error G001") == 1
    assert "a.rules:3:" in done.err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.rules", "error U004: there is no file nowhere.rules"),
        ("empty", "error U004: the folder empty holds no .rules file"),
        ("*.nothing", "error U004: there is no file *.nothing"),
        ("farm.zodiac", "error U004: farm.zodiac is a store, not a program"),
        ("s3://plants/farm", "error U004: s3://plants/farm is an address, not a program"),
        ("binary.rules", "error U004: binary.rules is not UTF-8 text: byte 2 is 0xff"),
        (
            "cells.CSV",
            "error U004: cells.CSV is a file of facts, not a program\n  = load it: --facts cells.CSV",
        ),
    ],
)
def test_what_cannot_be_read_is_said(zodiac: Zodiac, folder: Path, name: str, message: str) -> None:
    (folder / "empty").mkdir()
    ze.open(folder / "farm.zodiac", create=True).close()
    (folder / "binary.rules").write_bytes(b"p(\xff\x00) .")
    (folder / "cells.CSV").write_text("a,1\n")
    done = zodiac("check", name)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(message)


@pytest.mark.usefixtures("ordinary_user")
def test_a_file_that_may_not_be_read_is_said(zodiac: Zodiac, unreadable: Path) -> None:
    done = zodiac("check", unreadable.name)
    assert done.code == 1
    assert "secret.rules cannot be read: Permission denied" in done.err


def test_a_missing_file_as_json_is_one_document(zodiac: Zodiac) -> None:
    done = zodiac("check", "nowhere.rules", "--json")
    assert done.code == 1
    assert done.document["errors"] == 1


def test_a_zero_byte_is_an_error_with_a_place(zodiac: Zodiac, folder: Path) -> None:
    (folder / "zero.rules").write_bytes(b"p(a) .\n\x00\n")
    done = zodiac("check", "zero.rules")
    assert done.code == 1
    assert "zero.rules:2:1: error L001" in done.err


NAMESAKES = """\
@prefix ex: <http://e/> .
hot(X) :- temp(X, T), T > 30 .
near(X, Y) :- next(X, Y) .
hub(X) :- near(X), X != wt1 .
"""
TURTLE = "@prefix ex: <http://e/> .\nex:wt1 ex:temp 31 .\n"


def _codes(text: str) -> list[str]:
    return [line.split(": ")[1].split()[1] for line in text.splitlines() if ": warning W" in line]


@pytest.mark.parametrize("command", ["check", "plan", "graph"])
def test_data_tell_which_predicates_there_are(zodiac: Zodiac, save: Save, command: str) -> None:
    save("farm.rules", NAMESAKES)
    save("farm.ttl", TURTLE)
    save("near.csv", "wt1\n")
    assert _codes(zodiac(command, "farm.rules").err) == ["W022"]
    done = zodiac(command, "farm.rules", "--facts", "farm.ttl", "--facts", "near.csv")
    assert done.code == 0
    assert _codes(done.err) == ["W026", "W005"]
    assert "no fact or rule has temp/2; did you mean ex:temp?" in done.err


def test_a_check_reports_the_load_of_its_data(zodiac: Zodiac, save: Save) -> None:
    save("farm.rules", NAMESAKES)
    save("farm.nt", '<http://e/wt1> <http://e/temp> "31" .\n<broken\n')
    done = zodiac("check", "farm.rules", "--facts", "farm.nt", "--ignore", "W026", "--json")
    assert (done.code, done.document["warnings"]) == (0, 1)
    assert "1 bad line skipped" in done.err
    loads = done.document["loads"]
    assert isinstance(loads, list)
    assert (loads[0]["facts"], loads[0]["bad_lines"]) == (1, 1)


@pytest.mark.parametrize("args", [("run", "farm.rules"), ("init", "s.zodiac", "--rules", "farm.rules")])
def test_rules_without_prefixes_over_prefixed_data_are_told(
    zodiac: Zodiac, save: Save, args: tuple[str, ...]
) -> None:
    save("farm.rules", NAMESAKES.replace("near(X), X != wt1", "near(X, _)"))
    save("farm.ttl", TURTLE)
    assert (
        "W026: no fact or rule has temp/2; did you mean ex:temp?" in zodiac(*args, "--facts", "farm.ttl").err
    )


def test_facts_that_are_applied_later_are_compared_too(zodiac: Zodiac, save: Save) -> None:
    save("farm.rules", NAMESAKES.replace("near(X), X != wt1", "near(X, _)"))
    save("farm.ttl", TURTLE)
    assert zodiac("init", "s.zodiac", "--rules", "farm.rules").err == ""
    assert _codes(zodiac("apply", "s.zodiac", "--add-facts", "farm.ttl").err) == ["W026"]
    assert _codes(zodiac("query", "s.zodiac", "temp(X, T)").err) == ["W026"]
