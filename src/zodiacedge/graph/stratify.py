"""The check that no negative edge stands inside a hyper-node, and the message where one does.

A fact whose derivation needs its own absence, or a fold over itself, has no meaning here. For each
offending node the shortest cycle through a negative edge is found and told rule by rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from zodiacedge.errors import Diagnostic, StratificationProblem
from zodiacedge.graph.draw.names import predicate_name, rule_name
from zodiacedge.graph.patterns import carried
from zodiacedge.graph.rdg import Walk
from zodiacedge.language.ast import Aggregate, Atom, Negation, Variable
from zodiacedge.language.unify import pattern_of, unify
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zodiacedge.errors import Span
    from zodiacedge.graph.rdg import RuleGraph
    from zodiacedge.language.ast import Rule

Manner = Literal["", "not", "aggregate"]


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of a cycle: what a rule derives and how the next one reads it."""

    source: str
    target: str
    predicate: str
    manner: Manner
    span: Span | None


def check_stratified(rules: RuleGraph, nodes: Iterable[tuple[str, ...]]) -> None:
    """Raise StratificationProblem with a finding for each node that holds a negative edge."""
    found = [_diagnose(rules, cycle) for node in nodes if (cycle := shortest_cycle(rules, node))]
    if found:
        raise StratificationProblem(found)


def shortest_cycle(rules: RuleGraph, node: tuple[str, ...]) -> tuple[Step, ...]:
    """Return a shortest cycle through a negative edge inside a node, which stands first; or nothing."""
    best: list[str] = []
    members: frozenset[str] = frozenset()
    for reader in node:
        denied = rules.shapes[reader].negative
        if not denied:
            continue
        members = members or frozenset(node)
        writers = {key for body in denied for key in rules.deriving(body) if key in members}
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
    """Return the rules on a shortest path to a goal if it has fewer of them than the bound (0: none)."""
    came: dict[str, str | None] = {start: None}
    walk = Walk(rules)
    level, length = [start], 1
    while level and (not bound or length < bound):
        for key in level:
            if key in goals:
                path = [key]
                while (before := came[path[-1]]) is not None:
                    path.append(before)
                return path[::-1]
        following = []
        for key in level:
            for reader in walk.forward((key,)):
                if reader in members and reader not in came:
                    came[reader] = key
                    following.append(reader)
        level, length = following, length + 1
    return []


def _step(rules: RuleGraph, source: str, target: str, *, negative: bool) -> Step:
    head = rules.shapes[source].head
    reading = [
        (atom, how) for atom, how in _atoms(rules.shapes[target].rule) if unify(head, pattern_of(atom))
    ]
    # Any reading carries the edge; the one that closes the cycle is the negative one to be shown.
    atom, manner = next((found for found in reading if bool(found[1]) == negative), reading[0])
    return Step(source, target, predicate_name(carried(head, pattern_of(atom))), manner, atom.span)


def _atoms(rule: Rule) -> Iterator[tuple[Atom, Manner]]:
    for conjunct in rule.body:
        match conjunct:
            case Atom():
                yield conjunct, ""
            case Negation(atom=atom):
                yield atom, "not"
            case Aggregate(body=body):
                for inner in body:
                    if isinstance(inner, Atom | Negation):
                        yield (inner if isinstance(inner, Atom) else inner.atom), "aggregate"
            case _:
                pass


def _diagnose(rules: RuleGraph, cycle: tuple[Step, ...]) -> Diagnostic:
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


def _manner(step: Step) -> str:
    return {"": "", "not": " under `not`", "aggregate": " inside an aggregate"}[step.manner]


def _any_class(rule: Rule) -> bool:
    head = rule.head
    return head.relation == RDF_TYPE and len(head.args) == 2 and isinstance(head.args[1], Variable)
