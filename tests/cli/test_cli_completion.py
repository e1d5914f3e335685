"""Completion in shells: commands, options, choices and file names."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.shell_completion import BashComplete

from zodiacedge.cli.app import zodiac as group

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

HEAVY = {"numba", "numpy", "pyarrow", "pyspark", "rich", "deltalake", "obstore", "pyoxigraph"}


def offered(*words: str) -> list[tuple[str, str]]:
    """Return type and text of what a Tab after these words offers; the last word is incomplete."""
    *before, incomplete = words
    completion = BashComplete(group, {}, "zodiac", "_ZODIAC_COMPLETE")
    return [(item.type, item.value) for item in completion.get_completions(before, incomplete)]


def test_commands_have_their_help_and_those_of_plugins_are_among_them() -> None:
    assert ("plain", "query") in offered("q")
    assert {text for _, text in offered("")} >= {"run", "apply", "bench", "completion"}
    completion = BashComplete(group, {}, "zodiac", "_ZODIAC_COMPLETE")
    (run,) = completion.get_completions([], "run")
    assert run.help == "load, materialise, answer queries, export"


def test_options_and_their_choices_are_completed() -> None:
    assert offered("run", "--que") == [("plain", "--query"), ("plain", "--query-file")]
    assert offered("run", "a.rules", "--engine", "s") == [("plain", "spark")]
    assert offered("completion", "z") == [("plain", "zsh")]


@pytest.mark.parametrize(
    "words",
    [
        ("query", "farm.z"),
        ("run", "fa"),
        ("run", "farm.rules", "fa"),
        ("run", "farm.rules", "--facts", "re"),
        ("run", "farm.rules", "--out", "re"),
        ("graph", "fa"),
        ("init", "farm.zodiac", "--rules", "fa"),
        ("apply", "farm.zodiac", "--add-rules", "fa"),
        ("apply", "farm.zodiac", "--functions", "fa"),
        ("export", "farm.zodiac", "--out", "fa"),
        ("stream", "farm.zodiac", "--from", "la"),
        ("demo", "--out", "fa"),
    ],
)
def test_names_of_files_and_stores_are_left_to_the_shell(words: tuple[str, ...]) -> None:
    assert offered(*words) == [("file", words[-1])]


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_the_script_of_a_shell_asks_the_command_itself(zodiac: Callable[..., Done], shell: str) -> None:
    done = zodiac("completion", shell)
    assert done.code == 0
    assert f"_ZODIAC_COMPLETE={shell}_complete" in done.out
    assert zodiac("completion", shell, "--json").document["script"] == done.out.removesuffix("\n")


@pytest.mark.parametrize("words", ["zodiac qu", "zodiac query fa", "zodiac run a.rules --engine s"])
def test_no_large_library_is_loaded_while_completing(tmp_path: Path, words: str) -> None:
    asked = {
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
        "_ZODIAC_COMPLETE": "bash_complete",
    }
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "zodiacedge"],
        cwd=tmp_path,
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "zodiacedge.cli.app" in imported
    assert imported.isdisjoint(HEAVY)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_a_command_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "farm.rules").write_text("p(X) :- q(X) .\nq(a) .\n")
    program = tmp_path / "bin" / "zodiac"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m zodiacedge "$@"\n')
    program.chmod(0o755)
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PS1": "$ ",
        "TERM": "dumb",
    }
    shell = subprocess.Popen(
        [shutil.which("bash") or "", "--norc", "--noprofile", "-i"],
        cwd=tmp_path,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, b'eval "$(zodiac completion bash)"\nzodiac chec\tfar\t\nexit\n')
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert shell.wait(timeout=60) == 0
    assert "zodiac check farm.rules" in shown.decode()
    assert "1 file, 1 rule, 1 fact: 0 errors" in shown.decode()
