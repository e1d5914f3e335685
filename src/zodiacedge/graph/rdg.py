"""The rule dependency graph: which rules read what a rule derives.

Its edges are never stored, because m writers and n readers of one predicate would be m × n of them.
A rule leads to the pattern of its head, that to the body patterns it unifies with, and those to the
rules that read them; each step is kept in a table. An edge is negative where the reader holds the
atom under `not` or anywhere inside an aggregate. The graph is a value: a change returns a new one.
Components and their order are left to `hrdg`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from zodiacedge.graph.digraph import ordered_components
from zodiacedge.graph.patterns import PatternIndex
from zodiacedge.language.ast import Aggregate, Atom, Negation
from zodiacedge.language.unify import Pattern, pattern_of
from zodiacedge.util.cow_dict import CowDict
from zodiacedge.util.cow_multimap import CowMultimap

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from zodiacedge.language.ast import Rule

Pairs = list[tuple[Pattern, str]]


@dataclass(frozen=True, slots=True)
class RuleShape:
    """A rule as the graph sees it: the patterns of its head and of what it reads."""

    rule: Rule
    serial: int
    """Counts up with every rule added, so sets of rules can be listed in the order they came."""
    head: Pattern
    positive: tuple[Pattern, ...]
    negative: tuple[Pattern, ...]

    def same_dependencies(self, other: RuleShape) -> bool:
        """Whether the two rules have the same edges in any graph."""
        return (
            self.head == other.head
            and set(self.positive) == set(other.positive)
            and set(self.negative) == set(other.negative)
        )


def shape_of(rule: Rule, serial: int = 0) -> RuleShape:
    """Return a rule's shape: positive atoms outside aggregates against all the others."""
    positive: dict[Pattern, None] = {}
    negative: dict[Pattern, None] = {}
    for conjunct in rule.body:
        match conjunct:
            case Atom():
                positive[pattern_of(conjunct)] = None
            case Negation(atom=atom):
                negative[pattern_of(atom)] = None
            case Aggregate(body=body):
                for inner in body:
                    if isinstance(inner, Atom | Negation):
                        atom = inner if isinstance(inner, Atom) else inner.atom
                        negative[pattern_of(atom)] = None
            case _:
                pass
    return RuleShape(rule, serial, pattern_of(rule.head), tuple(positive), tuple(negative))


@dataclass(frozen=True, slots=True)
class RuleGraph:
    """All rules by key, with the tables that lead from rule to pattern to rule and back."""

    shapes: CowDict[str, RuleShape] = field(default_factory=CowDict)
    writers: CowMultimap[Pattern, str] = field(default_factory=CowMultimap)
    positive: CowMultimap[Pattern, str] = field(default_factory=CowMultimap)
    negative: CowMultimap[Pattern, str] = field(default_factory=CowMultimap)
    heads: PatternIndex = field(default_factory=PatternIndex)
    bodies: PatternIndex = field(default_factory=PatternIndex)
    next_serial: int = 0

    def __len__(self) -> int:
        """Count the rules."""
        return len(self.shapes)

    def changed(self, added: Mapping[str, Rule], removed: Collection[str]) -> RuleGraph:
        """Return the graph without the removed rules, which it has, and with the added, which it lacks."""
        shapes = self.shapes.copy()
        gone = [(key, shapes.pop(key)) for key in removed]
        come = [(key, shape_of(rule, self.next_serial + i)) for i, (key, rule) in enumerate(added.items())]
        shapes.update(come)
        writers = self.writers.changed(_written(come), _written(gone))
        positive = self.positive.changed(_read(come), _read(gone))
        negative = self.negative.changed(_denied(come), _denied(gone))

        def readable(pattern: Pattern) -> bool:
            return pattern in positive or pattern in negative

        def was_readable(pattern: Pattern) -> bool:
            return pattern in self.positive or pattern in self.negative

        touched = dict.fromkeys(pattern for pattern, _ in (*_read(come + gone), *_denied(come + gone)))
        written = dict.fromkeys(pattern for pattern, _ in _written(come + gone))
        return RuleGraph(
            shapes,
            writers,
            positive,
            negative,
            self.heads.changed(
                [p for p in written if p in writers and p not in self.writers],
                [p for p in written if p in self.writers and p not in writers],
            ),
            self.bodies.changed(
                [p for p in touched if readable(p) and not was_readable(p)],
                [p for p in touched if was_readable(p) and not readable(p)],
            ),
            self.next_serial + len(come),
        )

    def renamed(self, rules: Mapping[str, Rule]) -> RuleGraph:
        """Return the graph with rules written anew under their keys: other labels, names or spans."""
        shapes = self.shapes.copy()
        for key, rule in rules.items():
            old, new = shapes[key], shape_of(rule, shapes[key].serial)
            if not new.same_dependencies(old):
                raise ValueError(f"the key {key!r} stands for a rule with other dependencies")
            shapes[key] = replace(old, rule=rule)
        return replace(self, shapes=shapes)

    def readers(self, pattern: Pattern) -> Iterator[tuple[str, Pattern, bool]]:
        """Yield each rule that reads facts of a pattern, the body pattern, and whether negatively."""
        for body in self.bodies.unifying(pattern):
            for key in self.positive[body]:
                yield key, body, False
            for key in self.negative[body]:
                yield key, body, True

    def deriving(self, pattern: Pattern) -> Iterator[str]:
        """Yield each rule whose head unifies with a pattern."""
        for head in self.heads.unifying(pattern):
            yield from self.writers[head]

    def edges_from(self, key: str) -> Iterator[tuple[str, bool]]:
        """Yield the rules that a rule leads to, and whether the edge is negative. Edges may repeat."""
        for reader, _, negative in self.readers(self.shapes[key].head):
            yield reader, negative

    def in_order(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return rules in the order in which they came."""
        return tuple(sorted(keys, key=lambda key: self.shapes[key].serial))

    def components(self, keys: Collection[str]) -> list[tuple[str, ...]]:
        """Return the components of the graph restricted to some rules, in topological order.

        Patterns are vertices between the rules, so the work is near the number of atoms. Among rules
        that may stand in either order, the one that came first goes first.
        """
        rules = self.in_order(keys)
        first_head = len(rules)
        heads: dict[Pattern, int] = {}
        bodies: dict[Pattern, int] = {}
        for key in rules:
            heads.setdefault(self.shapes[key].head, first_head + len(heads))
        first_body = first_head + len(heads)
        readers: list[list[int]] = []
        for number, key in enumerate(rules):
            shape = self.shapes[key]
            for body in dict.fromkeys((*shape.positive, *shape.negative)):
                place = bodies.setdefault(body, first_body + len(bodies))
                if place == first_body + len(readers):
                    readers.append([])
                readers[place - first_body].append(number)
        index = PatternIndex().changed(bodies)
        graph = [[heads[self.shapes[key].head]] for key in rules]
        graph += [[bodies[body] for body in index.unifying(head)] for head in heads]
        graph += readers
        # Patterns come before all rules: they only pass on what is ready.
        priority = [*range(len(rules)), *([-1] * (len(heads) + len(bodies)))]
        found = (
            [rules[vertex] for vertex in sorted(component) if vertex < first_head]
            for component in ordered_components(graph, priority)
        )
        return [tuple(component) for component in found if component]

    def connected_without(self, lost: RuleShape, rest: frozenset[str]) -> bool:
        """Whether the rest of a component of several rules still is one after it lost a rule.

        Every path through the lost rule went from a rule that it read to a rule that reads it, so it
        is enough that those all reach these. They do if all lead to one of these, and that one to all.
        """
        sources = {key for body in (*lost.positive, *lost.negative) for key in self.deriving(body)} & rest
        targets = {key for key, _, _ in self.readers(lost.head)} & rest
        pivot = min(targets, key=lambda key: self.shapes[key].serial)
        return _covers(Walk(self).backward, pivot, sources, rest) and _covers(
            Walk(self).forward, pivot, targets, rest
        )


class Walk:
    """A walk over rules that enters each pattern once, however many rules share it."""

    def __init__(self, graph: RuleGraph) -> None:
        """Start a walk; one walk goes forward or backward, not both."""
        self._graph = graph
        self._heads: set[Pattern] = set()
        self._bodies: set[Pattern] = set()

    def forward(self, keys: Iterable[str]) -> Iterator[str]:
        """Yield the rules that read what the given ones derive, where the walk has not been."""
        graph = self._graph
        for key in keys:
            head = graph.shapes[key].head
            if head in self._heads:
                continue
            self._heads.add(head)
            for body in graph.bodies.unifying(head):
                if body not in self._bodies:
                    self._bodies.add(body)
                    yield from graph.positive[body]
                    yield from graph.negative[body]

    def backward(self, keys: Iterable[str]) -> Iterator[str]:
        """Yield the rules that derive what the given ones read, where the walk has not been."""
        graph = self._graph
        for key in keys:
            shape = graph.shapes[key]
            for body in (*shape.positive, *shape.negative):
                if body in self._bodies:
                    continue
                self._bodies.add(body)
                for head in graph.heads.unifying(body):
                    if head not in self._heads:
                        self._heads.add(head)
                        yield from graph.writers[head]


def _covers(
    step: Callable[[Iterable[str]], Iterator[str]], start: str, wanted: set[str], within: frozenset[str]
) -> bool:
    """Whether a walk inside some rules meets all that are wanted; it ends as soon as it has."""
    missing = wanted - {start}
    seen = {start}
    waiting = deque([start])
    while missing and waiting:
        for key in step((waiting.popleft(),)):
            if key in within and key not in seen:
                seen.add(key)
                missing.discard(key)
                waiting.append(key)
    return not missing


def _written(rules: list[tuple[str, RuleShape]]) -> Pairs:
    return [(shape.head, key) for key, shape in rules]


def _read(rules: list[tuple[str, RuleShape]]) -> Pairs:
    return [(pattern, key) for key, shape in rules for pattern in shape.positive]


def _denied(rules: list[tuple[str, RuleShape]]) -> Pairs:
    return [(pattern, key) for key, shape in rules for pattern in shape.negative]
