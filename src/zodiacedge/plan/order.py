"""Join order of a rule body: the paper's heuristic, corrected by statistics.

Tests and bindings come as soon as their inputs are bound, negated atoms when their variables are, and an
aggregate's rows, which are few, before the atoms beside them. Among the atoms the one with the fewest
expected matches comes first; where two expectations are of the same order of magnitude, an atom that joins
with bound variables, then properties before classes, fewer unbound arguments, and constants before
variables, as in the paper. A delta always comes first.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binding,
    Comparison,
    Conjunct,
    Negation,
    Variable,
    variables,
)
from zodiacedge.language.safety import bound_in
from zodiacedge.language.unify import unifiable
from zodiacedge.language.windows import is_window
from zodiacedge.plan.algebra import Absent, AggregateRows, Let, Match, RelationVersion, Step, Test
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from zodiacedge.language.ast import Predicate

_SAME_MAGNITUDE = 8
# Another start than the atom with the fewest matches must promise so many times less work.
_MUCH_LESS = 4
OWN_ROWS = 100_000
"""The least size that is assumed for a relation of the node itself: its facts are not derived yet."""


class Statistics(Protocol):
    """Estimates of an engine about its relations."""

    def matches(self, atom: Atom, bound: tuple[int, ...]) -> float:
        """Return how many facts match an atom, given values for the bound columns."""


class NoStatistics:
    """Guesses without facts: every bound column makes a match ten times rarer."""

    def matches(self, atom: Atom, bound: tuple[int, ...]) -> float:
        """Return a guess."""
        columns, known = columns_of(atom, bound)
        return 1000.0 / 10**known if columns else 1.0


class PredicateCounts:
    """Estimates from the number of facts of each predicate, for the rules of one node."""

    def __init__(self, counts: Mapping[Predicate, int], heads: Collection[Atom] = ()) -> None:
        """Take the counts, and the heads of the node's rules."""
        self._counts = counts
        self._heads = heads

    def matches(self, atom: Atom, bound: tuple[int, ...]) -> float:
        """Return an estimate from the size of the relation."""
        rows = OWN_ROWS if self._is_assumed(atom) else self._counts.get(atom.predicate, 0)
        return expected(rows, atom, bound)

    def without_assumptions(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Return steps without the estimates that rest on an assumed size instead of counts."""
        return tuple(
            replace(step, estimate=None) if isinstance(step, Match) and self._is_assumed(step.atom) else step
            for step in steps
        )

    def _is_assumed(self, atom: Atom) -> bool:
        return self._counts.get(atom.predicate, 0) < OWN_ROWS and any(
            unifiable(head, atom) for head in self._heads
        )


def expected(rows: int, atom: Atom, bound: tuple[int, ...]) -> float:
    """Return the number of matching rows: each bound column divides it by the root of the size."""
    columns, known = columns_of(atom, bound)
    return float(rows ** (1.0 - known / columns)) if columns else 1.0


def columns_of(atom: Atom, bound: tuple[int, ...]) -> tuple[int, int]:
    """Return how many columns an atom has and how many are known; the members of a class have one."""
    if atom.relation == RDF_TYPE and len(atom.args) == 2 and not isinstance(atom.args[1], Variable):
        return 1, int(0 in bound)
    return len(atom.args), len(bound)


def arrange(
    body: tuple[Conjunct, ...],
    recursive: Collection[int],
    delta: int | None,
    statistics: Statistics,
    needed: Collection[Variable],
) -> tuple[Step, ...]:
    """Return the steps of a resolved body.

    Args:
        body: The conjuncts.
        recursive: The positions of atoms that the node itself derives.
        delta: The position whose delta is read, or None for the initial plan.
        statistics: Expected matches.
        needed: The variables that are needed after the body; all if every binding counts.
    """
    if len(body) == 1 and isinstance(body[0], Atom):
        return (_only_step(body[0], _read(0, recursive, delta), statistics, needed),)
    steps = _arranged(body, recursive, delta, statistics, needed)
    if delta is not None or len(steps) < 2:
        return steps
    # The atom with the fewest matches is a bad start if each of them has many matches further on.
    best, least = steps, _work(steps) / _MUCH_LESS
    for position, conjunct in enumerate(body):
        if isinstance(conjunct, Atom) and position not in recursive and position != steps[0].position:
            if statistics.matches(conjunct, _bound_columns(conjunct, set())) >= least:
                continue
            other = _arranged(body, recursive, position, statistics, needed)
            work = _work(other)
            if work < least:
                best, least = other, work
    return best


def _work(steps: tuple[Step, ...]) -> float:
    """Return the number of matches that a plan is expected to visit."""
    bindings, work = 1.0, 0.0
    for step in steps:
        if isinstance(step, Match | AggregateRows) and step.estimate is not None:
            once = isinstance(step, Match) and step.once
            bindings *= min(step.estimate, 1.0) if once else step.estimate
            work += bindings
    return work


def _arranged(
    body: tuple[Conjunct, ...],
    recursive: Collection[int],
    delta: int | None,
    statistics: Statistics,
    needed: Collection[Variable],
) -> tuple[Step, ...]:
    final = bound_in(body)
    waiting = dict(enumerate(body))
    bound: set[Variable] = set()
    # The variables whose values are in facts: a window holds moments that no fact has, and a binding must not
    # make further ones of them.
    of_facts: set[Variable] = set()
    steps: list[Step] = []
    while waiting:
        position = _next(waiting, (bound, of_facts), final, delta, statistics)
        conjunct = waiting.pop(position)
        steps.append(_step(conjunct, position, bound, _read(position, recursive, delta), statistics))
        binds = [v for v in _variables(conjunct) if v in final]
        bound.update(binds)
        if not is_window(conjunct):
            of_facts.update(binds)
    return _marked_once(tuple(steps), needed)


def _next(
    waiting: dict[int, Conjunct],
    known: tuple[set[Variable], set[Variable]],
    final: frozenset[Variable],
    delta: int | None,
    statistics: Statistics,
) -> int:
    bound, of_facts = known
    if delta is not None and delta in waiting:
        return delta
    if len(waiting) == 1:
        return next(iter(waiting))
    for position, conjunct in waiting.items():
        if isinstance(conjunct, Atom | Aggregate):
            continue
        values = of_facts if isinstance(conjunct, Binding) else bound
        if values.issuperset(v for v in _inputs(conjunct) if v in final):
            return position
    rows = [position for position, c in waiting.items() if isinstance(c, Aggregate)]
    if rows:
        return rows[0]
    atoms = {position: c for position, c in waiting.items() if isinstance(c, Atom)}
    return min(atoms, key=lambda position: _cost(atoms[position], position, bound, statistics))


def _cost(
    atom: Atom, position: int, bound: set[Variable], statistics: Statistics
) -> tuple[int, bool, bool, int, int, float, int]:
    known = _bound_columns(atom, bound)
    # A window is a constant that a large part of the rows may have: it makes no match rarer.
    expected = statistics.matches(atom, () if is_window(atom) and 0 not in known else known)
    magnitude = int(math.log(expected + 1, _SAME_MAGNITUDE))
    constants = sum(not isinstance(a, Variable) for a in atom.args)
    columns, settled = columns_of(atom, known)
    names = set(variables(atom))
    product = bool(bound) and bool(names) and not names & bound
    return magnitude, product, atom.relation == RDF_TYPE, columns - settled, -constants, expected, position


def _read(position: int, recursive: Collection[int], delta: int | None) -> RelationVersion:
    if delta is None or position not in recursive or position > delta:
        return RelationVersion.NEW
    return RelationVersion.DELTA if position == delta else RelationVersion.OLD


def _step(
    conjunct: Conjunct,
    position: int,
    bound: set[Variable],
    read: RelationVersion,
    statistics: Statistics,
) -> Step:
    match conjunct:
        case Atom():
            known = _bound_columns(conjunct, bound)
            return Match(
                conjunct, position, read, known, once=False, estimate=statistics.matches(conjunct, known)
            )
        case Aggregate():
            known = tuple(n for n, v in enumerate(conjunct.columns) if v in bound)
            return AggregateRows(conjunct, position, known, 1.0)
        case Negation(atom=atom):
            return Absent(atom, position, _bound_columns(atom, bound))
        case Comparison():
            return Test(conjunct, position)
        case Binding():
            return Let(conjunct, position)


def _only_step(
    atom: Atom, read: RelationVersion, statistics: Statistics, needed: Collection[Variable]
) -> Match:
    """Return the step of a body that is one atom, as most bodies are in an ontology."""
    bound = _bound_columns(atom, set())
    once = read is not RelationVersion.DELTA and not any(
        isinstance(a, Variable) and a in needed for a in atom.args
    )
    return Match(atom, 0, read, bound, once=once, estimate=statistics.matches(atom, bound))


def _bound_columns(atom: Atom, bound: set[Variable]) -> tuple[int, ...]:
    return tuple(n for n, a in enumerate(atom.args) if not isinstance(a, Variable) or a in bound)


def _variables(conjunct: Conjunct) -> list[Variable]:
    return list(conjunct.columns if isinstance(conjunct, Aggregate) else variables(conjunct))


def _inputs(conjunct: Conjunct) -> list[Variable]:
    return list(variables(conjunct.expression if isinstance(conjunct, Binding) else conjunct))


def _marked_once(steps: tuple[Step, ...], needed: Collection[Variable]) -> tuple[Step, ...]:
    # An atom whose new variables are not needed afterwards is a test: its first match is enough.
    later: set[Variable] = set(needed)
    marked: list[Step] = []
    for at in range(len(steps) - 1, -1, -1):
        step = steps[at]
        if isinstance(step, Match):
            fresh = {
                a for n, a in enumerate(step.atom.args) if isinstance(a, Variable) and n not in step.bound
            }
            if step.read is not RelationVersion.DELTA and not fresh & later:
                step = replace(step, once=True)
        marked.append(step)
        later.update(used_variables(steps[at]))
    return tuple(reversed(marked))


def repeats(steps: tuple[Step, ...], head: Collection[object]) -> bool:
    """Whether a plan may emit a head more than once, because it binds a variable that the head lacks."""
    for step in steps:
        match step:
            case Match(atom=atom, bound=bound, once=False):
                fresh = [a for n, a in enumerate(atom.args) if n not in bound]
            case AggregateRows(bound=bound):
                fresh = [v for n, v in enumerate(step.columns) if n not in bound]
            case _:
                continue
        if not all(variable in head for variable in fresh):
            return True
    return False


def used_variables(step: Step) -> list[Variable]:
    """Return the variables that a step reads or binds."""
    match step:
        case Match(atom=atom) | Absent(atom=atom):
            return list(variables(atom))
        case AggregateRows():
            return list(step.columns)
        case Test(comparison=comparison):
            return list(variables(comparison))
        case Let(binding=binding):
            return list(variables(binding))
