"""The graphs are the ones that the counts belong to, and the counts are right."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pytest

from zodiacedge.language.ast import fact
from zodiacedge.language.parser import parse_program
from zodiacedge.opening import open_kb
from zodiacedge.terms import IRI, integer
from zodiacedge_bench.workloads import graphs
from zodiacedge_bench.workloads.rule_files import rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge_bench.workloads.graphs import Workload


_SMALL = {**graphs.SMALL, **graphs.SMALL_ROUNDS}


@pytest.mark.parametrize("name", _SMALL)
@pytest.mark.parametrize("iris", [False, True])
def test_the_reference_evaluator_finds_the_small_counts(name: str, *, iris: bool) -> None:
    workload = _SMALL[name]()
    assert derived(workload.rules, workload, iris=iris) == workload.derived


def test_a_closure_by_halves_is_the_same_closure() -> None:
    workload = graphs.small_closure()
    assert derived(rules("closure_by_halves"), workload) == workload.derived


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("closure-dense", {"edge": 5998}),
        ("closure-sparse", {"edge": 21_998}),
        ("same-generation", {"parent": 4999}),
        ("points-to", {"alloc": 1000, "assign": 11_999, "load": 50, "store": 50}),
    ],
)
def test_the_data_is_as_large_as_it_was_when_counted(name: str, sizes: dict[str, int]) -> None:
    workload = graphs.WORKLOADS[name]()
    assert {relation: len(rows) for relation, rows in workload.relations.items()} == sizes
    facts = list(workload.facts())
    assert len(set(facts)) == len(facts) == sum(sizes.values())


def test_the_large_closures_have_as_many_facts_as_they_say() -> None:
    for name in ("closure-dense", "closure-sparse"):
        workload = graphs.WORKLOADS[name]()
        assert {"path": paths(workload)} == workload.derived


@pytest.mark.parametrize(
    "make", [graphs.same_generation, graphs.small_same_generation, graphs.large_same_generation]
)
def test_a_generation_is_a_level_of_the_tree(make: Callable[[], Workload]) -> None:
    workload = make()
    level = {0: 0}
    for parent, child in workload.relations["parent"].tolist():
        level[child] = level[parent] + 1
    sizes = Counter(level.values())
    # The root has no parent, so nobody is of its generation, not even itself.
    assert sum(n * n for n in sizes.values()) - 1 == workload.derived["sameGeneration"]


@pytest.mark.parametrize(("make", "length"), [(graphs.side_closure, 60), (graphs.small_side_closure, 30)])
def test_a_path_along_a_line_passes_through_open_nodes(make: Callable[[], Workload], length: int) -> None:
    workload = make()
    closed = set(workload.relations["closed"][:, 0].tolist())
    nodes_after: dict[int, int] = {}
    # Edges lead to later nodes of the same line: a bit for each of them.
    for start, end in sorted(workload.relations["edge"].tolist(), reverse=True):
        beyond = 0 if end in closed else nodes_after.get(end, 0)
        nodes_after[start] = nodes_after.get(start, 0) | beyond | 1 << end % length
    assert sum(bits.bit_count() for bits in nodes_after.values()) == workload.derived["path"]


@pytest.mark.parametrize("make", [*_SMALL.values(), *graphs.WORKLOADS.values(), *graphs.ROUNDS.values()])
def test_rules_and_counts_speak_of_the_same_predicates(make: Callable[[], Workload]) -> None:
    workload = make()
    rules = parse_program(workload.rules).rules
    assert {rule.head.predicate.name for rule in rules} == set(workload.derived)


def test_nodes_are_numbers_or_names() -> None:
    graph = graphs.Workload("closure", graphs.random_graph(2, 40), {})
    assert fact("edge", integer(0), integer(1)) in graph.facts()
    assert fact("edge", IRI("n0"), IRI("n1")) in graph.facts(iris=True)


def derived(rules: str, workload: Workload, *, iris: bool = False) -> dict[str, int]:
    kb = open_kb(engine="reference")
    with kb.change() as change:
        change.add_rules(rules, "program.rules")
        change.add_facts((f.relation, *f.args) for f in workload.facts(iris=iris))
    return kb.derived()


def paths(workload: Workload) -> int:
    """Count the pairs that a path joins: a set of reached nodes per strong component, as bits."""
    after: dict[int, list[int]] = defaultdict(list)
    for source, target in workload.relations["edge"].tolist():
        after[source].append(target)
    reached: dict[int, int] = {}
    total = 0
    for component in components(after):
        inside = set(component)
        out = {t for node in component for t in after.get(node, ())}
        bits = 0
        for target in out:
            bits |= 1 << target
            bits |= 0 if target in inside else reached[target]
        if out & inside:
            bits |= sum(1 << node for node in component)
        reached.update(dict.fromkeys(component, bits))
        total += bits.bit_count() * len(component)
    return total


def components(after: dict[int, list[int]]) -> list[list[int]]:
    """Return the strong components, each after those that it leads to (Tarjan)."""
    found: list[list[int]] = []
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    waiting: list[int] = []
    done: set[int] = set()
    for root in list(after):
        if root in number:
            continue
        path = [(root, iter(after[root]))]
        number[root] = low[root] = len(number)
        waiting.append(root)
        while path:
            node, rest = path[-1]
            for target in rest:
                if target not in number:
                    number[target] = low[target] = len(number)
                    waiting.append(target)
                    path.append((target, iter(after.get(target, ()))))
                    break
                if target not in done:
                    low[node] = min(low[node], number[target])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == number[node]:
                    at = waiting.index(node)
                    found.append(waiting[at:])
                    done.update(waiting[at:])
                    del waiting[at:]
    return found
