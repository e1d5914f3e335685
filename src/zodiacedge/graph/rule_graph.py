"""The rule dependency graph (RDG): an edge leads from a rule to each rule that reads its facts.

Edges are not stored, because m writers and n readers of one predicate would be m × n of them. There are
tables from rules to the patterns of their heads, from these to the body patterns that unify with them, and
from these to the rules that read them. An edge is negative if the reader has the atom under `not` or
inside an aggregate. The graph is a value: a change returns a new one. Components and their order are left
to `hyper_graph`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from zodiacedge.graph.digraph import ordered_components
from zodiacedge.graph.patterns import PatternIndex
from zodiacedge.language.ast import Atom, body_atoms
from zodiacedge.language.unify import Pattern, pattern_of
from zodiacedge.util.cow_dict import CowDict
from zodiacedge.util.cow_multimap import CowMultimap

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from zodiacedge.language.ast import Rule

Pairs = list[tuple[Pattern, str]]


@dataclass(frozen=True, slots=True)
class RuleShape:
    """A rule in the graph: the patterns of its head and of its body atoms."""

    rule: Rule
    serial: int
    """Increases with every rule added, so rules can be listed in insertion order."""
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
    """Return a rule's shape; atoms inside an aggregate are negative."""
    positive = dict.fromkeys(pattern_of(c) for c in rule.body if isinstance(c, Atom))
    rest = (c for c in rule.body if not isinstance(c, Atom))
    negative = dict.fromkeys(map(pattern_of, body_atoms(rest)))
    return RuleShape(rule, serial, pattern_of(rule.head), tuple(positive), tuple(negative))


@dataclass(frozen=True, slots=True)
class RuleGraph:
    """All rules by key, with the tables between rules and patterns."""

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
        """Return the graph without removed rules, which must exist, and with added ones, which must not."""
        shapes = self.shapes.copy()
        deleted = [(key, shapes.pop(key)) for key in removed]
        inserted = [
            (key, shape_of(rule, self.next_serial + i)) for i, (key, rule) in enumerate(added.items())
        ]
        shapes.update(inserted)
        writers = self.writers.changed(_written(inserted), _written(deleted))
        positive = self.positive.changed(_read(inserted), _read(deleted))
        negative = self.negative.changed(_negated(inserted), _negated(deleted))

        def readable(pattern: Pattern) -> bool:
            return pattern in positive or pattern in negative

        def was_readable(pattern: Pattern) -> bool:
            return pattern in self.positive or pattern in self.negative

        read = dict.fromkeys(
            pattern for pattern, _ in (*_read(inserted + deleted), *_negated(inserted + deleted))
        )
        written = dict.fromkeys(pattern for pattern, _ in _written(inserted + deleted))
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
                [p for p in read if readable(p) and not was_readable(p)],
                [p for p in read if was_readable(p) and not readable(p)],
            ),
            self.next_serial + len(inserted),
        )

    def renamed(self, rules: Mapping[str, Rule]) -> RuleGraph:
        """Return the graph with rules that are written differently: labels, variable names or spans."""
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

    def in_order(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return rules in insertion order."""
        return tuple(sorted(keys, key=lambda key: self.shapes[key].serial))

    def components(self, keys: Collection[str]) -> list[tuple[str, ...]]:
        """Return the components of the subgraph of these rules, in topological order.

        Patterns are vertices between the rules, so the cost is near the number of atoms. Independent
        rules keep their insertion order.
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
                body_vertex = bodies.setdefault(body, first_body + len(bodies))
                if body_vertex == first_body + len(readers):
                    readers.append([])
                readers[body_vertex - first_body].append(number)
        index = PatternIndex().changed(bodies)
        graph = [[heads[self.shapes[key].head]] for key in rules]
        graph += [[bodies[body] for body in index.unifying(head)] for head in heads]
        graph += readers
        # Patterns have the highest priority: they only connect rules.
        priority = [*range(len(rules)), *([-1] * (len(heads) + len(bodies)))]
        components = (
            [rules[vertex] for vertex in sorted(component) if vertex < first_head]
            for component in ordered_components(graph, priority)
        )
        return [tuple(component) for component in components if component]

    def connected_without(self, lost: RuleShape, rest: frozenset[str]) -> bool:
        """Whether a component of several rules is still one component without a rule.

        Every path through the lost rule went from a writer of what it reads to a reader of its head, so
        it is enough that all these writers reach all these readers: that all writers reach one reader,
        and this one all readers.
        """
        sources = {key for body in (*lost.positive, *lost.negative) for key in self.deriving(body)} & rest
        targets = {key for key, _, _ in self.readers(lost.head)} & rest
        pivot = min(targets, key=lambda key: self.shapes[key].serial)
        return _covers(Walk(self).backward, pivot, sources, rest) and _covers(
            Walk(self).forward, pivot, targets, rest
        )


class Walk:
    """A graph traversal that visits each pattern once, however many rules share it."""

    def __init__(self, graph: RuleGraph) -> None:
        """Start a traversal, either forward or backward."""
        self._graph = graph
        self._heads: set[Pattern] = set()
        self._bodies: set[Pattern] = set()

    def forward(self, keys: Iterable[str]) -> Iterator[str]:
        """Yield the readers of facts of these rules, through patterns not yet visited."""
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
        """Yield the writers of facts that these rules read, through patterns not yet visited."""
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


def _negated(rules: list[tuple[str, RuleShape]]) -> Pairs:
    return [(pattern, key) for key, shape in rules for pattern in shape.negative]
