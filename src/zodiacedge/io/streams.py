"""Byte streams of files, compressed or not.

A truncated compressed file is an error, whatever its library does; `problems.reading` converts it to a
problem. The content is left to the readers and writers of the formats.
"""

from __future__ import annotations

import bz2
import gzip
import io
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from zodiacedge.extras import need

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import WriteableBuffer
    from zstandard import ZstdDecompressionObj

    from zodiacedge.io.paths import AnyPath

COMPRESSIONS = ("gz", "bz2", "zst")
BLOCK = 1 << 18
# The latency of a remote request is high, so requests are large.
_REMOTE_BLOCK = 1 << 22


@dataclass(slots=True)
class ByteCounter:
    """Counter of the bytes that were read of a file, before decompression."""

    bytes: int = 0


class _CountingFile(io.RawIOBase):
    """A file that counts the bytes read."""

    def __init__(self, raw: io.RawIOBase, counter: ByteCounter) -> None:
        self._raw = raw
        self._counter = counter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        count = self._raw.readinto(buffer) or 0
        self._counter.bytes += count
        return count

    def seekable(self) -> bool:
        return self._raw.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def close(self) -> None:
        self._raw.close()
        super().close()


class _ZstdReader(io.RawIOBase):
    """The content of a Zstandard file with any number of frames.

    The library's own reader does not notice a truncated file.
    """

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._frame: ZstdDecompressionObj | None = None
        self._compressed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        while not self._ready:
            if not self._compressed:
                self._compressed = self._source.read(1 << 16)
            if not self._compressed:
                if self._frame:
                    raise EOFError("the last frame is incomplete")
                return 0
            self._decompress()
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._ready))
        target[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        self._source.close()
        super().close()

    def _decompress(self) -> None:
        need("compression", "a .zst file")
        import zstandard  # noqa: PLC0415 - few loads need it, and every import costs start-up time

        frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
        try:
            self._ready = memoryview(frame.decompress(self._compressed))
        except zstandard.ZstdError as error:
            raise EOFError(str(error)) from error
        self._compressed = frame.unused_data if frame.eof else b""
        self._frame = None if frame.eof else frame


def open_source(path: AnyPath, compression: str, counter: ByteCounter) -> IO[bytes]:
    """Open a file for reading its decompressed content; the counter counts bytes on disk."""
    block = BLOCK if isinstance(path, Path) else _REMOTE_BLOCK
    counted = io.BufferedReader(_CountingFile(path.open("rb", buffering=0), counter), block)
    match compression:
        case "gz":
            return _OwningReader(gzip.GzipFile(fileobj=counted), counted)
        case "bz2":
            return _OwningReader(bz2.BZ2File(counted), counted)
        case "zst":
            return io.BufferedReader(_ZstdReader(counted), BLOCK)
        case _:
            return counted


class _OwningReader(io.BufferedReader):
    """A buffered decompressor that closes the file below it, which gzip and bz2 leave open."""

    def __init__(self, raw: gzip.GzipFile | bz2.BZ2File, file: IO[bytes]) -> None:
        super().__init__(raw, BLOCK)
        self._file = file

    def close(self) -> None:
        super().close()
        self._file.close()


@contextmanager
def open_target(path: Path, compression: str) -> Iterator[IO[bytes]]:
    """Open a new file for writing; gzip's timestamp is zero, so equal content gives equal bytes."""
    with path.open("xb") as raw:
        match compression:
            case "gz":
                with io.BufferedWriter(gzip.GzipFile("", "wb", fileobj=raw, mtime=0)) as zipped:
                    yield zipped
            case "bz2":
                with bz2.BZ2File(raw, "wb") as zipped_2:
                    yield zipped_2
            case "zst":
                need("compression", "a .zst file")
                import zstandard  # noqa: PLC0415 - as above

                with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as zipped_3:
                    yield zipped_3
            case _:
                yield raw
