"""Rules as answer set programs, and the answer of clingo as facts.

A variable that only one negated atom holds goes through an auxiliary predicate, and so do the groups of a
count; everything else is the same up to spelling. Integers are numbers, IRIs are strings, and there are no
other terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import clingo

from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Conjunct,
    Expression,
    Fact,
    Negation,
    Rule,
    Variable,
    fact,
    predicate_of,
    variables,
)
from zodiacedge.language.safety import analyse
from zodiacedge.terms import IRI, Literal, integer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.terms import Term


class Translation:
    """A program as ASP, with the auxiliary predicates it needs."""

    def __init__(self, rules: Iterable[Rule], facts: Iterable[Fact]) -> None:
        self.lines: list[str] = []
        self._auxiliaries = 0
        for each in facts:
            self.lines.append(f"{_atom(each)}.")
        for rule in rules:
            self.lines.append(f"{_atom(rule.head)} :- {self._body(rule.body)}.")

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def _body(self, body: tuple[Conjunct, ...]) -> str:
        bound = analyse(body).bound
        return ", ".join(self._conjunct(c, bound) for c in body)

    def _conjunct(self, conjunct: Conjunct, bound: frozenset[Variable]) -> str:
        match conjunct:
            case Atom():
                return _atom(conjunct)
            case Negation(atom=atom):
                if set(variables(atom)) <= bound:
                    return f"not {_atom(atom)}"
                shared = [v for v in dict.fromkeys(variables(atom)) if v in bound]
                return f"not {self._auxiliary(shared, _atom(atom))}"
            case Comparison(left=left, operator=sign, right=right):
                return f"{_expression(left)} {sign} {_expression(right)}"
            case Binding(variable=variable, expression=expression):
                return f"{_name(variable)} = {_expression(expression)}"
            case Aggregate(groups=groups, folds=(fold,), body=inside) if fold.op.lower() == "count":
                # A group is one only if it has a member.
                members = [
                    v for v in dict.fromkeys(v for c in inside for v in variables(c)) if v not in groups
                ]
                body = self._body(inside)
                counted = f"{', '.join(map(_name, members))} : {body}"
                return f"{self._auxiliary(groups, body)}, {_name(fold.target)} = #count {{ {counted} }}"
        raise AssertionError(conjunct)

    def _auxiliary(self, arguments: Iterable[Variable], body: str) -> str:
        self._auxiliaries += 1
        listed = ", ".join(map(_name, arguments))
        name = f"aux{self._auxiliaries}({listed})" if listed else f"aux{self._auxiliaries}"
        self.lines.append(f"{name} :- {body}.")
        return name


def _atom(atom: Atom | Fact) -> str:
    name, arity = predicate_of(atom.relation, atom.args)
    args = ", ".join(map(_expression, atom.args[:arity]))
    # A name may start with an upper-case letter, as a variable would.
    return f"z_{name}_{arity}({args})" if arity else f"z_{name}_{arity}"


def _name(variable: Variable) -> str:
    return "V" + variable.name.replace("_.", "Anonymous").replace(".", "_")


def _expression(expression: Expression) -> str:
    match expression:
        case Variable():
            return _name(expression)
        case Literal(lexical=lexical):
            return lexical
        case IRI(value=value):
            return f'"{value}"'
        case Binary(operator=sign, left=left, right=right):
            return f"({_expression(left)} {sign} {_expression(right)})"
        case Call(function="abs", args=(only,)):
            return f"|{_expression(only)}|"
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
    name = symbol.name.removeprefix("z_").rpartition("_")[0]
    return fact(name, *map(_term, symbol.arguments))


def _term(symbol: clingo.Symbol) -> Term:
    return integer(symbol.number) if symbol.type is clingo.SymbolType.Number else IRI(symbol.string)
