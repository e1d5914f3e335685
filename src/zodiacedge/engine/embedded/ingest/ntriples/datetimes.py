"""Kernels that parse an xsd:dateTime as microseconds since 1970, and an xsd:date as days since then."""

from __future__ import annotations

from zodiacedge.engine.embedded.ingest.ntriples import state as ns
from zodiacedge.engine.embedded.ingest.ntriples.characters import COLON, DOT, MINUS, PLUS, UPPER_T, UPPER_Z
from zodiacedge.engine.embedded.ingest.ntriples.numbers import MANY_DIGITS, read_digits
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import kernel, load8
from zodiacedge.engine.embedded.kernels.jit import store64 as put

_MICROSECONDS = 1_000_000
_DAY = 86_400 * _MICROSECONDS
_FIRST_MOMENT = -62_135_596_800_000_000
_LAST_MOMENT = 253_402_300_799_999_999


@kernel
def days_of_month(year: int, month: int) -> int:
    """Return the number of days of a month."""
    if month == 2:
        return 29 if (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)) else 28
    return 30 if (month == 4 or month == 6 or month == 9 or month == 11) else 31


@kernel
def days_since_1970(year: int, month: int, day: int) -> int:
    """Return the number of a day, counted in years that start with March."""
    if month <= 2:
        year -= 1
        month += 12
    in_year = (153 * (month - 3) + 2) // 5 + day - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + in_year - 719_468


@kernel
def read_moment(state: int, base: int, start: int, end: int) -> int:
    """Parse a dateTime as microseconds since 1970; return its kind, `INVALID`, or `LATER`."""
    if end - start < 19:
        return ns.INVALID
    if (
        load8(base, start + 4) != MINUS
        or load8(base, start + 7) != MINUS
        or load8(base, start + 10) != UPPER_T
        or load8(base, start + 13) != COLON
        or load8(base, start + 16) != COLON
    ):
        return ns.INVALID
    year = read_digits(base, start, start + 4)
    month = read_digits(base, start + 5, start + 7)
    day = read_digits(base, start + 8, start + 10)
    hour = read_digits(base, start + 11, start + 13)
    minute = read_digits(base, start + 14, start + 16)
    second = read_digits(base, start + 17, start + 19)
    if year < 1 or month < 1 or month > 12 or day < 1 or day > days_of_month(year, month):
        return ns.INVALID
    if hour < 0 or hour > 24 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return ns.INVALID
    at = start + 19
    fraction = 0
    if at < end and load8(base, at) == DOT:
        at += 1
        first = at
        while at < end and 0x30 <= load8(base, at) <= 0x39:
            at += 1
        digits = at - first
        if not digits:
            return ns.INVALID
        if digits > MANY_DIGITS:
            return ns.LATER
        fraction = read_digits(base, first, at)
        if hour == 24 and fraction:
            return ns.INVALID
        unit = 1
        while digits > 6:
            unit *= 10
            digits -= 1
        while digits < 6:
            fraction *= 10
            digits += 1
        rest = fraction % unit
        fraction //= unit
        # Half a microsecond is rounded to even.
        if 2 * rest > unit or (2 * rest == unit and fraction % 2 == 1):
            fraction += 1
    if hour == 24 and (minute or second):
        return ns.INVALID
    value = days_since_1970(year, month, day) * _DAY
    value += ((hour * 60 + minute) * 60 + second) * _MICROSECONDS + fraction
    if value > _LAST_MOMENT:
        return ns.INVALID
    if at < end:
        c = load8(base, at)
        if c == UPPER_Z:
            at += 1
        elif (c == PLUS or c == MINUS) and end - at == 6 and load8(base, at + 3) == COLON:
            hours = read_digits(base, at + 1, at + 3)
            minutes = read_digits(base, at + 4, at + 6)
            if hours < 0 or minutes < 0 or minutes > 59 or hours * 60 + minutes > 14 * 60:
                return ns.INVALID
            shift = (hours * 60 + minutes) * 60 * _MICROSECONDS
            value += -shift if c == PLUS else shift
            at = end
    if at != end or value < _FIRST_MOMENT or value > _LAST_MOMENT:
        return ns.INVALID
    put(state, ns.N_VALUE, value)
    return L.K_MOMENT


@kernel
def read_date(state: int, base: int, start: int, end: int) -> int:
    """Parse a date without a time zone, or in UTC, as days since 1970; return its kind, or `INVALID`."""
    if end - start < 10 or load8(base, start + 4) != MINUS or load8(base, start + 7) != MINUS:
        return ns.INVALID
    year = read_digits(base, start, start + 4)
    month = read_digits(base, start + 5, start + 7)
    day = read_digits(base, start + 8, start + 10)
    if year < 1 or month < 1 or month > 12 or day < 1 or day > days_of_month(year, month):
        return ns.INVALID
    at = start + 10
    if at < end:
        c = load8(base, at)
        if c == UPPER_Z:
            at += 1
        elif (
            (c == PLUS or c == MINUS)
            and end - at == 6
            and load8(base, at + 3) == COLON
            and read_digits(base, at + 1, at + 3) == 0
            and read_digits(base, at + 4, at + 6) == 0
        ):
            at = end
    if at != end:
        return ns.INVALID
    put(state, ns.N_VALUE, days_since_1970(year, month, day))
    return L.K_DATE
