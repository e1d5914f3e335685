r"""CSV and TSV: one file is one relation, one line is one fact, one cell is one term.

CSV follows RFC 4180: a quoted cell may have commas, line breaks and doubled quotes. TSV has no quoting: a
tab or a line break in a string is an escape in a quoted term (`"a\tb"`). In both, another delimiter may be
given, blank lines are skipped, the first row determines the number of columns, one column is a class, and a
file whose only line is `true` is the true relation without columns. A file of one column whose first lines
have another delimiter in common gets a warning.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import islice
from typing import IO, TYPE_CHECKING

from zodiacedge.errors import Diagnostic
from zodiacedge.io.formats.cells import quote, read_cell, write_cell
from zodiacedge.io.formats.lines import FileReading, Line, numbered
from zodiacedge.io.problems import problem
from zodiacedge.io.sources import Format
from zodiacedge.language.ast import Fact
from zodiacedge.terms import IRI, RDF_TYPE, Term

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

TRUE = "true"
_QUOTED = re.compile(rb'"((?:[^"]|"")*+)"')
_NEEDS_CSV_QUOTES = re.compile('[,"\r\n]|^\ufeff')
_NEEDS_TSV_QUOTES = re.compile("[\t\r\n]|^\ufeff")
# An unclosed quote must not swallow the rest of a large file.
_MAX_RECORD = 1 << 20
_CACHE = 1 << 17
_DELIMITER = re.compile('[^"\r\n\ud800-\udfff]')
_DELIMITERS = {Format.CSV: ",", Format.TSV: "\t"}
# Delimiters of other programs, looked for in so many lines at the start of a file of one column.
_OTHER_DELIMITERS = b";\t|,"
_LINES_TO_COMPARE = 10
_COLUMN_NAME = re.compile(r"[^\W\d][\w .\-]*")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
# Quoted cells and IRIs may hold any delimiter.
_ENCLOSED = re.compile(rb'"(?:[^"]|"")*+"|<[^<>]*>')

Record = tuple[Line, list[str]]


def read_tabular(stream: IO[bytes], reading: FileReading) -> Iterator[list[Fact]]:
    """Yield the facts of a CSV or TSV file in batches; report bad rows."""
    file = TabularFile(numbered(stream), reading)
    if file.is_true:
        yield [Fact(reading.source.relation, ())]
    else:
        yield from _facts(file, reading)


class LineQueue:
    """Lines of a file, and those of them that were read ahead."""

    def __init__(self, lines: Iterator[Line]) -> None:
        """Start before the first line."""
        self._lines = lines
        self._ahead: deque[Line] = deque()

    @property
    def is_ahead(self) -> bool:
        """Whether lines were read ahead."""
        return bool(self._ahead)

    def take(self) -> Line | None:
        """Return the next line, or None at the end."""
        return self._ahead.popleft() if self._ahead else next(self._lines, None)

    def give_back(self, lines: Sequence[Line]) -> None:
        """Put lines back before the others."""
        self._ahead.extendleft(reversed(lines))

    def peek(self, count: int) -> list[Line]:
        """Return the first lines, at most so many, without taking them."""
        self._ahead.extend(islice(self._lines, max(count - len(self._ahead), 0)))
        return list(islice(self._ahead, count))


class TabularFile:
    """The records of a CSV or TSV file, read one by one, and what the first one says about the others.

    The lines come from outside, so that a reader may take some of them itself while `is_between` holds.
    """

    def __init__(self, lines: Iterator[Line], reading: FileReading) -> None:
        """Read the first record."""
        form = reading.source.format
        self.delimiter = reading.options.delimiter or _DELIMITERS[form]
        self.quoting = form is Format.CSV
        self.is_true = False
        """Whether the file is the true relation without columns."""
        self.width = 0
        self._reading = reading
        self._lines = LineQueue(lines)
        _compare(self._lines, reading, self.delimiter)
        records = _csv if self.quoting else _tsv
        self._records = records(self._lines, reading, self.delimiter)
        self._first: deque[Record] = deque()
        self._read_first()

    @property
    def is_between(self) -> bool:
        """Whether everything read so far was returned: the next line is the first of the next record."""
        return not (self._first or self._lines.is_ahead)

    def next_row(self) -> list[str] | None:
        """Return the cells of the next record that has the right number of them; report others."""
        while (record := self._next()) is not None:
            line, cells = record
            if len(cells) == self.width:
                return cells
            actual, expected = _columns(len(cells)), _columns(self.width)
            reason = f"{actual} where the first row has {expected}"
            self._reading.report(line.number, line.offset, reason, line.data)
        return None

    def _next(self) -> Record | None:
        return self._first.popleft() if self._first else next(self._records, None)

    def _read_first(self) -> None:
        first = next(self._records, None)
        if first is None:
            return
        self.width = len(first[1])
        if self._reading.options.header:
            return
        self._first.append(first)
        if first[1] == [TRUE] and self._reading.source.arity in {None, 0}:
            second = next(self._records, None)
            self.is_true = second is None and not self._reading.bad
            if second is not None:
                self._first.append(second)
        else:
            self._look_for_names(first[1])

    def _look_for_names(self, cells: list[str]) -> None:
        """Warn if the first row looks like names of columns: words, above a row with a number."""
        # The arity of a file of an export is known.
        if self._reading.source.arity is not None or not all(map(_COLUMN_NAME.fullmatch, cells)):
            return
        second = next(self._records, None)
        if second is not None:
            self._first.append(second)
            if len(second[1]) == len(cells) and any(map(_NUMBER.fullmatch, second[1])):
                name = self._reading.source.name
                self._reading.findings.warnings.append(_names_of_columns(name, cells))


def checked_delimiter(given: object) -> str:
    """Return a delimiter, or nothing if none is given; raise if no table can have it."""
    if isinstance(given, str) and (not given or _DELIMITER.fullmatch(given)):
        return given
    note = "give one character that is no quote and no line break: --delimiter ';', delimiter=';'"
    raise problem("I022", f"{given!r} cannot be the delimiter of a table", note)


def csv_line(terms: Sequence[Term]) -> str:
    """Return a row as a line of CSV, without the line break."""
    return csv_text([write_cell(term) for term in terms])


def csv_text(texts: Sequence[str]) -> str:
    """Return texts as a line of CSV, quoted where it is necessary."""
    cells = [f'"{c.replace(chr(34), chr(34) * 2)}"' if _NEEDS_CSV_QUOTES.search(c) else c for c in texts]
    # An empty line would be skipped.
    return '""' if cells == [""] else ",".join(cells)


def tsv_line(terms: Sequence[Term]) -> str:
    """Return a row as a line of TSV, without the line break."""
    cells = [quote(c) if _NEEDS_TSV_QUOTES.search(c) else c for c in map(write_cell, terms)]
    return '""' if cells == [""] else "\t".join(cells)


def tabular_lines(form: Format, arity: int, rows: Iterable[tuple[Term, ...]]) -> Iterator[str]:
    """Yield a relation's rows as lines of CSV or TSV."""
    line = csv_line if form is Format.CSV else tsv_line
    lines = (line(row) if arity else TRUE for row in rows)
    first = list(islice(lines, 2))
    if arity == 1 and first == [TRUE]:
        # A class with the boolean only: written in full, or it would be read as a relation without columns.
        first = ['"""true""^^xsd:boolean"' if form is Format.CSV else '"true"^^xsd:boolean']
    yield from first
    yield from lines


def _facts(file: TabularFile, reading: FileReading) -> Iterator[list[Fact]]:
    relation, size = reading.source.relation, reading.options.batch_size
    of_class = IRI(relation)
    terms: dict[str, Term] = {}
    batch: list[Fact] = []
    while (cells := file.next_row()) is not None:
        if len(terms) > _CACHE:
            terms.clear()
        args: list[Term] = []
        for cell in cells:
            term = terms.get(cell)
            if term is None:
                term = terms[cell] = read_cell(cell)
            args.append(term)
        batch.append(Fact(RDF_TYPE, (args[0], of_class)) if file.width == 1 else Fact(relation, tuple(args)))
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def _compare(lines: LineQueue, reading: FileReading, delimiter: str) -> None:
    """Warn if the first lines have one column, and another delimiter in common."""
    bare = [_ENCLOSED.sub(b"", line.data) for line in lines.peek(_LINES_TO_COMPARE) if line.data]
    # The arity of a file of an export is known.
    if bare and delimiter.encode() not in bare[0] and reading.source.arity is None:
        for code in _OTHER_DELIMITERS:
            counts = {text.count(code) for text in bare}
            if len(counts) == 1 and 0 not in counts:
                reading.findings.warnings.append(_other_delimiter(reading.source.name, chr(code)))
                break


def _other_delimiter(name: str, delimiter: str) -> Diagnostic:
    shown = "\\t" if delimiter == "\t" else delimiter
    return Diagnostic(
        "W017",
        f"{name} is read as one column, but its lines have the delimiter '{shown}' in common",
        f"name the delimiter: --delimiter '{shown}' on the command line, delimiter='{shown}' in Python",
        severity="warning",
    )


def _names_of_columns(name: str, cells: list[str]) -> Diagnostic:
    return Diagnostic(
        "W027",
        f"the first row of {name} is read as a fact, and looks like names of columns: {', '.join(cells)}",
        "leave it out: --header on the command line, header=True in Python",
        severity="warning",
    )


def _tsv(lines: LineQueue, reading: FileReading, delimiter: str) -> Iterator[Record]:
    while (line := lines.take()) is not None:
        if line.data:
            text = _decoded(line, line.data, reading)
            if text is not None:
                yield line, text.split(delimiter)


def _csv(lines: LineQueue, reading: FileReading, delimiter: str) -> Iterator[Record]:
    separator = delimiter.encode()
    while (line := lines.take()) is not None:
        if not line.data:
            continue
        if b'"' not in line.data:
            text = _decoded(line, line.data, reading)
            if text is not None:
                yield line, text.split(delimiter)
            continue
        record = [line]
        cells = _cells(line.data, separator)
        unclosed = isinstance(cells, int)
        if isinstance(cells, int):
            # A cell is not closed: the record ends where the number of quotes is even.
            record += _continued(line.data.count(b'"', cells), lines)
            cells = _cells(_joined(record), separator)
        if isinstance(cells, list):
            try:
                yield line, [c.decode() for c in cells]
            except UnicodeDecodeError as error:
                reading.report(line.number, line.offset, _not_utf8(error), line.data)
            continue
        reason = "a quote is opened and not closed" if unclosed else str(cells)
        reading.report(line.number, line.offset, reason, line.data)
        lines.give_back(record[1:])


def _continued(quotes: int, lines: LineQueue) -> Iterator[Line]:
    size = 0
    while quotes % 2 and size < _MAX_RECORD:
        line = lines.take()
        if line is None:
            return
        size += len(line.data) + 1
        quotes += line.data.count(b'"')
        yield line


def _joined(record: list[Line]) -> bytes:
    return b"".join(line.data + line.ending for line in record)[: -len(record[-1].ending) or None]


def _cells(data: bytes, separator: bytes) -> list[bytes] | str | int:
    """Return a record's cells, or an error message, or the offset of an unclosed quoted cell."""
    cells: list[bytes] = []
    at, end = 0, len(data)
    while True:
        if data[at : at + 1] == b'"':
            match = _QUOTED.match(data, at)
            if not match:
                return at
            cells.append(match.group(1).replace(b'""', b'"'))
            at = match.end()
        else:
            stop = data.find(separator, at)
            cells.append(data[at : end if stop < 0 else stop])
            at = end if stop < 0 else stop
        if at == end:
            return cells
        if not data.startswith(separator, at):
            return "text after the closing quote of a cell (inside a quoted cell, double the quotes)"
        at += len(separator)


def _decoded(line: Line, data: bytes, reading: FileReading) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        reading.report(line.number, line.offset, _not_utf8(error), line.data)
        return None


def _not_utf8(error: UnicodeDecodeError) -> str:
    return f"not UTF-8: byte 0x{error.object[error.start]:02x}"
