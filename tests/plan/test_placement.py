"""The placement of facts for rounds: the join keys of rules, and the joins that rules are split into."""

from __future__ import annotations

from zodiacedge.language.ast import Atom, Negation
from zodiacedge.language.parser import parse_program
from zodiacedge.plan.placement import Placement


def shown(text: str, *small: str) -> list[str] | None:
    """Return the placed rules, each atom with the argument that it is placed by, counted from 1."""
    rules = {f"r{n}": rule for n, rule in enumerate(parse_program(text).rules, 1)}
    placement = Placement.of(rules, lambda atom: atom.relation in small)
    if placement is None:
        return None
    lines = []
    for rule in placement.rules:
        body = []
        for position, conjunct in enumerate(rule.body):
            atom = conjunct.atom if isinstance(conjunct, Negation) else conjunct
            assert isinstance(atom, Atom)
            argument = rule.placed.get(position, -1)
            by = "row" if argument is None else str(argument + 1)
            body.append(atom.relation + (f"@{by}" if position in rule.placed else ""))
        lines.append(f"{rule.head.relation}({', '.join(map(_name, rule.head.args))}) :- {', '.join(body)}")
    return lines


def _name(arg: object) -> str:
    return str(getattr(arg, "name", arg))


def test_a_rule_with_one_placed_atom_reads_the_whole_row() -> None:
    text = "sg(X, Y) :- parent(P, X), sg(P, Q), parent(Q, Y) ."
    assert shown(text, "parent") == ["sg(X, Y) :- parent, sg@row, parent"]


def test_an_argument_that_is_kept_keeps_facts_in_their_partition() -> None:
    assert shown("p(X, Y) :- p(X, Z), e(Z, Y) .", "e") == ["p(X, Y) :- p@1, e"]


def test_a_join_is_placed_by_its_key_and_so_is_what_it_negates() -> None:
    text = "p(X, Y) :- p(X, Z), p(Z, Y), not closed(Z, Z) ."
    assert shown(text) == ["p(X, Y) :- p@2, p@1, closed@1"]


def test_a_rule_without_a_common_variable_is_split() -> None:
    text = """
        pt(V, O) :- assign(V, W), pt(W, O) .
        holds(O, P) :- store(V, W), pt(V, O), pt(W, P) .
        pt(V, P) :- load(V, W), pt(W, O), holds(O, P) .
    """
    assert shown(text, "assign", "store", "load") == [
        "pt(V, O) :- assign, pt@2",
        "join 1 of r2(O, W) :- pt@1, store",
        "holds(O, P) :- join 1 of r2@2, pt@1",
        "pt(V, P) :- load, pt@2, holds@1",
    ]


def test_negations_by_other_variables_are_joined_one_after_the_other() -> None:
    assert shown("p(X, Y) :- p(Y, X), not b(X, X), not c(Y, _) .") == [
        "join 1 of r1(Y, X) :- p@1, c@1",
        "p(X, Y) :- join 1 of r1@2, b@1",
    ]


def test_products_groups_and_possible_errors_are_not_placed() -> None:
    assert shown("p(X, Y) :- p(X, Z), p(W, Y) .") is None
    assert shown("p(X, Y) :- p(X, Z), e(Z, Y), X < Y .", "e") is None
    assert shown("p(X, N) :- p(X, _), AGGREGATE(e(X, Y)) ON X WITH COUNT(Y) AS N .", "e") is None
