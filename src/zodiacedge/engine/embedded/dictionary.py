"""Terms as dense 32-bit ids.

A term is its kind and a payload: a number's bits, or a text in one arena of bytes. There is no Python
object per term. Ids are given in order of arrival and are never taken back; entries that a failed change
left behind are not state.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from zodiacedge.engine.embedded.compiled import MEMORY, words
from zodiacedge.engine.embedded.interning import find_text, intern_number, intern_text, rehash_terms
from zodiacedge.engine.embedded.layout import (
    D_CAPACITY,
    D_COUNT,
    D_KINDS,
    D_LENGTHS,
    D_PAYLOADS,
    D_SLOT_COUNT,
    D_SLOTS,
    D_TEXT,
    DICTIONARY_WORDS,
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
from zodiacedge.terms import (
    IRI,
    RDF_LANGSTRING,
    XSD_BOOLEAN,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    XSD_STRING,
    BlankNode,
    Literal,
    Term,
    boolean,
    date_time,
    decimal,
    double,
    integer,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_REAL_KINDS = {XSD_DECIMAL: K_DECIMAL, XSD_DOUBLE: K_DOUBLE, XSD_FLOAT: K_FLOAT}
_FIRST_TERMS = 256
_FIRST_TEXT = 4096


class Dictionary:
    """All terms an engine has met."""

    def __init__(self) -> None:
        """Start with no terms."""
        self.words = words(DICTIONARY_WORDS)
        self._kinds = np.zeros(_FIRST_TERMS, np.int8)
        self._payloads = np.zeros(_FIRST_TERMS, np.int64)
        self._lengths = np.zeros(_FIRST_TERMS, np.int32)
        self._slots = np.zeros(2 * _FIRST_TERMS, np.int32)
        self._text = np.zeros(_FIRST_TEXT, np.uint8)
        self._text_end = 0
        self._address = MEMORY.address(self.words)
        self._describe()

    def __len__(self) -> int:
        """Return the number of terms."""
        return int(self.words[D_COUNT])

    @property
    def address(self) -> int:
        """The address of the descriptor, for kernels."""
        return self._address

    @property
    def nbytes(self) -> int:
        """Allocated bytes."""
        arrays = (self._kinds, self._payloads, self._lengths, self._slots, self._text)
        return sum(array.nbytes for array in arrays)

    @property
    def kinds(self) -> NDArray[np.int8]:
        """The kind of each term."""
        return self._kinds[: len(self)]

    @property
    def payloads(self) -> NDArray[np.int64]:
        """The payload of each term."""
        return self._payloads[: len(self)]

    def encode(self, term: Term) -> int:
        """Return the id of a term, a new one if need be."""
        kind, payload = _parts(term)
        self.reserve(1)
        if isinstance(payload, int):
            return int(intern_number(self.address, kind, payload))
        self._reserve_text(len(payload))
        end = self._text_end
        self._text[end : end + len(payload)] = np.frombuffer(payload, np.uint8)
        before = len(self)
        found = int(intern_text(self.address, kind, end, len(payload)))
        if len(self) > before:
            self._text_end += len(payload)
        return found

    def encode_all(self, terms: Iterable[Term]) -> NDArray[np.int32]:
        """Return the ids of terms."""
        return np.fromiter((self.encode(term) for term in terms), np.int32)

    def encode_integers(self, values: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the ids of integers."""
        self.reserve(len(values))
        return np.fromiter(
            (intern_number(self.address, K_INTEGER, value) for value in values.tolist()), np.int32
        )

    def find(self, term: Term) -> int:
        """Return the id of a term, or -1 if it was never met."""
        kind, payload = _parts(term)
        if isinstance(payload, int):
            return int(find_text(self.address, kind, payload, 0, 0))
        data = np.frombuffer(payload or b"\0", np.uint8)
        return int(find_text(self.address, kind, 0, MEMORY.address(data), len(payload)))

    def decode(self, number: int) -> Term:
        """Return the term of an id."""
        kind = int(self._kinds[number])
        payload = int(self._payloads[number])
        if kind <= K_OTHER:
            return _text_term(kind, self._bytes(payload, int(self._lengths[number])))
        if kind == K_INTEGER:
            return integer(payload)
        if kind == K_BOOLEAN:
            return boolean(bool(payload))
        if kind == K_MOMENT:
            return date_time(_EPOCH + payload * _MICROSECOND)
        value = float(self._payloads[number : number + 1].view(np.float64)[0])
        if kind == K_DOUBLE:
            return double(value)
        return decimal(value) if kind == K_DECIMAL else Literal(double(value).lexical, XSD_FLOAT)

    def may_be_equal(self, rows: Iterable[NDArray[np.int32]]) -> bool:
        """Whether two different terms of some rows may be equal as values: numbers of several types."""
        kinds: set[int] = set()
        for terms in rows:
            kinds.update(np.unique(self._kinds[terms]).tolist())
        return len(kinds & {K_INTEGER, K_DECIMAL, K_DOUBLE, K_FLOAT}) > 1

    def reserve(self, more: int) -> None:
        """Make room for so many more terms."""
        count = len(self)
        rehash = (count + more) * 2 > len(self._slots)
        grow = count + more > len(self._kinds)
        if not rehash and not grow:
            return
        if grow:
            capacity = max(count + more, len(self._kinds) * 2)
            self._kinds = _grown(self._kinds, capacity)
            self._payloads = _grown(self._payloads, capacity)
            self._lengths = _grown(self._lengths, capacity)
        if rehash:
            self._slots = np.zeros(max(3 * (count + more), 2 * len(self._slots)), np.int32)
        self._describe()
        if rehash:
            rehash_terms(self.address)

    def _reserve_text(self, more: int) -> None:
        if self._text_end + more > len(self._text):
            self._text = _grown(self._text, max(self._text_end + more, len(self._text) * 2))
            self._describe()

    def _bytes(self, start: int, length: int) -> bytes:
        return self._text[start : start + length].tobytes()

    def _describe(self) -> None:
        count = self.words[D_COUNT]
        self.words[D_KINDS] = MEMORY.address(self._kinds)
        self.words[D_PAYLOADS] = MEMORY.address(self._payloads)
        self.words[D_LENGTHS] = MEMORY.address(self._lengths)
        self.words[D_COUNT] = count
        self.words[D_CAPACITY] = len(self._kinds)
        self.words[D_SLOTS] = MEMORY.address(self._slots)
        self.words[D_SLOT_COUNT] = len(self._slots)
        self.words[D_TEXT] = MEMORY.address(self._text)


def _grown(array: NDArray[Any], capacity: int) -> NDArray[Any]:
    larger = np.zeros(capacity, array.dtype)
    larger[: len(array)] = array
    return larger


def _parts(term: Term) -> tuple[int, int | bytes]:
    match term:
        case IRI(value=value):
            return K_IRI, value.encode()
        case BlankNode(label=label):
            return K_BLANK, label.encode()
        case Literal(lexical=lexical, datatype=datatype, language=language):
            if datatype == XSD_STRING:
                return K_STRING, lexical.encode()
            if datatype == RDF_LANGSTRING:
                return K_TAGGED, f"{language}\0{lexical}".encode()
            return _value_parts(term, value_of(term))


def _value_parts(term: Literal, value: object) -> tuple[int, int | bytes]:
    if term.datatype in _REAL_KINDS and isinstance(value, float):
        return _REAL_KINDS[term.datatype], int(np.float64(value).view(np.int64))
    if term.datatype == XSD_BOOLEAN and isinstance(value, bool):
        return K_BOOLEAN, int(value)
    if term.datatype == XSD_INTEGER and isinstance(value, int):
        return K_INTEGER, value
    if term.datatype == XSD_DATETIME and isinstance(value, datetime):
        return K_MOMENT, (value - _EPOCH) // _MICROSECOND
    return K_OTHER, f"{term.datatype}\0{term.lexical}".encode()


def _text_term(kind: int, data: bytes) -> Term:
    text = data.decode()
    if kind == K_IRI:
        return IRI(text)
    if kind == K_BLANK:
        return BlankNode(text)
    if kind == K_STRING:
        return Literal(text)
    first, second = text.split("\0", 1)
    return Literal(second, RDF_LANGSTRING, first) if kind == K_TAGGED else Literal(second, first)
