"""A task: a program, its facts, and the expected counts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING

from zodiacedge.graph import HyperGraph
from zodiacedge.io import read
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.parser import parse_program
from zodiacedge.language.printer import format_rule
from zodiacedge.language.safety import resolve
from zodiacedge_bench.measure.embedded import Loaded
from zodiacedge_bench.measure.harness import Expected
from zodiacedge_bench.workloads import graphs, lubm, paper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from zodiacedge.language.ast import Fact, Rule

# Seconds of the paper's prototype from scratch, by rule set and turbines. The paper publishes rule set 3;
# 1 and 2 were measured with the authors' code on a 2-core machine.
PUBLISHED = {(1, 400): 474.0, (2, 200): 99.0, (3, 200): 24.134}
PAPER_SIZES = {1: (50, 100, 200, 400), 2: (50, 100, 200), 3: (50, 100, 200)}


@dataclass(frozen=True)
class Task:
    """A workload of a benchmark."""

    name: str
    text: str
    """The program."""
    make_facts: Callable[[], Iterable[Fact]]
    expected: Expected
    published: float | None = None
    """Seconds of the paper's prototype."""
    make_loaded: Callable[[], Loaded] | None = None
    """Returns the encoded facts, if they can be made without fact objects."""

    @cached_property
    def program(self) -> tuple[Rule, ...]:
        """The rules as they are written."""
        return tuple(parse_program(self.text).rules)

    @cached_property
    def rules(self) -> Mapping[str, Rule]:
        """The rules by key, ready for an engine."""
        return {rule_key(rule): rule for rule in map(resolve, self.program)}

    @cached_property
    def graph(self) -> HyperGraph:
        """The hyper rule dependency graph."""
        return HyperGraph.build(self.rules)

    @cached_property
    def loaded(self) -> Loaded:
        """The encoded facts."""
        return self.make_loaded() if self.make_loaded else Loaded.of(self.make_facts())

    def without(self, *labels: str) -> Task:
        """Return the task without rules of these labels, and with unknown counts."""
        removed = self._labelled(labels)
        rest = [rule for rule in self.program if rule not in removed]
        return replace(
            self,
            name=f"{self.name} without {', '.join(labels)}",
            text="\n".join(map(format_rule, rest)),
            expected=Expected(),
            published=None,
            make_loaded=lambda: self.loaded,
        )

    def rule_texts(self, *labels: str) -> str:
        """Return the rules of these labels as a program text."""
        return "\n".join(map(format_rule, self._labelled(labels)))

    def _labelled(self, labels: Sequence[str]) -> list[Rule]:
        by_label = {rule.label: rule for rule in self.program}
        return [by_label[label] for label in labels]


def graph_tasks(*, small: bool = False) -> dict[str, Task]:
    """Return the programs over graphs; the small ones are for tests."""
    tasks = {}
    for name, make in (graphs.SMALL if small else graphs.WORKLOADS).items():
        workload = make()
        shown = f"{name} (small)" if small else name
        tasks[name] = Task(shown, workload.rules, workload.facts, Expected(workload.derived))
    return tasks


def paper_task(rule_set: int, turbines: int) -> Task:
    """Return a rule set of the paper on chains of turbines."""
    text = (files("zodiacedge_bench.measure") / "paper_counts.json").read_text(encoding="utf-8")
    return Task(
        f"rs{rule_set} n={turbines}",
        paper.rule_set(rule_set),
        lambda: paper.data_set(rule_set, turbines),
        Expected(json.loads(text)[f"rs{rule_set}"].get(str(turbines))),
        PUBLISHED.get((rule_set, turbines)),
    )


def lubm_task(universities: int, *, departments: int | None = None) -> Task:
    """Return the 128 rules on generated universities; fewer departments make a small one for tests."""
    total = None if departments else lubm.DERIVED.get(universities)
    return Task(
        f"lubm-{universities} (small)" if departments else f"lubm-{universities}",
        lubm.rules(),
        lambda: lubm.facts(universities, departments=departments),
        Expected(total=total),
    )


def lubm_files_task(folder: Path) -> Task:
    """Return the 128 rules on a folder of CSV files, with the counts of its `expected.json`, if any."""
    sources = sorted(folder.glob("*.csv"))
    counts = folder / "expected.json"
    expected = Expected()
    if counts.exists():
        known = json.loads(counts.read_text(encoding="utf-8"))
        expected = Expected(known["per_predicate"], known["idb_total"])
    return Task(
        folder.name,
        lubm.rules(),
        lambda: (fact for source in sources for batch in read(source) for fact in batch),
        expected,
    )
