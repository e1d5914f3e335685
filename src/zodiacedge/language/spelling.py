"""Nearest names in a large vocabulary: one letter dropped, added, changed or swapped."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SHORTEST = 4


class Spelling:
    """An index of known names that finds those within a slip of the hand, in time near the name's length.

    Two words are a slip apart where dropping at most one letter from each makes them equal. Short
    names, and names that differ only in their digits (`p11`, `p12`), are no misspellings.
    """

    def __init__(self, known: Iterable[str]) -> None:
        """Index the known names."""
        self._known: dict[str, list[str]] = {}
        for name in sorted(known):
            for shorter in _one_dropped(name.lower()):
                self._known.setdefault(shorter, []).append(name)

    def nearest(self, name: str) -> str | None:
        """Return a known name that the given one may be meant to be."""
        if len(name) < _SHORTEST:
            return None
        found = {
            known
            for shorter in _one_dropped(name.lower())
            for known in self._known.get(shorter, ())
            if known != name and _letters(known) != _letters(name)
        }
        return max(sorted(found), key=lambda known: SequenceMatcher(None, name, known).ratio(), default=None)


def _one_dropped(word: str) -> Iterator[str]:
    yield word
    for place in range(len(word)):
        yield word[:place] + word[place + 1 :]


def _letters(word: str) -> str:
    return "".join(c for c in word if not c.isdigit())
