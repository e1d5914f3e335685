"""What every reader of a format is given, and the numbered lines that line formats are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Literal, NamedTuple

from zodiacedge.io.report import BadLine, Findings, excerpt
from zodiacedge.io.streams import Meter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.io.sources import SourceFile

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read files: the options of `read`, together."""

    header: bool = False
    base: str = ""
    strict: bool = False
    batch_size: int = 8192
    keep_bad_lines: int = 20


@dataclass(slots=True)
class FileReading:
    """One file being read: what it is, how to read it, and where its findings go."""

    source: SourceFile
    options: ReadOptions
    findings: Findings = field(default_factory=Findings)
    meter: Meter = field(default_factory=Meter)
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
        """Note a line that is skipped, and why."""
        self.bad += 1
        self.findings.add(BadLine(self.source.name, line, reason, offset, excerpt(data), unit))


class Line(NamedTuple):
    """A line with its number, counted from 1, the offset of its first byte, and how it ended."""

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
