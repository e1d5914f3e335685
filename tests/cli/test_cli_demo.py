"""`zodiac demo` without Spark: the story holds together, and what it leaves behind can be played with."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from zodiacedge.demo import farm
from zodiacedge.demo.diagnosis import diagnose
from zodiacedge.engine.embedded.state import EmbeddedState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

SMALL = ("demo", "--turbines", "12", "--engine", "embedded")


def test_the_story_of_two_turbines(zodiac: Zodiac, folder: Path) -> None:
    done = zodiac(*SMALL, "--out", "played")
    assert (done.code, done.err) == (0, "")
    front, broken = done.out.split("\n5. ")[1].split("\n6. ")
    assert front.startswith("Turbine wt04 opens its slice in ")
    assert "unusual: ambientAirTemperature." in front
    assert "Refuted: the sensor is right, a cold front is there." in front
    assert broken.startswith("Turbine wt10 opens its slice in ")
    assert "unusual: ambientAirTemperature." in broken
    assert "Confirmed: the sensor is broken" in broken
    assert (
        "Why is its sensor not called broken?\n   SensorAnomalyWindTurbine(farm:wt04) is not there" in front
    )
    assert "✗ D > 5 fails: " in front
    assert "Why is its sensor called broken?\n   SensorAnomalyWindTurbine(farm:wt10)  by r6 with " in broken
    assert "└─ D > 5: " in broken
    for story in (front, broken):
        digests = [word.strip(".:") for word in story.split() if len(word.strip(".:")) == 16]
        before, after = (one for one in digests if set(one) <= set("0123456789abcdef"))
        assert before == after
        assert "exactly what it knew before" in story
    played = folder / "played"
    assert sorted(path.name for path in (played / "turbines").iterdir()) == [
        f"wt{number:02d}.zodiac" for number in range(1, 13)
    ]
    for picture in (played / "pictures").iterdir():
        assert ET.fromstring(picture.read_text(encoding="utf-8")).tag.endswith("svg")  # noqa: S314 - our own


def test_what_the_demo_leaves_behind_is_a_farm_to_play_with(zodiac: Zodiac, folder: Path) -> None:
    assert zodiac(*SMALL, "--out", "played").code == 0
    with ze.open(folder / "played" / "farm.zodiac") as kb:
        assert kb.version == 2
        assert len(kb.query("?- farm:WindTurbine(T) .")) == 12
        assert kb.verify("embedded").ok
        # The front is in the first row of two, and one sensor of the second is broken.
        found = kb.query("ans(T) :- farm:unusual(T, P) .")
        cold = {name.value.removeprefix(farm.FARM) for (name,) in found if isinstance(name, ze.IRI)}
        assert cold == {*(f"wt{number:02d}" for number in range(1, 7)), "wt10"}
    tried = (folder / "played" / "README.txt").read_text().split("Try:\n")[1].splitlines()
    for line in tried:
        _, command, store, *rest = shlex.split(line)
        assert zodiac(command, f"played/{store}", *rest).code == 0, line


def test_the_demo_for_machines(zodiac: Zodiac, folder: Path) -> None:
    document = zodiac(*SMALL, "--json").document
    assert document["anomalies"] == ["wt10"]
    assert document["state_restored"] is True
    assert document["slices"] == 12
    assert document["derived_total"] == sum(dict(document["derived"]).values())  # type: ignore[call-overload]
    assert {"explicit", "derived", "derived_total", "seconds"} <= set(document)
    assert json.loads((folder / "out" / "demo" / "story.json").read_text()) == document


def test_the_demo_is_played_again_in_its_own_folder_only(zodiac: Zodiac, save: Save) -> None:
    assert zodiac(*SMALL, "--out", "played").code == 0
    save("played/mine.txt", "something")
    assert zodiac(*SMALL, "--out", "played").code == 0
    mine = save("other/mine.txt", "something")
    done = zodiac(*SMALL, "--out", "other")
    assert done.code == 1
    assert "U005" in done.err
    assert [path.name for path in mine.parent.iterdir()] == ["mine.txt"]
    (mine.parent / "README.txt").write_bytes(b"caf\xe9")
    assert "U005" in zodiac(*SMALL, "--out", "other").err


def test_the_demo_needs_room(zodiac: Zodiac, save: Save) -> None:
    save("full", "")
    done = zodiac(*SMALL, "--out", "full")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error U005: full cannot be written: full is a file")


def test_without_java_the_demo_says_so_and_goes_on(
    zodiac: Zodiac, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    empty = tmp_path / "no programs"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("zodiacedge.engine.spark.cluster.session._active", lambda: None)
    done = zodiac("demo", "--turbines", "12")
    assert done.code == 0
    assert "Without Spark: Spark needs Java 17 or newer, and there is no Java." in done.out
    assert "Confirmed: the sensor is broken" in done.out


@pytest.mark.parametrize("degrees", [8.0, 30.0])
def test_what_a_turbine_finds_depends_on_its_neighbours_and_not_on_the_story(
    zodiac: Zodiac, folder: Path, degrees: float
) -> None:
    assert zodiac(*SMALL, "--out", "played").code == 0
    nearby = {farm.turbine(number): 29.0 + number / 10 for number in (1, 2, 4, 5, 6)}
    found = diagnose(folder / "played" / "turbines" / "wt03.zodiac", 3, degrees, nearby)
    assert found.broken is (degrees == 8.0)
    assert (found.neighbours, found.median) == (5, 29.4)
    assert found.restored
    assert found.unusual == ()


def test_the_farm_has_a_hundred_kinds_of_measurements() -> None:
    assert len({kind.name for kind in farm.kinds()}) == 100
    lines = list(farm.triples(30))
    assert len(set(lines)) == len(lines)
    assert lines == list(farm.triples(30))
    sensors = {line.split()[0] for line in lines if "isHostedBy" in line}
    assert len(sensors) == 3000


def test_pictures_count_what_nodes_derive_without_listing_it(
    zodiac: Zodiac, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(*_: object) -> None:
        raise AssertionError("a segment is listed")

    monkeypatch.setattr(EmbeddedState, "segment", listed)
    assert zodiac(*SMALL, "--out", "played").code == 0
    assert (folder / "played" / "pictures" / "farm-rules.svg").stat().st_size
