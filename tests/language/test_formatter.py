"""The formatter: examples of its layout, and laws: the same meaning, the same comments, formatted once."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings

from strategies.programs import RandomProgram, programs
from zodiacedge.errors import SyntaxProblem
from zodiacedge.language.formatter import format_text
from zodiacedge.language.parser import parse_program, read_program, read_tokens
from zodiacedge.language.printer import format_rule

TESTS = Path(__file__).resolve().parents[1]
PROGRAMS = sorted(
    path
    for path in [
        *TESTS.rglob("*.rules"),
        *TESTS.parent.glob("src/**/*.rules"),
        *TESTS.parent.glob("bench/**/*.rules"),
    ]
    if not read_program(path.read_text(encoding="utf-8"))[1]
)
BLANKS = (" ", "  ", "\n", "\n\n\n", "\t", " # one\n", "\n# two, of its own .\n", " // three \n", "\r\n")


def comments(text: str) -> list[str]:
    """Return the comments of a program: what lies between its tokens and is no white space."""
    tokens, errors = read_tokens(text)
    assert not errors
    ends = [0, *(token.end for token in tokens)]
    starts = [*(token.start for token in tokens), len(text)]
    gaps = (text[end:start] for end, start in zip(ends, starts, strict=True))
    return [c.rstrip() for gap in gaps for c in re.findall(r"(?:#|//)[^\n]*", gap)]


def check_laws(text: str) -> None:
    """Compare a program with its formatted text, and that with its own."""
    formatted = format_text(text)
    before, after = parse_program(text), parse_program(formatted)
    assert before == after
    assert [rule.label for rule in before.rules] == [rule.label for rule in after.rules]
    assert comments(formatted) == comments(text)
    assert format_text(formatted) == formatted
    assert not any(line != line.rstrip() for line in formatted.split("\n"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_a_program_keeps_its_meaning_and_its_comments(path: Path) -> None:
    check_laws(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_white_space_and_comments_between_any_tokens_are_laid_out_alike(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if len(text) > 20_000:
        text = "\n".join(map(format_rule, parse_program(text).rules[:50])) + "\n"
    dice = random.Random(text)
    tokens, _ = read_tokens(text)
    scattered, end = "", 0
    for token in tokens:
        gap = text[end : token.start]
        # Some tokens must stand together, others apart.
        scattered += (dice.choice(BLANKS) if gap else "") + text[token.start : token.end]
        end = token.end
    check_laws(scattered)


@given(programs())
@settings(deadline=None)
def test_random_programs_keep_their_meaning(program: RandomProgram) -> None:
    check_laws("\n".join(f"# {n}\n{format_rule(rule)}" for n, rule in enumerate(program.rules)))


def test_there_are_programs() -> None:
    assert len(PROGRAMS) > 40


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p(a).q( b ) .", "p(a) .\nq(b) .\n"),
        ("r1:p(X):-q( X,Y ),X!=Y.", None),
        ("r1: p(X):-q( X,Y ),X!=Y.", "r1: p(X) :- q(X, Y), X != Y .\n"),
        ("p(X):-q(Y),X:=-Y*(2-Y)- -3 .", "p(X) :- q(Y), X := -Y * (2 - Y) - -3 .\n"),
        ("p(X):-q(Y),X:=- 3 + Y div(2).", "p(X) :- q(Y), X := - 3 + Y div (2) .\n"),
        ("p(X):-q(X),! r(X)&NOT s(X) .", "p(X) :- q(X), !r(X) & NOT s(X) .\n"),
        ('p("a"@en,"5"^^xsd:integer,?x):-q(?x).', 'p("a"@en, "5"^^xsd:integer, ?x) :- q(?x) .\n'),
        (
            "@prefix  ex:<http://e/>.\nPREFIX e: <http://f/> ex:p(e:a).",
            "@prefix ex: <http://e/> .\nPREFIX e: <http://f/>\nex:p(e:a) .\n",
        ),
        (
            "p(N):-AGGREGATE(q( X,Y ))ON X , Y WITH COUNT( DISTINCT Y )AS N,MAX(Y) AS M.",
            "p(N) :- AGGREGATE(q(X, Y)) ON X, Y WITH COUNT(DISTINCT Y) AS N, MAX(Y) AS M .\n",
        ),
        ("p(X) :- q(X), X<<b> .", "p(X) :- q(X), X < <b> .\n"),
        (
            "\n\n# head\n\n\n# of p\np(a) . # behind\n\n\n\nq(b) .\n\n\n",
            "# head\n\n# of p\np(a) .  # behind\n\nq(b) .\n",
        ),
        (
            "p(X) :- # why\n q(X), // because\n # so\n r(X) .",
            "p(X) :-  # why\n    q(X),  // because\n    # so\n    r(X) .\n",
        ),
        ("# only a comment", "# only a comment\n"),
        ("", ""),
        (" \n\n", ""),
        (f"p(X) :- {'q' * 60}(X), {'r' * 60}(X) .", f"p(X) :-\n    {'q' * 60}(X),\n    {'r' * 60}(X) .\n"),
    ],
)
def test_layout(text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(SyntaxProblem):
            format_text(text)
    else:
        assert format_text(text) == expected
        check_laws(text)
