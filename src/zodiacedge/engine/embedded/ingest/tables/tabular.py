"""Files of CSV and TSV, read straight into the dictionary.

What is accepted, what a bad line is and what a cell means are those of `io.formats.tabular`: it reads the
first record, and every record that the kernels leave to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.ingest.ntriples import state as ns
from zodiacedge.engine.embedded.ingest.ntriples.numbers import POWERS
from zodiacedge.engine.embedded.ingest.tables import state as cs
from zodiacedge.engine.embedded.ingest.tables.scan import read_rows
from zodiacedge.engine.embedded.kernels.jit import MEMORY, words
from zodiacedge.io.formats.cells import read_cell
from zodiacedge.io.formats.lines import BOM, Line
from zodiacedge.io.formats.tabular import TabularFile
from zodiacedge.io.problems import reading
from zodiacedge.io.streams import BLOCK, open_source
from zodiacedge.language.ast import Fact

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.io.formats.lines import FileReading

_OUT_IDS = 1 << 16
_LATER = 1 << 13
_LATER_TEXT = 1 << 18
_SCRATCH = 1 << 16
_MORE_TERMS = 1 << 12
_LINE_FEED = b"\n"
# Rows that the host has read are interned together.
_HOST_ROWS = 1 << 10


def row_batches(file: FileReading, dictionary: Dictionary) -> Iterator[list[Fact] | Ids]:
    """Yield the rows of a file of CSV or TSV, in batches; or the fact that the file is."""
    source = file.source
    with reading(source.name), open_source(source.path, source.compression, file.counter) as stream:
        lines = _Lines(stream)
        table = TabularFile(lines, file)
        if table.is_true:
            yield [Fact(source.relation, ())]
        elif table.width:
            yield from _RowReader(dictionary, lines, table).batches()


def read_nothing(dictionary: Dictionary) -> None:
    """Load the kernel that reads lines, and read none."""
    state = words(cs.STATE_WORDS)
    read_rows(MEMORY.address(state), dictionary.address, MEMORY.address(number_state()))


def number_state() -> NDArray[np.int64]:
    """Return a descriptor for the kernels of numbers."""
    state = words(ns.STATE_WORDS)
    state[ns.N_POWERS] = MEMORY.address(POWERS)
    return state


class _Lines:
    """The lines of a stream: the host iterates over them, and the kernels take several from the buffer."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._at_end = False
        self._offset = 0  # of the buffer in the file
        self.number = 1
        self.buffer = b""
        self.at = 0

    def __iter__(self) -> Iterator[Line]:
        return self

    def __next__(self) -> Line:
        """Return the next line, as `io.formats.lines.numbered` does."""
        while (end := self.buffer.find(_LINE_FEED, self.at) + 1) == 0 and not self._at_end:
            self._fill()
        end = end or len(self.buffer)
        if end == self.at:
            raise StopIteration
        raw = self.buffer[self.at : end]
        data = raw[len(BOM) :] if self.number == 1 and raw.startswith(BOM) else raw
        ending = b"\r\n" if data.endswith(b"\r\n") else _LINE_FEED if data.endswith(_LINE_FEED) else b""
        line = Line(self.number, self._offset + self.at, data[: len(data) - len(ending)], ending)
        self.at = end
        self.number += 1
        return line

    def stop(self) -> int:
        """Return the end of the last whole line in the buffer; read more bytes if it has none left."""
        while (stop := self.buffer.rfind(_LINE_FEED) + 1) <= self.at and not self._at_end:
            self._fill()
        return max(stop, self.at)

    def _fill(self) -> None:
        rest = self.buffer[self.at :]
        # A line that is longer than a block is not copied for each of its blocks.
        more = self._stream.read(max(BLOCK, len(rest)))
        self._at_end = not more
        self._offset += self.at
        self.buffer = rest + more
        self.at = 0


class _RowReader:
    """Reads the rows of one file."""

    def __init__(self, dictionary: Dictionary, lines: _Lines, table: TabularFile) -> None:
        self._dictionary = dictionary
        self._lines = lines
        self._table = table
        width = table.width
        separator = table.delimiter.encode()
        # The kernels know delimiters of one byte.
        self._by_kernels = len(separator) == 1
        self._numbers = number_state()
        self._spans = words(cs.SPAN_WORDS * width)
        self._scratch = np.empty(_SCRATCH, np.uint8)
        self._out = np.empty(max(_OUT_IDS // width, 1) * width, np.int32)
        self._later = words(cs.LATER_WORDS * _LATER)
        self._later_text = np.empty(_LATER_TEXT, np.uint8)
        state = self._state = words(cs.STATE_WORDS)
        state[cs.C_SEPARATOR] = separator[0]
        state[cs.C_QUOTING] = table.quoting
        state[cs.C_WIDTH] = width
        state[cs.C_SPANS] = MEMORY.address(self._spans)
        state[cs.C_SCRATCH] = MEMORY.address(self._scratch)
        state[cs.C_SCRATCH_SIZE] = _SCRATCH
        state[cs.C_OUT] = MEMORY.address(self._out)
        state[cs.C_OUT_CAPACITY] = len(self._out) // width
        state[cs.C_LATER] = MEMORY.address(self._later)
        state[cs.C_LATER_CAPACITY] = _LATER
        state[cs.C_LATER_TEXT] = MEMORY.address(self._later_text)
        state[cs.C_LATER_ROOM] = _LATER_TEXT

    def batches(self) -> Iterator[Ids]:
        """Yield rows: those that the kernels read, and those that the host reads."""
        host: list[list[str]] = []
        while True:
            if self._by_kernels and self._table.is_between:
                yield from self._read_lines()
            row = self._table.next_row()
            if row is None:
                break
            host.append(row)
            if len(host) == _HOST_ROWS:
                yield self._host_rows(host)
                host = []
        if host:
            yield self._host_rows(host)

    def _host_rows(self, rows: list[list[str]]) -> Ids:
        ids = self._dictionary.encode_all(read_cell(cell) for row in rows for cell in row)
        return ids.reshape(len(rows), self._table.width)

    def _read_lines(self) -> Iterator[Ids]:
        """Read lines until the host must read one, or until the end of the file."""
        lines, state, dictionary = self._lines, self._state, self._dictionary
        status = cs.FINISHED
        while status != cs.HARD and (stop := lines.stop()) > lines.at:
            data = np.frombuffer(lines.buffer, np.uint8)
            state[cs.C_BUFFER] = MEMORY.address(data)
            state[cs.C_AT] = lines.at
            state[cs.C_STOP] = stop
            state[cs.C_LINE] = lines.number
            status = -1
            while status not in {cs.FINISHED, cs.HARD}:
                status = read_rows(MEMORY.address(state), dictionary.address, MEMORY.address(self._numbers))
                if status == cs.NEEDS_TERMS:
                    dictionary.reserve(max(_MORE_TERMS, len(dictionary), self._table.width))
                elif status == cs.NEEDS_TEXT:
                    dictionary.reserve_text(int(state[cs.C_WANTED]))
                if status != cs.NEEDS_TERMS and status != cs.NEEDS_TEXT and state[cs.C_OUT_COUNT]:
                    yield self._drained()
            lines.at = int(state[cs.C_AT])
            lines.number = int(state[cs.C_LINE])

    def _drained(self) -> Ids:
        """Return the rows that the kernel wrote, after the host has read the cells that were left to it."""
        state, width = self._state, self._table.width
        count = int(state[cs.C_OUT_COUNT])
        ids = self._out[: count * width].copy()
        later = int(state[cs.C_LATER_COUNT])
        if later:
            text = self._later_text[: int(state[cs.C_LATER_END])].tobytes()
            records = self._later[: later * cs.LATER_WORDS].reshape(later, cs.LATER_WORDS)
            cells = [text[start:end] for start, end in records[:, 1:].tolist()]
            distinct = list(dict.fromkeys(cells))
            found = self._dictionary.encode_all(read_cell(cell.decode()) for cell in distinct)
            numbers = dict(zip(distinct, found.tolist(), strict=True))
            ids[records[:, 0]] = [numbers[cell] for cell in cells]
        state[cs.C_OUT_COUNT] = state[cs.C_LATER_COUNT] = state[cs.C_LATER_END] = 0
        return ids.reshape(count, width)
