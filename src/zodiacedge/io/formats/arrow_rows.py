"""Rows of terms in Arrow tables: they become Python objects when somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from zodiacedge.terms import Term

    Row = tuple[Term, ...]

_TOGETHER = 1 << 12


class ArrowRows(Sequence["Row"]):
    """The rows of a table that `formats.arrow.table_of` could have made of them."""

    def __init__(self, table: pa.Table) -> None:
        """Keep the table."""
        self.table = table
        self._rows: tuple[Row, ...] | None = None

    def all(self) -> tuple[Row, ...]:
        """Return all rows; they are converted once."""
        if self._rows is None:
            self._rows = tuple(self)
        return self._rows

    def __len__(self) -> int:
        """Return the number of rows."""
        rows: int = self.table.num_rows
        return rows

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows."""
        if self._rows is not None:
            yield from self._rows
            return
        for start in range(0, len(self), _TOGETHER):
            yield from _rows_of(self.table.slice(start, _TOGETHER))

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Row, ...]: ...

    def __getitem__(self, at: int | slice) -> Row | tuple[Row, ...]:
        """Return a row, or several, converting no others if they are next to each other."""
        if self._rows is not None:
            return self._rows[at]
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if step != 1:
                return self.all()[at]
            return tuple(_rows_of(self.table.slice(start, max(stop - start, 0))))
        number = range(len(self))[at]
        (row,) = _rows_of(self.table.slice(number, 1))
        return row

    def __eq__(self, other: object) -> bool:
        """Whether the rows are those of a tuple or of another table."""
        if isinstance(other, ArrowRows):
            return self is other or self.all() == other.all()
        return self.all() == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        """Return the hash of the rows."""
        return hash(self.all())

    def __repr__(self) -> str:
        """Return the rows."""
        return repr(self.all())


@dataclass(frozen=True, slots=True)
class ChunkedRows:
    """Rows in order that are made a table at a time."""

    count: int
    chunks: Callable[[int], Iterator[pa.Table]]
    """Makes the tables of at most so many rows; a column has one type in all of them."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.count

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows."""
        for table in self.chunks(_TOGETHER):
            yield from _rows_of(table)


def _rows_of(table: pa.Table) -> Iterator[Row]:
    from zodiacedge.io.formats.arrow import rows_of_table  # noqa: PLC0415 - loads pyarrow

    return rows_of_table(table)
