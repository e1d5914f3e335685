"""Lookups in a state of any engine, by its prepared queries, one for each row of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.language.ast import Atom

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from zodiacedge.engine.api import Answer, Lookup, Settings, State
    from zodiacedge.language.ast import Fact, Query, Variable
    from zodiacedge.terms import Term


class QueryLookups:
    """Lookups by prepared queries, one for each row of values."""

    joins_explicit = False

    def __init__(self, state: State, settings: Settings) -> None:
        """Read one state."""
        self._state = state
        self._settings = settings

    def prepare(self, query: Query, parameters: tuple[Variable, ...]) -> Lookup:
        """Plan a resolved query, whose parameters get values later."""
        return _QueryLookup(self._state.prepare(query, parameters, self._settings), parameters)

    def explicit_among(self, facts: Collection[Fact]) -> frozenset[Fact]:
        """Return those of some facts that are explicit."""
        unchanged = self._state.effective_delta(self._state.batch(), self._state.batch())
        return frozenset(
            f for f in facts if any(True for _ in unchanged.matching(Atom(f.relation, f.args), 1))
        )


class _QueryLookup:
    def __init__(
        self, answered: Callable[[Mapping[Variable, Term]], Answer], parameters: tuple[Variable, ...]
    ) -> None:
        self._answered = answered
        self._parameters = parameters

    def __call__(
        self, given: Sequence[tuple[Term, ...]], most: int
    ) -> tuple[Sequence[tuple[Term, ...]], bool]:
        rows: dict[tuple[Term, ...], None] = {}
        for values in given:
            answer = self._answered(dict(zip(self._parameters, values, strict=True)))
            rows.update(dict.fromkeys(answer.rows))
            if len(rows) > most:
                return list(rows)[:most], False
        return list(rows), True
