"""Kernels that scan a line of N-Triples or N-Quads: the spans of its terms, or why it is bad.

The accepted syntax is that of pyoxigraph's lenient parser as `io.rdf` uses it. Kernels are inlined at each
call, so the larger ones have a single caller: one loop over the terms of a line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.ingest.ntriples import state as ns
from zodiacedge.engine.embedded.ingest.ntriples.characters import (
    AT,
    BACKSLASH,
    CARET,
    COLON,
    DOT,
    GREATER,
    HASH,
    LESS,
    MINUS,
    NEWLINE,
    QUOTE,
    RETURN,
    SPACE,
    TAB,
    UNDERSCORE,
    code_point,
    escape_length,
    escaped_code,
    is_name,
    utf8_length,
)
from zodiacedge.engine.embedded.ingest.ntriples.datatypes import T_DIRECTION, T_LANGUAGE, known_datatype
from zodiacedge.engine.embedded.ingest.ntriples.state import fail, put_span
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import kernel, load8
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Classes of bytes.
ENDS_IRI = 1
ENDS_GRAPH = 2
ENDS_STRING = 4
IS_LETTER = 8
IS_DIGIT = 16
IS_NAME = 32  # in a label, anywhere but first


def _classes() -> NDArray[np.uint8]:
    classes = np.zeros(256, np.uint8)
    classes[0x80:] |= ENDS_IRI | ENDS_GRAPH | ENDS_STRING
    classes[:0x21] |= ENDS_IRI
    for marks, ends in (
        (b'<>"{}|^`\\', ENDS_IRI),
        (b">\\\r\n", ENDS_GRAPH),
        (b'"\\\r\n', ENDS_STRING),
        (b"_-", IS_NAME),
    ):
        classes[list(marks)] |= ends
    for first, last, kind in ((b"a", b"z", IS_LETTER), (b"A", b"Z", IS_LETTER), (b"0", b"9", IS_DIGIT)):
        classes[first[0] : last[0] + 1] |= kind | IS_NAME
    return classes


CLASSES = _classes()


@kernel
def skip_blanks(buffer: int, at: int) -> int:
    """Return the position of the next byte that is neither space nor tab."""
    c = load8(buffer, at)
    while c == SPACE or c == TAB:
        at += 1
        c = load8(buffer, at)
    return at


@kernel
def skip_line(buffer: int, at: int) -> int:
    """Return the end of the line, or of its part up to a carriage return."""
    c = load8(buffer, at)
    while c != NEWLINE and c != RETURN:
        at += 1
        c = load8(buffer, at)
    return at


@kernel
def scan_text(state: int, buffer: int, classes: int, at: int, slot: int) -> int:
    """Scan an IRI or a string from its bracket or quote on; return its end, or -1.

    A graph's name is passed over, so it may hold what an IRI may not.
    """
    in_string = 1 if load8(buffer, at) == QUOTE else 0
    at += 1
    closing = GREATER
    ends = ENDS_IRI
    if in_string:
        closing = QUOTE
        ends = ENDS_STRING
    elif slot == ns.GRAPH:
        ends = ENDS_GRAPH
    start = at
    escaped = 0
    if load8(buffer, at) == LESS and not in_string:
        return fail(state, ns.B_TRIPLE_TERM, at - 1)
    while True:
        c = load8(buffer, at) & 255
        while not load8(classes, c) & ends:
            at += 1
            c = load8(buffer, at) & 255
        if c == closing:
            put_span(state, slot, L.K_STRING if in_string else L.K_IRI, start, at, escaped)
            return at + 1
        if c >= 0x80:
            length = utf8_length(buffer, at)
            if not length:
                return fail(state, ns.B_UTF8, at)
            at += length
        elif c == BACKSLASH:
            code = escaped_code(buffer, at, in_string)
            if code < 0:
                return fail(state, ns.B_ESCAPE, at)
            if code < 0x80 and ends == ENDS_IRI and (load8(classes, code) & ENDS_IRI):
                return fail(state, ns.B_IRI, at)
            escaped = 1
            at += escape_length(buffer, at, code)
        else:
            return fail(state, ns.B_STRING if in_string else ns.B_IRI, at)


@kernel
def scan_label(state: int, buffer: int, classes: int, at: int, slot: int) -> int:
    """Scan a blank node from its `_:` on; return its end, or -1.

    Dots belong to the label only where more of it follows.
    """
    at += 2
    start = at
    end = at
    while True:
        c = load8(buffer, at) & 255
        if c < 0x80:
            if load8(classes, c) & IS_NAME and (at > start or c != MINUS):
                at += 1
                end = at
            elif c == DOT and at > start:
                at += 1
            else:
                break
        else:
            length = utf8_length(buffer, at)
            if not length:
                return fail(state, ns.B_UTF8, at)
            if not is_name(code_point(buffer, at, length), at == start):
                break
            at += length
            end = at
    if end == start:
        return fail(state, ns.B_LABEL, at)
    put_span(state, slot, L.K_BLANK, start, end, 0)
    return end


@kernel
def scan_tag(state: int, buffer: int, classes: int, at: int) -> int:
    """Scan a language tag from its `@` on; return its end, or -1."""
    start = at + 1
    allowed = IS_LETTER
    while True:
        # The byte here is the `@` or a hyphen.
        at += 1
        if not load8(classes, load8(buffer, at) & 255) & allowed:
            return fail(state, ns.B_DIRECTION if load8(buffer, at) == MINUS else ns.B_TAG, at)
        while load8(classes, load8(buffer, at) & 255) & allowed:
            at += 1
        if load8(buffer, at) != MINUS:
            put_span(state, ns.ANNOTATION, L.K_TAGGED, start, at, 0)
            return at
        allowed = IS_LETTER | IS_DIGIT


@kernel
def scan_line(state: int, buffer: int, classes: int, at: int) -> int:
    """Scan a line; return its end, or -1 where it is bad."""
    put(state, ns.N_FOUND, 0)
    slot = ns.SUBJECT
    while True:
        at = skip_blanks(buffer, at)
        c = load8(buffer, at)
        if c == LESS or (c == QUOTE and slot == ns.OBJECT):
            at = scan_text(state, buffer, classes, at, slot)
        elif (
            c == UNDERSCORE
            and load8(buffer, at + 1) == COLON
            and slot != ns.PREDICATE
            and slot != ns.ANNOTATION
        ):
            at = scan_label(state, buffer, classes, at, slot)
        elif slot == ns.SUBJECT and (c == HASH or c == NEWLINE or c == RETURN):
            return skip_line(buffer, at)
        else:
            return fail(state, ns.B_SUBJECT + slot, at)
        if at < 0:
            return at
        at = skip_blanks(buffer, at)
        if slot < ns.OBJECT:
            slot += 1
            continue
        if slot == ns.OBJECT and get(state, ns.N_SPANS + ns.OBJECT * ns.SPAN_WORDS + ns.S_KIND) == L.K_STRING:
            # Spaces may precede the annotation of a string, and be inside it.
            c = load8(buffer, at)
            if c == CARET and load8(buffer, at + 1) == CARET:
                at += 2
                slot = ns.ANNOTATION
                continue
            if c == AT:
                at = scan_tag(state, buffer, classes, at)
                if at < 0:
                    return at
                put(state, ns.N_SPANS + ns.OBJECT * ns.SPAN_WORDS + ns.S_KIND, L.K_TAGGED)
                at = skip_blanks(buffer, at)
        elif slot == ns.ANNOTATION:
            number = known_datatype(state, buffer)
            if number == T_LANGUAGE or number == T_DIRECTION:
                return fail(state, ns.B_UNTAGGED, get(state, ns.N_SPANS + slot * ns.SPAN_WORDS + ns.S_START))
            put(state, ns.N_DATATYPE, number)
            put(state, ns.N_SPANS + ns.OBJECT * ns.SPAN_WORDS + ns.S_KIND, L.K_OTHER)
        if slot == ns.GRAPH or load8(buffer, at) == DOT or not get(state, ns.N_QUADS):
            break
        slot = ns.GRAPH
    if load8(buffer, at) != DOT:
        return fail(state, ns.B_DOT, at)
    at = skip_blanks(buffer, at + 1)
    c = load8(buffer, at)
    if c != NEWLINE and c != RETURN and c != HASH:
        return fail(state, ns.B_MORE, at)
    put(state, ns.N_FOUND, 1)
    return skip_line(buffer, at)
