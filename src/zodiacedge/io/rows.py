"""Facts from rows of Python values, and from facts themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from zodiacedge.errors import LoadProblem
from zodiacedge.io.problems import problem
from zodiacedge.language.ast import Fact, fact
from zodiacedge.language.names import full_name
from zodiacedge.terms import IRI, Term, from_python

if TYPE_CHECKING:
    Row = Sequence[object] | Fact

_ROWS = "give rows as tuples of str, int, float, bool, datetime, date, iri(…)"


def facts_of_rows(
    rows: Iterable[Row], relation: str | IRI | None = None, prefixes: Mapping[str, str] | None = None
) -> list[Fact]:
    """Return the facts of rows of Python values.

    With a relation, a row is its arguments: `facts_of_rows([(iri("a"), 5)], "temp")`. Without one, a row
    is a predicate and its arguments: `facts_of_rows([("temp", iri("a"), 5)])`; or it is a `Fact`. A string is
    a literal, an IRI is made with `iri`. The first row that is not a fact is an error.
    """
    names = _Names(prefixes or {})
    name = None if relation is None else names.full(relation, 0)
    facts: list[Fact] = []
    width: int | None = None
    for number, row in enumerate(rows, 1):
        if isinstance(row, Fact):
            if name is not None:
                raise _bad_row(number, "a Fact names its relation itself", "give Facts without relation=")
            facts.append(_checked(row, number))
            continue
        values = _values(row, number)
        if name is None:
            if not values:
                raise _bad_row(number, "it is empty")
            facts.append(fact(names.full(values[0], number), *(_term(v, number) for v in values[1:])))
            continue
        width = len(values) if width is None else width
        if len(values) != width:
            why = f"it has {len(values)} values where row 1 has {width}"
            raise _bad_row(number, why, "the rows of a relation have the same number of values")
        facts.append(fact(name, *(_term(v, number) for v in values)))
    return facts


class _Names:
    """The full names of predicates, each resolved once."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = prefixes
        self._resolved: dict[str, str] = {}

    def full(self, given: object, number: int) -> str:
        if isinstance(given, IRI):
            return full_name(f"<{given.value}>", {})
        if not isinstance(given, str):
            note = "a row is (predicate, value, …); for rows of values alone give relation='p'"
            raise _bad_row(number, f"a predicate is a name, not {given!r}", note)
        name = self._resolved.get(given)
        if name is None:
            name = self._resolved[given] = full_name(given, self._prefixes)
        return name


def _values(row: object, number: int) -> Sequence[object]:
    if isinstance(row, tuple | list):
        return row
    if isinstance(row, Mapping):
        note = "give its values in the order of the columns, or the rows as a data frame with relation='p'"
        raise _bad_row(number, f"it is a {type(row).__name__}, and a row is its values in order", note)
    if isinstance(row, AbstractSet):
        raise _bad_row(number, f"it is a {type(row).__name__}, which has no order", _ROWS)
    # A string is a sequence too, but never meant as a row.
    if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
        note = "give a list of rows, if it is part of one: [('p', …)]" if isinstance(row, str) else _ROWS
        raise _bad_row(number, f"it is {row!r}", note)
    return list(row)


def _checked(row: Fact, number: int) -> Fact:
    return fact(full_name(f"<{row.relation}>", {}), *(_term(arg, number) for arg in row.args))


def _term(value: object, number: int) -> Term:
    try:
        return from_python(value)
    except LoadProblem as error:
        raise problem(
            "I013", f"row {number} is no fact: {error.diagnostics[0].message}", error.diagnostics[0].note
        ) from error


def _bad_row(number: int, why: str, note: str = _ROWS) -> LoadProblem:
    row = f"row {number}" if number else "a row"
    return problem("I013", f"{row} is no fact: {why}", note)
