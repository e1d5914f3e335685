"""Evaluation of a hyper-node from scratch on DataFrames: by one plan, or semi-naive in rounds.

A node that is not recursive is one plan. A recursive node whose facts cannot be placed (`rounds`), because it
folds groups, may have evaluation errors or needs a product, is evaluated in rounds of plans: the delta of the
last round is read at each recursive position in turn. Each round is written to files, so that plans do not
grow with the rounds; the job that writes a round also counts its new rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate import expressions
from zodiacedge.engine.spark.evaluate.expressions import AggregateTask, ExpressionTask, with_more
from zodiacedge.engine.spark.evaluate.inputs import inputs_of, read_by
from zodiacedge.engine.spark.evaluate.rule_plan import Sources, bindings, column, order_of
from zodiacedge.engine.spark.storage.compaction import compacted
from zodiacedge.engine.spark.storage.dataframes import Frames, names, together
from zodiacedge.engine.spark.storage.files import DataFile, Owners, Relation, Segment, SignedFiles
from zodiacedge.engine.spark.storage.terms import TermFiles
from zodiacedge.language.ast import Aggregate, Atom, Negation, Rule, Variable
from zodiacedge.language.safety import analyse
from zodiacedge.plan.variants import can_fail, recursive_atoms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from zodiacedge.engine.api import Dropped, Settings
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.language.ast import Argument, Conjunct
    from zodiacedge.terms import Term
# A growing relation with more files than this is compacted.
_MOST_FILES = 12
# So many times the rows that are wanted are computed before they are compared with each other.
_MANY_EQUAL = 4
_NO_FACTS = Segment()


@dataclass(frozen=True)
class Setting:
    """The context of a node: workspace, settings, terms, and other owners before and after a change."""

    workspace: Workspace
    settings: Settings
    keys: Mapping[Term, int]
    before: Owners
    after: Owners
    watch: Callable[[int, int], None]
    """Called with the number of rounds and facts so far."""


@dataclass
class Result:
    """The segment of a node, new terms, and bindings dropped by evaluation errors."""

    contents: dict[Relation, SignedFiles] = field(default_factory=dict)
    aggregate_rows: dict[str, SignedFiles] = field(default_factory=dict)
    dropped: dict[str, Dropped] = field(default_factory=dict)
    terms: TermFiles = field(default_factory=TermFiles)
    rounds: int = 0
    stamped: bool = False
    """Whether the facts have stamps."""

    def drop(self, key: str, dropped: Dropped | None) -> None:
        """Add bindings of a rule that evaluation errors dropped."""
        total = with_more(self.dropped.get(key), dropped)
        if total:
            self.dropped[key] = total


class Node:
    """The evaluation of one node on DataFrames."""

    def __init__(self, rules: Mapping[str, Rule], setting: Setting, terms: TermFiles) -> None:
        """Take the node's rules by key."""
        self._rules = rules
        self._setting = setting
        self._workspace, self._yield_point = setting.workspace, setting.settings.yield_point
        self._frames = Frames(self._workspace, self._yield_point)
        self._terms = terms
        heads = [rule.head for rule in rules.values()]
        self._own_positions = {key: recursive_atoms(rule, heads) for key, rule in rules.items()}
        self._relations = list(dict.fromkeys(Relation.of(head) for head in heads))
        self.result = Result(terms=terms)
        # A frame reads its files when its job runs: they must not be removed before.
        self._held: list[DataFile] = []

    @property
    def recursive(self) -> bool:
        """Whether the node's rules are recursive."""
        return any(self._own_positions.values())

    def evaluate(self) -> Result:
        """Evaluate the node from scratch."""
        self._fold(self._rules)
        self._grow({}, self._all_heads)
        if self.recursive:
            self._count_errors()
        return self.result

    def some(self, most: int) -> list[tuple[int, ...]]:
        """Return distinct heads of the only rule, which is not recursive: all of them, or at least so many.

        The rows of the plan are compared with each other only if too many of the first ones are equal.
        """
        (key,) = self._rules
        self._fold(self._rules)
        frame = self._heads(key, self._new, None, counts=True, most=most)
        enough, run = _MANY_EQUAL * most, self._workspace.jobs.run
        width = len(self._rules[key].head.args)
        for rows in (frame.limit(enough), frame.distinct().limit(most)):
            found = run(rows.collect, "deriving answers", self._yield_point)
            distinct = list(dict.fromkeys(tuple(row)[:width] for row in found))
            if len(distinct) >= most or len(found) < enough:
                break
        return distinct

    def _all_heads(self) -> Iterator[tuple[Relation, DataFrame]]:
        for key, rule in self._rules.items():
            counts = not self.recursive or not can_fail(rule.body)
            yield Relation.of(rule.head), self._heads(key, self._new, None, counts=counts)

    def _count_errors(self) -> None:
        """Count dropped bindings at the fixpoint, since a binding may occur in several rounds."""
        for key, rule in self._rules.items():
            if can_fail(rule.body):
                self._heads(key, self._new, None, counts=True)

    def _grow(
        self, start: Mapping[Relation, SignedFiles], first: Callable[[], Iterator[tuple[Relation, DataFrame]]]
    ) -> None:
        """Grow the segment to the fixpoint, from given contents and the heads of the first round."""
        result = self.result
        result.contents = dict(start)
        new = self._write_new(list(first()))
        while new:
            result.rounds += 1
            for relation, files in new.items():
                content = result.contents.get(relation, SignedFiles()).then(files)
                result.contents[relation] = compacted(
                    self._workspace, relation, content, self._yield_point, _MOST_FILES
                )
            facts = sum(content.rows for content in result.contents.values())
            self._setting.watch(result.rounds, facts)
            if not self.recursive:
                return
            heads = [
                (Relation.of(rule.head), self._heads(key, self._new, (position, delta), counts=False))
                for key, rule in self._rules.items()
                for position in self._own_positions[key]
                if (delta := self._delta_at(rule.body[position], new)) is not None
            ]
            new = self._write_new(heads)
        result.rounds = max(result.rounds, 1)

    def _delta_at(self, conjunct: Conjunct, new: Mapping[Relation, list[DataFile]]) -> DataFrame | None:
        if not isinstance(conjunct, Atom):
            raise TypeError(conjunct)
        files = new.get(Relation.of(conjunct), [])
        return self._frames.parts(files, Relation.of(conjunct).width) if files else None

    def _write_new(self, heads: Sequence[tuple[Relation, DataFrame]]) -> dict[Relation, list[DataFile]]:
        """Write the distinct heads that are not in the segment, in one job."""
        by_relation: dict[Relation, list[DataFrame]] = {}
        for relation, frame in heads:
            by_relation.setdefault(relation, []).append(frame)
        new = []
        for relation, frames in by_relation.items():
            rows = together(frames).distinct()
            known = self.result.contents.get(relation, SignedFiles())
            if known.rows:
                rows = rows.join(self._frames.content(relation, known), names(relation.width), "left_anti")
            new.append((relation, rows))
        written = self._frames.write(new, "deriving facts")
        return {relation: files for (relation, _), files in zip(new, written, strict=True) if files}

    def _heads(
        self,
        key: str,
        sources: Callable[[], Sources],
        delta: tuple[int, DataFrame] | None,
        *,
        counts: bool,
        most: int | None = None,
    ) -> DataFrame:
        """Return the heads of a rule's instances, reading the delta at its position."""
        rule = self._rules[key]
        heads, dropped = self._instances(rule.head, rule.body, sources(), delta, most)
        if counts:
            self.result.drop(key, dropped)
        return heads

    def _instances(
        self,
        head: Atom,
        body: tuple[Conjunct, ...],
        sources: Sources,
        delta: tuple[int, DataFrame] | None = None,
        most: int | None = None,
    ) -> tuple[DataFrame, Dropped | None]:
        """Return the heads of a body's instances, and the bindings dropped by evaluation errors.

        If so many heads are enough, there may be fewer of both, and equal ones.
        """
        joined = bindings(body, head.args, sources, delta)
        if not joined.left:
            return self._projected(joined.frame, head.args, order_of(body)), None
        evaluated = self._evaluate_rest(head, joined.frame, joined.columns, joined.left, most)
        return self._frames.parts(evaluated.rows, Relation.of(head).width), evaluated.dropped

    def _evaluate_rest(
        self,
        head: Atom,
        frame: DataFrame,
        columns: tuple[Variable, ...],
        left: tuple[Conjunct, ...],
        most: int | None,
    ) -> expressions.ExpressionResult:
        workspace, owners = self._workspace, self._setting.after.values()
        negated = [c.atom for c in left if isinstance(c, Negation)]
        task = ExpressionTask(
            head,
            columns,
            left,
            self._setting.keys,
            self._terms,
            workspace.scratch.folder,
            workspace.hashing,
            self._setting.settings.registry,
            inputs_of(negated, self._setting.keys, owners, owners),
            most,
        )
        rows = frame.distinct() if most is None else frame
        evaluated = expressions.run(workspace, rows, task, "evaluating expressions", self._yield_point)
        self._add_terms(evaluated.terms)
        self._held += evaluated.rows
        return evaluated

    def _add_terms(self, files: Sequence[DataFile]) -> None:
        self._terms = self.result.terms = self._terms.with_files(*files)

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

    def _fold(self, keys: Iterable[str]) -> None:
        """Fold the aggregates of rules."""
        for key in keys:
            aggregate, sources = self._rules[key].aggregate, self._sources(self._setting.after)
            if aggregate:
                self.result.aggregate_rows[key] = self._folded(key, aggregate, aggregate.body, sources)

    def _folded(
        self, key: str, aggregate: Aggregate, body: tuple[Conjunct, ...], sources: Sources
    ) -> SignedFiles:
        """Fold the bindings of an aggregate's body, which may be extended by conjuncts."""
        workspace, registry = self._workspace, self._setting.settings.registry
        bound = tuple(v for v in order_of(aggregate.body) if v in analyse(aggregate.body).bound)
        bound_rows, errors = self._instances(Atom("bindings of an aggregate", bound), body, sources)
        self.result.drop(key, errors)
        frame = bound_rows.distinct()
        named = dict(zip(bound, names(len(bound)), strict=True))
        groups = [named[v] for v in aggregate.groups]
        chosen = frame.select(
            *(frame[name].alias(f"g{n}") for n, name in enumerate(groups)),
            *(frame[named[v]].alias(f"a{n}") for n, v in enumerate(aggregate.arguments)),
        )
        grouped = (
            chosen.repartition(workspace.jobs.cores, *(f"g{n}" for n in range(len(groups))))
            if groups
            else chosen.coalesce(1)
        )
        task = AggregateTask(aggregate, self._terms, workspace.scratch.folder, workspace.hashing, registry)
        folded = expressions.run(workspace, grouped, task, "folding groups", self._yield_point)
        self._add_terms(folded.terms)
        self.result.drop(key, folded.dropped)
        return SignedFiles.of(*folded.rows)

    def _new(self) -> Sources:
        own = Segment(self.result.contents, self.result.aggregate_rows)
        return self._sources(self._setting.after, own)

    def _sources(self, owners: Owners, own: Segment = _NO_FACTS) -> Sources:
        """Return what atoms read: the facts of other owners, and those of the node itself."""

        def contents(atom: Atom) -> list[SignedFiles]:
            relation, class_ = read_by(atom, self._setting.keys)
            files = [owner.content(relation) for owner in (*owners.values(), own)]
            return [content for content in files if class_ is None or class_ in content.classes]

        def rows(atom: Atom) -> DataFrame:
            return self._frames.union(Relation.of(atom), contents(atom))

        def size(atom: Atom) -> int:
            return sum(content.rows for content in contents(atom))

        def folded(aggregate: Aggregate) -> DataFrame:
            key = next(key for key, rule in self._rules.items() if rule.aggregate == aggregate)
            return self._frames.content(Relation.of_rows(aggregate), own.aggregate_rows[key])

        return Sources(self._frames.session, self._setting.keys, rows, rows, size, folded)
