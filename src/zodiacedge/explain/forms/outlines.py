"""The outline of any answer."""

from __future__ import annotations

from zodiacedge.errors import counted
from zodiacedge.explain.forms.history import history_headline, history_lines, history_notes
from zodiacedge.explain.forms.lines import Outline, RuleNames, numbered
from zodiacedge.explain.forms.missing import missing_headline, missing_lines, missing_notes
from zodiacedge.explain.forms.proofs import ProofLines, proof_notes
from zodiacedge.explain.forms.words import Words
from zodiacedge.explain.history import History
from zodiacedge.explain.missing import WhyNot
from zodiacedge.explain.proof import Proof

Explained = Proof | WhyNot | History


def outline(answer: Explained, depth: int | None, longest: int | None = None) -> Outline:
    """Return the outline of an answer.

    Args:
        answer: The answer.
        depth: Derived facts at this depth are folded; None folds nothing.
        longest: Derived facts at this depth are only named, and shown after the others.
    """
    words, names = Words(answer.prefixes), RuleNames()
    match answer:
        case Proof():
            lines = list(ProofLines(answer, words, names).lines(0, depth, longest))
            notes = list(proof_notes(answer))
        case WhyNot():
            lines = list(missing_lines(answer, words, names, depth))
            notes = list(missing_notes(answer, words))
        case History():
            lines = list(history_lines(answer, words, names, depth))
            notes = list(history_notes(answer))
    rules = tuple((name, words.rule(names.rules[key])) for key, name in names.names.items())
    return Outline(title_of(answer, words), numbered(lines), rules, tuple(notes))


def title_of(answer: Explained, words: Words) -> str:
    """Return what an answer is about, in one line."""
    match answer:
        case Proof(facts=facts):
            more = f" and {counted(len(facts) - 1, 'other fact')}" if len(facts) > 1 else ""
            return f"Why {words.atom(facts[0])}{more}"
        case WhyNot():
            return "".join(piece.text for piece in missing_headline(answer, words))
        case History():
            return "".join(piece.text for piece in history_headline(answer, words))
