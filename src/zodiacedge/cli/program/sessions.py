"""Session files of `zodiac run --apply`: read before the work starts, played change by change after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.cli.rule_files import text_files
from zodiacedge.cli.session_format import findings, parse_session
from zodiacedge.errors import Diagnostic, SyntaxProblem, ZodiacError
from zodiacedge.kb.report import ChangeReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.cli.console import Console
    from zodiacedge.cli.session_format import Step
    from zodiacedge.kb.knowledge_base import KnowledgeBase

EXTENSION = ".session"


@dataclass(slots=True)
class Played:
    """What became of a session: its changes for machines, and what differs from what it expects.

    `ended` holds what a change was refused with that the session does not expect to be refused.
    """

    changes: list[dict[str, object]] = field(default_factory=list)
    shortfalls: list[Diagnostic] = field(default_factory=list)
    ended: tuple[Diagnostic, ...] = ()

    @property
    def document(self) -> dict[str, object]:
        """As plain values for JSON."""
        return {"changes": self.changes, "shortfalls": [one.to_dict() for one in self.shortfalls]}


def read_sessions(paths: Iterable[str], prefixes: Mapping[str, str]) -> tuple[Step, ...]:
    """Return the steps of session files in order, or raise with every finding about all of them."""
    steps: list[Step] = []
    found: list[Diagnostic] = []
    for path in paths:
        # One path at a time: who names a file twice wants it played twice.
        for file in text_files([path], EXTENSION):
            try:
                steps += parse_session(file.text, file.name, prefixes)
            except SyntaxProblem as problem:
                found += problem.diagnostics
    if found:
        raise SyntaxProblem(found)
    return tuple(steps)


def play(console: Console, kb: KnowledgeBase, steps: Iterable[Step]) -> Played:
    """Play steps one after the other and tell what each did, up to one that is refused unexpectedly."""
    played = Played()
    for step in steps:
        line, _ = step.span.source.position(step.span.start)
        place = {"file": step.span.source.name, "line": line}
        console.text(f"\n{step.span.source.name}:{line}")
        outcome = _outcome(console, kb, step)
        # Only counts need the facts, which may be many.
        differs = findings(step, outcome, kb.facts() if step.expected.counts else ())
        if isinstance(outcome, ChangeReport):
            console.text(str(outcome))
            played.changes.append(place | outcome.to_dict())
        else:
            codes = sorted({d.code for d in outcome if d.severity == "error"})
            if step.expected.refused not in codes:
                console.text("refused, nothing changed")
                played.ended = (*outcome, *differs)
                return played
            console.text(f"refused with {', '.join(codes)} as expected, nothing changed")
            played.changes.append(place | {"refused": codes, "diagnostics": [d.to_dict() for d in outcome]})
        console.findings(differs)
        played.shortfalls += differs
    return played


def _outcome(console: Console, kb: KnowledgeBase, step: Step) -> ChangeReport | tuple[Diagnostic, ...]:
    try:
        with console.progress():
            return kb.apply(step.change)
    except ZodiacError as problem:
        return problem.diagnostics
