"""A program for other engines: plain rules in evaluation order, facts as rows of ids.

Rules with an aggregate that a peer lacks are left out, with all rules that depend on them. A negated atom
with a variable of its own is replaced by a rule that projects the variable away. Names have a prefix, so
that no predicate is a keyword in any engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.language.ast import (
    Atom,
    Binding,
    Conjunct,
    Negation,
    Predicate,
    Rule,
    Variable,
    body_atoms,
    predicate_of,
    variables,
)
from zodiacedge.language.safety import analyse
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from zodiacedge_bench.measure.embedded import Loaded
    from zodiacedge_bench.measure.task import Task

COUNT = frozenset({"count"})


@dataclass(frozen=True, slots=True)
class Portable:
    """A program without features that other engines lack."""

    nodes: tuple[tuple[Rule, ...], ...]
    """The rules by hyper-node, in an order in which nodes can be evaluated."""
    facts: Mapping[Predicate, NDArray[np.int32]]
    derived: tuple[Predicate, ...]
    """The predicates to count."""
    missing: frozenset[str]
    """The predicates whose rules were left out."""

    @property
    def rules(self) -> Iterator[Rule]:
        """All rules, in order."""
        return (rule for node in self.nodes for rule in node)

    def predicates(self) -> list[Predicate]:
        """Return every predicate of facts and rules."""
        atoms = (atom for rule in self.rules for atom in (rule.head, *body_atoms(rule.body)))
        return list(dict.fromkeys((*self.facts, *(atom.predicate for atom in atoms))))


def portable(task: Task, aggregates: frozenset[str]) -> Portable:
    """Return the program and facts of a task for an engine with these aggregates."""
    facts = _facts(task.loaded)
    kept = _supported(list(task.rules.values()), frozenset(facts), aggregates)
    nodes: list[tuple[Rule, ...]] = []
    for node in task.graph.order:
        rules = [task.rules[key] for key in node.rules if task.rules[key] in kept]
        helpers: list[Rule] = []
        plain = [_without_own_variables(rule, helpers, len(nodes)) for rule in rules]
        nodes += [(helper,) for helper in helpers]
        if plain:
            nodes.append(tuple(plain))
    heads = {rule.head.predicate for rule in kept}
    every = {rule.head.predicate for rule in task.rules.values()}
    missing = frozenset(predicate.name for predicate in every - heads)
    return Portable(tuple(nodes), facts, tuple(sorted(heads)), missing)


def name_of(predicate: Predicate) -> str:
    """Return a predicate's name in all languages: letters, digits and underscores."""
    return "z_" + "".join(c if c.isascii() and c.isalnum() else "_" for c in predicate.name)


def arguments(atom: Atom) -> tuple[Variable, ...]:
    """Return the variables of an atom; the workloads have no constants in atoms."""
    args = atom.args[: atom.predicate.arity]
    variables_only = tuple(arg for arg in args if isinstance(arg, Variable))
    if len(variables_only) != len(args):
        message = f"no constants in atoms of portable programs: {atom}"
        raise NotImplementedError(message)
    return variables_only


def _facts(loaded: Loaded) -> dict[Predicate, NDArray[np.int32]]:
    facts = {}
    for relation, rows in loaded.rows.items():
        predicate = Predicate(relation.name, relation.arity)
        if relation.name == RDF_TYPE and relation.arity == 1:
            member_of = loaded.terms[relation.member_of]
            predicate = predicate_of(RDF_TYPE, (Variable("X"), member_of))
        facts[predicate] = rows
    return facts


def _supported(
    rules: list[Rule], explicit: frozenset[Predicate], aggregates: frozenset[str]
) -> frozenset[Rule]:
    heads = {rule.head.predicate for rule in rules}
    kept = frozenset(rule for rule in rules if _can_do(rule, aggregates))
    while True:
        missing = heads - explicit - {rule.head.predicate for rule in kept}
        fewer = frozenset(r for r in kept if not any(a.predicate in missing for a in body_atoms(r.body)))
        if fewer == kept:
            return kept
        kept = fewer


def _can_do(rule: Rule, aggregates: frozenset[str]) -> bool:
    folds = rule.aggregate.folds if rule.aggregate else ()
    plain = not any(isinstance(conjunct, Binding) for conjunct in rule.body)
    return plain and all(fold.op.lower() in aggregates for fold in folds)


def _without_own_variables(rule: Rule, helpers: list[Rule], node: int) -> Rule:
    bound = analyse(rule.body).bound

    def plain(conjunct: Conjunct) -> Conjunct:
        if not isinstance(conjunct, Negation) or set(variables(conjunct)) <= bound:
            return conjunct
        shared = tuple(v for v in dict.fromkeys(variables(conjunct)) if v in bound)
        name = f"some_{node}_{len(helpers)}"
        head = Atom(name, shared) if len(shared) != 1 else Atom(RDF_TYPE, (shared[0], IRI(name)))
        helpers.append(Rule(head, (conjunct.atom,)))
        return Negation(head)

    transform: Callable[[Conjunct], Conjunct] = plain
    return Rule(rule.head, tuple(map(transform, rule.body)), rule.label)
