"""Gzip with a bound: parts are small, and what gzip did not write is refused."""

from __future__ import annotations

import gzip
from random import Random
from typing import TYPE_CHECKING

import pytest

from zodiacedge.util.gzipped import expanded, expanded_within, gzipped

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_what_was_compressed_comes_back_in_small_parts(size: int) -> None:
    data = b"".join(b"%d " % number for number in range(100_000))
    packed = gzipped(data)
    chunks = [packed[begin : begin + size] for begin in range(0, len(packed), size)]
    parts = list(expanded(chunks))
    assert b"".join(parts) == data
    assert max(map(len, parts)) <= 1 << 16
    assert gzip.decompress(packed) == data
    assert packed == gzipped(data)


def test_a_large_chunk_is_read_in_slices() -> None:
    data = Random(1).randbytes(300_000)
    packed = gzipped(data)
    assert len(packed) > 4 << 16
    assert b"".join(expanded([packed])) == data
    with pytest.raises(ValueError, match="more behind the end"):
        list(expanded([packed + b"x" * (1 << 16)]))


def test_who_stops_reading_expands_no_more() -> None:
    packed = gzipped(b" " * (64 << 20))

    def chunks() -> Iterator[bytes]:
        yield packed[: 1 << 10]
        pytest.fail("the first chunk is not read to its end")

    assert next(expanded(chunks())) == b" " * (1 << 16)


@pytest.mark.parametrize("end", [b"", b"x", gzipped(b"")])
def test_more_or_less_than_was_compressed_is_refused(end: bytes) -> None:
    packed = gzipped(b"rules")
    with pytest.raises(ValueError, match="too early" if not end else "more behind"):
        list(expanded([packed[:-1] if not end else packed + end]))
    with pytest.raises(ValueError, match="too early" if not end else "more behind"):
        list(expanded([packed[:-1]] if not end else [packed, end]))


def test_a_bound_is_kept() -> None:
    assert expanded_within(gzipped(b"12345"), 5) == b"12345"
    with pytest.raises(ValueError, match="more than 4 bytes"):
        expanded_within(gzipped(b"12345"), 4)
