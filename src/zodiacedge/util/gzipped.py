"""Gzip whose expansion is bounded: it comes in small parts, so that a reader stops where it likes."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_PART = 1 << 16


def gzipped(data: bytes) -> bytes:
    """Compress some bytes; equal bytes give equal results."""
    return gzip.compress(data, 9, mtime=0)


def expanded(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Expand compressed bytes, 64 KiB at a time at most; raise ValueError if they are not what gzip wrote."""
    stream = zlib.decompressobj(_GZIP_WINDOW)
    for piece in _slices(chunks):
        rest = piece
        while rest:
            try:
                part = stream.decompress(rest, _PART)
            except zlib.error as error:
                raise ValueError(f"it cannot be expanded: {error}") from error
            if part:
                yield part
            rest = stream.unconsumed_tail or stream.unused_data
            if rest and stream.eof:
                raise ValueError("there is more behind the end of the compressed data")
    if not stream.eof:
        raise ValueError("the compressed data ends too early")


def _slices(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield small slices: zlib copies what it has not read for each part that it gives."""
    for chunk in chunks:
        for first in range(0, len(chunk), _PART):
            yield chunk[first : first + _PART]


def expanded_within(data: bytes, most: int) -> bytes:
    """Expand compressed bytes; raise ValueError if they are more than so many, or not what gzip wrote."""
    whole = bytearray()
    for part in expanded([data]):
        whole += part
        if len(whole) > most:
            raise ValueError(f"it has more than {most:,} bytes when it is expanded")
    return bytes(whole)
