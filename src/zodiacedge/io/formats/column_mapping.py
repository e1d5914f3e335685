"""The mapping of the columns of a table to terms, the same for Spark, Arrow, Polars and pandas.

A mapping has an entry for each argument of a relation, in order:

    value=...                                   the column `value` as it is: strings are cells
    at="timestamp", at=2                        another column as it is, by name or by number from 0
    sensor=ze.iri("http://farm/{sensor}")       an IRI, with columns in braces; `ze.iri("{sensor}")` for one
    label=ze.literal("{label}", language="de")  a literal of a text with columns, its datatype or language

Values within a longer IRI are percent-encoded, as R2RML does. A row with a null in a column that the mapping
reads is left out, and counted. The same mapping in reverse gives columns of terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import quote as percent_encoded
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from zodiacedge.errors import Diagnostic, UsageProblem, nearest
from zodiacedge.io.formats.cells import read_cell, write_cell
from zodiacedge.io.problems import problem
from zodiacedge.terms import (
    IRI,
    PLACEHOLDER,
    RDF_LANGSTRING,
    XSD_STRING,
    Literal,
    Term,
    from_python,
    is_iri,
    literal,
    string,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from zodiacedge.errors import LoadProblem

_HOW = (
    "write value=... for the column of that name, value='column', value=0 for the first column, "
    "value=ze.iri('http://farm/{column}') or value=ze.literal('{column}', 'xsd:decimal')"
)


@dataclass(frozen=True)
class Argument:
    """How one argument of a relation is made of a row."""

    name: str
    template: IRI | Literal | None = None
    """Its text has columns in braces; None for a column as it is."""
    column: str | int = ""

    @classmethod
    def of(cls, name: str, given: object) -> Argument:
        """Return the argument of an entry of a mapping, or raise."""
        if given is ...:
            return cls(name, column=name)
        if isinstance(given, str) or (isinstance(given, int) and not isinstance(given, bool)):
            return cls(name, column=given)
        if isinstance(given, IRI | Literal):
            return cls(name, given)
        raise UsageProblem(Diagnostic("U013", f"{name} is given as {given!r}, which is no column", _HOW))

    @property
    def text(self) -> str:
        """The text of the template; empty for a column as it is."""
        if self.template is None:
            return ""
        return self.template.value if isinstance(self.template, IRI) else self.template.lexical

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """Texts and columns of the template, in turn, texts first."""
        return tuple(PLACEHOLDER.split(self.text))

    @property
    def columns(self) -> tuple[str | int, ...]:
        """The columns that are read."""
        if self.template is None:
            return (self.column,)
        return tuple(int(name) if name.isdecimal() else name for name in self.pieces[1::2])

    def term(self, text: str) -> Term:
        """Return the term of a filled template."""
        if isinstance(self.template, IRI):
            return IRI(text)
        if self.template is None or self.template.datatype == XSD_STRING:
            return Literal(text)
        if self.template.datatype == RDF_LANGSTRING:
            return string(text, self.template.language)
        return literal(text, self.template.datatype)

    def value(self, term: Term) -> str | None:
        """Return the text of the column that a term was made of; None if it was not made so."""
        texts = self.pieces[::2]
        text = term.value if isinstance(term, IRI) else term.lexical if isinstance(term, Literal) else ""
        first, last = texts[0], texts[-1]
        if isinstance(self.template, IRI) is not isinstance(term, IRI) or len(text) < len(first) + len(last):
            return None
        if not (text.startswith(first) and text.endswith(last)):
            return None
        inner = text[len(first) : len(text) - len(last)]
        return unquote(inner) if isinstance(self.template, IRI) and (first or last) else inner


@dataclass(frozen=True)
class ColumnMapping:
    """The arguments of a relation, in order; all columns as they are if there are none."""

    arguments: tuple[Argument, ...] = ()

    @classmethod
    def of(cls, columns: Mapping[str, object]) -> ColumnMapping:
        """Return the mapping of the keywords of a user."""
        return cls(tuple(Argument.of(name, given) for name, given in columns.items()))

    def __bool__(self) -> bool:
        """Return whether the mapping names any column."""
        return bool(self.arguments)

    def check(self, schema: pa.Schema) -> None:
        """Raise if a table of this schema lacks a column, or has one of a type that holds no terms."""
        for at in self._positions(schema):
            _check_column(schema.field(at))

    def _positions(self, schema: pa.Schema) -> list[int]:
        if not self:
            return list(range(len(schema.names)))
        return sorted({_position(schema, column) for each in self.arguments for column in each.columns})

    def apply(self, table: pa.Table) -> tuple[pa.Table, int]:
        """Return the columns of the arguments, without rows with a null, and the number of these rows."""
        self.check(table.schema)
        read = _without_views(table.select(self._positions(table.schema)))
        kept = read.drop_null() if any(column.null_count for column in read.columns) else read
        dropped = len(table) - len(kept)
        if not self:
            return kept, dropped
        places = {table.schema.names[at]: n for n, at in enumerate(self._positions(table.schema))}

        def column(wanted: str | int) -> pa.ChunkedArray:
            return kept.column(places[table.schema.names[_position(table.schema, wanted)]])

        made = [self._made(each, column, len(kept)) for each in self.arguments]
        return pa.table(made, [each.name for each in self.arguments]), dropped

    def _made(self, each: Argument, column: Callable[[str | int], pa.ChunkedArray], rows: int) -> pa.Array:
        if each.template is None:
            return column(each.column)
        within = isinstance(each.template, IRI) and any(each.pieces[::2])
        texts: list[object] = [pa.scalar(each.pieces[0])]
        for name, text in zip(each.columns, each.pieces[2::2], strict=True):
            texts += [_texts(column(name), encode=within), pa.scalar(text)]
        if len(texts) == 1:
            cell = write_cell(each.term(each.text))
            return pa.array([cell], pa.string()).take(pa.array([0] * rows, pa.int32()))
        joined = pc.binary_join_element_wise(*texts, pa.scalar(""))
        return _by_value(joined, lambda text: write_cell(_checked(each, text)))

    def inverse(self, rows: pa.Table) -> pa.Table:
        """Return the columns that a table of terms in cells was made of: the inverse of `apply`."""
        columns = []
        for each, column in zip(self.arguments, rows.columns, strict=True):
            if each.template is None:
                columns.append(column)
                continue
            texts = column if pa.types.is_string(column.type) else _texts(column, encode=False, cells=True)
            columns.append(_by_value(texts, lambda text, of=each: of.value(read_cell(text))))
        return pa.table(columns, [each.name for each in self.arguments])

    def check_invertible(self, arity: int) -> None:
        """Raise if the mapping does not name as many columns as a relation has, each made of one column."""
        if len(self.arguments) != arity:
            message = f"{len(self.arguments)} columns are named, and the relation has {arity}"
            raise UsageProblem(Diagnostic("U013", message, "name one for each argument, in order: value=..."))
        for each in self.arguments:
            if each.template is not None and len(each.columns) != 1:
                message = (
                    f"{each.name} has {len(each.columns)} columns in braces, and can be read back from one"
                )
                raise UsageProblem(Diagnostic("U013", message, "read it as it is: {each.name}=..."))


def _without_views(table: pa.Table) -> pa.Table:
    """Return a table whose strings are of a type that Arrow can take rows of."""
    views = [n for n, field in enumerate(table.schema) if pa.types.is_string_view(field.type)]
    for n in views:
        column = table.column(n).cast(pa.large_string())
        table = table.set_column(n, table.schema.names[n], column)
    return table


def _position(schema: pa.Schema, column: str | int) -> int:
    names: list[str] = schema.names
    if isinstance(column, int):
        if 0 <= column < len(names):
            return column
        raise _no_column(str(column), names)
    if names.count(column) != 1:
        raise _no_column(column, names)
    return names.index(column)


def _no_column(column: str, names: Sequence[str]) -> LoadProblem:
    if column in names:
        return problem("I011", f"two columns are called {column}", "rename one of them, or give its number")
    near = nearest(column, names)
    hint = f"did you mean {near}?" if near else f"its columns are {', '.join(names) or 'none'}"
    return problem("I011", f"the table has no column {column}", hint)


def _check_column(field: pa.Field) -> None:
    kind, types, name = field.type, pa.types, field.name
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_struct(kind):
        inner = kind.field(0).name if kind.num_fields else "field"
        cure = f"take a field of it: df.selectExpr('{name}.{inner}')"
    elif types.is_nested(kind):
        cure = f"make a row of each element: df.selectExpr('explode({name})')"
    elif any(
        test(kind) for test in (types.is_binary, types.is_large_binary, types.is_null, types.is_duration)
    ):
        cure = f"make it a text or a number: df.selectExpr('cast({name} as string)')"
    else:
        return
    raise problem("I011", f"the column {name} is of type {kind}, which holds no terms", cure)


def _texts(column: pa.ChunkedArray, *, encode: bool, cells: bool = False) -> pa.Array:
    """Return the texts of a column: those of strings, and the lexical forms of other values."""
    strings = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)

    def text(value: object) -> str:
        if strings or (isinstance(value, str) and not cells):
            plain = str(value)
        else:
            term = from_python(value)
            plain = write_cell(term) if cells else term.lexical if isinstance(term, Literal) else str(term)
        return percent_encoded(plain, safe="") if encode else plain

    return _by_value(column, text)


def _by_value(column: pa.ChunkedArray | pa.Array, convert: Callable[..., str | None]) -> pa.Array:
    """Convert each distinct value once."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks)
    coded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    values = pa.array([None if v is None else convert(v) for v in coded.dictionary.to_pylist()], pa.string())
    return values.take(coded.indices)


def _checked(each: Argument, text: str) -> Term:
    if isinstance(each.template, IRI) and not is_iri(text):
        raise problem(
            "I013",
            f"{text!r} is no IRI, as the column {each.name} has it",
            "percent-encode it, or put it into a longer one: ze.iri('http://farm/{"
            + str(each.columns[0])
            + "}')",
        )
    return each.term(text)
