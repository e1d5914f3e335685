"""Phrases of explanations: values, steps, premises, conditions that fail, edits.

Each is a few pieces of a line; what belongs together below a line is put there by `proofs`, `missing` and
`history`.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from zodiacedge.errors import counted
from zodiacedge.explain.forms.lines import Piece
from zodiacedge.explain.missing import (
    FailedComparison,
    NoBindings,
    NoResult,
    NoSuchFact,
    OtherValue,
    PresentFact,
)
from zodiacedge.explain.proof import AbsentPremise, AggregatePremise, BindingPremise, ComparisonPremise
from zodiacedge.language.ast import Binary, Call, Comparison, Now, Unary, Variable, variables
from zodiacedge.language.printer import (
    format_argument,
    format_atom,
    format_conjunct,
    format_expression,
    format_rule,
    format_term,
)
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES, NOW_RELATION
from zodiacedge.terms import IRI, XSD_DECIMAL, XSD_DOUBLE, BlankNode, Literal, literal
from zodiacedge.util.one_line import on_one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from zodiacedge.explain.missing import Failing
    from zodiacedge.explain.proof import Premise, Statement, Values
    from zodiacedge.language.ast import Atom, Conjunct, Expression, Fact, Rule
    from zodiacedge.terms import Term

Pieces = tuple[Piece, ...]
# Doubles of these sizes are read more easily without an exponent.
_PLAIN = Decimal("1e-6"), Decimal("1e15")
_CONSTANTS = (IRI, BlankNode, Literal)


def code(text: str) -> Piece:
    """Return a piece in the syntax of the language."""
    return Piece(text, "code")


def is_written(variable: Variable) -> bool:
    """Return whether a rule names a variable; `_` has no name, nor has what stands for it."""
    return not variable.anonymous and not variable.name.startswith(".")


def plain(term: Term) -> Term:
    """Return a value to read: 22.5 for the double 2.25E1, which keeps its own form in facts."""
    if isinstance(term, Literal) and term.datatype == XSD_DOUBLE:
        number = Decimal(term.lexical)
        if not number or _PLAIN[0] <= abs(number) < _PLAIN[1]:
            return literal(format(number, "f"), XSD_DECIMAL)
    return term


def in_plain(expression: Expression) -> Expression:
    """Return an expression with values to read."""
    match expression:
        case Unary(operand=operand):
            return Unary(in_plain(operand))
        case Binary(left=left, right=right):
            return replace(expression, left=in_plain(left), right=in_plain(right))
        case Call(args=args):
            return replace(expression, args=tuple(map(in_plain, args)))
        case Variable() | Now():
            return expression
        case _:
            return plain(expression)


def quiet(text: str) -> Piece:
    """Return a piece beside the matter."""
    return Piece(text, "quiet")


class Words:
    """Phrases with the prefixes of an answer."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        """Abbreviate IRIs by prefixes."""
        self.prefixes = {**DEFAULT_PREFIXES, **prefixes}

    # The syntax of the language.

    def atom(self, atom: Atom | Fact) -> str:
        """Return a fact or an atom."""
        return format_atom(atom, self.prefixes)

    def term(self, term: Term) -> str:
        """Return a value."""
        return format_term(term, self.prefixes)

    def rule(self, rule: Rule) -> str:
        """Return the text of a rule; of one that states a fact of a pack, the fact."""
        if rule.states_fact:
            return f"{f'{rule.label}: ' if rule.label else ''}{self.atom(rule.head)} ."
        return format_rule(rule, self.prefixes)

    def conjunct(self, conjunct: Conjunct) -> str:
        """Return a conjunct of a body."""
        return format_conjunct(conjunct, self.prefixes)

    def values(self, values: Values, without: Collection[Variable] = ()) -> str:
        """Return `X = wt1, V = 95`, without variables that have no name."""
        return ", ".join(
            f"{format_argument(variable)} = {self.term(plain(value))}"
            for variable, value in values.items()
            if is_written(variable) and variable not in without
        )

    # What holds.

    def premise(self, premise: Premise) -> Pieces:
        """Return a premise that is no fact."""
        match premise:
            case AbsentPremise(pattern=pattern):
                return (Piece("no "), code(self.atom(pattern)))
            case ComparisonPremise():
                return self._comparison(premise, ": ")
            case BindingPremise(binding=binding, filled=filled, value=value):
                expression = format_expression(in_plain(filled.expression), self.prefixes)
                known = isinstance(filled.expression, _CONSTANTS)
                result = self.term(plain(value))
                shown = result if known else f"{expression} = {result}"
                return (code(self.conjunct(binding)), Piece(": "), code(shown))
            case AggregatePremise():
                return self._aggregate(premise)
            case _:
                return (code(self.atom(premise.fact)),)

    def _comparison(self, premise: ComparisonPremise, between: str) -> Pieces:
        written = code(self.conjunct(premise.comparison))
        named = tuple(variables(premise.comparison))
        if not named:
            return (written,)
        operator = premise.comparison.operator
        sides = in_plain(premise.filled.left), in_plain(premise.filled.right)
        filled = self.conjunct(Comparison(sides[0], operator, sides[1]))
        computed = self.conjunct(Comparison(plain(premise.left), operator, plain(premise.right)))
        if not all(map(is_written, named)):
            # A condition on the time of a window that is written as `_`.
            return (code(filled), Piece(between.removesuffix(": ")))
        if filled == computed:
            return (written, Piece(between), code(computed))
        return (written, Piece(between), code(filled), Piece(", which is "), code(computed))

    def _aggregate(self, premise: AggregatePremise) -> Pieces:
        results = ", ".join(
            f"{fold.op}({'DISTINCT ' if fold.distinct else ''}"
            f"{', '.join(map(format_argument, fold.arguments))}) AS "
            f"{format_argument(fold.target)} = {self.term(plain(value))}"
            for fold, value in premise.results
        )
        group = self.values(premise.group)
        few = "" if len(premise.shown) == premise.bindings else f", {len(premise.shown)} of them shown"
        of_group = (Piece(" for "), code(group)) if group else ()
        return (code(results), Piece(f" over {counted(premise.bindings, 'binding')}"), *of_group, Piece(few))

    # What fails.

    def failing(self, failing: Failing) -> Pieces:
        """Return a condition that fails, with its values."""
        match failing:
            case NoSuchFact(pattern=pattern) if pattern.relation == NOW_RELATION:
                return (Piece("the clock has no time: no tick came"),)
            case NoSuchFact(pattern=pattern, under_question=under_question):
                ground = not any(isinstance(arg, Variable) for arg in pattern.args)
                found = " is not there" if ground else ": no such fact"
                asked = ", and it is what was asked" if under_question else ""
                return (code(self.atom(pattern)), Piece(f"{found}{asked}"))
            case PresentFact(atom=atom, fact=fact, statement=statement, explicit=explicit):
                origin = self.statement(statement) if explicit else "derived"
                within = f" within {self.term(atom.within)}" if atom.within else ""
                return (code(f"{self.atom(fact)}{within}"), Piece(f" is there: {origin}"))
            case FailedComparison(premise=premise):
                return self._comparison(premise, " fails: ")
            case NoResult(conjunct=conjunct, filled=filled, reason=reason):
                written, shown = self.conjunct(conjunct), self.conjunct(filled)
                values = () if written == shown else (Piece(": "), code(shown))
                return (code(written), Piece(" has no value"), *values, Piece(f": {reason}"))
            case OtherValue(conjunct=conjunct, variable=variable, value=value, wanted=wanted, asked=asked):
                name = format_argument(variable)
                return (
                    code(self.conjunct(conjunct)),
                    Piece(" gives "),
                    code(f"{name} = {self.term(value)}"),
                    Piece(", and "),
                    code(self.term(wanted)),
                    Piece(" is asked" if asked else " is needed"),
                )
            case NoBindings(aggregate=aggregate, group=group):
                of_group = (Piece(" for "), code(self.values(group))) if self.values(group) else ()
                return (code(self.conjunct(aggregate)), Piece(" has no bindings"), *of_group)

    # Who and when.

    def statement(self, statement: Statement | None) -> str:
        """Return who made a fact explicit, and when."""
        if statement is None:
            return "explicit"
        author = f" by {on_one_line(statement.author)}" if statement.author else ""
        return f"stated{author} at {self.moment(statement.version, statement.time)}"

    def moment(self, version: int, time: datetime | None) -> str:
        """Return a version, with its time."""
        return f"version {version}{f', {time:%Y-%m-%d %H:%M}' if time else ''}"
