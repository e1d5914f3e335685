"""One version of a knowledge base on Spark: names of files and counts, and what can be asked of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine import listed
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.spark import question
from zodiacedge.engine.spark.apart import apart
from zodiacedge.engine.spark.attempt import SparkAttempt, work_out
from zodiacedge.engine.spark.batch import SparkBatch, SparkEffect, class_predicate
from zodiacedge.engine.spark.columns import mentioned
from zodiacedge.engine.spark.diff import diff
from zodiacedge.engine.spark.digest import digest
from zodiacedge.engine.spark.inputs import inputs_of
from zodiacedge.engine.spark.large_query import LargeQuery
from zodiacedge.engine.spark.lookup import Lookup
from zodiacedge.engine.spark.scratch import Relation, Segment, held
from zodiacedge.engine.spark.vocabulary import Names, Terms
from zodiacedge.language.ast import Predicate
from zodiacedge.language.checks import body_atoms

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.api import Answer, Apart, Batch, Dropped, Effect, NodeRun, Settings, State
    from zodiacedge.engine.handover import Handover
    from zodiacedge.engine.spark.place import Place
    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Fact, Query, Rule, Variable
    from zodiacedge.terms import Term

# So many members are dealt out to their classes at once.
_TOGETHER = 65_536


@dataclass(frozen=True)
class SparkState:
    """One version of a knowledge base on Spark."""

    place: Place
    stated: Segment = field(default_factory=Segment)
    segments: Mapping[frozenset[str], Segment] = field(default_factory=dict)
    terms: Terms = field(default_factory=Terms)
    names: Names = field(default_factory=lambda: Names({}))
    introduced: frozenset[Term] = frozenset()
    """Terms that rules mention, as far as the files of terms are known to have them."""
    runs: tuple[NodeRun, ...] = ()
    dropped: Mapping[str, Dropped] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    rules: Mapping[str, Rule] = field(default_factory=dict)
    """The rules by key, as far as they are known: what they were before a change matters to their heirs."""
    seconds: Mapping[frozenset[str], float] = field(default_factory=dict)
    """How long evaluating nodes from nothing took the last time, as far as anybody knows."""
    counted: Mapping[Relation, Mapping[int, int]] = field(default_factory=dict)
    """How many rows of a relation nodes derive, each once, by class or under 0: what a task told already."""

    # Facts.

    def visible(self) -> frozenset[Fact]:
        """All facts: explicit ones and those of every segment."""
        return frozenset(fact for _, facts in self.each() for fact in facts)

    def segment(self, rules: frozenset[str]) -> frozenset[Fact]:
        """All facts that the hyper-node of these rules derives."""
        return frozenset(fact for _, facts in self.each(rules) for fact in facts)

    def derived(self) -> frozenset[Fact]:
        """The union of all segments, explicit too or not."""
        return frozenset(f for _, facts in self._each(tuple(self.segments.values())) for f in facts)

    def explicit(self) -> frozenset[Fact]:
        """All explicit facts."""
        return frozenset(fact for _, facts in self._each((self.stated,)) for fact in facts)

    def segment_size(self, rules: frozenset[str]) -> int:
        """How many facts the hyper-node of these rules derives."""
        return self.segments[rules].rows

    def each(self, rules: frozenset[str] | None = None) -> Iterator[tuple[Predicate, Iterator[Fact]]]:
        """Yield the visible facts, or those of the hyper-node of these rules, each once, by predicate."""
        owners = (self.stated, *self.segments.values()) if rules is None else (self.segments[rules],)
        return self._each(owners)

    def _each(self, owners: Sequence[Segment]) -> Iterator[tuple[Predicate, Iterator[Fact]]]:
        lookup = self.lookup
        for relation, contents in held(owners).items():
            facts = lookup.facts(relation, contents)
            if relation.typed:
                yield from _by_predicate(facts)
            else:
                yield Predicate(*relation), facts

    @property
    def lookup(self) -> Lookup:
        """What tells facts from rows."""
        return Lookup(self.place, self.terms)

    # Counts.

    def derived_counts(self) -> Mapping[Predicate, int]:
        """Count the derived facts of each predicate, without listing them."""
        return self._counts(tuple(self.segments.values()), self.counted)

    def stated_predicates(self, names: Collection[str]) -> frozenset[Predicate]:
        """The predicates of some names that explicit facts have."""
        return frozenset(one for one in self.explicit_counts() if one.name in names)

    def explicit_counts(self) -> Mapping[Predicate, int]:
        """Count the explicit facts of each predicate."""
        return self._counts((self.stated,))

    def predicate_names(self) -> set[str]:
        """The names of the predicates of all visible facts."""
        return {predicate.name for predicate in self.predicates()}

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of all visible facts."""
        found: set[Predicate] = set()
        for relation, contents in held((self.stated, *self.segments.values())).items():
            if relation.typed:
                keys = {key for content in contents for key in content.classes()}
                names = self.named(keys)
                found.update(class_predicate(names[key]) for key in keys)
            else:
                found.add(Predicate(*relation))
        return frozenset(found)

    def _counts(
        self, owners: Sequence[Segment], known: Mapping[Relation, Mapping[int, int]] | None = None
    ) -> dict[Predicate, int]:
        found: dict[Predicate, int] = {}
        for relation, contents in held(owners).items():
            counts = (known or {}).get(relation) or self.lookup.count(relation, contents)
            for predicate, count in predicate_counts(relation, counts, self.named).items():
                found[predicate] = found.get(predicate, 0) + count
        return found

    def named(self, keys: Iterable[int]) -> Mapping[int, Term]:
        """Return what classes are called."""
        asked = self.names.missing(keys)
        if asked:
            found = self.terms.decode(np.array(asked, np.int64))
            return self.names.with_terms(found).known
        return self.names.known

    # Questions.

    def holds(self, term: Term) -> bool:
        """Whether some explicit fact has this term as an argument."""
        return self.lookup.holds(term, self.stated)

    def answer(self, query: Query, settings: Settings) -> Answer:
        """Answer a resolved query."""
        return self.prepare(query, (), settings)({})

    def prepare(
        self, query: Query, parameters: tuple[Variable, ...], settings: Settings
    ) -> Callable[[Mapping[Variable, Term]], Answer]:
        """Return a resolved query that is answered once its parameters have values."""
        atoms = list(body_atoms(query.body))
        owners = (self.stated, *self.segments.values())
        terms = [*mentioned(query.body), *mentioned(query.columns)]
        keys = self.place.keys(terms)
        inputs = inputs_of(atoms, keys, owners, owners)
        rows = sum(content.rows for one in inputs for content in one.before)
        if not self.place.options.gathers(rows):
            return LargeQuery(self, query, parameters, settings).answered

        def answered(values: Mapping[Variable, Term]) -> Answer:
            given = {v: values[v] for v in parameters}
            asked = question.Question(
                query,
                given,
                keys | self.place.hashing.keys_of(given.values()),
                inputs,
                self.terms,
                self.place.hashing,
                settings.registry,
                settings.limits,
            )
            return self.place.jobs.one(question.run, asked, "answering a query")

        return answered

    # Changes.

    def batch(self) -> SparkBatch:
        """Return an empty batch for facts of the next change."""
        return SparkBatch(self.place)

    def effect(self, add: Batch, remove: Batch) -> SparkEffect:
        """Find out which facts really come and go."""
        if not isinstance(add, SparkBatch) or not isinstance(remove, SparkBatch):
            raise TypeError(add, remove)
        return SparkEffect(self.place, self.stated, self.terms, add.rows(), remove.rows())

    def attempt(
        self, rules: Mapping[str, Rule], graph: HyperGraph, effect: Effect, settings: Settings
    ) -> SparkAttempt:
        """Work out what a change leads to."""
        if not isinstance(effect, SparkEffect):
            raise TypeError(effect)
        return work_out(self, rules, graph, effect, settings)

    # Verification.

    def anew(self, rules: Mapping[str, Rule], graph: HyperGraph, settings: Settings) -> SparkState:
        """Evaluate rules from nothing over the explicit facts, whose files both versions have."""
        bare = SparkState(
            self.place, self.stated, terms=self.terms, names=self.names, introduced=self.introduced
        )
        return bare.attempt(rules, graph, bare.effect(bare.batch(), bare.batch()), settings).commit()

    def digest(self, turn: Handover) -> tuple[int, int]:
        """Count the visible facts, and add up the hashes of their texts."""
        visible = held((self.stated, *self.segments.values()))
        return digest(self.place, visible, self.terms, turn)

    def diff(self, before: State) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Return the facts that are visible here only, and those that are in another version only."""
        if isinstance(before, SparkState) and before.place is self.place:
            return diff(before, self)
        return listed.diff(before, self)

    def apart(self, other: State, nodes: Sequence[frozenset[str]], turn: Handover) -> Iterator[Apart]:
        """Yield where this state differs from another of the same program."""
        if isinstance(other, SparkState) and other.place is self.place:
            return apart(self, other, nodes, turn)
        return listed.apart(self, other, nodes, turn)


def predicate_counts(
    relation: Relation, counts: Mapping[int, int], named: Callable[[Iterable[int]], Mapping[int, Term]]
) -> dict[Predicate, int]:
    """Return counts by class, or of a relation as a whole, as counts of predicates."""
    if not relation.typed:
        return {Predicate(*relation): sum(counts.values())}
    names = named(counts)
    found: dict[Predicate, int] = {}
    for key, count in counts.items():
        predicate = class_predicate(names[key])
        found[predicate] = found.get(predicate, 0) + count
    return found


def _by_predicate(facts: Iterator[Fact]) -> Iterator[tuple[Predicate, Iterator[Fact]]]:
    groups: dict[Predicate, list[Fact]] = {}
    for number, fact in enumerate(facts, 1):
        groups.setdefault(fact.predicate, []).append(fact)
        if number % _TOGETHER == 0:
            yield from ((predicate, iter(group)) for predicate, group in groups.items())
            groups = {}
    yield from ((predicate, iter(group)) for predicate, group in groups.items())
