"""The predicate that a user names for a table, and the columns of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.api import ListsTables
from zodiacedge.errors import Diagnostic, UsageProblem, nearest
from zodiacedge.kb.subscribe import predicate_name
from zodiacedge.language.ast import Predicate
from zodiacedge.language.names import is_named
from zodiacedge.language.printer import format_atom

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    import pyarrow as pa

    from zodiacedge.engine.api import State
    from zodiacedge.io.formats.column_mapping import ColumnMapping
    from zodiacedge.terms import IRI


def predicate_of(
    given: str | IRI | Predicate, known: Iterable[Predicate], prefixes: Mapping[str, str], columns: int
) -> Predicate:
    """Return the known predicate that a user names, with as many columns if some are named; or raise."""
    name = predicate_name(given, prefixes)
    every = set(known)
    found = sorted(p for p in every if is_named(p, name) and columns in {0, p.arity})
    if len(found) == 1:
        return found[0]
    if found:
        listed = " or ".join(f"{p.name}/{p.arity}" for p in found)
        raise UsageProblem(Diagnostic("U033", f"{given} is several predicates: {listed}", "add the arity"))
    if columns and not any(is_named(p, name) for p in every):
        return Predicate(name.strip("<>").partition(">")[0], columns)
    raise _unknown(str(given), every, name, columns)


def _unknown(given: str, known: Collection[Predicate], name: str, columns: int) -> UsageProblem:
    arities = sorted(p.arity for p in known if is_named(p, name))
    if arities:
        message = f"{columns} columns are named, and {given} has {arities[0]}"
        return UsageProblem(Diagnostic("U013", message, "name one for each argument, in order"))
    near = nearest(given, sorted({p.name for p in known}))
    hint = f"did you mean {near}?" if near else "kb.derived() and kb.explicit_counts() list the predicates"
    return UsageProblem(Diagnostic("U033", f"no rule and no fact has the predicate {given}", hint))


def columns_for(predicate: Predicate, columns: Mapping[str, object]) -> ColumnMapping:
    """Return the mapping to the columns of a predicate's table: `c1`, `c2` and so on if none are named."""
    from zodiacedge.io.formats.column_mapping import ColumnMapping  # noqa: PLC0415 - loads pyarrow

    if not predicate.arity:
        message = f"{predicate.name} has no arguments, and a table needs columns"
        raise UsageProblem(
            Diagnostic("U013", message, f"ask whether it holds: kb.query('{predicate.name}()')")
        )
    mapping = ColumnMapping.of(columns or {f"c{n}": ... for n in range(1, predicate.arity + 1)})
    mapping.check_invertible(predicate.arity)
    return mapping


def arrow_table_of(state: State, predicate: Predicate, mapping: ColumnMapping) -> pa.Table:
    """Return the visible facts of a predicate, with the columns of a mapping."""
    import pyarrow as pa  # noqa: PLC0415 - takes time to load

    from zodiacedge import io  # noqa: PLC0415 - as above

    def wanted(other: Predicate) -> bool:
        return other == predicate

    names = [argument.name for argument in mapping.arguments]
    tables = state.tables(wanted) if isinstance(state, ListsTables) else None
    if tables and (rows := tables.get(predicate)):
        table = pa.concat_tables(rows.chunks(len(rows))).rename_columns(names)
    else:
        facts = {fact for found, listed in state.each() if found == predicate for fact in listed}
        table = io.table_of([fact.args for fact in sorted(facts, key=format_atom)], names)
    return mapping.inverse(table)
