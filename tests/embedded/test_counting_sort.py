"""Counting sort of rows with small numbers: the order is that of a comparison sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zodiacedge.engine.embedded.kernels.counting_sort import sorted_positions

_ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=60)


@given(_ROWS, st.sampled_from([10, 100_000]))
def test_the_first_column_comes_first_and_equal_rows_keep_their_places(
    rows: list[tuple[int, int]], bound: int
) -> None:
    columns = list(np.array(rows, np.int32).T)
    expected = sorted(range(len(rows)), key=lambda place: rows[place])
    assert sorted_positions(columns, bound).tolist() == expected


@pytest.mark.parametrize("rows", [1, 5_000])
def test_one_column(rows: int) -> None:
    keys = np.arange(rows, dtype=np.int32)[::-1]
    assert sorted_positions([keys], rows).tolist() == list(range(rows))[::-1]
