"""Each check fires where it should and nowhere else, and a file's errors come in one run."""

from __future__ import annotations

import time

import pytest

from zodiacedge.language.ast import Aggregate, Atom, Binding, Comparison, Fold, Predicate, Rule, Variable
from zodiacedge.language.checks import Host, Subject, check, check_query
from zodiacedge.language.parser import parse_program, parse_query, parse_rule, read_program
from zodiacedge.language.safety import analyse, resolve, resolve_query

NOTHING_REGISTERED = Host(functions=(), aggregates=())


def codes(text: str, loaded: tuple[Predicate, ...] = (), host: Host | None = None) -> list[str]:
    program = parse_program(text)
    return [d.code for d in check(Subject(program.rules, program.facts, loaded, host or Host()))]


# (code, texts that have it and nothing else, texts that have nothing)
DIRECTED: list[tuple[str, list[str], list[str]]] = [
    (
        "C001",
        [
            "p(X) :- q(Y) .",
            "p(X, X) :- q(Y) .",
            "p(_) :- q(X) .",
            "p(X) :- not q(X) .",
            "p(X) :- q(X), Y > 3 .",
            "p(X) :- q(X), not r(X, Z), Z > 2 .",
            "p(X) :- q(X), Y != 3 .",
            "p(X) :- q(X), abs(Y) = 3 .",
            "p(X, N) :- r(X), AGGREGATE(q(Y)) WITH COUNT(Z) AS N .",
            "p(N) :- AGGREGATE(q(Y), Y > Z) WITH COUNT(Y) AS N .",
            "p(X, N) :- AGGREGATE(q(Y)) ON X WITH COUNT(Y) AS N .",
            "p(X) :- q(X), _ > 3 .",
        ],
        [
            "p(X) :- q(X) .",
            "p(5) :- q(X) .",
            "p() :- not q() .",
            "p() :- not q(X) .",
            "p(T) :- T := 1 + 2 .",
            "p(T) :- T = 1 + 2 .",
            "p(Y) :- q(X), Y = X .",
            "p(Y) :- q(X), X = Y .",
            "p(Z) :- Z = Y + 1, Y = X + 1, q(X) .",
            "p(X) :- X > 3, not s(X), q(X) .",
            "p(X) :- q(X), not r(X, Z) .",
            "p(X, N) :- AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N .",
            "p(X, M) :- r(X), M = N + 1, AGGREGATE(q(X, Y), Z = Y) ON X WITH SUM(Z) AS N .",
        ],
    ),
    (
        "C002",
        [
            "p(X) :- q(X), BIND(1 AS X) .",
            "p(X) :- q(X), X := 1 .",
            "p(X, N) :- N := 3, AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N .",
            "p(X, N) :- AGGREGATE(q(X, Y), X := 2) ON X WITH COUNT(Y) AS N .",
        ],
        [
            "p(X) :- q(X), X = 1 .",
            "p(X) :- q(X), COMP(X, =, 1) .",
            "p(Y) :- q(X), BIND(X AS Y) .",
            "p(Y) :- q(X), Y := X, Y = 5 .",
            "p(X) :- q(X), not r(Y), Y := X .",
            "p(M) :- q(X), M := 3 .",
        ],
    ),
    (
        "C003",
        [
            "p(X) :- q(Y), X = Y + 1, X = Y * 2 .",
            "p(X, Y) :- q(V, W), X = V, X = Y, Y = W .",
            "p(X) :- q(Y), X = Y, Z = X + 1, X = Y - 1, Z > 2 .",
        ],
        [
            "p(X) :- q(Y), X := Y + 1, X = Y * 2 .",
            "p(X) :- q(X, Y), X = Y + 1, X = Y * 2 .",
            "p(X, Y) :- q(Z, W), X = Z, Y = X .",
            "p(X, Y) :- Y = X, X = Z, q(Z, W) .",
            "p(W) :- q(X), Y = X, Z = Y, Z + 1 = W .",
            "p(X, Y) :- q(A), X = A, Y = X + 1, X = Y - 1 .",
            "p(Y) :- X := 3, Y = X, Z = Y, Z > 2 .",
        ],
    ),
    (
        "C004",
        ["p(X) :- q(X), not r(X, Z), not s(X, Z) ."],
        [
            "p(X) :- q(X), not r(X, Z), not s(X, Y) .",
            "p(X) :- q(X, Z), not r(X, Z), not s(X, Z) .",
            "p(X) :- q(X), not r(X, _), not s(X, _) .",
            "p(X) :- q(X), not r(Z, Z) .",
        ],
    ),
    (
        "C006",
        ["p(N) :- AGGREGATE(AGGREGATE(q(X)) ON X WITH COUNT(X) AS M) WITH SUM(M) AS N ."],
        ["p(N) :- AGGREGATE(q(X)) WITH COUNT(X) AS N ."],
    ),
    (
        "C007",
        [
            "p(X) :- AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS X .",
            "p(X, Y) :- AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS Y .",
        ],
        ["p(X, N, M) :- AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N, SUM(Y) AS M ."],
    ),
    (
        "C008",
        [
            "p(X) :- q(X), abs() = X .",
            "p(X) :- q(X), 1 = 1 + min() .",
            "p(X) :- q(X), substr(X, 1, 2, 3) = X .",
            "p(X) :- q(X), abs(abs(X, 1)) = X .",
            "p(N) :- AGGREGATE(q(X), X > ln(1, 2)) WITH COUNT(X) AS N .",
        ],
        ["p(X) :- q(X), min(X) = max(X, 1, 2), concat() = substr(X, 1), substr(X, 1, 2) = X ."],
    ),
    (
        "C010",
        ["r1: p(X) :- q(X) .\nr1: p(X) :- r(X) ."],
        ["r1: p(X) :- q(X) .\nr2: p(X) :- r(X) .", "p(X) :- q(X) .\np(X) :- r(X) ."],
    ),
    (
        "C011",
        [
            "p(X) :- q(X), r(X, X, X), r(X) .",
            "q(a, b, c) . p(X) :- q(X, X) .",
            "p() :- q(X) . p(a) .",
            "p(X) :- q(X), not q() .",
            "p(a, b, c, d) . p(a, b, c) .",
        ],
        ["p(X) :- p(X, Y) .", "p(X) :- rdf:type(X, C) . rdf:type(X, C) :- q(X, C) .", "p(a) . p(a, b) ."],
    ),
    (
        "C012",
        [
            "p(X, N) :- AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N .\np(X, Y) :- q(X, Y) .",
            "p(X, Y) :- q(X, Y) .\np(X, N) :- AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N .",
            "C(N) :- AGGREGATE(q(X, Y)) WITH COUNT(Y) AS N .\nrdf:type(Y, D) :- q(Y, D) .",
        ],
        [
            "p(X, N) :- AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N .\nr(X, Y) :- p(X, Y) .",
            "p(a, N) :- AGGREGATE(q(X, Y)) WITH COUNT(Y) AS N .\np(b, Y) :- q(X, Y) .",
            "C(N) :- AGGREGATE(q(X, Y)) WITH COUNT(Y) AS N .\nD(Y) :- q(X, Y) .",
        ],
    ),
    (
        "C013",
        ["p(X, N) :- AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N .\np(a, 1) ."],
        [
            "p(X, N) :- AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N .\nq(a, 1) .",
            "p(a, N) :- AGGREGATE(q(X, Y)) WITH COUNT(Y) AS N .\np(b, 1) .",
        ],
    ),
    (
        "W001",
        [
            "p(X, N) :- r(X, Y), AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N .",
            "p(X, N) :- r(X), AGGREGATE(q(Z), Z > 1, X = Z) WITH COUNT(Z) AS N .",
        ],
        [
            "p(X, N) :- r(X, Z), AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N .",
            "p(X, N) :- r(X, Y), AGGREGATE(q(X, Y)) ON X, Y WITH COUNT(Y) AS N .",
        ],
    ),
    (
        "W002",
        [
            "r1: p(X) :- q(X), r(X) .\nr2: p(Y) :- r(Y), q(Y) .",
            "r1: p(X) :- q(X) .\nr1: p(X) :- q(X) .",
            "p(Y) :- q(X), Y = X .\np(Y) :- q(X), Y := X .",
        ],
        ["p(X) :- q(X) .\np(X) :- r(X) ."],
    ),
    (
        "W003",
        [
            'p(X) :- s(X), regex(X, "^a") .',
            "p(X) :- s(X), isIRI(X) .",
            "hasNeighbour(a, b) . p(X) :- hasNeigbour(X, Y) .",
            "hasNeighbour(a, b) . p(X) :- q(X), not hasNeighbours(X, Y) .",
            "hasNeighbour(a, b) . s(N) :- AGGREGATE(hasNieghbour(X, Y)) WITH COUNT(Y) AS N .",
        ],
        [
            "hasNeighbour(a, b) . p(X) :- hasNeighbour(X, Y) .",
            "hasNeighbour(a, b) . p(X) :- temperature(X, Y) .",
            "p11(a, b) . p(X) :- p12(X, Y) .",
            "temp(a, b) . p(X) :- t(X, Y) .",
        ],
    ),
]


@pytest.mark.parametrize(
    ("code", "text"),
    [(code, text) for code, firing, _ in DIRECTED for text in firing],
    ids=lambda value: value,
)
def test_a_check_fires(code: str, text: str) -> None:
    found = codes(text)
    assert set(found) == {code}


@pytest.mark.parametrize(
    "text", [text for _, _, silent in DIRECTED for text in silent], ids=lambda value: value
)
def test_a_sound_program_has_no_findings(text: str) -> None:
    assert codes(text) == []


def test_two_aggregates_in_one_rule_which_no_text_can_say() -> None:
    x, n, m = Variable("X"), Variable("N"), Variable("M")
    inner = (Atom("q", (x, x)),)
    rule = Rule(
        Atom("p", (n, m)),
        (Aggregate(inner, (), (Fold("COUNT", x, n),)), Aggregate(inner, (), (Fold("SUM", x, m),))),
    )
    assert [d.code for d in check(Subject((rule,))) if d.severity == "error"] == ["C005"]


def test_a_result_named_twice() -> None:
    assert codes("p(N) :- AGGREGATE(q(X)) WITH COUNT(X) AS N, SUM(X) AS N .") == ["C007", "C007"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("p(X) :- q(X), 1 = func:predict(X) .", "registers"),
        ("p(X, N) :- AGGREGATE(q(X, Y)) ON X WITH mode(Y) AS N .", "registers"),
        ("p(X, N) :- AGGREGATE(q(X, Y)) ON X WITH COUMT(Y) AS N .", "COUNT"),
    ],
)
def test_what_the_host_did_not_register(text: str, hint: str) -> None:
    rules = parse_program(text).rules
    (found,) = check(Subject(rules, host=NOTHING_REGISTERED))
    assert found.code == "C009"
    assert hint in found.note
    assert check(Subject(rules, host=Host(("predict",), ("mode", "COUMT")))) == []
    assert check(Subject(rules, host=Host())) == []


def test_a_registered_function_that_is_misspelt() -> None:
    rules = parse_program("p(X) :- q(X), 1 = func:pedict(X) .").rules
    (found,) = check(Subject(rules, host=Host(functions=("predict",))))
    assert (found.code, found.note) == ("C009", "did you mean predict?")


def test_arities_of_loaded_facts_count() -> None:
    assert codes("p(X) :- q(X, Y, Z) .", (Predicate("q", 2),)) == ["C011"]
    assert codes("p(X) :- q(X) .", (Predicate("q", 1), Predicate("q", 2))) == []


def test_arities_of_loaded_facts_are_compared_with_each_other() -> None:
    loaded = (Predicate("q", 3), Predicate("q", 4), Predicate("r", 1), Predicate("r", 2))
    (found,) = check(Subject((), (), loaded))
    assert (found.code, found.span) == ("C011", None)
    assert found.message == "q has 4 arguments in some loaded facts and 3 in others"


def test_one_argument_is_singular() -> None:
    program = parse_program("p(a, b, c) . p(a) .")
    (found,) = check(Subject((), program.facts))
    assert found.message == "p has 1 argument here and 3 elsewhere"


def test_two_aggregates_of_one_predicate_are_told_once() -> None:
    text = "p(X, N) :- AGGREGATE(q(X, Y)) ON X WITH {}(Y) AS N ."
    assert codes("\n".join([text.format("COUNT"), text.format("SUM")])) == ["C012"]
    assert codes("\n".join([text.format("COUNT"), text.format("count")])) == ["W002"]


def test_many_aggregates_among_many_classes_are_checked_in_seconds() -> None:
    lines = [f"A{i}(N) :- AGGREGATE(q(X, Y)) WITH COUNT(Y) AS N ." for i in range(50)]
    lines += [f"B{i}(X) :- q(X, b{i}) ." for i in range(2000)]
    rules = parse_program("\n".join(lines)).rules
    start = time.process_time()
    assert check(Subject(rules)) == []
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("p(X) :- q(X), Y > 3, Y < 5 .", ["Y in a comparison"]),
        ("p(Y) :- q(X), Y > 3 .", ["Y in the head"]),
        ("p(Y) :- q(X), Y = Z + 1 .", ["Z in a binding"]),
        ("p(Y) :- q(X), Y = Z + 1, Y > 2, W = Y * 2, W != 1 .", ["Z in a binding"]),
        ("p(Y) :- q(X), Y := Z + 1, Z := Y + 1 .", ["Y in the head", "Z in a binding"]),
        ("p(N) :- AGGREGATE(q(X), Z = Y * 2) ON Z WITH SUM(Z) AS N .", ["Y in a binding"]),
        ("p(N) :- AGGREGATE(q(X)) ON Z WITH SUM(Z) AS N .", ["Z in ON"]),
    ],
)
def test_what_nothing_binds_is_told_once_and_where_it_is_missing(text: str, told: list[str]) -> None:
    found = check(Subject(parse_program(text).rules))
    assert [d.message.split(" is bound by nothing")[0] for d in found] == told


def test_inside_an_aggregate_only_the_inside_binds() -> None:
    (found,) = check(Subject(parse_program("p(N) :- r(Z), AGGREGATE(q(X)) WITH SUM(Z) AS N .").rules))
    assert found.message == "Z in SUM is bound by nothing inside the AGGREGATE"
    assert "inside the AGGREGATE" in found.note


def test_names_of_loaded_facts_count() -> None:
    assert codes("p(X) :- hasNeigbour(X, Y) .", (Predicate("hasNeighbour", 2),)) == ["W003"]
    assert codes("p(X) :- hasNeighbour(X, Y) .", (Predicate("hasNeighbour", 2),)) == []


def test_all_findings_come_in_the_order_of_the_text() -> None:
    text = """
        p(X) :- q(Y) .
        broken( :- .
        r1: p(X) :- q(X), BIND(1 AS X) .
        r1: p(X) :- q(X, X, X) .
        "open
        s(X) :- q(X), not t(X, Z), not u(X, Z) .
        s(X) :- q(X), abs(X, X) = 1 .
        f(X) .
    """
    program, syntax = read_program(text, "six.rules")
    assert [d.code for d in syntax] == ["L001", "L019", "L010"]
    found = check(Subject(program.rules, program.facts))
    assert [d.code for d in found] == ["C001", "C002", "C010", "C011", "C004", "C008"]
    places = [d.span.start for d in found if d.span]
    assert places == sorted(places)


def test_every_finding_has_a_place_and_says_what_to_do() -> None:
    for _, firing, _ in DIRECTED:
        for text in firing:
            program = parse_program(text)
            for finding in check(Subject(program.rules, program.facts)):
                assert finding.span is not None
                assert finding.note
                assert finding.code in finding.render()


# Queries


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("?- p(X), X > 3", []),
        ("?- p(X), Y > 3", ["C001"]),
        ("?- not p(X)", []),
        ("ans(Y) :- p(X)", ["C001"]),
        ("ans(X, 5) :- p(X)", []),
        ("?- p(X), not q(X, Z), not r(X, Z)", ["C004"]),
        ("?- AGGREGATE(p(X, Y)) ON X WITH COUNT(Y) AS N", []),
        ("?- AGGREGATE(p(X, Y)) ON X WITH mode(Y) AS N", ["C009"]),
        ("?- p(X), Y = abs(X, X)", ["C008"]),
    ],
)
def test_queries_are_checked_like_rules(text: str, expected: list[str]) -> None:
    assert sorted({d.code for d in check_query(parse_query(text), NOTHING_REGISTERED)}) == expected


@pytest.mark.parametrize("text", ["?- p(X), Y > 3", "?- p(X), X > Y", "?- p(X), Y > 3, Y < Z, Z > 1"])
def test_a_query_without_a_head_hears_nothing_of_one(text: str) -> None:
    found = check_query(parse_query(text), NOTHING_REGISTERED)
    assert (
        len(found)
        == len({d.message for d in found})
        == text.count("Y >") + text.count("X >") + text.count("Z >")
    )
    assert not [d for d in found if "head" in d.message]


# What equalities mean


def test_an_equality_with_a_free_side_is_a_binding() -> None:
    rule = resolve(parse_rule("p(Y, Z) :- q(X), Y = X + 1, X * 2 = Z, X = 3 ."))
    assert [type(c) for c in rule.body] == [Atom, Binding, Binding, Comparison]
    first, second = (c for c in rule.body if isinstance(c, Binding))
    assert (first.variable, second.variable) == (Variable("Y"), Variable("Z"))


def test_a_chain_of_equalities_binds_each_variable_once() -> None:
    rule = resolve(parse_rule("p(X, Y) :- Y = X, q(Z), X = Z, Z = Y + 0 ."))
    assert rule.body == resolve(parse_rule("p(X, Y) :- Y := X, q(Z), X := Z, COMP(Z, =, Y + 0) .")).body


def test_a_chain_as_long_as_a_body_is_analysed_in_seconds() -> None:
    chain = ", ".join(f"X{n} = X{n - 1}" for n in range(399, 0, -1))
    start = time.process_time()
    assert len(analyse(parse_rule(f"p(X399) :- {chain}, q(X0) .").body).bound) == 400
    assert time.process_time() - start < 5


def test_the_order_of_the_body_does_not_matter() -> None:
    forward = analyse(parse_rule("p(Z) :- q(X), Y = X + 1, Z = Y + 1 .").body)
    backward = analyse(parse_rule("p(Z) :- Z = Y + 1, Y = X + 1, q(X) .").body)
    assert forward.bound == backward.bound == {Variable(n) for n in "XYZ"}


def test_equalities_inside_an_aggregate_are_resolved_too() -> None:
    rule = resolve(parse_rule("p(N) :- AGGREGATE(q(X), Y = X * 2) WITH SUM(Y) AS N ."))
    assert rule.aggregate is not None
    assert [type(c) for c in rule.aggregate.body] == [Atom, Binding]


def test_a_query_is_resolved_too() -> None:
    query = resolve_query(parse_query("?- q(X), Y = X * 2"))
    assert [type(c) for c in query.body] == [Atom, Binding]


def test_an_equality_between_two_free_variables_binds_neither() -> None:
    assert set(codes("p(X) :- q(Z), X = Y .")) == {"C001"}


@pytest.mark.parametrize(
    ("text", "constant"),
    [("rdf:type(X, Turbine) :- q(X) .", True), ("p(X, T) :- q(X) .", False), ("p(X, t) :- q(Y) .", False)],
)
def test_a_variable_that_looks_like_a_name_is_perhaps_a_constant(text: str, constant: bool) -> None:  # noqa: FBT001 - a case
    program = parse_program(text)
    [finding] = [d for d in check(Subject(program.rules, program.facts)) if d.code == "C001"]
    assert ("as a constant write <Turbine>" in finding.note) is constant
