"""Reads session files before the evaluation, and plays them change by change after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.cli.rule_files import text_files
from zodiacedge.cli.sessions.format import findings, parse_session
from zodiacedge.errors import Diagnostic, SyntaxProblem, ZodiacError
from zodiacedge.kb.report import ChangeReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.cli.console import Console
    from zodiacedge.cli.sessions.format import SessionStep
    from zodiacedge.kb.knowledge_base import KnowledgeBase

EXTENSION = ".session"


@dataclass(slots=True)
class Played:
    """The result of a session: its changes as JSON, and the differences from its expectations.

    `ended` holds the errors of a change whose refusal the session does not expect.
    """

    changes: list[dict[str, object]] = field(default_factory=list)
    shortfalls: list[Diagnostic] = field(default_factory=list)
    ended: tuple[Diagnostic, ...] = ()

    @property
    def document(self) -> dict[str, object]:
        """The result as plain values for JSON."""
        return {"changes": self.changes, "shortfalls": [d.to_dict() for d in self.shortfalls]}


def read_sessions(paths: Iterable[str], prefixes: Mapping[str, str]) -> tuple[SessionStep, ...]:
    """Return the steps of session files in order, or raise with all errors of all files."""
    steps: list[SessionStep] = []
    errors: list[Diagnostic] = []
    for path in paths:
        # One path at a time: a file that is named twice is played twice.
        for file in text_files([path], EXTENSION):
            try:
                steps += parse_session(file.text, file.name, prefixes)
            except SyntaxProblem as problem:
                errors += problem.diagnostics
    if errors:
        raise SyntaxProblem(errors)
    return tuple(steps)


def play(console: Console, kb: KnowledgeBase, steps: Iterable[SessionStep]) -> Played:
    """Play steps in order and print their reports, up to an unexpected refusal."""
    played = Played()
    for step in steps:
        line, _ = step.span.source.position(step.span.start)
        position = {"file": step.span.source.name, "line": line}
        console.text(f"\n{step.span.source.name}:{line}")
        outcome = _outcome(console, kb, step)
        # Only counts need the facts, which may be millions.
        differences = findings(step, outcome, kb.facts() if step.expected.counts else ())
        if isinstance(outcome, ChangeReport):
            console.text(outcome.summary())
            played.changes.append(position | outcome.to_dict())
        else:
            codes = sorted({d.code for d in outcome if d.severity == "error"})
            if step.expected.refused not in codes:
                console.text("refused, nothing changed")
                played.ended = (*outcome, *differences)
                return played
            console.text(f"refused with {', '.join(codes)} as expected, nothing changed")
            played.changes.append(
                position | {"refused": codes, "diagnostics": [d.to_dict() for d in outcome]}
            )
        console.findings(differences)
        played.shortfalls += differences
    return played


def _outcome(console: Console, kb: KnowledgeBase, step: SessionStep) -> ChangeReport | tuple[Diagnostic, ...]:
    try:
        with console.progress():
            return kb.apply(step.change)
    except ZodiacError as problem:
        return problem.diagnostics
