"""Neighbours are found by multicast DNS, in a network namespace with real packets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.soak]
NAMESPACES = not os.geteuid() and shutil.which("unshare") and shutil.which("ip")


@pytest.mark.skipif(not NAMESPACES, reason="network namespaces are a matter of root, unshare and ip")
def test_neighbours_are_found_and_gone_and_nobody_takes_the_name_of_another() -> None:
    command = ["unshare", "--net", sys.executable, "-m", "fleet.found_neighbours"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)
    assert (done.returncode, done.stdout) == (0, "found and gone\n"), done.stdout + done.stderr
