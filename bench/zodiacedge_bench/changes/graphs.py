"""Closures under change: delete and insert an existing edge, insert and delete a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.random import default_rng

from zodiacedge.language.ast import Fact, fact
from zodiacedge.language.printer import format_atom
from zodiacedge_bench.changes.edits import Edit
from zodiacedge_bench.changes.experiment import Experiment, Step
from zodiacedge_bench.measure.harness import Expected
from zodiacedge_bench.measure.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

# Several edges of each kind: their consequences differ by orders of magnitude.
_EDGES = 3
_SEED = 11


def edges(task: Task) -> Iterator[Experiment]:
    """Delete and insert existing edges of a graph, then insert and delete new ones, on one knowledge base."""
    existing = list(task.make_facts())
    random = default_rng(_SEED)
    nodes = list(dict.fromkeys(node for edge in existing for node in edge.args))
    steps: list[Step] = []
    for number in random.choice(len(existing), _EDGES, replace=False).tolist():
        edge = existing[number]
        rest = _with(task, f"without {format_atom(edge)}", [other for other in existing if other != edge])
        steps += [
            Step(f"{format_atom(edge)} out", Edit(remove_facts=(edge,)), rest, first=not steps),
            Step(f"{format_atom(edge)} in again", Edit(add_facts=(edge,)), task),
        ]
    known = set(existing)
    while len(steps) < 4 * _EDGES:
        start, end = random.choice(len(nodes), 2).tolist()
        edge = fact("edge", nodes[start], nodes[end])
        if edge not in known:
            more = _with(task, f"with {format_atom(edge)}", [*existing, edge])
            steps += [
                Step(f"{format_atom(edge)} in", Edit(add_facts=(edge,)), more),
                Step(f"{format_atom(edge)} out again", Edit(remove_facts=(edge,)), task),
            ]
    yield Experiment("change", task.name, task, tuple(steps))


def _with(task: Task, name: str, facts: list[Fact]) -> Task:
    return Task(f"{task.name} {name}", task.text, lambda: facts, Expected())
