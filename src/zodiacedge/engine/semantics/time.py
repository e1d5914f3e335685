"""Arithmetic on moments (xsd:dateTime) and lengths of time (xsd:dayTimeDuration). This is the definition.

    moment + length, length + moment, moment - length     a moment
    moment - moment, length + length, length - length     a length
    length * number, number * length, length / number     a length

All is exact to the microsecond, but a product or a quotient with a double is that of doubles, rounded to the
nearest microsecond (halves to the even one), and so is every quotient.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.language.printer import format_term
from zodiacedge.terms import (
    INTEGER_MAX,
    INTEGER_MIN,
    Literal,
    Term,
    date_time,
    duration,
    is_number,
    microseconds,
    value_of,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_time(term: Term) -> bool:
    """Whether a term is a moment or a length of time with a value."""
    return isinstance(value_of(term), datetime | timedelta)


def minus(term: Term) -> Literal:
    """Return the negative of a length of time, or raise `NoValue`."""
    return _length(-_micros(term, timedelta))


def seconds_of(term: Term) -> float:
    """Return a length of time in seconds, or raise `NoValue`."""
    return _micros(term, timedelta) / 1_000_000


def time_arithmetic(sign: str, left: Term, right: Term) -> Literal:
    """Return the result of an operator one of whose operands is a moment or a length, or raise `NoValue`."""
    match sign, _kind(left), _kind(right):
        case "+", "moment", "length":
            return _moment(_micros(left, datetime) + _micros(right, timedelta))
        case "+", "length", "moment":
            return _moment(_micros(left, timedelta) + _micros(right, datetime))
        case "-", "moment", "length":
            return _moment(_micros(left, datetime) - _micros(right, timedelta))
        case "-", "moment", "moment":
            return _length(_micros(left, datetime) - _micros(right, datetime))
        case "+", "length", "length":
            return _length(_micros(left, timedelta) + _micros(right, timedelta))
        case "-", "length", "length":
            return _length(_micros(left, timedelta) - _micros(right, timedelta))
        case "*", "length", "number":
            return _product(_micros(left, timedelta), value_of(right))
        case "*", "number", "length":
            return _product(_micros(right, timedelta), value_of(left))
        case "/", "length", "number":
            return _quotient(_micros(left, timedelta), value_of(right))
        case _:
            raise NoValue(f"{format_term(left)} {sign} {format_term(right)} is neither a moment nor a length")


def _kind(term: Term) -> str:
    value = value_of(term)
    if isinstance(value, datetime):
        return "moment"
    if isinstance(value, timedelta):
        return "length"
    return "number" if is_number(term) else ""


def _micros(term: Term, kind: type) -> int:
    value = value_of(term)
    if isinstance(value, datetime) and kind is datetime:
        return microseconds(value - _EPOCH)
    if isinstance(value, timedelta) and kind is timedelta:
        return microseconds(value)
    raise NoValue(f"{format_term(term)} is no length of time")


def _moment(micros: int) -> Literal:
    try:
        return date_time(_EPOCH + timedelta(microseconds=micros))
    except OverflowError:
        raise NoValue("a moment before the year 1 or after 9999") from None


def _length(micros: int) -> Literal:
    if INTEGER_MIN <= micros <= INTEGER_MAX:
        return duration(timedelta(microseconds=micros))
    raise NoValue("a length of time beyond 64 bits of microseconds")


def _product(micros: int, factor: object) -> Literal:
    if isinstance(factor, int):
        return _length(micros * factor)
    return _rounded(float(micros) * float(str(factor)))


def _quotient(micros: int, divisor: object) -> Literal:
    number = float(str(divisor))
    if number == 0:
        raise NoValue("division by zero")
    return _rounded(float(micros) / number)


def _rounded(micros: float) -> Literal:
    if math.isfinite(micros):
        return _length(round(micros))
    raise NoValue("not a finite number")
