"""The paper's experiments that change a materialisation: rules of RS2 and RS3, facts and rules of RS1."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from zodiacedge_bench.changes.edits import Edit
from zodiacedge_bench.changes.experiment import Experiment, Published, Step
from zodiacedge_bench.measure.harness import Expected
from zodiacedge_bench.measure.task import PAPER_SIZES, Task, paper_task
from zodiacedge_bench.workloads import paper

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zodiacedge.language.ast import Fact

    Labels = tuple[str, ...]

SMALL_TURBINES = 50
_TURBINES = 200
_CHANGED = (200, 800)
_MORE = (10, 20, 30, 40, 50)
_SINGLE = tuple((f"r{number}",) for number in range(1, 19))
_SETS: tuple[Labels, ...] = (("r10", "r15", "r17"), ("r10", "r15", "r18"))
# The numbers in the text about its two figures; the figures themselves have none.
_INSERTION: dict[Labels, Published] = dict.fromkeys((*_SINGLE, *_SETS), Published()) | {
    ("r18",): Published(factor="375"),
    ("r4",): Published(factor="5"),
    ("r3",): Published(factor="below 1"),
}
_DELETION: dict[Labels, Published] = dict.fromkeys((*_SINGLE, *_SETS), Published()) | {
    ("r18",): Published(factor="1,000")
}
# The two tables about RS3: seconds of the change, and how many times faster than the seconds beside them.
_RS3_IN: dict[Labels, Published] = {
    ("r6",): Published(0.2789, f"{24.134 / 0.2789:.0f}"),
    ("r10_new",): Published(2.335, f"{24.134 / 2.335:.0f}"),
}
_RS3_OUT: dict[Labels, Published] = {
    ("r6",): Published(7.304, f"{24.7 / 7.304:.1f}"),
    ("r10_new",): Published(6.073, f"{23.347 / 6.073:.1f}"),
}


def insertion(*, small: bool) -> Iterator[Experiment]:
    """Insert each rule of RS2, and two sets of three, into all the others."""
    return _into("insertion", _rule_set(2, small=small), _few(_INSERTION) if small else _INSERTION)


def deletion(*, small: bool) -> Iterator[Experiment]:
    """Delete the same rules from all of RS2."""
    return _out_of("deletion", _rule_set(2, small=small), _few(_DELETION) if small else _DELETION)


def rs3(*, small: bool) -> Iterator[Experiment]:
    """Insert and delete the two rules of RS3 that a negation depends on."""
    task = _rule_set(3, small=small)
    yield from _into("rs3", task, _RS3_IN)
    yield from _out_of("rs3", task, _RS3_OUT)


def ds1(*, small: bool) -> Iterator[Experiment]:
    """Delete and insert a link in the middle and the two recursive rules of RS1, on growing chains."""
    for turbines in (SMALL_TURBINES,) if small else PAPER_SIZES[1]:
        task = paper_task(1, turbines)
        middle = turbines // 2
        fact = next(fact for fact in paper.ds1(turbines) if fact.args[0] == paper.turbine(middle))
        changed: list[tuple[Step, ...]] = [_fact_steps(task, fact, paper.ds1(turbines), "link")]
        changed += [_rule_steps(task, (rule,), Published(), back=True) for rule in ("r1", "r2")]
        for steps in changed:
            yield Experiment("ds1", task.name, task, steps, turbines, "turbines")


def data(*, small: bool) -> Iterator[Experiment]:
    """Insert more turbines, by percent, into a chain with RS1, and delete them."""
    turbines = SMALL_TURBINES if small else _TURBINES
    task = paper_task(1, turbines)
    known = set(paper.ds1(turbines))
    for percent in _MORE[::2] if small else _MORE:
        total = turbines + turbines * percent // 100
        more = tuple(fact for fact in paper.ds1(total) if fact not in known)
        longer = Task(f"rs1 n={total}", task.text, lambda total=total: paper.ds1(total), Expected())  # type: ignore[misc]
        steps = (
            Step("more in", Edit(add_facts=more), longer),
            Step("more out", Edit(remove_facts=more), task),
        )
        yield Experiment(
            "data", f"{task.name} and {percent} %", task, steps, percent, "percent more turbines"
        )


def change(*, small: bool) -> Iterator[Experiment]:
    """Delete and insert every single rule of each rule set and a fact of each relation, twice."""
    for number, turbines in product((1, 2, 3), (SMALL_TURBINES,) if small else _CHANGED):
        task = paper_task(number, turbines)
        labels = [rule.label for rule in task.program]
        for label in labels[:: len(labels) // 2] if small else labels:
            rest = task.without(label)
            out = Step(f"{label} out", Edit(remove_rules=(label,)), rest)
            back = Step(f"{label} in", Edit(add_rules=task.rule_texts(label)), task)
            yield Experiment("change", task.name, task, _twice(out, back))
            yield Experiment(
                "change",
                task.name,
                rest,
                (replace(back, name=f"{back.name}, first", first=True), replace(out, shown=False)),
            )
        facts = paper.data_set(number, turbines)
        for relation in dict.fromkeys(fact.relation for fact in facts):
            own = [fact for fact in facts if fact.relation == relation]
            yield Experiment(
                "change", task.name, task, _twice(*_fact_steps(task, own[len(own) // 2], facts, relation))
            )


def _twice(out: Step, back: Step) -> tuple[Step, ...]:
    first = replace(out, name=f"{out.name}, first", first=True)
    return first, replace(back, name=f"{back.name} again"), replace(out, name=f"{out.name} again"), back


def _few(sets: Mapping[Labels, Published]) -> dict[Labels, Published]:
    return {labels: sets[labels] for labels in (("r3",), ("r18",), _SETS[0])}


def _rule_set(number: int, *, small: bool) -> Task:
    return paper_task(number, SMALL_TURBINES if small else _TURBINES)


def _into(name: str, task: Task, sets: Mapping[Labels, Published]) -> Iterator[Experiment]:
    for labels, published in sets.items():
        rest = task.without(*labels)
        shown = ", ".join(labels)
        steps = (
            Step(f"{shown} in", Edit(add_rules=task.rule_texts(*labels)), task, published),
            Step(f"{shown} out", Edit(remove_rules=labels), rest, shown=False),
        )
        yield Experiment(name, task.name, rest, steps)


def _out_of(name: str, task: Task, sets: Mapping[Labels, Published]) -> Iterator[Experiment]:
    for labels, published in sets.items():
        yield Experiment(name, task.name, task, _rule_steps(task, labels, published, back=False))


def _rule_steps(task: Task, labels: Labels, published: Published, *, back: bool) -> tuple[Step, ...]:
    name = ", ".join(labels)
    return (
        Step(f"{name} out", Edit(remove_rules=labels), task.without(*labels), published),
        Step(f"{name} in", Edit(add_rules=task.rule_texts(*labels)), task, shown=back),
    )


def _fact_steps(task: Task, fact: Fact, facts: list[Fact], name: str) -> tuple[Step, Step]:
    rest = [other for other in facts if other != fact]
    cut = Task(f"{task.name} without a {name}", task.text, lambda: rest, Expected())
    return (
        Step(f"{name} out", Edit(remove_facts=(fact,)), cut),
        Step(f"{name} in", Edit(add_facts=(fact,)), task),
    )
