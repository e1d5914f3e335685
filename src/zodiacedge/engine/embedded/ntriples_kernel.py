"""Kernels that read N-Triples and N-Quads: bytes in, triples of term ids out.

A line is scanned first, which leaves where its terms stand, and interned only when all of it is good, so
a bad line leaves nothing in the dictionary. Interning a line again does no harm: where room is missing
the kernel returns, and the line is read once more when there is some. What is accepted is what
pyoxigraph's lenient reading accepts and `io.rdf` lets through.

The buffer ends with a line feed, which no token may hold: no scan needs to ask whether it is at the end.
Values that the kernel cannot work out exactly, such as a number of 20 digits, are left to the host.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.compiled import (
    as_bits,
    as_double,
    kernel,
    load8,
    load32,
    store8,
    store32,
)
from zodiacedge.engine.embedded.compiled import load64 as get
from zodiacedge.engine.embedded.compiled import store64 as put
from zodiacedge.engine.embedded.interning import (
    add_term,
    find_term,
    hash_bytes,
    hash_number,
    intern_number,
)
from zodiacedge.engine.embedded.layout import (
    D_CAPACITY,
    D_COUNT,
    D_LENGTHS,
    D_PAYLOADS,
    D_SLOT_COUNT,
    D_TEXT,
    K_BLANK,
    K_BOOLEAN,
    K_DECIMAL,
    K_DOUBLE,
    K_FLOAT,
    K_INTEGER,
    K_IRI,
    K_MOMENT,
    K_OTHER,
    K_STRING,
    K_TAGGED,
)

# The reader's state.
N_BUFFER = 0  # address of the bytes
N_AT = 1  # where to go on
N_STOP = 2  # behind the last line feed
N_LINE = 3  # the line's number
N_LINE_START = 4
N_CLASSES = 5  # address: what each byte may stand in
N_QUADS = 6  # whether a graph's name may follow
N_PREFIX = 7  # address of what stands before labels of blank nodes
N_PREFIX_LENGTH = 8
N_TEXT_END = 9  # of the dictionary's arena
N_TEXT_CAPACITY = 10
N_WANTED = 11  # bytes of text that there was no room for
N_OUT = 12  # address of the triples
N_OUT_COUNT = 13
N_OUT_CAPACITY = 14
N_BAD = 15  # address of the bad lines
N_BAD_COUNT = 16
N_BAD_CAPACITY = 17
N_LATER = 18  # address of what is left to the host
N_LATER_COUNT = 19
N_LATER_CAPACITY = 20
N_LATER_TEXT = 21  # address of their bytes
N_LATER_END = 22
N_LATER_ROOM = 23
N_TYPES = 24  # address of the known datatypes: where each stands, its length, its least and greatest number
N_TYPE_NAMES = 25  # address of their names
N_TYPE_COUNT = 26
N_POWERS = 27  # address of the powers of ten that doubles hold exactly: as a double, and in three limbs
N_REASON = 28
N_PLACE = 29
N_VALUE = 30
N_DATATYPE = 31  # the number of the datatype among the known ones, or -1
N_FOUND = 32  # whether the line states a triple
N_GUESSES = 33  # address of the ids of predicates met before, by a cheap hash, and of the last subject
N_SPANS = 34  # where the terms of the line stand
SPAN_WORDS = 4
S_KIND = 0
S_START = 1
S_END = 2
S_ESCAPED = 3  # whether there are escapes
SUBJECT = 0
PREDICATE = 1
OBJECT = 2
ANNOTATION = 3  # the tag or the datatype of the object
GRAPH = 4
STATE_WORDS = N_SPANS + 5 * SPAN_WORDS
GUESSES = 256

# A bad line: its number, its start, where its part starts, the place, the reason.
BAD_WORDS = 5
# What is left to the host: the triple's row, the datatype, where the text starts and ends, and whether the
# kernel has seen that it is a number.
LATER_WORDS = 5
TYPE_WORDS = 4
POWER_WORDS = 4

# Why the kernel stopped.
FINISHED = 0
NEEDS_TERMS = 1
NEEDS_TEXT = 2
FULL = 3
NEEDS_LATER = 4

# What a byte does, in `N_CLASSES`.
ENDS_IRI = 1
ENDS_GRAPH = 2
ENDS_STRING = 4
IS_LETTER = 8
IS_DIGIT = 16
IS_NAME = 32  # in a label, anywhere but first

# Datatypes with a meaning here, by number; all behind the last are integers.
T_STRING = 0
T_LANGUAGE = 1
T_DIRECTION = 2
T_DECIMAL = 3
T_DOUBLE = 4
T_FLOAT = 5
T_BOOLEAN = 6
T_MOMENT = 7
T_INTEGERS = 8

# Why a line is bad; the first five are about the term that is missing.
B_SUBJECT = 0
B_PREDICATE = 1
B_OBJECT = 2
B_DATATYPE = 3
B_GRAPH = 4
B_IRI = 5
B_STRING = 6
B_ESCAPE = 7
B_UTF8 = 8
B_LABEL = 9
B_TAG = 10
B_DIRECTION = 11
B_UNTAGGED = 12
B_DOT = 13
B_MORE = 14
B_TRIPLE_TERM = 15

# What a literal may be instead of a value.
_INVALID = -1
_LATER = -2

_TAB = 0x09
_NEWLINE = 0x0A
_RETURN = 0x0D
_SPACE = 0x20
_QUOTE = 0x22
_HASH = 0x23
_PLUS = 0x2B
_MINUS = 0x2D
_DOT = 0x2E
_ZERO = 0x30
_COLON = 0x3A
_LESS = 0x3C
_GREATER = 0x3E
_AT = 0x40
_UPPER_T = 0x54
_UPPER_U = 0x55
_UPPER_Z = 0x5A
_BACKSLASH = 0x5C
_CARET = 0x5E
_UNDERSCORE = 0x5F
_LOWER_E = 0x65
_LOWER_U = 0x75

_GREATEST = 0x7FFFFFFFFFFFFFFF
_TENTH = _GREATEST // 10
_EXACT = 1 << 53
_EXACT_POWER = 22
_MANY_DIGITS = 18
_LIMB_BITS = 30
_LIMB = (1 << _LIMB_BITS) - 1
_WORD_BITS = 63
_MICROSECONDS = 1_000_000
_DAY = 86_400 * _MICROSECONDS
_FIRST_MOMENT = -62_135_596_800_000_000
_LAST_MOMENT = 253_402_300_799_999_999


# -- Bytes and characters


@kernel
def utf8_length(base: int, at: int) -> int:
    """Return how many bytes a character beyond ASCII has, or 0 where it is not UTF-8."""
    first = load8(base, at) & 255
    if first < 0xC2 or first > 0xF4:
        return 0
    second = load8(base, at + 1) & 255
    low = 0x80
    high = 0xBF
    if first == 0xE0:
        low = 0xA0
    elif first == 0xED:
        high = 0x9F
    elif first == 0xF0:
        low = 0x90
    elif first == 0xF4:
        high = 0x8F
    if second < low or second > high:
        return 0
    if first < 0xE0:
        return 2
    if (load8(base, at + 2) & 0xC0) != 0x80:
        return 0
    if first < 0xF0:
        return 3
    return 4 if (load8(base, at + 3) & 0xC0) == 0x80 else 0


@kernel
def code_point(base: int, at: int, length: int) -> int:
    """Return the code point of a character beyond ASCII that is UTF-8."""
    code = load8(base, at) & (0x7F >> length)
    for n in range(1, length):
        code = (code << 6) | (load8(base, at + n) & 0x3F)
    return code


@kernel
def is_name(code: int, first: bool) -> bool:
    """Whether a code point beyond ASCII may stand in a label, or start it."""
    if code < 0x2000:
        if code == 0xB7 or (0x300 <= code <= 0x36F):
            return not first
        return code >= 0xC0 and code != 0xD7 and code != 0xF7 and code != 0x37E
    if code < 0x3001:
        if code == 0x203F or code == 0x2040:
            return not first
        return code == 0x200C or code == 0x200D or (0x2070 <= code <= 0x218F) or (0x2C00 <= code <= 0x2FEF)
    if code < 0x10000:
        return code <= 0xD7FF or (0xF900 <= code <= 0xFDCF) or (0xFDF0 <= code <= 0xFFFD)
    return code <= 0xEFFFF


@kernel
def hex_value(base: int, at: int, digits: int) -> int:
    """Return the number that so many hexadecimal digits write, or -1."""
    value = 0
    for n in range(digits):
        c = load8(base, at + n)
        if 0x30 <= c <= 0x39:
            value = (value << 4) | (c - 0x30)
        elif 0x41 <= c <= 0x46:
            value = (value << 4) | (c - 0x37)
        elif 0x61 <= c <= 0x66:
            value = (value << 4) | (c - 0x57)
        else:
            return -1
    return value


@kernel
def escaped_code(base: int, at: int, in_string: int) -> int:
    """Return the code point of the escape that starts at a backslash, or -1 where it is none.

    A pair of UTF-16 surrogates is one character, as pyoxigraph's lenient reading has it.
    """
    letter = load8(base, at + 1)
    if letter == _LOWER_U:
        code = hex_value(base, at + 2, 4)
        if code < 0xD800 or code > 0xDFFF:
            return code
        if code > 0xDBFF or load8(base, at + 6) != _BACKSLASH or load8(base, at + 7) != _LOWER_U:
            return -1
        low = hex_value(base, at + 8, 4)
        if low < 0xDC00 or low > 0xDFFF:
            return -1
        return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
    if letter == _UPPER_U:
        code = hex_value(base, at + 2, 8)
        return -1 if (code > 0x10FFFF or (0xD800 <= code <= 0xDFFF)) else code
    if not in_string:
        return -1
    if letter == 0x74:  # t
        return 0x09
    if letter == 0x62:  # b
        return 0x08
    if letter == 0x6E:  # n
        return 0x0A
    if letter == 0x72:  # r
        return 0x0D
    if letter == 0x66:  # f
        return 0x0C
    return letter if (letter == _QUOTE or letter == 0x27 or letter == _BACKSLASH) else -1


@kernel
def escape_length(base: int, at: int, code: int) -> int:
    """Return how many bytes a valid escape has."""
    letter = load8(base, at + 1)
    if letter == _LOWER_U:
        return 12 if code > 0xFFFF else 6
    return 10 if letter == _UPPER_U else 2


@kernel
def unescape(base: int, start: int, end: int, target: int, place: int) -> int:
    """Copy a text without its escapes; return where the copy ends."""
    at = start
    while at < end:
        c = load8(base, at)
        if c != _BACKSLASH:
            store8(target, place, c)
            at += 1
            place += 1
            continue
        code = escaped_code(base, at, 1)
        at += escape_length(base, at, code)
        if code < 0x80:
            store8(target, place, code)
            place += 1
        elif code < 0x800:
            store8(target, place, 0xC0 | (code >> 6))
            store8(target, place + 1, 0x80 | (code & 0x3F))
            place += 2
        elif code < 0x10000:
            store8(target, place, 0xE0 | (code >> 12))
            store8(target, place + 1, 0x80 | ((code >> 6) & 0x3F))
            store8(target, place + 2, 0x80 | (code & 0x3F))
            place += 3
        else:
            store8(target, place, 0xF0 | (code >> 18))
            store8(target, place + 1, 0x80 | ((code >> 12) & 0x3F))
            store8(target, place + 2, 0x80 | ((code >> 6) & 0x3F))
            store8(target, place + 3, 0x80 | (code & 0x3F))
            place += 4
    return place


@kernel
def copy_bytes(base: int, start: int, end: int, target: int, place: int) -> int:
    """Copy a text as it is; return where the copy ends."""
    for n in range(end - start):
        store8(target, place + n, load8(base, start + n))
    return place + end - start


# -- Scanning: where the terms of a line stand
#
# A function is compiled into each place that calls it, so the larger ones are called in one place: one loop
# over the terms of a line, whatever they are.


@kernel
def fail(state: int, reason: int, place: int) -> int:
    """Note why and where a line is bad."""
    put(state, N_REASON, reason)
    put(state, N_PLACE, place)
    return -1


@kernel
def found_span(state: int, slot: int, kind: int, start: int, end: int, escaped: int) -> None:
    """Note where a term stands."""
    here = N_SPANS + slot * SPAN_WORDS
    put(state, here + S_KIND, kind)
    put(state, here + S_START, start)
    put(state, here + S_END, end)
    put(state, here + S_ESCAPED, escaped)


@kernel
def skip_blanks(buffer: int, at: int) -> int:
    """Return where something else than spaces and tabs stands."""
    c = load8(buffer, at)
    while c == _SPACE or c == _TAB:
        at += 1
        c = load8(buffer, at)
    return at


@kernel
def skip_line(buffer: int, at: int) -> int:
    """Return where the line, or the part of it up to a carriage return, ends."""
    c = load8(buffer, at)
    while c != _NEWLINE and c != _RETURN:
        at += 1
        c = load8(buffer, at)
    return at


@kernel
def scan_text(state: int, buffer: int, classes: int, at: int, slot: int) -> int:
    """Scan an IRI or a string from its bracket or quote on; return where it ends, or -1.

    A graph's name is passed over, so it may hold what an IRI may not.
    """
    in_string = 1 if load8(buffer, at) == _QUOTE else 0
    at += 1
    closing = _GREATER
    ends = ENDS_IRI
    if in_string:
        closing = _QUOTE
        ends = ENDS_STRING
    elif slot == GRAPH:
        ends = ENDS_GRAPH
    start = at
    escaped = 0
    if load8(buffer, at) == _LESS and not in_string:
        return fail(state, B_TRIPLE_TERM, at - 1)
    while True:
        c = load8(buffer, at) & 255
        while not load8(classes, c) & ends:
            at += 1
            c = load8(buffer, at) & 255
        if c == closing:
            found_span(state, slot, K_STRING if in_string else K_IRI, start, at, escaped)
            return at + 1
        if c >= 0x80:
            length = utf8_length(buffer, at)
            if not length:
                return fail(state, B_UTF8, at)
            at += length
        elif c == _BACKSLASH:
            code = escaped_code(buffer, at, in_string)
            if code < 0:
                return fail(state, B_ESCAPE, at)
            if code < 0x80 and ends == ENDS_IRI and (load8(classes, code) & ENDS_IRI):
                return fail(state, B_IRI, at)
            escaped = 1
            at += escape_length(buffer, at, code)
        else:
            return fail(state, B_STRING if in_string else B_IRI, at)


@kernel
def scan_label(state: int, buffer: int, classes: int, at: int, slot: int) -> int:
    """Scan a blank node from its `_:` on; return where it ends, or -1.

    Dots belong to the label only where more of it follows.
    """
    at += 2
    start = at
    end = at
    while True:
        c = load8(buffer, at) & 255
        if c < 0x80:
            if load8(classes, c) & IS_NAME and (at > start or c != _MINUS):
                at += 1
                end = at
            elif c == _DOT and at > start:
                at += 1
            else:
                break
        else:
            length = utf8_length(buffer, at)
            if not length:
                return fail(state, B_UTF8, at)
            if not is_name(code_point(buffer, at, length), at == start):
                break
            at += length
            end = at
    if end == start:
        return fail(state, B_LABEL, at)
    found_span(state, slot, K_BLANK, start, end, 0)
    return end


@kernel
def scan_tag(state: int, buffer: int, classes: int, at: int) -> int:
    """Scan a language tag from its `@` on; return where it ends, or -1."""
    start = at + 1
    allowed = IS_LETTER
    while True:
        # Here stands the `@` or a hyphen.
        at += 1
        if not load8(classes, load8(buffer, at) & 255) & allowed:
            return fail(state, B_DIRECTION if load8(buffer, at) == _MINUS else B_TAG, at)
        while load8(classes, load8(buffer, at) & 255) & allowed:
            at += 1
        if load8(buffer, at) != _MINUS:
            found_span(state, ANNOTATION, K_TAGGED, start, at, 0)
            return at
        allowed = IS_LETTER | IS_DIGIT


@kernel
def same_name(buffer: int, start: int, end: int, names: int, name: int, length: int) -> bool:
    """Whether a span of the buffer, which may hold escapes, is a known name, which is ASCII."""
    at = start
    place = 0
    while at < end and place < length:
        code = load8(buffer, at)
        step = 1
        if code == _BACKSLASH:
            code = escaped_code(buffer, at, 0)
            step = escape_length(buffer, at, code)
        if code != load8(names, name + place):
            return False
        at += step
        place += 1
    return at == end and place == length


@kernel
def known_datatype(state: int, buffer: int) -> int:
    """Return the number of the datatype that was scanned, or -1."""
    here = N_SPANS + ANNOTATION * SPAN_WORDS
    start = get(state, here + S_START)
    end = get(state, here + S_END)
    escaped = get(state, here + S_ESCAPED)
    types = get(state, N_TYPES)
    names = get(state, N_TYPE_NAMES)
    for number in range(get(state, N_TYPE_COUNT)):
        name = get(types, number * TYPE_WORDS)
        length = get(types, number * TYPE_WORDS + 1)
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


@kernel
def scan_line(state: int, buffer: int, classes: int, at: int) -> int:
    """Scan a line; return where it ends, or -1 where it is bad."""
    put(state, N_FOUND, 0)
    slot = SUBJECT
    while True:
        at = skip_blanks(buffer, at)
        c = load8(buffer, at)
        if c == _LESS or (c == _QUOTE and slot == OBJECT):
            at = scan_text(state, buffer, classes, at, slot)
        elif (
            c == _UNDERSCORE and load8(buffer, at + 1) == _COLON and slot != PREDICATE and slot != ANNOTATION
        ):
            at = scan_label(state, buffer, classes, at, slot)
        elif slot == SUBJECT and (c == _HASH or c == _NEWLINE or c == _RETURN):
            return skip_line(buffer, at)
        else:
            return fail(state, B_SUBJECT + slot, at)
        if at < 0:
            return at
        at = skip_blanks(buffer, at)
        if slot < OBJECT:
            slot += 1
            continue
        if slot == OBJECT and get(state, N_SPANS + OBJECT * SPAN_WORDS + S_KIND) == K_STRING:
            # Spaces may stand before what is said of a string, and inside.
            c = load8(buffer, at)
            if c == _CARET and load8(buffer, at + 1) == _CARET:
                at += 2
                slot = ANNOTATION
                continue
            if c == _AT:
                at = scan_tag(state, buffer, classes, at)
                if at < 0:
                    return at
                put(state, N_SPANS + OBJECT * SPAN_WORDS + S_KIND, K_TAGGED)
                at = skip_blanks(buffer, at)
        elif slot == ANNOTATION:
            number = known_datatype(state, buffer)
            if number == T_LANGUAGE or number == T_DIRECTION:
                return fail(state, B_UNTAGGED, get(state, N_SPANS + slot * SPAN_WORDS + S_START))
            put(state, N_DATATYPE, number)
            put(state, N_SPANS + OBJECT * SPAN_WORDS + S_KIND, K_OTHER)
        if slot == GRAPH or load8(buffer, at) == _DOT or not get(state, N_QUADS):
            break
        slot = GRAPH
    if load8(buffer, at) != _DOT:
        return fail(state, B_DOT, at)
    at = skip_blanks(buffer, at + 1)
    c = load8(buffer, at)
    if c != _NEWLINE and c != _RETURN and c != _HASH:
        return fail(state, B_MORE, at)
    put(state, N_FOUND, 1)
    return skip_line(buffer, at)


# -- Values


@kernel
def read_digits(base: int, at: int, count: int) -> int:
    """Return the number that so many digits write (at most 18), or -1."""
    value = 0
    for n in range(count):
        digit = load8(base, at + n) - _ZERO
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@kernel
def read_integer(state: int, base: int, start: int, end: int, least: int, greatest: int) -> int:
    """Leave the value of an integer; return its kind, or `_INVALID`."""
    at = start
    negative = 0
    if at < end:
        c = load8(base, at)
        if c == _MINUS:
            negative = 1
        if c == _MINUS or c == _PLUS:
            at += 1
    if at == end:
        return _INVALID
    # The negative numbers reach one further, so all are counted downwards.
    value = 0
    while at < end:
        digit = load8(base, at) - _ZERO
        if digit < 0 or digit > 9:
            return _INVALID
        if value < -_TENTH or (value == -_TENTH and digit > 8):
            return _INVALID
        value = value * 10 - digit
        at += 1
    if not negative:
        if value < -_GREATEST:
            return _INVALID
        value = -value
    if value < least or value > greatest:
        return _INVALID
    put(state, N_VALUE, value)
    return K_INTEGER


@kernel
def against_middle(whole: int, powers: int, power: int, bits: int) -> int:
    """Return the sign of a quotient by a power of ten less the middle between a double and the next.

    The double is (2**52 + f) * 2**e; both sides are multiplied by the power of ten and by 2**(1 - e), so
    that they are whole numbers, in limbs of 30 bits. There must be something to multiply: 1 - e >= 0.
    """
    shift = 1076 - (bits >> 52)
    middle = ((bits & (_EXACT // 2 - 1)) | (_EXACT // 2)) * 2 + 1
    low = middle & _LIMB
    high = middle >> _LIMB_BITS
    here = power * POWER_WORDS + 1
    carry = 0
    sign = 0
    for n in range(5):
        if n < 3:
            carry += low * get(powers, here + n)
        if 0 < n < 4:
            carry += high * get(powers, here + n - 1)
        right = carry & _LIMB
        carry >>= _LIMB_BITS
        step = shift - n * _LIMB_BITS
        left = 0
        if step >= 0:
            if step < _LIMB_BITS:
                left = (whole & (_LIMB >> step)) << step
        elif step > -_WORD_BITS:
            left = (whole >> -step) & _LIMB
        # The limbs come from the right, so the last ones that differ decide.
        if left > right:
            sign = 1
        elif left < right:
            sign = -1
    return sign


@kernel
def nearest(whole: int, powers: int, power: int, bits: int) -> int:
    """Return the bits of the double nearest to a quotient by a power of ten, from a guess; -1 if unknown."""
    if (bits >> 52) > 1075:
        return -1
    while True:
        sign = against_middle(whole, powers, power, bits)
        if sign > 0 or (sign == 0 and (bits & 1)):
            bits += 1
            continue
        sign = against_middle(whole, powers, power, bits - 1)
        if sign < 0 or (sign == 0 and (bits & 1)):
            bits -= 1
            continue
        return bits


@kernel
def read_real(state: int, base: int, start: int, end: int, kind: int) -> int:
    """Leave the bits of a decimal or a double; return its kind, `_INVALID`, or `_LATER`.

    A whole number up to 2**53 and a power of ten up to 10**22 are doubles, so their product and their
    quotient are rounded once, and right. The quotient of a larger number is a guess that is put right.
    """
    at = start
    negative = 0
    if at < end:
        c = load8(base, at)
        if c == _MINUS:
            negative = 1
        if c == _MINUS or c == _PLUS:
            at += 1
    whole = 0
    digits = 0
    significant = 0
    scale = 0
    behind_dot = 0
    while at < end:
        c = load8(base, at)
        if c == _DOT and not behind_dot:
            behind_dot = 1
        elif 0x30 <= c <= 0x39:
            digits += 1
            if significant < _MANY_DIGITS:
                whole = whole * 10 + (c - _ZERO)
                scale -= behind_dot
            if whole:
                significant += 1
        else:
            break
        at += 1
    if not digits:
        return _INVALID
    if at < end:
        if kind == K_DECIMAL or (load8(base, at) | 0x20) != _LOWER_E:
            return _INVALID
        at += 1
        downwards = 0
        if at < end:
            c = load8(base, at)
            if c == _MINUS:
                downwards = 1
            if c == _MINUS or c == _PLUS:
                at += 1
        if at == end:
            return _INVALID
        power = 0
        while at < end:
            digit = load8(base, at) - _ZERO
            if digit < 0 or digit > 9:
                return _INVALID
            if power < 1_000_000:
                power = power * 10 + digit
            at += 1
        scale += -power if downwards else power
    if not whole:
        put(state, N_VALUE, 0)
        return kind
    if significant > _MANY_DIGITS or scale > _EXACT_POWER or scale < -_EXACT_POWER:
        return _LATER
    powers = get(state, N_POWERS)
    value = float(whole)
    if scale < 0:
        value /= as_double(get(powers, -scale * POWER_WORDS))
        if whole > _EXACT:
            bits = nearest(whole, powers, -scale, as_bits(value))
            if bits < 0:
                return _LATER
            value = as_double(bits)
    elif scale > 0:
        if whole > _EXACT:
            return _LATER
        value *= as_double(get(powers, scale * POWER_WORDS))
    put(state, N_VALUE, as_bits(-value if negative else value))
    return kind


@kernel
def read_boolean(state: int, base: int, start: int, end: int) -> int:
    """Leave a truth value; return its kind, or `_INVALID`."""
    if end - start > 5:
        return _INVALID
    word = 0
    for at in range(start, end):
        word = (word << 8) | (load8(base, at) & 255)
    if word == 0x74727565 or word == 0x31:  # true
        put(state, N_VALUE, 1)
    elif word == 0x66616C7365 or word == 0x30:  # false
        put(state, N_VALUE, 0)
    else:
        return _INVALID
    return K_BOOLEAN


@kernel
def days_of_month(year: int, month: int) -> int:
    """Return how many days a month has."""
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
    """Leave the microseconds since 1970 of a dateTime; return its kind, `_INVALID`, or `_LATER`."""
    if end - start < 19:
        return _INVALID
    if (
        load8(base, start + 4) != _MINUS
        or load8(base, start + 7) != _MINUS
        or load8(base, start + 10) != _UPPER_T
        or load8(base, start + 13) != _COLON
        or load8(base, start + 16) != _COLON
    ):
        return _INVALID
    year = read_digits(base, start, 4)
    month = read_digits(base, start + 5, 2)
    day = read_digits(base, start + 8, 2)
    hour = read_digits(base, start + 11, 2)
    minute = read_digits(base, start + 14, 2)
    second = read_digits(base, start + 17, 2)
    if year < 1 or month < 1 or month > 12 or day < 1 or day > days_of_month(year, month):
        return _INVALID
    if hour < 0 or hour > 24 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return _INVALID
    at = start + 19
    fraction = 0
    if at < end and load8(base, at) == _DOT:
        at += 1
        first = at
        while at < end and 0x30 <= load8(base, at) <= 0x39:
            at += 1
        digits = at - first
        if not digits:
            return _INVALID
        if digits > _MANY_DIGITS:
            return _LATER
        fraction = read_digits(base, first, digits)
        if hour == 24 and fraction:
            return _INVALID
        unit = 1
        while digits > 6:
            unit *= 10
            digits -= 1
        while digits < 6:
            fraction *= 10
            digits += 1
        rest = fraction % unit
        fraction //= unit
        # Half a microsecond goes to the even side.
        if 2 * rest > unit or (2 * rest == unit and fraction % 2 == 1):
            fraction += 1
    if hour == 24 and (minute or second):
        return _INVALID
    value = days_since_1970(year, month, day) * _DAY
    value += ((hour * 60 + minute) * 60 + second) * _MICROSECONDS + fraction
    if value > _LAST_MOMENT:
        return _INVALID
    if at < end:
        c = load8(base, at)
        if c == _UPPER_Z:
            at += 1
        elif (c == _PLUS or c == _MINUS) and end - at == 6 and load8(base, at + 3) == _COLON:
            hours = read_digits(base, at + 1, 2)
            minutes = read_digits(base, at + 4, 2)
            if hours < 0 or minutes < 0 or minutes > 59 or hours * 60 + minutes > 14 * 60:
                return _INVALID
            shift = (hours * 60 + minutes) * 60 * _MICROSECONDS
            value += -shift if c == _PLUS else shift
            at = end
    if at != end or value < _FIRST_MOMENT or value > _LAST_MOMENT:
        return _INVALID
    put(state, N_VALUE, value)
    return K_MOMENT


@kernel
def is_space(c: int) -> bool:
    """Whether a byte may stand around a value."""
    return c == _SPACE or c == _TAB or c == _RETURN or c == _NEWLINE


@kernel
def read_value(state: int, number: int, base: int, start: int, end: int) -> int:
    """Leave the value of a literal of a known datatype; return its kind, `_INVALID`, or `_LATER`."""
    while start < end and is_space(load8(base, start)):
        start += 1
    while start < end and is_space(load8(base, end - 1)):
        end -= 1
    if number >= T_INTEGERS:
        here = get(state, N_TYPES)
        least = get(here, number * TYPE_WORDS + 2)
        return read_integer(state, base, start, end, least, get(here, number * TYPE_WORDS + 3))
    if number == T_MOMENT:
        return read_moment(state, base, start, end)
    if number == T_BOOLEAN:
        return read_boolean(state, base, start, end)
    kind = K_DECIMAL
    if number == T_DOUBLE:
        kind = K_DOUBLE
    elif number == T_FLOAT:
        kind = K_FLOAT
    return read_real(state, base, start, end, kind)


# -- Interning


@kernel
def write_text(base: int, start: int, end: int, escaped: int, target: int, place: int) -> int:
    """Copy a text without its escapes; return where the copy ends."""
    if escaped:
        return unescape(base, start, end, target, place)
    for n in range(end - start):
        store8(target, place + n, load8(base, start + n))
    return place + end - start


@kernel
def write_term(state: int, kind: int, slot: int, text: int, place: int) -> int:
    """Write a text and what stands before it: a prefix, a tag or a datatype. Return where it ends.

    The dictionary writes a term in the same way.
    """
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
        base = buffer
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
                found = _LATER if escaped else read_value(state, datatype, buffer, start, end)
                if found >= 0:
                    kind = found
                    payload = get(state, N_VALUE)
                elif found == _LATER:
                    status = leave_to_host(state, 0 if escaped else 1)
                    if status != FINISHED:
                        return status
                    continue
        if kind > K_OTHER:
            hashed = hash_number(kind, payload)
        else:
            place = get(state, N_TEXT_END)
            wanted = end - start
            if kind == K_BLANK:
                wanted += get(state, N_PREFIX_LENGTH)
            elif kind == K_TAGGED or kind == K_OTHER:
                annotation = N_SPANS + ANNOTATION * SPAN_WORDS
                wanted += get(state, annotation + S_END) - get(state, annotation + S_START) + 1
            if place + wanted > get(state, N_TEXT_CAPACITY):
                put(state, N_WANTED, wanted)
                return NEEDS_TEXT
            if escaped or wanted > end - start:
                base = text
                start = place
                end = write_term(state, kind, slot, text, place)
            hashed = hash_bytes(kind, base, start, end - start)
        number = find_term(dictionary, kind, payload, base, start, end - start, hashed)
        if number < 0:
            if kind > K_OTHER:
                end = start
            else:
                payload = place
                if base == buffer:
                    for n in range(end - start):
                        store8(text, place + n, load8(buffer, start + n))
                put(state, N_TEXT_END, place + end - start)
            number = add_term(dictionary, kind, payload, end - start, -1 - number)
        if guess >= 0:
            store32(guesses, guess, number)
        store32(out, 3 * count + slot, number)
    put(state, N_OUT_COUNT, count + 1)
    return FINISHED


# -- What the host calls


@kernel
def read_lines(state: int, dictionary: int) -> int:
    """Read lines up to the end of the buffer, or until the host has to make or take something."""
    buffer = get(state, N_BUFFER)
    classes = get(state, N_CLASSES)
    stop = get(state, N_STOP)
    at = get(state, N_AT)
    status = FINISHED
    while at < stop:
        c = load8(buffer, at)
        if c == _NEWLINE or c == _RETURN:
            at += 1
            if c == _NEWLINE:
                put(state, N_LINE, get(state, N_LINE) + 1)
                put(state, N_LINE_START, at)
            continue
        count = get(dictionary, D_COUNT) + 3
        if count > get(dictionary, D_CAPACITY) or count * 3 > get(dictionary, D_SLOT_COUNT) * 2:
            status = NEEDS_TERMS
            break
        bad = get(state, N_BAD_COUNT)
        if get(state, N_OUT_COUNT) == get(state, N_OUT_CAPACITY) or bad == get(state, N_BAD_CAPACITY):
            status = FULL
            break
        end = scan_line(state, buffer, classes, at)
        if end < 0:
            place = get(state, N_PLACE)
            end = skip_line(buffer, place)
            records = get(state, N_BAD)
            put(records, bad * BAD_WORDS, get(state, N_LINE))
            put(records, bad * BAD_WORDS + 1, get(state, N_LINE_START))
            put(records, bad * BAD_WORDS + 2, at)
            put(records, bad * BAD_WORDS + 3, place)
            put(records, bad * BAD_WORDS + 4, get(state, N_REASON))
            put(state, N_BAD_COUNT, bad + 1)
        elif get(state, N_FOUND):
            status = intern_line(state, dictionary)
            if status != FINISHED:
                break
        at = end
    put(state, N_AT, at)
    return status


@kernel
def place_numbers(dictionary: int, numbers: int, total: int, triples: int) -> None:
    """Put numbers into the triples that wait for them: row, kind and payload of each, one after the other."""
    for n in range(total):
        found = intern_number(dictionary, get(numbers, 3 * n + 1), get(numbers, 3 * n + 2))
        store32(triples, 3 * get(numbers, 3 * n) + 2, found)


@kernel
def group_of(triples: int, row: int, membership: int, terms: int) -> int:
    """Return the group of a triple: its predicate's id, or behind all ids the class it gives a member."""
    predicate = load32(triples, 3 * row + 1)
    return terms + load32(triples, 3 * row + 2) if predicate == membership else predicate


@kernel
def count_groups(
    triples: int, total: int, membership: int, terms: int, ranks: int, groups: int, sizes: int
) -> int:
    """List the groups in order of appearance, with how many triples each has; return how many there are.

    `ranks` has a zero for each group that may be, and keeps its place in the list, plus one.
    """
    count = 0
    for row in range(total):
        group = group_of(triples, row, membership, terms)
        rank = load32(ranks, group)
        if not rank:
            put(groups, count, group)
            put(sizes, count, 0)
            count += 1
            rank = count
            store32(ranks, group, rank)
        put(sizes, rank - 1, get(sizes, rank - 1) + 1)
    return count


@kernel
def deal_triples(
    triples: int, total: int, membership: int, terms: int, ranks: int, places: int, words: int
) -> None:
    """Write each triple's row into its group: subject and object, or the member. `places` moves along."""
    for row in range(total):
        group = group_of(triples, row, membership, terms)
        rank = load32(ranks, group) - 1
        place = get(places, rank)
        store32(words, place, load32(triples, 3 * row))
        place += 1
        if group < terms:
            store32(words, place, load32(triples, 3 * row + 2))
            place += 1
        put(places, rank, place)
