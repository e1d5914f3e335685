"""The outline of an answer to "why not": each rule with the bindings that come closest, and what fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.errors import counted
from zodiacedge.explain.forms.lines import OutlineLine, Piece
from zodiacedge.explain.forms.words import code, quiet
from zodiacedge.explain.missing import BodyFails, HeadDiffers
from zodiacedge.explain.proof import AggregatePremise
from zodiacedge.language.ast import Variable
from zodiacedge.language.printer import abbreviate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.explain.forms.lines import Kind, RuleNames
    from zodiacedge.explain.forms.words import Words
    from zodiacedge.explain.missing import Attempt, WhyNot

GOOD, BAD = Piece("✓ ", "good"), Piece("✗ ", "bad")


def missing_lines(answer: WhyNot, words: Words, names: RuleNames, depth: int | None) -> Iterator[OutlineLine]:
    """Yield the lines; with depth 0, the rules are folded."""
    yield OutlineLine(0, missing_headline(answer, words), "fails", folded=depth == 0)
    if depth == 0:
        return
    if answer.note:
        yield OutlineLine(1, (Piece(abbreviate(answer.note, words.prefixes)),), "note", depth=1)
    elif not answer.rules:
        yield OutlineLine(1, (Piece("no rule derives it, and it is no explicit fact"),), "note", depth=1)
    for failure in answer.rules:
        name = names.name(failure.key, failure.rule)
        match failure:
            case HeadDiffers(position=position, constant=constant, wanted=wanted):
                pieces = (
                    Piece(name, "rule"),
                    quiet(f" cannot match: argument {position + 1} of its head is "),
                    code(words.term(constant)),
                    quiet(", not "),
                    code(words.term(wanted)),
                )
                yield OutlineLine(1, pieces, "rule", rule=name, depth=1)
            case BodyFails(attempts=attempts):
                if not attempts:
                    nothing = (Piece(name, "rule"), quiet(" holds for no values"))
                    yield OutlineLine(1, nothing, "rule", rule=name, depth=1)
                for attempt in attempts:
                    yield from _attempt(name, attempt, words)


def missing_headline(answer: WhyNot, words: Words) -> tuple[Piece, ...]:
    """Return what is not there."""
    if any(isinstance(arg, Variable) for arg in answer.atom.args):
        return (Piece("no fact matches "), code(words.atom(answer.atom)))
    return (code(words.atom(answer.atom)), Piece(" is not there"))


def _attempt(name: str, attempt: Attempt, words: Words) -> Iterator[OutlineLine]:
    values = words.values(attempt.values)
    yield OutlineLine(
        1, (Piece(name, "rule"), quiet(f" with {values}" if values else "")), "rule", rule=name, depth=1
    )
    yield from _conditions(attempt, words)


def _conditions(attempt: Attempt, words: Words) -> Iterator[OutlineLine]:
    for premise in attempt.holds:
        kind: Kind = "aggregate" if isinstance(premise, AggregatePremise) else "holds"
        yield OutlineLine(2, (GOOD, *words.premise(premise)), kind, depth=2)
    for failing in attempt.failing:
        yield OutlineLine(2, (BAD, *words.failing(failing)), "fails", depth=2)
    for conjunct in attempt.open:
        yield OutlineLine(2, (quiet("? "), code(words.conjunct(conjunct))), "note", depth=2)


def missing_notes(answer: WhyNot, words: Words) -> Iterator[str]:
    """Yield remarks about an answer as a whole."""
    if not answer.complete:
        yield "Not all bindings were tried: closer ones may exist."
    questions = [words.atom(atom) for atom in answer.next_questions]
    if questions:
        more = f" and {counted(len(questions) - 3, 'other')}" if len(questions) > 3 else ""
        yield f"Ask next why there is no {', no '.join(questions[:3])}{more}."
