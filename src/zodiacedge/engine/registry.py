"""Registered functions and aggregates, by name.

Rules call them as `func:name(…)` and `NAME(?x)`, and have no other access to the host. They must be
deterministic. A scalar function takes and returns Python values; a vectorised function takes Arrow arrays of
equal length and returns an array of that length, each row independent of the others. A vectorised
aggregate takes a group as one Arrow array. `engine.semantics.host_functions` calls them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Function:
    """A registered function."""

    name: str
    call: Callable[..., object]
    vectorised: bool = False


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """A registered aggregate: takes the values of a group in the total order, returns one value."""

    name: str
    call: Callable[..., object]
    vectorised: bool = False


@dataclass(frozen=True, slots=True)
class Registry:
    """All registered functions and aggregates."""

    functions: Mapping[str, Function] = field(default_factory=dict)
    folds: Mapping[str, AggregateFunction] = field(default_factory=dict)

    def with_function(self, function: Function) -> Registry:
        """Return the registry with this function."""
        return Registry({**self.functions, function.name: function}, self.folds)

    def with_fold(self, fold: AggregateFunction) -> Registry:
        """Return the registry with this aggregate."""
        return Registry(self.functions, {**self.folds, fold.name: fold})
