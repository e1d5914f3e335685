"""What the tests on Spark share: one session for all of them in each worker process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from zodiacedge.engine.spark.cluster.session import Cluster
from zodiacedge.engine.spark.engine import SparkEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.engine.spark.storage.workspace import Options

HERE = Path(__file__).resolve().parent
# Many small jobs on little data: compiling them thoroughly would take longer than running them.
CLUSTER = Cluster(
    "local[2]",
    {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
    },
)


def jobs_so_far(engine: SparkEngine) -> int:
    """Count all jobs of the session, whoever started them: the engine knows only of its own."""
    # The scheduler counts as it takes them; what listeners have heard of so far may be less.
    return int(engine.jobs.session.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what lies in this folder."""
    if item.path.resolve().is_relative_to(HERE):
        item.add_marker(pytest.mark.spark)
        item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def make_engine(java: None) -> Callable[[Options], SparkEngine]:  # noqa: ARG001 - needed, not used
    """Return a maker of engines with options of their own, all on one session."""
    return lambda options: SparkEngine(cluster=CLUSTER, options=options)


@pytest.fixture(scope="session")
def spark(java: None) -> SparkEngine:  # noqa: ARG001 - needed, not used
    """The engine as users get it."""
    return SparkEngine(cluster=CLUSTER)
