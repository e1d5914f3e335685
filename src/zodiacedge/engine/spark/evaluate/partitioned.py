"""Evaluation of nodes by hash partitions (`plan.partition`): one job shuffles facts, one evaluates them.

Each partition is a region of its own for the embedded engine (`embedded_task`): it runs fixpoints to their
end, and nodes one after the other, without another shuffle. No fact is in two partitions, so their results
are concatenated by listing their files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate import embedded_task
from zodiacedge.engine.spark.evaluate.embedded_task import (
    RegionInputs,
    RegionProgram,
    RegionTask,
    TaskSettings,
)
from zodiacedge.engine.spark.evaluate.expressions import with_more
from zodiacedge.engine.spark.evaluate.inputs import Wanted, inputs_for, want
from zodiacedge.engine.spark.evaluate.seminaive import Result
from zodiacedge.engine.spark.partition.shuffle import PartitionInput, ShuffleInput, partition_count, shuffle
from zodiacedge.engine.spark.storage.files import Relation, SignedFiles
from zodiacedge.engine.spark.storage.terms import TermFiles
from zodiacedge.language.printer import format_rule
from zodiacedge.plan.partition import reads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zodiacedge.engine.spark.evaluate.embedded_task import RegionResult
    from zodiacedge.engine.spark.evaluate.seminaive import Setting
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.language.ast import Rule
    from zodiacedge.plan.partition import Partitioning


def evaluate(
    nodes: Sequence[Mapping[str, Rule]],
    partitioning: Partitioning,
    setting: Setting,
    terms: TermFiles,
    rows: int,
) -> list[Result]:
    """Evaluate nodes from scratch, in topological order: two jobs.

    `rows` is how many rows they read and are expected to derive, and decides how many partitions there are.
    """
    workspace, settings, turn = setting.workspace, setting.settings, setting.settings.turn
    rules = {key: rule for one in nodes for key, rule in one.items()}
    partitioned, broadcast = _wanted(rules, partitioning, setting)
    owners = tuple(setting.after.values())
    count = partition_count(workspace, rows)
    inputs = inputs_for(_all(partitioned, broadcast), owners, owners)
    shuffled = [
        ShuffleInput(part, relation, position, classes)
        for (relation, position), classes in partitioned.items()
        for part in {part.path: part for one in owners for part in one.content(relation).parts}.values()
        if classes is None or not classes.isdisjoint(part.classes)
    ]
    blocks, held = shuffle(workspace, shuffled, count, turn)
    task_settings = TaskSettings(
        folder=workspace.scratch.folder,
        hashing=workspace.hashing,
        registry=settings.registry,
        limits=settings.limits,
        policy=workspace.options.policy,
        total=sum(segment.rows for owner, segment in setting.after.items() if owner is not None),
    )
    tasks = [
        RegionTask(
            program=RegionProgram(rules, setting.keys),
            inputs=RegionInputs(inputs, terms, partition=PartitionInput(rows_of_task, broadcast)),
            settings=task_settings,
        )
        for rows_of_task in blocks
    ]
    found = workspace.jobs.each(embedded_task.run, tasks, "deriving facts in partitions", turn)
    partitions = [result for result in found if result is not None]
    del held  # the tasks have read their blocks
    results = [Result(terms=terms) for _ in nodes]
    for result, own in zip(results, nodes, strict=True):
        _take(workspace, own, partitions, result)
    new = [workspace.adopt(one.segments.terms) for one in partitions if one.segments.terms.rows]
    if new:
        results[-1].terms = TermFiles((*terms.parts, *new))
    return results


def _wanted(
    rules: Mapping[str, Rule], partitioning: Partitioning, setting: Setting
) -> tuple[dict[tuple[Relation, int], frozenset[int] | None], Wanted]:
    """Return which relations are partitioned, by which positions, and which are broadcast, with classes."""
    partitioned: dict[tuple[Relation, int], frozenset[int] | None] = {}
    broadcast: Wanted = {}
    for source in dict.fromkeys(reads(rules.values())):
        relation, position = Relation(source.name, source.arity), partitioning.positions[source]
        classes = None if source.member_of is None else frozenset({setting.keys[source.member_of]})
        if position is None:
            want(broadcast, relation, classes)
            continue
        key = (relation, position)
        known = partitioned.get(key, frozenset())
        partitioned[key] = None if classes is None or known is None else known | classes
    return partitioned, broadcast


def _all(partitioned: Mapping[tuple[Relation, int], frozenset[int] | None], broadcast: Wanted) -> Wanted:
    found = dict(broadcast)
    for (relation, _), classes in partitioned.items():
        want(found, relation, classes)
    return found


def _take(
    workspace: Workspace, rules: Mapping[str, Rule], partitions: Sequence[RegionResult], result: Result
) -> None:
    """Concatenate what the partitions derived of one node."""
    keys = frozenset(rules)
    labels = frozenset(rule.label or format_rule(rule) for rule in rules.values())
    for partition in partitions:
        segment, report = partition.segments.changed.get(keys), partition.report
        if segment is not None:
            for relation, content in workspace.adopt_segment(segment).contents.items():
                files = result.contents.get(relation, SignedFiles())
                result.contents[relation] = files.then(tuple(content.parts))
        for key in keys & report.dropped.keys():
            known = with_more(result.dropped.get(key), report.dropped[key])
            if known:
                result.dropped[key] = known
        rounds = {frozenset(run.rules): run.rounds for run in report.runs}
        result.rounds = max(result.rounds, rounds.get(labels, 1))
