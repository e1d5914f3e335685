"""The loop that reads N-Triples and N-Quads: bytes in, triples of term ids out.

A line is scanned first, which records the spans of its terms, and interned only when all of it is valid, so
a bad line adds nothing to the dictionary. Interning is idempotent: where room is missing the kernel returns,
and the line is read again once there is room.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.ingest.ntriples import state as ns
from zodiacedge.engine.embedded.ingest.ntriples.characters import NEWLINE, RETURN
from zodiacedge.engine.embedded.ingest.ntriples.intern import intern_line
from zodiacedge.engine.embedded.ingest.ntriples.scan_line import scan_line, skip_line
from zodiacedge.engine.embedded.kernels.jit import kernel, load8
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.terms.intern_kernels import has_room


@kernel
def read_lines(state: int, dictionary: int) -> int:
    """Read lines up to the end of the buffer, or until the host must grow or empty an array."""
    buffer = get(state, ns.N_BUFFER)
    classes = get(state, ns.N_CLASSES)
    stop = get(state, ns.N_STOP)
    at = get(state, ns.N_AT)
    status = ns.FINISHED
    while at < stop:
        c = load8(buffer, at)
        if c == NEWLINE or c == RETURN:
            at += 1
            if c == NEWLINE:
                put(state, ns.N_LINE, get(state, ns.N_LINE) + 1)
                put(state, ns.N_LINE_START, at)
            continue
        if not has_room(dictionary, 3):
            status = ns.NEEDS_TERMS
            break
        bad = get(state, ns.N_BAD_COUNT)
        full = get(state, ns.N_OUT_COUNT) == get(state, ns.N_OUT_CAPACITY)
        if full or bad == get(state, ns.N_BAD_CAPACITY):
            status = ns.FULL
            break
        end = scan_line(state, buffer, classes, at)
        if end < 0:
            place = get(state, ns.N_PLACE)
            end = skip_line(buffer, place)
            records = get(state, ns.N_BAD)
            put(records, bad * ns.BAD_WORDS, get(state, ns.N_LINE))
            put(records, bad * ns.BAD_WORDS + 1, get(state, ns.N_LINE_START))
            put(records, bad * ns.BAD_WORDS + 2, at)
            put(records, bad * ns.BAD_WORDS + 3, place)
            put(records, bad * ns.BAD_WORDS + 4, get(state, ns.N_REASON))
            put(state, ns.N_BAD_COUNT, bad + 1)
        elif get(state, ns.N_FOUND):
            status = intern_line(state, dictionary)
            if status != ns.FINISHED:
                break
        at = end
    put(state, ns.N_AT, at)
    return status
