"""Calls of registered functions and aggregates, and the Arrow types of terms and results.

A vectorised function treats every row independently, so that the results do not depend on how an engine
batches rows. For the same reason, the Arrow type of an argument depends only on its term, and rows with
different types are passed in different calls. A group of a vectorised aggregate is passed as one array.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.errors import Diagnostic, EvaluationProblem, ZodiacError, counted
from zodiacedge.language.printer import format_term
from zodiacedge.terms import IRI, Term, from_python, to_python

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from zodiacedge.engine.registry import AggregateFunction, Function

    # One value per row. An array is of int64, double or string, with nulls for missing values.
    Values: TypeAlias = pa.Array | list[object]

_T = TypeVar("_T")
_IN_ARROW = (bool, int, float, str, date, timedelta)


def call_registered(function: Function, terms: Sequence[Term]) -> Term:
    """Return the result of a registered function."""
    if not function.vectorised:
        return _term(function.name, _attempt(function.name, lambda: function.call(*map(to_python, terms))))
    columns = [_column(function.name, [term]) for term in terms]
    return _term(function.name, _listed(call_rows(function, columns, 1))[0])


def call_rows(function: Function, columns: Sequence[pa.Array], rows: int) -> Values:
    """Return the results of a vectorised function for `rows` rows, or raise `NoValue` if it fails.

    A result of another length is not an evaluation error: it fails the change or query.
    """
    result, values = _attempt(function.name, lambda: _with_values(function.call(*columns)))
    if result is None:
        raise NoValue(f"{function.name} gave no value")
    if values is None or len(values) != rows:
        raise EvaluationProblem(
            Diagnostic(
                "E003",
                f"func:{function.name} gave {_shown(result, values)} for {counted(rows, 'row')}",
                "a vectorised function returns one array, with a value for every row",
            )
        )
    return values


def fold_registered(fold: AggregateFunction, terms: Sequence[Term]) -> Term:
    """Return the result of a registered aggregate over a group's terms, given in the total order."""
    if fold.vectorised:
        return fold_array(fold, _column(fold.name, terms))
    return _term(fold.name, _attempt(fold.name, lambda: fold.call([to_python(t) for t in terms])))


def fold_array(fold: AggregateFunction, group: pa.Array) -> Term:
    """Return the result of a vectorised aggregate over a group, given in the total order."""
    result, values = _attempt(fold.name, lambda: _with_values(_as_array(fold.call(group))))
    if values is None:
        return _term(fold.name, result)
    if len(values) != 1:
        raise EvaluationProblem(
            Diagnostic(
                "E003",
                f"{fold.name} gave {_shown(result, values)} for a group",
                "an aggregate returns one value",
            )
        )
    return _term(fold.name, _listed(values)[0])


def term_of(value: object) -> Term | None:
    """Return the term of a result, or None if it is not a term: an evaluation error."""
    try:
        if isinstance(value, str):
            value.encode()  # half a surrogate pair is not text
        return None if value is None else from_python(value)
    except (ZodiacError, UnicodeEncodeError):
        return None


def arrow_type(kind: type) -> pa.DataType:
    """Return the Arrow type of a Python type."""
    import pyarrow as pa  # noqa: PLC0415 - heavy, and only hosts that vectorise need it

    if kind is datetime:
        return pa.timestamp("us", tz="UTC")
    if kind is timedelta:
        return pa.duration("us")
    return {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), date: pa.date32()}[kind]


def _column(name: str, terms: Sequence[Term]) -> pa.Array:
    import pyarrow as pa  # noqa: PLC0415

    values: list[object] = []
    for term in terms:
        value = to_python(term)
        values.append(value.value if isinstance(value, IRI) else value)
        if not isinstance(values[-1], _IN_ARROW):
            raise NoValue(f"{name} is vectorised, and Arrow has no type for {format_term(term)}")
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        # As in arithmetic, integers are converted to their nearest doubles.
        kinds = {float}
        values = [float(value) for value in values if isinstance(value, int | float)]
    if len(kinds) > 1:
        raise NoValue(f"{name} is vectorised, and Arrow has no type for values of several kinds")
    return pa.array(values, arrow_type(kinds.pop()))


def _attempt(name: str, call: Callable[[], _T]) -> _T:
    try:
        return call()
    except MemoryError:
        raise  # not a failure of the function: it fails the change
    except Exception as problem:
        raise NoValue(f"{name} failed: {type(problem).__name__}: {problem}") from problem


def _term(name: str, value: object) -> Term:
    term = term_of(value)
    if term is None:
        reason = "no value" if value is None else f"{value!r}, which is not a term"
        raise NoValue(f"{name} gave {reason}")
    return term


def _with_values(result: object) -> tuple[object, Values | None]:
    # The values of a result that can be taken as an array; None for other results.
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(result, list | tuple):
        return result, list(result)
    if isinstance(result, pa.Array | pa.ChunkedArray):
        return result, _plain(result)
    shape = getattr(result, "shape", ())
    if not isinstance(shape, tuple) or len(shape) != 1:
        return result, None
    if getattr(getattr(result, "dtype", None), "kind", None) in {"b", "i", "u", "f", "M"}:
        try:
            return result, _plain(pa.array(result))
        except pa.ArrowNotImplementedError:  # foreign byte order, or more than 64 bits
            pass
    return result, list(result)  # type: ignore[call-overload]


def _plain(array: pa.Array | pa.ChunkedArray) -> Values:
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_signed_integer(kind):
        return array.cast(pa.int64())
    if kind in {pa.float32(), pa.float64()}:
        return array.cast(pa.float64())
    if kind == pa.string():
        return array
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        # A dateTime has microseconds. With nanoseconds, the values would be those of pandas.
        array = array.cast(pa.timestamp("us", tz=kind.tz), safe=False)
    return _listed(array)


def _listed(values: Values) -> list[object]:
    listed: list[object] = values if isinstance(values, list) else values.to_pylist()
    return listed


def _as_array(result: object) -> object:
    import pyarrow as pa  # noqa: PLC0415

    return pa.repeat(result, 1) if isinstance(result, pa.Scalar) else result


def _shown(result: object, values: Values | None) -> str:
    if values is not None:
        return counted(len(values), "value")
    shape = getattr(result, "shape", ())
    return f"an array of shape {shape}" if shape else f"a {type(result).__name__}"
