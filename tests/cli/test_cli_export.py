"""`zodiac export`: files of facts, and slices for devices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from zodiacedge.engine.embedded.state import EmbeddedState

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

RULES = """
r1: alarm(T) :- reading(T, V), V > 50 .
r2: calm(T) :- turbine(T), not alarm(T) .
r3: paid(T) :- bill(T, B), settled(B) .
turbine(wt1) .  turbine(wt2) .  reading(wt1, 60) .  reading(wt2, 20) .  bill(wt1, 7) .
"""


@pytest.fixture
def farm(zodiac: Zodiac, save: Save) -> str:
    save("farm.rules", RULES)
    assert zodiac("init", "farm", "--rules", "farm.rules").code == 0
    return "farm"


def test_a_slice_is_a_store(zodiac: Zodiac, farm: str) -> None:
    done = zodiac("export", farm, "--out", "wt1", "--slice", "?- reading(T, V) .", "--given", "T=wt1")
    assert (done.code, done.err) == (0, "")
    assert done.out == "wrote 1 fact and 2 rules to wt1, 1 rule left behind\n"
    assert zodiac("query", "wt1", "?- alarm(T) .").out == "T\nwt1\n1 row\n"
    assert zodiac("verify", "wt1").code == 0


def test_a_slice_of_an_earlier_version_and_for_machines(zodiac: Zodiac, save: Save, farm: str) -> None:
    save("reading.csv", "<wt1>,99\n")
    assert zodiac("apply", farm, "--add-facts", "reading.csv").code == 0
    options = ("--slice", "about(wt1) :- turbine(wt1) .", "--slice", "alarm(_)", "--json")
    document = zodiac("export", farm, "--at", "1", "--out", "wt1", *options).document
    assert document == {
        "version": 1,
        "store": "wt1",
        "facts": 4,
        "rules": 2,
        "left_behind": 1,
        "given": ["alarm/1"],
        "warnings": [],
    }


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--slice", "reading(_, _)", "--format", "nt"), 2, "a slice is a store"),
        (("--given", "T=wt1"), 2, "add --slice"),
        (("--slice", "reading(T, _)", "--given", "T"), 2, "T=wt1, not 'T'"),
        (("--slice", "reading(T, _)", "--given", "T=wt1)"), 1, "L001"),
        (("--slice", "reading(T, _)", "--given", "T=X"), 1, "L010"),
        (("--slice", "reading(T, _)", "--given", "T=wt1, wt2"), 2, "one term for each variable"),
        (("--slice", "reading(T, _)", "--given", "T=wt1", "--given", "T=wt2"), 2, "takes one term"),
        (("--slice", "reading(T, _)", "--given", "Q=wt1"), 1, "U009"),
        (("--slice", "reading(T,"), 1, "L001"),
    ],
)
def test_what_makes_no_sense_is_refused(
    zodiac: Zodiac, farm: str, options: tuple[str, ...], code: int, words: str
) -> None:
    done = zodiac("export", farm, "--out", "new", *options)
    assert done.code == code
    assert words in done.err
    assert not Path("new").exists()


def test_a_slice_never_replaces_a_store(zodiac: Zodiac, farm: str) -> None:
    done = zodiac("export", farm, "--out", farm, "--slice", "reading(_, _)")
    assert done.code == 1
    assert "D014" in done.err


def test_facts_are_exported_to_files(zodiac: Zodiac, farm: str, folder: Path) -> None:
    done = zodiac("export", farm, "--out", "facts", "--format", "nt")
    assert (done.code, done.err) == (0, "")
    assert done.out == "wrote 2 facts to 3 files in facts\n"
    kb = ze.open()
    with kb.change() as c:
        c.load(*sorted((folder / "facts").glob("*.nt")))
    assert sorted(kb.explicit_counts().items()) == [("alarm", 1), ("calm", 1)]
    document = zodiac("export", farm, "--out", "all", "--what", "all", "--json").document
    assert document["version"] == 1
    assert isinstance(document["export"], dict)
    assert document["export"]["rows"] == 7


def test_neither_an_export_nor_a_diff_lists_all_facts_at_once(
    zodiac: Zodiac, save: Save, farm: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save("reading.csv", "<wt2>,99\n")
    assert zodiac("apply", farm, "--add-facts", "reading.csv").code == 0

    def listed(*_: object) -> None:
        raise AssertionError("all facts at once")

    for name in ("visible", "derived", "explicit"):
        monkeypatch.setattr(EmbeddedState, name, listed)
    assert zodiac("export", farm, "--out", "facts", "--what", "all").code == 0
    assert zodiac("run", "farm.rules", "--out", "derived").code == 0
    names = {path.name for path in (folder / "facts").iterdir()}
    assert names - {path.name for path in (folder / "derived").iterdir()} == {
        "bill.csv",
        "reading.csv",
        "turbine.csv",
    }
    assert (folder / "facts" / "reading.csv").read_text() == "<wt1>,60\n<wt2>,20\n<wt2>,99\n"
    document = zodiac("diff", farm, "1", "2", "--json").document
    assert (document["inserted"], document["deleted"]) == ({"alarm": 1, "reading": 1}, {"calm": 1})
