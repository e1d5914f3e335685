"""Interning the terms of a line that was scanned.

A term is written as `Dictionary` writes it, so that both find what the other entered. Values that the kernels
cannot work out exactly, such as a number of 20 digits, are left to the host.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.ingest.ntriples.characters import write_text
from zodiacedge.engine.embedded.ingest.ntriples.datatypes import T_STRING
from zodiacedge.engine.embedded.ingest.ntriples.state import (
    ANNOTATION,
    FINISHED,
    GUESSES,
    LATER,
    LATER_WORDS,
    N_BUFFER,
    N_DATATYPE,
    N_GUESSES,
    N_LATER,
    N_LATER_CAPACITY,
    N_LATER_COUNT,
    N_LATER_END,
    N_LATER_ROOM,
    N_LATER_TEXT,
    N_OUT,
    N_OUT_COUNT,
    N_PREFIX,
    N_PREFIX_LENGTH,
    N_SPANS,
    N_VALUE,
    N_WANTED,
    NEEDS_LATER,
    NEEDS_TEXT,
    OBJECT,
    S_END,
    S_ESCAPED,
    S_KIND,
    S_START,
    SPAN_WORDS,
    SUBJECT,
)
from zodiacedge.engine.embedded.ingest.ntriples.values import read_value
from zodiacedge.engine.embedded.kernels.jit import kernel, load8, load32, store8, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.kernels.layout import (
    D_LENGTHS,
    D_PAYLOADS,
    D_TEXT,
    D_TEXT_CAPACITY,
    D_TEXT_END,
    K_BLANK,
    K_IRI,
    K_OTHER,
    K_STRING,
    K_TAGGED,
)
from zodiacedge.engine.embedded.terms.intern_kernels import intern_number, intern_text


@kernel
def write_term(state: int, kind: int, slot: int, text: int, place: int) -> int:
    """Write a text and what stands before it: a prefix, a tag or a datatype. Return where it ends."""
    part = slot
    if kind == K_BLANK:
        prefix = get(state, N_PREFIX)
        for n in range(get(state, N_PREFIX_LENGTH)):
            store8(text, place, load8(prefix, n))
            place += 1
    elif kind > K_STRING:
        part = ANNOTATION
    while True:
        here = N_SPANS + part * SPAN_WORDS
        first = place
        place = write_text(
            get(state, N_BUFFER),
            get(state, here + S_START),
            get(state, here + S_END),
            get(state, here + S_ESCAPED),
            text,
            place,
        )
        if part == slot:
            return place
        if kind == K_TAGGED:
            for n in range(first, place):
                c = load8(text, n)
                if 0x41 <= c <= 0x5A:
                    store8(text, n, c | 0x20)
        store8(text, place, 0)
        place += 1
        part = slot


@kernel
def is_term(dictionary: int, number: int, buffer: int, start: int, end: int) -> bool:
    """Whether an IRI is the one that was met before under a number; a guess, cheaper than a search."""
    if load32(get(dictionary, D_LENGTHS), number) != end - start:
        return False
    text = get(dictionary, D_TEXT)
    payload = get(get(dictionary, D_PAYLOADS), number) - start
    at = end - 1
    while at >= start and load8(buffer, at) == load8(text, payload + at):
        at -= 1
    return at < start


@kernel
def guess_slot(buffer: int, start: int, end: int, slot: int) -> int:
    """Return where an IRI is noted once it was met: the last subject in a place of its own."""
    if slot == SUBJECT:
        return GUESSES
    # The bracket before the name counts where the name is short.
    mixed = (end - start) * 7 + (load8(buffer, end - 1) & 255)
    if end - start > 8:
        mixed = mixed * 7 + (load8(buffer, end - 4) & 255)
        mixed = mixed * 7 + (load8(buffer, end - 7) & 255)
    return mixed & (GUESSES - 1)


@kernel
def leave_to_host(state: int, checked: int) -> int:
    """Note the object for the host; return `FINISHED`, or `NEEDS_LATER` where there is no room."""
    here = N_SPANS + OBJECT * SPAN_WORDS
    start = get(state, here + S_START)
    end = get(state, here + S_END)
    place = get(state, N_LATER_END)
    count = get(state, N_LATER_COUNT)
    if count == get(state, N_LATER_CAPACITY) or place + end - start > get(state, N_LATER_ROOM):
        put(state, N_WANTED, end - start)
        return NEEDS_LATER
    records = get(state, N_LATER)
    stop = write_text(
        get(state, N_BUFFER), start, end, get(state, here + S_ESCAPED), get(state, N_LATER_TEXT), place
    )
    put(records, count * LATER_WORDS, get(state, N_OUT_COUNT))
    put(records, count * LATER_WORDS + 1, get(state, N_DATATYPE))
    put(records, count * LATER_WORDS + 2, place)
    put(records, count * LATER_WORDS + 3, stop)
    put(records, count * LATER_WORDS + 4, checked)
    put(state, N_LATER_COUNT, count + 1)
    put(state, N_LATER_END, stop)
    return FINISHED


@kernel
def intern_line(state: int, dictionary: int) -> int:
    """Write the triple of a line that was scanned; return `FINISHED`, or what there is no room for."""
    buffer = get(state, N_BUFFER)
    text = get(dictionary, D_TEXT)
    out = get(state, N_OUT)
    count = get(state, N_OUT_COUNT)
    guesses = get(state, N_GUESSES)
    for slot in range(OBJECT + 1):
        here = N_SPANS + slot * SPAN_WORDS
        kind = get(state, here + S_KIND)
        start = get(state, here + S_START)
        end = get(state, here + S_END)
        escaped = get(state, here + S_ESCAPED)
        payload = 0
        guess = -1
        if kind == K_IRI:
            if slot != OBJECT and not escaped:
                guess = guess_slot(buffer, start, end, slot)
                number = load32(guesses, guess)
                if number >= 0 and is_term(dictionary, number, buffer, start, end):
                    store32(out, 3 * count + slot, number)
                    continue
        elif kind == K_OTHER:
            datatype = get(state, N_DATATYPE)
            if datatype == T_STRING:
                kind = K_STRING
            elif datatype >= 0:
                found = LATER if escaped else read_value(state, datatype, buffer, start, end)
                if found >= 0:
                    kind = found
                    payload = get(state, N_VALUE)
                elif found == LATER:
                    status = leave_to_host(state, 0 if escaped else 1)
                    if status != FINISHED:
                        return status
                    continue
        if kind > K_OTHER:
            number = intern_number(dictionary, kind, payload)
        else:
            wanted = end - start
            if kind == K_BLANK:
                wanted += get(state, N_PREFIX_LENGTH)
            elif kind == K_TAGGED or kind == K_OTHER:
                annotation = N_SPANS + ANNOTATION * SPAN_WORDS
                wanted += get(state, annotation + S_END) - get(state, annotation + S_START) + 1
            place = get(dictionary, D_TEXT_END)
            if place + wanted > get(dictionary, D_TEXT_CAPACITY):
                put(state, N_WANTED, wanted)
                return NEEDS_TEXT
            base = buffer
            if escaped or wanted > end - start:
                base = text
                start = place
                end = write_term(state, kind, slot, text, place)
            number = intern_text(dictionary, kind, base, start, end - start)
        if guess >= 0:
            store32(guesses, guess, number)
        store32(out, 3 * count + slot, number)
    put(state, N_OUT_COUNT, count + 1)
    return FINISHED
