"""One hyper-node on data frames: evaluated anew, or brought up to date from what its inputs gained and lost.

A node that is not recursive is one plan. A recursive one goes in rounds: what the last round found is at each
recursive place in turn, and each round is written to files, so that no plan grows with the rounds and whether
anything is new is known from the job that wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate import expressions
from zodiacedge.engine.spark.evaluate.expressions import AggregateTask, ExpressionTask, Negated, with_more
from zodiacedge.engine.spark.evaluate.rule_plan import Sources, bindings, column, order_of
from zodiacedge.engine.spark.storage.dataframes import Frames, names, tagged, together
from zodiacedge.engine.spark.storage.files import DataFile, Relation, Segment, SignedFiles
from zodiacedge.engine.spark.storage.terms import TermFiles
from zodiacedge.language.ast import Aggregate, Atom, Negation, Rule, Variable
from zodiacedge.language.safety import analyse
from zodiacedge.plan.variants import can_fail, recursive_places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from zodiacedge.engine.api import Dropped, Settings
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.language.ast import Argument, Conjunct
    from zodiacedge.terms import Term

# What lies outside: explicit facts under None, and the segments of other nodes.
Owners = Mapping["frozenset[str] | None", Segment]
# A relation under way that is spread over more files than this is put together.
_MOST_FILES = 12


def owners_of(
    stated: Segment, segments: Mapping[frozenset[str], Segment], but: frozenset[str] = frozenset()
) -> Owners:
    """Return explicit facts and segments, but for those of one node."""
    found: dict[frozenset[str] | None, Segment] = {None: stated}
    found.update((keys, one) for keys, one in segments.items() if keys != but)
    return found


@dataclass(frozen=True)
class Setting:
    """What a node is evaluated in: where, what lies outside it before and after the change, and the terms."""

    workspace: Workspace
    settings: Settings
    keys: Mapping[Term, int]
    before: Owners
    after: Owners
    watch: Callable[[int, int], None]
    """Called with the rounds and the facts so far."""


@dataclass
class Result:
    """What a node came to: its segment, and what came up on the way."""

    contents: dict[Relation, SignedFiles] = field(default_factory=dict)
    aggregate_rows: dict[str, SignedFiles] = field(default_factory=dict)
    dropped: dict[str, Dropped] = field(default_factory=dict)
    terms: TermFiles = field(default_factory=TermFiles)
    rounds: int = 0


class Node:
    """The rules of one node, on data frames."""

    def __init__(self, rules: Mapping[str, Rule], setting: Setting, terms: TermFiles) -> None:
        """Take the node's rules by key."""
        self._rules = rules
        self._setting = setting
        self._frames = Frames(setting.workspace)
        self._terms = terms
        heads = [rule.head for rule in rules.values()]
        self._own_places = {key: recursive_places(rule, heads) for key, rule in rules.items()}
        self._relations = list(dict.fromkeys(Relation.of(head) for head in heads))
        self.result = Result(terms=terms)
        # A frame reads its files when its job runs: until then somebody must hold them.
        self._held: list[DataFile] = []

    @property
    def recursive(self) -> bool:
        """Whether the node's rules feed each other."""
        return any(self._own_places.values())

    # Anew.

    def evaluate(self) -> Result:
        """Evaluate the node from nothing."""
        self._fold(self._setting.after)
        self._grow({}, self._all_heads)
        if self.recursive:
            self._count_errors()
        return self.result

    def _all_heads(self) -> Iterator[tuple[Relation, DataFrame]]:
        for key, rule in self._rules.items():
            counts = not self.recursive or not can_fail(rule.body)
            yield Relation.of(rule.head), self._heads(key, self._new, None, counts=counts)

    def _count_errors(self) -> None:
        """Count what errors drop when all is there: on the way a binding may come up more than once."""
        for key, rule in self._rules.items():
            if can_fail(rule.body):
                self._heads(key, self._new, None, counts=True)

    def _grow(
        self, start: Mapping[Relation, SignedFiles], first: Callable[[], Iterator[tuple[Relation, DataFrame]]]
    ) -> None:
        """Let the segment grow from what there is, by what comes first and by all that follows from it."""
        found = self.result
        found.contents = dict(start)
        new = self._write_new(list(first()))
        while any(new.values()):
            found.rounds += 1
            for relation, parts in new.items():
                found.contents[relation] = found.contents.get(relation, SignedFiles()).then(parts)
                self._put_together(relation)
            facts = sum(content.rows for content in found.contents.values())
            self._setting.watch(found.rounds, facts)
            if not self.recursive:
                return
            heads = [
                (Relation.of(rule.head), self._heads(key, self._new, (place, delta), counts=False))
                for key, rule in self._rules.items()
                for place in self._own_places[key]
                if (delta := self._delta_at(rule.body[place], new)) is not None
            ]
            new = self._write_new(heads) if heads else {}
        found.rounds = max(found.rounds, 1)

    def _delta_at(self, conjunct: Conjunct, new: Mapping[Relation, list[DataFile]]) -> DataFrame | None:
        if not isinstance(conjunct, Atom):
            raise TypeError(conjunct)
        parts = new.get(Relation.of(conjunct), [])
        return self._frames.parts(parts, Relation.of(conjunct).width) if parts else None

    def _write_new(self, heads: Sequence[tuple[Relation, DataFrame]]) -> dict[Relation, list[DataFile]]:
        """Write heads that the segment does not have, each once: one job."""
        width = max(relation.width for relation in self._relations)
        pieces = []
        for tag, relation in enumerate(self._relations):
            frames = [frame for one, frame in heads if one == relation]
            if not frames:
                continue
            fresh = together(frames).distinct()
            there = self.result.contents.get(relation, SignedFiles())
            if there.rows:
                fresh = fresh.join(self._frames.content(relation, there), names(relation.width), "left_anti")
            pieces.append(tagged(fresh, tag, width))
        written = self._frames.write(
            together(pieces), self._relations, "deriving facts", self._setting.settings.turn
        )
        return {self._relations[tag]: parts for tag, parts in written.items()}

    def _put_together(self, relation: Relation) -> None:
        """Write a relation that is spread over many small files into few; its largest file stays."""
        content = self.result.contents[relation]
        if len(content.layers) <= _MOST_FILES or not content.plain:
            return
        largest = max(content.parts, key=lambda part: part.rows)
        small = [part for part in content.parts if part is not largest]
        frame = self._frames.parts(small, relation.width).coalesce(1)
        written = self._frames.write(
            tagged(frame, 0, relation.width),
            [relation],
            "putting small files together",
            self._setting.settings.turn,
        )
        self.result.contents[relation] = SignedFiles.of(largest, *written.get(0, ()))

    # One rule.

    def _heads(
        self, key: str, sources: Callable[[], Sources], delta: tuple[int, DataFrame] | None, *, counts: bool
    ) -> DataFrame:
        """Return the heads of a rule's instances, with given rows at one place if there are some."""
        rule = self._rules[key]
        found, dropped = self._instances(rule.head, rule.body, sources(), delta)
        if counts and dropped:
            self._drop(key, dropped)
        return found

    def _instances(
        self,
        head: Atom,
        body: tuple[Conjunct, ...],
        sources: Sources,
        delta: tuple[int, DataFrame] | None = None,
    ) -> tuple[DataFrame, Dropped | None]:
        """Return what the instances of a body give to a head, and what errors drop."""
        found = bindings(body, head.args, sources, delta)
        if not found.left:
            return self._projected(found.frame, head.args, order_of(body)), None
        judged = self._judge(head, found.frame, found.columns, found.left)
        return self._frames.parts(judged.rows, Relation.of(head).width), judged.dropped

    def _drop(self, key: str, dropped: Dropped) -> None:
        known = with_more(self.result.dropped.get(key), dropped)
        if known:
            self.result.dropped[key] = known

    def _judge(
        self,
        head: Atom,
        frame: DataFrame,
        columns: tuple[Variable, ...],
        left: tuple[Conjunct, ...],
    ) -> expressions.ExpressionResult:
        place = self._setting.workspace
        judge = ExpressionTask(
            head,
            columns,
            left,
            self._setting.keys,
            self._terms,
            place.scratch.folder,
            place.hashing,
            self._setting.settings.registry,
            self._negated(left),
        )
        judged = expressions.run(
            place, frame.distinct(), judge, "looking at values", self._setting.settings.turn
        )
        self._take_terms(judged.terms)
        self._held += judged.rows
        return judged

    def _negated(self, left: tuple[Conjunct, ...]) -> tuple[Negated, ...]:
        atoms = [c.atom for c in left if isinstance(c, Negation)]
        relations = dict.fromkeys(Relation.of(atom) for atom in atoms)
        return tuple(
            Negated(relation, tuple(one.content(relation) for one in self._setting.after.values()))
            for relation in relations
        )

    def _take_terms(self, parts: Sequence[DataFile]) -> None:
        if parts:
            self._terms = TermFiles((*self._terms.parts, *parts))
            self.result.terms = self._terms

    def _projected(self, frame: DataFrame, head: Sequence[Argument], order: Sequence[Variable]) -> DataFrame:
        from pyspark.sql import functions  # noqa: PLC0415 - heavy

        columns = [
            (
                functions.col(column(arg, order))
                if isinstance(arg, Variable)
                else functions.lit(self._setting.keys[arg]).cast("long")
            ).alias(name)
            for name, arg in zip(names(len(head)), head, strict=True)
        ]
        return frame.select(*(columns or [functions.lit(0).cast("long").alias("c0")]))

    # Aggregates.

    def _fold(self, owners: Owners) -> None:
        """Fold the aggregates of the node's rules."""
        for key, rule in self._rules.items():
            if rule.aggregate:
                sources = self._sources(owners, {}, {})
                self.result.aggregate_rows[key] = self._folded(
                    key, rule.aggregate, rule.aggregate.body, sources
                )

    def _folded(
        self, key: str, aggregate: Aggregate, body: tuple[Conjunct, ...], sources: Sources
    ) -> SignedFiles:
        """Fold the bindings of an aggregate's body, or of one that has more conjuncts."""
        place, settings = self._setting.workspace, self._setting.settings
        bound = tuple(v for v in order_of(aggregate.body) if v in analyse(aggregate.body).bound)
        found, errors = self._instances(Atom("bindings of an aggregate", bound), body, sources)
        if errors:
            self._drop(key, errors)
        frame = found.distinct()
        named = dict(zip(bound, names(len(bound)), strict=True))
        groups = [named[v] for v in aggregate.groups]
        chosen = frame.select(
            *(frame[name].alias(f"g{n}") for n, name in enumerate(groups)),
            *(frame[named[fold.argument]].alias(f"a{n}") for n, fold in enumerate(aggregate.folds)),
        )
        grouped = (
            chosen.repartition(place.jobs.cores, *(f"g{n}" for n in range(len(groups))))
            if groups
            else chosen.coalesce(1)
        )
        folding = AggregateTask(
            aggregate, self._terms, place.scratch.folder, place.hashing, settings.registry
        )
        judged = expressions.run(place, grouped, folding, "folding groups", settings.turn)
        self._take_terms(judged.terms)
        if judged.dropped:
            self._drop(key, judged.dropped)
        return SignedFiles.of(*judged.rows)

    # Where atoms read.

    def _new(self) -> Sources:
        return self._sources(self._setting.after, self.result.contents, self.result.aggregate_rows)

    def _sources(
        self, owners: Owners, own: Mapping[Relation, SignedFiles], hidden: Mapping[str, SignedFiles]
    ) -> Sources:
        def contents(atom: Atom) -> list[SignedFiles]:
            relation = Relation.of(atom)
            found = [*(one.content(relation) for one in owners.values()), own.get(relation, SignedFiles())]
            if relation.typed and not isinstance(atom.args[1], Variable):
                key = self._setting.keys[atom.args[1]]
                found = [content for content in found if key in content.classes()]
            return found

        def rows(atom: Atom) -> DataFrame:
            return self._frames.union(Relation.of(atom), contents(atom))

        def size(atom: Atom) -> int:
            return sum(content.rows for content in contents(atom))

        def folded(aggregate: Aggregate) -> DataFrame:
            key = next(key for key, rule in self._rules.items() if rule.aggregate == aggregate)
            return self._frames.content(Relation.of_rows(aggregate), hidden[key])

        return Sources(self._frames.session, self._setting.keys, rows, rows, size, folded)
