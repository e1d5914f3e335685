"""What a limit saves on Spark: ten rows of a join of two relations that fit no task.

Two relations have so many rows each, 2,000,000 if not given, and every row of the first joins with one of the
second. Ten rows are asked for of all, and of those that one row in a thousand and in a million leads to.
Printed are seconds of the clock and of the processor (the driver, Java and the workers), and how many rows of
working files were read, without those that Spark's plans read.

    PYTHONPATH=src python bench/programs/limited_query.py [ROWS]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa

import zodiacedge as ze
from zodiacedge.engine.spark.cluster.task_files import rows_read

_ROWS = 2_000_000
_TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds() -> float:
    """Return the processor time of this process and of all that descend from it."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            seconds[int(folder.name)] = sum(map(int, fields[11:15])) / _TICKS
    family = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(seconds.get(number, 0.0) for number in family)


def main() -> None:
    """Load, and measure each query."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else _ROWS
    numbers = np.random.default_rng(1).permutation(rows)
    options = ze.SparkOptions(gather_rows=rows)
    kb = ze.open(engine="spark", master="local[2]", options=options)
    with kb.change() as c:
        c.add_facts(pa.table({"a": numbers, "b": (numbers * 7 + 1) % rows}), "near")
        c.add_facts(pa.table({"a": numbers, "b": (numbers * 11 + 5) % rows}), "far")
    join = "near(X, Y), far(Y, Z)"
    for name, query in (
        ("all", f"?- {join} ."),
        ("all again", f"?- {join} ."),
        ("a thousandth", f"?- {join}, X < {rows // 1000} ."),
        ("a millionth", f"?- {join}, X < {rows // 1_000_000} ."),
    ):
        cpu, clock = processor_seconds(), perf_counter()
        with rows_read() as read:
            found = len(kb.query(query, limit=10))
        clock, cpu = perf_counter() - clock, processor_seconds() - cpu
        print(f"{found} of {name}: {clock:.2f} s, {cpu:.2f} s of CPU, {read.rows:,} rows read", flush=True)


if __name__ == "__main__":
    main()
