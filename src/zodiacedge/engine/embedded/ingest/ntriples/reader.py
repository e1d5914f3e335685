"""N-Triples and N-Quads, read straight into the dictionary by our own compiled parser.

`TripleReader` takes bytes as they come and gives triples of term ids; `group_triples` sorts them into
the rows of tables; `triple_batches` reads a file, compressed or not. What is accepted, what a bad line is and
what a term means agree with `io.rdf`, which reads all other RDF; only the words of a reason may differ. Rows
are not made distinct here: tables do that.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.ingest.ntriples import state as ns
from zodiacedge.engine.embedded.ingest.ntriples.datatypes import (
    DATATYPES,
    T_DECIMAL,
    T_DOUBLE,
    T_FLOAT,
    TYPE_NAMES,
    TYPE_TABLE,
)
from zodiacedge.engine.embedded.ingest.ntriples.group_by_predicate import count_groups, scatter_triples
from zodiacedge.engine.embedded.ingest.ntriples.numbers import POWERS
from zodiacedge.engine.embedded.ingest.ntriples.scan import read_lines
from zodiacedge.engine.embedded.ingest.ntriples.scan_line import CLASSES
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import MEMORY, words
from zodiacedge.io.formats.lines import BOM
from zodiacedge.io.problems import reading
from zodiacedge.io.report import BadLine, Findings, excerpt
from zodiacedge.io.sources import Format
from zodiacedge.io.streams import BLOCK, open_source
from zodiacedge.terms import IRI, RDF_TYPE, literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.io.formats.lines import FileReading


# Bytes that a kernel call reads at most, unless a single line is longer.
_PIECE = 1 << 19
_OUT_ROWS = 1 << 15
_BAD_LINES = 256
_LATER = 1 << 13
_LATER_TEXT = 1 << 18
_MORE_TERMS = 1 << 12
# More of a line than a report shows.
_EXCERPT = 1024

_REAL_KINDS = {T_DECIMAL: L.K_DECIMAL, T_DOUBLE: L.K_DOUBLE, T_FLOAT: L.K_FLOAT}

_REASONS = {
    ns.B_SUBJECT: "the subject of a triple must be an IRI or a blank node",
    ns.B_PREDICATE: "the predicate of a triple must be an IRI",
    ns.B_OBJECT: "the object of a triple must be an IRI, a blank node or a literal",
    ns.B_IRI: "an IRI may not hold this character, or is not closed",
    ns.B_STRING: "a string is opened and not closed",
    ns.B_ESCAPE: "this escape stands for no character",
    ns.B_UTF8: "not UTF-8",
    ns.B_LABEL: "a blank node has an empty label",
    ns.B_TAG: "a language tag starts with a letter and goes on, after each hyphen, with letters or digits",
    ns.B_DIRECTION: "strings with a base direction (RDF 1.2) are not supported",
    ns.B_UNTAGGED: "an rdf:langString has no language tag",
    ns.B_DATATYPE: "the datatype of a literal must be an IRI",
    ns.B_DOT: "a triple must be followed by a dot",
    ns.B_MORE: "only a single triple can stand in a line",
    ns.B_TRIPLE_TERM: "triple terms (RDF-star) are not supported",
    ns.B_GRAPH: "a graph's name must be an IRI or a blank node, and a dot must follow",
}


class Groups(NamedTuple):
    """Triples as rows of tables: (subject, object) per predicate, (member,) per class, by the name's id."""

    predicates: dict[int, Ids]
    classes: dict[int, Ids]


class TripleReader:
    """A reader of one document: feed it bytes, finish it, then take the triples.

    Any cut between two calls of `feed` will do; the last line waits until it is whole. Bad lines go to
    `findings`, and all of them are in `bad` unless the caller's own findings keep fewer.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        *,
        quads: bool,
        blank_prefix: str = "",
        file: str = "",
        findings: Findings | None = None,
    ) -> None:
        """Start a document. `blank_prefix` is put before each label of a blank node."""
        self._dictionary = dictionary
        self._file = file
        self._findings = findings if findings is not None else Findings(keep=sys.maxsize)
        self.bad_count = 0
        self._pieces: list[Ids] = []
        self._offset = 0  # of the buffer in the document
        self._filled = 0
        prefix = blank_prefix.encode()
        self._buffer = np.empty(2 * _PIECE, np.uint8)
        self._out = np.empty(3 * _OUT_ROWS, np.int32)
        self._bad = np.empty(ns.BAD_WORDS * _BAD_LINES, np.int64)
        self._later = np.empty(ns.LATER_WORDS * _LATER, np.int64)
        self._later_text = np.empty(_LATER_TEXT, np.uint8)
        self._prefix = np.frombuffer(prefix or b"\0", np.uint8)
        self._guesses = np.full(ns.GUESSES + 1, -1, np.int32)
        self._state = words(ns.STATE_WORDS)
        self._address = MEMORY.address(self._state)
        state = self._state
        for place, array in (
            (ns.N_BUFFER, self._buffer),
            (ns.N_CLASSES, CLASSES),
            (ns.N_PREFIX, self._prefix),
            (ns.N_OUT, self._out),
            (ns.N_BAD, self._bad),
            (ns.N_LATER, self._later),
            (ns.N_LATER_TEXT, self._later_text),
            (ns.N_TYPES, TYPE_TABLE),
            (ns.N_TYPE_NAMES, TYPE_NAMES),
            (ns.N_POWERS, POWERS),
            (ns.N_GUESSES, self._guesses),
        ):
            state[place] = MEMORY.address(array)
        state[ns.N_QUADS] = quads
        state[ns.N_PREFIX_LENGTH] = len(prefix)
        state[ns.N_LINE] = 1
        state[ns.N_OUT_CAPACITY] = _OUT_ROWS
        state[ns.N_BAD_CAPACITY] = _BAD_LINES
        state[ns.N_LATER_CAPACITY] = _LATER
        state[ns.N_LATER_ROOM] = _LATER_TEXT
        state[ns.N_TYPE_COUNT] = len(DATATYPES)

    def __len__(self) -> int:
        """Return the number of triples read so far and not taken yet."""
        return sum(map(len, self._pieces))

    @property
    def triples(self) -> Ids:
        """The triples read so far and not taken yet: rows of subject, predicate and object."""
        if len(self._pieces) != 1:
            whole = np.concatenate(self._pieces) if self._pieces else np.zeros((0, 3), np.int32)
            self._pieces = [whole]
        return self._pieces[0]

    @property
    def bad(self) -> list[BadLine]:
        """The bad lines that the findings keep."""
        return self._findings.kept

    def take(self) -> Ids:
        """Return the triples read so far, and drop them."""
        found = self.triples
        self._pieces = []
        return found

    def feed(self, data: bytes) -> None:
        """Read more of the document."""
        for start in range(0, len(data), _PIECE):
            stop = min(start + _PIECE, len(data))
            self._append(np.frombuffer(data, np.uint8, stop - start, start))
            cut = data.rfind(b"\n", start, stop) + 1
            if cut:
                self._read(self._filled - (stop - cut))

    def finish(self) -> None:
        """Read the last line, if no line feed ended it."""
        if self._filled:
            self._append(np.frombuffer(b"\n", np.uint8))
            self._read(self._filled)

    def _append(self, data: NDArray[np.uint8]) -> None:
        end = self._filled + len(data)
        if end > len(self._buffer):
            larger = np.empty(2 * end, np.uint8)
            larger[: self._filled] = self._buffer[: self._filled]
            self._buffer = larger
            self._state[ns.N_BUFFER] = MEMORY.address(larger)
        self._buffer[self._filled : end] = data
        self._filled = end

    def _read(self, stop: int) -> None:
        """Read the complete lines in the buffer, and move the rest to its front."""
        state, dictionary = self._state, self._dictionary
        marked = self._offset == 0 and self._buffer[: len(BOM)].tobytes() == BOM
        state[ns.N_AT] = len(BOM) if marked else 0
        state[ns.N_LINE_START] = 0
        state[ns.N_STOP] = stop
        status = -1
        while status != ns.FINISHED:
            status = read_lines(self._address, dictionary.address)
            nothing_later = not state[ns.N_LATER_COUNT]
            self._drain(marked=marked)
            if status == ns.NEEDS_TERMS:
                dictionary.reserve(max(_MORE_TERMS, len(dictionary)))
            elif status == ns.NEEDS_TEXT:
                dictionary.reserve_text(int(state[ns.N_WANTED]))
            elif status == ns.NEEDS_LATER and nothing_later:
                self._later_text = np.empty(2 * int(state[ns.N_WANTED]), np.uint8)
                state[ns.N_LATER_TEXT] = MEMORY.address(self._later_text)
                state[ns.N_LATER_ROOM] = len(self._later_text)
        rest = self._filled - stop
        self._buffer[:rest] = self._buffer[stop : self._filled]
        self._offset += stop
        self._filled = rest

    def _drain(self, *, marked: bool) -> None:
        """Take the triples and bad lines that the kernel wrote."""
        state = self._state
        if state[ns.N_LATER_COUNT]:
            self._settle_later()
        count = int(state[ns.N_OUT_COUNT])
        if count:
            self._pieces.append(self._out[: 3 * count].reshape(count, 3).copy())
            state[ns.N_OUT_COUNT] = 0
        bad = int(state[ns.N_BAD_COUNT])
        if bad:
            self._report(self._bad[: bad * ns.BAD_WORDS].reshape(bad, ns.BAD_WORDS), marked=marked)
            state[ns.N_BAD_COUNT] = 0

    def _settle_later(self) -> None:
        """Compute the literals that the kernel left to the host."""
        state, dictionary = self._state, self._dictionary
        count = int(state[ns.N_LATER_COUNT])
        text = self._later_text[: int(state[ns.N_LATER_END])].tobytes()
        records = self._later[: count * ns.LATER_WORDS].reshape(count, ns.LATER_WORDS)
        numbers: list[tuple[int, int, float]] = []
        for row, datatype, start, end, checked in records.tolist():
            kind = _REAL_KINDS.get(datatype) if checked else None
            # The kernel has checked that it is a number, so Python parses it as XSD does.
            value = float(text[start:end]) if kind is not None else math.inf
            if kind is not None and math.isfinite(value):
                numbers.append((row, kind, value + 0.0))
            else:
                term = literal(text[start:end].decode(), DATATYPES[datatype])
                self._out[3 * row + 2] = dictionary.encode(term)
        if numbers:
            rows, kinds, values = zip(*numbers, strict=True)
            bits = np.array(values, np.float64).view(np.int64)
            self._out[3 * np.array(rows) + 2] = dictionary.encode_numbers(np.array(kinds, np.int8), bits)
        state[ns.N_LATER_COUNT] = 0
        state[ns.N_LATER_END] = 0

    def _report(self, records: NDArray[np.int64], *, marked: bool) -> None:
        for line, start, part, place, reason in records.tolist():
            # The byte order mark is no part of the line.
            first = start + len(BOM) if marked and start == 0 else start
            text = self._buffer[first : first + _EXCERPT].tobytes().partition(b"\n")[0]
            column = len(self._buffer[part:place].tobytes().decode("utf-8", "replace")) + 1
            why = f"column {column}: {_REASONS[reason]}"
            self.bad_count += 1
            self._findings.add(BadLine(self._file, line, why, self._offset + start, excerpt(text)))


def group_triples(triples: Ids, dictionary: Dictionary) -> Groups:
    """Return triples as rows of tables, in the order given; those of `rdf:type` as members of classes."""
    total = len(triples)
    terms = len(dictionary) + 1
    membership = dictionary.encode(IRI(RDF_TYPE))
    flat = np.ascontiguousarray(triples, np.int32).reshape(-1)
    # Untouched memory costs nothing, so both arrays may be larger than needed.
    ranks = np.zeros(2 * terms, np.int32)
    groups = np.empty(total, np.int64)
    sizes = np.empty(total, np.int64)
    rows = np.empty(2 * total, np.int32)
    count = 0
    if total:
        given = (MEMORY.address(flat), total, membership, terms, MEMORY.address(ranks))
        count = int(count_groups(*given, MEMORY.address(groups), MEMORY.address(sizes)))
    columns = np.where(groups[:count] < terms, 2, 1)
    ends = np.cumsum(sizes[:count] * columns)
    places = ends - sizes[:count] * columns
    found = Groups({}, {})
    if total:
        scatter_triples(*given, MEMORY.address(places), MEMORY.address(rows))
    start = 0
    for group, end in zip(groups[:count].tolist(), ends.tolist(), strict=True):
        if group < terms:
            found.predicates[group] = rows[start:end].reshape(-1, 2)
        else:
            found.classes[group - terms] = rows[start:end].reshape(-1, 1)
        start = end
    return found


def triple_batches(one: FileReading, dictionary: Dictionary) -> Iterator[Ids]:
    """Yield the triples of a file of N-Triples or N-Quads, in batches of at least the options' size.

    The counterpart of `io.rdf.read_rdf`: bad lines are counted in `one` and go to its findings.
    """
    source = one.source
    reader = TripleReader(
        dictionary,
        quads=source.format is Format.NQUADS,
        blank_prefix=one.blank_prefix,
        file=source.name,
        findings=one.findings,
    )
    before = one.bad
    with reading(source.name), open_source(source.path, source.compression, one.counter) as stream:
        while block := stream.read(BLOCK):
            reader.feed(block)
            one.bad = before + reader.bad_count
            if len(reader) >= one.options.batch_size:
                yield reader.take()
        reader.finish()
    one.bad = before + reader.bad_count
    if len(reader):
        yield reader.take()
