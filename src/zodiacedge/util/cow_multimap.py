"""A map from keys to ordered sets that is a value: a change returns a new one that shares the rest.

One change copies each touched set once, however many pairs it holds.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

from zodiacedge.util.cow_dict import CowDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

K = TypeVar("K")
V = TypeVar("V")

_NOTHING: Mapping[object, None] = MappingProxyType({})


class CowMultimap(Generic[K, V]):
    """An immutable multimap; keys without values are not there."""

    __slots__ = ("_sets",)

    def __init__(self, sets: CowDict[K, dict[V, None]] | None = None) -> None:
        """Take ownership of the table of sets."""
        self._sets: CowDict[K, dict[V, None]] = sets if sets is not None else CowDict()

    def __getitem__(self, key: K) -> Mapping[V, None]:
        """Return the values of a key as the keys of a map, in the order they came."""
        found = self._sets.get(key)
        return found if found is not None else _NOTHING  # type: ignore[return-value] # it is empty

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
        own: dict[K, dict[V, None]] = {}

        def writable(key: K) -> dict[V, None]:
            mine = own.get(key)
            if mine is None:
                mine = own[key] = dict(sets.get(key, {}))
                sets[key] = mine
            return mine

        for key, value in removed:
            writable(key).pop(value, None)
        for key, value in added:
            writable(key)[value] = None
        for key, mine in own.items():
            if not mine:
                del sets[key]
        return CowMultimap(sets)
