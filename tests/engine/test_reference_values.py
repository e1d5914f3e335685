"""Arithmetic, functions, comparisons, equality and order: what values a rule sees, on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strategies import evaluate_text
from strategies.evaluation import evaluate
from strategies.lifting import lifted
from zodiacedge.language.parser import parse_rule

if TYPE_CHECKING:
    from strategies import Evaluated
    from zodiacedge.engine.api import Engine


def results(text: str, engine: Engine) -> list[Evaluated]:
    """Evaluate a rule as it is, and once more with its constants in a fact."""
    rule = parse_rule(text)
    other, operands = lifted(rule)
    return [evaluate([rule], [], engine=engine), evaluate([other], [operands], engine=engine)]


def value(expression: str, engine: Engine) -> str | None:
    """Return what an expression is bound to, as text; None where it has no value."""
    found = set()
    for evaluated in results(f"r(0, V) :- V := {expression} .", engine):
        facts = evaluated.facts("r")
        assert len(facts) + (1 if evaluated.dropped() else 0) == 1
        found.add(facts[0].removeprefix("r(0, ").removesuffix(")") if facts else None)
    (only,) = found
    return only


def holds(test: str, engine: Engine) -> bool | None:
    """Return whether a comparison holds; None where it has no value."""
    found = {
        None if evaluated.dropped() else evaluated.facts("r") == ["r()"]
        for evaluated in results(f"r() :- {test} .", engine)
    }
    (only,) = found
    return only


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("2 + 3", "5"),
        ("2 + 3.0", "5.0E0"),
        ("2 - 5", "-3"),
        ("2.5e0 - 5", "-2.5E0"),
        ("4 * 3", "12"),
        ("4 * 0.5", "2.0E0"),
        ("6 / 3", "2.0E0"),
        ("1 / 4", "2.5E-1"),
        ("7 div 2", "3"),
        ("-7 div 2", "-4"),
        ("7 div -2", "-4"),
        ("-7 div -2", "3"),
        ("7.5 div 2", "3.0E0"),
        ("-7.5 div 2", "-4.0E0"),
        ("7 % 3", "1"),
        ("-7 % 3", "2"),
        ("7 % -3", "-2"),
        ("-7 % -3", "-1"),
        ("7.5 % 2", "1.5E0"),
        ("-7.5 % 2", "5.0E-1"),
        ("2 ** 10", "1024"),
        ("0 ** 0", "1"),
        ("(-2) ** 3", "-8"),
        ("2 ** -1", "5.0E-1"),
        ("2.5 ** 2", "6.25E0"),
        ("9 ** 0.5", "3.0E0"),
        ("0.1 + 0.2", "3.0000000000000004E-1"),
        ("1e300 * 1e-300", "1.0E0"),
        ("0 * -1.0", "0.0E0"),
    ],
)
def test_arithmetic(expression: str, expected: str, engine: Engine) -> None:
    assert value(expression, engine) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("-2 ** 2", "-4"),
        ("(-2) ** 2", "4"),
        ("2 ** 3 ** 2", "512"),
        ("2 ** -1 ** 2", "5.0E-1"),
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * 4", "20"),
        ("10 - 4 - 3", "3"),
        ("24 div 4 div 2", "3"),
        ("7 % 4 * 2", "6"),
        ("-3 * 2", "-6"),
        ("- (3 - 5)", "2"),
        ("2 * -3", "-6"),
        ("8 - -3", "11"),
    ],
)
def test_precedence(expression: str, expected: str, engine: Engine) -> None:
    assert value(expression, engine) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "9223372036854775807 + 1",
        "-9223372036854775808 - 1",
        "4611686018427387904 * 2",
        "2 ** 63",
        "10 ** 100000",
        "(-2) ** 65",
        "-(-9223372036854775807 - 1)",
        "abs(-9223372036854775807 - 1)",
        "(-9223372036854775807 - 1) div -1",
        "floor(1e19)",
        "round(1e300)",
        "1 / 0",
        "1.0 / 0",
        "0 / 0",
        "1 div 0",
        "1 % 0",
        "1.5 div 0",
        "1.5 % 0.0",
        "0 ** -1",
        "(-8) ** 0.5",
        "1e308 * 10",
        "1e308 + 1e308",
        "10.0 ** 400",
        '"a" + 1',
        '"1" + 1',
        "true + 1",
        "<a> * 2",
        "_:b + 1",
        '-"a"',
        '"abc"^^xsd:integer + 1',
        '"99999999999999999999"^^xsd:integer + 0',
        '"NaN"^^xsd:double + 0',
        '"INF"^^xsd:double + 0',
    ],
)
def test_what_has_no_number(expression: str, engine: Engine) -> None:
    assert value(expression, engine) is None


def test_integers_at_the_border_of_64_bits_are_exact(engine: Engine) -> None:
    assert value("9223372036854775806 + 1", engine) == "9223372036854775807"
    assert value("-9223372036854775807 - 1", engine) == "-9223372036854775808"
    assert value("3037000499 * 3037000499", engine) == "9223372030926249001"
    assert value("9223372036854775807 div 2", engine) == "4611686018427387903"
    assert value("9223372036854775807 % 10", engine) == "7"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("abs(-3)", "3"),
        ("abs(-2.5)", "2.5E0"),
        ("round(0.5)", "0"),
        ("round(1.5)", "2"),
        ("round(2.5)", "2"),
        ("round(-0.5)", "0"),
        ("round(-1.5)", "-2"),
        ("round(2.6)", "3"),
        ("round(7)", "7"),
        ("floor(2.7)", "2"),
        ("floor(-2.1)", "-3"),
        ("ceil(2.1)", "3"),
        ("ceil(-2.7)", "-2"),
        ("sqrt(16)", "4.0E0"),
        ("sqrt(2)", "1.4142135623730951E0"),
        ("exp(0)", "1.0E0"),
        ("ln(1)", "0.0E0"),
        ("log10(1000)", "3.0E0"),
        ("min(3, 1, 2)", "1"),
        ("max(3, 1, 2.5)", "3"),
        ("min(1.5, 2)", "1.5E0"),
        ("max(1, 2.5)", "2.5E0"),
        ("min(7)", "7"),
        ("min(1, 1.0)", "1"),
        ("max(1.0, 1)", "1"),
    ],
)
def test_number_functions(expression: str, expected: str, engine: Engine) -> None:
    assert value(expression, engine) == expected


@pytest.mark.parametrize(
    "expression",
    ["sqrt(-1)", "ln(0)", "ln(-1)", "log10(0)", "exp(1000)", 'abs("a")', "min(1, <a>)", 'max("a", "b")'],
)
def test_number_functions_without_a_result(expression: str, engine: Engine) -> None:
    assert value(expression, engine) is None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('concat("a", "b", "c")', '"abc"'),
        ("concat()", '""'),
        ('concat("a"@en, "b"@en)', '"ab"@en'),
        ('concat("a"@en, "b")', '"ab"'),
        ('concat("a"@en, "b"@fr)', '"ab"'),
        ('strlen("häuser")', "6"),
        ('strlen("\\U0001F600")', "1"),
        ('strlen("")', "0"),
        ('strlen("abc"@en)', "3"),
        ('substr("metadata", 4, 3)', '"ada"'),
        ('substr("motor car", 6)', '" car"'),
        ('substr("12345", 0, 3)', '"12"'),
        ('substr("12345", -3, 5)', '"1"'),
        ('substr("12345", 1.5, 2.6)', '"234"'),
        ('substr("12345", 2, -1)', '""'),
        ('substr("12345", 9)', '""'),
        ('substr("chat"@fr, 1, 2)', '"ch"@fr'),
        ('lower("ABC")', '"abc"'),
        ('upper("abc"@en)', '"ABC"@en'),
        ('contains("foobar", "oba")', "true"),
        ('contains("foobar", "x")', "false"),
        ('contains("foobar", "")', "true"),
        ('contains("foobar"@en, "foo"@en)', "true"),
        ('contains("foobar"@en, "foo")', "true"),
        ('startswith("foobar", "foo")', "true"),
        ('startswith("foobar", "bar")', "false"),
        ('endswith("foobar", "bar")', "true"),
        ('endswith("foobar", "foo")', "false"),
        ('replace("abcabc", "b", "Z")', '"aZcaZc"'),
        ('replace("a.c", ".", "b")', '"abc"'),
        ('replace("abab"@en, "b", "")', '"aa"@en'),
        ("str(5)", '"5"'),
        ("str(05)", '"5"'),
        ("str(2.50)", '"2.5"'),
        ("str(<http://x/y>)", '"http://x/y"'),
        ('str("a"@en)', '"a"'),
        ("str(true)", '"true"'),
        ('num("12")', "12"),
        ('num("-3")', "-3"),
        ('num("2.5")', "2.5E0"),
        ('num("1e3")', "1.0E3"),
        ("num(7)", "7"),
        ("num(1.5)", "1.5E0"),
    ],
)
def test_text_functions(expression: str, expected: str, engine: Engine) -> None:
    assert value(expression, engine) == expected


@pytest.mark.parametrize(
    "expression",
    [
        'concat("a", 1)',
        "concat(<a>)",
        "strlen(5)",
        "strlen(<a>)",
        'substr("abc", "x")',
        "substr(5, 1)",
        "lower(5)",
        "upper(<a>)",
        'contains("a"@en, "b"@fr)',
        'contains("a", "b"@fr)',
        'contains(5, "5")',
        'startswith("a", 1)',
        "endswith(<a>, <b>)",
        'replace("abc", "", "x")',
        'replace("abc", 1, "x")',
        "str(_:b)",
        'num("abc")',
        'num("")',
        'num(" 5")',
        'num("99999999999999999999")',
        'num("1e999")',
        "num(<a>)",
        "num(true)",
    ],
)
def test_text_functions_without_a_result(expression: str, engine: Engine) -> None:
    assert value(expression, engine) is None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('if("x"^^xsd:dateTime, 1, 2)', None),
        ('if("NaN"^^xsd:double, 1, 2)', None),
        ("if(_:b, 1, 2)", None),
        ('if("\\u0000"@en, 1, 2)', "1"),
        ("if(-0.5e0, 1, 2)", "1"),
        ("if(1 - 1, 1, 2)", "2"),
        ("if(0.5 - 0.5, 1, 2)", "2"),
        ("IF(FALSE, 1 / 0, 1 + 1) * 2", "4"),
        ("if(true, if(false, 1, 2), 3) + if(false, 10, if(true, 20, 30))", "22"),
        ('concat(if(true, "a", "b"), if(1 / 0, "c", "d"))', None),
        ("coalesce(5)", "5"),
        ("coalesce(1 / 0, coalesce(2 / 0, 3), 4 / 0)", "3"),
        ("coalesce(if(1 / 0, 1, 2), if(true, 1 / 0, 2), 3)", "3"),
        ('if(coalesce(num("x"), false), 1, coalesce(num("y"), str(num("2"))))', '"2"'),
        ('1 + coalesce(num("x"), num("2")) * 3', "7"),
    ],
)
def test_choices(expression: str, expected: str | None, engine: Engine) -> None:
    assert value(expression, engine) == expected


def test_a_variable_without_a_value_is_no_argument_of_coalesce(engine: Engine) -> None:
    text = "p(0) . p(2) . q(X, Z) :- p(X), Y := 1 / X, Z := coalesce(Y, 7) ."
    found = evaluate_text(text, engine=engine)
    assert found.facts("q") == ["q(2, 5.0E-1)"]
    dropped = found.dropped()
    assert dropped
    assert dropped.count == 1


MOMENT = '"2026-03-09T23:45:06.25+01:00"^^xsd:dateTime'


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("year", "2026"),
        ("month", "3"),
        ("day", "9"),
        ("hours", "22"),
        ("minutes", "45"),
        ("seconds", "6.25E0"),
    ],
)
def test_date_functions_read_the_moment_in_utc(function: str, expected: str, engine: Engine) -> None:
    assert value(f"{function}({MOMENT})", engine) == expected


@pytest.mark.parametrize("argument", ["5", '"2026-03-09"', '"2026-99-09T00:00:00"^^xsd:dateTime', "<a>"])
def test_date_functions_of_what_is_no_date_time(argument: str, engine: Engine) -> None:
    assert value(f"year({argument})", engine) is None


@pytest.mark.parametrize(
    "test",
    [
        "5 = 5.0",
        "5 = 5e0",
        "5.0 = 5e0",
        "5 != 6",
        "1 < 1.5",
        "2.5e0 <= 2.5",
        "9007199254740993 > 9007199254740992e0",
        "9007199254740993 != 9007199254740993e0",
        '"a" < "b"',
        '"Z" < "a"',
        '"a" < "aa"',
        '"\\uFFFF" < "\\U00010000"',
        '"a" = "a"',
        '"a" != "a"@en',
        '"a"@en = "a"@EN',
        "false < true",
        "true = true",
        '"2026-01-01T00:00:00Z"^^xsd:dateTime < "2026-01-01T00:00:01Z"^^xsd:dateTime',
        '"0999-12-31"^^xsd:date < "1000-01-01"^^xsd:date',
        '"2026-01-01"^^xsd:date >= "2026-01-01Z"^^xsd:date',
        '"2026-01-01"^^xsd:date != "2026-01-01T00:00:00Z"^^xsd:dateTime',
        '"2026-01-01+02:00"^^xsd:date = "2026-01-01+02:00"^^xsd:date',
        '"2026-01-01T01:00:00+01:00"^^xsd:dateTime = "2026-01-01T00:00:00Z"^^xsd:dateTime',
        '"2026-01-01T00:00:00"^^xsd:dateTime = "2026-01-01T00:00:00Z"^^xsd:dateTime',
        "<a> = <a>",
        "<a> != <b>",
        '<a> != "a"',
        '5 != "5"',
        "1 != true",
        '"abc"^^xsd:integer = "abc"^^xsd:integer',
        '"abc"^^xsd:integer != 5',
        '"1"^^xsd:byte = 1',
        '"300"^^xsd:byte != 300',
        "_:b = _:b",
        "1 + 1 = 4 / 2",
    ],
)
def test_comparisons_that_hold(test: str, engine: Engine) -> None:
    assert holds(test, engine) is True


@pytest.mark.parametrize(
    "test",
    [
        "5 != 5.0",
        "9007199254740993 = 9007199254740992e0",
        '"b" < "a"',
        '"a" = "a"@en',
        "<a> = <b>",
        '5 = "5"',
        "true < false",
        "2 > 2",
        "1 = true",
    ],
)
def test_comparisons_that_do_not_hold(test: str, engine: Engine) -> None:
    assert holds(test, engine) is False


@pytest.mark.parametrize(
    "test",
    [
        '5 < "6"',
        "1 < true",
        "<a> < <b>",
        "<a> >= <a>",
        '"a"@en < "b"@en',
        '"a" < "b"@en',
        "_:a < _:b",
        '"2026-01-01T00:00:00Z"^^xsd:dateTime < 5',
        '"2026-01-01"^^xsd:date < "2026-01-02T00:00:00Z"^^xsd:dateTime',
        '"2026-01-01"^^xsd:date >= 2026',
        '"2026-01-01"^^xsd:date < "2026-01-02"',
        '"2026-01-01"^^xsd:date < "2026-01-02+02:00"^^xsd:date',
        '"abc"^^xsd:integer < 5',
        "1 / 0 = 1",
        "1 / 0 != 1",
    ],
)
def test_comparisons_without_an_answer(test: str, engine: Engine) -> None:
    assert holds(test, engine) is None


def test_atoms_join_by_identity_where_comparisons_see_values(engine: Engine) -> None:
    evaluated = evaluate_text(
        """
        p(5) . q(5.0) .
        joined(X) :- p(X), q(X) .
        equal(X, Y) :- p(X), q(Y), X = Y .
        """,
        engine=engine,
    )
    assert evaluated.facts() == ["equal(5, 5.0)"]


def test_literals_are_canonical_when_read(engine: Engine) -> None:
    evaluated = evaluate_text(
        """
        p(05) . p(5) . p("+5"^^xsd:int) . p(1.50) . p(1.5) . p("1"^^xsd:boolean) . p(true) .
        p("2026-01-01T01:00:00+01:00"^^xsd:dateTime) . p("2026-01-01T00:00:00.000Z"^^xsd:dateTime) .
        """,
        engine=engine,
    )
    assert evaluated.facts("p") == [
        'p("2026-01-01T00:00:00Z"^^xsd:dateTime)',
        "p(1.5)",
        "p(5)",
        "p(true)",
    ]


def test_integer_decimal_and_double_are_three_terms(engine: Engine) -> None:
    assert evaluate_text("p(5) . p(5.0) . p(5e0) .", engine=engine).facts("p") == [
        "p(5)",
        "p(5.0)",
        "p(5.0E0)",
    ]


def test_a_computed_number_joins_with_the_term_of_its_type(engine: Engine) -> None:
    evaluated = evaluate_text(
        """
        p(4) . half(2) . half(2.0) . half(2e0) .
        by_div(X) :- p(X), Y := X div 2, Z := Y, half(H), H = Z .
        exact(Y) :- p(X), Y := X / 2, not other(Y) .
        joined(X) :- exact(X), half(X) .
        """,
        engine=engine,
    )
    assert evaluated.facts("joined") == ["joined(2.0E0)"]


def test_answers_come_in_the_total_order(engine: Engine) -> None:
    evaluated = evaluate_text(
        """
        p(<b>) . p(<a>) . p(_:x) . p(true) . p(false) . p("b") . p("a") . p("a"@fr) . p("b"@de) . p("a"@en) .
        p(2) . p(1.5) . p(2.0) . p(2e0) . p(-1) . p("x"^^<dt2>) . p("y"^^<dt1>) .
        p("2026-01-01T00:00:00Z"^^xsd:dateTime) . p("2025-01-01T00:00:00Z"^^xsd:dateTime) .
        """,
        engine=engine,
    )
    assert evaluated.answer("?- p(X) .") == [
        "-1",
        "1.5",
        "2.0",
        "2.0E0",
        "2",
        '"2025-01-01T00:00:00Z"^^xsd:dateTime',
        '"2026-01-01T00:00:00Z"^^xsd:dateTime',
        '"a"',
        '"b"',
        '"a"@en',
        '"a"@fr',
        '"b"@de',
        '"y"^^<dt1>',
        '"x"^^<dt2>',
        "false",
        "true",
        "a",
        "b",
        "_:x",
    ]
