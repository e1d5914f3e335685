"""Relations with their rows in the language's total order, however many rows there are.

Rows are taken as they come, of any relation. Those that memory should not hold wait on disk: each time that
so many came, they are sorted and written as one run, relation by relation. Whoever asks for a relation gets
its rows out of all runs, merged. What is written in the end is left to those who ask.
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
# So many rows are held at a time: some 20 MB.
_MOST = 1 << 16
# So many rows of a run are read at a time.
_TOGETHER = 1 << 8
_LENGTH = struct.Struct("<Q")
_Plain = str | tuple[str, ...]


class Relations(AbstractContextManager["Relations"], Mapping[Predicate, Iterable[Row]]):
    """Facts by predicate, the predicates in order; what is on disk goes with the end of the block."""

    def __init__(self, predicates: Iterable[Predicate] = (), most: int | None = None) -> None:
        """Start with relations that have no rows; `most` is how many may be held, if not the usual."""
        self._held: dict[Predicate, list[Row]] = {one: [] for one in predicates}
        self._most = _MOST if most is None else most
        # The relations whose rows are in order already.
        self._settled: set[Predicate] = set()
        self._count = 0
        self._runs: list[_Run] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __exit__(self, *_: object) -> None:
        """Remove what is on disk."""
        if self._folder:
            self._folder.cleanup()

    def add(self, facts: Iterable[Fact]) -> None:
        """Take facts; one that comes twice is there once."""
        held = self._held
        self._settled.clear()
        for fact in facts:
            predicate = fact.predicate
            args = fact.args if predicate.arity == len(fact.args) else fact.args[:1]
            rows = held.get(predicate)
            if rows is None:
                rows = held[predicate] = []
            rows.append(args)
            self._count += 1
            if self._count >= self._most:
                self._put_away()

    def __len__(self) -> int:
        """Return how many relations there are."""
        return len(self._held)

    def __iter__(self) -> Iterator[Predicate]:
        """Yield the predicates in order."""
        return iter(sorted(self._held))

    def __getitem__(self, predicate: Predicate) -> Iterable[Row]:
        """Return the rows of a relation, in order and each once; they may be asked for again."""
        held = self._held[predicate]
        if predicate not in self._settled:
            held = self._held[predicate] = _sorted(held)
            self._settled.add(predicate)
        runs = [run for run in self._runs if predicate in run.places]
        return _Merged(predicate, runs, held) if runs else held

    def _put_away(self) -> None:
        """Write what is held as a run."""
        if self._folder is None:
            with writing(Path(tempfile.gettempdir())):
                self._folder = tempfile.TemporaryDirectory(prefix="zodiacedge-")
        path = Path(self._folder.name) / str(len(self._runs))
        with writing(path), path.open("xb") as stream:
            places = {}
            for predicate, rows in self._held.items():
                if rows:
                    places[predicate] = stream.tell()
                    _write(stream, _sorted(rows))
                    rows.clear()
        self._runs.append(_Run(path, places))
        self._count = 0


@dataclass(frozen=True, slots=True)
class _Run:
    """Sorted rows of some relations in a file, and where in it each relation begins."""

    path: Path
    places: Mapping[Predicate, int]

    def rows(self, predicate: Predicate) -> Iterator[Row]:
        """Yield the rows of a relation, some of them in memory at a time."""
        place = self.places[predicate]
        while True:
            # Opened each time: there may be more runs than a process may have files open.
            with reading(self.path), self.path.open("rb") as stream:
                stream.seek(place)
                (length,) = _LENGTH.unpack(stream.read(_LENGTH.size))
                data = stream.read(length)
            if not data:
                return
            place += _LENGTH.size + length
            # This process wrote it, to a folder of its own.
            for row in marshal.loads(data):  # noqa: S302
                yield tuple(map(_term, row))


@dataclass(frozen=True, slots=True)
class _Merged:
    """The rows of a relation out of several runs, and those that are in memory."""

    predicate: Predicate
    runs: list[_Run]
    held: list[Row]

    def __iter__(self) -> Iterator[Row]:
        last: Row | None = None
        pieces = [run.rows(self.predicate) for run in self.runs]
        for row in heapq.merge(*pieces, self.held, key=_row_key) if self._several else pieces[0]:
            if row != last:
                yield row
                last = row

    @property
    def _several(self) -> bool:
        return len(self.runs) > 1 or bool(self.held)


def _sorted(rows: Iterable[Row]) -> list[Row]:
    return sorted(set(rows), key=_row_key)


def _row_key(row: Row) -> tuple[tuple[int, object, str, str, str], ...]:
    return tuple(map(order_key, row))


def _write(stream: IO[bytes], rows: list[Row]) -> None:
    """Write rows, some at a time, and an end."""
    left = iter(rows)
    while some := [tuple(map(_plain, row)) for row in islice(left, _TOGETHER)]:
        data = marshal.dumps(some)
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
