"""Similar names in a large vocabulary, for suggestions: one letter dropped, added, changed or swapped."""

from __future__ import annotations

import string
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MIN_LENGTH = 4
# Lookups that scan all names, before an index pays off.
_MAX_SCANS = 3
_NO_DIGITS = str.maketrans("", "", string.digits)


class Spelling:
    """A vocabulary that finds the known name a misspelt one may stand for.

    Two words are similar if dropping at most one letter from each makes them equal, and their first or
    second halves are equal. Short names, and names that differ only in their digits (`p11`, `p12`), are
    not similar. After a few lookups an index is built; a lookup then takes time near the name's length.
    """

    def __init__(self, known: Iterable[str]) -> None:
        """Store the known names."""
        self._names = known if isinstance(known, AbstractSet) else frozenset(known)
        self._lookups = 0
        self._index: dict[str, list[str]] = {}

    def nearest(self, name: str) -> str | None:
        """Return the most similar known name, or None."""
        if len(name) < _MIN_LENGTH:
            return None
        self._lookups += 1
        candidates = self._scan(name) if self._lookups <= _MAX_SCANS else self._look_up(name.lower())
        similar = {
            known
            for known in candidates
            if known != name
            and _letters(known) != _letters(name)
            and _share_half(known.lower(), name.lower())
        }
        return max(
            sorted(similar), key=lambda known: SequenceMatcher(None, name, known).ratio(), default=None
        )

    def _scan(self, name: str) -> Iterator[str]:
        word, letters = name.lower(), _letters(name)
        deletions = frozenset(_deletions(word))
        shortest, longest = len(word) - 1, len(word) + 1
        half = _half(word)
        start, end = word[:half], word[len(word) - half :]
        for known in self._names:
            # Most names that start alike differ only in their digits.
            if shortest <= len(known) <= longest and _letters(known) != letters:
                other = known.lower()
                if (other.startswith(start) or other.endswith(end)) and not deletions.isdisjoint(
                    _deletions(other)
                ):
                    yield known

    def _look_up(self, word: str) -> Iterator[str]:
        if not self._index:
            for known in self._names:
                for shorter in _deletions(known.lower()):
                    self._index.setdefault(shorter, []).append(known)
        for shorter in _deletions(word):
            yield from self._index.get(shorter, ())


def _deletions(word: str) -> Iterator[str]:
    yield word
    for position in range(len(word)):
        yield word[:position] + word[position + 1 :]


def _share_half(word: str, other: str) -> bool:
    half = _half(other)
    return word[:half] == other[:half] or word[len(word) - half :] == other[len(other) - half :]


def _half(word: str) -> int:
    # A misspelling leaves nearly half of the letters before or after it unchanged.
    return (len(word) - 3) // 2


@lru_cache(maxsize=1 << 16)
def _letters(word: str) -> str:
    return word.translate(_NO_DIGITS)
