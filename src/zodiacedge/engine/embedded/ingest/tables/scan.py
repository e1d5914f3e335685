"""The loop that reads CSV and TSV: bytes in, rows of term ids out.

A line is scanned first, which records the spans of its cells, and interned only when all of it is valid.
A line that the loop does not understand as a whole record (a quoted cell with a line break, another number of
cells, bytes that are not UTF-8) stops it: the host reads that record. Interning is idempotent, so a line is
read again once there is room.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.ingest.ntriples.characters import NEWLINE, QUOTE, RETURN, utf8_length
from zodiacedge.engine.embedded.ingest.tables import state as cs
from zodiacedge.engine.embedded.ingest.tables.cells import intern_cell
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import kernel, load8, store8, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.terms.intern_kernels import has_room
from zodiacedge.engine.embedded.terms.shared_texts import copy_bytes


@kernel
def line_end(buffer: int, at: int) -> int:
    """Return the place of the next line feed, or -1 if there is a byte before that is not UTF-8."""
    while True:
        c = load8(buffer, at)
        if c == NEWLINE:
            return at
        if c >= 0:
            at += 1
            continue
        length = utf8_length(buffer, at)
        if not length:
            return -1
        at += length


@kernel
def scan_cells(state: int, buffer: int, start: int, end: int) -> bool:
    """Record the spans of a line's cells; return whether their number is right and all quotes are closed."""
    separator = get(state, cs.C_SEPARATOR)
    quoting = get(state, cs.C_QUOTING)
    width = get(state, cs.C_WIDTH)
    spans = get(state, cs.C_SPANS)
    at = start
    for n in range(width):
        doubled = 0
        first = at
        if quoting and at < end and load8(buffer, at) == QUOTE:
            first += 1
            at += 1
            while True:
                while at < end and load8(buffer, at) != QUOTE:
                    at += 1
                if at == end:
                    return False
                if at + 1 < end and load8(buffer, at + 1) == QUOTE:
                    doubled = 1
                    at += 2
                    continue
                break
            last = at
            at += 1
            if at < end and load8(buffer, at) != separator:
                return False
        else:
            while at < end and load8(buffer, at) != separator:
                at += 1
            last = at
        here = n * cs.SPAN_WORDS
        put(spans, here, first)
        put(spans, here + 1, last)
        put(spans, here + 2, doubled)
        if at == end:
            return n == width - 1
        at += 1
    return False


@kernel
def undouble(buffer: int, start: int, end: int, target: int) -> int:
    """Copy a cell with one quote for two; return its length."""
    place = 0
    at = start
    while at < end:
        c = load8(buffer, at)
        store8(target, place, c)
        place += 1
        at += 2 if c == QUOTE else 1
    return place


@kernel
def leave_to_host(state: int, place: int, base: int, start: int, end: int) -> bool:
    """Queue a cell for the host; return whether there was room."""
    count = get(state, cs.C_LATER_COUNT)
    text_end = get(state, cs.C_LATER_END)
    room = get(state, cs.C_LATER_ROOM)
    if count == get(state, cs.C_LATER_CAPACITY) or text_end + end - start > room:
        return False
    copy_bytes(base, start, end - start, get(state, cs.C_LATER_TEXT), text_end)
    records = get(state, cs.C_LATER)
    put(records, count * cs.LATER_WORDS, place)
    put(records, count * cs.LATER_WORDS + 1, text_end)
    put(records, count * cs.LATER_WORDS + 2, text_end + end - start)
    put(state, cs.C_LATER_COUNT, count + 1)
    put(state, cs.C_LATER_END, text_end + end - start)
    return True


@kernel
def intern_row(state: int, dictionary: int, numbers: int, buffer: int) -> bool:
    """Write the row of a scanned line; return whether there was room for the cells left to the host."""
    width = get(state, cs.C_WIDTH)
    spans = get(state, cs.C_SPANS)
    out = get(state, cs.C_OUT)
    count = get(state, cs.C_OUT_COUNT)
    later, later_end = get(state, cs.C_LATER_COUNT), get(state, cs.C_LATER_END)
    for n in range(width):
        base = buffer
        start = get(spans, n * cs.SPAN_WORDS)
        end = get(spans, n * cs.SPAN_WORDS + 1)
        if get(spans, n * cs.SPAN_WORDS + 2):
            base = get(state, cs.C_SCRATCH)
            end = undouble(buffer, start, end, base)
            start = 0
        place = count * width + n
        number = intern_cell(dictionary, numbers, base, start, end)
        if number < 0 and not leave_to_host(state, place, base, start, end):
            # The line is read again as a whole.
            put(state, cs.C_LATER_COUNT, later)
            put(state, cs.C_LATER_END, later_end)
            return False
        store32(out, place, number)
    put(state, cs.C_OUT_COUNT, count + 1)
    return True


@kernel
def read_rows(state: int, dictionary: int, numbers: int) -> int:
    """Read lines up to the end of the buffer, or until the host must do something."""
    buffer = get(state, cs.C_BUFFER)
    stop = get(state, cs.C_STOP)
    width = get(state, cs.C_WIDTH)
    at = get(state, cs.C_AT)
    line = get(state, cs.C_LINE)
    status = cs.FINISHED
    while at < stop:
        if not has_room(dictionary, width):
            status = cs.NEEDS_TERMS
            break
        if get(state, cs.C_OUT_COUNT) == get(state, cs.C_OUT_CAPACITY):
            status = cs.FULL
            break
        feed = line_end(buffer, at)
        end = feed
        if end > at and load8(buffer, end - 1) == RETURN:
            end -= 1
        if feed < 0:
            status = cs.HARD
            break
        if end > at:
            wanted = end - at + width * L.TEXT_UNIT
            if get(dictionary, L.D_TEXT_END) + wanted > get(dictionary, L.D_TEXT_CAPACITY):
                put(state, cs.C_WANTED, wanted)
                status = cs.NEEDS_TEXT
                break
            if end - at > get(state, cs.C_SCRATCH_SIZE) or not scan_cells(state, buffer, at, end):
                status = cs.HARD
                break
            if not intern_row(state, dictionary, numbers, buffer):
                # Nothing fits in an empty queue: the host reads the line.
                status = cs.FULL if get(state, cs.C_LATER_COUNT) else cs.HARD
                break
        at = feed + 1
        line += 1
    put(state, cs.C_AT, at)
    put(state, cs.C_LINE, line)
    return status
