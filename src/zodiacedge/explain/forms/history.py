"""The outline of an answer to "since when": the changes of a fact, each with the edit and the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.explain.forms.lines import OutlineLine, Piece
from zodiacedge.explain.forms.proofs import ProofLines
from zodiacedge.explain.forms.words import code, quiet
from zodiacedge.language.printer import abbreviate
from zodiacedge.util.one_line import on_one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.explain.forms.lines import Kind, RuleNames, Tone
    from zodiacedge.explain.forms.words import Words
    from zodiacedge.explain.history import Edit, FactChange, History


def history_lines(
    answer: History, words: Words, names: RuleNames, depth: int | None
) -> Iterator[OutlineLine]:
    """Yield the lines; with depth 0, the changes are folded."""
    there: Kind = "explicit" if answer.there else "fails"
    yield OutlineLine(0, history_headline(answer, words), there, folded=depth == 0)
    if depth == 0:
        return
    if answer.note:
        yield OutlineLine(1, (Piece(abbreviate(answer.note, words.prefixes)),), "note", depth=1)
    for change in answer.changes:
        yield OutlineLine(1, change_headline(change, words), "change", depth=1)
        for sign, text in edit_items(change.edit, words):
            tone: Tone = "good" if sign == "+" else "bad"
            yield OutlineLine(2, (Piece(f"{sign} ", tone), code(text)), "change", depth=2)
        if not change.edit.direct:
            yield OutlineLine(2, (quiet("through facts that follow from it"),), "note", depth=2)
        if change.proof is not None:
            title = "the proof that it made" if change.inserted else "the proof that it broke"
            yield OutlineLine(2, (quiet(title),), "note", depth=2)
            proof = ProofLines(change.proof, words, names, change.version)
            yield from proof.lines(3, None if depth is None else max(depth - 1, 0), longest=_LONGEST)


# Proofs inside a history are shown down to this depth, then each part on its own.
_LONGEST = 24


def history_headline(answer: History, words: Words) -> tuple[Piece, ...]:
    """Return whether the fact is there, and since when."""
    fact = code(words.atom(answer.fact))
    last = answer.changes[0] if answer.changes else None
    if last is None:
        known = f"since version {answer.since}, the first that is known"
        return (fact, Piece(f" is there {known}" if answer.there else f" was never there {known}"))
    if answer.there:
        return (fact, Piece(f" is there since version {last.version}"))
    return (fact, Piece(f" is not there since version {last.version}"))


def change_headline(change: FactChange, words: Words) -> tuple[Piece, ...]:
    """Return that a fact was inserted or deleted, when, and by whom."""
    edit = change.edit
    what = Piece("inserted", "good") if change.inserted else Piece("deleted", "bad")
    author = f", by {on_one_line(edit.author)}" if edit.author else ""
    stream = f", batch {edit.stream[1]} of stream {edit.stream[0]}" if edit.stream else ""
    when = words.moment(change.version, edit.time)
    why = f": {on_one_line(edit.message)}" if edit.message else ""
    return (what, Piece(f" at {when}"), quiet(f"{author}{stream}{why}"))


def edit_items(edit: Edit, words: Words) -> Iterator[tuple[str, str]]:
    """Yield what an edit added and removed, with signs."""
    for sign, rules in (("+", edit.rules_added), ("-", edit.rules_removed)):
        for rule in rules:
            yield sign, words.rule(rule)
    for sign, facts in (("+", edit.facts_added), ("-", edit.facts_removed)):
        for fact in facts:
            yield sign, f"{words.atom(fact)} ."


def history_notes(answer: History) -> Iterator[str]:
    """Yield remarks about a history as a whole."""
    if not answer.complete:
        yield "Not all versions were looked at: it may have been inserted and deleted before."
    elif answer.changes and answer.since:
        yield f"The history is known since version {answer.since}."
