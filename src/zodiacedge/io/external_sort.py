"""External merge sort: relations with their rows in the language's total order.

Rows of any relation are added in any order. When a limit is reached, the rows in memory are sorted and
written to disk as one run, relation by relation. The rows of a relation are read by merging all runs.
"""

from __future__ import annotations

import heapq
import marshal
import struct
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.io.problems import reading, writing
from zodiacedge.language.ast import Predicate
from zodiacedge.terms import IRI, BlankNode, Literal, Term, order_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from zodiacedge.language.ast import Fact

Row = tuple[Term, ...]
# Rows in memory: about 20 MB.
_MAX_ROWS = 1 << 16
# Rows of a run that are read at a time.
_BLOCK_ROWS = 1 << 8
_LENGTH = struct.Struct("<Q")
_Plain = str | tuple[str, ...]


class Relations(AbstractContextManager["Relations"], Mapping[Predicate, Iterable[Row]]):
    """Facts by predicate, the predicates in order; the runs on disk are deleted at the end of the block."""

    def __init__(self, predicates: Iterable[Predicate] = (), most: int | None = None) -> None:
        """Start with empty relations; `most` is the number of rows in memory, if not the default."""
        self._held: dict[Predicate, list[Row]] = {predicate: [] for predicate in predicates}
        self._most = _MAX_ROWS if most is None else most
        # The relations whose rows in memory are sorted.
        self._sorted_in_memory: set[Predicate] = set()
        self._count = 0
        self._runs: list[_Run] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __exit__(self, *_: object) -> None:
        """Delete the runs."""
        if self._folder:
            self._folder.cleanup()

    def add(self, facts: Iterable[Fact]) -> None:
        """Add facts; duplicates are removed."""
        held = self._held
        self._sorted_in_memory.clear()
        for fact in facts:
            predicate = fact.predicate
            args = fact.args if predicate.arity == len(fact.args) else fact.args[:1]
            rows = held.get(predicate)
            if rows is None:
                rows = held[predicate] = []
            rows.append(args)
            self._count += 1
            if self._count >= self._most:
                self._spill()

    def __len__(self) -> int:
        """Return the number of relations."""
        return len(self._held)

    def __iter__(self) -> Iterator[Predicate]:
        """Yield the predicates in order."""
        return iter(sorted(self._held))

    def __getitem__(self, predicate: Predicate) -> Iterable[Row]:
        """Return the distinct rows of a relation, in order; they can be iterated repeatedly."""
        held = self._held[predicate]
        if predicate not in self._sorted_in_memory:
            held = self._held[predicate] = _sorted(held)
            self._sorted_in_memory.add(predicate)
        runs = [run for run in self._runs if predicate in run.offsets]
        return _Merged(predicate, runs, held) if runs else held

    def _spill(self) -> None:
        """Write the rows in memory as a run."""
        if self._folder is None:
            with writing(Path(tempfile.gettempdir())):
                self._folder = tempfile.TemporaryDirectory(prefix="zodiacedge-")
        path = Path(self._folder.name) / str(len(self._runs))
        with writing(path), path.open("xb") as stream:
            offsets = {}
            for predicate, rows in self._held.items():
                if rows:
                    offsets[predicate] = stream.tell()
                    _write(stream, _sorted(rows))
                    rows.clear()
        self._runs.append(_Run(path, offsets))
        self._count = 0


@dataclass(frozen=True, slots=True)
class _Run:
    """A file of sorted rows, and the offset of each relation."""

    path: Path
    offsets: Mapping[Predicate, int]

    def rows(self, predicate: Predicate) -> Iterator[Row]:
        """Yield the rows of a relation, reading them block by block."""
        offset = self.offsets[predicate]
        while True:
            # Opened for each block: there may be more runs than open files are allowed.
            with reading(self.path), self.path.open("rb") as stream:
                stream.seek(offset)
                (length,) = _LENGTH.unpack(stream.read(_LENGTH.size))
                data = stream.read(length)
            if not data:
                return
            offset += _LENGTH.size + length
            # This process wrote the file, to its own folder.
            for row in marshal.loads(data):  # noqa: S302
                yield tuple(map(_term, row))


@dataclass(frozen=True, slots=True)
class _Merged:
    """The rows of a relation: those of several runs and those in memory, merged."""

    predicate: Predicate
    runs: list[_Run]
    held: list[Row]

    def __iter__(self) -> Iterator[Row]:
        last: Row | None = None
        runs = [run.rows(self.predicate) for run in self.runs]
        for row in heapq.merge(*runs, self.held, key=_row_key) if self._needs_merge else runs[0]:
            if row != last:
                yield row
                last = row

    @property
    def _needs_merge(self) -> bool:
        return len(self.runs) > 1 or bool(self.held)


def _sorted(rows: Iterable[Row]) -> list[Row]:
    return sorted(set(rows), key=_row_key)


def _row_key(row: Row) -> tuple[tuple[int, object, str, str, str], ...]:
    return tuple(map(order_key, row))


def _write(stream: IO[bytes], rows: list[Row]) -> None:
    """Write rows in blocks, and an end marker."""
    remaining = iter(rows)
    while block := [tuple(map(_plain, row)) for row in islice(remaining, _BLOCK_ROWS)]:
        data = marshal.dumps(block)
        stream.write(_LENGTH.pack(len(data)) + data)
    stream.write(_LENGTH.pack(0))


def _plain(term: Term) -> _Plain:
    match term:
        case IRI(value=value):
            return value
        case BlankNode(label=label):
            return (label,)
        case Literal(lexical=lexical, datatype=datatype, language=language):
            return lexical, datatype, language


def _term(plain: _Plain) -> Term:
    if isinstance(plain, str):
        return IRI(plain)
    return Literal(*plain) if len(plain) > 1 else BlankNode(*plain)
