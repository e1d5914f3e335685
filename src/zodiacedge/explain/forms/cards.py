"""The boxes and arrows of a picture of an explanation. Sizes and positions are left to `svg`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from zodiacedge.errors import counted
from zodiacedge.explain.forms.history import change_headline, edit_items, history_headline
from zodiacedge.explain.forms.lines import RuleNames
from zodiacedge.explain.forms.missing import missing_headline, missing_lines
from zodiacedge.explain.forms.words import Words
from zodiacedge.explain.history import History
from zodiacedge.explain.missing import WhyNot
from zodiacedge.explain.proof import Explicit, FactPremise, Proof, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.explain.forms.lines import Piece
    from zodiacedge.explain.forms.outlines import Explained
    from zodiacedge.language.ast import Fact

Kind = Literal["asked", "derived", "explicit", "rule", "fails"]
# A picture with more boxes than this is of no use.
_MOST = 300


@dataclass(frozen=True, slots=True)
class Card:
    """A box: a title, a line below it, and further lines."""

    title: str
    subtitle: str
    lines: tuple[str, ...]
    kind: Kind
    level: int


@dataclass(frozen=True, slots=True)
class Cards:
    """Boxes by number, and arrows from a lower box to the box that needs it, as (upper, lower)."""

    cards: dict[int, Card]
    needs: dict[tuple[int, int], bool]
    """Whether the lower box is a row of an aggregate only."""
    left_out: str = ""


def cards_of(answer: Explained) -> Cards:
    """Return the boxes of an answer."""
    words = Words(answer.prefixes)
    match answer:
        case Proof():
            return _proof(answer, words)
        case WhyNot():
            return _missing(answer, words)
        case History():
            return _history(answer, words)


def _proof(proof: Proof, words: Words) -> Cards:
    levels = _levels(proof)
    shown = sorted(levels, key=lambda fact: levels[fact])[:_MOST]
    numbers = {fact: number for number, fact in enumerate(shown)}
    names = RuleNames()
    cards: dict[int, Card] = {}
    needs: dict[tuple[int, int], bool] = {}
    for fact, number in numbers.items():
        cards[number] = _fact(proof, fact, words, names, levels[fact])
        support = proof.supports[fact]
        needed = support.facts if isinstance(support, Step) else ()
        for below in proof.below(fact):
            if below in numbers:
                needs[number, numbers[below]] = below not in needed
    more = len(levels) - len(shown)
    return Cards(cards, needs, f"{counted(more, 'fact')} not drawn" if more else "")


def _fact(proof: Proof, fact: Fact, words: Words, names: RuleNames, level: int) -> Card:
    support = proof.supports[fact]
    title = words.atom(fact)
    match support:
        case Explicit(statement=statement):
            return Card(title, words.statement(statement), (), "explicit", level)
        case Step(premises=premises):
            lines = [_text(words.premise(p)) for p in premises if not isinstance(p, FactPremise)]
            values = words.values(support.values)
            by = f"by {names.name(support.key, support.rule)}{f' with {values}' if values else ''}"
            kind: Kind = "asked" if fact in proof.facts else "derived"
            return Card(title, by, tuple(lines), kind, level)
        case _:
            return Card(title, "not explained: the budget ended", (), "fails", level)


def _levels(proof: Proof) -> dict[Fact, int]:
    """Return how far below the asked facts each fact is, by the longest way."""
    levels: dict[Fact, int] = {}
    for support in reversed(list(proof.in_order())):
        level = levels.setdefault(support.fact, 0)
        for below in proof.below(support.fact):
            levels[below] = max(levels.get(below, 0), level + 1)
    return levels


def _missing(answer: WhyNot, words: Words) -> Cards:
    cards = {0: Card(_text(missing_headline(answer, words)), "", (), "fails", 0)}
    groups: list[list[str]] = []
    for line in missing_lines(answer, words, RuleNames(), None):
        if line.level == 1:
            groups.append([line.text])
        elif line.level > 1:
            groups[-1].append(line.text)
    for title, *lines in groups[:_MOST]:
        cards[len(cards)] = Card(title, "", tuple(lines), "rule", 1)
    return Cards(cards, {(0, number): False for number in cards if number})


def _history(answer: History, words: Words) -> Cards:
    kind: Kind = "asked" if answer.there else "fails"
    cards = {0: Card(_text(history_headline(answer, words)), "", (), kind, 0)}
    for change in answer.changes[:_MOST]:
        lines = [f"{sign} {text}" for sign, text in edit_items(change.edit, words)]
        if change.proof is not None:
            proved = _fact(change.proof, answer.fact, words, RuleNames(), 0)
            lines += [
                "the proof that it made:" if change.inserted else "the proof that it broke:",
                proved.subtitle,
            ]
            lines += [words.atom(fact) for fact in change.proof.below(answer.fact)]
            lines += proved.lines
        level = len(cards)
        kind = "derived" if change.inserted else "rule"
        cards[level] = Card(_text(change_headline(change, words)), "", tuple(lines), kind, level)
    return Cards(cards, {(number - 1, number): False for number in cards if number})


def _text(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in pieces)
