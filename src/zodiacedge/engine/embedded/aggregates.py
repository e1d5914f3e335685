"""Folding: the bindings of an aggregate's inner body to its rows, one per group.

Counts, integer sums and medians of plain numbers are computed column by column; everything else, and
every group that might overflow, goes through the definition in `engine.folds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.layout import K_DOUBLE, K_FLOAT, K_INTEGER
from zodiacedge.engine.folds import NUMERIC_FOLDS, fold
from zodiacedge.engine.novalue import NoValue
from zodiacedge.language.printer import format_argument, format_term

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.dictionary import Dictionary
    from zodiacedge.engine.embedded.store import Store
    from zodiacedge.engine.registry import Registry
    from zodiacedge.language.ast import Aggregate, Fold

    Ids = NDArray[np.int32]
    Places = NDArray[np.int64]

_NO_RESULT = -1
_SAFE_SUM = 2**62


def fold_rows(store: Store, aggregate: Aggregate, bindings: Ids, registry: Registry) -> tuple[Ids, int, str]:
    """Return the aggregate's rows, how many bindings and groups were dropped, and an example.

    `bindings` holds one row per binding: the groups' terms, then each fold's argument.
    """
    dictionary = store.dictionary
    width = len(aggregate.groups)
    dropped, example = 0, ""
    acceptable = np.ones(len(bindings), bool)
    for n, one in enumerate(aggregate.folds):
        if one.op in NUMERIC_FOLDS:
            kinds = dictionary.kinds[bindings[:, width + n]]
            acceptable &= (kinds >= K_INTEGER) & (kinds <= K_FLOAT)
    if not acceptable.all():
        dropped = int((~acceptable).sum())
        first = bindings[np.flatnonzero(~acceptable)[0]]
        example = _bad_value(dictionary, aggregate, first.tolist())
        bindings = bindings[acceptable]
    if not len(bindings):
        return np.zeros((0, width + len(aggregate.folds)), np.int32), dropped, example
    order = np.lexsort(bindings[:, :width].T[::-1]) if width else np.arange(len(bindings))
    bindings = bindings[order]
    changes = (bindings[1:, :width] != bindings[:-1, :width]).any(axis=1)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    columns = [bindings[starts, n] for n in range(width)]
    for n, one in enumerate(aggregate.folds):
        columns.append(_folded(dictionary, one, bindings[:, width + n], starts, registry))
    rows = np.stack(columns, axis=1).astype(np.int32)
    failed = (rows[:, width:] == _NO_RESULT).any(axis=1)
    if failed.any():
        dropped += int(failed.sum())
        example = example or "a result beyond its range"
        rows = rows[~failed]
    return rows, dropped, example


def _bad_value(dictionary: Dictionary, aggregate: Aggregate, row: list[int]) -> str:
    width = len(aggregate.groups)
    names = (*aggregate.groups, *(one.argument for one in aggregate.folds))
    shown = ", ".join(
        f"{format_argument(v)} = {format_term(dictionary.decode(n))}"
        for v, n in dict(zip(names, row, strict=True)).items()
    )
    for n, one in enumerate(aggregate.folds):
        kind = int(dictionary.kinds[row[width + n]])
        if one.op in NUMERIC_FOLDS and not K_INTEGER <= kind <= K_FLOAT:
            return f"{format_term(dictionary.decode(row[width + n]))} is not a number ({shown})"
    return shown


def _folded(dictionary: Dictionary, one: Fold, terms: Ids, starts: Places, registry: Registry) -> Ids:
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
    kinds = dictionary.kinds[terms]
    values = dictionary.payloads[terms]
    if (kinds == K_INTEGER).all():
        if one.op == "SUM" and float(np.abs(values.astype(np.float64)).max()) * len(values) < _SAFE_SUM:
            return _integers(dictionary, np.add.reduceat(values, starts))
        if one.op == "MED":
            return _medians(dictionary, terms, values, starts, ends)
        if one.op in {"MIN", "MAX"}:
            group = np.repeat(np.arange(len(starts)), ends - starts)
            ordered = terms[np.lexsort((values, group))]
            return ordered[starts] if one.op == "MIN" else ordered[ends - 1]
    if (kinds == K_DOUBLE).all() and one.op in {"MIN", "MAX"}:
        group = np.repeat(np.arange(len(starts)), ends - starts)
        ordered = terms[np.lexsort((values.view(np.float64), group))]
        return ordered[starts] if one.op == "MIN" else ordered[ends - 1]
    return _by_definition(dictionary, one, terms, starts, ends, registry)


def _integers(dictionary: Dictionary, values: NDArray[np.int64]) -> Ids:
    distinct, places = np.unique(values, return_inverse=True)
    ids = dictionary.encode_integers(distinct.astype(np.int64))
    return ids[places]


def _medians(
    dictionary: Dictionary, terms: Ids, values: NDArray[np.int64], starts: Places, ends: Places
) -> Ids:
    group = np.repeat(np.arange(len(starts)), ends - starts)
    order = np.lexsort((values, group))
    sizes = ends - starts
    middle = starts + sizes // 2
    upper = terms[order][middle]
    even = np.flatnonzero(sizes % 2 == 0)
    if len(even):
        pairs = np.stack((terms[order][middle[even] - 1], upper[even]), axis=1)
        distinct, places = np.unique(pairs, axis=0, return_inverse=True)
        means = [_mean(dictionary, first, second) for first, second in distinct.tolist()]
        upper[even] = np.array(means, np.int32)[places.ravel()]
    return upper


def _mean(dictionary: Dictionary, first: int, second: int) -> int:
    if first == second:
        return first
    from zodiacedge.engine.registry import Registry  # noqa: PLC0415

    return dictionary.encode(fold("MED", [dictionary.decode(first), dictionary.decode(second)], Registry()))


def _by_definition(
    dictionary: Dictionary, one: Fold, terms: Ids, starts: Places, ends: Places, registry: Registry
) -> Ids:
    known = {number: dictionary.decode(number) for number in np.unique(terms).tolist()}
    results = np.full(len(starts), _NO_RESULT, np.int32)
    listed = terms.tolist()
    for n, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        try:
            result = fold(one.op, [known[number] for number in listed[start:end]], registry)
        except NoValue:
            continue
        results[n] = dictionary.encode(result)
    return results
