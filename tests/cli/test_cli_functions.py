"""Functions and aggregates from the command line: `--functions FILE.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

CODE = """
import math


def double(x):
    return x * 2


def register(kb):
    kb.function(double)
    kb.aggregate(lambda values: math.prod(values), name="PRODUCT")
"""
RULES = """
twice: twice(Y) :- q(X), Y := func:double(X) .
product: product(Y) :- AGGREGATE(q(X)) WITH PRODUCT(X) AS Y .
q(2) .  q(3) .
"""


@pytest.fixture
def files(save: Save) -> None:
    """Rules that call functions, and the code of these."""
    save("calls.py", CODE)
    save("calls.rules", RULES)


@pytest.mark.usefixtures("files")
def test_a_run_calls_what_a_file_registers(zodiac: Zodiac) -> None:
    query = "?- product(X), Y := func:double(X) ."
    done = zodiac("run", "calls.rules", "--functions", "calls.py", "--query", query)
    assert done.code == 0
    assert "6  12\n" in done.out
    assert "C009" in zodiac("run", "calls.rules").err


@pytest.mark.usefixtures("files")
def test_commands_on_stores_call_it_too(zodiac: Zodiac, save: Save) -> None:
    save("q.csv", "5\n")
    calls = ("--functions", "calls.py")
    assert zodiac("init", "s", "--rules", "calls.rules", *calls).code == 0
    assert "D013" in zodiac("apply", "s", "--add-facts", "q.csv").err
    assert zodiac("apply", "s", "--add-facts", "q.csv", *calls).code == 0
    assert "30" in zodiac("query", "s", "?- product(X), Y := func:double(X) .", *calls).out
    assert zodiac("verify", "s", *calls).code == 0
    assert zodiac("rollback", "s", "1", *calls).code == 0
    for command in ("log", "rules", "stats", "diff"):
        assert zodiac(command, "s", *calls).code == 0


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def register(kb):\n    1 / 0\n", "calls.py:2 failed: ZeroDivisionError: division by zero"),
        ("def register(:\n", "calls.py failed: SyntaxError: "),
        ("import nowhere_at_all\n", "calls.py:1 failed: ModuleNotFoundError: "),
        ("x = 1\n", "calls.py defines no function register(kb)"),
        (None, "there is no file calls.py"),
    ],
)
def test_a_mistake_in_the_file_is_one_message(
    zodiac: Zodiac, save: Save, code: str | None, message: str
) -> None:
    save("calls.rules", RULES)
    if code is not None:
        save("calls.py", code)
    done = zodiac("run", "calls.rules", "--functions", "calls.py")
    assert done.code == 1
    assert done.err.startswith(f"error U027: {message}")
