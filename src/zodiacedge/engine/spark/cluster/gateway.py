"""The Java process of Spark's driver: started for a session, and ended if the session does not come to be.

PySpark starts the process too, but keeps it to itself until the process answers: an interruption meanwhile
would leave it behind. Here it has a process group of its own, which can be ended at any moment. PySpark
then connects to the process in the way it does under `spark-submit`.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.util.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_WAIT, _PATIENCE = 0.05, 5.0  # seconds


def is_submitted() -> bool:
    """Whether `spark-submit` started this process, with a Java process beside it."""
    return _PORT in os.environ


@contextmanager
def gateway(settings: Mapping[str, str]) -> Iterator[None]:
    """Start the Java process if this process has none; end it again if the block raises."""
    from pyspark import SparkContext  # noqa: PLC0415 - heavy

    if SparkContext._gateway is not None or is_submitted() or sys.platform == "win32":  # noqa: SLF001 - no other way
        yield
        return
    process: subprocess.Popen[bytes] | None = None
    folder = Path(tempfile.mkdtemp(prefix="zodiacedge-gateway-"))
    try:
        with uninterrupted():
            process = _process(settings, folder / "connection")
        with _without_traceback():
            _connect(process, folder / "connection")
            yield
    except BaseException:
        with uninterrupted():
            _end(process)
            SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - the next session starts again
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _process(settings: Mapping[str, str], connection: Path) -> subprocess.Popen[bytes]:
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415 - heavy

    command = [str(Path(_find_spark_home()) / "bin" / "spark-submit")]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    variables = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection)}
    # Java ends when its standard input does, that is, with this process. Ctrl-C does not reach its group.
    return subprocess.Popen(  # noqa: S603 - Spark's own program
        command, stdin=subprocess.PIPE, env={**os.environ, **variables}, process_group=0
    )


def _connect(process: subprocess.Popen[bytes], connection: Path) -> None:
    from pyspark import SparkContext  # noqa: PLC0415 - heavy
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    # The file appears under its name when it is complete.
    while not connection.is_file():
        if process.poll() is not None:
            raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
        time.sleep(_WAIT)
    port, secret = _read(connection.read_bytes())
    os.environ |= {_PORT: str(port), _SECRET: secret}
    try:
        started = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        del os.environ[_PORT], os.environ[_SECRET]
    started.proc = process
    SparkContext._ensure_initialized(gateway=started)  # noqa: SLF001 - as above


def _read(info: bytes) -> tuple[int, str]:
    """Return port and secret: each number has four bytes, the second is the secret's length."""
    return int.from_bytes(info[:4], "big"), info[8:].decode()


def _end(process: subprocess.Popen[bytes] | None) -> None:
    if process is None:
        return
    with suppress(ProcessLookupError):
        # Asked to end, Java removes its temporary files.
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@contextmanager
def _without_traceback() -> Iterator[None]:
    """Keep py4j from logging the traceback of an interruption, which is raised as well."""
    log, text = logging.getLogger(), "KeyboardInterrupt while sending command."

    def other(record: logging.LogRecord) -> bool:
        return record.msg != text

    log.addFilter(other)
    try:
        yield
    finally:
        log.removeFilter(other)
