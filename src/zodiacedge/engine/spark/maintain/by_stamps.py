"""Maintenance of a node by stamps (`stamped_task`), as the driver sees it: its files, its job, its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.engine.api import SegmentChange
from zodiacedge.engine.spark.evaluate.inputs import wanted_by
from zodiacedge.engine.spark.maintain import stamped_task
from zodiacedge.engine.spark.maintain.stamped_rows import Source
from zodiacedge.engine.spark.maintain.stamped_task import StampedTask, can_be_stamped
from zodiacedge.engine.spark.storage.compaction import compacted
from zodiacedge.engine.spark.storage.embedded_tables import constants
from zodiacedge.engine.spark.storage.files import Segment
from zodiacedge.language.ast import body_atoms

if TYPE_CHECKING:
    from zodiacedge.engine.spark.evaluate.embedded_task import NetFiles
    from zodiacedge.engine.spark.maintain.change_state import ChangeState
    from zodiacedge.engine.spark.storage.files import Owners, Relation, SignedFiles
    from zodiacedge.graph.merge_split import HyperNode

# A task reads at most so many rows.
_MOST_ROWS = 4_000_000


@dataclass(frozen=True)
class MaintainedByStamps:
    """A node after a change."""

    segment: Segment
    moved: SegmentChange
    net: NetFiles | None
    """The files of the net change, as far as the node and its change go."""
    rounds: int
    read: int
    """The number of rows that were read."""
    checked: int
    """The number of facts whose support was looked for."""


def can_go_by_stamps(state: ChangeState, node: HyperNode) -> bool:
    """Whether the facts of a node have stamps, and its rules can be maintained by them."""
    return state.segments[frozenset(node.rules)].stamped and can_be_stamped(state.rules_of(node).values())


def moved_rows(state: ChangeState, node: HyperNode) -> int:
    """Return how many rows owners outside a node inserted and deleted, of the relations that it reads."""
    moved = 0
    for source in sources(state, node):
        for was, will in ((source.before, source.after), (source.after, source.before)):
            kept = {part for content in will for part in content.parts}
            moved += sum(part.rows for content in was for part in content.parts if part not in kept)
    return moved


def sources(state: ChangeState, node: HyperNode) -> tuple[Source, ...]:
    """Return the files of what a node reads and derives, and of what the change is of."""
    keys = frozenset(node.rules)
    rules = state.rules_of(node).values()
    atoms = [atom for rule in rules for atom in (rule.head, *body_atoms(rule.body))]
    relations = {*wanted_by(atoms, state.keys), *state.changed_facts}
    before, after = state.outside({keys})
    own = state.segments[keys]
    return tuple(
        Source(relation, _held(before, relation), _held(after, relation), own.content(relation))
        for relation in relations
        if relation.arity
    )


def _held(owners: Owners, relation: Relation) -> tuple[SignedFiles, ...]:
    contents = (owner.content(relation) for owner in owners.values())
    return tuple(content for content in contents if content.layers)


def maintain(state: ChangeState, node: HyperNode, seconds: float) -> MaintainedByStamps | None:
    """Maintain a node in one job; None if that takes too many rows or seconds."""
    workspace, yield_point = state.workspace, state.settings.yield_point
    keys, rules = frozenset(node.rules), tuple(state.rules_of(node).values())
    kept = state.segments[keys]
    read = sources(state, node)
    task = StampedTask(
        rules=rules,
        keys=workspace.keys(term for rule in rules for term in constants(rule)),
        sources=read,
        folder=workspace.scratch.folder,
        rows=_MOST_ROWS,
        seconds=seconds,
        hashing=workspace.hashing,
    )
    result = workspace.jobs.one(stamped_task.run, task, "maintaining facts by stamps", yield_point)
    if result is None:
        return None
    contents = dict(kept.contents)
    for relation, (plus, minus) in result.moved.items():
        content = kept.content(relation).then([workspace.adopt(plus)], [workspace.adopt(minus)])
        contents[relation] = compacted(workspace, relation, content, yield_point)
    stamped = all(content.stamped for content in contents.values())
    whole = all(relation.arity for relation in state.changed_facts)
    return MaintainedByStamps(
        segment=Segment(contents, kept.aggregate_rows, stamped),
        moved=SegmentChange(result.gained, result.lost),
        net=result.net if whole else None,
        rounds=result.rounds,
        read=result.read,
        checked=result.checked,
    )
