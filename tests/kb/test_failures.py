"""A change that fails at any point leaves everything as it was, and succeeds when it is tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

import zodiacedge as ze
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.machine import execute
from zodiacedge.engine.embedded.state import EmbeddedUncommitted
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.limits import Meter
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import LoadProblem, UsageProblem
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.engine.api import Engine

ENGINES: dict[str, Engine] = {
    "reference": ReferenceEngine(),
    "embedded": EmbeddedEngine(),
    "maintain": EmbeddedEngine(modules=False, strategy="maintain"),
    "recompute": EmbeddedEngine(modules=False, strategy="recompute"),
}
PROGRAM = """
    @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
    near: near(X, Z) :- near(X, Y), near(Y, Z), X != Z .
    back: near(X, Y) :- near(Y, X) .
    cost: cost(X, Y, N) :- near(X, Y), N := func:cost(X, Y) .
    lone: lone(X) :- place(X), not near(X, Y) .
    size: size(X, N) :- AGGREGATE(cost(X, Y, C)) ON X WITH SUM(C) AS N .
    kinds: rdf:type(X, K) :- size(X, N), kind(K, N) .
    odd: odd(X, M) :- size(X, N), M := 1 / (N - 3) .
"""


class Injection(Protocol):
    """Calls `tick` wherever a change may fail in some way."""

    def __call__(self, kb: KnowledgeBase, tick: Callable[[], None], patch: pytest.MonkeyPatch) -> None: ...


def cost(x: int, y: int) -> int:
    return x + y


def loaded(engine: Engine) -> KnowledgeBase:
    kb = KnowledgeBase(engine, Settings())
    kb.function(cost)
    with kb.change() as c:
        c.add_rules(PROGRAM)
        c.add_facts([("near", n, n + 1) for n in range(5)])
        c.add_facts([("place", n) for n in range(12)])
        c.add_facts([("kind", ze.iri("town"), 15), ("kind", "strange", 18)])
    return kb


def changed(kb: KnowledgeBase) -> ze.ChangeReport:
    with kb.change() as c:
        c.add_rules("@prefix ex: <http://e/> .  new: ex:far(X, Y) :- place(X), place(Y), not near(X, Y) .")
        c.add_rules("more: lone(X) :- odd(X, M), K := func:cost(X, X), K > 2 .")
        c.remove_rules("kinds")
        c.add_facts([("near", 7, 8), ("near", 8, 9), ("near", 9, 7), ("brand", "new")])
        c.remove_facts([("near", 2, 3), ("place", 11)])
    return c.report


def everything(kb: KnowledgeBase) -> tuple[object, ...]:
    state = kb.state
    segments = tuple(state.segment(frozenset(node.rules)) for node in kb.graph().order)
    kept = (kb.version, kb.rules, kb.explicit, kb.facts(), kb.derived(), kb.explicit_counts(), kb.prefixes)
    return (*kept, segments, dict(state.dropped), kb.graph(), state.predicates(), id(state))


def in_progress(kb: KnowledgeBase, tick: Callable[[], None], patch: pytest.MonkeyPatch) -> None:
    del patch
    kb._settings = Settings(kb.settings.registry, progress=lambda _: tick())


def in_a_function(kb: KnowledgeBase, tick: Callable[[], None], patch: pytest.MonkeyPatch) -> None:
    del patch

    def failing(x: int, y: int) -> int:
        tick()
        return cost(x, y)

    kb.function(failing, name="cost")


def in_a_look_at_limits(kb: KnowledgeBase, tick: Callable[[], None], patch: pytest.MonkeyPatch) -> None:
    del kb
    patch.setattr(execute, "_BUDGET", 60)
    patch.setattr("zodiacedge.engine.limits._STEPS_BETWEEN_CHECKS", 100)
    real = Meter.look

    def look(self: Meter, *where: object) -> None:
        tick()
        real(self, *where)  # type: ignore[arg-type]

    patch.setattr(Meter, "look", look)


def in_a_table_that_grows(kb: KnowledgeBase, tick: Callable[[], None], patch: pytest.MonkeyPatch) -> None:
    del kb
    reserve, commit = Table.reserve, EmbeddedUncommitted.commit
    committing = False

    def grow(self: Table, more: int) -> None:
        if not committing:
            tick()
        reserve(self, more)

    def safely(self: EmbeddedUncommitted) -> object:
        nonlocal committing
        committing = True
        try:
            return commit(self)
        finally:
            committing = False

    patch.setattr(Table, "reserve", grow)
    patch.setattr(EmbeddedUncommitted, "commit", safely)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("where", [in_progress, in_a_function, in_a_look_at_limits, in_a_table_that_grows])
@pytest.mark.parametrize("name", ENGINES)
def test_a_change_that_fails_at_its_nth_step_has_changed_nothing(
    name: str, where: Injection, kind: type[BaseException]
) -> None:
    if name == "reference" and where is in_a_table_that_grows:
        pytest.skip("it has no tables")
    kb = loaded(ENGINES[name])
    settings = kb.settings
    before = everything(kb)
    steps = failures = 0

    def tick() -> None:
        nonlocal steps
        steps += 1
        if steps == failures + 1:
            raise kind

    while True:
        steps = 0
        with pytest.MonkeyPatch.context() as patch:
            where(kb, tick, patch)
            try:
                report = changed(kb)
            except kind:
                # Tables grow often: from some point on every seventh time will do.
                failures += 7 if where is in_a_table_that_grows and failures > 20 else 1
            else:
                break
        kb._settings = settings
        assert everything(kb) == before
    assert failures > 2
    fresh = loaded(ENGINES[name])
    expected = changed(fresh)
    assert (report.inserted, report.deleted) == (expected.inserted, expected.deleted)
    assert everything(kb)[:-3] == everything(fresh)[:-3]
    kb._settings = settings
    assert kb.verify().ok
    assert kb.verify(against="reference").ok


@pytest.mark.parametrize(
    ("call", "name"), [(3, ""), (abs, "a b"), (lambda x: x, ""), (sum, ""), (sum, "argmax")]
)
def test_an_aggregate_that_rules_cannot_call_is_refused(call: Callable[..., object], name: str) -> None:
    with pytest.raises(UsageProblem, match="U013"):
        ze.open().aggregate(call, name=name)


def test_an_empty_name_is_not_the_current_folder() -> None:
    with ze.open().change() as c, pytest.raises(LoadProblem, match="the name of a file is empty"):
        c.load("")
