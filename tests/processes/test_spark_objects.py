"""Stores in an object store on Spark: tasks write their objects, and the embedded engine reads them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import zodiacedge as ze
from store.conftest import bucket, endpoint

__all__ = ["bucket", "endpoint"]
PROGRAM = Path(__file__).with_name("on_objects.py")


def test_tasks_write_objects_that_the_embedded_engine_reads(bucket: str) -> None:
    address = f"{bucket}/farm.zodiac"
    done = subprocess.run(
        [sys.executable, str(PROGRAM), address],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(PROGRAM.parent.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"counts": [300, 300, 299], "refused": "D018", "last": [2, 300, True]}
    with ze.open(address) as kb:
        assert kb.version == 2
        assert kb.verify(against="reference").ok
        assert [entry.message for entry in kb.log()] == ["edges", "by the other engine"]
