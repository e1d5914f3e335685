"""A cap on what reaches the driver: what tasks return, and what this process reads from files itself."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyspark.core.rdd import RDD
from pyspark.sql.classic.dataframe import DataFrame

from zodiacedge.engine.spark.cluster.jobs import Jobs
from zodiacedge.engine.spark.lookup import by_key
from zodiacedge.engine.spark.persistence import adapter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

MOST_ROWS = 60
MOST_BYTES = 12_000


@dataclass
class Reached:
    """What came to the driver: the most rows and bytes at once, and the rows that look-ups by key brought."""

    rows: int = 0
    size: int = 0
    looked_up: list[int] = field(default_factory=list)

    def take(self, rows: int, size: int = 0) -> None:
        """Take note of what came; no more than a little may."""
        self.rows, self.size = max(self.rows, rows), max(self.size, size)
        assert rows <= MOST_ROWS
        assert size <= MOST_BYTES


def cap(monkeypatch: pytest.MonkeyPatch) -> Reached:
    """Let nothing bring more than a little to the driver.

    Tasks are other processes, so what this one reads from files is what the driver reads.
    """
    reached = Reached()

    def listen(home: object, name: str, take: Callable[[Any], object]) -> None:
        call = getattr(home, name)

        def listened(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - stands for any call
            result = call(*args, **options)
            take(result)
            return result

        monkeypatch.setattr(home, name, listened)

    def forbid(home: object, name: str) -> None:
        listen(home, name, lambda _: reached.take(MOST_ROWS + 1))

    # What tasks return, in whatever it is wrapped.
    listen(RDD, "collect", lambda found: reached.take(0, len(pickle.dumps(found))))
    listen(DataFrame, "collect", lambda found: reached.take(len(found), len(pickle.dumps(found))))
    for name in ("toArrow", "toPandas", "toLocalIterator"):
        forbid(DataFrame, name)
    # What the driver reads itself.
    for name in ("read", "read_row_group", "read_row_groups"):
        listen(pq.ParquetFile, name, lambda found: reached.take(found.num_rows, found.nbytes))
    listen(pq, "read_table", lambda found: reached.take(found.num_rows, found.nbytes))
    batches = pq.ParquetFile.iter_batches

    def counted(self: pq.ParquetFile, *args: Any, **options: Any) -> Iterator[Any]:  # noqa: ANN401
        rows = 0
        for batch in batches(self, *args, **options):
            rows += batch.num_rows
            reached.take(rows)
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    each = Jobs.each

    def noted(self: Jobs, work: Callable[..., Any], *rest: Any, **options: Any) -> Any:  # noqa: ANN401
        found = each(self, work, *rest, **options)
        if work is by_key.look_up:
            reached.looked_up += [len(columns[0]) for one in found for _, columns in one or ()]
        return found

    monkeypatch.setattr(Jobs, "each", noted)
    # A store of any size is read by tasks.
    monkeypatch.setattr(adapter, "_BYTES_PER_TASK", 1 << 14)
    return reached
