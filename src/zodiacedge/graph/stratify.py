"""Stratification: the check that no hyper-node has a negative edge inside, and its diagnostic.

A fact whose derivation depends on its own absence, or on an aggregate over itself, has no meaning. The
diagnostic of a node shows the shortest cycle through a negative edge, rule by rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from zodiacedge.errors import Diagnostic, StratificationProblem
from zodiacedge.graph.draw.names import predicate_name, rule_name
from zodiacedge.graph.patterns import carried
from zodiacedge.graph.rule_graph import Walk
from zodiacedge.language.ast import Aggregate, Atom, Negation, Variable, body_atoms
from zodiacedge.language.unify import pattern_of, unify
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zodiacedge.errors import Span
    from zodiacedge.graph.rule_graph import RuleGraph
    from zodiacedge.language.ast import Rule

Manner = Literal["", "not", "aggregate"]
_MANNERS: dict[type, Manner] = {Negation: "not", Aggregate: "aggregate"}


@dataclass(frozen=True, slots=True)
class CycleEdge:
    """An edge of a cycle: the predicate that a rule derives, and how the next rule reads it."""

    source: str
    target: str
    predicate: str
    manner: Manner
    span: Span | None


def check_stratified(rules: RuleGraph, nodes: Iterable[tuple[str, ...]]) -> None:
    """Raise StratificationProblem with a finding for each node with a negative edge inside."""
    cycles = [cycle for node in nodes if (cycle := shortest_cycle(rules, node))]
    if cycles:
        raise StratificationProblem(
            [_diagnose(rules, cycle) for cycle in cycles],
            [tuple(step.source for step in cycle) for cycle in cycles],
        )


def shortest_cycle(rules: RuleGraph, node: tuple[str, ...]) -> tuple[CycleEdge, ...]:
    """Return a shortest cycle through a negative edge inside a node, that edge first; or nothing."""
    best: list[str] = []
    members: frozenset[str] = frozenset()
    for reader in node:
        negated = rules.shapes[reader].negative
        if not negated:
            continue
        members = members or frozenset(node)
        writers = {key for body in negated for key in rules.deriving(body) if key in members}
        path = _shortest_path(rules, members, reader, writers, len(best)) if writers else []
        if path:
            best = path
    if not best:
        return ()
    steps = [_step(rules, source, target, negative=False) for source, target in pairwise(best)]
    return (_step(rules, best[-1], best[0], negative=True), *steps)


def _shortest_path(
    rules: RuleGraph, members: frozenset[str], start: str, goals: set[str], bound: int
) -> list[str]:
    """Return the rules of a shortest path to a goal if they are fewer than the bound (0: no bound)."""
    previous: dict[str, str | None] = {start: None}
    walk = Walk(rules)
    level, length = [start], 1
    while level and (not bound or length < bound):
        for key in level:
            if key in goals:
                path = [key]
                while (before := previous[path[-1]]) is not None:
                    path.append(before)
                return path[::-1]
        following = []
        for key in level:
            for reader in walk.forward((key,)):
                if reader in members and reader not in previous:
                    previous[reader] = key
                    following.append(reader)
        level, length = following, length + 1
    return []


def _step(rules: RuleGraph, source: str, target: str, *, negative: bool) -> CycleEdge:
    head = rules.shapes[source].head
    candidates = [
        (atom, how) for atom, how in _atoms(rules.shapes[target].rule) if unify(head, pattern_of(atom))
    ]
    # Any of the atoms gives the edge; for the edge that closes the cycle a negative one is shown.
    atom, manner = next(
        (candidate for candidate in candidates if bool(candidate[1]) == negative), candidates[0]
    )
    return CycleEdge(source, target, predicate_name(carried(head, pattern_of(atom))), manner, atom.span)


def _atoms(rule: Rule) -> Iterator[tuple[Atom, Manner]]:
    for conjunct in rule.body:
        for atom in body_atoms((conjunct,)):
            yield atom, _MANNERS.get(type(conjunct), "")


def _diagnose(rules: RuleGraph, cycle: tuple[CycleEdge, ...]) -> Diagnostic:
    names = {step.source: _quoted(rules.shapes[step.source].rule) for step in cycle}
    manners = dict.fromkeys(step.manner for step in cycle if step.manner)
    through = " and ".join({"not": "`not`", "aggregate": "an aggregate"}[manner] for manner in manners)
    lines = [
        f"    {names[step.source]} derives {step.predicate}, which {names[step.target]} reads{_manner(step)}"
        for step in cycle
    ]
    note = "take one rule out of the cycle, or let it read a predicate that the cycle does not derive"
    wide = [step.source for step in cycle if _any_class(rules.shapes[step.source].rule)]
    if wide:
        note = (
            f"the head of {' and '.join(names[key] for key in wide)} is `rdf:type` with a variable class: "
            "it can derive a fact of any class, so it feeds every rule that reads one; "
            "name the class in the head, or keep what must be negated in a property"
        )
    return Diagnostic(
        "G001",
        f"a cycle of rules passes through {through}, so they have no order of evaluation:\n"
        + "\n".join(lines),
        note,
        cycle[0].span,
        related=tuple(
            (f"{names[step.target]} reads {step.predicate}{_manner(step)}", step.span)
            for step in cycle[1:]
            if step.span
        ),
    )


def _quoted(rule: Rule) -> str:
    return rule.label or f"`{rule_name(rule)}`"


def _manner(step: CycleEdge) -> str:
    return {"": "", "not": " under `not`", "aggregate": " inside an aggregate"}[step.manner]


def _any_class(rule: Rule) -> bool:
    head = rule.head
    return head.relation == RDF_TYPE and len(head.args) == 2 and isinstance(head.args[1], Variable)
