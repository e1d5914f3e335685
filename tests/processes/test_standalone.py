"""A standalone cluster: a master and two workers as processes of their own, one of which is killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from strategies.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.soak
HOME = Path(pyspark.__file__).parent
KINDS = "org.apache.spark.deploy"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def process(folder: Path, kind: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a part of the cluster, in a process group of its own."""
    environment = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
    }
    command = [str(HOME / "bin" / "spark-class"), f"{KINDS}.{kind}", "--host", "127.0.0.1", *arguments]
    with (folder / f"{kind}.log").open("ab") as log:
        started = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True, cwd=folder
        )
    try:
        yield started
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def test_a_worker_of_a_standalone_cluster_is_killed(tmp_path: Path) -> None:
    port, scratch = free_port(), tmp_path / "scratch"
    scratch.mkdir()
    master = f"spark://127.0.0.1:{port}"
    log = tmp_path / "master.Master.log"
    with ExitStack() as stack:
        stack.enter_context(process(tmp_path, "master.Master", "--port", str(port), "--webui-port", "0"))
        until(lambda: log.is_file() and "started at" in log.read_text(errors="replace"), 120)
        workers = []
        for number in range(2):
            place = tmp_path / f"worker{number}"
            place.mkdir()
            arguments = (
                "--cores",
                "1",
                "--memory",
                "1g",
                "--webui-port",
                "0",
                "--work-dir",
                str(place),
                master,
            )
            workers.append(stack.enter_context(process(tmp_path, "worker.Worker", *arguments)))
        until(lambda: log.read_text(errors="replace").count("Registering worker") == 2, 120)
        script = Path(__file__).with_name("on_standalone.py")
        done = subprocess.run(
            [sys.executable, str(script), master, str(scratch), str(workers[0].pid)],
            capture_output=True,
            text=True,
            check=False,
            timeout=1200,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        assert done.returncode == 0, done.stderr[-4000:]
        found = json.loads(done.stdout.splitlines()[-1])
        assert found == {
            "master": master,
            "same": True,
            "table": True,
            "killed": True,
            "same_after_the_kill": True,
            "settings": True,
            "folders": 2,
        }
        assert workers[0].wait(60) == -signal.SIGKILL
    time.sleep(1)
    # The process has ended, and its folders with it.
    assert list(scratch.iterdir()) == []
