"""Options of Spark on the command line: read before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from zodiacedge.cli.app import zodiac

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--engine", "spark", "--spark-option", "gather_row=1"], "did you mean gather_rows?"),
        (["--engine", "spark", "--spark-option", "gather_rows=many"], "is a number, not 'many'"),
        (["--engine", "spark", "--spark-option", "gather_rows"], "is no option of Spark"),
        (["--spark-option", "gather_rows=1"], 'choose engine="spark"'),
    ],
)
def test_a_wrong_option_is_told(arguments: list[str], words: str, tmp_path: Path) -> None:
    program = tmp_path / "a.rules"
    program.write_text("q(X) :- p(X) . p(a) .")
    done = CliRunner().invoke(zodiac, ["run", str(program), *arguments])
    assert done.exit_code == 1
    assert words in done.output.replace("\n", " ")
