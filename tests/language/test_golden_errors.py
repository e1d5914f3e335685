"""The exact text of every message, for the programs of `tests/golden/errors`.

Each `name.rules` has a `name.expected` beside it: what a person is shown for that file, all findings
of the parser and the checks in the order of the text, or where there are no errors those of
lints and stratification. A registered function or aggregate is unknown here: nothing is registered.

After a message was changed on purpose, write the files anew and *read the difference*:

    ZODIAC_WRITE_GOLDEN=1 python -m pytest tests/language/test_golden_errors.py
    git diff tests/golden/errors
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from zodiacedge.errors import Diagnostic, StratificationProblem
from zodiacedge.graph import HyperGraph
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Host, Subject, check
from zodiacedge.language.lint.lints import lint
from zodiacedge.language.parser import read_program
from zodiacedge.language.safety import resolve

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "errors"
PROGRAMS = sorted(FOLDER.glob("*.rules"))
WRITE = bool(os.environ.get("ZODIAC_WRITE_GOLDEN"))
# What no text can cause: two aggregates in one body do not parse; names of relations and subscriptions.
UNREACHABLE = {"C005", "I006", "U012"}


def findings(path: Path) -> list[Diagnostic]:
    program, found = read_program(path.read_text(encoding="utf-8"), path.name)
    found += check(Subject(program.rules, program.facts, host=Host((), ())))
    if not any(d.severity == "error" for d in found):
        found += lint(program.rules)
        try:
            HyperGraph.build({rule_key(resolve(r)): resolve(r) for r in program.rules})
        except StratificationProblem as problem:
            found += problem.diagnostics
    return sorted(found, key=lambda d: d.span.start if d.span else -1)


def rendered(path: Path) -> str:
    return "".join(f"{d.render()}\n\n" for d in findings(path)) or "no findings\n"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_file_gets_exactly_these_messages(path: Path) -> None:
    expected = path.with_suffix(".expected")
    if WRITE:
        expected.write_text(rendered(path), encoding="utf-8")
    assert rendered(path) == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "path", [p for p in PROGRAMS if re.match(r"[A-Z][0-9]{3}_", p.name)], ids=lambda p: p.stem
)
def test_a_file_named_after_a_code_has_it(path: Path) -> None:
    assert path.name[:4] in {d.code for d in findings(path)}


def test_every_code_of_the_language_has_a_file() -> None:
    source = FOLDER.parents[2] / "src" / "zodiacedge"
    texts = [
        p.read_text(encoding="utf-8") for part in ("language", "graph") for p in (source / part).rglob("*.py")
    ]
    codes = {code for text in texts for code in re.findall(r'"([A-Z][0-9]{3})"', text)}
    assert codes - UNREACHABLE == {p.name[:4] for p in PROGRAMS if re.match(r"[A-Z][0-9]{3}_", p.name)}


def test_no_expectation_stands_alone() -> None:
    assert {p.stem for p in FOLDER.glob("*.expected")} == {p.stem for p in PROGRAMS}


def test_every_error_says_what_to_do() -> None:
    silent = {d.message for path in PROGRAMS for d in findings(path) if not d.note and d.code != "L001"}
    assert silent == set()
