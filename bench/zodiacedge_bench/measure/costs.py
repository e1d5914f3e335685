"""What a question or a change costs on Spark: jobs, and rows that were read of the engine's files."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one question or change."""

    workload: str
    what: str
    jobs: int
    rows_read: int
    """Of files of facts, of terms and of their indexes, by the driver and by tasks."""
    seconds: float
    cpu_seconds: float
    """Of the driver, Java and all workers."""

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return asdict(self)
