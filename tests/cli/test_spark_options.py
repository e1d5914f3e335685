"""Options of Spark on the command line: read before anything starts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import zodiacedge as ze
from zodiacedge.cli.app import zodiac

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pipelines.md"


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


def test_the_page_names_the_defaults() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+)( MB)? \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = {name: int(number.replace(",", "")) << (20 if unit else 0) for name, number, unit in rows}
    options = ze.SparkOptions()
    assert named == {name: getattr(options, name) for name in named}
    assert named.keys() >= {"gather_rows", "driver_rows", "look_up_from", "whole_rows", "split_bytes"}
