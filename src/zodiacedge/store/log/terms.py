"""Parts as facts, one by one: for changes that somebody looks at, not for whole stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import XSD, BlankNode, Literal, Term, iri, literal, string

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from zodiacedge.engine.persistence import PartitionKey

_VALUES = ("integer", "decimal", "double", "float", "boolean", "dateTime")


def facts_in(key: PartitionKey, table: pa.Table) -> Iterator[Fact]:
    """Yield the facts of a part; raise ValueError where a row is none."""
    columns = [table.column(name).to_pylist() for n in range(key.arity) for name in (f"a{n}", f"a{n}_type")]
    for row in zip(*columns, strict=True) if columns else [()] * len(table):
        yield fact(key.predicate, *(term(row[n], row[n + 1]) for n in range(0, len(row), 2)))


def term(text: object, kind: object) -> Term:
    """Return the term of a cell and its type."""
    if not isinstance(text, str) or not isinstance(kind, str):
        raise ValueError("an argument is missing")  # noqa: TRY004 - it is the value of a file
    if kind == "iri":
        return iri(text)
    if kind == "blank":
        return BlankNode(text)
    if kind == "string":
        return Literal(text)
    if kind in _VALUES:
        return literal(text, XSD + kind)
    if kind.startswith("@") and len(kind) > 1:
        return string(text, kind[1:])
    if kind.startswith("<") and kind.endswith(">"):
        return literal(text, kind[1:-1])
    raise ValueError(f"there is no type {kind!r}")
