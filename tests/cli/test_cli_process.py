"""The command as a process: terminals, pipes, signals, exit codes."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from zodiacedge.engine.select import ENGINES

if TYPE_CHECKING:
    from pathlib import Path

ZODIAC = [sys.executable, "-m", "zodiacedge"]
ENDLESS = "count: n(Y) :- n(X), Y := X + 1 .\nn(0) .\n"
PAIRS = "p(X, Y) :- a(X), a(Y) .\n" + "".join(f"a(x{i}) .\n" for i in range(70))


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ZODIAC, *args], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


def on_a_terminal(folder: Path, *args: str, no_color: bool = False) -> tuple[str, str, int]:
    """Run with standard error on a terminal; return both outputs and the exit code."""
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "TERM"}}
    environment |= {"TERM": "xterm"} | ({"NO_COLOR": "1"} if no_color else {})
    process = subprocess.Popen(
        [*ZODIAC, *args], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=theirs, text=True
    )
    os.close(theirs)
    shown = b""
    # Linux reports the end of a terminal whose other side has closed as an error.
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(ours)
    out, _ = process.communicate(timeout=60)
    return out, shown.decode(), process.returncode


def test_the_progress_bar_is_for_terminals(tmp_path: Path) -> None:
    (tmp_path / "pairs.rules").write_text(PAIRS)
    out, shown, code = on_a_terminal(tmp_path, "run", "pairs.rules", "--json")
    assert code == 0
    assert "evaluating" in shown
    assert out.startswith("{\n")
    assert out.endswith("}\n")
    assert run(tmp_path, "run", "pairs.rules", "--json").stderr == ""


def test_the_changes_of_a_session_have_a_progress_bar_too(tmp_path: Path) -> None:
    rule, _, facts = PAIRS.partition("\n")
    (tmp_path / "facts.rules").write_text(facts)
    (tmp_path / "pairs.session").write_text(f"begin\n+ {rule}\ncommit\ncount p 4900\n")
    out, shown, code = on_a_terminal(tmp_path, "run", "facts.rules", "--apply", "pairs.session")
    assert code == 0
    assert "evaluating" in shown
    assert "\x1b" not in out
    assert "visible facts: +4,900 (p +4,900)\n" in out


def test_the_bar_says_that_a_store_is_written(tmp_path: Path) -> None:
    (tmp_path / "pairs.rules").write_text(PAIRS)
    _, shown, code = on_a_terminal(tmp_path, "init", "farm.zodiac", "--rules", "pairs.rules")
    assert code == 0
    assert "writing the store" in shown


def test_colours_are_for_terminals(tmp_path: Path) -> None:
    (tmp_path / "bad.rules").write_text("p(X) :- q(Y) .\n")
    _, shown, code = on_a_terminal(tmp_path, "check", "bad.rules")
    assert code == 1
    assert "\x1b[31m\x1b[1merror C001:\x1b[0m" in shown
    _, shown, _ = on_a_terminal(tmp_path, "check", "bad.rules", no_color=True)
    assert "\x1b" not in shown
    assert "\x1b" not in run(tmp_path, "check", "bad.rules").stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_ends_a_run_with_130(tmp_path: Path, engine: str) -> None:
    (tmp_path / "endless.rules").write_text(ENDLESS)
    started = tmp_path / "started"
    # The program says when it has begun to evaluate: an interrupt during the imports would be another test.
    script = (
        "import pathlib, sys, zodiacedge.opening as o\n"
        "from zodiacedge.cli import main\n"
        "make = o.engine_named\n"
        "class Told:\n"
        "    def __init__(self, state): self.state = state\n"
        "    def __getattr__(self, name): return getattr(self.state, name)\n"
        "    def maintain(self, *args):\n"
        "        pathlib.Path('started').touch()\n"
        "        return self.state.maintain(*args)\n"
        "    def empty(self): return Told(self.state.empty())\n"
        "o.engine_named = lambda *args, **options: Told(make(*args, **options))\n"
        f"sys.argv = ['zodiac', 'run', 'endless.rules', '--engine', '{engine}']\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Where the tests run in the background, children would ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    deadline = time.monotonic() + 90
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    # The warning is written before the evaluation that it is about.
    assert err.startswith(
        "endless.rules:1:22: warning W025: Y is computed in recursion, which may never end\n"
    )
    assert "such as Y < 100, or the evaluation with --max-seconds" in err
    assert err.endswith("\nzodiac: interrupted\n")


@pytest.mark.parametrize(
    "module",
    [
        "zodiacedge.cli.app",
        "click",
        "zodiacedge.errors",
        "zodiacedge.cli.program.check",
        "zodiacedge.language",
    ],
)
def test_ctrl_c_while_python_loads_the_command_shows_no_traceback(tmp_path: Path, module: str) -> None:
    (tmp_path / "a.rules").write_text("p(a) .\n")
    script = (
        "import runpy, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Impatient:\n"
        "    def find_spec(self, name, *rest):\n"
        f"        if name == {module!r}: signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Impatient())\n"
        "sys.argv = ['zodiac', 'check', 'a.rules']\n"
        "runpy.run_module('zodiacedge', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "zodiac: interrupted")


@pytest.mark.parametrize("args", [("run", "pairs.rules", "--query", "?- p(X, Y) ."), ("--help",)])
def test_a_reader_who_has_seen_enough_is_no_error_of_ours(tmp_path: Path, args: tuple[str, ...]) -> None:
    (tmp_path / "pairs.rules").write_text(PAIRS)
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(
        [*ZODIAC, *args], cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, "")


def test_a_large_answer_comes_whole(tmp_path: Path) -> None:
    (tmp_path / "pairs.rules").write_text(PAIRS)
    done = run(tmp_path, "run", "pairs.rules", "--query", "?- p(X, Y) .")
    assert done.returncode == 0
    assert done.stdout.endswith("4,900 rows\n")
    assert done.stdout.count("\n") > 4_900


def test_exit_codes_of_the_process(tmp_path: Path) -> None:
    (tmp_path / "a.rules").write_text("p(a) .\n")
    assert run(tmp_path, "check", "a.rules").returncode == 0
    assert run(tmp_path, "check", "b.rules").returncode == 1
    usage = run(tmp_path, "chekc")
    assert (usage.returncode, usage.stdout) == (2, "")
    assert "Did you mean check?" in usage.stderr
    assert run(tmp_path, "--help").stdout.startswith("Usage: zodiac [OPTIONS]")


def test_a_traceback_is_for_those_who_ask(tmp_path: Path) -> None:
    done = run(tmp_path, "check", "nowhere.rules", "--debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "Traceback" not in run(tmp_path, "check", "nowhere.rules").stderr
