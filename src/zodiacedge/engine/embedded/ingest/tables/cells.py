"""Kernels that intern a cell: the term that `io.formats.cells.read_cell` reads from the same text.

Plain strings, IRIs, numbers, booleans and labels in ASCII are interned. What is in quotes, and numbers that
cannot be computed exactly, are left to the host.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.ingest.ntriples import state as ns
from zodiacedge.engine.embedded.ingest.ntriples.characters import (
    BACKSLASH,
    CARET,
    COLON,
    DOT,
    GREATER,
    LESS,
    LOWER_E,
    MINUS,
    PLUS,
    QUOTE,
    SPACE,
    UNDERSCORE,
)
from zodiacedge.engine.embedded.ingest.ntriples.numbers import read_integer, read_real, skip_sign
from zodiacedge.engine.embedded.ingest.ntriples.values import read_boolean
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import kernel, load8, load32, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.terms.intern_kernels import intern_number, intern_text
from zodiacedge.terms import INTEGER_MAX, INTEGER_MIN

LEFT_TO_HOST = -1
_LOWER_F = 0x66
_LOWER_T = 0x74


@kernel
def is_digit(c: int) -> bool:
    """Whether a byte is a digit."""
    return 0x30 <= c <= 0x39


@kernel
def skip_digits(base: int, at: int, end: int) -> int:
    """Return the end of a run of digits."""
    while at < end and is_digit(load8(base, at)):
        at += 1
    return at


@kernel
def number_kind(base: int, start: int, end: int) -> int:
    """Return the kind of the number that a text is, or -1."""
    first = skip_sign(base, start, end)
    at = skip_digits(base, first, end)
    if at == first:
        return -1
    if at == end:
        return L.K_INTEGER
    kind = L.K_DECIMAL
    if load8(base, at) == DOT:
        fraction = at + 1
        at = skip_digits(base, fraction, end)
        if at == fraction:
            return -1
        if at == end:
            return kind
    if (load8(base, at) | 0x20) != LOWER_E:
        return -1
    power = skip_sign(base, at + 1, end)
    at = skip_digits(base, power, end)
    return L.K_DOUBLE if at == end and at > power else -1


@kernel
def is_iri(base: int, start: int, end: int) -> bool:
    """Whether valid UTF-8 has only characters of an IRI."""
    for at in range(start, end):
        c = load8(base, at)
        if 0 <= c <= SPACE or c == LESS or c == GREATER or c == QUOTE or c == BACKSLASH or c == CARET:
            return False
        if c == 0x60 or (0x7B <= c <= 0x7D):  # a backtick, braces and a bar
            return False
    return True


@kernel
def is_plain_label(base: int, start: int, end: int) -> bool:
    """Whether a text is a label of a blank node, all of it ASCII."""
    if start == end or load8(base, end - 1) == DOT:
        return False
    for at in range(start, end):
        c = load8(base, at)
        letter = 0x61 <= (c | 0x20) <= 0x7A and c > 0
        inside = at > start and (c == MINUS or c == DOT)
        if not (letter or is_digit(c) or c == UNDERSCORE or inside):
            return False
    return True


@kernel
def intern_cell(dictionary: int, numbers: int, base: int, start: int, end: int) -> int:
    """Return the id of the term of a cell, or `LEFT_TO_HOST`.

    There must be room for one more term and for the text. `numbers` is a descriptor of a reader of N-Triples,
    for its kernels of numbers.
    """
    if start < end:
        c = load8(base, start)
        last = load8(base, end - 1)
        if c == LESS:
            if last == GREATER and end - start > 1 and is_iri(base, start + 1, end - 1):
                return intern_text(dictionary, L.K_IRI, base, start + 1, end - start - 2)
        elif c == QUOTE:
            return LEFT_TO_HOST
        elif c == UNDERSCORE:
            if end - start > 1 and load8(base, start + 1) == COLON:
                if not is_plain_label(base, start + 2, end):
                    return LEFT_TO_HOST
                return intern_text(dictionary, L.K_BLANK, base, start + 2, end - start - 2)
        elif is_digit(c) or c == PLUS or c == MINUS:
            number = number_kind(base, start, end)
            if number >= 0:
                if number == L.K_INTEGER:
                    found = read_integer(numbers, base, start, end, INTEGER_MIN, INTEGER_MAX)
                else:
                    found = read_real(numbers, base, start, end, number)
                if found < 0:
                    return LEFT_TO_HOST
                return intern_number(dictionary, found, get(numbers, ns.N_VALUE))
        # Of the forms of a boolean, only `true` and `false` start like this.
        elif (c == _LOWER_T or c == _LOWER_F) and read_boolean(numbers, base, start, end) >= 0:
            return intern_number(dictionary, L.K_BOOLEAN, get(numbers, ns.N_VALUE))
    return intern_text(dictionary, L.K_STRING, base, start, end - start)


@kernel
def intern_cells(dictionary: int, numbers: int, base: int, ends: int, total: int, ids: int) -> int:
    """Write the ids of cells that follow each other in memory; return how many are left to the host.

    There must be room for all of them. Cell n ends at the 32-bit word n + 1 of `ends`.
    """
    left = 0
    start = load32(ends, 0)
    for n in range(total):
        end = load32(ends, n + 1)
        number = intern_cell(dictionary, numbers, base, start, end)
        left += number < 0
        store32(ids, n, number)
        start = end
    return left
