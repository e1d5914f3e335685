"""Nearest names in a large vocabulary: one letter dropped, added, changed or swapped."""

from __future__ import annotations

import string
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SHORTEST = 4
# So many questions are answered by looking at every name.
_FEW = 3
_NO_DIGITS = str.maketrans("", "", string.digits)


class Spelling:
    """Finds those of some known names that are within a slip of the hand.

    Two words are a slip apart where dropping at most one letter from each makes them equal, and one half of
    both is the same: a hand slips at one place. Short names, and names that differ only in their digits
    (`p11`, `p12`), are no misspellings. Whoever asks often gets an index, which answers in time near the
    name's length.
    """

    def __init__(self, known: Iterable[str]) -> None:
        """Take the known names."""
        self._names = frozenset(known)
        self._asked = 0
        self._index: dict[str, list[str]] = {}

    def nearest(self, name: str) -> str | None:
        """Return a known name that the given one may be meant to be."""
        if len(name) < _SHORTEST:
            return None
        self._asked += 1
        near = self._scanned(name) if self._asked <= _FEW else self._looked_up(name.lower())
        found = {
            known
            for known in near
            if known != name
            and _letters(known) != _letters(name)
            and _share_half(known.lower(), name.lower())
        }
        return max(sorted(found), key=lambda known: SequenceMatcher(None, name, known).ratio(), default=None)

    def _scanned(self, name: str) -> Iterator[str]:
        word, letters = name.lower(), _letters(name)
        wanted = frozenset(_one_dropped(word))
        lengths = range(len(word) - 1, len(word) + 2)
        half = _half(word)
        start, end = word[:half], word[len(word) - half :]
        for known in self._names:
            if len(known) in lengths:
                other = known.lower()
                if (
                    (other.startswith(start) or other.endswith(end))
                    and _letters(known) != letters
                    and not wanted.isdisjoint(_one_dropped(other))
                ):
                    yield known

    def _looked_up(self, word: str) -> Iterator[str]:
        if not self._index:
            for known in self._names:
                for shorter in _one_dropped(known.lower()):
                    self._index.setdefault(shorter, []).append(known)
        for shorter in _one_dropped(word):
            yield from self._index.get(shorter, ())


def _one_dropped(word: str) -> Iterator[str]:
    yield word
    for place in range(len(word)):
        yield word[:place] + word[place + 1 :]


def _share_half(one: str, other: str) -> bool:
    half = _half(other)
    return one[:half] == other[:half] or one[len(one) - half :] == other[len(other) - half :]


def _half(word: str) -> int:
    # What a slip leaves alone: nearly half of the letters before it, or behind it.
    return (len(word) - 3) // 2


@lru_cache(maxsize=1 << 16)
def _letters(word: str) -> str:
    return word.translate(_NO_DIGITS)
