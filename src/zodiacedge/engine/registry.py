"""Functions and aggregates that the host registered, by name.

Rules call them as `func:name(…)` and `NAME(?x)`; nothing else of the host can be reached from a rule.
They are taken to be deterministic. A scalar function gets Python values and returns one; a vectorised
one gets Arrow arrays of equal length and returns an array of that length, each row by itself. A
vectorised aggregate gets a group as one Arrow array. `engine.registered` has the details.
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
class Fold:
    """A registered aggregate: gets the values of a group in the total order, returns one value."""

    name: str
    call: Callable[..., object]
    vectorised: bool = False


@dataclass(frozen=True, slots=True)
class Registry:
    """Everything the host registered."""

    functions: Mapping[str, Function] = field(default_factory=dict)
    folds: Mapping[str, Fold] = field(default_factory=dict)

    def with_function(self, function: Function) -> Registry:
        """Return a registry that also knows this function."""
        return Registry({**self.functions, function.name: function}, self.folds)

    def with_fold(self, fold: Fold) -> Registry:
        """Return a registry that also knows this aggregate."""
        return Registry(self.functions, {**self.folds, fold.name: fold})
