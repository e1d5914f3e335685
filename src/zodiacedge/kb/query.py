"""Checks queries and prepares them for repeated use."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.errors import CheckProblem, Diagnostic, UsageProblem, nearest
from zodiacedge.kb.answers import Answers
from zodiacedge.kb.time.clock import times_in
from zodiacedge.language.ast import Aggregate, Atom, Negation, Rule, Variable, conjuncts, variables
from zodiacedge.language.checks import check_query
from zodiacedge.language.parser import parse_query
from zodiacedge.language.printer import format_argument
from zodiacedge.language.safety import resolve_query
from zodiacedge.language.windows import body_by_clock, has_windows, untimed_windows, with_atoms
from zodiacedge.terms import from_python

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from zodiacedge.engine.api import Answer, Settings, State
    from zodiacedge.language.ast import Query
    from zodiacedge.language.checks import Host
    from zodiacedge.terms import Term


class Prepared:
    """A checked and planned query: call it with values for its parameters, as often as needed.

    The first call after a change of the knowledge base plans it again.
    """

    def __init__(
        self,
        query: Query,
        parameters: Mapping[str, Variable],
        read: Callable[[], AbstractContextManager[State]],
        settings: Callable[[], Settings],
        prefixes: Callable[[], Mapping[str, str]],
    ) -> None:
        """Use `KnowledgeBase.prepare` instead."""
        self._read = read
        self._prefixes = prefixes
        self._settings = settings
        self._query = query
        self._parameters = parameters
        self.columns = columns_of(query)
        self._planned: tuple[State, Settings, Callable[[Mapping[Variable, Term]], Answer]] | None = None

    def __call__(self, /, **values: object) -> Answers:
        """Answer the query; a string is a literal, an IRI is made with `zodiacedge.iri`."""
        if values.keys() != self._parameters.keys():
            expected = ", ".join(self._parameters) or "no values"
            raise UsageProblem(Diagnostic("U009", f"this query takes {expected}", "give each by its name"))
        given = {self._parameters[name]: from_python(value) for name, value in values.items()}
        with self._read() as state:
            settings = self._settings()
            if self._planned is None or self._planned[0] is not state or self._planned[1] is not settings:
                parameters = tuple(self._parameters.values())
                query = answerable(self._query, parameters, state)
                self._planned = (state, settings, state.prepare(query, parameters, settings))
            answer = self._planned[2](given)
        return Answers(self.columns, answer.rows, (), answer.dropped, self._prefixes())


def columns_of(query: Query) -> tuple[str, ...]:
    """Return the names of a query's columns."""
    return tuple(format_argument(c).removeprefix("?") for c in query.columns)


class CheckedQuery(NamedTuple):
    """A parsed and checked query, with the warnings of both."""

    query: Query
    warnings: tuple[Diagnostic, ...]


def checked_query(
    text: str,
    prefixes: Mapping[str, str],
    host: Host,
    given: Collection[Variable] = (),
    name: str = "<query>",
) -> CheckedQuery:
    """Parse and check a query, or raise; variables in `given` are parameters."""
    query = parse_query(text, name, prefixes, given)
    problems = list(_bad_parameters(query, given))
    if problems:
        raise UsageProblem(problems)
    diagnostics = check_query(query, host, given)
    errors = [d for d in diagnostics if d.severity == "error"]
    if errors:
        raise CheckProblem(errors)
    return CheckedQuery(query, tuple(d for d in diagnostics if d.severity != "error"))


def answerable(query: Query, given: Iterable[Variable], state: State) -> Query:
    """Return a checked query for an engine: resolved, with its windows as comparisons with the clock."""
    resolved = resolve_query(query, given)
    body = Rule(Atom("ans", ()), resolved.body, span=query.span)
    if not has_windows(body):
        return resolved
    times = times_in(state)
    findings = [*untimed_windows(body, times), *_negated_windows(query)]
    if findings:
        raise CheckProblem(findings)
    return replace(resolved, body=body_by_clock(with_atoms(body, times)[0].body))


def _negated_windows(query: Query) -> Iterator[Diagnostic]:
    for conjunct in conjuncts(query.body):
        if isinstance(conjunct, Negation) and conjunct.atom.within:
            note = "give it a rule, and ask for its head: recent(S) :- reading(S, V, T) within 10 min ."
            yield Diagnostic("C024", "a query cannot negate a window", note, conjunct.atom.span)


def _bad_parameters(query: Query, given: Iterable[Variable]) -> Iterator[Diagnostic]:
    """Yield errors for parameters that the query lacks or that are local to an aggregate."""
    columns = (c for c in query.columns if isinstance(c, Variable))
    candidates = dict.fromkeys((*columns, *(v for c in query.body for v in variables(c))))
    named = [v.name for v in candidates if not v.anonymous]
    for v in given:
        if v.name not in named:
            near = nearest(v.name, named)
            hint = f"did you mean {near}?" if near else f"its variables are: {', '.join(named) or 'none'}"
            yield Diagnostic("U009", f"the query has no variable {v.name}", hint)
        for aggregate in (c for c in query.body if isinstance(c, Aggregate)):
            if v not in aggregate.groups and any(v in variables(c) for c in aggregate.body):
                yield Diagnostic(
                    "U010",
                    f"{v.name} is a variable inside the AGGREGATE, where a parameter is not seen",
                    f"group by it, ON {v.name}, or keep what it says outside the AGGREGATE",
                    aggregate.span,
                )
