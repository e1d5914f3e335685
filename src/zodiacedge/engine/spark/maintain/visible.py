"""What became visible in a change, and what is visible no more, found out when somebody asks.

Many relations are clear from who has them. The others are compared: on rows that are looked up where few
moved, else in one task, else by a plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate import embedded_task
from zodiacedge.engine.spark.evaluate.embedded_task import RegionTask
from zodiacedge.engine.spark.evaluate.inputs import Wanted, inputs_for, want
from zodiacedge.engine.spark.evaluate.seminaive import owners_of
from zodiacedge.engine.spark.maintain import compare, slice_search
from zodiacedge.engine.spark.maintain.slice_search import Scope
from zodiacedge.engine.yield_point import ALONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.engine.spark.evaluate.seminaive import Owners
    from zodiacedge.engine.spark.ingest.fact_delta import ExplicitDelta
    from zodiacedge.engine.spark.maintain.compare import Parts
    from zodiacedge.engine.spark.storage.files import DataFile, Relation, Segment
    from zodiacedge.engine.spark.storage.terms import TermFiles
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.terms import Term


def rows_of(wanted: Wanted, owners: Iterable[Segment]) -> int:
    """Count what all owners have of some relations, or of some classes of them."""
    return sum(
        content.rows if classes is None else sum(content.classes().get(key, 0) for key in classes)
        for one in owners
        for relation, classes in wanted.items()
        for content in (one.content(relation),)
    )


@dataclass(frozen=True)
class Visible:
    """Two versions, and the relations of which somebody gained or lost facts."""

    before: SparkVersion
    after: SparkVersion
    sifted: ExplicitDelta
    touched: Wanted
    keys: Mapping[Term, int]

    def net(self) -> tuple[Parts, Parts]:
        """Find out what became visible and what is visible no more."""
        came: Parts = {}
        went: Parts = {}
        unclear: Wanted = {}
        for relation, classes in self.touched.items():
            was, will = (
                [one.content(relation) for one in (state.explicit_files, *state.segments.values())]
                for state in (self.before, self.after)
            )
            stated = (was[0], will[0])
            was, will = ([content for content in side if content.rows] for side in (was, will))
            if all(content in stated for content in (*was, *will)):
                for found, parts in ((came, self.sifted.new), (went, self.sifted.old)):
                    if relation in parts:
                        found[relation] = parts[relation]
            elif not was and len(will) == 1 and will[0].plain:
                came[relation] = tuple(will[0].parts)
            elif not will and len(was) == 1 and was[0].plain:
                went[relation] = tuple(was[0].parts)
            else:
                want(unclear, relation, classes)
        if unclear:
            more_came, more_went = self._compared(unclear)
            came |= more_came
            went |= more_went
        return came, went

    def _compared(self, unclear: Wanted) -> tuple[Parts, Parts]:
        place = self.before.workspace
        options = place.options
        old, new = (owners_of(state.explicit_files, state.segments) for state in (self.before, self.after))
        rows = rows_of(unclear, new.values())
        if options.strategy == "choose" and rows > min(options.look_up_from, options.gather_rows):
            scope = Scope(place, ALONE, (), self.keys, old, new, tuple(unclear))
            found = slice_search.visible_changes(scope)
            if found is not None:
                return found
        return changes_between(place, old, new, unclear, self.after.terms)


def changes_between(
    place: Workspace, old: Owners, new: Owners, wanted: Wanted, terms: TermFiles
) -> tuple[Parts, Parts]:
    """Compare what is visible of some relations in two versions of one place: in one task, else by a plan."""
    rows = max(rows_of(wanted, side.values()) for side in (old, new))
    if not place.options.gathers(rows):
        return compare.visible_changes(place, tuple(wanted), old, new)
    inputs = inputs_for(wanted, old.values(), new.values())
    work = RegionTask({}, {}, inputs, {}, terms, place.scratch.folder, place.hashing, net=inf)
    outcome = place.jobs.one(embedded_task.run, work, "comparing what is visible")
    return _adopted(place, outcome.inserted), _adopted(place, outcome.deleted)


def _adopted(place: Workspace, parts: Mapping[Relation, DataFile]) -> Parts:
    return {relation: (place.adopt(part),) for relation, part in parts.items()}
