"""Fingerprints: equal for equal states, whatever the order of terms and rows, and different for others."""

from __future__ import annotations

import pytest

from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import IRI, integer
from zodiacedge_bench.measure.embedded import EmbeddedTrial, Loaded
from zodiacedge_bench.measure.fingerprint import Fingerprint, fingerprint
from zodiacedge_bench.measure.harness import Expected, WrongCountError
from zodiacedge_bench.measure.live import knowledge_base, store_of
from zodiacedge_bench.measure.task import Task, paper_task

A, B, C = map(IRI, "abc")


def explicit(*facts: Fact) -> Fingerprint:
    loaded = Loaded.of(facts)
    return fingerprint(loaded.store(), loaded)


def kept(task: Task) -> Fingerprint:
    return fingerprint(store_of(knowledge_base(task, modules=True)), task.loaded)


def fresh(task: Task) -> Fingerprint:
    trial = EmbeddedTrial(task.loaded.store(), task.rules, task.graph, modules=True)
    trial.evaluate()
    return fingerprint(trial.store, task.loaded)


def test_neither_the_order_of_terms_nor_of_rows_matters() -> None:
    facts = [fact("p", A, B), fact("p", B, C), fact("q", integer(1), A), fact("C", B)]
    assert explicit(*facts) == explicit(*reversed(facts))


@pytest.mark.parametrize(
    "other",
    [
        [fact("p", A, B), fact("p", B, A)],
        [fact("p", A, B), fact("p", C, B)],
        [fact("p", A, C), fact("p", B, B)],
        [fact("p", A, B), fact("q", B, C)],
        [fact("p", A, B)],
    ],
)
def test_other_facts_have_another_fingerprint(other: list[Fact]) -> None:
    assert explicit(fact("p", A, B), fact("p", B, C)) != explicit(*other)


def test_members_of_two_classes_are_told_apart() -> None:
    assert explicit(fact("C", A), fact("D", B)) != explicit(fact("D", A), fact("C", B))


@pytest.mark.parametrize("rule_set", [1, 2, 3])
def test_a_knowledge_base_has_the_fingerprint_of_an_evaluation_from_nothing(rule_set: int) -> None:
    task = paper_task(rule_set, 50)
    assert kept(task) == fresh(task)


def test_every_segment_and_the_rows_of_aggregates_are_in_it() -> None:
    task = paper_task(1, 50)
    tables = fresh(task).tables
    assert (
        len({rules for rules, *_ in tables}) == 5
    )  # SensorAnomalyWindTurbine is empty, explicit facts are not
    assert sum(name.startswith("groups of ") for _, name, *_ in tables) == 2


def test_the_message_names_the_table_that_differs() -> None:
    right, wrong = explicit(fact("p", A, B), fact("q", A, B)), explicit(fact("p", A, B))
    with pytest.raises(
        WrongCountError, match="in a test: of q/2, the explicit facts have 0 rows instead of 1"
    ):
        wrong.check("in a test", right)
    with pytest.raises(WrongCountError, match="p/2, the explicit facts have other rows than it should"):
        wrong.check("in a test", explicit(fact("p", B, A)))


def test_facts_may_come_as_rows() -> None:
    facts = [fact("p", A, B), fact("C", A)]
    loaded = Loaded.of(facts)
    task = Task("rows", "q(X) :- p(X, Y) .", list, Expected(), make_loaded=lambda: loaded)
    kb = knowledge_base(task, modules=True)
    assert kb.explicit == frozenset(facts)
    assert kb.derived() == {"q": 1}
