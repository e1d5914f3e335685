"""Kernels of characters in N-Triples: UTF-8, label characters, and escapes.

The buffer ends with a line feed, which no term contains: scans need no check for the end.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels.jit import kernel, load8, store8
from zodiacedge.engine.embedded.terms.shared_texts import copy_bytes

TAB = 0x09
NEWLINE = 0x0A
RETURN = 0x0D
SPACE = 0x20
QUOTE = 0x22
HASH = 0x23
PLUS = 0x2B
MINUS = 0x2D
DOT = 0x2E
ZERO = 0x30
COLON = 0x3A
LESS = 0x3C
GREATER = 0x3E
AT = 0x40
UPPER_T = 0x54
UPPER_U = 0x55
UPPER_Z = 0x5A
BACKSLASH = 0x5C
CARET = 0x5E
UNDERSCORE = 0x5F
LOWER_E = 0x65
LOWER_U = 0x75


@kernel
def utf8_length(base: int, at: int) -> int:
    """Return the number of bytes of a character beyond ASCII, or 0 where it is not UTF-8."""
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
    """Return the code point of a valid character beyond ASCII."""
    code = load8(base, at) & (0x7F >> length)
    for n in range(1, length):
        code = (code << 6) | (load8(base, at + n) & 0x3F)
    return code


@kernel
def is_name(code: int, first: bool) -> bool:
    """Whether a code point beyond ASCII may be in a label, or start it."""
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
    """Return the value of so many hexadecimal digits, or -1."""
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
    """Return the code point of the escape that starts at a backslash, or -1 where it is invalid.

    A pair of UTF-16 surrogates is one character, as pyoxigraph's lenient reading has it.
    """
    letter = load8(base, at + 1)
    if letter == LOWER_U:
        code = hex_value(base, at + 2, 4)
        if code < 0xD800 or code > 0xDFFF:
            return code
        if code > 0xDBFF or load8(base, at + 6) != BACKSLASH or load8(base, at + 7) != LOWER_U:
            return -1
        low = hex_value(base, at + 8, 4)
        if low < 0xDC00 or low > 0xDFFF:
            return -1
        return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
    if letter == UPPER_U:
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
    return letter if (letter == QUOTE or letter == 0x27 or letter == BACKSLASH) else -1


@kernel
def escape_length(base: int, at: int, code: int) -> int:
    """Return the number of bytes of a valid escape."""
    letter = load8(base, at + 1)
    if letter == LOWER_U:
        return 12 if code > 0xFFFF else 6
    return 10 if letter == UPPER_U else 2


@kernel
def unescape(base: int, start: int, end: int, target: int, place: int) -> int:
    """Copy a text and resolve its escapes; return the end of the copy."""
    at = start
    while at < end:
        c = load8(base, at)
        if c != BACKSLASH:
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
def write_text(base: int, start: int, end: int, escaped: int, target: int, place: int) -> int:
    """Copy a text and resolve its escapes; return the end of the copy."""
    if escaped:
        return unescape(base, start, end, target, place)
    copy_bytes(base, start, end - start, target, place)
    return place + end - start
