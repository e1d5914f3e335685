"""The Spark session: that of the user, or one that is started when the engine is first used.

A session that is handed over stays as it is: the engine works on a session beside it, with the same context
and settings of its own. Python workers of a session that is started here use the driver's interpreter and its
cache of compiled kernels. On masters that are not local, the package is then shipped as a zip archive, unless
executors have it installed (see `docs/spark.md`).
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.cluster.gateway import gateway, is_submitted
from zodiacedge.engine.spark.cluster.runner import is_connect
from zodiacedge.errors import Diagnostic, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*]"
_OLDEST_JAVA = 17
_LOGGING = Path(__file__).resolve().with_name("log4j2.properties")
_STARTING = threading.Lock()
_THIS_MACHINE = {"localhost", "127.0.0.1", "::1"}
_SQL_SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.mergeSchema": "false",
    # Files of fingerprints are many times smaller than their rows: Spark would underestimate a relation
    # of millions of rows and broadcast it.
    "spark.sql.sources.fileCompressionFactor": "10",
    # Files are listed by path, so that discovering them needs no job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
}


@dataclass(frozen=True)
class Cluster:
    """The cluster that Spark runs on: the master's URL, and Spark settings that override the defaults."""

    master: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    ship: bool = True
    """Whether the package is shipped to executors on other machines, if a session is started."""
    given: SparkSession | None = field(default=None, repr=False, compare=False)
    """The session that a user handed over."""

    def session(self) -> SparkSession:
        """Return the session of the user, or the running one, or start one."""
        if self.given is not None:
            return self.given
        with _STARTING:
            _need_pyspark()
            self.refuse_another()
            return _active() or _started(self)

    def working_session(self) -> SparkSession:
        """Return the session for the engine's own work: beside that of a user, with the same context."""
        return self.session() if self.given is None else _beside(self.given)

    def refuse_another(self) -> None:
        """Raise if Spark already runs in this process on another master."""
        running = _running()
        if self.master and running and self.master != running:
            raise UsageProblem(
                Diagnostic(
                    "U015",
                    f"Spark runs on {running} in this process, and cannot run on {self.master} as well",
                    "use that master, or stop the session first: SparkSession.active().stop()",
                )
            )

    def refuse_if_missing(self) -> None:
        """Raise if Spark does not run in this process and PySpark or Java is missing."""
        _need_pyspark()
        if self.given is None and not _running():
            need_java()

    def known_settings(self, prefix: str) -> dict[str, str]:
        """Return the settings with a prefix, as far as they are known before a session is started."""
        session = self.given or _active()
        if session is not None:
            known = dict(session.conf.getAll)
        else:
            known = {**_submitted_settings(), **self.settings}
        return {name.removeprefix(prefix): value for name, value in known.items() if name.startswith(prefix)}

    @property
    def is_here(self) -> bool:
        """Whether its executors run on this machine and share its disks."""
        if self.given is not None:
            return _is_here(self.given.conf.get("spark.master", "") or "") and _serves_here(self.given)
        return _is_here(_running() or self.master or _submitted_to() or DEFAULT_MASTER)


def _running() -> str:
    """Return the master that Spark runs on in this process; empty if it does not run."""
    # Importing pyspark is slow, and a process that has not imported it cannot have started Spark.
    if "pyspark" not in sys.modules:
        return ""
    from pyspark import SparkContext  # noqa: PLC0415 - heavy

    context = SparkContext._active_spark_context  # noqa: SLF001 - a session may refer to a stopped context
    return str(context.master) if context else ""


def _active() -> SparkSession | None:
    if not _running():
        # A client of Spark Connect needs no context in this process.
        found = active_session()
        return found if found is not None and is_connect(found) else None
    from pyspark.sql import SparkSession as Session  # noqa: PLC0415 - heavy

    return Session.builder.getOrCreate()


def refuse_other_than_session(given: object) -> None:
    """Raise if what a user hands over is no session."""
    # Its class is asked: a DataFrame of Spark Connect has an attribute of any name.
    if not (hasattr(type(given), "createDataFrame") and hasattr(type(given), "conf")):
        hint = "give the object that SparkSession.builder.getOrCreate() returns"
        raise UsageProblem(Diagnostic("U013", f"expected a SparkSession, found {given!r}", hint))


def active_session() -> SparkSession | None:
    """Return the active session of this process, classic or of Spark Connect."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession as Session  # noqa: PLC0415 - heavy

    return Session.getActiveSession()


def _beside(given: SparkSession) -> SparkSession:
    """Return a session with the same context, and with the SQL settings that the engine works best with."""
    if not hasattr(type(given), "newSession"):
        return given
    partitions = given.conf.get("spark.sql.shuffle.partitions")
    session = given.newSession()
    settings = dict(_SQL_SETTINGS)
    if partitions:
        settings["spark.sql.shuffle.partitions"] = partitions
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def _serves_here(given: SparkSession) -> bool:
    """Whether the driver of a session is on this machine."""
    return not is_connect(given) or given.client.host in _THIS_MACHINE


def _started(cluster: Cluster) -> SparkSession:
    need_java()
    # Spark checks the version of pandas wherever Arrow is used; pandas itself is not used.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    from pyspark.sql import SparkSession as Session  # noqa: PLC0415 - heavy

    master = cluster.master or _submitted_to() or DEFAULT_MASTER
    if _is_local(master) or not os.environ.get("PYSPARK_PYTHON"):
        # On a cluster, it may name the interpreter of an environment that was shipped with the job.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        "spark.master": master,
        "spark.app.name": "zodiacedge",
        **_settings(master, ship=cluster.ship),
        **cluster.settings,
    }
    builder = Session.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    # Spark's handler would cancel every job of the process on Ctrl-C; a waiting thread cancels its own job.
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if main else None
    try:
        with gateway(settings):
            session = builder.getOrCreate()
    except Exception as error:
        raise _cannot_start(master, error) from error
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
    session.sparkContext.setLogLevel("ERROR")
    return session


def _submitted_to() -> str:
    """Return the master that `spark-submit` was given; empty if it did not start this process."""
    return _submitted_settings().get("spark.master", "")


def _submitted_settings() -> dict[str, str]:
    """Return the settings that `spark-submit` was given; none if it did not start this process."""
    if not is_submitted():
        return {}
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - heavy

    SparkContext._ensure_initialized()  # noqa: SLF001 - the settings are held by the JVM
    return dict(SparkConf().getAll())


def _cannot_start(master: str, error: Exception) -> UsageProblem:
    text = str(getattr(error, "java_exception", "") or error)
    reason = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    return UsageProblem(
        Diagnostic(
            "U019",
            f"Spark does not start on {master}: {reason}",
            "name a master that is running: local[*], spark://HOST:7077, yarn or k8s://HOST:PORT",
        )
    )


def _is_local(master: str) -> bool:
    return master.startswith("local[") or master == "local"


def _is_here(master: str) -> bool:
    """Whether executors run on this machine, including those of a `local-cluster`."""
    return not master.startswith(("spark://", "k8s://", "yarn"))


def _settings(master: str, *, ship: bool) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Otherwise a task that ends within 100 ms of another is counted only with the next heartbeat, up to
        # 10 s later, and reports of progress are late.
        "spark.ui.liveUpdate.period": "0",
        **_SQL_SETTINGS,
        "spark.python.worker.reuse": "true",
    }
    kernels = _kernel_cache() if _is_here(master) else ""
    if kernels:
        # The cache of compiled kernels is a local folder; other machines have their own.
        settings["spark.executorEnv.NUMBA_CACHE_DIR"] = kernels
    if not _has_own_logging():
        settings["spark.driver.defaultJavaOptions"] = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    if _is_local(master):
        cores_here = _local_cores(master)
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(cores_here),
            # No network can fail here, but Spark would take a suspended machine or process for a lost
            # executor, and end the session.
            "spark.network.timeout": "86400s",
        }
    elif ship:
        settings["spark.submit.pyFiles"] = str(package_archive())
    return settings


def _has_own_logging() -> bool:
    """Whether the user has configured Spark's logging."""
    home = os.environ.get("SPARK_HOME", "")
    folders = (os.environ.get("SPARK_CONF_DIR", ""), f"{home}/conf" if home else "")
    return any(folder and Path(folder, "log4j2.properties").is_file() for folder in folders)


def _local_cores(master: str) -> int:
    inside = master.partition("[")[2].partition("]")[0].partition(",")[0]
    return int(inside) if inside.isdigit() else (os.cpu_count() or 1 if inside == "*" else 1)


def _kernel_cache() -> str:
    from zodiacedge.engine.embedded.kernels import jit  # noqa: PLC0415 - slow to load

    if not jit.COMPILED:
        return ""
    from zodiacedge.engine.embedded.kernels.folders import cache_home  # noqa: PLC0415 - as above

    return str(cache_home() or "")


def package_archive() -> Path:
    """Write the package into an importable zip archive, and return its path."""
    root = Path(__file__).resolve().parents[3]
    folder = Path(tempfile.mkdtemp(prefix="zodiacedge-package-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / "zodiacedge.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, Path(root.name) / path.relative_to(root))
    return target


def _need_pyspark() -> None:
    if find_spec("pyspark") is None:
        raise UsageProblem(
            Diagnostic("U007", "pyspark is not installed", "install it: pip install 'zodiacedge[spark]'")
        )


def need_java() -> None:
    """Raise if Java is missing or too old."""
    home = os.environ.get("JAVA_HOME", "")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    version = _java_version(program) if program else 0
    if version >= _OLDEST_JAVA:
        return
    problem = f"Java {version} is too old" if version else "there is no Java"
    raise UsageProblem(
        Diagnostic(
            "U014",
            f"Spark needs Java {_OLDEST_JAVA} or newer, and {problem}",
            "install it: apt-get install openjdk-17-jre-headless (Debian, Ubuntu), or your system's package; "
            "all but the engine spark works without it",
        )
    )


def _java_version(program: str) -> int:
    try:
        output = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return 0
    # Java may first print options from the environment.
    version = output.stderr.partition('version "')[2].partition('"')[0]
    first = version.removeprefix("1.").partition(".")[0].partition("-")[0]
    return int(first) if first.isdigit() else 0
