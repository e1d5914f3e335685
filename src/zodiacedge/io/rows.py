"""Facts from rows of Python values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.errors import LoadProblem
from zodiacedge.io.problems import problem
from zodiacedge.io.sources import relation_name
from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import IRI, Term, from_python

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def facts_of_rows(rows: Iterable[Sequence[object]], relation: str | IRI | None = None) -> list[Fact]:
    """Return the facts of rows of Python values.

    With a relation, a row is its arguments: `facts_of_rows([(iri("a"), 5)], "temp")`. Without one, a row
    is a predicate and its arguments: `facts_of_rows([("temp", iri("a"), 5)])`. A string is a literal, an
    IRI is made with `iri`. The first row that is not a fact is an error.
    """
    name = _name(relation, 0) if relation is not None else None
    facts: list[Fact] = []
    for number, row in enumerate(rows, 1):
        # A string is a sequence too, but never meant as a row.
        if isinstance(row, (str, bytes)) or not hasattr(row, "__iter__"):
            raise _bad_row(number, f"it is {row!r}")
        values = list(row)
        if name is None and not values:
            raise _bad_row(number, "it is empty")
        predicate = name if name is not None else _name(values.pop(0), number)
        facts.append(fact(predicate, *(_term(v, number) for v in values)))
    return facts


def _name(value: object, number: int) -> str:
    if isinstance(value, (str, IRI)):
        return relation_name(value.value if isinstance(value, IRI) else value)
    raise _bad_row(number, f"a predicate is a name, not {value!r}")


def _term(value: object, number: int) -> Term:
    try:
        return from_python(value)
    except LoadProblem as error:
        raise problem(
            "I013", f"row {number} is no fact: {error.diagnostics[0].message}", error.diagnostics[0].note
        ) from error


def _bad_row(number: int, why: str) -> LoadProblem:
    return problem(
        "I013",
        f"row {number} is no fact: {why}",
        "give rows as tuples of str, int, float, bool, datetime, iri(…)",
    )
