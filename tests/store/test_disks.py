"""Disks that fill up and disks that may not be written, as the system makes them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("on_small_disk.py")


def _namespace() -> list[str]:
    """Return what gives a command mounts of its own, root or not; nothing where that is forbidden."""
    for command in (["unshare", "--user", "--map-root-user", "--mount"], ["unshare", "--mount"]):
        if shutil.which("unshare") and subprocess.run([*command, "true"], check=False).returncode == 0:
            return command
    return []


@pytest.mark.slow
@pytest.mark.parametrize("mounts", [False, True], ids=["limit", "disk"])
def test_a_full_disk_refuses_changes_until_there_is_room(tmp_path: Path, *, mounts: bool) -> None:
    namespace = _namespace() if mounts else []
    if mounts and not namespace:
        pytest.skip("no small and no read-only disk was tried: mounts are forbidden, or unshare is missing")
    command = [*namespace, sys.executable, "-W", "error", str(WORKER), str(tmp_path)]
    done = subprocess.run(
        [*command, *([shutil.which("mount") or "mount"] if namespace else [])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["codes"] == ["D007"]
    assert found["version"] > 2
    assert found["again"] == found["version"] + 1
    assert (found["recovered"], found["sound"], found["last"]) == (0, True, True)
    if namespace:
        assert found["read"] == found["again"]
        assert (found["refused farm"], found["refused new"]) == (["D007"], ["D007"])
