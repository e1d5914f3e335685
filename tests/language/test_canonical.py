"""A rule's key is equal exactly for rules that renaming and reordering make one."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from zodiacedge.errors import CheckProblem
from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Conjunct,
    Expression,
    Negation,
    Rule,
    Unary,
    Variable,
    variables,
)
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Subject, check
from zodiacedge.language.parser import parse_program, parse_rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# Renaming, and what being the same means, by trying every renaming


def renamed_expression(node: Expression, names: Mapping[Variable, Variable]) -> Expression:
    match node:
        case Variable():
            return names.get(node, node)
        case Unary(operand=operand):
            return Unary(renamed_expression(operand, names))
        case Binary(operator=operator, left=left, right=right):
            return Binary(operator, renamed_expression(left, names), renamed_expression(right, names))
        case Call(args=args):
            return replace(node, args=tuple(renamed_expression(a, names) for a in args))
        case _:
            return node


def renamed_atom(node: Atom, names: Mapping[Variable, Variable]) -> Atom:
    return replace(node, args=tuple(names.get(a, a) if isinstance(a, Variable) else a for a in node.args))


def renamed(node: Conjunct, names: Mapping[Variable, Variable]) -> Conjunct:
    match node:
        case Atom():
            return renamed_atom(node, names)
        case Negation(atom=inner):
            return Negation(renamed_atom(inner, names))
        case Comparison(left=left, operator=operator, right=right):
            return Comparison(renamed_expression(left, names), operator, renamed_expression(right, names))
        case Binding(variable=variable, expression=expression):
            return Binding(names.get(variable, variable), renamed_expression(expression, names))
        case Aggregate(body=body, groups=groups, folds=folds):
            return Aggregate(
                tuple(renamed(c, names) for c in body),
                tuple(names.get(v, v) for v in groups),
                tuple(
                    replace(
                        f, argument=names.get(f.argument, f.argument), target=names.get(f.target, f.target)
                    )
                    for f in folds
                ),
            )


def renamed_rule(rule: Rule, names: Mapping[Variable, Variable]) -> Rule:
    return Rule(renamed_atom(rule.head, names), tuple(renamed(c, names) for c in rule.body))


def told_apart(rule: Rule) -> Rule:
    """Give the variables that only the inside of the aggregate sees names of their own."""
    aggregate = rule.aggregate
    if aggregate is None:
        return rule
    shared = {*aggregate.groups, *(f.target for f in aggregate.folds)}
    names = {v: Variable(f"inside {v.name}") for v in variables(aggregate) if v not in shared}
    body = tuple(renamed(c, names) if isinstance(c, Aggregate) else c for c in rule.body)
    return replace(rule, body=body)


def shape(rule: Rule) -> object:
    def flat(c: Conjunct) -> object:
        if isinstance(c, Aggregate):
            return ("aggregate", frozenset(map(flat, c.body)), frozenset(c.groups), frozenset(c.folds))
        return c

    return (rule.head, frozenset(map(flat, rule.body)))


def names_of(rule: Rule) -> list[Variable]:
    return list(dict.fromkeys(v for node in (rule.head, *rule.body) for v in variables(node)))


def same(first: Rule, second: Rule) -> bool:
    first, second = told_apart(first), told_apart(second)
    ours, theirs = names_of(first), names_of(second)
    if len(ours) != len(theirs):
        return False
    goal = shape(second)
    return any(
        shape(renamed_rule(first, dict(zip(ours, order, strict=True)))) == goal
        for order in permutations(theirs)
    )


def shuffled(rule: Rule, chance: random.Random) -> Rule:
    """Rename all variables, the inner ones apart, and reorder both bodies."""
    rule = told_apart(rule)
    ours = names_of(rule)
    fresh = [Variable(f"V{i}") for i in range(len(ours))]
    chance.shuffle(fresh)
    rule = renamed_rule(rule, dict(zip(ours, fresh, strict=True)))
    body = [replace(c, body=mixed(c.body, chance)) if isinstance(c, Aggregate) else c for c in rule.body]
    return replace(rule, body=mixed(body, chance), label="other")


def mixed(items: Sequence[Conjunct], chance: random.Random) -> tuple[Conjunct, ...]:
    found = list(items)
    chance.shuffle(found)
    return tuple(found)


# Small random rules, so that many are the same by chance

ARGUMENTS = ["X", "Y", "Z", "W", "X", "Y", "a", "5"]
CONJUNCTS = [
    "e({}, {})",
    "e({}, {})",
    "f({}, {})",
    "not e({}, {})",
    "c({})",
    "{} < {}",
    "{} = {} + 1",
    "?v := {} - {}",
    "abs({}) != 1",
]


def filled(form: str, chance: random.Random) -> str:
    return form.format(*(chance.choice(ARGUMENTS) for _ in range(form.count("{}"))))


def random_text(chance: random.Random) -> str:
    body = [filled(chance.choice(CONJUNCTS), chance) for _ in range(chance.randint(1, 4))]
    head = filled(chance.choice(["p({}, {})", "p({})", "p()"]), chance)
    if chance.random() < 0.3:
        inner = ", ".join(filled(chance.choice(CONJUNCTS[:5]), chance) for _ in range(chance.randint(1, 2)))
        on = chance.choice(["", " ON X", " ON X, Y"])
        fold = chance.choice(
            ["COUNT(Z) AS N", "SUM(Y) AS N", "COUNT(DISTINCT Z) AS N", "MIN(X) AS N, MAX(X) AS M"]
        )
        body.append(f"AGGREGATE({inner}){on} WITH {fold}")
    return f"{head} :- {', '.join(body)} ."


def edited(text: str, chance: random.Random) -> str:
    """Change one name, number or sign."""
    changes = [("X", "Y"), ("Y", "X"), ("Z", "W"), ("e(", "f("), ("f(", "e("), ("a)", "b)"), ("5", "5.0")]
    changes += [
        ("<", "<="),
        ("not ", ""),
        ("COUNT", "SUM"),
        ("DISTINCT ", ""),
        ("MIN", "MAX"),
        (" - ", " + "),
    ]
    possible = [
        text[:place] + new + text[place + len(old) :]
        for old, new in changes
        for place in range(len(text))
        if text.startswith(old, place)
    ]
    return chance.choice(possible) if possible else text


@given(st.integers(0, 2**32))
@settings(max_examples=300)
def test_renaming_and_reordering_keep_the_key(seed: int) -> None:
    chance = random.Random(seed)
    rule = parse_rule(random_text(chance))
    assert rule_key(shuffled(rule, chance)) == rule_key(rule)


@given(st.integers(0, 2**32))
@settings(max_examples=300)
def test_an_edit_changes_the_key_exactly_where_it_changes_the_rule(seed: int) -> None:
    chance = random.Random(seed)
    text = random_text(chance)
    first, second = parse_rule(text), shuffled(parse_rule(edited(text, chance)), chance)
    assume(len(names_of(told_apart(first))) <= 6)
    assert (rule_key(first) == rule_key(second)) == same(first, second)


@given(
    st.lists(st.sampled_from([f"e({a}, {b})" for a in "XYZW" for b in "XYZW"]), min_size=1, max_size=5),
    st.data(),
)
@settings(max_examples=300)
def test_keys_of_small_graphs_are_equal_exactly_for_isomorphic_ones(
    edges: list[str], data: st.DataObject
) -> None:
    every = [f"e({a}, {b})" for a in "XYZW" for b in "XYZW"]
    others = data.draw(st.lists(st.sampled_from(every), min_size=len(edges), max_size=len(edges)))
    first, second = (parse_rule(f"p() :- {', '.join(some)} .") for some in (edges, others))
    assert (rule_key(first) == rule_key(second)) == same(first, second)


# Directed cases


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("p(X) :- q(X) .", "r7: p(?y) :- q(?y) ."),
        ("p(X) :- q(X), r(X) .", "p(X) :- r(X), q(X) ."),
        ("p(X) :- q(X, _) .", "p(X) :- q(X, Unused) ."),
        ("p(X) :- q(X), q(X) .", "p(X) :- q(X) ."),
        ("p(X) :- <q>(X) .", "p(X) :- rdf:type(X, q) ."),
        ("p(X) :- q(X), X > 05 .", "p(Y) :- COMP(Y, >, 5), q(Y) ."),
        ("p(X) :- q(X), Y := X + 1, r(Y) .", "p(A) :- r(B), BIND(A + 1 AS B), q(A) ."),
        (
            "p(X, N) :- AGGREGATE(q(X, Y), r(Y)) ON X WITH COUNT(Y) AS N .",
            "p(A, B) :- AGGREGATE(r(C), q(A, C)) ON A WITH count(C) AS B .",
        ),
        (
            "p(X, N) :- s(X, Y), AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N .",
            "p(X, N) :- s(X, Y), AGGREGATE(q(X, Z)) ON X WITH COUNT(Z) AS N .",
        ),
    ],
)
def test_one_rule_written_twice(first: str, second: str) -> None:
    assert rule_key(parse_rule(first)) == rule_key(parse_rule(second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("p(X) :- q(X, Y) .", "p(X) :- q(Y, X) ."),
        ("p(X) :- q(X, X) .", "p(X) :- q(X, Y) ."),
        ("p(X) :- q(X, 5) .", "p(X) :- q(X, 5.0) ."),
        ("p(X) :- q(X, 5) .", 'p(X) :- q(X, "5") .'),
        ('p(X) :- q(X, "a") .', "p(X) :- q(X, a) ."),
        ('p(X) :- q(X, "a") .', 'p(X) :- q(X, "a"@en) .'),
        ('p(X) :- q(X, "X") .', "p(X) :- q(X, X) ."),
        ('p(X) :- q(X, "?0") .', "p(X) :- q(X, X) ."),
        ("p(X) :- q(X), not r(X) .", "p(X) :- q(X), r(X) ."),
        ("p(X) :- q(X), X > 5 .", "p(X) :- q(X), X >= 5 ."),
        ("p(X) :- q(X, Y), X > Y .", "p(X) :- q(X, Y), Y > X ."),
        ("p(X) :- q(X, Y), Z := X - Y .", "p(X) :- q(X, Y), Z := Y - X ."),
        ("p(X) :- q(X), 1 = X - (2 - 3) .", "p(X) :- q(X), 1 = X - 2 - 3 ."),
        ("p(X) :- q(X), 1 = -X + 2 .", "p(X) :- q(X), 1 = -(X + 2) ."),
        ("p(X) :- q(X), 1 = min(X, 2, 3) .", "p(X) :- q(X), 1 = min(X, min(2, 3)) ."),
        ("p(X) :- q(X), 1 = func:abs(X) .", "p(X) :- q(X), 1 = abs(X) ."),
        ("p(X, X) :- q(X) .", "p(X) :- q(X) ."),
        ("p() :- e(X, Y), e(Y, X) .", "p() :- e(X, X), e(Y, Y) ."),
        ("p() :- e(X, Z), e(Y, W) .", "p() :- e(Z, X), e(Z, Y) ."),
        (
            "p(N) :- AGGREGATE(q(X, Y)) WITH COUNT(Y) AS N .",
            "p(N) :- AGGREGATE(q(X, Y)) WITH COUNT(DISTINCT Y) AS N .",
        ),
        (
            "p(X, N) :- AGGREGATE(q(X, Y, Z)) ON X WITH COUNT(Y) AS N .",
            "p(X, N) :- AGGREGATE(q(X, Y, Z)) ON X, Z WITH COUNT(Y) AS N .",
        ),
        (
            "p(X, N) :- r(Y), AGGREGATE(q(X, Y)) ON X WITH COUNT(X) AS N .",
            "p(X, N) :- r(Y), AGGREGATE(q(X, Y)) ON X, Y WITH COUNT(X) AS N .",
        ),
        (
            "p(X, N) :- r(X), AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N .",
            "p(X, N) :- AGGREGATE(q(X, Y), r(X)) ON X WITH COUNT(Y) AS N .",
        ),
    ],
)
def test_two_rules(first: str, second: str) -> None:
    assert rule_key(parse_rule(first)) != rule_key(parse_rule(second))


def test_a_graph_that_colours_cannot_tell_from_another() -> None:
    two_triangles = "e(A, B), e(B, C), e(C, A), e(D, E), e(E, F), e(F, D)"
    hexagon = "e(A, B), e(B, C), e(C, D), e(D, E), e(E, F), e(F, A)"
    first, second = (parse_rule(f"p() :- {body} .") for body in (two_triangles, hexagon))
    assert rule_key(first) != rule_key(second)
    chance = random.Random(1)
    assert rule_key(shuffled(first, chance)) == rule_key(first)
    assert rule_key(shuffled(second, chance)) == rule_key(second)


def both_ways(edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return list(dict.fromkeys([*edges, *((b, a) for a, b in edges)]))


def graph(edges: list[tuple[int, int]]) -> Rule:
    return parse_rule(f"p() :- {', '.join(f'e(V{a}, V{b})' for a, b in edges)} .")


def regular(size: int, degree: int, chance: random.Random) -> list[tuple[int, int]]:
    """Return a random graph whose nodes all have as many neighbours, both ways."""
    while True:
        ends = [node for node in range(size) for _ in range(degree)]
        chance.shuffle(ends)
        edges = {(min(pair), max(pair)) for pair in zip(ends[::2], ends[1::2], strict=True)}
        if len(edges) == size * degree // 2 and all(a != b for a, b in edges):
            return both_ways(sorted(edges))


GRID = [(a, b) for a in range(4) for b in range(4)]
# Two graphs with 16 nodes and 6 neighbours each that no refinement alone tells apart.
ROOK = [(4 * a + b, 4 * c + d) for a, b in GRID for c, d in GRID if (a == c) != (b == d)]
SHRIKHANDE = both_ways(
    [(4 * a + b, 4 * ((a + x) % 4) + (b + y) % 4) for a, b in GRID for x, y in ((0, 1), (1, 0), (1, 1))]
)
CUBE = [(i, i ^ (1 << k)) for i in range(32) for k in range(5)]
TORUS = [(10 * a + b, 10 * ((a + 1) % 10) + b) for a in range(10) for b in range(10)]
TORUS += [(10 * a + b, 10 * a + (b + 1) % 10) for a in range(10) for b in range(10)]
PETERSEN = [(i, (i + 1) % 5) for i in range(5)] + [(i, i + 5) for i in range(5)]
PETERSEN += [(5 + i, 5 + (i + 2) % 5) for i in range(5)]


@pytest.mark.parametrize(
    ("name", "edges"),
    [
        ("a star of 200", [(0, i) for i in range(1, 201)]),
        ("200 loose edges", [(2 * i, 2 * i + 1) for i in range(200)]),
        ("a chain of 200", [(i, i + 1) for i in range(200)]),
        ("a cycle of 24", [(i, (i + 1) % 24) for i in range(24)]),
        ("all pairs of 12", [(i, j) for i in range(12) for j in range(12) if i != j]),
        ("ten squares", [(4 * k + i, 4 * k + (i + 1) % 4) for k in range(10) for i in range(4)]),
        ("the Petersen graph", [*PETERSEN, *((b, a) for a, b in PETERSEN)]),
        ("two sides of 8", [(i, 8 + j) for i in range(8) for j in range(8)]),
        ("a chain of 400", [(i, i + 1) for i in range(400)]),
        ("a cycle of 400", [(i, (i + 1) % 400) for i in range(400)]),
        ("a cycle of 200 both ways", both_ways([(i, (i + 1) % 200) for i in range(200)])),
        ("all pairs of 20", [(i, j) for i in range(20) for j in range(20) if i != j]),
        ("the cube in five dimensions", CUBE),
        ("the rook's graph", ROOK),
        ("the Shrikhande graph", SHRIKHANDE),
        ("a torus of 10 by 10", both_ways(TORUS)),
        ("a random graph of degree 4", regular(40, 4, random.Random(3))),
    ],
)
def test_symmetric_bodies_are_fast(name: str, edges: list[tuple[int, int]]) -> None:
    rule = graph(edges)
    start = time.process_time()
    key = rule_key(rule)
    assert time.process_time() - start < 4, name
    for seed in range(3):
        assert rule_key(shuffled(rule, random.Random(seed))) == key, name


def test_graphs_that_are_alike_in_all_but_shape() -> None:
    assert len(ROOK) == len(SHRIKHANDE)
    assert rule_key(graph(ROOK)) != rule_key(graph(SHRIKHANDE))


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_regular_graphs_keep_their_key_and_lose_it_with_an_edge_moved(seed: int) -> None:
    chance = random.Random(seed)
    edges = regular(8, 3, chance)
    key = rule_key(graph(edges))
    assert rule_key(shuffled(graph(edges), chance)) == key
    # A node with more neighbours than the others: never the same graph.
    kept = [edge for edge in edges if edge != edges[0]]
    moved = next((edges[0][0], b) for b in range(8) if (edges[0][0], b) not in edges)
    assert rule_key(graph([*kept, moved])) != key


def test_variables_that_are_too_much_alike_are_refused_and_hide_nothing() -> None:
    edges = ", ".join(f"e(V{a}, V{b})" for a, b in regular(130, 3, random.Random(5)))
    program = parse_program(f"r1: p() :- {edges} .\nr1: p() :- {edges}, s() .\nr2: q(X) :- s() .")
    with pytest.raises(CheckProblem) as caught:
        rule_key(program.rules[0])
    assert [d.code for d in caught.value.diagnostics] == ["C014"]
    found = [d.code for d in check(Subject(program.rules))]
    assert found == ["C014", "C010", "C014", "C001"]
