"""Datatypes whose literals the kernels parse, by number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.ingest.ntriples import state as ns
from zodiacedge.engine.embedded.ingest.ntriples.characters import BACKSLASH, escape_length, escaped_code
from zodiacedge.engine.embedded.kernels.jit import kernel, load8
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.terms import (
    INTEGER_RANGES,
    RDF,
    RDF_LANGSTRING,
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATETIME,
    XSD_DAY_TIME_DURATION,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_STRING,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Numbers of datatypes; all from the last on are integers.
T_STRING = 0
T_LANGUAGE = 1
T_DIRECTION = 2
T_DECIMAL = 3
T_DOUBLE = 4
T_FLOAT = 5
T_BOOLEAN = 6
T_MOMENT = 7
T_DATE = 8
T_DURATION = 9
T_INTEGERS = 10
DATATYPES: tuple[str, ...] = (
    XSD_STRING,
    RDF_LANGSTRING,
    RDF + "dirLangString",
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_BOOLEAN,
    XSD_DATETIME,
    XSD_DATE,
    XSD_DAY_TIME_DURATION,
    *INTEGER_RANGES,
)

# The record of a datatype: the offset and length of its name, and its least and greatest number.
TYPE_WORDS = 4
TYPE_START = 0
TYPE_LENGTH = 1
TYPE_LEAST = 2
TYPE_GREATEST = 3


def _type_table() -> NDArray[np.int64]:
    table: list[int] = []
    start = 0
    for name in DATATYPES:
        table += (start, len(name), *INTEGER_RANGES.get(name, (0, 0)))
        start += len(name)
    return np.array(table, np.int64)


TYPE_TABLE = _type_table()
TYPE_NAMES = np.frombuffer("".join(DATATYPES).encode(), np.uint8)


@kernel
def same_name(buffer: int, start: int, end: int, names: int, name: int, length: int) -> bool:
    """Whether a span of the buffer, escapes resolved, equals an ASCII name."""
    at = start
    place = 0
    while at < end and place < length:
        code = load8(buffer, at)
        step = 1
        if code == BACKSLASH:
            code = escaped_code(buffer, at, 0)
            step = escape_length(buffer, at, code)
        if code != load8(names, name + place):
            return False
        at += step
        place += 1
    return at == end and place == length


@kernel
def known_datatype(state: int, buffer: int) -> int:
    """Return the number of the scanned datatype, or -1."""
    here = ns.N_SPANS + ns.ANNOTATION * ns.SPAN_WORDS
    start = get(state, here + ns.S_START)
    end = get(state, here + ns.S_END)
    escaped = get(state, here + ns.S_ESCAPED)
    types = get(state, ns.N_TYPES)
    names = get(state, ns.N_TYPE_NAMES)
    for number in range(get(state, ns.N_TYPE_COUNT)):
        name = get(types, number * TYPE_WORDS + TYPE_START)
        length = get(types, number * TYPE_WORDS + TYPE_LENGTH)
        if escaped:
            if same_name(buffer, start, end, names, name, length):
                return number
        elif end - start == length:
            # Names of datatypes differ at their ends.
            n = length - 1
            while n >= 0 and load8(buffer, start + n) == load8(names, name + n):
                n -= 1
            if n < 0:
                return number
    return -1
