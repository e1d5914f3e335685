"""Whatever the text, the parser answers with findings: nothing else is raised, and nothing hangs."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zodiacedge.errors import ZodiacError
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Subject, check
from zodiacedge.language.parser import parse_fact, parse_program, parse_query, parse_rule, read_program
from zodiacedge.language.printer import format_rule
from zodiacedge.language.safety import resolve

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path for folder in ("src", "bench") for path in (ROOT / folder).rglob("*.rules"))
SEEDS = [path.read_text(encoding="utf-8") for path in EXAMPLES]
SEEDS += [
    '@prefix ex: <http://e/> . ex:p("a\\n"@en, 1.5e3, _:b) . PREFIX f: <x#> f:p(X) :- not q(X, _), X > 2 .',
    "p(X, N) :- q(X), AGGREGATE(r(X, Y), ?v := func:f(Y) % 2) ON X WITH SUM(DISTINCT ?v) AS N, MED(Y) AS M .",
    'l: p(X) :- q(X) ∧ ¬r(X) & !s(X) and COMP(X,<,5),COMP(X,>,<a>) // c\n, contains(X, "a") = true # d\n.',
]
PIECES = [
    "(",
    ")",
    ",",
    ".",
    ":-",
    "?-",
    ":=",
    '"',
    "\\",
    "<",
    ">",
    "@",
    "^^",
    "_",
    "_:",
    "?",
    "#",
    "//",
    "\n",
    "not ",
]
PIECES += [
    "AGGREGATE(",
    " ON ",
    " WITH ",
    " AS ",
    "BIND(",
    "COMP(",
    "-",
    "**",
    "5",
    "5.",
    "e9",
    "X",
    "é",
    "\x00",
    "\ud800",
]


def read_everything(text: str) -> None:
    """Take a text through every stage of the language; only findings may come of it."""
    program, found = read_program(text)
    for finding in found + check(Subject(program.rules, program.facts)):
        finding.render()
        finding.to_dict()
    for rule in program.rules:
        rule_key(resolve(rule))
        format_rule(rule)
    for parse in (parse_rule, parse_query, parse_fact):
        with suppress(ZodiacError):
            parse(text)


@given(st.text(max_size=200))
@settings(max_examples=300)
def test_any_text_gives_findings_only(text: str) -> None:
    read_everything(text)


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_any_bytes_give_findings_only(data: bytes) -> None:
    read_everything(data.decode("utf-8", errors="surrogateescape"))
    read_everything(data.decode("latin-1"))


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@settings(max_examples=300)
def test_any_heap_of_tokens_gives_findings_only(text: str) -> None:
    read_everything(text)


def mutated(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 4)):
        place, end = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        end = min(end, place + 8)
        kind = chance.randrange(4)
        if kind == 0:
            text = text[:place] + text[end:]
        elif kind == 1:
            text = text[:place] + chance.choice(PIECES) + text[place:]
        elif kind == 2:
            text = text[:place] + chance.choice(PIECES) + text[end:]
        else:
            other = chance.randrange(len(text) + 1)
            text = text[:other] + text[place:end] + text[other:]
    return text


@given(st.sampled_from(SEEDS), st.integers(0, 2**32))
@settings(max_examples=300)
def test_a_mutated_program_gives_findings_only(text: str, seed: int) -> None:
    read_everything(mutated(text, random.Random(seed)))


@given(st.sampled_from(SEEDS), st.integers(0, 2**32))
@settings(max_examples=100)
def test_what_a_mutated_program_still_says_survives_printing(text: str, seed: int) -> None:
    program, _ = read_program(mutated(text, random.Random(seed)))
    for rule in program.rules:
        again = parse_rule(format_rule(rule))
        assert rule_key(again) == rule_key(rule)


# Depth and length

MANY = 100_000
SOME = 20_000


@pytest.mark.parametrize(
    "text",
    [
        "p(X) :- q(X), Y = " + "(" * MANY + "1" + ")" * MANY + " .",
        "p(X) :- q(X), Y = " + "(" * MANY,
        "p(X) :- q(X), Y = " + "-" * MANY + "1 .",
        "p(X) :- q(X), Y = " + "- " * MANY + "X .",
        "p(X) :- q(X), Y = " + "abs(" * SOME + "1" + ")" * SOME + " .",
        "p(X) :- " + "f(" * SOME + "1" + ")" * SOME + " .",
        "p" + "(" * MANY,
        "p(X) :- q(X), Y = 1" + " + 1" * SOME + " .",
        "p(X) :- q(X), Y = 1" + " * 1" * SOME + " .",
        "p(X) :- q(X), Y = 1" + " ** 1" * SOME + " .",
        "p(X) :- q(X), Y = 1" + " ** -1" * SOME + " .",
        "p(N) :- " + "AGGREGATE(" * SOME + "q(X)" + ") WITH COUNT(X) AS N" * SOME + " .",
        "p(X) :- " + ", ".join(f"q(X{i}, X{i + 1})" for i in range(SOME)) + " .",
        "p(X) :- " + "!" * MANY + "q(X) .",
        "p(X) :- " + "not " * SOME + "q(X) .",
        "p(" + "a," * SOME + "a) .",
        "p(" + '"' * MANY + ") .",
        "p(" + "9" * MANY + ") .",
        "p(" + "0" * MANY + "1) .",
        "p(1." + "0" * MANY + "1e5) .",
        'p("' + "a" * MANY + '") .',
        "# " + "p(X) " * MANY,
        "@" * MANY,
        "<" * MANY,
        "\\" * MANY,
    ],
    ids=lambda text: text[:12] + "…" + text[-12:],
)
def test_depth_and_length_never_break_the_parser(text: str) -> None:
    start = time.process_time()
    read_everything(text)
    assert time.process_time() - start < 10


def test_what_is_nested_too_deep_is_named() -> None:
    found = read_program("p(X) :- q(X), Y = " + "(" * 5000 + "X" + ")" * 5000 + " . q(a) .")
    assert [d.code for d in found[1]] == ["L020"]
    assert len(found[0].facts) == 1


def test_fifty_levels_are_fine() -> None:
    text = "p(Y) :- q(X), Y = " + "(" * 50 + "X" + " + 1)" * 50 + " ."
    rule = parse_rule(text)
    assert parse_rule(format_rule(rule)) == rule
    assert check(Subject((rule,))) == []


def test_a_body_that_is_too_long_is_named() -> None:
    text = "p(X) :- " + ", ".join(f"q{i}(X)" for i in range(SOME)) + " . q(a) ."
    program, found = read_program(text)
    assert [d.code for d in found] == ["L021"]
    assert len(program.facts) == 1


def test_three_hundred_conjuncts_are_fine() -> None:
    rule = parse_rule("p(X0) :- " + ", ".join(f"q(X{i}, X{i + 1})" for i in range(300)) + " .")
    assert check(Subject((rule,))) == []


def test_ten_thousand_broken_statements_are_told_in_seconds() -> None:
    text = "\n".join(f"p{i}(X) :- q(Y{i}) r(Z) ." for i in range(10_000))
    start = time.process_time()
    _, found = read_program(text)
    assert len(found) == 10_000
    assert time.process_time() - start < 5


# Going on after a broken statement


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ("p(X) :- q(X .", 1),
        ("p(X) q(X) .", 1),
        ("p(X) :- .", 1),
        (":- p(X) .", 1),
        (".", 1),
        ("p(X) :- q(X) . .", 1),
        ("p(X) :- q(X), X = 1.5.5 .", 2),
        ('p("open) .', 1),
        ('p(X) :- q("open) .', 1),
        ("p(X) :- q(X) ; r(X) .", 1),
        ("@base <http://e/> .", 1),
        ("?- p(X) .", 1),
        ("p(X) .", 1),
        ("f: p(a) .", 1),
        ("p(<a b>) .", 1),
        ("p('a. b') .", 2),
    ],
)
def test_a_broken_statement_costs_itself_only(broken: str, expected: int) -> None:
    program, found = read_program(f"first(a) .\n{broken}\nlast(b) .\n")
    assert program.facts[0].predicate.name == "first"
    assert program.facts[-1].predicate.name == "last"
    assert 1 <= len(found) <= expected


def test_a_missing_full_stop_costs_the_next_statement_too() -> None:
    program, found = read_program("first(a) .\np(X) :- q(X)\nr(X) :- s(X) .\nlast(b) .\n")
    assert [f.predicate.name for f in program.facts] == ["first", "last"]
    assert len(found) == 1
    assert program.rules == ()


def test_a_full_stop_inside_a_string_or_a_comment_ends_nothing() -> None:
    program, found = read_program('p(X) q("a. b") # r(a) .\n, s(X) .\nlast(b) .\n')
    assert len(found) == 1
    assert [f.predicate.name for f in program.facts] == ["last"]


def test_parse_program_raises_with_every_finding() -> None:
    with pytest.raises(ZodiacError) as caught:
        parse_program("p(X :- .\nq(a) .\nr(X) .\n")
    assert [d.code for d in caught.value.diagnostics] == ["L001", "L010"]


def test_prefixes_of_a_broken_program_hold_on() -> None:
    program, found = read_program("@prefix ex: <http://e/> .\nbroken( .\nex:p(ex:a) .\n")
    assert len(found) == 1
    assert program.facts[0].predicate.name == "http://e/p"


@pytest.mark.parametrize("broken", ["p(X) :- q(X), X = <http://foo bar> .", "p(http://foo/bar) ."])
def test_the_slashes_of_a_broken_iri_hide_nothing(broken: str) -> None:
    program, found = read_program(f"{broken}\np(Y) :- q(X) .\n")
    assert len(found) == 1
    assert len(program.rules) == 1
