"""A rule whose constants come from a fact.

An engine may treat constants and variables in two ways: a value that a rule computes should be the same
however its operands get there.
"""

from __future__ import annotations

from dataclasses import replace

from zodiacedge.language.ast import (
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Conjunct,
    Expression,
    Fact,
    Rule,
    Unary,
    Variable,
)
from zodiacedge.terms import IRI, BlankNode, Literal, Term, integer

_OPERANDS = "operands"
# With two columns more there is never a class, and never nothing.
_FIRST = (integer(0), integer(0))


def lifted(rule: Rule) -> tuple[Rule, Fact]:
    """Return a rule whose comparisons and bindings read their constants from a fact, and the fact."""
    terms: list[Term] = []

    def variable(term: Term) -> Variable:
        terms.append(term)
        return Variable(f"Operand{len(terms)}")

    def expression(found: Expression) -> Expression:
        match found:
            case IRI() | BlankNode() | Literal():
                return variable(found)
            case Unary(operand=operand):
                return Unary(expression(operand))
            case Binary(operator=operator, left=left, right=right):
                return Binary(operator, expression(left), expression(right))
            case Call(args=args):
                return replace(found, args=tuple(map(expression, args)))
            case _:
                return found

    def conjunct(found: Conjunct) -> Conjunct:
        match found:
            case Comparison(left=left, operator=operator, right=right):
                return Comparison(expression(left), operator, expression(right))
            case Binding(variable=target, expression=given):
                return Binding(target, expression(given))
            case _:
                return found

    body = tuple(map(conjunct, rule.body))
    columns = tuple(Variable(f"Operand{n + 1}") for n in range(len(terms)))
    operands = Atom(_OPERANDS, (*_FIRST, *columns))
    return replace(rule, body=(operands, *body)), Fact(_OPERANDS, (*_FIRST, *terms))
