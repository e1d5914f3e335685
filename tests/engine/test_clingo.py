"""Clingo, an answer set solver, agrees with the reference on programs over small integers.

Our rules are written as ASP: a variable that only one negated atom holds goes through an auxiliary
predicate, everything else is the same up to spelling.
"""

from __future__ import annotations

import clingo
import pytest
from hypothesis import given, settings

from strategies import INTEGERS, RandomProgram, evaluate_program, examples, programs
from zodiacedge.language.ast import (
    Atom,
    Binary,
    Binding,
    Comparison,
    Conjunct,
    Expression,
    Fact,
    Negation,
    Rule,
    Variable,
    predicate_of,
    variables,
)
from zodiacedge.language.safety import analyse
from zodiacedge.terms import IRI, RDF_TYPE, Literal, integer

pytestmark = pytest.mark.slow


class Translation:
    """A program as ASP, with the auxiliary predicates it needs."""

    def __init__(self, rules: list[Rule], facts: tuple[Fact, ...]) -> None:
        self.lines: list[str] = []
        self._auxiliaries = 0
        for fact in facts:
            self.lines.append(f"{self._atom(fact)}.")
        for rule in rules:
            bound = analyse(rule.body).bound
            body = ", ".join(self._conjunct(c, bound) for c in rule.body)
            self.lines.append(f"{self._atom(rule.head)} :- {body}.")

    def _conjunct(self, conjunct: Conjunct, bound: frozenset[Variable]) -> str:
        match conjunct:
            case Atom():
                return self._atom(conjunct)
            case Negation(atom=atom):
                if set(variables(atom)) <= bound:
                    return f"not {self._atom(atom)}"
                self._auxiliaries += 1
                shared = ", ".join(v.name for v in dict.fromkeys(variables(atom)) if v in bound)
                name = f"aux{self._auxiliaries}({shared})" if shared else f"aux{self._auxiliaries}"
                self.lines.append(f"{name} :- {self._atom(atom)}.")
                return f"not {name}"
            case Comparison(left=left, operator=sign, right=right):
                return f"{_expression(left)} {sign} {_expression(right)}"
            case Binding(variable=variable, expression=expression):
                return f"{_name(variable)} = {_expression(expression)}"
        raise AssertionError(conjunct)

    def _atom(self, atom: Atom | Fact) -> str:
        name, arity = predicate_of(atom.relation, atom.args)
        args = ", ".join(map(_expression, atom.args[:arity]))
        return f"{name}_{arity}({args})" if arity else f"{name}_{arity}"


def _name(variable: Variable) -> str:
    return variable.name.replace("_.", "Anonymous").replace(".", "_")


def _expression(expression: Expression) -> str:
    match expression:
        case Variable():
            return _name(expression)
        case Literal(lexical=lexical):
            return lexical
        case Binary(operator=sign, left=left, right=right):
            return f"({_expression(left)} {sign} {_expression(right)})"
    raise AssertionError(expression)


def answer_of(text: str) -> set[Fact]:
    """Return the visible facts of the one answer set."""
    control = clingo.Control(["--warn=none"])
    control.add("base", [], text)
    control.ground([("base", [])])
    found: list[list[clingo.Symbol]] = []
    control.solve(on_model=lambda model: found.append(list(model.symbols(atoms=True))))
    assert len(found) == 1
    return {_fact(symbol) for symbol in found[0] if not symbol.name.startswith("aux")}


def _fact(symbol: clingo.Symbol) -> Fact:
    name = symbol.name.rpartition("_")[0]
    terms = tuple(integer(argument.number) for argument in symbol.arguments)
    return Fact(RDF_TYPE, (terms[0], IRI(name))) if len(terms) == 1 else Fact(name, terms)


def agrees_with_clingo(program: RandomProgram) -> None:
    evaluated = evaluate_program(program)
    text = "\n".join(Translation(list(evaluated.rules.values()), program.facts).lines)
    assert evaluated.result.visible() == answer_of(text), text


@settings(max_examples=150)
@given(programs(INTEGERS))
def test_clingo_agrees_on_random_programs(program: RandomProgram) -> None:
    agrees_with_clingo(program)


@pytest.mark.soak
@settings(max_examples=examples(5000))
@given(programs(INTEGERS))
def test_soak_clingo(program: RandomProgram) -> None:
    agrees_with_clingo(program)


def test_the_comparison_would_notice_a_missing_fact() -> None:
    assert answer_of("p_2(1,2). q_1(X) :- p_2(X,Y), not aux1(Y). aux1(Y) :- r_2(Y,Z).") == {
        Fact("p", (integer(1), integer(2))),
        Fact(RDF_TYPE, (integer(1), IRI("q"))),
    }
