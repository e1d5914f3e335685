"""A little of the fuzzing with every run of the tests, and much of it in a soak run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fuzz.cases import SUBJECTS, run_case
from strategies import examples

if TYPE_CHECKING:
    from pathlib import Path

_SOAK = 100_000


@pytest.mark.parametrize("name", SUBJECTS)
def test_some_cases_of_each_subject(name: str, tmp_path: Path) -> None:
    for seed in range(25):
        assert not run_case(name, seed, tmp_path), f"--only {name} --seed {seed} --cases 1"


@pytest.mark.soak
@pytest.mark.parametrize("name", SUBJECTS)
def test_many_cases_of_each_subject(name: str, tmp_path: Path) -> None:
    for seed in range(_SOAK, _SOAK + examples(1000, one_in=50)):
        assert not run_case(name, seed, tmp_path), f"--only {name} --seed {seed} --cases 1"


# A name in a Parquet file that is no text, in one of a store and in one that is loaded.
@pytest.mark.parametrize(("name", "seed"), [("forged", 1794849842), ("data", 1794948862)])
def test_what_was_found_once_stays_mended(name: str, seed: int, tmp_path: Path) -> None:
    assert not run_case(name, seed, tmp_path)
