"""Whatever changes accept opens again: programs with errors, split over two changes.

The programs are those of `tests/golden/errors` that parse, at least one for each check of the language.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import zodiacedge as ze
from zodiacedge.language.ast import Atom, Program, Rule
from zodiacedge.language.parser import parse_program

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "errors"
PROGRAMS = sorted(path for letter in "CG" for path in FOLDER.glob(f"{letter}*.rules"))

Statements = tuple[Rule | Atom, ...]


def statements_of(path: Path) -> Statements:
    program = parse_program(path.read_text(encoding="utf-8"), path.name)
    return (*program.rules, *program.facts)


def refusals(kb: ze.KnowledgeBase, statements: Statements) -> set[str]:
    """Return the codes with which a knowledge base refuses statements, if it does."""
    rules = tuple(s for s in statements if isinstance(s, Rule))
    facts = tuple(s for s in statements if isinstance(s, Atom))
    try:
        with kb.change() as c:
            c.add_program(Program(rules, facts))
    except ze.ZodiacError as problem:
        return {d.code for d in problem.diagnostics}
    return set()


def splits() -> list[tuple[str, int, str]]:
    return [
        (path.stem, cut, order)
        for path in PROGRAMS
        for cut in range(1, len(statements_of(path)))
        for order in ("forwards", "backwards")
    ]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_one_change_is_refused(path: Path) -> None:
    assert path.name[:4] in refusals(ze.open(), statements_of(path))


@pytest.mark.parametrize(("name", "cut", "order"), splits())
def test_two_changes_are_refused_for_the_same_reasons_and_the_store_opens_again(
    name: str, cut: int, order: str, tmp_path: Path
) -> None:
    statements = statements_of(FOLDER / f"{name}.rules")
    parts = [statements[:cut], statements[cut:]]
    if order == "backwards":
        parts.reverse()
    with ze.open(tmp_path / "split.zodiac", create=True) as kb:
        refused = [refusals(kb, part) for part in parts]
        rules, facts = set(kb.rules), kb.facts()
    assert any(refused)
    assert set().union(*refused) <= refusals(ze.open(), statements)
    with ze.open(tmp_path / "split.zodiac") as again:
        assert (set(again.rules), again.facts()) == (rules, facts)
