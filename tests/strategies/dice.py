"""Where chance comes from: hypothesis, which shrinks, or a seed, which is fast.

The generator asks for numbers only, and the least number is always the simplest choice: shrinking
makes chances fail, picks fall on what stands first, and lists short.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


class Dice(ABC):
    """A source of choices."""

    @abstractmethod
    def number(self, low: int, high: int) -> int:
        """Return a number between two, both included."""

    def chance(self, percent: int) -> bool:
        """Return True in about so many of a hundred cases; the simplest outcome is False."""
        return percent > 0 and self.number(0, 99) >= 100 - percent

    def pick(self, options: Sequence[T]) -> T:
        """Return one of some options; the first is the simplest."""
        return options[self.number(0, len(options) - 1)]

    def amount(self, *weights: int) -> int:
        """Return 0, 1, 2, … with the given weights; 0 is the simplest."""
        rest = self.number(0, sum(weights) - 1)
        for count, weight in enumerate(weights):
            rest -= weight
            if rest < 0:
                return count
        return 0

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in any order; as they stand is the simplest."""
        left, found = list(items), []
        while left:
            found.append(left.pop(self.number(0, len(left) - 1)))
        return found


class Seeded(Dice):
    """Choices from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


class Drawn(Dice):
    """Choices that hypothesis makes, and shrinks."""

    def __init__(self, draw: Callable[[SearchStrategy[int]], int]) -> None:
        self._draw = draw

    def number(self, low: int, high: int) -> int:
        return low if low == high else self._draw(_integers(low, high))


@lru_cache(maxsize=1024)
def _integers(low: int, high: int) -> SearchStrategy[int]:
    return st.sampled_from(range(low, high + 1))
