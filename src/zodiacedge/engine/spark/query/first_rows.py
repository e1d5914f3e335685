"""The first rows that an atom matches: looked up by its constants, or read from the beginning of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.spark.lookup.by_key import RowSlice, TooManyError
from zodiacedge.engine.spark.query.bindings import Bindings, rows_of
from zodiacedge.engine.spark.storage.files import Relation, read_batches
from zodiacedge.language.ast import Variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from zodiacedge.engine.spark.query.bindings import Rows
    from zodiacedge.engine.spark.storage.files import SignedFiles
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.language.ast import Atom
    from zodiacedge.terms import Term

# So many rows of a file are read at once.
_TOGETHER = 1 << 12
# So many times the rows that the driver reads otherwise may be read: most of them may not match.
_SCANNED = 4


class FirstRows:
    """The bindings of an atom's variables, some rows at a time."""

    def __init__(
        self,
        workspace: Workspace,
        atom: Atom,
        contents: Sequence[SignedFiles],
        keys: Mapping[Term, int],
        yield_point: YieldPoint,
    ) -> None:
        """Take an atom, the files of all owners of its relation, and the fingerprints of its terms."""
        self.atom = atom
        self.certain = all(content.plain for content in contents)
        """Whether no row among them was deleted later."""
        self._keys = keys
        self._relation = Relation.of(atom)
        self._contents = contents
        self._constants = {n: keys[arg] for n, arg in enumerate(atom.args) if not isinstance(arg, Variable)}
        self._slice = RowSlice(
            workspace, yield_point, lambda _: contents, lambda _: self._relation.width, whole=False
        )
        self._left = _SCANNED * workspace.options.driver_rows
        self._waiting = Bindings.of(atom, rows_of((), self._relation.width), keys)
        self._pieces: Iterator[Rows] | None = None
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether there are no more rows."""
        return self._ended and not len(self._waiting)

    @property
    def spent(self) -> bool:
        """Whether reading on would be too much for the driver."""
        return self._left <= 0 and not len(self._waiting)

    def read(self, count: int) -> Bindings:
        """Return the next bindings: so many, or fewer if there are no more or the driver has read enough."""
        if self._pieces is None:
            self._pieces = self._looked_up(count) or self._scanned()
        found, rows = [self._waiting], len(self._waiting)
        while rows < count and self._left > 0 and not self._ended:
            piece = next(self._pieces, None)
            if piece is None:
                self._ended = True
                break
            self._left -= len(piece)
            found.append(Bindings.of(self.atom, piece, self._keys))
            rows += len(found[-1])
        known = Bindings(self._waiting.variables, np.concatenate([each.rows for each in found]))
        self._waiting = known.after(count)
        return known.first(count)

    def _looked_up(self, most: int) -> Iterator[Rows] | None:
        """Look the rows up by the constants of the atom; None if it has none or too many rows match."""
        columns, values = tuple(self._constants), tuple(self._constants.values())
        # A class has too many members.
        if not columns or (self._relation.typed and columns == (1,)):
            return None
        try:
            self._slice.fetch({self._relation: {columns: {values}}}, most)
        except TooManyError:
            return None
        self.certain = True
        rows = set().union(*map(self._slice.held, self._contents))
        return iter([rows_of(rows, self._relation.width)])

    def _scanned(self) -> Iterator[Rows]:
        """Yield the rows of files from their beginning, but for parts that cannot match."""
        class_ = self._constants.get(1) if self._relation.typed else None
        for content in self._contents:
            for file in content.plus:
                if class_ is None or not file.classes or class_ in file.classes:
                    for batch in read_batches(file.path, _TOGETHER, self._constants):
                        yield np.stack([column.to_numpy() for column in batch.columns], axis=1)
