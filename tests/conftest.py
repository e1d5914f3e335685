"""What all tests share: helper packages, how hypothesis runs, and the engines under test."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.engine.spark.cluster.session import need_java
from zodiacedge.errors import UsageProblem

if TYPE_CHECKING:
    from xdist.remote import Producer

    from zodiacedge.engine.api import Engine

sys.path.insert(0, str(Path(__file__).parent))

# Every test that takes `engine` runs once for each of these.
ENGINES: tuple[Engine, ...] = (ReferenceEngine(), EmbeddedEngine())

# A plain run tries the same examples each time; a soak run (ZODIAC_EXAMPLES set) tries new ones.
settings.register_profile(
    "zodiac",
    deadline=None,
    derandomize="ZODIAC_EXAMPLES" not in os.environ,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
settings.load_profile("zodiac")


def pytest_configure() -> None:
    """Let Ctrl-C interrupt this process and those that tests start: in the background it is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class _FilesTogether(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """Hands out tests one by one, but those on Spark a file at a time: a session is dear to start.

    So is the wheel to build.
    """

    def _split_scope(self, nodeid: str) -> str:
        dear = nodeid.startswith(("tests/spark/", "tests/processes/", "tests/project/test_wheel.py"))
        return nodeid.partition("::")[0] if dear else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Choose who runs which test, where `--dist loadgroup` asks for groups."""
    return _FilesTogether(config, log) if config.getoption("dist") == "loadgroup" else None


# An engine keeps nothing between two runs; a fixture of the session serves hypothesis too.
@pytest.fixture(scope="session", params=ENGINES, ids=lambda engine: engine.name)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn."""
    chosen: Engine = request.param
    return chosen


@pytest.fixture(scope="session")
def java() -> None:
    """Java is there: without it there is nothing to test."""
    try:
        need_java()
    except UsageProblem as problem:
        # With `make test` it is there.
        if os.environ.get("ZODIAC_NEEDS_JAVA"):
            raise
        pytest.skip(str(problem))
