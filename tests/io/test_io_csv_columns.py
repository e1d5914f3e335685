"""Columns of CSV are what single cells are."""

from __future__ import annotations

import math
import struct
from random import Random

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from zodiacedge.io.formats.csv_columns import double_texts
from zodiacedge.terms import double

_SPECIAL = (
    *(0.0, -0.0, 1.0, -1.0, 100.0, 25.5, 0.1, 0.001, 1e-5, 1e-6, 1e-7, 1 / 3),
    *(1e15, 1e16, 1e17, 1e20, 1e21, 1e22, 2.0**53, 2.0**63, -5e-324, 1.7976931348623157e308),
)


def _any_doubles(count: int) -> list[float]:
    random = Random(7)
    drawn = (struct.unpack("<d", random.randbytes(8))[0] for _ in range(2 * count))
    readings = [random.randrange(-400_000, 900_000) / 10_000 for _ in range(count)]
    return [*readings, *(value for value in drawn if math.isfinite(value))]


@pytest.mark.parametrize(
    "values", [list(_SPECIAL), _any_doubles(5_000), [25.5, -3.0], []], ids=["special", "any", "plain", "none"]
)
def test_a_column_of_doubles_has_the_texts_of_single_doubles(values: list[float]) -> None:
    texts = double_texts(pa.array(values, pa.float64())).to_pylist()
    assert texts == [double(value).lexical for value in values]
