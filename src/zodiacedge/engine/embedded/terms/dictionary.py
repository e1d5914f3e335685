"""The dictionary: terms as dense 32-bit ids.

A term is a kind and a payload: a number's bits, or a text in one arena of bytes (`shared_texts`). There is
no Python object per term. Ids are assigned in insertion order, those of reclaimed terms (`storage.reclaim`)
again; terms of a failed change stay in the dictionary until then and are not state.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import MEMORY, words
from zodiacedge.engine.embedded.terms.intern_kernels import (
    gather_texts,
    intern_term,
    intern_terms,
    lookup_term,
    rehash_terms,
)
from zodiacedge.engine.embedded.terms.reclaim_kernels import (
    compact_texts,
    last_used,
    list_free_ids,
    mark_ids,
    mark_roots,
    sweep_terms,
    used_units,
)
from zodiacedge.terms import (
    IRI,
    RDF_LANGSTRING,
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATETIME,
    XSD_DAY_TIME_DURATION,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    XSD_STRING,
    BlankNode,
    Literal,
    Term,
    boolean,
    calendar_date,
    date_time,
    decimal,
    double,
    duration,
    integer,
    microseconds,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Ids


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST_DAY = date(1970, 1, 1)
_REAL_KINDS = {XSD_DECIMAL: L.K_DECIMAL, XSD_DOUBLE: L.K_DOUBLE, XSD_FLOAT: L.K_FLOAT}
# Payloads of texts that share no bytes are less.
_WHOLE = 1 << L.OFFSET_BITS
_MOST_SHARED = (1 << L.SHARED_BITS) - 1
_FIRST_TERMS = 256
# Arrays of terms and texts grow by this factor; slots double, and two thirds of them may be used.
_GROWTH = 1.3
_FIRST_TEXT = 4096
# Arrays shrink once they are so many times as large as the terms need.
_SPACIOUS = 4
# Free ids at the end are dropped once they are one in so many.
_TRIMMED = 8
# Terms interned per kernel call: room is reserved as if all of them were new.
_BATCH = 4096
# Up to so many terms are quicker to intern one by one.
_FEW = 16
_DOUBLE = Struct("<d")
_WORD = Struct("<q")


class Dictionary:
    """All terms of an engine, in a hash table with linear probing."""

    def __init__(self) -> None:
        """Start with no terms."""
        self.words = words(L.DICTIONARY_WORDS)
        # Python reads a word, or writes a text, faster through views of the memory.
        self._fields = self.words.data
        self._kinds = np.zeros(_FIRST_TERMS, np.int8)
        self._payloads = np.zeros(_FIRST_TERMS, np.int64)
        self._lengths = np.zeros(_FIRST_TERMS, np.int32)
        self._slots = np.zeros(2 * _FIRST_TERMS, np.int32)
        self._text = np.zeros(_FIRST_TEXT, np.uint8)
        self._holes = words(2 * L.HOLE_CLASSES)
        self._marks: NDArray[np.uint8] | None = None
        self._views = self._kinds.data, self._payloads.data, self._lengths.data, self._text.data
        self._address = MEMORY.address(self.words)
        self.words[L.D_HOLES] = MEMORY.address(self._holes)
        self._replace_arrays(self._kinds, self._payloads, self._lengths, self._slots, self._text)

    def __len__(self) -> int:
        """Return the number of ids, free ones among them."""
        return self._fields[L.D_COUNT]

    @property
    def used(self) -> int:
        """The number of terms."""
        return self._fields[L.D_COUNT] - self._fields[L.D_FREE]

    @property
    def address(self) -> int:
        """The address of the descriptor, for kernels."""
        return self._address

    @property
    def nbytes(self) -> int:
        """Allocated bytes."""
        arrays = (self._kinds, self._payloads, self._lengths, self._slots, self._text)
        return sum(array.nbytes for array in arrays) + (0 if self._marks is None else self._marks.nbytes)

    @property
    def kinds(self) -> NDArray[np.int8]:
        """The kind of each term."""
        return self._kinds[: len(self)]

    @property
    def payloads(self) -> NDArray[np.int64]:
        """The payload of each term."""
        return self._payloads[: len(self)]

    def encode(self, term: Term) -> int:
        """Return the id of a term; append the term if it is new."""
        kind, payload = _kind_and_payload(term)
        if not isinstance(payload, int):
            length = len(payload)
            self.reserve_text(length)
            end = self._fields[L.D_TEXT_END]
            self._views[-1][end : end + length] = payload
            payload = length
        number = intern_term(self._address, kind, payload)
        if number < 0:
            self.reserve(1)
            number = intern_term(self._address, kind, payload)
        return number

    def encode_all(self, terms: Iterable[Term]) -> Ids:
        """Return the ids of terms."""
        remaining = iter(terms)
        batches = [self._encode_batch(list(islice(remaining, _BATCH)))]
        while len(batches[-1]) == _BATCH:
            batches.append(self._encode_batch(list(islice(remaining, _BATCH))))
        return np.concatenate(batches) if len(batches) > 1 else batches[0]

    def encode_numbers(self, kinds: NDArray[np.int8] | int, payloads: NDArray[np.int64]) -> Ids:
        """Return the ids of numbers, from the kind of each, or of all, and their bits."""
        payloads = np.ascontiguousarray(payloads, np.int64)
        return self._intern(np.full(len(payloads), kinds, np.int8), payloads, b"")

    def encode_integers(self, values: NDArray[np.int64]) -> Ids:
        """Return the ids of integers."""
        return self.encode_numbers(L.K_INTEGER, values)

    def encode_texts(self, kind: int, lengths: NDArray[np.int64], text: bytes) -> Ids:
        """Return the ids of concatenated texts of one kind, from the length of each."""
        return self._intern(np.full(len(lengths), kind, np.int8), lengths, text)

    def texts(self, ids: Ids) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return the offsets of texts, and the texts concatenated."""
        ends = np.zeros(len(ids) + 1, np.int32)
        np.cumsum(self._lengths[ids], out=ends[1:])
        ids = np.ascontiguousarray(ids, np.int32)
        out = np.empty(max(int(ends[-1]), 1), np.uint8)
        gather_texts(self._address, MEMORY.address(ids), len(ids), MEMORY.address(out))
        return ends, out

    def find(self, term: Term) -> int:
        """Return the id of a term, or -1 if it is not in the dictionary."""
        kind, payload = _kind_and_payload(term)
        if isinstance(payload, int):
            return int(lookup_term(self.address, kind, payload, 0, 0))
        data = np.frombuffer(payload or b"\0", np.uint8)
        return int(lookup_term(self.address, kind, 0, MEMORY.address(data), len(payload)))

    def decode(self, number: int) -> Term:
        """Return the term of an id."""
        # Read at once: another thread may replace the arrays.
        kinds, payloads, lengths, text = self._views
        kind: int = kinds[number]
        payload: int = payloads[number]
        if kind <= L.K_OTHER:
            whole = text[payload : payload + lengths[number]] if payload < _WHOLE else self._shared(number)
            return _text_term(kind, str(whole, "utf-8"))
        if kind == L.K_INTEGER:
            return integer(payload)
        if kind == L.K_BOOLEAN:
            return boolean(bool(payload))
        if kind == L.K_MOMENT:
            return date_time(_EPOCH + payload * _MICROSECOND)
        if kind == L.K_DATE:
            return calendar_date(_FIRST_DAY + timedelta(days=payload))
        if kind == L.K_DURATION:
            return duration(timedelta(microseconds=payload))
        value: float = _DOUBLE.unpack(_WORD.pack(payload))[0]
        if kind == L.K_DOUBLE:
            return double(value)
        return decimal(value) if kind == L.K_DECIMAL else Literal(double(value).lexical, XSD_FLOAT)

    def _shared(self, number: int) -> bytes:
        """Return a text that shares bytes with its root."""
        _, payloads, lengths, text = self._views
        payload: int = payloads[number]
        last = payload >> L.OFFSET_BITS + L.SHARED_BITS
        first = payload >> L.OFFSET_BITS & _MOST_SHARED
        start = payload & _WHOLE - 1
        end = start + lengths[number] - first - last
        root = int.from_bytes(text[end : end + L.ROOT_BYTES], "little")
        whole: int = payloads[root]
        stop = whole + lengths[root]
        return b"".join((text[whole : whole + first], text[start:end], text[stop - last : stop]))

    def may_be_equal(self, rows: Iterable[NDArray[np.int32]]) -> bool:
        """Whether two different terms of these rows may be equal as values: numbers of several types."""
        kinds: set[int] = set()
        for terms in rows:
            kinds.update(np.unique(self._kinds[terms]).tolist())
        return len(kinds & {L.K_INTEGER, L.K_DECIMAL, L.K_DOUBLE, L.K_FLOAT}) > 1

    def reserve(self, more: int) -> None:
        """Make room for so many more terms."""
        fields = self._fields
        count = fields[L.D_COUNT] + more
        rehash = count * 3 > fields[L.D_SLOT_COUNT] * 2
        grow = count > fields[L.D_CAPACITY]
        if not rehash and not grow:
            return
        kinds, payloads, lengths, slots = self._kinds, self._payloads, self._lengths, self._slots
        if grow:
            capacity = max(count, int(len(kinds) * _GROWTH))
            kinds, payloads, lengths = (_grown(array, capacity) for array in (kinds, payloads, lengths))
            if self._marks is not None:
                self._set_marks(_grown(self._marks, capacity))
        if rehash:
            slots = np.zeros(2 * max(count, len(slots)), np.int32)
        self._replace_arrays(kinds, payloads, lengths, slots, self._text)

    def reserve_text(self, more: int) -> None:
        """Make room for so many more bytes of text."""
        fields = self._fields
        end = fields[L.D_TEXT_END] + more
        if end > fields[L.D_TEXT_CAPACITY]:
            text = _grown(self._text, max(end, int(len(self._text) * _GROWTH)))
            self._replace_arrays(self._kinds, self._payloads, self._lengths, self._slots, text)

    # Reclaiming terms

    @property
    def is_marking(self) -> bool:
        """Whether terms that are found or added are marked as used."""
        return self._marks is not None

    def begin_marking(self) -> None:
        """Mark no term as used yet; terms that are found or added from now on are."""
        self._set_marks(np.zeros(len(self._kinds), np.uint8))

    def end_marking(self) -> None:
        """Drop the marks."""
        self._set_marks(None)

    def _set_marks(self, marks: NDArray[np.uint8] | None) -> None:
        self._marks = marks
        self.words[L.D_MARKS] = 0 if marks is None else MEMORY.address(marks)

    def mark(self, ids: Ids) -> int:
        """Mark terms as used, and return how many were not yet; negative numbers are no ids."""
        if self._marks is None or not ids.size:
            return 0
        flat = np.ascontiguousarray(ids, np.int32).ravel()
        return mark_ids(self._address, MEMORY.address(flat), len(flat))

    def is_used(self, number: int) -> bool:
        """Whether a term is marked as used."""
        return self._marks is not None and bool(self._marks[number])

    def unmarked(self, first: int, end: int) -> NDArray[np.bool_]:
        """Return for each of some ids whether it is not marked as used."""
        return np.zeros(end - first, np.bool_) if self._marks is None else self._marks[first:end] == 0

    @property
    def first_free(self) -> int:
        """The free id that the next number takes, -1 if it takes a new one."""
        return int(self._holes[0]) - 1

    def begin_sweep(self) -> int:
        """Forget the list of free ids, which the sweep makes again; return the number of ids to sweep."""
        mark_roots(self._address)
        self._holes[:] = 0
        self.words[L.D_FREE] = 0
        return len(self)

    def sweep(self, first: int, end: int) -> int:
        """Free the terms among some ids that are not marked, and return how many these are."""
        return sweep_terms(self._address, first, min(end, len(self)))

    @property
    def wasted(self) -> int:
        """Bytes that are allocated and that no term uses, about."""
        per_id = self._kinds.itemsize + self._payloads.itemsize + self._lengths.itemsize
        unused = (len(self._kinds) - self.used) * per_id
        return unused + len(self._text) - self._fields[L.D_TEXT_END] + self._fields[L.D_WASTE]

    def trim(self) -> None:
        """Give memory back that is much more than the terms need."""
        fields = self._fields
        last = last_used(self._address)
        if last * _TRIMMED < len(self) * (_TRIMMED - 1):
            fields[L.D_COUNT] = last
            list_free_ids(self._address)
        if fields[L.D_TEXT_CAPACITY] > _FIRST_TEXT and (
            fields[L.D_WASTE] * 2 > fields[L.D_TEXT_END]
            or fields[L.D_TEXT_END] * _SPACIOUS < fields[L.D_TEXT_CAPACITY]
        ):
            self._compact_texts()
        kinds, payloads, lengths, slots = self._kinds, self._payloads, self._lengths, self._slots
        count = len(self)
        if count * _SPACIOUS < len(kinds) and len(kinds) > _FIRST_TERMS:
            size = max(2 * count, _FIRST_TERMS)
            kinds, payloads, lengths = kinds[:size].copy(), payloads[:size].copy(), lengths[:size].copy()
        if count * 3 * _SPACIOUS < len(slots) and len(slots) > 2 * _FIRST_TERMS:
            slots = np.zeros(max(3 * count, 2 * _FIRST_TERMS), np.int32)
        if kinds is not self._kinds or slots is not self._slots:
            self._replace_arrays(kinds, payloads, lengths, slots, self._text)

    def _compact_texts(self) -> None:
        needed = int(used_units(self._address)) * L.TEXT_UNIT
        text = np.zeros(max(2 * needed, _FIRST_TEXT), np.uint8)
        # Other threads may decode terms meanwhile: the old arrays stay as they are.
        payloads = np.zeros_like(self._payloads)
        end = compact_texts(self._address, MEMORY.address(payloads), MEMORY.address(text))
        self._replace_arrays(self._kinds, payloads, self._lengths, self._slots, text)
        self.words[L.D_TEXT_END] = end
        self.words[L.D_WASTE] = 0
        list_free_ids(self._address)

    def _encode_batch(self, terms: list[Term]) -> Ids:
        if len(terms) <= _FEW:
            return np.array([self.encode(term) for term in terms], np.int32)
        kinds: list[int] = []
        payloads: list[int] = []
        texts: list[bytes] = []
        for term in terms:
            kind, payload = _kind_and_payload(term)
            kinds.append(kind)
            if isinstance(payload, int):
                payloads.append(payload)
            else:
                payloads.append(len(payload))
                texts.append(payload)
        return self._intern(np.array(kinds, np.int8), np.array(payloads, np.int64), b"".join(texts))

    def _intern(self, kinds: NDArray[np.int8], payloads: NDArray[np.int64], text: bytes) -> Ids:
        total = len(kinds)
        self.reserve(total)
        self.reserve_text(len(text) + L.TEXT_UNIT * total)
        data = np.frombuffer(text, np.uint8)
        ids = np.empty(total, np.int32)
        addresses = [MEMORY.address(array) for array in (kinds, payloads, data, ids)]
        intern_terms(self._address, addresses[0], addresses[1], total, addresses[2], addresses[3])
        return ids

    def _replace_arrays(
        self,
        kinds: NDArray[np.int8],
        payloads: NDArray[np.int64],
        lengths: NDArray[np.int32],
        slots: NDArray[np.int32],
        text: NDArray[np.uint8],
    ) -> None:
        """Replace the arrays, and fill the slots if they are new.

        The new descriptor is prepared first and copied in one step, so that an interrupt cannot leave kernels
        with the address of a freed array, or with slots that lack terms.
        """
        described = self.words.copy()
        described[L.D_KINDS] = MEMORY.address(kinds)
        described[L.D_PAYLOADS] = MEMORY.address(payloads)
        described[L.D_LENGTHS] = MEMORY.address(lengths)
        described[L.D_CAPACITY] = len(kinds)
        described[L.D_SLOTS] = MEMORY.address(slots)
        described[L.D_SLOT_COUNT] = len(slots)
        described[L.D_TEXT] = MEMORY.address(text)
        described[L.D_TEXT_CAPACITY] = len(text)
        if slots is not self._slots:
            rehash_terms(MEMORY.address(described))
        views = kinds.data, payloads.data, lengths.data, text.data
        new = described, kinds, payloads, lengths, slots, text, views
        words = self.words
        # On one line, because an interrupt between lines would free arrays that are in use.
        words[:], self._kinds, self._payloads, self._lengths, self._slots, self._text, self._views = new


def _grown(array: NDArray[Any], capacity: int) -> NDArray[Any]:
    larger = np.zeros(capacity, array.dtype)
    larger[: len(array)] = array
    return larger


def _kind_and_payload(term: Term) -> tuple[int, int | bytes]:
    if isinstance(term, IRI):
        return L.K_IRI, term.value.encode()
    if isinstance(term, BlankNode):
        return L.K_BLANK, term.label.encode()
    if term.datatype == XSD_STRING:
        return L.K_STRING, term.lexical.encode()
    if term.datatype == RDF_LANGSTRING:
        return L.K_TAGGED, f"{term.language}\0{term.lexical}".encode()
    return _kind_and_value(term, value_of(term))


def _kind_and_value(term: Literal, value: object) -> tuple[int, int | bytes]:
    if term.datatype in _REAL_KINDS and isinstance(value, float):
        return _REAL_KINDS[term.datatype], _WORD.unpack(_DOUBLE.pack(value))[0]
    if term.datatype == XSD_BOOLEAN and isinstance(value, bool):
        return L.K_BOOLEAN, int(value)
    if term.datatype == XSD_INTEGER and isinstance(value, int):
        return L.K_INTEGER, value
    if term.datatype == XSD_DATETIME and isinstance(value, datetime):
        return L.K_MOMENT, microseconds(value - _EPOCH)
    if term.datatype == XSD_DATE and isinstance(value, date):
        return L.K_DATE, (value - _FIRST_DAY).days
    if term.datatype == XSD_DAY_TIME_DURATION and isinstance(value, timedelta):
        return L.K_DURATION, microseconds(value)
    return L.K_OTHER, f"{term.datatype}\0{term.lexical}".encode()


def _text_term(kind: int, text: str) -> Term:
    if kind == L.K_IRI:
        return IRI(text)
    if kind == L.K_BLANK:
        return BlankNode(text)
    if kind == L.K_STRING:
        return Literal(text)
    first, second = text.split("\0", 1)
    return Literal(second, RDF_LANGSTRING, first) if kind == L.K_TAGGED else Literal(second, first)
