"""Calls to what the host registered, one binding or one group at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.novalue import NoValue
from zodiacedge.errors import ZodiacError
from zodiacedge.terms import IRI, Term, from_python, to_python

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zodiacedge.engine.registry import Fold, Function


def call_registered(function: Function, terms: Sequence[Term]) -> Term:
    """Return what a registered function makes of its arguments."""
    if function.vectorised:
        return _term(lambda: _vectorised(function.call, [[t] for t in terms]), function.name)
    return _term(lambda: function.call(*map(to_python, terms)), function.name)


def fold_registered(fold: Fold, terms: Sequence[Term]) -> Term:
    """Return what a registered aggregate makes of a group's terms, given in the total order."""
    if fold.vectorised:
        return _term(lambda: _vectorised(fold.call, [terms]), fold.name)
    return _term(lambda: fold.call([to_python(t) for t in terms]), fold.name)


def _vectorised(call: Callable[..., object], columns: Sequence[Sequence[Term]]) -> object:
    import pyarrow as pa  # noqa: PLC0415 - heavy, and only hosts that vectorise need it

    result = call(*(pa.array([_plain(t) for t in column]) for column in columns))
    if isinstance(result, pa.Scalar):
        return result.as_py()
    # Arrow would take a text for an array of its letters.
    found = [] if isinstance(result, str) else pa.array(result).to_pylist()
    if len(found) != 1:
        raise ValueError(f"expected an array of 1 value, found {result!r}")
    return found[0]


def _plain(term: Term) -> object:
    value = to_python(term)
    return value.value if isinstance(value, IRI) else value


def _term(result: Callable[[], object], name: str) -> Term:
    try:
        value = result()
    except MemoryError:
        raise  # the machine's failure, not the function's: it ends the change
    except Exception as problem:
        raise NoValue(f"{name} failed: {type(problem).__name__}: {problem}") from problem
    if value is None:
        raise NoValue(f"{name} gave no value")
    try:
        return from_python(value)
    except ZodiacError as problem:
        raise NoValue(f"{name} gave {value!r}, which is not a term") from problem
