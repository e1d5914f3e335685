"""A small fleet is measured: every device gets every version, and the figures say what it took."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from zodiacedge_bench.fleet.report import FleetReport
from zodiacedge_bench.fleet.run import FleetSize, fleet_figures
from zodiacedge_bench.measure.machine import this_machine

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
DEVICES = int(os.environ.get("ZODIAC_DEVICES", "1000"))


def test_a_small_fleet_is_measured(tmp_path: Path) -> None:
    told: list[str] = []
    figures = fleet_figures(FleetSize(4, 40), tmp_path, told.append)
    names = [phase.name for phase in figures.phases]
    assert names[0] == "enrol"
    assert names[-1] == "all come back at once"
    assert len(told) == len(names)
    for phase in figures.phases[1:]:
        assert 0 < phase.p50_seconds <= phase.p99_seconds
        assert 1_000 < phase.received_bytes < 10_000
    # What travels is a delta and what is signed, and HTTP adds to it.
    assert figures.large.body_bytes < figures.large.wire_bytes < 5_000
    assert figures.large.rules == 40
    report = FleetReport(this_machine(), figures)
    assert [len(table.rows) for table in report.tables()] == [5, 6]
    json.dumps(report.to_dict())


@pytest.mark.soak
def test_a_thousand_devices_come_back_at_once(tmp_path: Path) -> None:
    """Each enrols, gets every version and reports it, the last after the hub was killed with all at work."""
    figures = fleet_figures(FleetSize(DEVICES, 40), tmp_path, lambda _: None)
    assert figures.phases[-1].name == "all come back at once"
    assert figures.phases[-1].p99_seconds > 0
    assert figures.large.wire_bytes < 5_000
