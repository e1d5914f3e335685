"""An outline of an explanation: lines with levels, in the order of reading.

Levels instead of nested lists: a proof may be thousands of steps high, and nothing here recurses. A part that
is needed again has a number at its first place, and is named by it at the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from zodiacedge.language.ast import Rule

Tone = Literal["plain", "code", "rule", "quiet", "good", "bad"]
Kind = Literal["derived", "explicit", "holds", "fails", "aggregate", "rule", "change", "note"]


class Piece(NamedTuple):
    """A part of a line: a text in a tone; `code` and `rule` are in the syntax of the language."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class OutlineLine:
    """A line of an outline; the lines after it with higher levels belong to it."""

    level: int
    pieces: tuple[Piece, ...]
    kind: Kind
    anchor: Hashable = None
    """What other lines may refer to: this line shows it in full."""
    refers: Hashable = None
    """What this line only names: another line shows it."""
    number: int = 0
    """The number of what the line shows or names, if it is named again."""
    rule: str = ""
    """The name of the rule of the line, in the list of rules."""
    folded: bool = False
    """Whether something below the line is left out."""
    depth: int = 0
    """The number of facts above it."""

    @property
    def text(self) -> str:
        """The line without its number."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Outline:
    """The lines of an explanation, the rules that they name, and remarks."""

    title: str
    lines: tuple[OutlineLine, ...]
    rules: tuple[tuple[str, str], ...]
    """Names and texts of the rules that are used."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class RuleNames:
    """Names of rules: labels, and numbers for rules without one, in the order of their appearance."""

    names: dict[str, str] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)

    def name(self, key: str, rule: Rule) -> str:
        """Return the name of a rule."""
        if key not in self.names:
            unlabelled = sum(not known.label for known in self.rules.values())
            self.names[key] = rule.label or f"rule {unlabelled + 1}"
            self.rules[key] = rule
        return self.names[key]


def numbered(lines: Sequence[OutlineLine]) -> tuple[OutlineLine, ...]:
    """Number what is referred to, in the order of reading."""
    named = {line.refers for line in lines if line.refers is not None}
    shown = dict.fromkeys(line.anchor for line in lines if line.anchor is not None and line.anchor in named)
    numbers = {anchor: number for number, anchor in enumerate(shown, 1)}
    return tuple(
        replace(line, number=number)
        if (number := numbers.get(line.anchor if line.refers is None else line.refers))
        else line
        for line in lines
    )


def last_of_its_level(lines: Sequence[OutlineLine]) -> list[bool]:
    """Return for each line whether no line of its level follows below the same line."""
    last = [True] * len(lines)
    open_levels: dict[int, bool] = {}
    for number in range(len(lines) - 1, -1, -1):
        level = lines[number].level
        last[number] = not open_levels.get(level, False)
        open_levels[level] = True
        for deeper in [other for other in open_levels if other > level]:
            del open_levels[deeper]
    return last


def has_children(lines: Sequence[OutlineLine]) -> Iterable[bool]:
    """Yield for each line whether lines below belong to it."""
    for number, line in enumerate(lines):
        yield number + 1 < len(lines) and lines[number + 1].level > line.level
