"""Exact sums against fractions."""

from __future__ import annotations

from fractions import Fraction
from math import fsum, inf, nan
from random import Random

import numpy as np
import pytest

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.storage.arrangement import Arrangement, NotArrangedError, Run
from zodiacedge.engine.embedded.storage.exact_sums import digits, ordered_bits, rounded, whole


def _keys(values: list[float]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return ordered_bits(np.array(values, np.float64).view(np.int64))


@pytest.mark.parametrize("seed", range(20))
def test_the_digits_of_a_double_add_up_to_it(seed: int) -> None:
    draw = Random(seed)
    size = draw.uniform(-250, 250)
    values = [draw.uniform(-1, 1) * 2.0 ** (size + draw.uniform(-20, 20)) for _ in range(50)]
    values += [0.0, -0.0, 2.0 ** int(size)]
    found = digits(L.K_DOUBLE, _keys(values))
    assert found is not None
    for n, value in enumerate(values):
        exact = sum(
            (int(words[n]) * Fraction(2) ** (32 * place) for place, words in found.items()), Fraction()
        )
        assert exact == Fraction(value)


@pytest.mark.parametrize(
    "value", [5e-324, -5e-324, 1.7976931348623157e308, 2.2250738585072014e-308, 2.0**-1022]
)
def test_the_least_and_the_greatest_doubles_have_digits(value: float) -> None:
    found = digits(L.K_DOUBLE, _keys([value]))
    assert found is not None
    assert rounded(*whole(found, 1)).tolist() == [value]


@pytest.mark.parametrize("values", [[nan], [1.0, inf], [2.0 ** (64 * n) for n in range(-7, 7)]])
def test_what_has_no_digits_at_few_places_is_refused(values: list[float]) -> None:
    assert digits(L.K_DOUBLE, _keys(values)) is None


@pytest.mark.parametrize("seed", range(12))
def test_totals_of_what_comes_and_goes_are_exact(seed: int) -> None:
    draw, arrangement = Random(seed), Arrangement(kind=L.K_DOUBLE)
    groups = np.arange(4)
    there: list[tuple[int, float]] = []
    for _ in range(30):
        come = [(draw.randrange(4), draw.gauss(0, 1) * 10 ** draw.randrange(-8, 9)) for _ in range(20)]
        gone = [there.pop(draw.randrange(len(there))) for _ in range(min(len(there), draw.randrange(22)))]
        there += come
        both = [*come, *gone]
        weights = np.array([1] * len(come) + [-1] * len(gone), np.int32)
        ids = np.zeros(len(both), np.int32)
        run = Run.of(np.array([g for g, _ in both]), _keys([v for _, v in both]), ids, weights)
        arrangement = arrangement.changed(run)
        found = rounded(*whole(arrangement.totals(groups), 4)).tolist()
        assert found == [fsum(value for group, value in there if group == one) for one in range(4)]


def test_integers_of_any_size_are_added_up() -> None:
    draw, arrangement = Random(1), Arrangement(kind=L.K_INTEGER)
    values = [draw.randrange(-(2**63), 2**63) for _ in range(100)]
    for value in values:
        one = np.ones(1, np.int32)
        run = Run.of(np.zeros(1, np.int64), np.array([value]), np.zeros(1, np.int32), one)
        arrangement = arrangement.changed(run)
    assert whole(arrangement.totals(np.zeros(1, np.int64)), 1) == ([sum(values)], 0)


def test_what_is_no_number_has_no_total() -> None:
    one = np.zeros(1, np.int64)
    run = Run.of(one, one, np.zeros(1, np.int32), np.ones(1, np.int32))
    with pytest.raises(NotArrangedError):
        Arrangement(kind=L.K_MOMENT).changed(run).totals(one)


@pytest.mark.parametrize("seed", range(6))
def test_the_weights_of_entries_are_those_of_all_runs(seed: int) -> None:
    draw, arrangement = Random(seed), Arrangement()
    model: dict[tuple[int, int, int], int] = {}
    for _ in range(30):
        entries = {(draw.randrange(3), draw.randrange(-3, 3), draw.randrange(3)) for _ in range(8)}
        columns = np.array(sorted(entries), np.int64).T.copy()
        weights = np.array([draw.choice((-1, 1, 2)) for _ in entries], np.int32)
        run = Run.of(columns[0], columns[1], columns[2].astype(np.int32), weights)
        there = [model.get(entry, 0) for entry in sorted(entries)]
        assert arrangement.weights_of(run).tolist() == there
        assert run.weights.tolist() == weights.tolist()
        for entry, weight in zip(sorted(entries), weights.tolist(), strict=True):
            model[entry] = model.get(entry, 0) + weight
        arrangement = arrangement.changed(run)
