"""A copy-on-write map: a large table that copies share, and a small overlay of changes.

A copy costs the size of the overlay, not of the map, so the tables of ten thousand rules can be values.
When the overlay is too large, the next copy gets a base table of its own.
"""

from __future__ import annotations

from collections.abc import ItemsView, MutableMapping, ValuesView
from itertools import chain, filterfalse
from math import isqrt
from typing import TYPE_CHECKING, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

_MIN_OVERLAY = 64


class CowDict(MutableMapping[K, V]):
    """A dictionary in two layers. Keys are in insertion order, as in any dictionary."""

    __slots__ = ("_base", "_deleted", "_is_shared", "_length", "_overlay")

    def __init__(self, pairs: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        """Create the map with these pairs."""
        self._base: dict[K, V] = dict(pairs)
        self._overlay: dict[K, V] = {}
        """Keys inserted or replaced since the base was made."""
        self._deleted: set[K] = set()
        """Deleted keys of the base; a key that was inserted again is in the overlay too."""
        self._length = len(self._base)
        self._is_shared = False
        """Whether another map has the base: until then keys are written to it."""

    def copy(self) -> CowDict[K, V]:
        """Return a copy that can be written to without changing this map."""
        overlay, deleted = self._overlay, self._deleted
        changed = len(overlay) + len(deleted)
        if changed > _MIN_OVERLAY and changed > _MIN_OVERLAY + 2 * isqrt(len(self._base)):
            return CowDict(self._pairs())
        if not self._base and not changed:
            # What is inserted first, perhaps ten thousand rules, is the base.
            return CowDict()
        # A change of one rule copies a dozen maps.
        copied: CowDict[K, V] = CowDict.__new__(CowDict)
        self._is_shared = copied._is_shared = True
        copied._base, copied._overlay, copied._deleted = self._base, overlay.copy(), deleted.copy()
        copied._length = self._length
        return copied

    def __getitem__(self, key: K) -> V:
        """Return the value of a key."""
        if key in self._overlay:
            return self._overlay[key]
        if key in self._deleted:
            raise KeyError(key)
        return self._base[key]

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: V | D) -> V | D: ...
    def get(self, key: K, default: object = None) -> object:
        """Return the value of a key, or the default."""
        if key in self._overlay:
            return self._overlay[key]
        return default if key in self._deleted else self._base.get(key, default)

    def __contains__(self, key: object) -> bool:
        """Whether the map has a key."""
        return key in self._overlay or (key in self._base and key not in self._deleted)

    def __setitem__(self, key: K, value: V) -> None:
        """Set the value of a key."""
        self._length += key not in self
        (self._overlay if self._is_shared else self._base)[key] = value

    def __delitem__(self, key: K) -> None:
        """Delete a key."""
        if key not in self:
            raise KeyError(key)
        self._length -= 1
        if not self._is_shared:
            del self._base[key]
            return
        self._overlay.pop(key, None)
        if key in self._base:
            self._deleted.add(key)

    def __len__(self) -> int:
        """Count the keys."""
        return self._length

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys."""
        overlay, deleted = self._overlay, self._deleted
        if not overlay and not deleted:
            return iter(self._base)
        new = (key for key in overlay if key in deleted or key not in self._base)
        return chain(filterfalse(deleted.__contains__, self._base), new)

    def values(self) -> ValuesView[V]:
        """Return the values."""
        return dict(self._pairs()).values()

    def items(self) -> ItemsView[K, V]:
        """Return keys and values."""
        return dict(self._pairs()).items()

    def _pairs(self) -> Iterator[tuple[K, V]]:
        overlay, deleted = self._overlay, self._deleted
        if not overlay and not deleted:
            yield from self._base.items()
            return
        for key, value in self._base.items():
            if key not in deleted:
                yield key, overlay.get(key, value)
        for key, value in overlay.items():
            if key in deleted or key not in self._base:
                yield key, value

    def __repr__(self) -> str:
        """Return the pairs as text."""
        return f"CowDict({dict(self._pairs())!r})"
