"""Which rows of a relation somebody asks for: all, members of some classes, or the instances of an atom.

How many members each class has is known without looking, so most questions are answered by that alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.language.ast import Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.spark.storage.embedded_tables import Translation
    from zodiacedge.engine.spark.storage.files import SignedFiles
    from zodiacedge.language.ast import Atom
    from zodiacedge.terms import Term


@dataclass(frozen=True)
class RowFilter:
    """What rows must have."""

    classes: frozenset[int] | None = None
    """Of members, the classes; None for all."""
    values: Mapping[int, int] = field(default_factory=dict)
    """By column, the fingerprint that stands there."""
    equal: tuple[tuple[int, int], ...] = ()
    """Columns that have the same."""

    @classmethod
    def of(cls, atom: Atom, keys: Mapping[Term, int], *, typed: bool) -> RowFilter:
        """Return what the instances of an atom have, given the fingerprints of its terms."""
        values: dict[int, int] = {}
        equal: list[tuple[int, int]] = []
        first: dict[Variable, int] = {}
        for n, arg in enumerate(atom.args):
            if not isinstance(arg, Variable):
                values[n] = keys[arg]
            elif first.setdefault(arg, n) != n:
                equal.append((first[arg], n))
        classes = frozenset({values.pop(1)}) if typed and 1 in values else None
        return cls(classes, values, tuple(equal))

    def held(self, content: SignedFiles) -> bool:
        """Whether the counts of a content leave it open that it has such rows."""
        return content.rows > 0 and (self.classes is None or not self.classes.isdisjoint(content.classes()))

    def stored(self, content: SignedFiles) -> int:
        """How many rows its files have of the classes."""
        if self.classes is None:
            return content.stored
        return sum(part.classes.get(key, 0) for part in content.parts for key in self.classes)

    @property
    def condition(self) -> str:
        """The same in Spark's words; empty if all rows are meant."""
        tests = [f"c{n} = {key}" for n, key in self.values.items()]
        tests += [f"c{n} = c{m}" for n, m in self.equal]
        if self.classes is not None:
            tests.append(f"c1 in ({', '.join(map(str, sorted(self.classes)))})")
        return " and ".join(tests)

    def among(self, rows: Ids, translation: Translation) -> Ids:
        """Return those of some rows, all of the classes, that are meant."""
        for n, key in self.values.items():
            rows = rows[rows[:, n] == translation.ids(np.array([key], np.int64))[0]]
        for n, m in self.equal:
            rows = rows[rows[:, n] == rows[:, m]]
        return rows


ALL = RowFilter()
