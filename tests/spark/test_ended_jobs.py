"""A job that is ended from outside, as by Ctrl-C: its workers have no time to tidy up."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from zodiacedge.engine.spark.cluster.jobs import Jobs
from zodiacedge.engine.spark.storage.files import Folder, Relation
from zodiacedge.engine.spark.storage.workspace import Workspace

if TYPE_CHECKING:
    from zodiacedge.engine.spark.engine import SparkEngine


@dataclass(frozen=True)
class Impatient:
    """Somebody who ends a job as soon as there is a file."""

    folder: Folder
    wanted: bool = False

    def yield_to_waiters(self) -> None:
        if list(Path(self.folder.uri).iterdir()):
            raise KeyboardInterrupt


def test_a_job_that_is_ended_leaves_no_file(spark: SparkEngine) -> None:
    place = Workspace(Jobs(spark.jobs.cluster))
    folder = place.scratch.folder

    # Tasks know no module of the tests: what stands in here travels to them.
    def write_and_wait(into: Folder) -> None:
        into.write_rows(Relation("p", 1), [np.array([1], np.int64)])
        time.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        place.jobs.one(write_and_wait, folder, "waiting", Impatient(folder))
    assert not list(Path(folder.uri).iterdir())
    assert place.jobs.one(len, "four", "counting") == 4
