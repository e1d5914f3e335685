"""Nodes in parts that never need each other (`dealing`): one job deals their facts out, one runs all parts.

Each part is a region of its own for the embedded engine (`region`): it runs recursions to their end, and
nodes one after the other, without asking anybody. No fact is in two parts, so what parts derive is put
together by naming their files.
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
    nodes: Sequence[Mapping[str, Rule]], dealing: Partitioning, setting: Setting, terms: TermFiles, rows: int
) -> list[Result]:
    """Evaluate nodes from nothing, in topological order: two jobs.

    `rows` is how many rows they read and are expected to derive, and decides how many parts there are.
    """
    place, settings, turn = setting.workspace, setting.settings, setting.settings.turn
    rules = {key: rule for one in nodes for key, rule in one.items()}
    dealt, whole = _wanted(rules, dealing, setting)
    owners = tuple(setting.after.values())
    parts = partition_count(place, rows)
    inputs = inputs_for(_all(dealt, whole), owners, owners)
    units = [
        ShuffleInput(part, relation, position, classes)
        for (relation, position), classes in dealt.items()
        for part in {part.path: part for one in owners for part in one.content(relation).parts}.values()
        if classes is None or not classes.isdisjoint(part.classes)
    ]
    blocks, held = shuffle(place, units, parts, turn)
    task_settings = TaskSettings(
        folder=place.scratch.folder,
        hashing=place.hashing,
        registry=settings.registry,
        limits=settings.limits,
        policy=place.options.policy,
        total=sum(segment.rows for owner, segment in setting.after.items() if owner is not None),
    )
    tasks = [
        RegionTask(
            program=RegionProgram(rules, setting.keys),
            inputs=RegionInputs(inputs, terms, partition=PartitionInput(rows_of_task, whole)),
            settings=task_settings,
        )
        for rows_of_task in blocks
    ]
    found = place.jobs.each(embedded_task.run, tasks, "deriving facts in partitions", turn)
    partitions = [result for result in found if result is not None]
    del held  # the tasks have read their blocks
    results = [Result(terms=terms) for _ in nodes]
    for result, own in zip(results, nodes, strict=True):
        _take(place, own, partitions, result)
    new = [place.adopt(one.segments.terms) for one in partitions if one.segments.terms.rows]
    if new:
        results[-1].terms = TermFiles((*terms.parts, *new))
    return results


def _wanted(
    rules: Mapping[str, Rule], dealing: Partitioning, setting: Setting
) -> tuple[dict[tuple[Relation, int], frozenset[int] | None], Wanted]:
    """Return what is dealt out by which position, and what is read whole; of `rdf:type` which classes."""
    dealt: dict[tuple[Relation, int], frozenset[int] | None] = {}
    whole: Wanted = {}
    for source in dict.fromkeys(reads(rules.values())):
        relation, position = Relation(source.name, source.arity), dealing.positions[source]
        classes = None if source.member_of is None else frozenset({setting.keys[source.member_of]})
        if position is None:
            want(whole, relation, classes)
            continue
        place = (relation, position)
        there = dealt.get(place, frozenset())
        dealt[place] = None if classes is None or there is None else there | classes
    return dealt, whole


def _all(dealt: Mapping[tuple[Relation, int], frozenset[int] | None], whole: Wanted) -> Wanted:
    found = dict(whole)
    for (relation, _), classes in dealt.items():
        want(found, relation, classes)
    return found


def _take(
    place: Workspace, rules: Mapping[str, Rule], partitions: Sequence[RegionResult], result: Result
) -> None:
    """Concatenate what the partitions derived of one node."""
    keys = frozenset(rules)
    labels = frozenset(rule.label or format_rule(rule) for rule in rules.values())
    for partition in partitions:
        segment, report = partition.segments.changed.get(keys), partition.report
        if segment is not None:
            for relation, content in place.adopt_segment(segment).contents.items():
                files = result.contents.get(relation, SignedFiles())
                result.contents[relation] = files.then(tuple(content.parts))
        for key in keys & report.dropped.keys():
            known = with_more(result.dropped.get(key), report.dropped[key])
            if known:
                result.dropped[key] = known
        rounds = {frozenset(run.rules): run.rounds for run in report.runs}
        result.rounds = max(result.rounds, rounds.get(labels, 1))
