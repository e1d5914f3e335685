"""Session files: a sequence of changes, each with its expected net change.

    # a comment
    @prefix ex: <http://example.org/> .
    begin
    + r1: p(X) :- q(X) .        insert a rule or a fact
    - q(a) .                    delete a fact
    - r4                        delete a rule by its label, alone on its line
    - p(X) :- s(X) .            or by its text
    tick 2026-01-01T12:00:00Z   move the clock
    commit
    + p(b) .                    expected: these facts become visible,
    - p(a) .                    these are no longer visible, and nothing else changes
    count p 3                   expected: p has this many visible facts

A `commit` without expected facts checks only the counts. `commit none` expects that nothing visible changes,
and `refuse CODE` instead of `commit` that the change is refused with that code.

The scanner of the language splits a session into entries, so a statement may span several lines and contain
whatever a program may. The parser then reads all statements in one pass. `shortfalls` compares a result with
the expectation, and `findings` adds the spans; playing a session is left to `play`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from zodiacedge.errors import Diagnostic, Source, Span, SyntaxProblem, ZodiacError
from zodiacedge.kb.change import Change
from zodiacedge.kb.report import ChangeReport
from zodiacedge.kb.time.clock import given_moment
from zodiacedge.language.ast import Atom, Fact, Rule
from zodiacedge.language.names import is_named, spelled
from zodiacedge.language.parser import ground, read_program
from zodiacedge.language.printer import format_atom
from zodiacedge.language.scanner import Scanner
from zodiacedge.language.vocabulary import NOW_RELATION, RECENT_BASE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    # The expectation of a line: a sign and a fact, or a predicate's name and its number of facts.
    Expected = tuple[str, Fact | int]

_WORD = re.compile(r"(begin|tick|commit|refuse|count)(?![\w(:])")
_LABEL = re.compile(r"[ \t]*([^\W\d][\w\-]*)[ \t]*(?=[\r\n]|#|//|\Z)")
_NONE = re.compile(r"[ \t]+(none)\b")
_CODE = re.compile(r"[ \t]+([A-Z][0-9]{3})\b")
_COUNT = re.compile(r"[ \t]+(?P<name><[^\s<>]*>|[^\s<>/]+)(?P<arity>/[0-9]+)?[ \t]+(?P<number>[0-9]+)(?!\S)")
_MOMENT = re.compile(r"[ \t]+(\S+)")
_LINE = re.compile(r"[^\n]*")

_UNLISTED = (NOW_RELATION, RECENT_BASE)

_Kind = Literal["+", "-", "label", "begin", "tick", "commit", "none", "refuse", "count", "prefix"]


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected result of a step: a net change, a refusal, counts; None is not checked.

    Counts are of visible facts by the name of a predicate, or by name and arity as in `p/2`. A full IRI is in
    angle brackets, so that a number at its end is not read as an arity.
    """

    inserted: frozenset[Fact] | None = None
    deleted: frozenset[Fact] | None = None
    refused: str = ""
    counts: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SessionStep:
    """One transaction of a session, with the spans of its `begin`, its end and its expectations."""

    change: Change
    expected: Expectation
    span: Span
    end: Span
    spans: Mapping[Expected, Span] = field(default_factory=dict, compare=False)


def parse_session(
    text: str, name: str = "<session>", prefixes: Mapping[str, str] | None = None
) -> tuple[SessionStep, ...]:
    """Parse a session, or raise with all errors."""
    splitter = _Splitter(Source(name, text))
    entries = tuple(splitter.entries())
    reader = _Reader(Source(name, text), prefixes or {})
    steps = reader.steps(entries)
    errors = splitter.errors + reader.errors
    if errors:
        raise SyntaxProblem(sorted(errors, key=lambda d: d.span.start if d.span else 0))
    return steps


def shortfalls(
    expected: Expectation, outcome: ChangeReport | Iterable[Diagnostic], visible: Iterable[Fact]
) -> list[str]:
    """Return the differences between the result of a step and its expectation, as texts.

    The outcome is the report of a commit, or the errors of a refused change; `visible` are all
    facts after it.
    """
    return [text for _, text in _differences(expected, outcome, visible)]


def findings(
    step: SessionStep, outcome: ChangeReport | Iterable[Diagnostic], visible: Iterable[Fact]
) -> list[Diagnostic]:
    """Return the differences as diagnostics, each at the line that expects it or at the end of the step."""
    return [
        Diagnostic(
            "S002",
            text,
            "the result differs from what the session expects",
            step.spans.get(which, step.end) if which else step.end,
        )
        for which, text in _differences(step.expected, outcome, visible)
    ]


def _differences(
    expected: Expectation, outcome: ChangeReport | Iterable[Diagnostic], visible: Iterable[Fact]
) -> Iterator[tuple[Expected | None, str]]:
    if not isinstance(outcome, ChangeReport):
        codes = sorted({d.code for d in outcome if d.severity == "error"})
        if expected.refused not in codes:
            wanted = f"with {expected.refused}" if expected.refused else "not at all"
            yield None, f"refused with {', '.join(codes)}, expected {wanted}"
    elif expected.refused:
        yield None, f"committed, expected to be refused with {expected.refused}"
    else:
        # A net change may be millions of facts: list it only if the step expects facts.
        for sign, facts in (("+", expected.inserted), ("-", expected.deleted)):
            if facts is not None:
                actual = outcome.inserted if sign == "+" else outcome.deleted
                for fact in sorted(facts - actual, key=format_atom):
                    yield (sign, fact), f"missing: {sign} {format_atom(fact)}"
                # The clock is in every tick, and hidden facts are in no text.
                others = (fact for fact in actual - facts if not fact.relation.startswith(_UNLISTED))
                for fact in sorted(others, key=format_atom):
                    yield None, f"not expected: {sign} {format_atom(fact)}"
    if expected.counts:
        predicates = Counter(fact.predicate for fact in visible)
        for name, number in expected.counts:
            actual_number = sum(n for predicate, n in predicates.items() if is_named(predicate, name))
            if actual_number != number:
                yield (name, number), f"{name} has {actual_number:,} facts, expected {number:,}"


@dataclass(frozen=True, slots=True)
class _Entry:
    # `text` is the label, code or predicate; the statement of + and - is from `body` to `end`.
    kind: _Kind
    start: int
    body: int
    end: int
    text: str = ""
    number: int = 0


class _Splitter:
    """Splits a session into entries, without parsing the statements."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._scanner = Scanner(source)
        self.errors: list[Diagnostic] = []

    def entries(self) -> Iterator[_Entry]:
        text = self._source.text
        scanner = self._scanner
        while (start := scanner.skip_space()) < len(text):
            entry = self._entry(start)
            if entry is None:
                line = _LINE.match(text, start)
                scanner.position = line.end() if line else len(text)
                self.errors.append(
                    Diagnostic(
                        "S001",
                        "expected `begin`, `+`, `-`, `tick TIME`, `commit`, `commit none`, `refuse CODE` or "
                        "`count p N`",
                        "docs/sessions.md describes the format",
                        Span(self._source, start, max(scanner.position, start + 1)),
                    )
                )
            else:
                scanner.position = entry.end
                yield entry

    def _entry(self, start: int) -> _Entry | None:
        text = self._source.text
        if text[start] in "+-":
            label = _LABEL.match(text, start + 1) if text[start] == "-" else None
            if label:
                return _Entry("label", start, start + 1, label.end(1), label.group(1))
            return _Entry("+" if text[start] == "+" else "-", start, start + 1, self._statement(start + 1))
        if text[start] == "@":
            return _Entry("prefix", start, start, self._statement(start))
        word = _WORD.match(text, start)
        if word is None:
            return None
        end = word.end()
        match word.group(1):
            case "begin":
                return _Entry("begin", start, end, end)
            case "tick":
                moment = _MOMENT.match(text, end)
                return _Entry("tick", start, end, moment.end(), moment.group(1)) if moment else None
            case "commit":
                none = _NONE.match(text, end)
                return _Entry("none" if none else "commit", start, end, none.end() if none else end)
            case "refuse":
                code = _CODE.match(text, end)
                return _Entry("refuse", start, end, code.end(), code.group(1)) if code else None
            case _:
                count = _COUNT.match(text, end)
                if count is None:
                    return None
                name = count["name"] + (count["arity"] or "")
                return _Entry("count", start, end, count.end(), name, int(count["number"]))

    def _statement(self, start: int) -> int:
        self._scanner.position = start
        self._scanner.skip_statement()
        return self._scanner.position


@dataclass(slots=True)
class _Draft:
    span: Span
    add_rules: list[Rule] = field(default_factory=list)
    remove_rules: list[str | Rule] = field(default_factory=list)
    add_facts: list[Fact] = field(default_factory=list)
    remove_facts: list[Fact] = field(default_factory=list)
    stated: list[Atom] = field(default_factory=list)
    inserted: list[Fact] = field(default_factory=list)
    deleted: list[Fact] = field(default_factory=list)
    counts: list[tuple[str, int]] = field(default_factory=list)
    spans: dict[Expected, Span] = field(default_factory=dict)
    end: _Entry | None = None
    tick: datetime | None = None

    def step(self) -> SessionStep:
        """Return the parsed step."""
        change = Change(
            tuple(self.add_rules),
            tuple(self.remove_rules),
            tuple(self.add_facts),
            tuple(self.remove_facts),
            atoms=tuple(self.stated),
            tick=self.tick,
        )
        none = self.end is not None and self.end.kind == "none"
        checked = none or bool(self.inserted or self.deleted)
        expected = Expectation(
            frozenset(self.inserted) if checked else None,
            frozenset(self.deleted) if checked else None,
            self.end.text if self.end else "",
            tuple(self.counts),
        )
        end = Span(self.span.source, self.end.start, self.end.end) if self.end else self.span
        return SessionStep(change, expected, self.span, end, self.spans)


class _Reader:
    """Builds steps from entries."""

    def __init__(self, source: Source, prefixes: Mapping[str, str]) -> None:
        self._source = source
        self._prefixes = dict(prefixes)
        self.errors: list[Diagnostic] = []

    def steps(self, entries: tuple[_Entry, ...]) -> tuple[SessionStep, ...]:
        statements = self._read(entries)
        drafts: list[_Draft] = []
        for entry in entries:
            if entry.kind == "prefix":
                continue
            span = Span(self._source, entry.start, entry.end)
            if entry.kind == "begin":
                self._check_ended(drafts)
                drafts.append(_Draft(span))
                continue
            if not drafts:
                self._problem("a session starts with `begin`", "put it before this line", span)
                drafts.append(_Draft(span))
            self._add(drafts[-1], entry, statements[entry.start], span)
        self._check_ended(drafts)
        return tuple(draft.step() for draft in drafts)

    def _read(self, entries: tuple[_Entry, ...]) -> dict[int, list[Rule | Atom]]:
        """Parse all statements in one pass, at their positions in the file, and return them by entry."""
        text = self._source.text
        kept: list[str] = []
        at = 0
        for entry in entries:
            if entry.kind in {"+", "-", "prefix"}:
                kept += [_blank(text[at : entry.body]), text[entry.body : entry.end]]
                at = entry.end
        program, errors = read_program("".join(kept), self._source.name, self._prefixes)
        self._prefixes |= dict(program.prefixes)
        self.errors += [replace(d, span=d.span and replace(d.span, source=self._source)) for d in errors]
        starts = [entry.start for entry in entries]
        statements: dict[int, list[Rule | Atom]] = {start: [] for start in starts}
        read: list[Rule | Atom] = [*program.rules, *program.facts]
        for statement in read:
            if statement.span:
                statements[starts[bisect_right(starts, statement.span.start) - 1]].append(statement)
        return statements

    def _check_ended(self, drafts: list[_Draft]) -> None:
        if drafts and drafts[-1].end is None:
            self._problem(
                "this step has no `commit`",
                "end it with `commit`, `commit none` or `refuse CODE`",
                drafts[-1].span,
            )

    def _add(self, draft: _Draft, entry: _Entry, statements: list[Rule | Atom], span: Span) -> None:
        if entry.kind in {"commit", "none", "refuse"}:
            if draft.end:
                self._problem("this step has ended already", "start the next one with `begin`", span)
            draft.end = entry
        elif entry.kind == "count":
            if not draft.end:
                self._problem("a count is expected after `commit`", "move it there", span)
            count = (self._name(entry.text, span), entry.number)
            draft.counts.append(count)
            draft.spans[count] = span
        elif draft.end is None:
            self._change(draft, entry, statements, span)
        elif entry.kind == "tick":
            self._problem("a tick belongs to a change", "put it before `commit`", span)
        elif entry.kind == "label" or any(isinstance(statement, Rule) for statement in statements):
            self._problem(
                "only facts may be expected", "start the next change with `begin`, or write a fact", span
            )
        elif draft.end.kind != "commit":
            self._problem(
                "no change is expected here",
                "a step that expects facts ends with `commit` alone",
                span,
            )
        else:
            facts = [ground(atom) for atom in statements if isinstance(atom, Atom)]
            (draft.inserted if entry.kind == "+" else draft.deleted).extend(facts)
            draft.spans |= {(entry.kind, fact): span for fact in facts}

    def _change(self, draft: _Draft, entry: _Entry, statements: list[Rule | Atom], span: Span) -> None:
        if entry.kind == "tick":
            try:
                draft.tick = given_moment(entry.text)
            except ZodiacError as problem:
                (found,) = problem.diagnostics
                self._problem(found.message, found.note, span)
        if entry.kind == "label":
            draft.remove_rules.append(entry.text)
        for statement in statements:
            if isinstance(statement, Rule):
                (draft.add_rules if entry.kind == "+" else draft.remove_rules).append(statement)
            elif entry.kind == "+":
                draft.add_facts.append(ground(statement))
                draft.stated.append(statement)
            else:
                draft.remove_facts.append(ground(statement))

    def _name(self, text: str, span: Span) -> str:
        try:
            return spelled(text, self._prefixes)
        except ZodiacError as problem:
            (found,) = problem.diagnostics
            self._problem(found.message, found.note, span)
            return text

    def _problem(self, message: str, note: str, span: Span) -> None:
        self.errors.append(Diagnostic("S001", message, note, span))


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
