"""Golden programs when neither one task nor parts are allowed: by plans, and recursions in rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.test_golden_programs import PROGRAMS, transcript
from strategies import evaluate_text
from zodiacedge.engine.spark.place import Options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zodiacedge.engine.spark.engine import SparkEngine

# All of them take minutes: some with every run of the tests, all with the long ones.
_EVERY = 6


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=() if number % _EVERY == 0 else pytest.mark.soak)
        for number, path in enumerate(PROGRAMS)
    ],
)
def test_a_golden_program_by_plans_and_rounds(
    path: Path, make_engine: Callable[[Options], SparkEngine]
) -> None:
    written = path.with_suffix(".expected").read_text(encoding="utf-8").splitlines()
    expected = [line for line in written if line and not line.startswith("#")]
    queries = [line for line in expected if line.startswith("?-") or ":-" in line]
    kb = evaluate_text(path.read_text(encoding="utf-8"), engine=make_engine(Options(way="rounds")))
    assert transcript(kb, queries) == expected
