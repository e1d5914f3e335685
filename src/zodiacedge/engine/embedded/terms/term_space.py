"""Terms, host results and buffers that all versions of a state share, and who holds ids of terms."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import MEMORY
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.embedded.terms.moments import MomentIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.language.ast import Predicate
    from zodiacedge.terms import Term


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TermHolder(Protocol):
    """An object outside the tables that holds ids of terms, which must not be used for other terms."""

    def held_ids(self) -> Iterable[Ids]:
        """Return the ids that the object holds."""


class HostResults(Protocol):
    """The cached results of a host function, by the ids of its arguments."""

    def forget(self) -> None:
        """Drop all results."""


class TermSpace:
    """The dictionary, the results of host functions, and the output buffers of all versions of a state."""

    def __init__(self) -> None:
        """Start with no terms."""
        self.dictionary = Dictionary()
        self.moments = MomentIndex(self.dictionary)
        self.host_functions: dict[tuple[str, int, bool], HostResults] = {}
        """Results of host functions by name, arity and whether it is registered: `expressions` fills them."""
        self.predicates: dict[tuple[str, int, int], Predicate] = {}
        """Predicates by relation: `storage` fills them."""
        self._buffers = threading.local()
        self._constants: dict[Term, int] = {}
        self._mentioned: dict[int, Term] = {}
        self._holders: WeakSet[TermHolder] = WeakSet()
        self._holding = 0

    def constant(self, term: Term) -> int:
        """Return the id of a term that rules mention, from a cache."""
        number = self._constants.get(term)
        if number is None:
            number = self.dictionary.encode(term)
            self._mentioned[number] = term
            self._constants[term] = number
        elif self.dictionary.is_marking:
            self.dictionary.mark(np.array([number], np.int32))
        return number

    def mentioned(self, number: int) -> Term | None:
        """Return the term of an id if rules mention it."""
        return self._mentioned.get(number)

    def are_earlier(self, ids: Ids, moment: datetime) -> NDArray[np.bool_]:
        """Return for each term whether it is a moment before another one."""
        micros = (moment - _EPOCH) // timedelta(microseconds=1)
        dictionary = self.dictionary
        earlier: NDArray[np.bool_] = (dictionary.kinds[ids] == L.K_MOMENT) & (
            dictionary.payloads[ids] < micros
        )
        return earlier

    def earliest(self, ids: Ids, since: datetime) -> datetime | None:
        """Return the first moment from a time on among terms; None if there is none."""
        moments = ids[(self.dictionary.kinds[ids] == L.K_MOMENT) & ~self.are_earlier(ids, since)]
        if not len(moments):
            return None
        return _EPOCH + timedelta(microseconds=int(self.dictionary.payloads[moments].min()))

    def add_holder(self, holder: TermHolder) -> None:
        """Keep the ids of an object as long as the object lives."""
        self._holders.add(holder)

    def held_ids(self) -> Iterator[Ids]:
        """Yield the ids that holders hold."""
        for holder in list(self._holders):
            yield from holder.held_ids()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Free no id during a block that holds ids and lets changes run."""
        self._holding += 1
        try:
            yield
        finally:
            self._holding -= 1

    @property
    def is_held(self) -> bool:
        """Whether a block holds ids."""
        return self._holding > 0

    def mark_constants(self, constants: Iterable[Term]) -> None:
        """Mark those terms of rules in force that have an id."""
        known = [self._constants[term] for term in constants if term in self._constants]
        self.dictionary.mark(np.array(known, np.int32))

    def forget_unmarked(self) -> None:
        """Drop terms that no rule mentions any more, and all results of host functions."""
        is_used = self.dictionary.is_used
        for term, number in list(self._constants.items()):
            if not is_used(number):
                del self._constants[term]
                del self._mentioned[number]
        for results in self.host_functions.values():
            results.forget()

    def buffers(self, size: int) -> tuple[int, int]:
        """Return the addresses of a thread's two output buffers, of so many 32-bit words each."""
        addresses: tuple[int, int] | None = getattr(self._buffers, "at", None)
        if addresses is None:
            pair = self._buffers.pair = (np.empty(size, np.int32), np.empty(size, np.int32))
            addresses = self._buffers.at = MEMORY.address(pair[0]), MEMORY.address(pair[1])
        return addresses
