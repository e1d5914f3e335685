"""A copy-on-write map from keys to ordered sets: a change returns a new map that shares unchanged sets.

A change copies each set that it changes once, however many pairs it adds and removes.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

from zodiacedge.util.cow_dict import CowDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

K = TypeVar("K")
V = TypeVar("V")

_EMPTY: Mapping[object, None] = MappingProxyType({})


class CowMultimap(Generic[K, V]):
    """An immutable multimap; a key without values is not stored."""

    __slots__ = ("_sets",)

    def __init__(self, sets: CowDict[K, dict[V, None]] | None = None) -> None:
        """Take ownership of the table of sets."""
        self._sets: CowDict[K, dict[V, None]] = sets if sets is not None else CowDict()

    def __getitem__(self, key: K) -> Mapping[V, None]:
        """Return the values of a key as the keys of a map, in insertion order."""
        values = self._sets.get(key)
        return values if values is not None else _EMPTY  # type: ignore[return-value] # it is empty

    def __contains__(self, key: K) -> bool:
        """Whether a key has values."""
        return key in self._sets

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys that have values."""
        return iter(self._sets)

    def __len__(self) -> int:
        """Count the keys that have values."""
        return len(self._sets)

    def changed(self, added: Iterable[tuple[K, V]], removed: Iterable[tuple[K, V]]) -> CowMultimap[K, V]:
        """Return the multimap without the removed pairs and with the added ones."""
        sets = self._sets.copy()
        copies: dict[K, dict[V, None]] = {}

        def writable(key: K) -> dict[V, None]:
            values = copies.get(key)
            if values is None:
                values = copies[key] = dict(sets.get(key, {}))
                sets[key] = values
            return values

        for key, value in removed:
            writable(key).pop(value, None)
        for key, value in added:
            writable(key)[value] = None
        for key, values in copies.items():
            if not values:
                del sets[key]
        return CowMultimap(sets)
