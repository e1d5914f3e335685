"""The input of the reader of a format, and numbered lines for line formats."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Literal, NamedTuple

from zodiacedge.io.report import BadLine, Findings, excerpt
from zodiacedge.io.streams import ByteCounter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.io.sources import SourceFile

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of `read`."""

    header: bool = False
    base: str = ""
    strict: bool = False
    delimiter: str = ""
    batch_size: int = 8192
    keep_bad_lines: int = 20


@dataclass(slots=True)
class FileReading:
    """A file being read: the file, the options, and the collector of its findings."""

    source: SourceFile
    options: ReadOptions
    findings: Findings = field(default_factory=Findings)
    counter: ByteCounter = field(default_factory=ByteCounter)
    blank_prefix: str = ""
    bad: int = 0

    def report(
        self,
        line: int,
        offset: int | None,
        reason: str,
        data: bytes = b"",
        unit: Literal["line", "row"] = "line",
    ) -> None:
        """Report a skipped line with its reason."""
        self.bad += 1
        self.findings.add(BadLine(self.source.name, line, reason, offset, excerpt(data), unit))


class Line(NamedTuple):
    """A line with its number from 1, the offset of its first byte, and its line ending."""

    number: int
    offset: int
    data: bytes
    ending: bytes = b"\n"


def numbered(stream: IO[bytes]) -> Iterator[Line]:
    r"""Yield the lines of a stream without their `\n` or `\r\n`, the first without a byte order mark."""
    offset = 0
    for number, raw in enumerate(stream, 1):
        data = raw
        if number == 1 and data.startswith(BOM):
            data = data[3:]
        ending = b"\r\n" if data.endswith(b"\r\n") else b"\n" if data.endswith(b"\n") else b""
        yield Line(number, offset, data[: len(data) - len(ending)], ending)
        offset += len(raw)
