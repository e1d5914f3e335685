"""Incremental maintenance of one hyper-node on DataFrames, from the deltas of its inputs.

Delta plans read the inserted rows at each position of a body in turn; facts that lost a rule instance are
rederived. Groups with changed rows are folded again, and their old and new rows are the delta at the position
of the aggregate. A recursive node must be recomputed if it loses facts, and so must any with an evaluation
error, because only recomputing counts the dropped bindings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate.rule_plan import Sources, left_over
from zodiacedge.engine.spark.evaluate.seminaive import Node
from zodiacedge.engine.spark.storage.compaction import compacted
from zodiacedge.engine.spark.storage.dataframes import names, together
from zodiacedge.engine.spark.storage.files import Relation, Segment, SignedFiles
from zodiacedge.language.ast import Aggregate, Atom, Binding, Negation, Variable
from zodiacedge.plan.variants import can_fail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from zodiacedge.engine.spark.evaluate.seminaive import Result, Setting
    from zodiacedge.engine.spark.storage.terms import TermFiles
    from zodiacedge.language.ast import Conjunct, Rule

    # A rule, a position in its body, and the changed rows there.
    Change = tuple[str, int, DataFrame]


@dataclass(frozen=True)
class Inherited:
    """The facts that a node starts from: its own, or those of the old nodes that merged into it."""

    segment: Segment
    added: tuple[str, ...] = ()
    """The keys of new rules."""
    further: tuple[tuple[Relation, SignedFiles], ...] = ()
    """The files of further old nodes; their rows may be in the segment as well."""

    @classmethod
    def of(cls, parents: Sequence[Segment], added: tuple[str, ...]) -> Inherited:
        """Merge the segments of old nodes; the contents are those of the largest node of each relation."""
        contents: dict[Relation, SignedFiles] = {}
        further: list[tuple[Relation, SignedFiles]] = []
        for parent in sorted(parents, key=lambda segment: -segment.rows):
            for relation, content in parent.contents.items():
                if relation in contents:
                    further.append((relation, content))
                else:
                    contents[relation] = content
        aggregate_rows = {key: rows for parent in parents for key, rows in parent.aggregate_rows.items()}
        return cls(Segment(contents, aggregate_rows), added, tuple(further))


class MaintainedNode(Node):
    """A node that is maintained from the facts it had derived."""

    def __init__(self, rules: Mapping[str, Rule], setting: Setting, terms: TermFiles, own: Inherited) -> None:
        """Take the node's rules by key, and the facts that it starts from."""
        super().__init__(rules, setting, terms)
        self._own = own

    def maintain(self) -> Result | None:
        """Maintain the node; return None if it must be recomputed."""
        own = self._own
        if not all(map(self._can_be_maintained, self._rules.values())):
            return None
        self.result.contents = dict(own.segment.contents)
        self.result.aggregate_rows = dict(own.segment.aggregate_rows)
        gained, lost = (list(self._changes(lost=lost)) for lost in (False, True))
        self._fold(own.added)
        for key, rule in self._rules.items():
            if rule.aggregate and key not in own.added:
                plus, minus = self._fold_again(key, rule.aggregate)
                gained += plus
                lost += minus
        if self.result.dropped or (lost and self.recursive):
            return None
        start = dict(own.segment.contents)
        if lost:
            start = self._without_lost(start, lost)
        if gained or own.added or own.further:
            self._grow(start, lambda: self._first_heads(gained))
        else:
            self.result.contents = start
        if self.result.dropped:
            return None
        self.result.contents = {
            relation: compacted(self._workspace, relation, content, self._yield_point)
            for relation, content in self.result.contents.items()
        }
        return self.result

    def _can_be_maintained(self, rule: Rule) -> bool:
        """Whether delta plans find all rule instances that a change inserts and deletes."""
        bodies = [rule.body, rule.aggregate.body] if rule.aggregate else [rule.body]
        # A negation on computed values is evaluated where the values are, on the new version only.
        negates_values = any(isinstance(c, Negation) for body in bodies for c in left_over(body))
        fails = any(can_fail(body) for body in bodies)
        return not negates_values and not (self.recursive and (fails or rule.aggregate))

    def _old(self) -> Sources:
        return self._sources(self._setting.before, self._own.segment)

    def _first_heads(self, gained: Sequence[Change]) -> Iterator[tuple[Relation, DataFrame]]:
        """Yield the heads of new rule instances, all heads of added rules, and further inherited facts."""
        for key, position, rows in gained:
            yield (
                Relation.of(self._rules[key].head),
                self._heads(key, self._new, (position, rows), counts=True),
            )
        for key in self._own.added:
            yield Relation.of(self._rules[key].head), self._heads(key, self._new, None, counts=True)
        for relation, content in self._own.further:
            yield relation, self._frames.content(relation, content)

    # Deltas.

    def _changes(self, *, lost: bool) -> Iterator[Change]:
        """Yield the changed rows that give rule instances, or those that delete some."""
        for key, rule in self._rules.items():
            if key not in self._own.added:
                for position, rows in self._deltas(rule.body, lost=lost):
                    yield key, position, rows

    def _deltas(self, body: tuple[Conjunct, ...], *, lost: bool) -> Iterator[tuple[int, DataFrame]]:
        for position, conjunct in enumerate(body):
            if isinstance(conjunct, Atom | Negation):
                atom = conjunct.atom if isinstance(conjunct, Negation) else conjunct
                # Under a negation an insertion deletes instances, and a deletion inserts some.
                rows = self._delta(Relation.of(atom), lost=lost != isinstance(conjunct, Negation))
                if rows is not None:
                    yield position, rows

    def _delta(self, relation: Relation, *, lost: bool) -> DataFrame | None:
        """Return the rows of a relation that owners outside gained or lost; other owners may have them."""
        before, after = self._setting.before, self._setting.after
        deltas = []
        for owner in {**before, **after}:
            old, new = (side.get(owner, Segment()).content(relation) for side in (before, after))
            rows = self._frames.delta(relation, old, new)[lost]
            if rows is not None:
                deltas.append(rows)
        return together(deltas) if deltas else None

    # Groups.

    def _fold_again(self, key: str, aggregate: Aggregate) -> tuple[list[Change], list[Change]]:
        """Fold changed groups again; return the inserted and deleted rows of the aggregate: three jobs."""
        groups = self._changed_groups(key, aggregate)
        if groups is None:
            return [], []
        guard = Atom("groups to fold", aggregate.groups)
        sources = _with(self._sources(self._setting.after), guard, groups)
        after = self._folded(key, aggregate, _guarded(guard, aggregate.body), sources)
        relation, before = (
            Relation.of_rows(aggregate),
            self._own.segment.aggregate_rows.get(key, SignedFiles()),
        )
        was, now = (self._frames.content(relation, content) for content in (before, after))
        if aggregate.groups:
            # Where a group is computed from a binding, unchanged groups were folded too.
            shared = names(len(aggregate.groups))
            was, now = (frame.join(groups, shared, "left_semi") for frame in (was, now))
        ((plus, minus),) = self._frames.write_changes([(relation, was, now)], "comparing groups")
        self.result.aggregate_rows[key] = compacted(
            self._workspace, relation, before.then(plus, minus), self._yield_point
        )
        position = self._rules[key].body.index(aggregate)
        inserted, deleted = (
            [(key, position, self._frames.parts(files, relation.width))] if files else []
            for files in (plus, minus)
        )
        return inserted, deleted

    def _changed_groups(self, key: str, aggregate: Aggregate) -> DataFrame | None:
        """Write the groups of an aggregate whose bindings may have changed, each once."""
        head = Atom("groups to fold", aggregate.groups)
        frames = []
        for lost, owners in ((True, self._setting.before), (False, self._setting.after)):
            for position, rows in self._deltas(aggregate.body, lost=lost):
                sources = self._sources(owners)
                frame, dropped = self._instances(head, aggregate.body, sources, (position, rows))
                frames.append(frame)
                self.result.drop(key, dropped)
        if not frames:
            return None
        relation = Relation.of(head)
        groups = together(frames).distinct()
        (files,) = self._frames.write([(relation, groups)], "finding groups")
        self._held += files
        return self._frames.parts(files, relation.width) if files else None

    # Facts that lost a rule instance.

    def _without_lost(
        self, start: Mapping[Relation, SignedFiles], lost: Sequence[Change]
    ) -> dict[Relation, SignedFiles]:
        """Return the segment without the facts that no rule instance supports any more: one job."""
        unsupported = []
        for relation in self._relations:
            content = start.get(relation, SignedFiles())
            candidates = [
                self._heads(key, self._old, (position, rows), counts=False)
                for key, position, rows in lost
                if Relation.of(self._rules[key].head) == relation
            ]
            if not candidates or not content.rows:
                continue
            columns = names(relation.width)
            doubtful = together(candidates).distinct()
            doubtful = doubtful.join(self._frames.content(relation, content), columns, "left_semi")
            supported = [
                self._supported(key, doubtful)
                for key, rule in self._rules.items()
                if Relation.of(rule.head) == relation
            ]
            unsupported.append((relation, doubtful.join(together(supported), columns, "left_anti")))
        contents = dict(start)
        written = self._frames.write(unsupported, "looking for lost facts")
        for (relation, _), files in zip(unsupported, written, strict=True):
            contents[relation] = contents[relation].then((), files)
        return contents

    def _supported(self, key: str, doubtful: DataFrame) -> DataFrame:
        """Return the doubtful facts that an instance of a rule supports after the change."""
        rule = self._rules[key]
        guard = Atom("facts in doubt", rule.head.args)
        body = _guarded(guard, rule.body)
        supported, dropped = self._instances(rule.head, body, _with(self._new(), guard, doubtful))
        self.result.drop(key, dropped)
        return supported


def _guarded(guard: Atom, body: tuple[Conjunct, ...]) -> tuple[Conjunct, ...]:
    """Return a body joined with a guard atom as well, unless the guard binds only computed variables."""
    computed = {c.variable for c in body if isinstance(c, Binding)}
    joined = any(isinstance(arg, Variable) and arg not in computed for arg in guard.args)
    return (guard, *body) if joined or not computed else body


def _with(sources: Sources, guard: Atom, frame: DataFrame) -> Sources:
    """Return sources in which a guard atom reads a frame of few rows."""

    def rows(atom: Atom) -> DataFrame:
        return frame if atom is guard else sources.atom(atom)

    def size(atom: Atom) -> int:
        return 1 if atom is guard else sources.size(atom)

    return Sources(sources.session, sources.keys, rows, sources.absent, size, sources.aggregate)
