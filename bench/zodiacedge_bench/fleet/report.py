"""Tables, JSON and verdicts of a fleet."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from zodiacedge_bench.report.tables import TextTable

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge_bench.fleet.run import FleetFigures
    from zodiacedge_bench.measure.machine import Machine

MOST_WIRE = 5_000
MOST_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class FleetReport:
    """The figures of a fleet, and the targets."""

    machine: Machine
    figures: FleetFigures
    bench: str = "fleet"
    not_installed: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {"bench": self.bench, "machine": self.machine.to_dict(), "fleet": asdict(self.figures)}

    def tables(self) -> list[TextTable]:
        """Return the phases, and the costs of one changed rule with their targets."""
        count = self.figures.size.devices
        phases = tuple(
            (
                phase.name,
                f"{phase.p50_seconds:.1f}",
                f"{phase.p99_seconds:.1f}",
                f"{phase.hub_cpu_seconds:.1f}",
                f"{1e3 * phase.hub_cpu_seconds / count:.1f}",
                f"{phase.devices_cpu_seconds:.1f}",
                f"{phase.received_bytes:,.0f}",
            )
            for phase in self.figures.phases
        )
        columns = (
            f"{count:,} devices",
            "p50 s",
            "p99 s",
            "hub CPU s",
            "ms / device",
            "devices CPU s",
            "bytes",
        )
        large = self.figures.large
        more = large.install_cpu_seconds - large.change_cpu_seconds
        rows = (
            ("metadata and delta, bytes", f"{large.body_bytes:,}", ""),
            (
                "on the sockets, with HTTP, news and two statuses, bytes",
                f"{large.wire_bytes:,}",
                "",
            ),
            (
                "the same, of the upgrade that cost most",
                f"{large.most_wire_bytes:,}",
                _verdict(large.most_wire_bytes, MOST_WIRE),
            ),
            ("in force, CPU ms", f"{1e3 * large.install_cpu_seconds:.1f}", ""),
            ("the same change by hand, CPU ms", f"{1e3 * large.change_cpu_seconds:.1f}", ""),
            ("more than by hand, CPU ms", f"{1e3 * more:.1f}", _verdict(more, MOST_SECONDS)),
        )
        title = f"one rule changed among {large.rules:,}"
        return [TextTable(columns, phases), TextTable((title, "found", "target"), rows)]

    def draw(self, _folder: Path) -> list[Path]:
        """Draw nothing."""
        return []


def _verdict(found: float, most: float) -> str:
    shown = f"{most:,}" if most > 1 else f"{1e3 * most:.0f}"
    return f"at most {shown}: {'met' if found <= most else 'missed'}"
