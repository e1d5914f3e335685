"""`zodiac plan`: join orders, with guesses or with the sizes of real relations."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

RULES = "far: far(X, Z) :- near(X, Y), near(Y, Z), big(Z) .\nbig: big(X) :- near(X, X) .\n"


def test_without_facts_the_estimates_are_guesses(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", RULES)
    assert "about 1,000 each" in zodiac("plan", "a.rules").out


def test_facts_change_estimates_and_order(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", RULES)
    save("near.csv", "".join(f"{n},{n + 1}\n" for n in range(400)) + "7,7\n")
    done = zodiac("plan", "a.rules", "--facts", "near=near.csv", "--rule", "far")
    assert done.code == 0
    first = done.out.splitlines()[2]
    assert "big(Z) by scan, about 1 each" in first


def test_facts_that_are_not_there_are_told(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", RULES)
    done = zodiac("plan", "a.rules", "--facts", "nowhere.csv")
    assert done.code != 0
    assert "nowhere.csv" in done.err


def test_the_plans_of_a_store_have_the_sizes_of_its_relations(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", RULES)
    save("near.csv", "".join(f"{n},{n + 1}\n" for n in range(400)) + "7,7\n")
    assert zodiac("init", "a.zodiac", "--rules", "a.rules", "--facts", "near=near.csv").code == 0
    of_files = zodiac("plan", "a.rules", "--facts", "near=near.csv")
    assert zodiac("plan", "a.zodiac").out == of_files.out
    assert "error U006" in zodiac("plan", "a.zodiac", "--rule", "nowhere").err
