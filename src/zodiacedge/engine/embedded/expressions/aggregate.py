"""Aggregates: folds of the bindings of an aggregate's inner body to rows, one per group.

Aggregates over integers or over doubles are computed by column, and the groups of a vectorised aggregate
become Arrow arrays if all values of a group are of one kind. The definition in `engine.semantics.aggregates`
computes all other groups, and those that might overflow.
"""

from __future__ import annotations

from functools import cache
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.expressions.host_functions import TYPE_OF_KIND, arrow_column
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.counting_sort import sorted_positions
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.semantics.aggregates import NUMERIC_FOLDS, choose, fold
from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.engine.semantics.host_functions import fold_array
from zodiacedge.language.printer import format_argument, format_term
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.database import FactTables
    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.language.ast import Aggregate, Fold, Variable
    from zodiacedge.terms import Term

    Positions = NDArray[np.int64]
    Values = NDArray[np.int64] | NDArray[np.float64]

_NO_RESULT = -1
_SAFE_SUM = 2**62
# Half of a double above this is exact.
_LEAST_HALVED = 2.0**-1000


def fold_rows(
    store: FactTables, aggregate: Aggregate, bindings: Ids, registry: Registry
) -> tuple[Ids, int, str]:
    """Return the aggregate's rows, the number of bindings and groups that were dropped, and an example.

    `bindings` holds one row per binding: the groups' terms, then each fold's argument.
    """
    dictionary = store.dictionary
    width = len(aggregate.groups)
    dropped, example = 0, ""
    judged = [
        (width + n, v is step.by) for n, (step, v) in enumerate(_arguments(aggregate)) if _judges(step, v)
    ]
    if judged:
        valid = np.ones(len(bindings), np.bool_)
        for column, orders in judged:
            valid &= _accepted(dictionary.kinds[bindings[:, column]], moments=orders)
        if not valid.all():
            dropped = int((~valid).sum())
            example = _bad_value(dictionary, aggregate, bindings[~valid][0].tolist())
            bindings = bindings[valid]
    if not len(bindings):
        return np.zeros((0, width + len(aggregate.folds)), np.int32), dropped, example
    sorted_columns, starts = _grouped(bindings, width, len(dictionary))
    columns = [column[starts] for column in sorted_columns[:width]]
    reasons: dict[int, str] = {}
    folded = iter(sorted_columns[width:])
    for step in aggregate.folds:
        terms = next(folded)
        if step.by is not None:
            columns.append(_chosen(dictionary, step, terms, next(folded), starts))
        else:
            columns.append(_folded(dictionary, step, terms, starts, registry, reasons))
    rows = np.array(columns, np.int32).T
    if reasons:
        failed = (rows[:, width:] == _NO_RESULT).any(axis=1)
        dropped += int(failed.sum())
        examples = (
            _with_binding(reason, dictionary, aggregate.groups, rows[group, :width].tolist())
            for group, reason in reasons.items()
        )
        example = min((example, *examples) if example else examples)
        rows = rows[~failed]
    return rows, dropped, example


def _grouped(bindings: Ids, width: int, terms: int) -> tuple[list[Ids], Positions]:
    """Return the columns of bindings sorted by group, and the first row of each group."""
    columns = list(np.ascontiguousarray(bindings.T))
    # Most changes fold a single group.
    if all(column[0] == column[-1] and (column == column[0]).all() for column in columns[:width]):
        return columns, np.zeros(1, np.int64)
    order = sorted_positions(columns[:width], terms)
    columns = [column[order] for column in columns]
    changes = np.zeros(len(bindings) - 1, bool)
    for column in columns[:width]:
        changes |= column[1:] != column[:-1]
    return columns, np.concatenate(([0], np.flatnonzero(changes) + 1))


def _with_binding(reason: str, dictionary: Dictionary, variables: Sequence[Variable], row: list[int]) -> str:
    shown = ", ".join(
        f"{format_argument(v)} = {format_term(dictionary.decode(n))}"
        for v, n in dict(zip(variables, row, strict=True)).items()
        if not v.anonymous
    )
    return f"{reason} ({shown})" if shown else reason


def _bad_value(dictionary: Dictionary, aggregate: Aggregate, row: list[int]) -> str:
    names = (*aggregate.groups, *aggregate.arguments)
    bad = next(
        number
        for number, (step, v) in zip(row[len(aggregate.groups) :], _arguments(aggregate), strict=True)
        if _judges(step, v) and not _accepted(dictionary.kinds[[number]], moments=v is step.by)[0]
    )
    reason = f"{format_term(dictionary.decode(bad))} is not a number"
    return _with_binding(reason, dictionary, names, row)


def _folded(
    dictionary: Dictionary,
    step: Fold,
    terms: Ids,
    starts: Positions,
    registry: Registry,
    reasons: dict[int, str],
) -> Ids:
    """Return the result of each group; for a group without a result, add the reason to `reasons`."""
    ends = np.append(starts[1:], len(terms))
    if step.distinct:
        group = np.repeat(np.arange(len(starts)), ends - starts)
        pairs = np.unique(np.stack((group, terms.astype(np.int64)), axis=1), axis=0)
        terms = pairs[:, 1].astype(np.int32)
        sizes = np.bincount(pairs[:, 0], minlength=len(starts))
        starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        ends = np.append(starts[1:], len(terms))
    if step.op == "COUNT":
        return integers(dictionary, ends - starts)
    by_columns = _by_columns(dictionary, step, terms, starts, ends)
    if by_columns is not None:
        return by_columns
    results = np.full(len(starts), _NO_RESULT, np.int32)
    fold_group = _group_folder(dictionary, step, registry)
    for n, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        try:
            results[n] = dictionary.encode(fold_group(terms[start:end]))
        except NoValue as problem:
            reasons.setdefault(n, str(problem))
    return results


def _arguments(aggregate: Aggregate) -> Iterator[tuple[Fold, Variable]]:
    for step in aggregate.folds:
        for variable in step.arguments:
            yield step, variable


def _judges(step: Fold, argument: Variable) -> bool:
    """Whether a fold takes only some values of an argument."""
    return step.op in NUMERIC_FOLDS or argument is step.by


def _accepted(kinds: NDArray[np.int8], *, moments: bool) -> NDArray[np.bool_]:
    accepted: NDArray[np.bool_] = (kinds >= L.K_INTEGER) & (kinds <= L.K_FLOAT)
    return accepted | (kinds == L.K_MOMENT) if moments else accepted


def _chosen(dictionary: Dictionary, step: Fold, terms: Ids, by: Ids, starts: Positions) -> Ids:
    """Return the term of each group where another one is greatest or least."""
    ends = np.append(starts[1:], len(terms))
    greatest = step.op == "ARGMAX"
    group = np.repeat(np.arange(len(starts)), ends - starts)
    kinds, payloads = dictionary.kinds[by], dictionary.payloads[by]
    values: Values | None = None
    if (kinds == kinds[0]).all() and int(kinds[0]) in {L.K_MOMENT, L.K_INTEGER, L.K_DOUBLE}:
        values = payloads.view(np.float64) if kinds[0] == L.K_DOUBLE else payloads
        order = np.lexsort((values, group))
        at = ends - 1 if greatest else starts
        other = np.maximum(at - 1, starts) if greatest else np.minimum(at + 1, ends - 1)
        chosen = terms[order[at]]
        # Only where another term comes at the same moment the order of terms decides.
        tied = (by[order[at]] == by[order[other]]) & (at != other)
    else:
        chosen, tied = terms[starts], np.ones(len(starts), np.bool_)
    decode = cache(dictionary.decode)
    for n in np.flatnonzero(tied).tolist():
        pairs = zip(terms[starts[n] : ends[n]].tolist(), by[starts[n] : ends[n]].tolist(), strict=True)
        chosen[n] = dictionary.encode(choose(step.op, [(decode(term), decode(key)) for term, key in pairs]))
    return chosen


def first_of_ties(dictionary: Dictionary, step: Fold, terms: Sequence[int]) -> int:
    """Return the term that a fold chooses of terms at the same moment or number."""
    return (max if step.op == "ARGMAX" else min)(terms, key=lambda n: order_key(dictionary.decode(n)))


def _by_columns(
    dictionary: Dictionary, step: Fold, terms: Ids, starts: Positions, ends: Positions
) -> Ids | None:
    """Return the results of an aggregate over numbers of one type, or None where the definition is needed."""
    kinds = dictionary.kinds[terms]
    payloads = dictionary.payloads[terms]
    values: Values
    if (kinds == L.K_INTEGER).all():
        values = payloads
    elif (kinds == L.K_DOUBLE).all():
        values = payloads.view(np.float64)
    else:
        return None
    if step.op == "MED":
        return _medians(dictionary, terms, values, starts, ends)
    if step.op in {"MIN", "MAX"}:
        ordered = _by_value(dictionary, terms, values, starts, ends)
        return ordered[starts] if step.op == "MIN" else ordered[ends - 1]
    if step.op not in {"SUM", "AVG"}:
        return None
    totals = _totals(values, starts, ends)
    if totals is None:
        return None
    if step.op == "SUM" and values is payloads:
        return integers(dictionary, totals.astype(np.int64))
    rounded = totals.astype(np.float64)
    return doubles(dictionary, rounded if step.op == "SUM" else rounded / (ends - starts))


def _totals(values: Values, starts: Positions, ends: Positions) -> Values | None:
    """Return the total of each group, exact or rounded once; None where it may overflow."""
    if values.dtype == np.int64:
        safe = float(np.abs(values.astype(np.float64)).max()) * len(values) < _SAFE_SUM
        return np.add.reduceat(values, starts) if safe else None
    numbers = values.tolist()
    try:
        totals = [fsum(numbers[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    except OverflowError:
        return None
    return np.array(totals, np.float64)


def doubles(dictionary: Dictionary, values: NDArray[np.float64]) -> Ids:
    """Return doubles as terms; minus zero is zero."""
    distinct, inverse = np.unique((values + 0.0).view(np.int64), return_inverse=True)
    return dictionary.encode_numbers(L.K_DOUBLE, distinct)[inverse]


def integers(dictionary: Dictionary, values: NDArray[np.int64]) -> Ids:
    """Return integers as terms."""
    if len(values) == 1:
        return dictionary.encode_integers(values)
    distinct, inverse = np.unique(values, return_inverse=True)
    return dictionary.encode_integers(distinct.astype(np.int64))[inverse]


def _medians(dictionary: Dictionary, terms: Ids, values: Values, starts: Positions, ends: Positions) -> Ids:
    ordered = _by_value(dictionary, terms, values, starts, ends)
    sizes = ends - starts
    middle = starts + sizes // 2
    even = np.flatnonzero(sizes % 2 == 0)
    return medians(dictionary, ordered[middle], even, ordered[middle[even] - 1])


def medians(dictionary: Dictionary, upper: Ids, even: Positions, lower: Ids) -> Ids:
    """Return the median of each group: its middle term, or the mean of two where the group is even."""
    if len(even):
        upper[even] = _means(dictionary, np.stack((lower, upper[even]), axis=1))
    return upper


def _means(dictionary: Dictionary, pairs: Ids) -> Ids:
    """Return the mean of each pair of numbers of one type."""
    means, payloads = pairs[:, 0].copy(), dictionary.payloads[pairs]
    left = pairs[:, 0] != pairs[:, 1]
    if len(pairs) and dictionary.kinds[pairs[0, 0]] == L.K_DOUBLE:
        with np.errstate(over="ignore", invalid="ignore"):
            totals = payloads.view(np.float64).sum(axis=1)
        # Half of a double is exact, unless it is too small; a total that is too large is not.
        exact = left & np.isfinite(totals) & (np.abs(totals) > _LEAST_HALVED)
        if exact.any():
            means[exact] = doubles(dictionary, totals[exact] / 2)
            left &= ~exact
    if left.any():
        distinct, inverse = np.unique(pairs[left], axis=0, return_inverse=True)
        found = [_mean(dictionary, first, second) for first, second in distinct.tolist()]
        means[left] = np.array(found, np.int32)[inverse.ravel()]
    return means


def _by_value(dictionary: Dictionary, terms: Ids, values: Values, starts: Positions, ends: Positions) -> Ids:
    """Return the terms of each group in the order of their values."""
    # Many groups share few terms: only distinct terms are compared.
    distinct, first = np.unique(terms, return_index=True)
    ranks = np.zeros(len(dictionary), np.int32)
    ranks[distinct[np.argsort(values[first])]] = np.arange(len(distinct), dtype=np.int32)
    group = np.repeat(np.arange(len(starts), dtype=np.int32), ends - starts)
    return terms[sorted_positions([group, ranks[terms]], max(len(starts), len(distinct)))]


def _mean(dictionary: Dictionary, first: int, second: int) -> int:
    return dictionary.encode(fold("MED", [dictionary.decode(first), dictionary.decode(second)], Registry()))


def _group_folder(dictionary: Dictionary, step: Fold, registry: Registry) -> Callable[[Ids], Term]:
    decode = cache(dictionary.decode)

    def by_definition(group: Ids) -> Term:
        return fold(step.op, [decode(number) for number in group.tolist()], registry)

    if not step.registered or not registry.folds[step.op].vectorised:
        return by_definition
    registered = registry.folds[step.op]

    def by_array(group: Ids) -> Term:
        kinds = dictionary.kinds[group]
        kind = TYPE_OF_KIND.get(int(kinds[0]))
        # The payload of a text has not the order of its value.
        if kind in {None, str} or (kinds != kinds[0]).any():
            return by_definition(group)
        return fold_array(registered, _ordered_column(dictionary, group, kind))

    return by_array


def _ordered_column(dictionary: Dictionary, group: Ids, kind: type) -> pa.Array:
    payloads = dictionary.payloads[group]
    order = np.argsort(payloads.view(np.float64) if kind is float else payloads)
    return arrow_column(dictionary, group[order], kind)
