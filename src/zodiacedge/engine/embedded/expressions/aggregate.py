"""Folding: the bindings of an aggregate's inner body to its rows, one per group.

Aggregates over integers or over doubles are computed column by column, and the groups of a vectorised
aggregate become Arrow arrays that way where all values of a group are of one kind. Everything
else, and every group that might overflow, goes through the definition in `engine.folds`.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.expressions.host_functions import arrow_column
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.counting_sort import in_order
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.scalar.aggregates import NUMERIC_FOLDS, fold
from zodiacedge.engine.scalar.errors import NoValue
from zodiacedge.engine.scalar.host_functions import fold_array
from zodiacedge.language.printer import format_argument, format_term

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.language.ast import Aggregate, Fold, Variable
    from zodiacedge.terms import Term

    Places = NDArray[np.int64]
    Values = NDArray[np.int64] | NDArray[np.float64]

_NO_RESULT = -1
_SAFE_SUM = 2**62
# Kinds whose payloads are values in order: what they are in Arrow.
_COLUMNS = {
    L.K_INTEGER: int,
    L.K_DECIMAL: float,
    L.K_DOUBLE: float,
    L.K_FLOAT: float,
    L.K_BOOLEAN: bool,
    L.K_MOMENT: datetime,
}


def fold_rows(
    store: Database, aggregate: Aggregate, bindings: Ids, registry: Registry
) -> tuple[Ids, int, str]:
    """Return the aggregate's rows, how many bindings and groups were dropped, and an example.

    `bindings` holds one row per binding: the groups' terms, then each fold's argument.
    """
    dictionary = store.dictionary
    width = len(aggregate.groups)
    dropped, example = 0, ""
    numbers = [width + n for n, one in enumerate(aggregate.folds) if one.op in NUMERIC_FOLDS]
    if numbers:
        kinds = dictionary.kinds[bindings[:, numbers]]
        acceptable = ((kinds >= L.K_INTEGER) & (kinds <= L.K_FLOAT)).all(axis=1)
        if not acceptable.all():
            dropped = int((~acceptable).sum())
            first = bindings[np.flatnonzero(~acceptable)[0]]
            example = _bad_value(dictionary, aggregate, first.tolist())
            bindings = bindings[acceptable]
    if not len(bindings):
        return np.zeros((0, width + len(aggregate.folds)), np.int32), dropped, example
    listed, starts = _grouped(bindings, width, len(dictionary))
    columns = [column[starts] for column in listed[:width]]
    reasons: dict[int, str] = {}
    for one, terms in zip(aggregate.folds, listed[width:], strict=True):
        columns.append(_folded(dictionary, one, terms, starts, registry, reasons))
    rows = np.array(columns, np.int32).T
    if reasons:
        failed = (rows[:, width:] == _NO_RESULT).any(axis=1)
        dropped += int(failed.sum())
        examples = (
            _because(reason, dictionary, aggregate.groups, rows[group, :width].tolist())
            for group, reason in reasons.items()
        )
        example = min((example, *examples) if example else examples)
        rows = rows[~failed]
    return rows, dropped, example


def _grouped(bindings: Ids, width: int, terms: int) -> tuple[list[Ids], Places]:
    """Return the columns of bindings that are in the order of their groups, and where each group begins."""
    listed = list(np.ascontiguousarray(bindings.T))
    # A change most often folds one group again.
    if all(column[0] == column[-1] and (column == column[0]).all() for column in listed[:width]):
        return listed, np.zeros(1, np.int64)
    order = in_order(listed[:width], terms)
    listed = [column[order] for column in listed]
    changes = np.zeros(len(bindings) - 1, bool)
    for column in listed[:width]:
        changes |= column[1:] != column[:-1]
    return listed, np.concatenate(([0], np.flatnonzero(changes) + 1))


def _because(reason: str, dictionary: Dictionary, variables: Sequence[Variable], row: list[int]) -> str:
    shown = ", ".join(
        f"{format_argument(v)} = {format_term(dictionary.decode(n))}"
        for v, n in dict(zip(variables, row, strict=True)).items()
        if not v.anonymous
    )
    return f"{reason} ({shown})" if shown else reason


def _bad_value(dictionary: Dictionary, aggregate: Aggregate, row: list[int]) -> str:
    names = (*aggregate.groups, *(one.argument for one in aggregate.folds))
    bad = next(
        number
        for number, one in zip(row[len(aggregate.groups) :], aggregate.folds, strict=True)
        if one.op in NUMERIC_FOLDS and not L.K_INTEGER <= dictionary.kinds[number] <= L.K_FLOAT
    )
    reason = f"{format_term(dictionary.decode(bad))} is not a number"
    return _because(reason, dictionary, names, row)


def _folded(
    dictionary: Dictionary,
    one: Fold,
    terms: Ids,
    starts: Places,
    registry: Registry,
    reasons: dict[int, str],
) -> Ids:
    """Return the result of each group; where there is none, `reasons` says why."""
    ends = np.append(starts[1:], len(terms))
    if one.distinct:
        group = np.repeat(np.arange(len(starts)), ends - starts)
        pairs = np.unique(np.stack((group, terms.astype(np.int64)), axis=1), axis=0)
        terms = pairs[:, 1].astype(np.int32)
        sizes = np.bincount(pairs[:, 0], minlength=len(starts))
        starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        ends = np.append(starts[1:], len(terms))
    if one.op == "COUNT":
        return _integers(dictionary, ends - starts)
    by_columns = _by_columns(dictionary, one, terms, starts, ends)
    if by_columns is not None:
        return by_columns
    results = np.full(len(starts), _NO_RESULT, np.int32)
    fold_group = _group_folder(dictionary, one, registry)
    for n, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        try:
            results[n] = dictionary.encode(fold_group(terms[start:end]))
        except NoValue as problem:
            reasons.setdefault(n, str(problem))
    return results


def _by_columns(dictionary: Dictionary, one: Fold, terms: Ids, starts: Places, ends: Places) -> Ids | None:
    """Return the results of an aggregate over numbers of one type, or None where that takes more care."""
    kinds = dictionary.kinds[terms]
    payloads = dictionary.payloads[terms]
    values: Values
    if (kinds == L.K_INTEGER).all():
        values = payloads
    elif (kinds == L.K_DOUBLE).all():
        values = payloads.view(np.float64)
    else:
        return None
    if one.op == "MED":
        return _medians(dictionary, terms, values, starts, ends)
    if one.op in {"MIN", "MAX"}:
        ordered = _by_value(dictionary, terms, values, starts, ends)
        return ordered[starts] if one.op == "MIN" else ordered[ends - 1]
    if one.op not in {"SUM", "AVG"}:
        return None
    totals = _totals(values, starts, ends)
    if totals is None:
        return None
    if one.op == "SUM" and values is payloads:
        return _integers(dictionary, totals.astype(np.int64))
    rounded = totals.astype(np.float64)
    return _doubles(dictionary, rounded if one.op == "SUM" else rounded / (ends - starts))


def _totals(values: Values, starts: Places, ends: Places) -> Values | None:
    """Return the total of each group, exact or rounded once; None where something may be too large."""
    if values.dtype == np.int64:
        safe = float(np.abs(values.astype(np.float64)).max()) * len(values) < _SAFE_SUM
        return np.add.reduceat(values, starts) if safe else None
    listed = values.tolist()
    try:
        totals = [fsum(listed[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    except OverflowError:
        return None
    return np.array(totals, np.float64)


def _doubles(dictionary: Dictionary, values: NDArray[np.float64]) -> Ids:
    # Minus zero is zero.
    distinct, places = np.unique((values + 0.0).view(np.int64), return_inverse=True)
    return dictionary.encode_numbers(L.K_DOUBLE, distinct)[places]


def _integers(dictionary: Dictionary, values: NDArray[np.int64]) -> Ids:
    if len(values) == 1:
        return dictionary.encode_integers(values)
    distinct, places = np.unique(values, return_inverse=True)
    ids = dictionary.encode_integers(distinct.astype(np.int64))
    return ids[places]


def _medians(dictionary: Dictionary, terms: Ids, values: Values, starts: Places, ends: Places) -> Ids:
    ordered = _by_value(dictionary, terms, values, starts, ends)
    sizes = ends - starts
    middle = starts + sizes // 2
    upper = ordered[middle]
    even = np.flatnonzero(sizes % 2 == 0)
    if len(even):
        pairs = np.stack((ordered[middle[even] - 1], upper[even]), axis=1)
        distinct, places = np.unique(pairs, axis=0, return_inverse=True)
        strategy = [_mean(dictionary, first, second) for first, second in distinct.tolist()]
        upper[even] = np.array(strategy, np.int32)[places.ravel()]
    return upper


def _by_value(dictionary: Dictionary, terms: Ids, values: Values, starts: Places, ends: Places) -> Ids:
    """Return the terms of each group in the order of their values."""
    # Few terms stand in many groups: only different ones are compared.
    distinct, first = np.unique(terms, return_index=True)
    ranks = np.zeros(len(dictionary), np.int32)
    ranks[distinct[np.argsort(values[first])]] = np.arange(len(distinct), dtype=np.int32)
    group = np.repeat(np.arange(len(starts), dtype=np.int32), ends - starts)
    return terms[in_order([group, ranks[terms]], max(len(starts), len(distinct)))]


def _mean(dictionary: Dictionary, first: int, second: int) -> int:
    if first == second:
        return first
    return dictionary.encode(fold("MED", [dictionary.decode(first), dictionary.decode(second)], Registry()))


def _group_folder(dictionary: Dictionary, one: Fold, registry: Registry) -> Callable[[Ids], Term]:
    decode = cache(dictionary.decode)

    def by_definition(group: Ids) -> Term:
        return fold(one.op, [decode(number) for number in group.tolist()], registry)

    if not one.registered or not registry.folds[one.op].vectorised:
        return by_definition
    registered = registry.folds[one.op]

    def by_array(group: Ids) -> Term:
        kinds = dictionary.kinds[group]
        kind = _COLUMNS.get(int(kinds[0]))
        if kind is None or (kinds != kinds[0]).any():
            return by_definition(group)
        return fold_array(registered, _ordered_column(dictionary, group, kind))

    return by_array


def _ordered_column(dictionary: Dictionary, group: Ids, kind: type) -> pa.Array:
    payloads = dictionary.payloads[group]
    order = np.argsort(payloads.view(np.float64) if kind is float else payloads)
    return arrow_column(dictionary, group[order], kind)
