"""Golden sessions: changes played on every engine, each with the net change worked out by hand.

The files are found by glob; `docs/sessions.md` describes their format.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from strategies.beside import EMBEDDED
from zodiacedge.cli.sessions.format import SessionStep, parse_session, shortfalls
from zodiacedge.engine.api import Settings
from zodiacedge.errors import ZodiacError
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.parser import parse_program
from zodiacedge.language.printer import format_rule
from zodiacedge_bench.workloads.paper import rule_set

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.engine.api import Engine
    from zodiacedge.errors import Diagnostic
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.language.ast import Rule

GOLDEN = Path(__file__).parent.parent / "golden"
SESSIONS = sorted((GOLDEN / "sessions").glob("*.session"))


def graph(name: str) -> str:
    return (GOLDEN / "graphs" / f"{name}.rules").read_text(encoding="utf-8")


def steps_of(path: Path) -> tuple[SessionStep, ...]:
    return parse_session(path.read_text(encoding="utf-8"), path.name)


def play(kb: KnowledgeBase, step: SessionStep) -> list[str]:
    outcome: ChangeReport | Iterable[Diagnostic]
    before = (kb.facts(), kb.explicit, kb.rules, kb.version, kb.graph())
    try:
        outcome = kb.apply(step.change)
    except ZodiacError as problem:
        outcome = problem.diagnostics
        after = (kb.facts(), kb.explicit, kb.rules, kb.version, kb.graph())
        assert after == before, f"{step.span!r}: a refused change has left something"
    return [f"{step.span!r}: {text}" for text in shortfalls(step.expected, outcome, kb.facts())]


def test_there_are_sessions() -> None:
    assert len(SESSIONS) >= 20


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_a_session_goes_as_expected(path: Path, engine: Engine) -> None:
    kb = KnowledgeBase(engine, Settings())
    assert [text for step in steps_of(path) for text in play(kb, step)] == []


@pytest.mark.slow
@pytest.mark.parametrize("way", EMBEDDED.values(), ids=EMBEDDED)
@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_a_session_goes_as_expected_by_every_means(path: Path, way: Engine) -> None:
    kb = KnowledgeBase(way, Settings())
    assert [text for step in steps_of(path) for text in play(kb, step)] == []


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_the_state_does_not_depend_on_the_way_to_it(path: Path, engine: Engine) -> None:
    kb = KnowledgeBase(engine, Settings())
    for step in steps_of(path):
        play(kb, step)
    fresh = KnowledgeBase(engine, Settings())
    fresh.apply(Change(add_rules=kb.rules, add_facts=tuple(kb.explicit)))
    assert fresh.facts() == kb.facts()
    assert fresh.derived() == kb.derived()
    for node in kb.graph().order:
        rules = frozenset(node.rules)
        assert fresh.state.segment(rules) == kb.state.segment(rules)


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_every_step_of_a_session_expects_something(path: Path) -> None:
    for step in steps_of(path):
        expected = step.expected
        assert expected.refused or expected.inserted is not None or expected.counts, repr(step.span)


@pytest.mark.parametrize(
    ("session", "program"),
    [
        ("paper_insert_r8_then_delete_r4", graph("running_example")),
        ("paper_delete_r5_r6_r7", graph("running_example")),
        ("paper_delete_r7", graph("rule_deletion")),
        ("paper_rs1_turbines_and_rules_out_and_in", rule_set(1)),
        ("paper_rs2_every_rule_out_and_in", rule_set(2)),
        ("paper_rs2_turbines_out_and_in", rule_set(2)),
        ("paper_rs3_r6_and_r10_out_and_in", rule_set(3)),
        ("paper_rs3_turbines_out_and_in", rule_set(3)),
    ],
)
def test_the_sessions_of_the_paper_start_with_its_programs(session: str, program: str) -> None:
    def shown(rules: Iterable[Rule]) -> list[str]:
        return [format_rule(rule) for rule in rules]

    first = steps_of(GOLDEN / "sessions" / f"{session}.session")[0]
    assert shown(first.change.add_rules) == shown(parse_program(program).rules)


def test_every_session_of_the_paper_is_compared_with_a_program_of_it() -> None:
    (compared,) = test_the_sessions_of_the_paper_start_with_its_programs.pytestmark  # type: ignore[attr-defined]
    assert {name for name, _ in compared.args[1]} == {p.stem for p in SESSIONS if p.stem.startswith("paper_")}
