"""`zodiac watch`: facts as another process inserts and deletes them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]

RULES = "hot: hot(T) :- reading(T, C), C > 80 ."


@pytest.fixture
def farm(folder: Path) -> Path:
    """A store with three versions."""
    path = folder / "farm"
    with ze.open(path, create=True) as kb:
        with kb.change() as c:
            c.add_rules(RULES)
        with kb.change() as c:
            c.add_facts("reading(wt1, 90) .  reading(wt2, 95) .")
        with kb.change() as c:
            c.add_facts("reading(wt1, 60) .")
            c.remove_facts("reading(wt1, 90) .")
    return path


def test_versions_that_are_there_are_printed_from_one_on(zodiac: Zodiac, farm: Path) -> None:
    done = zodiac("watch", str(farm), "hot/1", "--since", "1", "--count", "2")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["2 + hot(wt1)", "2 + hot(wt2)", "3 - hot(wt1)"]
    done = zodiac("watch", str(farm), "hot/1", "--since", "1", "--once", "--json")
    assert json.loads(done.out) == {"version": 2, "inserted": ["hot(wt1)", "hot(wt2)"], "deleted": []}


def test_commits_of_another_process_arrive_until_ctrl_c(farm: Path) -> None:
    command = [sys.executable, "-m", "zodiacedge", "watch", str(farm), "hot", "--interval", "0.05", "--json"]
    with subprocess.Popen([*command, "--since", "2"], stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        # The first line says that it has begun to watch.
        assert json.loads(watching.stdout.readline())["version"] == 3
        with ze.open(farm) as kb:
            for turbine in ("wt3", "wt4"):
                with kb.change() as c:
                    c.add_facts(f"reading({turbine}, 99) .")
                line = json.loads(watching.stdout.readline())
                assert line == {"version": kb.version, "inserted": [f"hot({turbine})"], "deleted": []}
        watching.send_signal(signal.SIGINT)
        assert watching.wait() == 130


def test_what_makes_no_sense_is_refused(zodiac: Zodiac, farm: Path) -> None:
    assert zodiac("watch", str(farm), "hot", "--once", "--count", "2").code == 2
    assert zodiac("watch", "nowhere", "hot").code == 1
    assert "U012" in zodiac("watch", str(farm), "zz:hot").err


def test_an_unknown_predicate_is_told_and_watched(
    zodiac: Zodiac, farm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, hint in (("readng/2", "did you mean reading/2?"), ("hott", "did you mean hot?")):
        fact = f"{name.partition('/')[0]}(a, {len(name)})"

        def meanwhile(_seconds: float, fact: str = fact) -> None:
            with ze.open(farm) as kb, kb.change() as c:
                c.add_facts(f"{fact} .")

        monkeypatch.setattr("zodiacedge.cli.store.watch.time.sleep", meanwhile)
        done = zodiac("watch", str(farm), name, "--once")
        assert done.code == 0
        assert done.err == f"warning W004: unknown predicate {name}\n  = {hint}\n"
        assert f"+ {fact}\n" in done.out
    # Known at the last version is known, wherever the watch begins.
    for since in ("0", "1"):
        assert zodiac("watch", str(farm), "hot/1", "--since", since, "--once").err == ""
