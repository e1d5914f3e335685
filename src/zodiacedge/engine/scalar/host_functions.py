"""Calls to what the host registered, and what terms and results are in Arrow.

A vectorised function takes every row by itself, so an engine may send it one row at a time or many: the
results are the same. For that, an argument has the Arrow type that its term has when it comes alone, and
rows whose types differ never share a call. A group of a vectorised aggregate goes out whole, as one array.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from zodiacedge.engine.scalar.errors import NoValue
from zodiacedge.errors import Diagnostic, EvaluationProblem, ZodiacError, counted
from zodiacedge.language.printer import format_term
from zodiacedge.terms import IRI, Term, from_python, to_python

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from zodiacedge.engine.registry import Fold, Function

    # One value per row. An array holds int64, double or string, with a null where there is no value.
    Values: TypeAlias = pa.Array | list[object]

_T = TypeVar("_T")
_IN_ARROW = (bool, int, float, str, datetime)


def call_registered(function: Function, terms: Sequence[Term]) -> Term:
    """Return what a registered function makes of its arguments."""
    if not function.vectorised:
        return _term(function.name, _attempt(function.name, lambda: function.call(*map(to_python, terms))))
    columns = [_column(function.name, [term]) for term in terms]
    return _term(function.name, _listed(call_rows(function, columns, 1))[0])


def call_rows(function: Function, columns: Sequence[pa.Array], rows: int) -> Values:
    """Return what a vectorised function makes of some rows, or raise `NoValue` where it fails.

    A result of another length is no evaluation error: the function is not what it was registered as,
    and the work ends.
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


def fold_registered(fold: Fold, terms: Sequence[Term]) -> Term:
    """Return what a registered aggregate makes of a group's terms, given in the total order."""
    if fold.vectorised:
        return fold_array(fold, _column(fold.name, terms))
    return _term(fold.name, _attempt(fold.name, lambda: fold.call([to_python(t) for t in terms])))


def fold_array(fold: Fold, group: pa.Array) -> Term:
    """Return what a vectorised aggregate makes of a group, given in the total order."""
    result, values = _attempt(fold.name, lambda: _with_values(_one_or_more(fold.call(group))))
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
    """Return the term of a result, or None where it is no term: an evaluation error."""
    try:
        if isinstance(value, str):
            value.encode()  # half a surrogate pair is no text, and no engine could keep it
        return None if value is None else from_python(value)
    except (ZodiacError, UnicodeEncodeError):
        return None


def arrow_type(kind: type) -> pa.DataType:
    """Return the Arrow type of the Python values of some type."""
    import pyarrow as pa  # noqa: PLC0415 - heavy, and only hosts that vectorise need it

    if kind is datetime:
        return pa.timestamp("us", tz="UTC")
    return {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}[kind]


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
        # As in arithmetic: an integer that meets a double is taken as its nearest double.
        kinds = {float}
        values = [float(value) for value in values if isinstance(value, int | float)]
    if len(kinds) > 1:
        raise NoValue(f"{name} is vectorised, and Arrow has no type for values of several kinds")
    return pa.array(values, arrow_type(kinds.pop()))


def _attempt(name: str, call: Callable[[], _T]) -> _T:
    try:
        return call()
    except MemoryError:
        raise  # the machine's failure, not the function's: it ends the change
    except Exception as problem:
        raise NoValue(f"{name} failed: {type(problem).__name__}: {problem}") from problem


def _term(name: str, value: object) -> Term:
    found = term_of(value)
    if found is None:
        reason = "no value" if value is None else f"{value!r}, which is not a term"
        raise NoValue(f"{name} gave {reason}")
    return found


def _with_values(result: object) -> tuple[object, Values | None]:
    # The values of what a host may return for an array; None where it is nothing of that sort.
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
        # A dateTime holds microseconds. With nanoseconds, Python's values would be those of pandas.
        array = array.cast(pa.timestamp("us", tz=kind.tz), safe=False)
    return _listed(array)


def _listed(values: Values) -> list[object]:
    found: list[object] = values if isinstance(values, list) else values.to_pylist()
    return found


def _one_or_more(result: object) -> object:
    import pyarrow as pa  # noqa: PLC0415

    return pa.repeat(result, 1) if isinstance(result, pa.Scalar) else result


def _shown(result: object, values: Values | None) -> str:
    if values is not None:
        return counted(len(values), "value")
    shape = getattr(result, "shape", ())
    return f"an array of shape {shape}" if shape else f"a {type(result).__name__}"
