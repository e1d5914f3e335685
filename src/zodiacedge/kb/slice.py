"""Cuts the slice of a knowledge base that one device needs: facts, and the rules that concern them.

A text selects the facts of a slice in one of two ways:

    ?- neighbour(wt1, N), reading(N, V) .     the facts that its atoms match: an atom alone is such a query
    about(S) :- sensor(wt1, S) .              the explicit facts that mention one of its answers

The predicates of a `?-` are *given*: the slice holds their facts as explicit ones, derived or not, and leaves
out the rules that derive only them. Of the other rules it holds those that read its facts, directly or
indirectly, the rules that these depend on, and those that need no facts. The rules left out could derive
nothing from the facts of the slice. Writing the slice as a store is left to `store.export_slice`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.api import Mentioning
from zodiacedge.errors import CheckProblem, Diagnostic, StoreProblem, UsageProblem, nearest
from zodiacedge.graph.rule_graph import Walk
from zodiacedge.kb.query import answerable
from zodiacedge.kb.time.clock import time_facts
from zodiacedge.kb.time.retention import statements_of
from zodiacedge.kb.warnings import mistaken_constants, unknown_predicates
from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Fact,
    Predicate,
    Query,
    Variable,
    atom,
    body_atoms,
    variables,
)
from zodiacedge.language.checks import check_query
from zodiacedge.language.parser import parse_query
from zodiacedge.language.unify import Pattern, pattern_of
from zodiacedge.language.windows import is_hidden
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.api import Settings, State
    from zodiacedge.kb.rule_base import RuleBase
    from zodiacedge.language.ast import Argument, Conjunct, Rule
    from zodiacedge.language.checks import Host
    from zodiacedge.terms import Term


@dataclass(frozen=True, slots=True)
class Slice:
    """The facts and rules of a slice, and the number of rules left out."""

    facts: frozenset[Fact]
    rules: tuple[Rule, ...]
    given: tuple[Predicate, ...]
    """The predicates whose facts become explicit ones."""
    left_behind: int
    warnings: tuple[Diagnostic, ...] = ()


class _Selection(NamedTuple):
    """A text: its query, whether it selects facts that mention the answers, and values of its variables."""

    query: Query
    mentions: bool
    values: dict[Variable, Term]


class Selections(NamedTuple):
    """The parsed and checked texts of a slice, with warnings."""

    selections: tuple[_Selection, ...]
    warnings: tuple[Diagnostic, ...]


def parse_slice(
    texts: Sequence[str], values: Mapping[str, Term], *, prefixes: Mapping[str, str], host: Host
) -> Selections:
    """Parse and check the texts of a slice.

    Args:
        texts: Queries and atoms.
        values: Values for the variables of that name in all texts.
        prefixes: The prefixes that texts may use.
        host: Functions and aggregates that the host registered.
    """
    if not texts:
        raise _empty("the slice is empty")
    given = {Variable(name): value for name, value in values.items()}
    selections = [_parse(text, given, prefixes) for text in texts]
    used = {v for selection in selections for v in selection.values}
    for v in given:
        if v not in used:
            named = dict.fromkeys(
                x.name for w in selections for x in _named_variables(w.query) if _is_written(x)
            )
            near = nearest(v.name, list(named))
            hint = f"did you mean {near}?" if near else f"its variables are: {', '.join(named) or 'none'}"
            raise UsageProblem(Diagnostic("U009", f"the slice has no variable {v.name}", hint))
    diagnostics = [
        d for selection in selections for d in check_query(selection.query, host, selection.values)
    ]
    if any(d.severity == "error" for d in diagnostics):
        raise CheckProblem(d for d in diagnostics if d.severity == "error")
    return Selections(tuple(selections), tuple(diagnostics))


def matching_facts(selections: Selections, state: State, settings: Settings) -> frozenset[Fact]:
    """Return the facts that the atoms of queries match."""
    matches = (
        _matching(selection, _positive_atoms(selection.query.body), state, settings)
        for selection in selections.selections
    )
    return frozenset(chain.from_iterable(matches))


def cut_slice(selections: Selections, program: RuleBase, state: State, settings: Settings) -> Slice:
    """Return the facts that the texts of a slice select, and the rules that concern them."""
    predicates = state.predicates()
    warnings = list(selections.warnings)
    facts: set[Fact] = set()
    given: dict[Pattern, None] = {}
    rules = [rule for rule in program.rules.values() if not is_hidden(rule)]
    for selection in selections.selections:
        warnings += unknown_predicates(body_atoms(selection.query.body), predicates, rules)
        warnings += mistaken_constants(selection.query.body, state.holds)
        if selection.mentions:
            facts.update(_mentioning(selection, program, state, settings))
        else:
            atoms = _positive_atoms(selection.query.body)
            given |= dict.fromkeys(_widest(a) for a in atoms)
            facts.update(_matching(selection, atoms, state, settings))
    kept = _rules(program, given, facts)
    if not facts:
        warnings.append(_no_facts())
    rest = [rule for key in kept if not is_hidden(rule := program.rules[key])]
    return Slice(
        frozenset(facts.union(time_facts(state, settings), statements_of(facts, state))),
        tuple(rest),
        tuple(dict.fromkeys(pattern.predicate for pattern in given)),
        len(rules) - len(rest),
        tuple(dict.fromkeys(warnings)),
    )


def _parse(text: str, given: Mapping[Variable, Term], prefixes: Mapping[str, str]) -> _Selection:
    query = parse_query(text, "<slice>", prefixes, given)
    mentions = query.head is not None
    if not _positive_atoms(query.body):
        raise _empty(f"the slice {text.strip()} names no predicate")
    if mentions and not query.columns:
        raise _empty(f"the slice {text.strip()} does not say what facts are to mention")
    named = set(_named_variables(query))
    return _Selection(_renamed(query), mentions, {v: value for v, value in given.items() if v in named})


def _named_variables(query: Query) -> Iterator[Variable]:
    yield from (c for c in query.columns if isinstance(c, Variable))
    for conjunct in query.body:
        seen = conjunct.groups if isinstance(conjunct, Aggregate) else variables(conjunct)
        yield from (v for v in seen if not v.anonymous)


def _positive_atoms(body: Iterable[Conjunct]) -> list[Atom]:
    return [conjunct for conjunct in body if isinstance(conjunct, Atom)]


def _renamed(query: Query) -> Query:
    """Return a query with named variables instead of `_`, because whole facts are selected."""
    body = tuple(replace(c, args=tuple(map(_name, c.args))) if isinstance(c, Atom) else c for c in query.body)
    return replace(query, body=body)


def _name(arg: Argument) -> Argument:
    # A name that no program text can contain, and that is not one of an anonymous variable.
    return Variable(f".{arg.name}") if isinstance(arg, Variable) and arg.anonymous else arg


def _is_written(variable: Variable) -> bool:
    return not variable.name.startswith(".")


# Facts


def _matching(
    selection: _Selection, atoms: Iterable[Atom], state: State, settings: Settings
) -> Iterator[Fact]:
    for selected in atoms:
        # One query per atom: a common query could have the product of their facts as rows.
        rows = _rows(Query(selected.args, selection.query.body), selection.values, state, settings)
        yield from (Fact(selected.relation, row) for row in rows)


def _mentioning(selection: _Selection, program: RuleBase, state: State, settings: Settings) -> Iterator[Fact]:
    if isinstance(state, Mentioning):
        rows = _rows(selection.query, selection.values, state, settings)
        yield from state.mentioning({term for row in rows for term in row})
        return
    for predicate in state.explicit_counts():
        positions = [Variable(f".{n}") for n in range(predicate.arity)]
        facts: set[Fact] = set()
        for column in dict.fromkeys(selection.query.columns):
            for n in range(predicate.arity):
                args = tuple(column if n == m else other for m, other in enumerate(positions))
                whole = atom(predicate.name, args)
                rows = _rows(
                    Query(whole.args, (*selection.query.body, whole)), selection.values, state, settings
                )
                facts.update(Fact(whole.relation, row) for row in rows)
        yield from _explicit(facts, predicate, program, state)


def _explicit(facts: set[Fact], predicate: Predicate, program: RuleBase, state: State) -> Iterable[Fact]:
    """Return the explicit facts among visible facts of a predicate."""
    whole = atom(predicate.name, tuple(Variable(f".{n}") for n in range(predicate.arity)))
    if facts and any(True for _ in program.graph.rules.deriving(pattern_of(whole))):
        unchanged = state.effective_delta(state.batch(), state.batch())
        facts.intersection_update(unchanged.matching(whole))
    return facts


def _rows(
    query: Query, values: Mapping[Variable, Term], state: State, settings: Settings
) -> Iterable[tuple[Term, ...]]:
    resolved = answerable(query, values, state)
    if not values:
        return state.answer(resolved, settings).rows
    return state.prepare(resolved, tuple(values), settings)(values).rows


# Rules


def _widest(specific: Atom) -> Pattern:
    """Return the pattern of all facts of an atom's predicate."""
    variable = tuple(Variable(f".{n}") for n in range(len(specific.args)))
    if specific.relation == RDF_TYPE and len(specific.args) == 2 and specific.predicate.arity == 1:
        return pattern_of(replace(specific, args=(variable[0], specific.args[1])))
    return pattern_of(replace(specific, args=variable))


def _rules(program: RuleBase, given: Iterable[Pattern], facts: Iterable[Fact]) -> tuple[str, ...]:
    whole = program.graph.rules
    left_out = [key for key, shape in whole.shapes.items() if any(_covers(p, shape.head) for p in given)]
    graph = whole.changed({}, left_out)
    examples = {fact.predicate: fact for fact in facts}
    starts = {*given, *(_widest(Atom(fact.relation, fact.args)) for fact in examples.values())}
    reading = {key for pattern in starts for key, _, _ in graph.readers(pattern)}
    reading |= {key for key, shape in graph.shapes.items() if _needs_no_facts(shape.rule)}
    reading = _reached(Walk(graph).forward, reading)
    return graph.in_order(_reached(Walk(graph).backward, reading))


def _covers(given: Pattern, head: Pattern) -> bool:
    """Return whether all facts of a head belong to a given predicate."""
    if given.relation != head.relation or len(given.args) != len(head.args):
        return False
    return all(isinstance(a, int) or a == b for a, b in zip(given.args, head.args, strict=True))


def _needs_no_facts(rule: Rule) -> bool:
    aggregate = rule.aggregate
    return not _positive_atoms(rule.body) and not (aggregate and _positive_atoms(aggregate.body))


def _reached(step: Callable[[Iterable[str]], Iterator[str]], starts: set[str]) -> set[str]:
    reached = set(starts)
    waiting = list(starts)
    while waiting:
        for key in step((waiting.pop(),)):
            if key not in reached:
                reached.add(key)
                waiting.append(key)
    return reached


# Errors


def _empty(why: str) -> StoreProblem:
    note = "write an atom or a query: 'reading(wt1, _)', '?- near(wt1, X), reading(X, V) .'"
    return StoreProblem(Diagnostic("D015", why, note))


def _no_facts() -> Diagnostic:
    note = "check names and values; a name in a rule is an IRI, a text from a table is a string"
    return Diagnostic("W015", "the slice holds no facts", note, severity="warning")
