"""Wrong command lines: the message has the command line that was meant, and that one works."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

RULES = "hot: hot(T) :- reading(T, C), C > 80 .\n"


@pytest.fixture(autouse=True)
def files(zodiac: Zodiac, save: Save) -> None:
    """A store, a rule file and a file of facts."""
    save("farm.rules", RULES)
    save("more.rules", "cold: cold(T) :- reading(T, C), C < 0 .\n")
    save("reading.csv", "<wt1>,93\n")
    save("r.csv", "<wt2>,55\n")
    save("notes", "warm: warm(T) :- reading(T, C), C > 50 .\n")
    assert zodiac("init", "farm", "--rules", "farm.rules", "--facts", "reading.csv").code == 0


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("init new more.rules", "zodiac init new --rules more.rules"),
        ("init more.rules new", "zodiac init new --rules more.rules"),
        ("init new farm.rules reading.csv", "zodiac init new --rules farm.rules --facts reading.csv"),
        ("init new farm.rules --max-facts=9", "zodiac init new --rules farm.rules --max-facts=9"),
        ("apply farm more.rules", "zodiac apply farm --add-rules more.rules"),
        ("apply farm notes", "zodiac apply farm --add-rules notes"),
        ("apply more.rules farm", "zodiac apply farm --add-rules more.rules"),
        (
            "apply farm reading.csv more.rules",
            "zodiac apply farm --add-facts reading.csv --add-rules more.rules",
        ),
        ("query 'hot(T)' farm", "zodiac query farm 'hot(T)'"),
        ("explain 'hot(wt1)' farm", "zodiac explain farm 'hot(wt1)'"),
        ("why-not 'hot(wt2)' farm", "zodiac why-not farm 'hot(wt2)'"),
        ("diff 0 1 farm", "zodiac diff farm 0 1"),
        ("rollback 0 farm", "zodiac rollback farm 0"),
        ("export farm out", "zodiac export farm --out out"),
    ],
)
def test_the_command_line_that_was_meant_is_named_and_works(zodiac: Zodiac, words: str, meant: str) -> None:
    wrong = zodiac(*shlex.split(words))
    assert wrong.code in {1, 2}
    assert wrong.err.rstrip().lower().endswith(f"did you mean: {meant.lower()}")
    assert zodiac(*shlex.split(meant)[1:]).code == 0


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        ("init new --add-rules farm.rules", "No such option '--add-rules'. Write --rules.\n"),
        ("apply farm --rules more.rules", "Write --add-rules to add rules, --sync to make"),
        ("apply farm --facts reading.csv", "Write --add-facts."),
        ("query farm --query 'hot(T)'", "A query is an argument: zodiac query STORE 'alarm(T)'."),
        ("run --rules farm.rules", "Rule files are arguments: zodiac run FILE."),
        ("shell --rules farm.rules", "Rule files are arguments: zodiac shell FILE."),
        ("run farm.rules 'hot(T)'", "a query is given as --query 'hot(T)'"),
        ("shell other.zodiac", "a store is made by zodiac init other.zodiac"),
        ("farm", "First say what to do: zodiac query farm 'alarm(T)', or zodiac shell farm."),
        ("farm.rules", "First say what to do: zodiac run farm.rules, or zodiac check farm.rules."),
        ("apply farm '+ hot(wt7) .'", "echo 'hot(wt7) .' | zodiac apply farm --add-rules -"),
        ("stream farm landing", "Missing option '--from'. Did you mean: zodiac stream farm --from landing"),
        ("init farm.rules reading.csv", "zodiac init STORE --rules farm.rules --facts reading.csv"),
        ("apply farm", "Nothing to do: name --add-rules, --remove-rules, --add-facts, --remove-facts or"),
    ],
)
def test_the_option_that_was_meant_is_named(zodiac: Zodiac, words: str, cure: str) -> None:
    wrong = zodiac(*shlex.split(words))
    assert wrong.code in {1, 2}
    assert cure in wrong.err


@pytest.mark.parametrize(
    "words",
    [
        "init one two three",
        "query farm --at x 'hot(T)'",
        "pack install farm",
        "query nowhere 'hot(T)'",
        "log a b",
    ],
)
def test_nothing_is_made_up_where_nothing_is_known(zodiac: Zodiac, words: str) -> None:
    wrong = zodiac(*shlex.split(words))
    assert wrong.code in {1, 2}
    assert "id you mean" not in wrong.err
