"""The net change between two versions: the facts that became visible, and those that are visible no more.

A fact is visible if any owner has it: the explicit facts (EDB), or the segment of a node. For many relations
the net change follows from which owners have them. The others are compared when a user asks: on rows looked
up by key where few changed, else in one task, else by a plan.
"""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate import embedded_task
from zodiacedge.engine.spark.evaluate.embedded_task import (
    RegionInputs,
    RegionProgram,
    RegionTask,
    TaskSettings,
)
from zodiacedge.engine.spark.evaluate.inputs import Wanted, inputs_for, want
from zodiacedge.engine.spark.ingest.batch import class_predicate, predicate_counts
from zodiacedge.engine.spark.lookup.decode import Decoder
from zodiacedge.engine.spark.lookup.row_filter import ALL, RowFilter
from zodiacedge.engine.spark.lookup.table import Selection, frame_of
from zodiacedge.engine.spark.maintain import slice_search
from zodiacedge.engine.spark.maintain.slice_search import RelationFiles, Scope
from zodiacedge.engine.spark.storage.dataframes import Frames, names, together
from zodiacedge.engine.spark.storage.files import Owners, Relation, Segment, SignedFiles
from zodiacedge.engine.yield_point import ALONE
from zodiacedge.language.ast import Predicate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from zodiacedge.engine.spark.evaluate.embedded_task import NetFiles
    from zodiacedge.engine.spark.ingest.fact_delta import ExplicitDelta
    from zodiacedge.engine.spark.storage.terms import TermFiles
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.io.formats.column_mapping import ColumnMapping
    from zodiacedge.language.ast import Fact
    from zodiacedge.terms import Term

    # The files of the rows inserted, and of those deleted.
    Net = tuple[RelationFiles, RelationFiles]


class SparkNetChange:
    """The net change of one change, compared on first use; each fact once."""

    def __init__(self, after: SparkVersion, compare: Callable[[], Net]) -> None:
        """Take the version after the change, and the function that compares it with the one before."""
        self.after = after
        self._compare: Callable[[], Net] | None = compare

    @cached_property
    def _sides(self) -> Net:
        if self._compare is None:
            raise AssertionError
        sides = self._compare()
        # Releases the files of the version before.
        self._compare = None
        return sides

    def counts(self) -> tuple[Mapping[Predicate, int], Mapping[Predicate, int]]:
        """Count the inserted and the deleted facts, without listing them."""
        inserted, deleted = self._sides
        return self._counted(inserted), self._counted(deleted)

    def _counted(self, side: RelationFiles) -> dict[Predicate, int]:
        counts: dict[Predicate, int] = {}
        for relation, content in side.items():
            rows = content.classes if relation.typed else {0: content.rows}
            counts |= predicate_counts(relation, rows, self.after.named)
        return counts

    def facts(
        self, wanted: Callable[[Predicate], bool] | None = None
    ) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Return the inserted and the deleted facts, of all predicates or of the wanted ones."""
        inserted, deleted = self._sides
        return self._listed(inserted, wanted), self._listed(deleted, wanted)

    def frame(self, predicate: Predicate, mapping: ColumnMapping, *, inserted: bool) -> DataFrame:
        """Return the inserted or the deleted facts of a predicate with the columns of a mapping."""
        selection = Selection.of(self.after, predicate)
        content = self._sides[not inserted].get(selection.relation, SignedFiles())
        session = self.after.workspace.jobs.cluster.session()
        return frame_of(self.after, selection, [content], mapping, session)

    def _listed(self, side: RelationFiles, wanted: Callable[[Predicate], bool] | None) -> frozenset[Fact]:
        lookup = Decoder(self.after.workspace, self.after.terms)
        return frozenset(
            fact
            for relation, content in side.items()
            if wanted is None or relation.typed or wanted(Predicate(*relation))
            for fact in lookup.facts(relation, [content], self._filter(relation, content, wanted))
        )

    def _filter(
        self, relation: Relation, content: SignedFiles, wanted: Callable[[Predicate], bool] | None
    ) -> RowFilter:
        """Return the filter for wanted predicates: for `rdf:type`, the wanted classes."""
        if wanted is None or not relation.typed:
            return ALL
        classes = content.classes
        terms = self.after.named(classes)
        return RowFilter(frozenset(key for key in classes if wanted(class_predicate(terms[key]))))


def rows_of(wanted: Wanted, owners: Iterable[Segment]) -> int:
    """Count the rows that all owners have of relations, or of classes of them."""
    return sum(
        content.rows if classes is None else sum(content.classes.get(key, 0) for key in classes)
        for owner in owners
        for relation, classes in wanted.items()
        for content in (owner.content(relation),)
    )


def net_of(
    before: SparkVersion,
    after: SparkVersion,
    explicit: ExplicitDelta,
    changed: Wanted,
    keys: Mapping[Term, int],
) -> Net:
    """Return the net change of the relations in which any owner changed."""
    inserted: RelationFiles = {}
    deleted: RelationFiles = {}
    unclear: Wanted = {}
    for relation, classes in changed.items():
        was, will = (
            [owner.content(relation) for owner in version.owners.values()] for version in (before, after)
        )
        explicit_only = (was[0], will[0])
        was, will = ([content for content in side if content.rows] for side in (was, will))
        if all(content in explicit_only for content in (*was, *will)):
            for side, files in ((inserted, explicit.inserted), (deleted, explicit.deleted)):
                if relation in files:
                    side[relation] = files[relation]
        elif not was and len(will) == 1:
            (inserted[relation],) = will
        elif not will and len(was) == 1:
            (deleted[relation],) = was
        else:
            want(unclear, relation, classes)
    if unclear:
        more_inserted, more_deleted = _compared(before, after, unclear, keys)
        inserted |= more_inserted
        deleted |= more_deleted
    return inserted, deleted


def _compared(before: SparkVersion, after: SparkVersion, wanted: Wanted, keys: Mapping[Term, int]) -> Net:
    workspace = before.workspace
    options = workspace.options
    old, new = before.owners, after.owners
    large = rows_of(wanted, new.values()) > min(options.look_up_from, options.gather_rows)
    if options.strategy == "choose" and large:
        net = slice_search.visible_changes(Scope(workspace, ALONE, (), keys, old, new, tuple(wanted)))
        if net is not None:
            return net
    return changes_between(workspace, old, new, wanted, after.terms)


def changes_between(workspace: Workspace, old: Owners, new: Owners, wanted: Wanted, terms: TermFiles) -> Net:
    """Compare the visible rows of relations in two versions: in one task, else by a plan."""
    rows = max(rows_of(wanted, side.values()) for side in (old, new))
    if not workspace.options.gathers(rows):
        return _changes_by_plan(workspace, tuple(wanted), old, new)
    task = RegionTask(
        program=RegionProgram(),
        inputs=RegionInputs(inputs_for(wanted, old.values(), new.values()), terms),
        settings=TaskSettings(workspace.scratch.folder, workspace.hashing, net_rows=inf),
    )
    result = workspace.jobs.one(embedded_task.run, task, "comparing what is visible")
    if result is None or result.net is None:
        raise AssertionError
    return adopted(workspace, result.net)


def adopted(workspace: Workspace, net: NetFiles) -> Net:
    """Adopt the files of a net change that a task wrote."""
    inserted, deleted = (
        {relation: SignedFiles.of(workspace.adopt(file)) for relation, file in side.items()} for side in net
    )
    return inserted, deleted


def _changes_by_plan(
    workspace: Workspace, relations: Sequence[Relation], before: Owners, after: Owners
) -> Net:
    """Compare the visible rows of relations in two versions: one job."""
    frames = Frames(workspace)
    pieces: list[tuple[Relation, DataFrame]] = []
    sides: list[int] = []
    for relation in relations:
        deltas = [
            frames.delta(relation, _content(before, owner, relation), _content(after, owner, relation))
            for owner in {**before, **after}
        ]
        # An inserted row was not visible before, a deleted one is not after.
        for side, owners in ((0, before), (1, after)):
            rows = [frame for delta in deltas if (frame := delta[side]) is not None]
            if rows:
                visible = frames.union(relation, [owner.content(relation) for owner in owners.values()])
                changed = together(rows).distinct().join(visible, names(relation.width), "left_anti")
                pieces.append((relation, changed))
                sides.append(side)
    net: Net = ({}, {})
    written = frames.write(pieces, "comparing what is visible")
    for (relation, _), side, files in zip(pieces, sides, written, strict=True):
        if files:
            net[side][relation] = SignedFiles.of(*files)
    return net


def _content(owners: Owners, owner: frozenset[str] | None, relation: Relation) -> SignedFiles:
    return owners.get(owner, Segment()).content(relation)
