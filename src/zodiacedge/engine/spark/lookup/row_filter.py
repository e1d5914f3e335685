"""Filters on the rows of a relation: all rows, members of classes, or the instances of an atom.

The row count of each class is known without reading a file, which often decides whether to read it at all.
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
    """A conjunction of conditions on rows."""

    classes: frozenset[int] | None = None
    """For `rdf:type`, the classes; None for all."""
    values: Mapping[int, int] = field(default_factory=dict)
    """The required fingerprint of a column, by column."""
    equal: tuple[tuple[int, int], ...] = ()
    """Pairs of columns that must be equal."""

    @classmethod
    def of(cls, atom: Atom, keys: Mapping[Term, int], *, typed: bool) -> RowFilter:
        """Return the filter of the instances of an atom, given the fingerprints of its terms."""
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
        """Whether files may have matching rows, judged by their counts."""
        return content.rows > 0 and (self.classes is None or not self.classes.isdisjoint(content.classes))

    def stored(self, content: SignedFiles) -> int:
        """Return the number of stored rows of the filter's classes."""
        if self.classes is None:
            return content.stored
        return sum(file.classes.get(key, 0) for file in content.parts for key in self.classes)

    @property
    def condition(self) -> str:
        """The filter as a Spark SQL condition; empty for the filter of all rows."""
        tests = [f"c{n} = {key}" for n, key in self.values.items()]
        tests += [f"c{n} = c{m}" for n, m in self.equal]
        if self.classes is not None:
            tests.append(f"c1 in ({', '.join(map(str, sorted(self.classes)))})")
        return " and ".join(tests)

    def among(self, rows: Ids, translation: Translation) -> Ids:
        """Return the matching rows among rows of the filter's classes."""
        for n, key in self.values.items():
            rows = rows[rows[:, n] == translation.ids(np.array([key], np.int64))[0]]
        for n, m in self.equal:
            rows = rows[rows[:, n] == rows[:, m]]
        return rows


ALL = RowFilter()
