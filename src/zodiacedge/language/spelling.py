"""Nearest names in a large vocabulary: one letter dropped, added, changed or swapped."""

from __future__ import annotations

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
        self._known: dict[str, str] = {}
        for name in sorted(known):
            for shorter in _one_dropped(name.lower()):
                self._known.setdefault(shorter, name)

    def nearest(self, name: str) -> str | None:
        """Return a known name that the given one may be meant to be."""
        if len(name) < _SHORTEST:
            return None
        for shorter in _one_dropped(name.lower()):
            found = self._known.get(shorter)
            if found and found != name and _letters(found) != _letters(name):
                return found
        return None


def _one_dropped(word: str) -> Iterator[str]:
    yield word
    for place in range(len(word)):
        yield word[:place] + word[place + 1 :]


def _letters(word: str) -> str:
    return "".join(c for c in word if not c.isdigit())
