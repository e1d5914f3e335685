"""Host functions, which Python computes: functions on text and dates, and registered functions.

The machine looks up results in a table, by arguments. Arguments without a result are queued, the host
computes them in one batch, and the machine repeats its pass. Functions are deterministic: results are cached.

A vectorised function gets its arguments in batches, as Arrow arrays that are made from the dictionary's
columns without a Python object per row; its results are encoded the same way.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.storage.relation import too_wide
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.engine.semantics.expressions import evaluate
from zodiacedge.engine.semantics.host_functions import arrow_type, call_rows, term_of
from zodiacedge.extras import has, need
from zodiacedge.language.ast import Call

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.terms.term_space import TermSpace
    from zodiacedge.engine.embedded.types import Flags, Ids
    from zodiacedge.engine.registry import Function, Registry
    from zodiacedge.engine.semantics.host_functions import Values


BATCH = 65_536
_ROOM = BATCH
# Fewer rows are computed one by one, which saves loading Arrow.
_WORTH_COLUMNS = 256
_NO_VALUE = -1

# The Python type of the terms of a kind; other kinds have no Arrow type.
TYPE_OF_KIND = {
    L.K_IRI: str,
    L.K_STRING: str,
    L.K_INTEGER: int,
    L.K_DECIMAL: float,
    L.K_DOUBLE: float,
    L.K_FLOAT: float,
    L.K_BOOLEAN: bool,
    L.K_MOMENT: datetime,
    L.K_DATE: date,
    L.K_DURATION: timedelta,
}
_TYPES = (None, str, int, float, bool, datetime, date, timedelta)
# For each kind, the position of its type in `_TYPES`.
_TYPE_NUMBERS = np.array([_TYPES.index(TYPE_OF_KIND.get(kind)) for kind in range(L.K_DURATION + 1)], np.int64)


class HostFunction:
    """A function of one arity: its results so far, and the queue of arguments to compute."""

    def __init__(
        self, function: str, arity: int, *, registered: bool, definition: Function | None = None
    ) -> None:
        """Start with no results; `definition` is that of a registered function."""
        self.definition = definition
        self.function = function
        self.arity = arity
        self.registered = registered
        self.known = Table(arity + 1)
        self.known.ensure_index((1 << arity) - 1)
        self.wanted = Table(arity)
        self.wanted.ensure_hash_set()
        self.wanted.reserve(_ROOM)

    def forget(self) -> None:
        """Drop all results; they are computed again when they are needed."""
        self.known.clear()
        self.known.trim()

    def compute(self, dictionary: Dictionary, registry: Registry) -> None:
        """Compute the results of the queued arguments."""
        args = self.wanted.rows.copy()
        if not len(args):
            return
        # Cleared first: the next query must not compute again arguments for which the function raises.
        self.wanted.clear()
        self.wanted.reserve(max(_ROOM, 2 * len(args)))
        function = registry.functions.get(self.function) if self.registered else None
        if function and function.vectorised:
            need("tables", "a vectorised function")
            results = _in_batches(function, args, dictionary)
        elif self.registered or len(args) < _WORTH_COLUMNS or not has("tables"):
            results = self._one_by_one(args, dictionary, registry)
        else:
            results = self._by_columns(args, dictionary, registry)
        self.known.append_distinct(np.concatenate((args, results[:, None]), axis=1))

    def _by_columns(self, args: Ids, dictionary: Dictionary, registry: Registry) -> Ids:
        from zodiacedge.engine.embedded.expressions.text_vectorised import compute_columns  # noqa: PLC0415 - loads Arrow

        results = np.empty(len(args), np.int32)
        for start in range(0, len(args), BATCH):
            batch = args[start : start + BATCH]
            computed, ids = compute_columns(self.function, batch, dictionary)
            out = results[start : start + BATCH]
            out[computed] = ids
            out[~computed] = self._one_by_one(batch[~computed], dictionary, registry)
        return results

    def _one_by_one(self, args: Ids, dictionary: Dictionary, registry: Registry) -> Ids:
        terms = {number: dictionary.decode(number) for number in np.unique(args).tolist()}
        calls = (Call(self.function, tuple(terms[n] for n in row), self.registered) for row in args.tolist())
        return np.fromiter((_result(call, dictionary, registry) for call in calls), np.int32, len(args))


def _result(call: Call, dictionary: Dictionary, registry: Registry) -> int:
    try:
        return dictionary.encode(evaluate(call, {}, registry))
    except NoValue:
        return _NO_VALUE


def host_function(
    terms: TermSpace, function: str, arity: int, registry: Registry, *, registered: bool
) -> HostFunction:
    """Return a host function with its cached results; registering it again drops them."""
    if arity > L.MASK_COLUMNS:
        raise too_wide(f"the function {function}", arity, L.MASK_COLUMNS)
    key = (function, arity, registered)
    definition = registry.functions.get(function) if registered else None
    known = terms.host_functions.get(key)
    if not isinstance(known, HostFunction) or known.definition is not definition:
        known = terms.host_functions[key] = HostFunction(
            function, arity, registered=registered, definition=definition
        )
    return known


def arrow_column(dictionary: Dictionary, terms: Ids, kind: type) -> pa.Array:
    """Return terms, all of whose Python values are of one type, as an Arrow array."""
    import pyarrow as pa  # noqa: PLC0415 - heavy, and only hosts that vectorise need it

    from zodiacedge.engine.embedded.expressions.text_vectorised import strings  # noqa: PLC0415

    if kind is str:
        return strings(dictionary, terms)
    payloads = dictionary.payloads[terms]
    if kind is float:
        return pa.array(payloads.view(np.float64))
    if kind is bool:
        return pa.array(payloads.astype(np.bool_))
    if kind is date:
        return pa.array(payloads.astype(np.int32)).view(arrow_type(kind))
    return pa.array(payloads).view(arrow_type(kind))


def _in_batches(function: Function, args: Ids, dictionary: Dictionary) -> Ids:
    """Call a vectorised function with batches of rows whose arguments are of the same types."""
    results = np.full(len(args), _NO_VALUE, np.int32)
    types = _TYPE_NUMBERS[dictionary.kinds[args]]
    groups = np.zeros(len(args), np.int64)
    for column in types.T:
        groups = np.unique(groups * len(_TYPES) + column, return_inverse=True)[1]
    for group in range(int(groups.max()) + 1):
        positions = np.flatnonzero(groups == group)
        for start in range(0, len(positions), BATCH):
            batch = positions[start : start + BATCH]
            columns = [
                arrow_column(dictionary, args[batch, n], kind)
                for n, type_number in enumerate(types[batch[0]].tolist())
                if (kind := _TYPES[type_number])
            ]
            if len(columns) == args.shape[1]:
                results[batch] = _called(function, columns, len(batch), dictionary)
    return results


def _called(function: Function, columns: Sequence[pa.Array], rows: int, dictionary: Dictionary) -> Ids:
    try:
        return _encoded(dictionary, call_rows(function, columns, rows))
    except NoValue:
        if rows == 1:
            return np.array([_NO_VALUE], np.int32)
    # Bisect, to find the rows without a value.
    half = rows // 2
    first = _called(function, [column.slice(0, half) for column in columns], half, dictionary)
    second = _called(function, [column.slice(half) for column in columns], rows - half, dictionary)
    return np.concatenate((first, second))


def _encoded(dictionary: Dictionary, values: Values) -> Ids:
    import pyarrow as pa  # noqa: PLC0415

    from zodiacedge.engine.embedded.expressions.text_vectorised import encode_strings  # noqa: PLC0415

    if isinstance(values, list):
        ids = [_NO_VALUE if term is None else dictionary.encode(term) for term in map(term_of, values)]
        return np.array(ids, np.int32)
    if values.type == pa.string():
        valid: Flags = values.is_valid().to_numpy(zero_copy_only=False)
        results = np.full(len(values), _NO_VALUE, np.int32)
        results[valid] = encode_strings(dictionary, values.drop_null())
        return results
    return _encoded_numbers(dictionary, values)


def _encoded_numbers(dictionary: Dictionary, values: pa.Array) -> Ids:
    import pyarrow as pa  # noqa: PLC0415

    valid: Flags = values.is_valid().to_numpy(zero_copy_only=False)
    numbers = values.fill_null(0).to_numpy()
    kind = L.K_INTEGER
    if values.type == pa.float64():
        kind = L.K_DOUBLE
        valid = valid & np.isfinite(numbers)
        numbers = (numbers + 0.0).view(np.int64)  # minus zero is zero
    results = np.full(len(numbers), _NO_VALUE, np.int32)
    results[valid] = dictionary.encode_numbers(kind, numbers[valid])
    return results
