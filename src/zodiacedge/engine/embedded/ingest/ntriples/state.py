"""The descriptor of a reader of N-Triples: offsets of its fields, which a scan reads and writes.

The host creates it, and reads it whenever the kernel returns.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels.jit import kernel
from zodiacedge.engine.embedded.kernels.jit import store64 as put

N_BUFFER = 0  # address of the bytes
N_AT = 1  # offset of the next byte to read
N_STOP = 2  # behind the last line feed
N_LINE = 3  # the line's number
N_LINE_START = 4
N_CLASSES = 5  # address of the class of each byte
N_QUADS = 6  # whether a graph's name may follow
N_PREFIX = 7  # address of the prefix of blank node labels
N_PREFIX_LENGTH = 8
N_WANTED = 9  # bytes of text that did not fit
N_OUT = 10  # address of the triples
N_OUT_COUNT = 11
N_OUT_CAPACITY = 12
N_BAD = 13  # address of the bad lines
N_BAD_COUNT = 14
N_BAD_CAPACITY = 15
N_LATER = 16  # address of the literals left to the host
N_LATER_COUNT = 17
N_LATER_CAPACITY = 18
N_LATER_TEXT = 19  # address of their bytes
N_LATER_END = 20
N_LATER_ROOM = 21
N_TYPES = 22  # address of the known datatypes
N_TYPE_NAMES = 23  # address of their names
N_TYPE_COUNT = 24
N_POWERS = 25  # address of powers of ten
N_REASON = 26
N_PLACE = 27
N_VALUE = 28
N_DATATYPE = 29  # the number of the datatype among the known ones, or -1
N_FOUND = 30  # whether the line holds a triple
N_GUESSES = 31  # address of a cache of ids: predicates, by a cheap hash, and the last subject
N_SPANS = 32  # the spans of the terms of the line
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

# A bad line: its number, its start, the start of its part, the position, the reason.
BAD_WORDS = 5
# A literal left to the host: the triple's row, the datatype, the start and end of the text, and whether the
# kernel has checked that it is a number.
LATER_WORDS = 5

# Why the kernel stopped.
FINISHED = 0
NEEDS_TERMS = 1
NEEDS_TEXT = 2
FULL = 3
NEEDS_LATER = 4

# Why a line is bad; the first five name the term that is missing.
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

# The result for a literal without a value.
INVALID = -1
LATER = -2


@kernel
def fail(state: int, reason: int, place: int) -> int:
    """Record why and where a line is bad."""
    put(state, N_REASON, reason)
    put(state, N_PLACE, place)
    return -1


@kernel
def put_span(state: int, slot: int, kind: int, start: int, end: int, escaped: int) -> None:
    """Record the span of a term."""
    here = N_SPANS + slot * SPAN_WORDS
    put(state, here + S_KIND, kind)
    put(state, here + S_START, start)
    put(state, here + S_END, end)
    put(state, here + S_ESCAPED, escaped)
