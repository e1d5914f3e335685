"""A stream that kills itself at a given moment of its first change, or is killed: a program of its own.

Run with the folder of a store, the folder that files arrive in, the moment, and who finds the files: `spark`
or `embedded`.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import zodiacedge as ze
from zodiacedge.engine.spark.cluster.session import Cluster
from zodiacedge.pipeline.stream import FileSelection, Stream
from zodiacedge.store.log.local import FileLog
from zodiacedge.store.store import DurableStore

if TYPE_CHECKING:
    from zodiacedge.pipeline.stream import Applied

QUICK = Cluster(
    "local[1]",
    {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
    },
)
MOMENTS = ("worked out", "written", "acknowledged", "never")


def die(*_: object) -> None:
    """End this process as nobody can prevent."""
    os.kill(os.getpid(), signal.SIGKILL)


def main(store: str, landing: str, moment: str, finder: str = "spark") -> None:
    """Take what there is, or die on the way."""
    kb = ze.open(store)

    def told(applied: Applied) -> None:
        sys.stdout.write(f"{'again' if applied.again else 'taken'} {applied.number}\n")
        sys.stdout.flush()
        if moment == "acknowledged" and not applied.again:
            # The change is on disk, and who found the files has not heard yet that the batch is done.
            die()

    if moment == "worked out":
        # All that follows from the facts is known, and nothing is in the log.
        DurableStore.record = die  # type: ignore[assignment, method-assign]
    if moment == "written":
        # The record is in the file, and nobody knows whether it is on disk.
        FileLog.sync = die  # type: ignore[assignment, method-assign]
    reading = FileSelection(most_files=1) if moment == "one by one" else None
    Stream(kb, landing, reading, told, QUICK if finder == "spark" else None).follow()
    kb.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
