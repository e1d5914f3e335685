"""Each lint fires where a rule looks like a mistake and nowhere else, and comments silence it."""

from __future__ import annotations

from pathlib import Path

import pytest

from zodiacedge.cli.rule_files import check_rules, parse_rules
from zodiacedge.graph import HyperGraph
from zodiacedge.kb.warnings import endless_values
from zodiacedge.language.ast import Predicate
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Subject, check
from zodiacedge.language.lint.lints import lint
from zodiacedge.language.lint.silence import audible
from zodiacedge.language.parser import parse_program
from zodiacedge.language.safety import resolve

ROOT = Path(__file__).resolve().parents[2]


def codes(text: str, loaded: tuple[Predicate, ...] = ()) -> list[str]:
    """Return the codes of all warnings about a program."""
    program = parse_program(text)
    rules = {rule_key(rule): rule for rule in map(resolve, program.rules)}
    found = check(Subject(program.rules, program.facts, loaded)) + lint(program.rules)
    found += endless_values(rules, HyperGraph.build(rules))
    assert all(d.severity == "warning" and d.note for d in found)
    return [d.code for d in audible(found, program.rules)]


# (code, texts that have it once and nothing else, texts that have nothing)
DIRECTED: list[tuple[str, list[str], list[str]]] = [
    (
        "W020",
        [
            "p(X) :- q(X, Y) .",
            "p(X) :- q(X, Y, Z) .",
            "p(X) :- q(X), Y := X + 1 .",
            "p(X) :- q(X), Y = X .",
            "p(X) :- q(X, ?y) .",
            "p(X, N) :- r(Y), AGGREGATE(s(X, Z)) ON X WITH COUNT(Z) AS N .",
            "p(X) :- AGGREGATE(s(X, Z)) ON X WITH COUNT(Z) AS N .",
        ],
        [
            "p(X) :- q(X, X) .",
            "p(X) :- q(X, _) .",
            "p(X) :- q(X, _Y) .",
            "p(X) :- q(X), not r(X, Z) .",
            "p() :- not q(X) .",
            "p(X) :- q(X, Y), not r(X, Y) .",
            "p(X) :- q(X, Y), Y > 3 .",
            "p(N) :- AGGREGATE(q(X, Y)) WITH COUNT(X) AS N .",
            "p(N) :- AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N .",
        ],
    ),
    (
        "W021",
        ["p(Y) :- q(X), Y = MAX(X) .", "p(X) :- q(X), 1 < 2 * min(X) .", "p(X) :- q(X), max(X) = X ."],
        ["p(Z) :- q(X, Y), Z = MAX(X, Y) .", "p(X) :- q(X), abs(X) = X .", "p(X) :- q(X), func:max(X) = X ."],
    ),
    (
        "W022",
        [
            "near(a, b) . p(X) :- near(X) .",
            "near(X, Y) :- next(X, Y) . p(X) :- q(X), not near(X) .",
            "Turbine(a) . p(X) :- Turbine(X, X) .",
            "near(a, b) . p(X) :- near(X) . r(X) :- near(X) .",
        ],
        [
            "near(a, b) . near(a) . p(X) :- near(X) .",
            "p(X) :- near(X) .",
            "near(X) :- near(X, _) . near(X) :- hub(X) .",
            "near(X, X) :- near(X) .",
            "near(a, b) . p(X, X) :- near(X) . rdf:type(X, C) :- kind(X, C) .",
        ],
    ),
    (
        "W023",
        [
            "p(X) :- rdf:type(X, Turbine) .",
            "p(X, a) :- q(X), not rdf:type(X, Turbine) .",
            "P(X) :- q(X, P) .",
            "p(X, C) :- C(X), rdf:type(X, C) .",
        ],
        [
            "p(X) :- rdf:type(X, <Turbine>) .",
            "p(X, Turbine) :- rdf:type(X, Turbine) .",
            "p(X, a) :- q(X), not rdf:type(X, C) .",
            "p(X, a) :- q(X), not rdf:type(X, ?Turbine) .",
            "p(X) :- rdf:type(X, _) .",
            "Turbine(X) :- Machine(X), rdf:type(X, <Turbine>) .",
            "p(?p) :- q(?p, 5) .",
        ],
    ),
    (
        "W024",
        [
            "p(x) :- q(x, Y), r(Y) .",
            "p(X) :- q(X, t), t > 80 .",
            "p(M) :- AGGREGATE(q(x, N), r(x)) WITH MAX(N) AS M .",
            "p(speed) :- q(speed), speed > 3 .",
            "p(X, Z) :- q(X, speed), Z = speed * 2 .",
        ],
        [
            "p(x) :- q(X, X) .",
            "p(<x>) :- q(<x>) .",
            "p(wt1) :- q(wt1) .",
            "p(X) :- q(X, wt1), r(X, Y), Y != wt1 .",
            "p(X) :- q(X, Y), Y < wt1 .",
            "p(<speed>) :- q(<speed>), <speed> > 3 .",
            'p("x") :- q("x") .',
            "x(X) :- q(X), x(X, X) .",
        ],
    ),
    (
        "W025",
        [
            "n(Y) :- n(X), Y = X + 1 .",
            "far(Y, M) :- far(X, N), edge(X, Y), M = N + 1 .",
            "a(Y) :- b(X), Y := X * 2 . b(X) :- a(X) .",
            'w(Y) :- w(X), Y = concat(X, "a") .',
            "n(Z) :- n(X), Y := X, Z = func:next(Y) .",
            "n(Y) :- n(X), Y = X + 1, X != 5 .",
        ],
        [
            "m(Y) :- n(X), Y = X + 1 .",
            "n(Y) :- n(X), Y = X + 1, X < 1000 .",
            "n(Y) :- n(X), Y = X + 1, 1000 > Y .",
            "n(Y) :- n(X), next(X), Y = X + 1 .",
            "n(X) :- n(X), next(X, Y), limit(Z), Y > Z + 1 .",
            "far(Y, M) :- far(X, M), edge(X, Y, W), V := W + 1, V > 3 .",
            "n(Y) :- n(X), Y = abs(X) .",
            "n(Y) :- n(X), Y = X .",
        ],
    ),
    (
        "W026",
        [
            "<http://e/temp>(a, 31) . hot(X) :- temp(X, _) .",
            "temp(a, 31) . hot(X) :- <http://e#temp>(X, _) .",
            "<http://e/Hot>(X) :- q(X) . p(X) :- q(X), not hot(X) .",
            "<http://e/name>(a, b) . p(X) :- <https://e#name>(X, _) .",
            "<http://e/temp>(a, 31) . p(X) :- temp(X, _) . q(X) :- temp(X, _) .",
        ],
        [
            "p(X) :- temp(X, _), <http://e/temp>(X, _) .",
            "temp(b, 1) . <http://e/temp>(a, 31) . hot(X) :- temp(X, _) .",
            "<http://e/temp>(X, Y) :- temp(X, Y) . temp(X, Y) :- <urn:x:temp>(X, Y) .",
            "<http://e/name>(a, b) . p(X) :- <http://foaf.org/name>(X, _) .",
            "<http://e/T>(a) . rdf:type(X, C) :- kind(X, C) . p(X) :- t(X) .",
            "<http://e/temp>(a, 31) . hot(X) :- temp(X, _) .  # lint: ignore W026",
        ],
    ),
]


@pytest.mark.parametrize(
    ("code", "text"), [(code, text) for code, firing, _ in DIRECTED for text in firing], ids=str
)
def test_a_lint_fires_once(code: str, text: str) -> None:
    assert codes(text) == [code]


@pytest.mark.parametrize("text", [text for _, _, silent in DIRECTED for text in silent], ids=str)
def test_a_rule_that_looks_right_has_no_warnings(text: str) -> None:
    assert codes(text) == []


def test_loaded_facts_state_a_class() -> None:
    text = "near(a, b) . p(X) :- near(X) ."
    assert codes(text, (Predicate("near", 1),)) == []
    assert codes("p(X) :- near(X) .", (Predicate("near", 2),)) == ["W022"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("p(X) :- q(X, Y) .  # lint: ignore W020", []),
        ("p(X) :- q(X, Y) .  // lint: ignore W020", []),
        ("# lint: ignore W020\np(X) :- q(X, Y) .", []),
        ("# lint: ignore W020\n# Why.\np(X) :-\n  q(X, Y) .", []),
        ("p(X) :-  # lint: ignore W021, W020\n  r(X),\n  q(X, Y) .", []),
        ("# lint: ignore W020\n\np(X) :- q(X, Y) .", ["W020"]),
        ("# lint: ignore W021\np(X) :- q(X, Y) .", ["W020"]),
        ("# lint: ignore\np(X) :- q(X, Y) .", ["W020"]),
        ("# lint: ignore W020\np(X) :- q(X, Y) .\nr(X) :- q(X, Y) .", ["W020"]),
        ("p(X) :- q(X, Y) .\nr(X) :- q(X, Y) .\n# lint: ignore-file W020", []),
        ("# lint: ignore W001\np(X, N) :- r(X, Y), AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N .", []),
        ("# lint: ignore-file W002\np(X) :- q(X) .\np(Y) :- q(Y) .", []),
        ('p(X) :- q(X, Y) .\nr("# lint: ignore-file W020") .', ["W020"]),
        ('p(X) :- q(X, Y), r("// lint: ignore W020") .', ["W020"]),
        ('p(X) :- q(X, Y), r("#") .  # Why. # lint: ignore W020', []),
        ("# lint: ignore W025\nn(Y) :- n(X),\n Y = X + 1 .", []),
    ],
)
def test_a_comment_silences_warnings(text: str, found: list[str]) -> None:
    assert codes(text) == found


def test_a_comment_silences_no_error() -> None:
    program = parse_program("# lint: ignore-file C001\np(X) :- q(Y) .")
    assert [d.code for d in audible(check(Subject(program.rules)), program.rules)] == ["C001"]


PROGRAMS = [
    path
    for folder in ("src", "bench", "tests/golden/programs", "tests/golden/plans")
    for path in sorted((ROOT / folder).rglob("*.rules"))
]


def test_there_are_programs() -> None:
    assert len(PROGRAMS) > 40


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_programs_of_the_project_have_no_warnings(path: Path) -> None:
    assert [d.render() for d in check_rules(parse_rules([str(path)])).findings] == []
