"""Session files: changes to play one after the other, each with the net change that is expected.

    # a comment
    begin
    + r1: p(X) :- q(X) .        a rule or a fact comes
    - q(a) .                    a fact goes
    - r4                        a rule goes, by label
    - p(X) :- s(X) .            or by its text
    commit
    + p(b) .                    expected: these facts appear, visible before or not counts,
    - p(a) .                    and these disappear, and nothing else
    count p 3                   expected: p has this many visible facts

`commit` may be followed by nothing: then nothing is checked but the counts. `commit none` expects that
nothing visible changes, and `refuse CODE` in the place of `commit` that the change is refused with that
code. Statements may go over several lines, as in a program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, Source, Span, SyntaxProblem
from zodiacedge.language.parser import ground, read_program
from zodiacedge.maintenance.change import Change

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zodiacedge.language.ast import Fact, Rule

_ENTRY = re.compile(
    r"^[ \t]*(?:(?P<sign>[+-])|(?P<word>begin|commit|refuse|count)\b)(?P<rest>.*?)(?=^[ \t]*(?:[+-]|begin\b"
    r"|commit\b|refuse\b|count\b)|\Z)",
    re.MULTILINE | re.DOTALL,
)
_LABEL = re.compile(r"[^\W\d][\w\-]*")
_COMMENT = re.compile(r"^\s*(?:#|//).*$", re.MULTILINE)
_TRAILING_COMMENT = re.compile(r"\s(?:#|//).*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a step should come to: a net change, a refusal, counts; None is not checked."""

    inserted: frozenset[Fact] | None = None
    deleted: frozenset[Fact] | None = None
    refused: str = ""
    counts: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction of a session."""

    change: Change
    expected: Expectation
    span: Span


@dataclass(slots=True)
class _Draft:
    span: Span
    add_rules: list[Rule] = field(default_factory=list)
    remove_rules: list[str | Rule] = field(default_factory=list)
    add_facts: list[Fact] = field(default_factory=list)
    remove_facts: list[Fact] = field(default_factory=list)
    inserted: list[Fact] = field(default_factory=list)
    deleted: list[Fact] = field(default_factory=list)
    counts: list[tuple[str, int]] = field(default_factory=list)
    ended: bool = False
    checked: bool = False
    refused: str = ""

    def step(self) -> Step:
        """Return the step that was read."""
        change = Change(
            tuple(self.add_rules),
            tuple(self.remove_rules),
            tuple(self.add_facts),
            tuple(self.remove_facts),
        )
        inserted = frozenset(self.inserted) if self.checked else None
        deleted = frozenset(self.deleted) if self.checked else None
        expected = Expectation(inserted, deleted, self.refused, tuple(self.counts))
        return Step(change, expected, self.span)


def parse_session(
    text: str, name: str = "<session>", prefixes: Mapping[str, str] | None = None
) -> tuple[Step, ...]:
    """Read a session, or raise with every finding."""
    reader = _Reader(Source(name, text), prefixes or {})
    steps = tuple(draft.step() for draft in reader.drafts())
    if reader.found:
        raise SyntaxProblem(reader.found)
    return steps


class _Reader:
    def __init__(self, source: Source, prefixes: Mapping[str, str]) -> None:
        self._source = source
        self._prefixes = dict(prefixes)
        self.found: list[Diagnostic] = []

    def drafts(self) -> Iterator[_Draft]:
        text = self._source.text
        draft: _Draft | None = None
        first = _ENTRY.search(text)
        self._preamble(text[: first.start()] if first else text)
        for entry in _ENTRY.finditer(text):
            start = entry.start() + len(entry.group()) - len(entry.group().lstrip())
            span = Span(self._source, start, max(start + 1, entry.end()))
            if entry.group("word") == "begin":
                if draft:
                    yield self._ended(draft)
                draft = _Draft(span)
            elif draft is None:
                self._problem("a session starts with `begin`", span)
                return
            elif entry.group("sign"):
                self._statement(draft, entry, span)
            else:
                self._word(draft, entry, span)
        if draft:
            yield self._ended(draft)

    def _preamble(self, text: str) -> None:
        program, found = read_program(text, self._source.name, self._prefixes)
        self._prefixes |= dict(program.prefixes)
        self.found += found
        if program.rules or program.facts:
            span = Span(self._source, 0, 1)
            self._problem("only prefixes may stand before the first `begin`", span)

    def _ended(self, draft: _Draft) -> _Draft:
        if not draft.ended:
            self._problem("this `begin` has no `commit`", draft.span)
        return draft

    def _word(self, draft: _Draft, entry: re.Match[str], span: Span) -> None:
        words = _TRAILING_COMMENT.sub("", _COMMENT.sub("", entry.group("rest"))).split()
        match entry.group("word"), words:
            case "commit", [] | ["none"] if not draft.ended:
                draft.ended = True
                draft.checked = words == ["none"]
            case "refuse", [code] if not draft.ended:
                draft.ended = True
                draft.refused = code
            case "count", [predicate, number] if draft.ended and number.isdigit():
                draft.counts.append((predicate, int(number)))
            case _:
                self._problem("expected `commit`, `commit none`, `refuse CODE` or `count p N`", span)

    def _statement(self, draft: _Draft, entry: re.Match[str], span: Span) -> None:
        text, adds = entry.group("rest"), entry.group("sign") == "+"
        label = _TRAILING_COMMENT.sub("", _COMMENT.sub("", text)).strip()
        if not adds and not draft.ended and _LABEL.fullmatch(label):
            draft.remove_rules.append(label)
            return
        # The statement is read in place, so that findings point into the session file.
        blank = " " * entry.start("rest")
        padded = re.sub(r"[^\n]", " ", self._source.text[: entry.start("rest")]) or blank
        program, found = read_program(padded + text, self._source.name, self._prefixes)
        self.found += found
        facts = [ground(atom) for atom in program.facts]
        if draft.ended:
            if program.rules:
                self._problem("what is expected after `commit` are facts", span)
            draft.checked = True
            (draft.inserted if adds else draft.deleted).extend(facts)
        elif adds:
            draft.add_rules.extend(program.rules)
            draft.add_facts.extend(facts)
        else:
            draft.remove_rules.extend(program.rules)
            draft.remove_facts.extend(facts)

    def _problem(self, message: str, span: Span) -> None:
        self.found.append(Diagnostic("S001", message, "see the session format in the docs", span))
