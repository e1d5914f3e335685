"""The semantics of expressions and comparisons on single values. This is the definition.

Operands are terms. Arithmetic takes their values and returns a canonical term: an xsd:integer, an
xsd:double, or a moment or a length of time (`time`). An operation without a result raises `NoValue`, which
drops the binding. In arithmetic with a double, an integer is converted to its nearest double; comparisons are
exact.
"""

from __future__ import annotations

import math
import operator
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.engine.semantics.host_functions import call_registered
from zodiacedge.engine.semantics.term_functions import TERM_FUNCTIONS
from zodiacedge.engine.semantics.text import TEXT_FUNCTIONS
from zodiacedge.engine.semantics.time import is_time, minus, seconds_of, time_arithmetic
from zodiacedge.language.ast import Binary, Call, Expression, Now, Unary, Variable
from zodiacedge.language.printer import format_term
from zodiacedge.terms import (
    INTEGER_MAX,
    INTEGER_MIN,
    RDF_LANGSTRING,
    Literal,
    Term,
    double,
    integer,
    is_number,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from zodiacedge.engine.registry import Registry

Number = int | float
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


def evaluate(expression: Expression, binding: Mapping[Variable, Term], registry: Registry) -> Term:
    """Return the term of an expression under a binding, or raise `NoValue`."""
    match expression:
        case Variable():
            return binding[expression]
        case Unary(operand=operand):
            term = evaluate(operand, binding, registry)
            if is_time(term):
                return minus(term)
            return number_term(-number(term))
        case Binary(operator=sign, left=left, right=right):
            first, second = evaluate(left, binding, registry), evaluate(right, binding, registry)
            if is_time(first) or is_time(second):
                return time_arithmetic(sign, first, second)
            return number_term(_arithmetic(sign, number(first), number(second)))
        case Call(function="if", args=(condition, chosen, other), registered=False):
            holds = truth(evaluate(condition, binding, registry))
            return evaluate(chosen if holds else other, binding, registry)
        case Call(function="coalesce", args=args, registered=False):
            return _first_value(args, binding, registry)
        case Call(function=name, args=args, registered=registered):
            terms = [evaluate(arg, binding, registry) for arg in args]
            if registered:
                return call_registered(registry.functions[name], terms)
            if name in _NUMERIC_FUNCTIONS:
                return number_term(_NUMERIC_FUNCTIONS[name](*map(number, terms)))
            if name in _DATE_FUNCTIONS:
                return number_term(_DATE_FUNCTIONS[name](day(terms[0])))
            if name == "seconds" and isinstance(value_of(terms[0]), timedelta):
                return number_term(seconds_of(terms[0]))
            if name in _TIME_FUNCTIONS:
                return number_term(_TIME_FUNCTIONS[name](moment(terms[0])))
            return (TERM_FUNCTIONS if name in TERM_FUNCTIONS else TEXT_FUNCTIONS)[name](*terms)
        case Now():
            raise TypeError(expression)
        case _:
            return expression


def compare(left: Term, sign: str, right: Term) -> bool:
    """Whether a comparison holds; raise `NoValue` if the terms have no order."""
    kind = _kind(left)
    if kind and kind == _kind(right):
        return _ORDERS[sign](value_of(left), value_of(right))
    if sign in {"=", "!="}:
        return (left == right) == (sign == "=")
    raise NoValue(f"{format_term(left)} and {format_term(right)} have no order")


def number(term: Term) -> Number:
    """Return a term's number, or raise `NoValue`."""
    value = value_of(term)
    if isinstance(value, int | float) and is_number(term):
        return value
    raise NoValue(f"{format_term(term)} is not a number")


def day(term: Term) -> date:
    """Return a term's date or dateTime, or raise `NoValue`."""
    value = value_of(term)
    if isinstance(value, date):
        return value
    raise NoValue(f"{format_term(term)} is neither a date nor a dateTime")


def moment(term: Term) -> datetime:
    """Return a term's dateTime, or raise `NoValue`."""
    value = value_of(term)
    if isinstance(value, datetime):
        return value
    raise NoValue(f"{format_term(term)} is not a dateTime")


def truth(term: Term) -> bool:
    """Return whether a term counts as true (its effective boolean value), or raise `NoValue`."""
    value = value_of(term)
    if isinstance(value, bool | int | float | str):
        return bool(value)
    if isinstance(term, Literal) and term.datatype == RDF_LANGSTRING:
        return bool(term.lexical)
    raise NoValue(f"{format_term(term)} is neither true nor false")


def number_term(value: Number) -> Literal:
    """Return the canonical term of a computed number, or raise `NoValue` if it has none."""
    if isinstance(value, int):
        if INTEGER_MIN <= value <= INTEGER_MAX:
            return integer(value)
        raise NoValue("an integer beyond 64 bits")
    if math.isfinite(value):
        return double(value)
    raise NoValue("not a finite number")


def _first_value(args: Sequence[Expression], binding: Mapping[Variable, Term], registry: Registry) -> Term:
    for arg in args:
        try:
            return evaluate(arg, binding, registry)
        except NoValue:
            continue
    raise NoValue("no argument of coalesce has a value")


def _kind(term: Term) -> str:
    value = value_of(term)
    if value is None or not isinstance(term, Literal):
        return ""
    return "number" if is_number(term) else term.datatype


def _arithmetic(sign: str, a: Number, b: Number) -> Number:
    try:
        match sign:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                return float(a) / float(b)
            case "div":
                return a // b
            case "%":
                return a % b
            case _:
                return _power(a, b)
    except ZeroDivisionError:
        raise NoValue("division by zero") from None
    except OverflowError:
        raise NoValue("not a finite number") from None


def _power(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int) and b >= 0:
        # Results beyond 64 bits are errors, so they are not computed.
        if abs(a) > 1 and b > 63:
            raise NoValue("an integer beyond 64 bits")
        return int(a**b)
    try:
        return math.pow(a, b)
    except ValueError:
        raise NoValue(f"{a} ** {b} is not a number") from None


def _real(function: Callable[[float], float]) -> Callable[[Number], Number]:
    def call(value: Number) -> float:
        try:
            return function(float(value))
        except (ValueError, OverflowError):
            raise NoValue(f"no result for {value}") from None

    return call


def _least(*values: Number) -> Number:
    return min(values, key=lambda v: (v, isinstance(v, float)))


def _greatest(*values: Number) -> Number:
    return max(values, key=lambda v: (v, isinstance(v, int)))


_NUMERIC_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "abs": abs,
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": _real(math.sqrt),
    "exp": _real(math.exp),
    "ln": _real(math.log),
    "log10": _real(math.log10),
    "min": _least,
    "max": _greatest,
}
_DATE_FUNCTIONS: dict[str, Callable[[date], Number]] = {
    "year": lambda t: t.year,
    "month": lambda t: t.month,
    "day": lambda t: t.day,
}
_TIME_FUNCTIONS: dict[str, Callable[[datetime], Number]] = {
    "hours": lambda t: t.hour,
    "minutes": lambda t: t.minute,
    "seconds": lambda t: t.second + t.microsecond / 1_000_000,
}
