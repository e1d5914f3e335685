"""What a question or a change costs on Spark, and the state that questions are asked of.

A question costs jobs, and rows that are read of the engine's files. The state is files and their indexes.
"""

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


@dataclass(frozen=True, slots=True)
class StateSize:
    """The bytes of a state on Spark, and the processor time to get there."""

    workload: str
    what: str
    facts: int
    """Explicit and derived."""
    file_bytes: int
    index_bytes: int
    """Of the indexes of facts and of terms."""
    term_bytes: int
    load_cpu_seconds: float
    """To load the facts: of the driver, Java and all workers."""
    rules_cpu_seconds: float
    """To add the rules."""

    @property
    def bytes_per_fact(self) -> float:
        """All bytes, divided by the number of facts."""
        return (self.file_bytes + self.index_bytes + self.term_bytes) / max(self.facts, 1)

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return asdict(self) | {"bytes_per_fact": self.bytes_per_fact}
