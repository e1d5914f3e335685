"""What `import zodiacedge` offers, and that it costs nothing before it is used."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import zodiacedge as ze
from zodiacedge.errors import StoreProblem, UsageProblem
from zodiacedge.opening import open_kb


@pytest.mark.parametrize("name", ze.__all__)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(ze, name) is not None
    assert name in dir(ze)


def test_the_names_with_a_home_are_the_public_ones() -> None:
    assert sorted(name for names in ze._HOMES.values() for name in names) == sorted(ze.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'opne'"):
        _ = ze.opne  # type: ignore[attr-defined]


def test_the_package_loads_nothing_before_it_is_used() -> None:
    script = (
        "import sys, zodiacedge.cli; print(*sorted(m for m in sys.modules if 'zodiac' in m or m == 'click'))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["zodiacedge", "zodiacedge.cli"]


def test_open_takes_what_the_knowledge_base_takes() -> None:
    assert inspect.signature(ze.open) == inspect.signature(open_kb)
    assert ze.open(engine="reference").version == 0


@pytest.mark.parametrize("option", [{"create": True}, {"read_only": True}, {"at": 1}])
def test_options_of_a_store_want_a_store(option: dict[str, int]) -> None:
    with pytest.raises(UsageProblem) as caught:
        ze.open(**option)  # type: ignore[call-overload]
    (found,) = caught.value.diagnostics
    assert found.code == "U008"


@pytest.mark.parametrize("store", ["farm.store", Path("farm.store")])
def test_a_store_that_is_not_there_is_refused_with_words(
    store: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreProblem) as caught:
        ze.open(store)
    (found,) = caught.value.diagnostics
    assert found.code == "D001"
    assert "there is no store farm.store" in found.message
