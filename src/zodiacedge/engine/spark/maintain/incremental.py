"""Incremental maintenance of one hyper-node on data frames, from the deltas of its inputs.

Inserted rows are read at each position of a body in turn; facts that lost an instance are derived again.
Groups with changed rows are folded again, and their old and new rows are the delta at the position of the
aggregate. A recursive node can only grow so: one that loses facts must be recomputed, and so must one with an
evaluation error, because only recomputing counts the dropped bindings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate.rule_plan import Sources, left_over
from zodiacedge.engine.spark.evaluate.seminaive import Node
from zodiacedge.engine.spark.storage.compaction import compacted
from zodiacedge.engine.spark.storage.dataframes import names, tagged, together
from zodiacedge.engine.spark.storage.files import Relation, Segment, SignedFiles
from zodiacedge.language.ast import Aggregate, Atom, Binding, Negation, Variable
from zodiacedge.plan.variants import can_fail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from zodiacedge.engine.spark.evaluate.seminaive import Result, Setting
    from zodiacedge.engine.spark.storage.terms import TermFiles
    from zodiacedge.language.ast import Conjunct, Rule

    # A rule, a position of its body, and rows that came up there.
    Change = tuple[str, int, DataFrame]


@dataclass(frozen=True)
class Inherited:
    """What a node starts from: its own facts, or those of nodes that came together in it."""

    contents: Mapping[Relation, SignedFiles]
    added: tuple[str, ...] = ()
    """The keys of rules that nobody had before."""
    further: tuple[tuple[Relation, SignedFiles], ...] = ()
    """What more than one node had; it may be among the contents as well."""
    aggregate_rows: Mapping[str, SignedFiles] = field(default_factory=dict)
    """The rows of its aggregates, by rule."""

    @classmethod
    def of(cls, parents: Sequence[Segment], added: tuple[str, ...]) -> Inherited:
        """Take over what some nodes had; of each relation the largest content as it is."""
        contents: dict[Relation, SignedFiles] = {}
        further: list[tuple[Relation, SignedFiles]] = []
        for parent in sorted(parents, key=lambda one: -one.rows):
            for relation, content in parent.contents.items():
                if relation in contents:
                    further.append((relation, content))
                else:
                    contents[relation] = content
        hidden = {key: rows for parent in parents for key, rows in parent.aggregate_rows.items()}
        return cls(contents, added, tuple(further), hidden)


class MaintainedNode(Node):
    """The rules of one node, and what they had derived."""

    def __init__(self, rules: Mapping[str, Rule], setting: Setting, terms: TermFiles, own: Inherited) -> None:
        """Take the node's rules by key, and what it starts from."""
        super().__init__(rules, setting, terms)
        self._own = own

    def maintain(self) -> Result | None:
        """Bring the node up to date; None where it must be evaluated anew."""
        own = self._own
        if not all(map(self._can_be_maintained, self._rules.values())):
            return None
        self.result.contents = dict(own.contents)
        self.result.aggregate_rows = dict(own.aggregate_rows)
        gained, lost = (list(self._changes(lost=lost)) for lost in (False, True))
        for key, rule in self._rules.items():
            if rule.aggregate and key in own.added:
                self.result.aggregate_rows[key] = self._folded(
                    key, rule.aggregate, rule.aggregate.body, self._sources(self._setting.after, {}, {})
                )
            elif rule.aggregate:
                plus, minus = self._fold_again(key, rule.aggregate)
                gained += plus
                lost += minus
        if self.result.dropped or (lost and self.recursive):
            return None
        start = dict(own.contents)
        if lost:
            start = self._without_lost(start, lost)
        if gained or own.added or own.further:
            self._grow(start, lambda: self._first_heads(gained))
        else:
            self.result.contents = start
        if self.result.dropped:
            return None
        workspace, yield_point = self._setting.workspace, self._setting.settings.yield_point
        self.result.contents = {
            relation: compacted(workspace, relation, content, yield_point)
            for relation, content in self.result.contents.items()
        }
        return self.result

    def _can_be_maintained(self, rule: Rule) -> bool:
        """Whether a rule's instances can be told from what came and went."""
        bodies = [rule.body, rule.aggregate.body] if rule.aggregate else [rule.body]
        # What is negated on computed values is judged where the values are, on the next version only.
        judged = any(isinstance(c, Negation) for body in bodies for c in left_over(body))
        fails = any(can_fail(body) for body in bodies)
        return not judged and not (self.recursive and (fails or rule.aggregate))

    def _old(self) -> Sources:
        return self._sources(self._setting.before, self._own.contents, self._own.aggregate_rows)

    def _first_heads(self, gained: Sequence[Change]) -> Iterator[tuple[Relation, DataFrame]]:
        """Yield heads of instances with what came, all heads of added rules, and what else is taken over."""
        for key, position, rows in gained:
            yield (
                Relation.of(self._rules[key].head),
                self._heads(key, self._new, (position, rows), counts=True),
            )
        for key in self._own.added:
            yield Relation.of(self._rules[key].head), self._heads(key, self._new, None, counts=True)
        for relation, content in self._own.further:
            yield relation, self._frames.content(relation, content)

    # What came and went.

    def _changes(self, *, lost: bool) -> Iterator[Change]:
        """Yield rules and places where rows came up that give instances, or take some away."""
        for key, rule in self._rules.items():
            if key not in self._own.added:
                for position, rows in self._moved(rule.body, lost=lost):
                    yield key, position, rows

    def _moved(self, body: tuple[Conjunct, ...], *, lost: bool) -> Iterator[tuple[int, DataFrame]]:
        for position, conjunct in enumerate(body):
            if isinstance(conjunct, Atom | Negation):
                atom = conjunct.atom if isinstance(conjunct, Negation) else conjunct
                # What comes under a negation takes away, what goes gives.
                rows = self._delta(Relation.of(atom), lost=lost != isinstance(conjunct, Negation))
                if rows is not None:
                    yield position, rows

    def _delta(self, relation: Relation, *, lost: bool) -> DataFrame | None:
        """Return what any owner outside gained or lost of a relation; others may have it too."""
        before, after = self._setting.before, self._setting.after
        found = []
        for owner in {**before, **after}:
            old, new = (side.get(owner, Segment()).content(relation) for side in (before, after))
            rows = self._frames.delta(relation, old, new)[lost]
            if rows is not None:
                found.append(rows)
        return together(found) if found else None

    # Groups.

    def _fold_again(self, key: str, aggregate: Aggregate) -> tuple[list[Change], list[Change]]:
        """Fold the groups again that something moved in; return what rows came and went: three jobs."""
        groups = self._touched_groups(key, aggregate)
        if groups is None:
            return [], []
        given = Atom("groups to fold", aggregate.groups)
        sources = _with(self._sources(self._setting.after, {}, {}), given, groups)
        after = self._folded(key, aggregate, _narrowed(given, aggregate.body), sources)
        relation, there = Relation.of_rows(aggregate), self._own.aggregate_rows.get(key, SignedFiles())
        was, now = (self._frames.content(relation, content) for content in (there, after))
        if aggregate.groups:
            # Where a group is computed from a binding, others were folded too.
            shared = names(len(aggregate.groups))
            was, now = (frame.join(groups, shared, "left_semi") for frame in (was, now))
        columns = names(relation.width)
        moved = [tagged(now.join(was, columns, "left_anti"), 0, relation.width)]
        moved.append(tagged(was.join(now, columns, "left_anti"), 1, relation.width))
        workspace, yield_point = self._setting.workspace, self._setting.settings.yield_point
        written = self._frames.write(together(moved), [relation] * 2, "comparing groups", yield_point)
        plus, minus = (written.get(tag, []) for tag in (0, 1))
        self.result.aggregate_rows[key] = compacted(workspace, relation, there.then(plus, minus), yield_point)
        at = self._rules[key].body.index(aggregate)
        changes = [
            [(key, at, self._frames.parts(parts, relation.width))] if parts else [] for parts in (plus, minus)
        ]
        return changes[0], changes[1]

    def _touched_groups(self, key: str, aggregate: Aggregate) -> DataFrame | None:
        """Write the groups of an aggregate whose bindings may have changed, each once."""
        head = Atom("groups to fold", aggregate.groups)
        found = []
        for lost, owners in ((True, self._setting.before), (False, self._setting.after)):
            for position, rows in self._moved(aggregate.body, lost=lost):
                sources = self._sources(owners, {}, {})
                frame, dropped = self._instances(head, aggregate.body, sources, (position, rows))
                found.append(frame)
                if dropped:
                    self._drop(key, dropped)
        if not found:
            return None
        relation = Relation.of(head)
        groups = tagged(together(found).distinct(), 0, relation.width)
        yield_point = self._setting.settings.yield_point
        parts = self._frames.write(groups, [relation], "finding groups", yield_point).get(0, [])
        self._held += parts
        return self._frames.parts(parts, relation.width) if parts else None

    # What lost an instance.

    def _without_lost(
        self, start: Mapping[Relation, SignedFiles], lost: Sequence[Change]
    ) -> dict[Relation, SignedFiles]:
        """Return the segment without the facts that no instance supports any more: one job."""
        pieces = []
        width = max(relation.width for relation in self._relations)
        for tag, relation in enumerate(self._relations):
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
            pieces.append(tagged(doubtful.join(together(supported), columns, "left_anti"), tag, width))
        found = dict(start)
        if pieces:
            yield_point = self._setting.settings.yield_point
            written = self._frames.write(
                together(pieces), self._relations, "looking for lost facts", yield_point
            )
            for tag, parts in written.items():
                relation = self._relations[tag]
                found[relation] = found[relation].then((), parts)
        return found

    def _supported(self, key: str, doubtful: DataFrame) -> DataFrame:
        """Return those of some facts that an instance of a rule supports after the change."""
        rule = self._rules[key]
        given = Atom("facts in doubt", rule.head.args)
        body = _narrowed(given, rule.body)
        found, dropped = self._instances(rule.head, body, _with(self._new(), given, doubtful))
        if dropped:
            self._drop(key, dropped)
        return found


def _narrowed(given: Atom, body: tuple[Conjunct, ...]) -> tuple[Conjunct, ...]:
    """Return a body that given rows are matched with as well, if they say something of what it joins."""
    computed = {c.variable for c in body if isinstance(c, Binding)}
    joined = any(isinstance(arg, Variable) and arg not in computed for arg in given.args)
    return (given, *body) if joined or not computed else body


def _with(sources: Sources, given: Atom, frame: DataFrame) -> Sources:
    """Return sources where an atom reads given rows, which are few."""

    def rows(atom: Atom) -> DataFrame:
        return frame if atom is given else sources.atom(atom)

    def size(atom: Atom) -> int:
        return 1 if atom is given else sources.size(atom)

    return Sources(sources.session, sources.keys, rows, sources.absent, size, sources.aggregate)
