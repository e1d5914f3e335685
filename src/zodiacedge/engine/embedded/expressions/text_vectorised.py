"""Functions on text and dates, a column at a time, on Arrow's kernels.

Only rows of plain strings, integers as positions, dateTimes and dates are computed, and tests of a kind.
The definition computes other rows (a text with a language tag, a letter whose upper case is more than one
letter) one by one. The results are the same terms as those of the definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zodiacedge.engine.embedded.kernels import layout as L

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Flags, Ids

    Column = Callable[[Dictionary, Ids], Ids]

_MICROSECONDS = 1_000_000
_DAY = 86_400 * _MICROSECONDS
# No text is longer: Arrow's offsets have 32 bits.
_LONGEST = 2**31 - 1
_INTEGER = "^-?[0-9]{1,18}$"
_REAL = r"^-?[0-9]{1,100}\.[0-9]{1,100}([eE][+-]?[0-9]{1,2})?$"


def compute_columns(function: str, args: Ids, dictionary: Dictionary) -> tuple[Flags, Ids]:
    """Compute a function of rows of arguments; return the flags of the rows computed, and their results."""
    computed = _accepted(function, dictionary.kinds[args])
    if function in _ASCII_ONLY and computed.any():
        rows = np.flatnonzero(computed)
        computed[rows[~_is_ascii(strings(dictionary, args[rows, 0]))]] = False
    if function == "num":
        rows = np.flatnonzero(computed)
        computed[rows[~_reads_as_number(dictionary, args[rows, 0])]] = False
    if not computed.any():
        return computed, np.zeros(0, np.int32)
    return computed, _COLUMNS[function](dictionary, args[computed])


def strings(dictionary: Dictionary, ids: Ids) -> pa.StringArray:
    """Return the texts of terms, all of which must have one, as an Arrow array."""
    ends, text = dictionary.texts(ids)
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(ends), pa.py_buffer(text))


def encode_strings(dictionary: Dictionary, texts: pa.StringArray, kind: int = L.K_STRING) -> Ids:
    """Return the ids of texts, none of them null."""
    _, offsets, text = texts.buffers()
    ends = (
        np.frombuffer(offsets, np.int32)[texts.offset :][: len(texts) + 1]
        if len(texts)
        else np.zeros(1, np.int32)
    )
    data = bytes(memoryview(text)[ends[0] : ends[-1]]) if text else b""
    return dictionary.encode_texts(kind, np.diff(ends).astype(np.int64), data)


def _accepted(function: str, kinds: NDArray[np.int8]) -> Flags:
    """Return for each row whether its arguments are of the kinds that are computed by column."""
    if function in _DATES:
        return np.isin(kinds[:, 0], (L.K_MOMENT, L.K_DATE) if function in _DAYS else (L.K_MOMENT,))
    if function == "str":
        return np.isin(kinds[:, 0], (L.K_STRING, L.K_IRI))
    if function == "num":
        return np.isin(kinds[:, 0], (L.K_STRING, L.K_INTEGER, L.K_DECIMAL, L.K_DOUBLE, L.K_FLOAT))
    if function in _KIND_TESTS:
        return np.ones(len(kinds), np.bool_)
    if function == "substr":
        return np.asarray((kinds[:, 0] == L.K_STRING) & (kinds[:, 1:] == L.K_INTEGER).all(axis=1))
    if function in _COLUMNS:
        return np.asarray((kinds == L.K_STRING).all(axis=1))
    return np.zeros(len(kinds), np.bool_)


def _is_ascii(texts: pa.StringArray) -> Flags:
    flags: Flags = pc.string_is_ascii(texts).to_numpy(zero_copy_only=False)
    return flags


def _reads_as_number(dictionary: Dictionary, ids: Ids) -> Flags:
    flags = dictionary.kinds[ids] != L.K_STRING
    texts = strings(dictionary, ids[~flags])
    matches = pc.or_(pc.match_substring_regex(texts, _INTEGER), pc.match_substring_regex(texts, _REAL))
    flags[~flags] = matches.to_numpy(zero_copy_only=False)
    return np.asarray(flags)


def _groups(*columns: Ids) -> Iterator[tuple[list[int], NDArray[np.int64]]]:
    """Yield the distinct rows of columns, and the positions of each."""
    distinct, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(inverse.ravel(), minlength=len(distinct)))
    for row, end, start in zip(distinct.tolist(), ends.tolist(), (0, *ends.tolist()), strict=False):
        yield row, order[start:end]


def _text(dictionary: Dictionary, number: int) -> str:
    text: str = strings(dictionary, np.array([number], np.int32))[0].as_py()
    return text


def _length(dictionary: Dictionary, args: Ids) -> Ids:
    lengths = pc.utf8_length(strings(dictionary, args[:, 0])).to_numpy()
    return dictionary.encode_integers(lengths.astype(np.int64))


def _joined(dictionary: Dictionary, args: Ids) -> Ids:
    columns = [strings(dictionary, column) for column in args.T]
    return encode_strings(dictionary, pc.binary_join_element_wise(*columns, ""))


def _mapped(function: str) -> Column:
    def column(dictionary: Dictionary, args: Ids) -> Ids:
        texts = strings(dictionary, args[:, 0])
        return encode_strings(dictionary, pc.call_function(function, [texts]))

    return column


def _tested(function: str) -> Column:
    def column(dictionary: Dictionary, args: Ids) -> Ids:
        holds = np.zeros(len(args), np.int64)
        for (pattern,), positions in _groups(args[:, 1]):
            texts = strings(dictionary, args[positions, 0])
            options = pc.MatchSubstringOptions(_text(dictionary, pattern))
            matches = pc.call_function(function, [texts], options)
            holds[positions] = matches.to_numpy(zero_copy_only=False)
        return dictionary.encode_numbers(L.K_BOOLEAN, holds)

    return column


def _substring(dictionary: Dictionary, args: Ids) -> Ids:
    results = np.zeros(len(args), np.int32)
    payloads = dictionary.payloads
    for (first, *length), positions in _groups(*args.T[1:]):
        texts = strings(dictionary, args[positions, 0])
        start = int(payloads[first])
        stop = min(max(start + int(payloads[length[0]]), 1) - 1, _LONGEST) if length else None
        start = min(max(start, 1) - 1, _LONGEST)
        if stop is not None and stop <= start:
            stop = start
        results[positions] = encode_strings(dictionary, pc.utf8_slice_codeunits(texts, start, stop))
    return results


def _replaced(dictionary: Dictionary, args: Ids) -> Ids:
    results = np.full(len(args), -1, np.int32)
    for (old, new), positions in _groups(args[:, 1], args[:, 2]):
        pattern = _text(dictionary, old)
        if pattern:
            texts = strings(dictionary, args[positions, 0])
            replaced = pc.replace_substring(texts, pattern, _text(dictionary, new))
            results[positions] = encode_strings(dictionary, replaced)
    return results


def _as_text(dictionary: Dictionary, args: Ids) -> Ids:
    return encode_strings(dictionary, strings(dictionary, args[:, 0]))


def _number(dictionary: Dictionary, args: Ids) -> Ids:
    ids = args[:, 0]
    kinds = dictionary.kinds[ids].copy()
    payloads = dictionary.payloads[ids].copy()
    from_text = np.flatnonzero(kinds == L.K_STRING)
    kinds[kinds != L.K_INTEGER] = L.K_DOUBLE
    texts = strings(dictionary, ids[from_text])
    whole = pc.match_substring_regex(texts, _INTEGER)
    is_whole: Flags = whole.to_numpy(zero_copy_only=False)
    kinds[from_text[is_whole]] = L.K_INTEGER
    payloads[from_text[is_whole]] = texts.filter(whole).cast(pa.int64()).to_numpy()
    real = texts.filter(pc.invert(whole)).cast(pa.float64()).to_numpy()
    payloads[from_text[~is_whole]] = (real + 0.0).view(np.int64)
    return dictionary.encode_numbers(kinds, payloads)


def _tested_kind(first: int, last: int) -> Column:
    def column(dictionary: Dictionary, args: Ids) -> Ids:
        kinds = dictionary.kinds[args[:, 0]]
        holds = (kinds >= first) & (kinds <= last)
        return dictionary.encode_numbers(L.K_BOOLEAN, holds.astype(np.int64))

    return column


def _dated(function: str) -> Column:
    def column(dictionary: Dictionary, args: Ids) -> Ids:
        ids = args[:, 0]
        moments = dictionary.payloads[ids]
        moments = np.where(dictionary.kinds[ids] == L.K_DATE, moments * _DAY, moments)
        if function == "seconds":
            second = np.floor_divide(moments, _MICROSECONDS) % 60
            seconds = second + (moments % _MICROSECONDS) / _MICROSECONDS
            return dictionary.encode_numbers(L.K_DOUBLE, seconds.view(np.int64))
        times = pa.array(moments).view(pa.timestamp("us"))
        field = pc.call_function(_ARROW_NAMES.get(function, function), [times])
        return dictionary.encode_integers(field.to_numpy().astype(np.int64))

    return column


_ARROW_NAMES = {"hours": "hour", "minutes": "minute"}
_DAYS = ("year", "month", "day")
_DATES = (*_DAYS, "hours", "minutes", "seconds")
_ASCII_ONLY = ("lower", "upper")
_KIND_TESTS = {"isiri": _tested_kind(L.K_IRI, L.K_IRI), "isliteral": _tested_kind(L.K_STRING, L.K_DURATION)}
_COLUMNS: dict[str, Column] = {
    "concat": _joined,
    "strlen": _length,
    "substr": _substring,
    "lower": _mapped("ascii_lower"),
    "upper": _mapped("ascii_upper"),
    "contains": _tested("match_substring"),
    "startswith": _tested("starts_with"),
    "endswith": _tested("ends_with"),
    "replace": _replaced,
    "str": _as_text,
    "num": _number,
    **_KIND_TESTS,
    **{function: _dated(function) for function in _DATES},
}
