"""Soufflé where it is not installed: its processor time, estimated by DuckDB's in the same run.

On a machine that had it, Soufflé 2.5 ran beside ours: compiled, one thread, evaluation only. The same commit
of ours tells how that machine compares. Its time beside DuckDB is that of a later commit in one run with
DuckDB, times the quotient of the two commits, which were measured in the same hour.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    """Processor seconds of a workload on two machines, ours of one commit and without modules."""

    souffle: float
    ours: float
    """Beside Soufflé."""
    again: float
    """Beside DuckDB."""
    duckdb: float

    def seconds(self, duckdb: float) -> float:
        """Return Soufflé's processor time where DuckDB takes so many seconds."""
        return self.souffle / self.ours * self.again / self.duckdb * duckdb


REFERENCES = {
    "rs1 n=400": Reference(1.88, 0.47, 0.2804, 1.893),
    "rs2 n=200": Reference(0.62, 0.115, 0.0756, 0.4512),
    "rs3 n=200": Reference(0.61, 0.124, 0.0781, 0.443),
    "closure-dense": Reference(1.96, 0.58, 0.3967, 0.7214),
    "closure-sparse": Reference(5.0, 1.68, 1.3002, 1.1316),
    "same-generation": Reference(0.87, 0.42, 0.2558, 0.3265),
    "points-to": Reference(0.61, 0.63, 0.453, 3.1669),
    "lubm-1": Reference(0.010, 0.046, 0.0352, 0.1465),
    "lubm-10": Reference(0.151, 0.154, 0.1038, 0.3145),
}
