"""Answers to a query from some rows of one atom, followed through the other atoms by look-ups.

Some of the rows that positive atoms read give some of the answers, as long as all rows are known that negated
atoms may match. So the driver reads a few rows of the atom with the fewest (`first_rows`), looks up by key
what they join with, one atom after the other, and lets the embedded engine evaluate the rest of the body on
the bindings. Then it goes on with more rows. Atoms that share no variable with others start by themselves.

Everything is done on fingerprints; terms are read where values are compared or computed, and for answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Answer
from zodiacedge.engine.spark.evaluate.inputs import inputs_of, read_by
from zodiacedge.engine.spark.evaluate.rule_plan import needed_columns
from zodiacedge.engine.spark.lookup.by_key import RowSlice, SliceReader, TooManyError
from zodiacedge.engine.spark.query import one_task
from zodiacedge.engine.spark.query.bindings import Bindings, rows_of
from zodiacedge.engine.spark.query.first_rows import FirstRows
from zodiacedge.engine.spark.storage.embedded_tables import mentioned
from zodiacedge.engine.spark.storage.files import Relation, held
from zodiacedge.language.ast import Atom, Variable, body_atoms, variables
from zodiacedge.plan.order import expected

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from zodiacedge.engine.api import Settings
    from zodiacedge.engine.spark.lookup.by_key import Source
    from zodiacedge.engine.spark.storage.files import SignedFiles
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.language.ast import Query

# So many rows are followed at first, then so many times as many, until they are so many in all.
_FIRST = 64
_GROWTH = 4
_MOST_FOLLOWED = 1 << 14
# Where too many rows match the bindings so far, one in so many of them is followed further.
_REDUCTION = 8


class FollowedRows:
    """The answers to a query without aggregates, from more and more rows."""

    def __init__(self, version: SparkVersion, query: Query, limit: int, settings: Settings) -> None:
        """Take a resolved query, and how many rows are enough."""
        self.complete = False
        """Whether the answers yielded so far are all."""
        self.version = version
        self.query = query
        self.settings = settings
        self.keys = version.workspace.keys([*mentioned(query.body), *mentioned(query.columns)])
        self.joined = [c for c in query.body if isinstance(c, Atom) and any(variables(c))]
        """The atoms whose rows are joined."""
        self.checked = tuple(c for c in query.body if c not in self.joined)
        """The conjuncts that bindings are checked by."""
        self._limit = limit
        self._contents = held(version.owners.values())

    def contents(self, source: Source) -> Sequence[SignedFiles]:
        """Return the files of a relation, of all owners."""
        return self._contents.get(source, ()) if isinstance(source, Relation) else ()

    def answers(self) -> Iterator[Answer]:
        """Yield the answers from some rows, then from more, until there are no more or it takes too much."""
        starts = self._starts()
        if not starts:
            try:
                yield self._part(Bindings.none(), ()).answer()
            except TooManyError:
                return
            self.complete = True
            return
        first, *others = starts
        most = self.version.workspace.options.driver_rows
        apart = Bindings.none()
        for other in others:
            apart = apart.joined(other.read(_FIRST), most)
        complete = all(other.ended for other in others) and len(apart) < most
        size, followed = max(_FIRST, self._limit), 0
        while len(apart) and followed < _MOST_FOLLOWED and not first.spent:
            bindings = apart.joined(first.read(size), most)
            part = self._part(bindings, starts)
            try:
                yield part.answer()
            except TooManyError:
                return
            complete = complete and part.whole and len(bindings) < most
            if first.ended:
                self.complete = complete
                return
            followed += size
            size *= _GROWTH
        self.complete = complete and not len(apart)

    def _starts(self) -> list[FirstRows]:
        """Return the first rows of an atom of each group of atoms that shares no variable with others."""
        workspace, yield_point = self.version.workspace, self.settings.yield_point
        starts: list[FirstRows] = []
        bound: set[Variable] = set()
        left = list(self.joined)
        while left:
            linked = [atom for atom in left if not bound.isdisjoint(variables(atom))]
            atom = linked[0] if linked else min(left, key=lambda each: self.expected(each, ()))
            if not linked:
                contents = self.contents(Relation.of(atom))
                starts.append(FirstRows(workspace, atom, contents, self.keys, yield_point))
            left.remove(atom)
            bound.update(variables(atom))
        return starts

    def _part(self, bindings: Bindings, starts: Sequence[FirstRows]) -> _Part:
        matched = [start.atom for start in starts if start.certain]
        return _Part(self, bindings, [atom for atom in self.joined if atom not in matched])

    def expected(self, atom: Atom, bound: Collection[Variable]) -> float:
        """Estimate how many rows match an atom whose constants and these variables have values."""
        relation, class_ = read_by(atom, self.keys)
        contents = self.contents(relation)
        rows = sum(c.rows if class_ is None else c.classes.get(class_, 0) for c in contents)
        known = (n for n, arg in enumerate(atom.args) if arg in bound or not isinstance(arg, Variable))
        return expected(rows, atom, tuple(known))


class _Part:
    """The answers from some bindings, with the rows that are looked up for them."""

    def __init__(self, search: FollowedRows, bindings: Bindings, left: list[Atom]) -> None:
        """Take bindings, and the atoms that they are still to be joined with."""
        self.whole = True
        """Whether no binding was left out."""
        self._search = search
        self._bindings = bindings
        self._left = left
        self._most = search.version.workspace.options.driver_rows
        self._slice = RowSlice(
            search.version.workspace, search.settings.yield_point, search.contents, _width, whole=False
        )

    def answer(self) -> Answer:
        """Join, and check what was joined; raise TooManyError if too many rows match a single binding."""
        search = self._search
        while self._left and len(self._bindings):
            atom = min(self._left, key=lambda each: search.expected(each, self._bindings.variables))
            self._left.remove(atom)
            self._fetch(atom)
            rows = set().union(*map(self._slice.held, search.contents(Relation.of(atom))))
            matched = Bindings.of(atom, rows_of(rows, len(atom.args)), search.keys)
            self._bindings = self._bindings.joined(matched, self._most)
            self.whole = self.whole and len(self._bindings) < self._most
        if not len(self._bindings):
            return Answer(())
        for atom in body_atoms(search.checked):
            self._fetch(atom)
        return self._checked()

    def _fetch(self, atom: Atom) -> None:
        """Look up the rows that an atom matches under the bindings; if they are too many, under fewer."""
        names = tuple(dict.fromkeys(v for v in variables(atom) if v in self._bindings.variables))
        columns = tuple(n for n, arg in enumerate(atom.args) if arg in names or not isinstance(arg, Variable))
        args, keys = [atom.args[n] for n in columns], self._search.keys
        while True:
            values = self._bindings.distinct(names).rows.tolist()
            known = (dict(zip(names, row, strict=True)) for row in values)
            wanted = {
                tuple(row[arg] if isinstance(arg, Variable) else keys[arg] for arg in args) for row in known
            }
            try:
                self._slice.fetch({Relation.of(atom): {columns: wanted}})
            except TooManyError:
                if len(self._bindings) == 1:
                    raise
                self._bindings = self._bindings.first(max(1, len(self._bindings) // _REDUCTION))
                self.whole = False
            else:
                return

    def _checked(self) -> Answer:
        """Evaluate the rest of the body on the bindings."""
        search = self._search
        query, version = search.query, search.version
        needed = needed_columns(query.body, query.columns).union(*map(variables, search.checked))
        kept = self._bindings.distinct([v for v in self._bindings.variables if v in needed])
        owners = version.owners.values()
        task = one_task.QueryTask(
            replace(query, body=search.checked),
            {},
            search.keys,
            inputs_of(body_atoms(search.checked), search.keys, owners, owners),
            version.terms,
            version.workspace.hashing,
            search.settings.registry,
            search.settings.limits,
        )
        return one_task.checked(task, SliceReader(self._slice.rows), kept)


def _width(source: Source) -> int:
    if not isinstance(source, Relation):
        raise TypeError(source)
    return source.width
