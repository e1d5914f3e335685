"""Bytes in and out of files, compressed or not.

A compressed file that ends early is an error here whatever its library thinks of it; `problems.reading`
gives that error its words. What the bytes mean is left to the readers and writers of the formats.
"""

from __future__ import annotations

import bz2
import gzip
import io
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import WriteableBuffer
    from zstandard import ZstdDecompressionObj

    from zodiacedge.io.places import Place

COMPRESSIONS = ("gz", "bz2", "zst")
BLOCK = 1 << 18
# A request to another machine takes its time, however little it asks for.
_REMOTE_BLOCK = 1 << 22


@dataclass(slots=True)
class Meter:
    """How many bytes of a file, as it lies on disk, were read."""

    bytes: int = 0


class _Counted(io.RawIOBase):
    """A file that counts what is read from it."""

    def __init__(self, raw: io.RawIOBase, meter: Meter) -> None:
        self._raw = raw
        self._meter = meter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        count = self._raw.readinto(buffer) or 0
        self._meter.bytes += count
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


class _Unzstd(io.RawIOBase):
    """The content of a Zstandard file of any number of frames.

    The library's own reader takes the end of the file for the end of the data, wherever it comes.
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
        import zstandard  # noqa: PLC0415 - few loads need it, and every import costs start-up time

        frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
        try:
            self._ready = memoryview(frame.decompress(self._compressed))
        except zstandard.ZstdError as error:
            raise EOFError(str(error)) from error
        self._compressed = frame.unused_data if frame.eof else b""
        self._frame = None if frame.eof else frame


def open_source(path: Place, compression: str, meter: Meter) -> IO[bytes]:
    """Open a file for reading what it holds, decompressed; the meter counts bytes on disk."""
    block = BLOCK if isinstance(path, Path) else _REMOTE_BLOCK
    counted = io.BufferedReader(_Counted(path.open("rb", buffering=0), meter), block)
    match compression:
        case "gz":
            return _Owner(gzip.GzipFile(fileobj=counted), counted)
        case "bz2":
            return _Owner(bz2.BZ2File(counted), counted)
        case "zst":
            return io.BufferedReader(_Unzstd(counted), BLOCK)
        case _:
            return counted


class _Owner(io.BufferedReader):
    """A buffered decompressor that closes the file below it, which gzip and bz2 leave open."""

    def __init__(self, raw: gzip.GzipFile | bz2.BZ2File, below: IO[bytes]) -> None:
        super().__init__(raw, BLOCK)
        self._below = below

    def close(self) -> None:
        super().close()
        self._below.close()


@contextmanager
def open_target(path: Path, compression: str) -> Iterator[IO[bytes]]:
    """Open a new file for writing; equal content gives equal bytes, so gzip's clock stays at zero."""
    with path.open("xb") as raw:
        match compression:
            case "gz":
                with io.BufferedWriter(gzip.GzipFile("", "wb", fileobj=raw, mtime=0)) as zipped:
                    yield zipped
            case "bz2":
                with bz2.BZ2File(raw, "wb") as zipped_2:
                    yield zipped_2
            case "zst":
                import zstandard  # noqa: PLC0415 - as above

                with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as zipped_3:
                    yield zipped_3
            case _:
                yield raw
