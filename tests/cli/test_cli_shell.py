"""`zodiac shell`: statements from a pipe and at a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

import zodiacedge as ze
from zodiacedge.cli.app import zodiac as group
from zodiacedge.cli.console import Console
from zodiacedge.cli.shell.interpreter import Interpreter
from zodiacedge.cli.shell.shell import converse
from zodiacedge.cli.shell.statements import Statements
from zodiacedge.cli.shell.terminal import Completion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

RULES = """@prefix ex: <http://example.org/> .
hot: ex:hot(T) :- reading(T, C), C > 80 .
near: near(X, Y) :- near(Y, X) .
near(wt1, wt2) .
"""
SECONDS = 60
PATIENCE = 3.0


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def farm(zodiac: Zodiac, save: Save) -> str:
    """A store, and the files that it was made of."""
    save("farm.rules", RULES)
    save("reading.csv", "<wt1>,93\n<wt2>,55\n")
    assert zodiac("init", "farm", "--rules", "farm.rules", "--facts", "reading.csv").code == 0
    return "farm"


def shell(text: str, *args: str) -> tuple[int, str, str]:
    """Give statements to a shell; return its exit code and its outputs."""
    result = CliRunner().invoke(group, ("shell", *args), input=text, prog_name="zodiac")
    assert "Traceback" not in result.output
    return result.exit_code, result.stdout, result.stderr


def test_a_query_prints_a_table_or_yes_or_no(farm: str) -> None:
    text = "ex:hot(T)\n?- near(wt1, wt2) .\nreading(T, C),\n  C < 60\n"
    assert shell(text, farm) == (0, "T\nwt1\n1 row\nyes\nT     C\nwt2  55\n1 row\n", "")


def test_a_change_is_committed_at_once_and_kept_in_the_store(zodiac: Zodiac, farm: str) -> None:
    text = "+ reading(wt2, 99) .\n- near\n+ cold: ex:cold(T) :-\n  reading(T, C), C < 0 .\n"
    text += "- reading(wt1, 93) .\n"
    code, out, err = shell(text, farm)
    assert (code, err) == (0, "")
    assert [line.partition(" in ")[0] for line in out.splitlines() if line.startswith("version")] == [
        "version 1 to 2",
        "version 2 to 3",
        "version 3 to 4",
        "version 4 to 5",
    ]
    assert zodiac("query", farm, "ex:hot(T)").out == "T\nwt2\n1 row\n"
    assert "cold: " in zodiac("rules", farm).out
    assert "near: " not in zodiac("rules", farm).out


def test_statements_between_begin_and_commit_are_one_transaction(zodiac: Zodiac, farm: str) -> None:
    text = "begin hot day\n+ reading(wt2, 99) .\n- hot\npreview\nex:hot(T)\ncommit\nex:hot(T)\n"
    code, out, err = shell(text, farm)
    assert code == 0
    assert out.count("rules: 0 added, 1 removed (hot)") == 2
    assert "T\nwt1\n1 row\n" in out
    assert out.endswith("T\n0 rows\n")
    assert "W004" in err
    assert "hot day" in zodiac("log", farm).out


@pytest.mark.parametrize("end", ["abort\n", "", ".quit\ncommit\n"])
def test_a_change_that_is_not_committed_changes_nothing(zodiac: Zodiac, farm: str, end: str) -> None:
    code, out, err = shell(f"begin\n- hot\n{end}", farm)
    assert (code, out) == (0, "")
    dropped = "zodiac: the change was not committed: 1 statement dropped\n"
    assert err == ("" if end == "abort\n" else dropped)
    assert zodiac("query", farm, "ex:hot(T)").out == "T\nwt1\n1 row\n"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("ex:hot(T", "<shell>:1:9: error L001"),
        ("+ p(X) .", "<shell>:1:3: error"),
        ("+ bad: p(X) :- q(X), not p(X) .", "error G001"),
        ("commit", "error U029: no change has begun"),
        ("begin\nbegin", "error U029: a change has begun already"),
        (".rulse", "error U029: there is no command .rulse"),
        ("@prefix ex <http://e/> .", "<shell>:1:9: error"),
    ],
)
def test_an_error_is_reported_and_the_shell_goes_on(farm: str, wrong: str, message: str) -> None:
    code, out, err = shell(f"{wrong}\nnear(wt1, wt2)\n", farm)
    assert code == 1
    assert message in err
    assert out == "yes\n"


def test_a_refused_statement_does_not_spoil_the_collected_change(zodiac: Zodiac, farm: str) -> None:
    code, _, err = shell("begin\n+ reading(wt2, 99) .\n+ reading(wt3 .\ncommit\n", farm)
    assert (code, "L001" in err) == (1, True)
    assert zodiac("query", farm, "ex:hot(wt2)").out == "yes\n"


def test_a_refused_commit_leaves_the_change_open(zodiac: Zodiac, farm: str) -> None:
    text = "begin\n+ reading(wt2, 99) .\n+ bad: p(X) :- q(X), not p(X) .\ncommit\nbegin\nabort\ncommit\n"
    code, out, err = shell(text, farm)
    assert (code, out) == (1, "")
    assert "zodiac: the change is still open: correct it, or abort\n" in err
    assert err.index("error G001") < err.index("still open") < err.index("a change has begun already")
    assert err.index("a change has begun already") < err.index("no change has begun")
    assert err.count("still open") == 1
    assert zodiac("query", farm, "ex:hot(wt2)").out == "no\n"


def test_a_prefix_is_known_to_the_change_that_has_begun(zodiac: Zodiac, farm: str) -> None:
    code, _, err = shell("begin\n@prefix new: <http://new/> .\n+ new:p(new:a) .\ncommit\n", farm)
    assert (code, err) == (0, "")
    assert zodiac("query", farm, "<http://new/p>(X)").out == "X\nnew:a\n1 row\n"


def test_prefixes_before_an_atom_are_those_of_a_query(farm: str) -> None:
    assert shell("@prefix e: <http://example.org/> . e:hot(wt1) .\n", farm) == (0, "yes\n", "")


@pytest.mark.parametrize("statements", [("begin", "+ p(a) .", "commit"), ("+ p(a) .",)])
def test_an_interruption_after_the_commit_drops_nothing(
    statements: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    kb = ze.open()

    def interrupt(notice: ze.Notice) -> None:
        del notice
        raise KeyboardInterrupt

    kb.subscribe("p/1", interrupt)
    interpreter = Interpreter(Console(as_json=False), kb)
    *before, last = statements
    for statement in before:
        interpreter.execute(statement)
    with pytest.raises(KeyboardInterrupt):
        interpreter.execute(last)
    interpreter.close()
    assert kb.query("p(a)")
    assert capsys.readouterr() == ("", "zodiac: the change was committed before the interruption\n")


def test_rules_in_memory_have_data_too(farm: str) -> None:
    del farm
    text = "ex:hot(T)\n+ reading(wt5, 81) .\nex:hot(wt5)\n.log\n"
    code, out, err = shell(text, "farm.rules", "--facts", "reading.csv")
    assert code == 1
    assert out.startswith("T\nwt1\n1 row\n")
    assert out.endswith("yes\n")
    assert "error U029: versions are kept in stores only" in err


def test_a_shell_may_begin_with_nothing() -> None:
    text = "@prefix ex: <http://e/> .\n+ ex:p(a) .\n# A comment.\n\nex:p(X)\n"
    code, out, err = shell(text)
    assert (code, err) == (0, "")
    assert out.endswith("X\na\n1 row\n")


def test_commands_list_rules_predicates_and_versions(farm: str) -> None:
    code, out, _ = shell(".rules\n.predicates\n.log\n.help\n.quit\nnear(X, Y)\n", farm)
    assert code == 0
    assert "hot: ex:hot(T) :- reading(T, C), C > 80 .\n" in out
    assert "reading           2        0\n" in out
    assert "+2 -0  +3 -0" in out
    assert ".predicates " in out
    assert "X " not in out


def test_a_store_that_is_open_for_reading_is_not_changed(zodiac: Zodiac, farm: str) -> None:
    with ze.open(farm):
        code, out, err = shell("+ p(a) .\nnear(wt1, wt2)\n", farm, "--read-only")
    assert (code, out) == (1, "yes\n")
    assert "open for reading" in err or "read" in err
    assert zodiac("query", farm, "p(a)").out == "no\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("farm", "farm.rules"), "farm is a store: name it alone, or rule files only."),
        (("farm", "--facts", "reading.csv"), "farm is a store and has its own facts: leave out --facts."),
        (("farm.rules", "--read-only"), "--read-only is for a store, and this is a program in memory."),
        (("farm", "--json"), "The shell has no --json: use zodiac query or zodiac apply."),
    ],
)
@pytest.mark.usefixtures("farm")
def test_wrong_usage(args: tuple[str, ...], message: str) -> None:
    code, out, err = shell("", *args)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["p(X)", "q(X)"], ["p(X)", "q(X)"]),
        (["p(X),", "q(X)"], ["p(X),\nq(X)"]),
        (["+ p(X) :- # why", "  q(X) . # so"], ["+ p(X) :- # why\n  q(X) . # so"]),
        (["+ p(a", "", "q(X)"], ["+ p(a", "q(X)"]),
        (['+ p("a # b.', ") ."], ['+ p("a # b.', ") ."]),
        (["- label", "- p(a)", ". # done"], ["- label", "- p(a)\n. # done"]),
        (["# nothing", "// nothing", "", "p(<http://e/#a>)"], ["p(<http://e/#a>)"]),
        (["p(X),"], ["p(X),"]),
        (['name(X, "x, # y")', "q(X)"], ['name(X, "x, # y")', "q(X)"]),
        (['name(X, "\\" // y,"),  # why', "q(X)"], ['name(X, "\\" // y,"),  # why\nq(X)']),
        (["+ p(X) :-  # A reason.", "q(X) ."], ["+ p(X) :-  # A reason.\nq(X) ."]),
        (["+ p(X) :- ex:q(X)  # So.", "+ r(a) .", "s(X)"], ["+ p(X) :- ex:q(X)  # So.", "+ r(a) .", "s(X)"]),
        (["- p(a)", "- label", "- q(b) ."], ["- p(a)", "- label", "- q(b) ."]),
        (["+ p(a)", "?- q(X) ."], ["+ p(a)", "?- q(X) ."]),
        (["+ p(a)", ".rules", "commit"], ["+ p(a)", ".rules", "commit"]),
        (["+ p(X) :- q(X)", "# Why.", ", r(X) ."], ["+ p(X) :- q(X)\n# Why.\n, r(X) ."]),
        (["+ p(Y) :- q(X), Y := X", "- 1 ."], ["+ p(Y) :- q(X), Y := X\n- 1 ."]),
        (["+ p(Y) :- q(X, Z), Y := X", "+ Z .", "q(X, Z)"], ["+ p(Y) :- q(X, Z), Y := X\n+ Z .", "q(X, Z)"]),
        (["+ p(X)", ":- q(X) ."], ["+ p(X)\n:- q(X) ."]),
        (
            ["+ Label: p(X) :- q(X)", "+ Old: P(X) :- q(X) ."],
            ["+ Label: p(X) :- q(X)", "+ Old: P(X) :- q(X) ."],
        ),
    ],
)
def test_lines_into_statements(lines: list[str], expected: list[str]) -> None:
    rest = iter(lines)

    def read(*, more: bool) -> str | None:
        del more
        return next(rest, None)

    assert list(iter(Statements(read).next, None)) == expected


def test_a_change_without_its_full_stop_costs_no_other_statement(farm: str) -> None:
    code, out, err = shell("+ warm(T) :- reading(T, C), C > 50\n+ reading(wt5, 81) .\nex:hot(wt5)\n", farm)
    assert code == 1
    assert "error L001: expected `,` or `.`, found the end of the text" in err
    assert "a statement ends with a full stop" in err
    assert "explicit facts: 1 added" in out
    assert out.endswith("yes\n")


def test_tab_completes_predicates_labels_and_words() -> None:
    kb = ze.open()
    with kb.change() as change:
        change.add_rules(RULES)
    completion = Completion(kb)
    assert completion.candidates("rea", "rea") == ["reading"]
    assert completion.candidates("near(X, Y), ex:", "ex:") == ["ex:hot"]
    assert completion.candidates("- ho", "ho") == ["hot"]
    assert completion.candidates("?- ho", "ho") == []
    assert completion.candidates(".pre", ".pre") == [".predicates"]
    assert completion.candidate(".pre", ".pre", 1) is None
    with kb.change() as change:
        change.add_facts("reader(a) .")
    assert completion.candidates("rea", "rea") == ["reader", "reading"]


@contextmanager
def on_a_terminal(folder: Path, *args: str) -> Iterator[int]:
    """Run a shell on a terminal, and return the other side of it; Ctrl-D ends the shell."""
    ours, theirs = pty.openpty()
    # The terminal that the leader of a session opens sends it the signal of Ctrl-C.
    program = "import os; os.open(os.ttyname(0), os.O_RDWR); from zodiacedge.cli import main; main()"
    running = subprocess.Popen(
        [sys.executable, "-c", program, "shell", *args],
        cwd=folder,
        env={**os.environ, "TERM": "dumb", "NO_COLOR": "1"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        wait_for(ours, "zodiac> ")
        yield ours
        os.write(ours, b"\x04")
        assert running.wait(timeout=SECONDS) == 0
    finally:
        running.kill()
        running.wait()
        os.close(ours)


def test_a_terminal_has_a_prompt_completion_history_and_ctrl_c(folder: Path, farm: str, state: Path) -> None:
    with on_a_terminal(folder, farm) as terminal:
        os.write(terminal, b"+ unfinished(X) :-\n")
        wait_for(terminal, "[.]{3}> ")
        press(terminal, b"\x03", "zodiac> ")
        os.write(terminal, b"ex:h")
        press(terminal, b"\t", "ex:hot$", wait_for(terminal, "ex:h$"))
        os.write(terminal, b"(T)\n")
        assert "wt1" in wait_for(terminal, "1 row.*zodiac> ")
    assert "ex:hot(T)" in (state / "zodiacedge" / "shell_history").read_text()


def test_a_second_ctrl_c_while_the_first_is_reported_does_not_end_the_shell() -> None:
    presses = [KeyboardInterrupt] * 3
    executed: list[str] = []
    lines = iter(["near(wt1, wt2)", None])

    def press_again(*_: object) -> None:
        if presses:
            raise presses.pop()

    def read(*, more: bool) -> str | None:  # noqa: ARG001 - part of the interface
        press_again()
        return next(lines)

    console, interpreter = Mock(), Mock(ended=False, execute=executed.append)
    console.note.side_effect = press_again
    converse(console, interpreter, read, interactive=True)
    assert (executed, presses) == (["near(wt1, wt2)"], [])


def test_ctrl_c_cancels_a_running_query_and_the_shell_goes_on(folder: Path, save: Save) -> None:
    save("many.rules", "".join(f"a({n}) .\n" for n in range(1000)))
    with on_a_terminal(folder, "many.rules") as terminal:
        os.write(terminal, b"a(A), a(B), a(C), a(D), A + B + C + D < 0\n")
        # The line is shown before the query begins, and an interruption in between ends the query as well.
        wait_for(terminal, "< 0\r\n")
        os.write(terminal, b"\x03")
        wait_for(terminal, "interrupted.*zodiac> ")
        os.write(terminal, b"a(7)\n")
        wait_for(terminal, "yes.*zodiac> ")


def test_history_that_cannot_be_written_is_no_error(folder: Path, farm: str, state: Path) -> None:
    state.write_text("no folder")
    with on_a_terminal(folder, farm) as terminal:
        os.write(terminal, b"near(wt1, wt2)\n")
        wait_for(terminal, "yes.*zodiac> ")


def read_for(terminal: int, seconds: float) -> str:
    """Read what a terminal shows within some time."""
    ready, _, _ = select.select([terminal], [], [], seconds)
    return os.read(terminal, 65536).decode() if ready else ""


def wait_for(terminal: int, pattern: str) -> str:
    """Read from a terminal until it shows a text."""
    shown, end = "", time.monotonic() + SECONDS
    while not re.search(pattern, shown, re.DOTALL):
        assert time.monotonic() < end, f"{pattern!r} is not in {shown!r}"
        shown += read_for(terminal, 1.0)
    return shown


def press(terminal: int, key: bytes, pattern: str, shown: str = "") -> None:
    """Press a key until a terminal shows a text.

    Python misses a Ctrl-C between readline's prompt and its wait for input, and such a Ctrl-C ends the next
    completion. Pressing either key again does no harm where it is only late.
    """
    end = time.monotonic() + SECONDS
    while not re.search(pattern, shown, re.DOTALL):
        assert time.monotonic() < end, f"{pattern!r} is not in {shown!r}"
        os.write(terminal, key)
        again = time.monotonic() + PATIENCE
        while not re.search(pattern, shown, re.DOTALL) and time.monotonic() < again:
            shown += read_for(terminal, PATIENCE).replace("\a", "")


@pytest.mark.parametrize("word", ["exit", "quit"])
def test_the_shell_ends_without_a_dot_too(farm: str, word: str) -> None:
    assert shell(f"{word}\nnear(wt1, wt2)\n", farm) == (0, "", "")
    assert shell("help\n", farm)[1] == shell(".help\n", farm)[1]


def test_a_prefix_is_kept_with_the_next_change(zodiac: Zodiac, farm: str) -> None:
    declared = "@prefix new: <http://new/> .\n"
    code, _, err = shell(declared, farm)
    assert (code, err) == (0, "zodiac: not kept, because no change followed: the prefix new:\n")
    assert shell(f"{declared}near(X, wt1)\n", farm, "--read-only")[2] == ""
    assert "new" not in ze.open(farm, read_only=True).prefixes
    assert shell(f"{declared}+ near(a, b) .\n", farm)[::2] == (0, "")
    assert ze.open(farm, read_only=True).prefixes["new"] == "http://new/"
    assert "  @prefix new: <http://new/> .\n" in zodiac("log", farm, "--full").out
    assert "+ @prefix new: <http://new/> .\n" in zodiac("diff", farm).out
    document = zodiac("diff", farm, "--json").document
    assert document["prefixes"] == {"new": {"before": None, "after": "http://new/"}}


def test_a_shell_has_the_limits_of_changing_commands(farm: str) -> None:
    text = "+ n(Y) :- n(X), Y := X + 1 .\n+ n(0) .\n"
    code, _, err = shell(text, farm, "--max-facts", "50", "--ignore", "W025")
    assert code == 1
    assert "E001" in err
    assert "W025" not in err
    assert "--wait is for a store" in shell("", "--wait=1")[2]
