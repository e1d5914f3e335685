"""Objects on Spark: tasks write those of a store, and load files, as the embedded engine does."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.fs

import zodiacedge as ze
from store.conftest import bucket, endpoint

__all__ = ["bucket", "endpoint"]
PROGRAM = Path(__file__).with_name("on_objects.py")


def put_files(folder: Path, address: str) -> None:
    """Put lines for several splits, one of them bad, other formats, and in a folder a file cut short."""
    (folder / "cut").mkdir()
    lines = [f"<http://e/s{n}> <http://e/p> <http://e/s{n + 1}> ." for n in range(100)]
    (folder / "some.nt").write_text("\n".join([*lines[:50], "bad", *lines[50:]]))
    (folder / "more.nq.gz").write_bytes(gzip.compress(b"_:a <http://e/q> _:b <http://e/g> .\n"))
    (folder / "edge.csv").write_text("1,2\n2,3\n2\n")
    (folder / "cut" / "some.nt.gz").write_bytes(gzip.compress(b"<a> <p> <b> .\n")[:-4])
    pyarrow.fs.copy_files(str(folder), address)


def test_tasks_write_and_read_objects_as_the_embedded_engine_does(bucket: str, tmp_path: Path) -> None:
    address, files = f"{bucket}/farm.zodiac", f"{bucket}/files"
    put_files(tmp_path, files)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), address, files],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(PROGRAM.parent.parent)},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["counts"], told["refused"], told["last"]) == ([300, 300, 299], "D018", [2, 300, True])
    assert (told["loaded"], told["same"], told["cut"]) == (103, True, "I008")
    with ze.open(address) as kb:
        assert kb.version == 2
        assert kb.verify(against="reference").ok
        assert [entry.message for entry in kb.log()] == ["edges", "by the other engine"]
