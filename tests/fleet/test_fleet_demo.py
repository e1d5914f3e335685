"""`zodiac demo --fleet`: a hub and three agents play, and nothing is left running."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from zodiacedge.demo.fleet import play_fleet
from zodiacedge.errors import LoadProblem

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_the_story_of_a_hub_and_three_agents(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "zodiacedge",
        "demo",
        "--fleet",
        "--out",
        str(tmp_path / "demo"),
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    packs = json.loads(done.stdout)["packs"]
    assert packs == {name: ["diagnosis 3"] for name in ("wt1", "wt2", "wt3")}
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout  # noqa: S607
    assert not [line for line in left.splitlines() if str(tmp_path) in line]


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("ten years of work", "utf-8")
    with pytest.raises(LoadProblem):
        play_fleet(None, tmp_path)  # type: ignore[arg-type]  # it does not come to printing
    assert (tmp_path / "thesis.txt").exists()
