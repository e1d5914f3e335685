"""Measure a tick with one row due, by how many rows the window holds.

Two rules, a window and a silence, over readings of a thousand sensors; at each tick one reading leaves both.
Target: under 1 ms of CPU, p50, with 10 thousand and with 10 million rows.

    PYTHONPATH=src python bench/programs/window_ticks.py 10000 1000000 10000000
"""

from __future__ import annotations

import statistics
import sys
import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

import zodiacedge as ze

_PROGRAM = """
@time reading 3 .
hot(S) :- reading(S, V, _) within 100 d, V > 999 .
silent(S) :- sensor(S), not reading(S, _, _) within 100 d .
"""
_START = datetime(2026, 1, 1, tzinfo=UTC)
_LENGTH = timedelta(days=100)
_APART = timedelta(microseconds=800_000)
_SENSORS = 1000
_TICKS = 60


def measure(rows: int) -> None:
    """Print the CPU time of ticks with so many rows in the window."""
    kb = ze.open()
    numbers = np.arange(rows)
    moments = int(_START.timestamp() * 1e6) + numbers * (_APART // timedelta(microseconds=1))
    columns = {"s": numbers % _SENSORS, "v": numbers % 997, "t": pa.array(moments)}
    table = pa.table(columns).cast(
        pa.schema([("s", pa.int64()), ("v", pa.int64()), ("t", pa.timestamp("us", tz="UTC"))])
    )
    with kb.change() as change:
        change.add_rules(_PROGRAM)
        change.tick(_START + _LENGTH - timedelta(seconds=1))
        change.add_facts(table, relation="reading")
    seconds: list[float] = []
    for tick in range(_TICKS):
        started = time.process_time()
        kb.tick(_START + _LENGTH + tick * _APART)
        seconds.append(time.process_time() - started)
    print(f"{rows:,} rows in the window: p50 {1000 * statistics.median(seconds):.2f} ms of CPU per tick")


if __name__ == "__main__":
    for rows in sys.argv[1:]:
        measure(int(rows))
