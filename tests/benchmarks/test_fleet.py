"""A small fleet is measured: every device gets every version, and the figures say what it took."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from zodiacedge_bench.fleet.report import FleetReport
from zodiacedge_bench.fleet.run import FleetSize, fleet_figures
from zodiacedge_bench.measure.machine import this_machine

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


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
    assert [len(table.rows) for table in report.tables()] == [5, 5]
    json.dumps(report.to_dict())
