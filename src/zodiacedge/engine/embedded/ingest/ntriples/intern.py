"""Kernels that intern the terms of a scanned line.

Terms have the representation of `Dictionary`, so that both find the same ids. Values that the kernels cannot
compute exactly, such as a number of 20 digits, are left to the host.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.ingest.ntriples import state as ns
from zodiacedge.engine.embedded.ingest.ntriples.characters import write_text
from zodiacedge.engine.embedded.ingest.ntriples.datatypes import T_STRING
from zodiacedge.engine.embedded.ingest.ntriples.values import read_value
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import kernel, load8, load32, store8, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.terms.intern_kernels import intern_number, intern_text
from zodiacedge.engine.embedded.terms.shared_texts import same_text


@kernel
def write_term(state: int, kind: int, slot: int, text: int, place: int) -> int:
    """Write a text after its prefix, tag or datatype; return the end."""
    part = slot
    if kind == L.K_BLANK:
        prefix = get(state, ns.N_PREFIX)
        for n in range(get(state, ns.N_PREFIX_LENGTH)):
            store8(text, place, load8(prefix, n))
            place += 1
    elif kind > L.K_STRING:
        part = ns.ANNOTATION
    while True:
        here = ns.N_SPANS + part * ns.SPAN_WORDS
        first = place
        place = write_text(
            get(state, ns.N_BUFFER),
            get(state, here + ns.S_START),
            get(state, here + ns.S_END),
            get(state, here + ns.S_ESCAPED),
            text,
            place,
        )
        if part == slot:
            return place
        if kind == L.K_TAGGED:
            for n in range(first, place):
                c = load8(text, n)
                if 0x41 <= c <= 0x5A:
                    store8(text, n, c | 0x20)
        store8(text, place, 0)
        place += 1
        part = slot


@kernel
def is_term(dictionary: int, number: int, buffer: int, start: int, end: int) -> bool:
    """Whether an IRI is the term of a cached id; cheaper than a lookup."""
    if load32(get(dictionary, L.D_LENGTHS), number) != end - start:
        return False
    return same_text(dictionary, number, buffer, start, end - start)


@kernel
def guess_slot(buffer: int, start: int, end: int, slot: int) -> int:
    """Return the slot of an IRI in the cache of ids; the last subject has a slot of its own."""
    if slot == ns.SUBJECT:
        return ns.GUESSES
    # The bracket before the name counts where the name is short.
    mixed = (end - start) * 7 + (load8(buffer, end - 1) & 255)
    if end - start > 8:
        mixed = mixed * 7 + (load8(buffer, end - 4) & 255)
        mixed = mixed * 7 + (load8(buffer, end - 7) & 255)
    return mixed & (ns.GUESSES - 1)


@kernel
def leave_to_host(state: int, checked: int) -> int:
    """Queue the object for the host; return `FINISHED`, or `NEEDS_LATER` where there is no room."""
    here = ns.N_SPANS + ns.OBJECT * ns.SPAN_WORDS
    start = get(state, here + ns.S_START)
    end = get(state, here + ns.S_END)
    place = get(state, ns.N_LATER_END)
    count = get(state, ns.N_LATER_COUNT)
    if count == get(state, ns.N_LATER_CAPACITY) or place + end - start > get(state, ns.N_LATER_ROOM):
        put(state, ns.N_WANTED, end - start)
        return ns.NEEDS_LATER
    records = get(state, ns.N_LATER)
    stop = write_text(
        get(state, ns.N_BUFFER),
        start,
        end,
        get(state, here + ns.S_ESCAPED),
        get(state, ns.N_LATER_TEXT),
        place,
    )
    put(records, count * ns.LATER_WORDS, get(state, ns.N_OUT_COUNT))
    put(records, count * ns.LATER_WORDS + 1, get(state, ns.N_DATATYPE))
    put(records, count * ns.LATER_WORDS + 2, place)
    put(records, count * ns.LATER_WORDS + 3, stop)
    put(records, count * ns.LATER_WORDS + 4, checked)
    put(state, ns.N_LATER_COUNT, count + 1)
    put(state, ns.N_LATER_END, stop)
    return ns.FINISHED


@kernel
def intern_line(state: int, dictionary: int) -> int:
    """Write the triple of a scanned line; return `FINISHED`, or what must grow first."""
    buffer = get(state, ns.N_BUFFER)
    text = get(dictionary, L.D_TEXT)
    out = get(state, ns.N_OUT)
    count = get(state, ns.N_OUT_COUNT)
    guesses = get(state, ns.N_GUESSES)
    for slot in range(ns.OBJECT + 1):
        here = ns.N_SPANS + slot * ns.SPAN_WORDS
        kind = get(state, here + ns.S_KIND)
        start = get(state, here + ns.S_START)
        end = get(state, here + ns.S_END)
        escaped = get(state, here + ns.S_ESCAPED)
        payload = 0
        guess = -1
        if kind == L.K_IRI:
            if slot != ns.OBJECT and not escaped:
                guess = guess_slot(buffer, start, end, slot)
                number = load32(guesses, guess)
                if number >= 0 and is_term(dictionary, number, buffer, start, end):
                    store32(out, 3 * count + slot, number)
                    continue
        elif kind == L.K_OTHER:
            datatype = get(state, ns.N_DATATYPE)
            if datatype == T_STRING:
                kind = L.K_STRING
            elif datatype >= 0:
                found = ns.LATER if escaped else read_value(state, datatype, buffer, start, end)
                if found >= 0:
                    kind = found
                    payload = get(state, ns.N_VALUE)
                elif found == ns.LATER:
                    status = leave_to_host(state, 0 if escaped else 1)
                    if status != ns.FINISHED:
                        return status
                    continue
        if kind > L.K_OTHER:
            number = intern_number(dictionary, kind, payload)
        else:
            wanted = end - start
            if kind == L.K_BLANK:
                wanted += get(state, ns.N_PREFIX_LENGTH)
            elif kind == L.K_TAGGED or kind == L.K_OTHER:
                annotation = ns.N_SPANS + ns.ANNOTATION * ns.SPAN_WORDS
                wanted += get(state, annotation + ns.S_END) - get(state, annotation + ns.S_START) + 1
            place = get(dictionary, L.D_TEXT_END)
            if place + wanted > get(dictionary, L.D_TEXT_CAPACITY):
                put(state, ns.N_WANTED, wanted)
                return ns.NEEDS_TEXT
            base = buffer
            if escaped or wanted > end - start:
                base = text
                start = place
                end = write_term(state, kind, slot, text, place)
            number = intern_text(dictionary, kind, base, start, end - start)
        if guess >= 0:
            store32(guesses, guess, number)
        store32(out, 3 * count + slot, number)
    put(state, ns.N_OUT_COUNT, count + 1)
    return ns.FINISHED
