"""Facts by single terms: the explicit ones about some subjects, and the earliest that have a moment.

Rows are looked up by key, so that this costs what is found, whatever a relation holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.spark.lookup.by_key import RowSlice, TooManyError
from zodiacedge.engine.spark.lookup.decode import Decoder
from zodiacedge.engine.spark.lookup.row_filter import RowFilter
from zodiacedge.engine.spark.storage.files import TYPED, Relation
from zodiacedge.engine.spark.storage.moments import between, first_after
from zodiacedge.engine.yield_point import ALONE
from zodiacedge.language.ast import Atom, Fact, Variable
from zodiacedge.language.windows import is_window
from zodiacedge.terms import IRI, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from zodiacedge.engine.spark.lookup.by_key import Row, Source
    from zodiacedge.engine.spark.lookup.matching import Wants
    from zodiacedge.engine.spark.storage.files import Segment, SignedFiles
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.language.ast import Predicate, Rule
    from zodiacedge.terms import Term

# So many subjects are looked up together.
_SUBJECTS = 10_000
# The moments of so many microseconds are looked up together, then of twice as many, and so on.
_FIRST_SPAN = 1_000_000


def facts_about(version: SparkVersion, subjects: Collection[Term]) -> Iterator[Fact]:
    """Yield the explicit facts whose first argument is one of some terms."""
    keys = sorted(version.workspace.hashing.keys_of(subjects).values())
    relations = [relation for relation in version.explicit_files.contents if relation.arity]
    waiting = [keys[first : first + _SUBJECTS] for first in range(0, len(keys), _SUBJECTS)]
    decoder = Decoder(version.workspace, version.terms)
    explicit = version.explicit_files
    while waiting:
        some = waiting.pop()
        # What the driver holds is bounded for each batch.
        slice_ = RowSlice(
            version.workspace, ALONE, lambda s: [explicit.content(_relation(s))], _width, whole=False
        )
        try:
            slice_.fetch({relation: {(0,): {(key,) for key in some}} for relation in relations})
        except TooManyError:
            if len(some) > 1:
                waiting += [some[: len(some) // 2], some[len(some) // 2 :]]
                continue
            # More facts of one subject than the driver holds.
            for relation in relations:
                content = version.explicit_files.content(relation)
                yield from decoder.facts(relation, [content], RowFilter(values={0: some[0]}))
            continue
        for relation in relations:
            rows = slice_.held(explicit.content(relation))
            terms = decoder.decode(key for row in rows for key in row if key is not None)
            for row in rows:
                yield Fact(relation.name, tuple(terms[key] for key in row if key is not None))


class Timed(NamedTuple):
    """The rows of a relation, or of a class, that have moments in a column."""

    relation: Relation
    column: int
    class_key: int | None = None

    @classmethod
    def of_predicate(cls, predicate: Predicate, position: int, keys: Callable[[Term], int]) -> Timed:
        """Return the facts of a predicate with moments as an argument, from 1."""
        if predicate.arity == 1:
            return cls(TYPED, 0, keys(IRI(predicate.name)))
        return cls(Relation(*predicate), position - 1)

    @classmethod
    def of_atom(cls, atom: Atom, moment: Variable, keys: Callable[[Term], int]) -> Timed:
        """Return the facts that an atom matches, with a variable for moments."""
        relation, column = Relation.of(atom), atom.args.index(moment)
        if relation.typed and not column and not isinstance(atom.args[1], Variable):
            return cls(relation, column, keys(atom.args[1]))
        return cls(relation, column)

    def wants(self, moments: Iterable[int]) -> Wants:
        """Return the values to look up for the fingerprints of moments."""
        if self.class_key is None:
            return {(self.column,): {(key,) for key in moments}}
        return {(self.column, 1): {(key, self.class_key) for key in moments}}


def earliest(version: SparkVersion, timed: Timed, owners: Iterable[Segment], since: int) -> int | None:
    """Return the first moment, from a time on, that rows of some owners have; all in microseconds."""
    contents = [content for owner in owners if (content := owner.content(timed.relation)).rows]
    files, span = version.terms.parts, _FIRST_SPAN
    at = first_after(files, since - 1) if contents else None
    while at is not None:
        moments = between(files, at - 1, at + span)
        try:
            rows = _looked_up(version, timed.relation, timed.wants(moments.keys.tolist()), contents)
        except TooManyError:
            if not span:
                # More facts of one moment than the driver holds.
                return at
            span //= 2
            continue
        there = {row[timed.column] for row in rows}
        for micros, key in zip(moments.micros.tolist(), moments.keys.tolist(), strict=True):
            if key in there:
                return int(micros)
        at = first_after(files, at + span)
        span = 2 * span + 1
    return None


def next_due(version: SparkVersion, rules: Iterable[Rule]) -> int | None:
    """Return the first time of the clock, in microseconds, at which facts enter or leave a window."""
    windows, due = version.windows, []
    owners = tuple(version.owners.values())
    for timed, term in _windowed(version, rules) if windows.clock is not None else ():
        window, (low, high) = windows.windows[term], windows.span(term)
        leaving, entering = (window.low, low, window.low_is_in), (window.high, high, not window.high_is_in)
        for bound, end, later in (leaving, entering):
            if bound is None:
                continue
            first = (
                first_after(version.terms.parts, end)
                if timed is None
                else earliest(version, timed, owners, end + 1)
            )
            if first is not None:
                due.append(first - bound + later)
    return min(due, default=None)


def _windowed(version: SparkVersion, rules: Iterable[Rule]) -> set[tuple[Timed | None, Literal]]:
    """Return the windows that rules read, each with facts that have its moments; None where computed."""

    def key(term: Term) -> int:
        return version.workspace.keys([term])[term]

    found: set[tuple[Timed | None, Literal]] = set()
    for rule in rules:
        for body in (rule.body, rule.aggregate.body if rule.aggregate else ()):
            for window in body:
                if not isinstance(window, Atom) or not is_window(window):
                    continue
                moment, term = window.args
                if not isinstance(moment, Variable) or not isinstance(term, Literal):
                    continue
                atoms = (c for c in body if isinstance(c, Atom) and c is not window and moment in c.args)
                atom = next((each for each in atoms if not is_window(each)), None)
                found.add((Timed.of_atom(atom, moment, key) if atom else None, term))
    return {(timed, term) for timed, term in found if term in version.windows.windows}


def _looked_up(
    version: SparkVersion, relation: Relation, wants: Wants, contents: Sequence[SignedFiles]
) -> set[Row]:
    """Return the rows of a relation that have some values, in the files of some owners."""
    slice_ = RowSlice(version.workspace, ALONE, lambda _: contents, _width, whole=False)
    slice_.fetch({relation: wants})
    return set().union(*(slice_.held(content) for content in contents))


def _width(source: Source) -> int:
    return _relation(source).width


def _relation(source: Source) -> Relation:
    if not isinstance(source, Relation):
        raise TypeError(source)
    return source
