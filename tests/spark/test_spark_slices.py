"""A slice that is cut on Spark is the one that the embedded engine cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.test_slice import FARM
from zodiacedge.engine.api import Settings
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.pipeline.publish_slices import publish

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
    assert publish(tmp_path / "farm", tmp_path / "fleet", ["near(T, _)"], [], spark.jobs) == []
