"""What the library logs, and that it prints nothing of it unless asked."""

from __future__ import annotations

import logging
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import zodiacedge as ze
from zodiacedge.cli.app import zodiac

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
from click.testing import CliRunner


def test_changes_flushes_and_vacuums_are_logged(farm: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "zodiacedge")
    with ze.open(farm) as kb:
        with kb.change() as c:
            c.add_facts("node(new) .")
        with ze.open(farm, read_only=True) as reader:
            assert reader.refresh() == ()
        kb.vacuum(timedelta(0))
    messages = [(record.name.removeprefix("zodiacedge."), record.getMessage()) for record in caplog.records]
    heads = [(name, text.split(f" {farm}")[0].split(":")[0]) for name, text in messages]
    assert heads == [
        ("store.knowledge_base", "opened"),
        ("kb.knowledge_base", "version 3 to 4"),
        ("store.knowledge_base", "opened"),
        ("store.knowledge_base", "closed"),
        ("store.store", "flushed version 4 into the table of"),
        ("store.store", "vacuum of"),
        ("store.knowledge_base", "closed"),
    ]
    assert "rules +0 -0, explicit facts +1 -0" in messages[1][1]


def test_a_command_shows_the_log_on_demand(farm: Path) -> None:
    quiet = CliRunner().invoke(zodiac, ["rollback", str(farm), "2"])
    assert (quiet.exit_code, quiet.stderr) == (0, "")
    done = CliRunner().invoke(zodiac, ["rollback", str(farm), "1", "--log-level", "info"])
    assert done.exit_code == 0
    assert "INFO zodiacedge.kb.knowledge_base: version 4 to 5: " in done.stderr
    assert "DEBUG" not in done.stderr
    assert "INFO" not in done.stdout
    assert not CliRunner().invoke(zodiac, ["rollback", str(farm), "2"]).stderr


def test_a_program_without_logging_sees_nothing(farm: Path) -> None:
    program = "import sys, zodiacedge as ze\nwith ze.open(sys.argv[1]) as kb:\n    kb.rollback(1)\n"
    done = subprocess.run(
        [sys.executable, "-c", program, str(farm)], capture_output=True, text=True, check=True, timeout=300
    )
    assert (done.stdout, done.stderr) == ("", "")
