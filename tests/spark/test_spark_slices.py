"""A slice that is cut on Spark is the one that the embedded engine cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from spark.conftest import jobs_so_far
from store.test_slice import FARM
from zodiacedge.engine.api import Settings
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.engine.spark.engine import SparkEngine


@pytest.mark.parametrize(
    "texts",
    [
        ("?- near(T, N), sensor(N, S), reading(S, _) .",),
        ("near(T, _)", "alarm(_)"),
        ("about(T) :- Turbine(T) .", "about(S) :- sensor(T, S) ."),
    ],
)
def test_both_engines_cut_the_same_slice(spark: SparkEngine, tmp_path: Path, texts: tuple[str, ...]) -> None:
    values = {"T": ze.iri("wt2")}
    found = []
    for name, kb in (("here", ze.open()), ("spark", KnowledgeBase(spark, Settings()))):
        with kb.change() as c:
            c.add_rules(FARM)
        cut = kb.export_slice(tmp_path / name, *texts, **values)
        with ze.open(tmp_path / name) as device:
            assert device.verify().ok
            found.append((cut.facts, cut.rules, cut.given, device.facts(), device.rules))
    assert found[0] == found[1]
    assert found[0][0]


def test_a_fleet_without_devices_gets_no_slices(spark: SparkEngine, tmp_path: Path) -> None:
    with ze.open(tmp_path / "farm", create=True) as kb, kb.change() as c:
        c.add_rules(FARM)
    session = spark.jobs.session
    assert ze.publish_slices(tmp_path / "farm", tmp_path / "fleet", ["near(T, _)"], [], spark=session) == []


def test_tasks_of_a_session_write_the_slices_of_devices(spark: SparkEngine, tmp_path: Path) -> None:
    with ze.open(tmp_path / "farm", create=True) as kb, kb.change() as c:
        c.add_rules(FARM)
    devices = [ze.Device(name, {"T": ze.iri(name)}) for name in ("wt1", "wt2", "wt3")]
    before = jobs_so_far(spark)
    by_tasks = ze.publish_slices(
        tmp_path / "farm", tmp_path / "tasks", ["near(T, _)"], devices, spark=spark.jobs.session
    )
    assert jobs_so_far(spark) == before + 1
    here = ze.publish_slices(tmp_path / "farm", tmp_path / "here", ["near(T, _)"], devices)
    assert [(one.name, one.facts, one.rules) for one in by_tasks] == [
        (one.name, one.facts, one.rules) for one in here
    ]
    for one in by_tasks:
        assert one.store.startswith(str(tmp_path / "tasks"))
        with ze.open(one.store, read_only=True) as device:
            assert len(device.facts()) >= one.facts
