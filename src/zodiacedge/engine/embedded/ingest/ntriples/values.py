"""Kernels that parse the value of a literal of a known datatype, without surrounding spaces."""

from __future__ import annotations

from zodiacedge.engine.embedded.ingest.ntriples import state as ns
from zodiacedge.engine.embedded.ingest.ntriples.characters import NEWLINE, RETURN, SPACE, TAB
from zodiacedge.engine.embedded.ingest.ntriples.datatypes import (
    T_BOOLEAN,
    T_DATE,
    T_DOUBLE,
    T_DURATION,
    T_FLOAT,
    T_INTEGERS,
    T_MOMENT,
    TYPE_GREATEST,
    TYPE_LEAST,
    TYPE_WORDS,
)
from zodiacedge.engine.embedded.ingest.ntriples.datetimes import read_date, read_moment
from zodiacedge.engine.embedded.ingest.ntriples.numbers import read_integer, read_real
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import kernel, load8
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put


@kernel
def read_boolean(state: int, base: int, start: int, end: int) -> int:
    """Parse a boolean; return its kind, or `INVALID`."""
    if end - start > 5:
        return ns.INVALID
    word = 0
    for at in range(start, end):
        word = (word << 8) | (load8(base, at) & 255)
    if word == 0x74727565 or word == 0x31:  # true
        put(state, ns.N_VALUE, 1)
    elif word == 0x66616C7365 or word == 0x30:  # false
        put(state, ns.N_VALUE, 0)
    else:
        return ns.INVALID
    return L.K_BOOLEAN


@kernel
def is_space(c: int) -> bool:
    """Whether a byte is a space that may surround a value."""
    return c == SPACE or c == TAB or c == RETURN or c == NEWLINE


@kernel
def read_value(state: int, number: int, base: int, start: int, end: int) -> int:
    """Parse a literal of a known datatype; return its kind, `INVALID`, or `LATER`."""
    while start < end and is_space(load8(base, start)):
        start += 1
    while start < end and is_space(load8(base, end - 1)):
        end -= 1
    if number >= T_INTEGERS:
        types = get(state, ns.N_TYPES)
        least = get(types, number * TYPE_WORDS + TYPE_LEAST)
        greatest = get(types, number * TYPE_WORDS + TYPE_GREATEST)
        return read_integer(state, base, start, end, least, greatest)
    if number == T_MOMENT:
        return read_moment(state, base, start, end)
    if number == T_DATE:
        return read_date(state, base, start, end)
    if number == T_DURATION:
        return ns.LATER
    if number == T_BOOLEAN:
        return read_boolean(state, base, start, end)
    kind = L.K_DECIMAL
    if number == T_DOUBLE:
        kind = L.K_DOUBLE
    elif number == T_FLOAT:
        kind = L.K_FLOAT
    return read_real(state, base, start, end, kind)
