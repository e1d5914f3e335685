"""Lookups by key on Spark: the rows that a body can match, atom by atom, for all values together.

The driver keeps the rows that were looked up, decodes their terms, and answers on them as the reference
evaluator does. Each atom costs at most one job, however many values there are. Where an atom has no bound
argument and its relation is large, or where too many rows match, a query is answered for each row of values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.api import EXPLICIT_FACTS
from zodiacedge.engine.factset import FactSet
from zodiacedge.engine.reference import ReferenceMaterialisation
from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.engine.semantics.expressions import evaluate
from zodiacedge.engine.spark.lookup.by_key import RowSlice, TooManyError
from zodiacedge.engine.spark.lookup.decode import Decoder
from zodiacedge.engine.spark.storage.files import Relation, SignedFiles, held
from zodiacedge.language.ast import Atom, Binding, Fact, Negation, Query, Variable, variables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.api import Lookup, Settings
    from zodiacedge.engine.query_lookups import QueryLookups
    from zodiacedge.engine.registry import Registry
    from zodiacedge.engine.spark.lookup.by_key import Row as SliceRow
    from zodiacedge.engine.spark.lookup.by_key import Source
    from zodiacedge.engine.spark.lookup.matching import Wants
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.language.ast import Conjunct
    from zodiacedge.terms import Term

    Row = tuple[Term, ...]
    Values = dict[Variable, Term]
    _Wanted = tuple[Relation, tuple[int, ...], tuple[int, ...]]

# So many rows may be fetched that are only perhaps needed next.
_MOST_AHEAD = 20_000


class KeyLookups:
    """Lookups in one state, with the rows that were looked up so far."""

    joins_explicit = True

    def __init__(self, version: SparkVersion, queries: QueryLookups, settings: Settings) -> None:
        """Read one version; `queries` answers where rows cannot be looked up by key."""
        self.settings = settings
        self.queries = queries
        self._workspace = version.workspace
        self._decode = Decoder(version.workspace, version.terms).decode
        self._explicit = version.explicit_files
        self._contents = held(version.owners.values())
        self._calls = 0
        self._start()

    def _start(self) -> None:
        self._slice = RowSlice(self._workspace, self.settings.yield_point, self._files, _width, whole=False)
        self.facts = FactSet()
        self._listed: set[Atom] = set()
        self._held: dict[Relation, _Held] = {}
        self._looked_ahead: set[Atom] = set()

    def _files(self, source: Source) -> Sequence[SignedFiles]:
        return self._contents.get(source, ()) if isinstance(source, Relation) else ()

    def prepare(self, query: Query, parameters: tuple[Variable, ...]) -> Lookup:
        """Return a lookup, whose parameters get values later."""
        return _KeyLookup(self, query, parameters)

    def explicit_among(self, facts: Collection[Fact]) -> frozenset[Fact]:
        """Return those of some facts that are explicit."""
        atoms = [Atom(fact.relation, fact.args) for fact in facts]
        self.fetch_or_restart(atoms)
        return frozenset(
            fact for fact in facts if Fact(EXPLICIT_FACTS + fact.relation, fact.args) in self.facts
        )

    def fetch_or_restart(self, atoms: Iterable[Atom]) -> None:
        """Look up the rows that match atoms; forget the others if these are too many together."""
        atoms = list(atoms)
        try:
            self.fetch(atoms)
        except TooManyError:
            self._start()
            self.fetch(atoms)

    def look_ahead(self, lookups: Iterable[tuple[Lookup, Sequence[Row]]], patterns: Iterable[Atom]) -> None:
        """Fetch what lookups will read, and the facts that match patterns: a job for each atom of a body.

        The patterns are looked up in the first of these jobs, unless too many facts match them.
        """
        if self._slice.count * 2 > self._slice.most:
            # Rows of earlier questions leave no room for many more.
            self._start()
        ahead = [pattern for pattern in patterns if pattern not in self._looked_ahead]
        self._looked_ahead.update(ahead)
        reads = [lookup.reads(given) for lookup, given in lookups if isinstance(lookup, _KeyLookup) and given]
        atoms = [atom for read in reads for atom in next(read, ())]
        try:
            while atoms or ahead:
                try:
                    self.fetch(atoms, ahead)
                except TooManyError:
                    if not ahead:
                        raise
                    self.fetch(atoms)
                ahead = []
                atoms = [atom for read in reads for atom in next(read, ())]
        except TooManyError:
            # Each lookup will be made by itself.
            return

    def fetch(self, atoms: Iterable[Atom], ahead: Iterable[Atom] = ()) -> None:
        """Look up the rows that match atoms by their constants, in one job at most.

        Those of `ahead` are kept for later, and may not be many.
        """
        atoms, ahead = [atom for atom in dict.fromkeys(atoms) if atom not in self._listed], list(ahead)
        if not atoms and not ahead:
            return
        terms = {arg for atom in (*atoms, *ahead) for arg in atom.args if not isinstance(arg, Variable)}
        keys = self._workspace.hashing.keys_of(terms)
        wanted: dict[Source, Wants] = {}
        for atom in (*atoms, *ahead):
            relation, columns, values = _key(atom, keys)
            if relation in self._contents and not self._slice.covers(relation, columns, values):
                wanted.setdefault(relation, {}).setdefault(columns, set()).add(values)
        if wanted:
            self._slice.fetch(wanted, _MOST_AHEAD if ahead else None)
        for source in wanted:
            if isinstance(source, Relation):
                self._held.pop(source, None)
        self._list([key for key in (_key(atom, keys) for atom in atoms) if key[0] in self._contents])
        self._listed.update(atoms)

    def _list(self, wanted: Iterable[_Wanted]) -> None:
        """Add the rows that were looked up and match to the facts. Others are never decoded."""
        new: dict[tuple[str, tuple[int, ...]], None] = {}
        for relation, columns, values in wanted:
            if relation not in self._held:
                contents = self._contents[relation]
                self._held[relation] = _Held(
                    set().union(*(self._slice.held(content) for content in contents)),
                    self._slice.held(self._explicit.content(relation)),
                    relation.arity,
                )
            held = self._held[relation]
            for row in held.matching(columns, values):
                new[relation.name, row] = None
                if row in held.explicit:
                    new[EXPLICIT_FACTS + relation.name, row] = None
        terms = self._decode(key for _, row in new for key in row)
        for name, row in new:
            self.facts.add(Fact(name, tuple(terms[key] for key in row)))

    def answer(self, query: Query, parameters: tuple[Variable, ...], given: Sequence[Row]) -> list[Row]:
        """Return the rows of a query on the facts that were looked up."""
        # The values are facts of a relation that no program can name, another one for each call.
        self._calls += 1
        values = Atom(f"values given to lookup {self._calls}", parameters)
        for row in given:
            self.facts.add(Fact(values.relation, row))
        asked = Query(query.columns, (values, *query.body))
        return list(ReferenceMaterialisation(facts=self.facts).answer(asked, self.settings).rows)


class _Held:
    """The rows of a relation that were looked up: the visible ones by values, and which are explicit."""

    def __init__(self, visible: Iterable[SliceRow], explicit: Iterable[SliceRow], arity: int) -> None:
        """Take rows of fingerprints."""
        self._visible = {_terms_of(row, arity) for row in visible}
        self.explicit = {_terms_of(row, arity) for row in explicit}
        self._by_values: dict[tuple[int, ...], dict[tuple[int, ...], list[tuple[int, ...]]]] = {}

    def matching(self, columns: tuple[int, ...], values: tuple[int, ...]) -> Sequence[tuple[int, ...]]:
        """Return the visible rows with the given values."""
        if columns not in self._by_values:
            groups = self._by_values[columns] = {}
            for row in self._visible:
                groups.setdefault(tuple(row[n] for n in columns), []).append(row)
        return self._by_values[columns].get(values, ())


def _terms_of(row: SliceRow, arity: int) -> tuple[int, ...]:
    return tuple(key for key in row[:arity] if key is not None)


def _key(atom: Atom, keys: Mapping[Term, int]) -> _Wanted:
    """Return the relation of an atom, the columns that have constants, and their fingerprints."""
    relation = Relation(atom.relation.removeprefix(EXPLICIT_FACTS), len(atom.args))
    bound = [(n, keys[arg]) for n, arg in enumerate(atom.args) if not isinstance(arg, Variable)]
    return relation, tuple(n for n, _ in bound), tuple(key for _, key in bound)


class _KeyLookup:
    def __init__(self, lookups: KeyLookups, query: Query, parameters: tuple[Variable, ...]) -> None:
        self._lookups = lookups
        self._query = query
        self._parameters = parameters
        self._by_query: Lookup | None = None

    def __call__(self, given: Sequence[Row], most: int) -> tuple[Sequence[Row], bool]:
        if not given:
            return [], True
        try:
            for atoms in self.reads(given):
                self._lookups.fetch(atoms)
        except TooManyError:
            if any(isinstance(c, Atom) and c.relation.startswith(EXPLICIT_FACTS) for c in self._query.body):
                # Only rows that are looked up are known to be explicit: leave the rest to other lookups.
                return [], False
            if self._by_query is None:
                self._by_query = self._lookups.queries.prepare(self._query, self._parameters)
            return self._by_query(given, most)
        rows = self._lookups.answer(self._query, self._parameters, given)
        return rows[:most], len(rows) <= most

    def reads(self, given: Sequence[Row]) -> Iterator[list[Atom]]:
        """Yield atoms whose rows the body can match; the next ones follow from the rows of those before."""
        lookups, registry = self._lookups, self._lookups.settings.registry
        bindings: list[Values] = [dict(zip(self._parameters, row, strict=True)) for row in given]
        waiting: list[Conjunct] = [c for c in self._query.body if isinstance(c, Atom | Binding)]
        while waiting and bindings:
            bound = bindings[0].keys()
            ready = [c for c in waiting if isinstance(c, Binding) and bound >= set(variables(c.expression))]
            if ready:
                waiting.remove(ready[0])
                bindings = list(_computed(ready[0], bindings, registry))
                continue
            atoms = [c for c in waiting if isinstance(c, Atom)]
            if not atoms:
                break
            atom = max(atoms, key=lambda a: sum(not isinstance(v, Variable) or v in bound for v in a.args))
            waiting.remove(atom)
            yield [_filled(atom, binding) for binding in bindings]
            extended = (extension for b in bindings for extension in lookups.facts.match(atom, b))
            bindings = list({frozenset(e.items()): e for e in extended}.values())
        negated = [c.atom for c in self._query.body if isinstance(c, Negation)]
        yield [_filled(atom, binding) for atom in negated for binding in bindings]


def _computed(binding: Binding, bindings: Iterable[Values], registry: Registry) -> Iterable[Values]:
    for values in bindings:
        try:
            value = evaluate(binding.expression, values, registry)
        except NoValue:
            continue
        if values.get(binding.variable, value) == value:
            yield {**values, binding.variable: value}


def _filled(atom: Atom, values: Values) -> Atom:
    args = tuple(values.get(a, a) if isinstance(a, Variable) else a for a in atom.args)
    # Variables have no names here, so that equal patterns are one.
    named = tuple(Variable(f".{n}") if isinstance(a, Variable) else a for n, a in enumerate(args))
    return Atom(atom.relation, named)


def _width(source: Source) -> int:
    if not isinstance(source, Relation):
        raise TypeError(source)
    return source.width
