"""LUBM under change: delete and insert the last rules, those about publications, and every single rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge_bench.changes.edits import Edit
from zodiacedge_bench.changes.experiment import Experiment, Step
from zodiacedge_bench.workloads import lubm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge_bench.measure.task import Task

# A test needs only one rule in this many.
_SMALL_STEP = 16


def last(task: Task) -> Iterator[Experiment]:
    """Delete and insert the eight rules at the end of the file."""
    yield Experiment("last", task.name, task, _out_and_in(task, lubm.LAST_RULES, "the last 8 rules"))


def publications(task: Task) -> Iterator[Experiment]:
    """Delete and insert the rules about publications, works, names and research interests."""
    name = f"{len(lubm.PUBLICATION_RULES)} rules of publications"
    yield Experiment("publications", task.name, task, _out_and_in(task, lubm.PUBLICATION_RULES, name))


def rules(task: Task, *, small: bool) -> Iterator[Experiment]:
    """Delete and insert every rule alone (a few, if small), in sequence on one knowledge base."""
    labels = [rule.label for rule in task.program if rule.label]
    chosen = labels[:: _SMALL_STEP if small else 1]
    steps = [step for label in chosen for step in _out_and_in(task, (label,), label)]
    yield Experiment("rules", task.name, task, tuple(steps))


def _out_and_in(task: Task, labels: tuple[str, ...], name: str) -> tuple[Step, Step]:
    return (
        Step(f"{name} out", Edit(remove_rules=labels), task.without(*labels), first=True),
        Step(f"{name} in", Edit(add_rules=task.rule_texts(*labels)), task),
    )
