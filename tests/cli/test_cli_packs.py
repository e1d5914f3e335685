"""`zodiac pack`: build, show, diff, install, remove, list; previews that change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from packs.making import write_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Done

RULES = "r1: hot(X) :- reading(X, V), limit(L), V > L .  limit(80) ."
MORE = '[[checks]]\nnone = "?- hot(X), cold(X) ."\n'


@pytest.fixture
def farm(zodiac: Callable[..., Done], save: Callable[[str, str], Path]) -> str:
    """A store with readings, and two versions of a pack with the delta between them."""
    save("farm.rules", "reading(a, 90) . reading(b, 60) . cold(b) .")
    assert zodiac("init", "farm.zodiac", "--rules", "farm.rules").code == 0
    for version, rules in ((1, RULES), (2, RULES.replace("80", "50")), (3, RULES.replace("80", "70"))):
        write_source(Path("source"), rules, version, more=MORE)
        assert zodiac("pack", "build", "source").code == 0
    for before, after in (("1", "2"), ("1", "3")):
        files = f"diagnosis-{before}.zpack", f"diagnosis-{after}.zpack"
        assert zodiac("pack", "diff", *files, "--out", ".").code == 0
    return "farm.zodiac"


def test_a_pack_is_built_once(zodiac: Callable[..., Done], farm: str) -> None:
    data = Path("diagnosis-3.zpack").read_bytes()
    assert zodiac("pack", "build", "source", "--out", "again.zpack").code == 0
    assert Path("again.zpack").read_bytes() == data
    done = zodiac("pack", "build", "source", "--dry-run", "--out", "dry.zpack", "--json")
    assert done.document["bytes"] == len(data)
    assert not Path("dry.zpack").exists()
    assert Path(farm).is_dir()


def test_a_pack_is_shown(zodiac: Callable[..., Done], farm: str) -> None:
    assert Path(farm).is_dir()
    lines = zodiac("pack", "show", "diagnosis-1.zpack").out.splitlines()
    assert lines[:3] == [
        "pack diagnosis 1",
        "defines: hot, limit",
        "check: no answer to ans(X) :- hot(X), cold(X) .",
    ]
    assert lines[-2].endswith(": limit(80) .")
    assert lines[-1] == "r1: hot(X) :- reading(X, V), limit(L), V > L ."
    delta = zodiac("pack", "show", "diagnosis-1-2.zdelta").out
    assert "delta diagnosis 1 to 2" in delta
    assert "limit(50) ." in delta


def test_two_versions_are_compared(zodiac: Callable[..., Done], farm: str) -> None:
    assert Path(farm).is_dir()
    done = zodiac("pack", "diff", "diagnosis-1.zpack", "diagnosis-3.zpack", "--json")
    assert done.document["versions"] == [1, 3]
    assert [str(text).partition(": ")[2] for text in list_of(done, "added")] == ["limit(70) :- 1 = 1 ."]
    assert [str(text).partition(": ")[2] for text in list_of(done, "removed")] == ["limit(80) :- 1 = 1 ."]
    refused = zodiac("pack", "diff", "diagnosis-1.zpack", "diagnosis-1-2.zdelta")
    assert (refused.code, "P009" in refused.err) == (1, True)


def list_of(done: Done, name: str) -> list[object]:
    found = done.document[name]
    assert isinstance(found, list)
    return found


def test_a_dry_run_shows_facts_and_changes_nothing(zodiac: Callable[..., Done], farm: str) -> None:
    done = zodiac("pack", "install", farm, "diagnosis-1.zpack", "--dry-run", "--html", "preview.html")
    assert "+ hot(a)  by diagnosis/r1 from reading(a, 90)" in done.out
    assert "hot(a)" in Path("preview.html").read_text(encoding="utf-8")
    assert zodiac("pack", "list", farm).out == "no pack is installed\n"
    assert zodiac("pack", "install", farm, "diagnosis-1.zpack", "--html", "p.html").code == 2


def test_a_pack_is_installed_upgraded_and_removed(zodiac: Callable[..., Done], farm: str) -> None:
    assert zodiac("pack", "install", farm, "diagnosis-1.zpack").code == 0
    done = zodiac("pack", "install", farm, "diagnosis-1-3.zdelta", "-m", "a lower limit", "--json")
    assert done.document["packs"] == {"diagnosis": [1, 3]}
    listed = zodiac("pack", "list", farm)
    assert [line.split()[:4] for line in listed.out.splitlines()] == [
        ["pack", "version", "rules", "checks"],
        ["diagnosis", "3", "2", "hold"],
    ]
    assert "a lower limit" in zodiac("log", farm).out
    assert zodiac("pack", "install", farm, "diagnosis-1.zpack").code == 1
    assert zodiac("pack", "install", farm, "diagnosis-1.zpack", "--older").code == 0
    assert "- hot(a)" in zodiac("pack", "remove", farm, "diagnosis", "--dry-run").out
    assert zodiac("pack", "remove", farm, "diagnosis").code == 0
    assert zodiac("pack", "list", farm, "--at", "3").out.splitlines()[1].startswith("diagnosis")


def test_a_failing_check_refuses_the_pack(zodiac: Callable[..., Done], farm: str) -> None:
    done = zodiac("pack", "install", farm, "diagnosis-2.zpack")
    assert done.code == 1
    assert "P010" in done.err
    assert zodiac("pack", "list", farm).out == "no pack is installed\n"


def test_a_check_that_fails_later_is_listed(
    zodiac: Callable[..., Done], farm: str, save: Callable[[str, str], Path]
) -> None:
    assert zodiac("pack", "install", farm, "diagnosis-1.zpack").code == 0
    save("more.rules", "cold(a) .")
    assert zodiac("apply", farm, "--add-rules", "more.rules").code == 0
    done = zodiac("pack", "list", farm)
    assert "fail" in done.out
    assert "a check of the pack diagnosis 1 fails: there must be no answer to" in done.err


def test_a_rule_of_a_pack_stays(zodiac: Callable[..., Done], farm: str) -> None:
    assert zodiac("pack", "install", farm, "diagnosis-1.zpack").code == 0
    done = zodiac("apply", farm, "--remove-rules", "diagnosis/r1")
    assert done.code == 1
    assert "P012" in done.err
