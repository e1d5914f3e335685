"""The files for systemd and for containers in the guide: commands that exist, units that systemd takes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from zodiacedge.cli.fleet import agent, hub

if TYPE_CHECKING:
    import click

GUIDE = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text("utf-8")
UNITS = dict(re.findall(r"```ini\n# /etc/systemd/system/([\w.-]+)\n(.*?)```", GUIDE, re.DOTALL))
COMMANDS = {"agent": agent.command, "hub": hub.command}
ZODIAC = Path(sys.executable).with_name("zodiac")


def parsed(arguments: list[str]) -> click.Context:
    """Parse the arguments of a command as the command does; a wrong option raises."""
    name, *rest = arguments
    return COMMANDS[name].make_context(name, rest)


def test_the_guide_has_units_of_commands_with_their_options() -> None:
    assert set(UNITS) == {"zodiac-agent.service", "zodiac-hub.service"}
    for unit in UNITS.values():
        (line,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
        program, *arguments = shlex.split(line)
        assert program == "/opt/zodiac/bin/zodiac"
        assert parsed(arguments).params["hub" if arguments[0] == "agent" else "host"]
        # All that they write stands in the folder that systemd makes for them.
        assert not [argument for argument in arguments if argument.startswith("/")]


def test_the_container_file_starts_a_hub_that_owns_its_folders() -> None:
    ((container,),) = [re.findall(r"```dockerfile\n(.*?)```", GUIDE, re.DOTALL)]
    (command,) = re.findall(r"^CMD (.*)$", container, re.MULTILINE)
    program, *arguments = json.loads(command)
    assert program == "zodiac"
    context = parsed(arguments)
    assert f"EXPOSE {context.params['port']}" in container
    steps = container.splitlines()
    made = next(n for n, step in enumerate(steps) if step.startswith("RUN mkdir"))
    volumes = next(n for n, step in enumerate(steps) if step.startswith("VOLUME"))
    assert steps.index("USER zodiac") < made < volumes
    for folder in (context.params["folder"], context.params["keys"]):
        assert folder in steps[made].split()
        assert f"/srv/zodiac/{folder}" in steps[volumes].split()


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_the_units(tmp_path: Path, name: str) -> None:
    unit = tmp_path / name
    unit.write_text(UNITS[name].replace("/opt/zodiac/bin/zodiac", str(ZODIAC)), "utf-8")
    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    # A directive that systemd does not know is said.
    unit.write_text(unit.read_text("utf-8").replace("UMask", "Umask0"), "utf-8")
    wrong = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Umask0" in wrong.stderr
