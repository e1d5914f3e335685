"""A map that is copied in no time: one large table that many share, and a small one of what differs from it.

A copy costs what differs, not what there is, so the tables of ten thousand rules can be values. Where too
much differs, the next copy has a large table of its own.
"""

from __future__ import annotations

from collections.abc import ItemsView, MutableMapping, ValuesView
from math import isqrt
from typing import TYPE_CHECKING, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

_FEW = 64


class CowDict(MutableMapping[K, V]):
    """A dictionary in two layers. Keys are in the order of their arrival, as in any dictionary."""

    __slots__ = ("_below", "_gone", "_length", "_upper")

    def __init__(self, pairs: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        """Take some pairs."""
        self._below: dict[K, V] = dict(pairs)
        self._upper: dict[K, V] = {}
        """What came or was replaced since."""
        self._gone: set[K] = set()
        """The keys below that count no more; those that came again are in the upper layer."""
        self._length = len(self._below)

    def copy(self) -> CowDict[K, V]:
        """Return a map that may be written to while this one stays as it is."""
        found: CowDict[K, V] = CowDict()
        if len(self._upper) + len(self._gone) > _FEW + 2 * isqrt(len(self._below)):
            found._below = dict(self.items())
        else:
            found._below, found._upper, found._gone = self._below, self._upper.copy(), self._gone.copy()
        found._length = self._length
        return found

    def __getitem__(self, key: K) -> V:
        """Return the value of a key."""
        if key in self._upper:
            return self._upper[key]
        if key in self._gone:
            raise KeyError(key)
        return self._below[key]

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: V | D) -> V | D: ...
    def get(self, key: K, default: object = None) -> object:
        """Return the value of a key, or the default."""
        if key in self._upper:
            return self._upper[key]
        return default if key in self._gone else self._below.get(key, default)

    def __contains__(self, key: object) -> bool:
        """Whether there is a key."""
        return key in self._upper or (key in self._below and key not in self._gone)

    def __setitem__(self, key: K, value: V) -> None:
        """Give a key a value."""
        self._length += key not in self
        self._upper[key] = value

    def __delitem__(self, key: K) -> None:
        """Forget a key."""
        if key not in self:
            raise KeyError(key)
        self._upper.pop(key, None)
        if key in self._below:
            self._gone.add(key)
        self._length -= 1

    def __len__(self) -> int:
        """Count the keys."""
        return self._length

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys."""
        for key, _ in self._pairs():
            yield key

    def values(self) -> ValuesView[V]:
        """Return the values."""
        return dict(self._pairs()).values()

    def items(self) -> ItemsView[K, V]:
        """Return keys and values."""
        return dict(self._pairs()).items()

    def _pairs(self) -> Iterator[tuple[K, V]]:
        upper, gone = self._upper, self._gone
        if not upper and not gone:
            yield from self._below.items()
            return
        for key, value in self._below.items():
            if key not in gone:
                yield key, upper.get(key, value)
        for key, value in upper.items():
            if key in gone or key not in self._below:
                yield key, value

    def __repr__(self) -> str:
        """Show what there is."""
        return f"Layers({dict(self._pairs())!r})"
