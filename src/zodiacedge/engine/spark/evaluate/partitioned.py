"""Evaluation of nodes in independent hash partitions (`plan.partition`), in two jobs.

The first job shuffles the facts; the second runs the embedded engine on each partition (`embedded_task`) to
the fixpoint of every node, without another shuffle. Partitions are disjoint, so the union of their files is
the segment.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate import embedded_task
from zodiacedge.engine.spark.evaluate.embedded_task import (
    RegionInputs,
    RegionProgram,
    RegionTask,
    TaskSettings,
)
from zodiacedge.engine.spark.evaluate.inputs import Wanted, inputs_for, want
from zodiacedge.engine.spark.evaluate.seminaive import Result
from zodiacedge.engine.spark.partition.shuffle import ShuffleInput, shuffle
from zodiacedge.engine.spark.storage.files import Relation, SignedFiles
from zodiacedge.language.printer import format_rule
from zodiacedge.plan.partition import reads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zodiacedge.engine.spark.evaluate.embedded_task import RegionResult
    from zodiacedge.engine.spark.evaluate.seminaive import Setting
    from zodiacedge.engine.spark.storage.terms import TermFiles
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.language.ast import Rule
    from zodiacedge.plan.partition import Partitioning


def evaluate(
    nodes: Sequence[Mapping[str, Rule]], by: Partitioning, setting: Setting, terms: TermFiles, rows: int
) -> list[Result]:
    """Evaluate nodes from scratch, given in topological order, in two jobs.

    `rows`, the expected number of rows read and derived, determines the number of partitions.
    """
    workspace, settings, yield_point = setting.workspace, setting.settings, setting.settings.yield_point
    rules = {key: rule for node in nodes for key, rule in node.items()}
    shuffled, broadcast = _reads(rules, by, setting)
    wanted = dict(broadcast)
    for (relation, _), classes in shuffled.items():
        want(wanted, relation, classes)
    owners = tuple(setting.after.values())
    shuffle_inputs = [
        ShuffleInput(file, relation, position, classes)
        for (relation, position), classes in shuffled.items()
        for file in {file.path: file for owner in owners for file in owner.content(relation).parts}.values()
        if classes is None or not classes.isdisjoint(file.classes)
    ]
    shuffled_inputs = shuffle(workspace, shuffle_inputs, rows, yield_point)
    task_settings = TaskSettings(
        folder=workspace.scratch.folder,
        hashing=workspace.hashing,
        registry=settings.registry,
        limits=settings.limits,
        policy=workspace.options.policy,
        total=sum(segment.rows for owner, segment in setting.after.items() if owner is not None),
    )
    inputs = inputs_for(wanted, owners, owners)
    tasks = [
        RegionTask(
            program=RegionProgram(rules, setting.keys),
            inputs=RegionInputs(inputs, terms, partition=replace(part, broadcast=broadcast)),
            settings=task_settings,
        )
        for part in shuffled_inputs
    ]
    task_results = workspace.jobs.each(embedded_task.run, tasks, "deriving facts in partitions", yield_point)
    partitions = [result for result in task_results if result is not None]
    results = [Result(terms=terms) for _ in nodes]
    for result, node in zip(results, nodes, strict=True):
        _merge(workspace, node, partitions, result)
    new_terms = [workspace.adopt(partition.terms) for partition in partitions]
    results[-1].terms = terms.with_files(*new_terms)
    return results


def _reads(
    rules: Mapping[str, Rule], by: Partitioning, setting: Setting
) -> tuple[dict[tuple[Relation, int], frozenset[int] | None], Wanted]:
    """Return the relations to shuffle, with the position of the key, and those to broadcast."""
    shuffled: dict[tuple[Relation, int], frozenset[int] | None] = {}
    broadcast: Wanted = {}
    for read in dict.fromkeys(reads(rules.values())):
        relation, position = Relation(read.name, read.arity), by.positions[read]
        classes = None if read.member_of is None else frozenset({setting.keys[read.member_of]})
        if position is None:
            want(broadcast, relation, classes)
        else:
            want(shuffled, (relation, position), classes)
    return shuffled, broadcast


def _merge(
    workspace: Workspace, rules: Mapping[str, Rule], partitions: Sequence[RegionResult], result: Result
) -> None:
    """Merge the results of all partitions for one node."""
    keys = frozenset(rules)
    labels = frozenset(rule.label or format_rule(rule) for rule in rules.values())
    for partition in partitions:
        segment = partition.changed.get(keys)
        if segment is not None:
            for relation, content in workspace.adopt_segment(segment).contents.items():
                files = result.contents.get(relation, SignedFiles())
                result.contents[relation] = files.then(content.parts)
        for key in keys & partition.dropped.keys():
            result.drop(key, partition.dropped[key])
        rounds = {frozenset(run.rules): run.rounds for run in partition.runs}
        result.rounds = max(result.rounds, rounds.get(labels, 1))
