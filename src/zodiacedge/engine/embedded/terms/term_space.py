"""Terms, host results and buffers that all versions of a state share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels.jit import MEMORY
from zodiacedge.engine.embedded.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from zodiacedge.language.ast import Predicate
    from zodiacedge.terms import Term


class TermSpace:
    """The dictionary, the results of host functions, and the output buffers of all versions of a state."""

    def __init__(self) -> None:
        """Start with no terms."""
        self.dictionary = Dictionary()
        self.host_functions: dict[tuple[str, int, bool], object] = {}
        """Results of host functions by name, arity and whether it is registered: `expressions` fills them."""
        self.predicates: dict[tuple[str, int, int], Predicate] = {}
        """Predicates by relation: `storage` fills them."""
        self._buffers = threading.local()
        self._constants: dict[Term, int] = {}
        self._mentioned: dict[int, Term] = {}

    def constant(self, term: Term) -> int:
        """Return the id of a term that rules mention, from a cache."""
        number = self._constants.get(term)
        if number is None:
            number = self.dictionary.encode(term)
            self._mentioned[number] = term
            self._constants[term] = number
        return number

    def mentioned(self, number: int) -> Term | None:
        """Return the term of an id if rules mention it."""
        return self._mentioned.get(number)

    def buffers(self, size: int) -> tuple[int, int]:
        """Return the addresses of a thread's two output buffers, of so many 32-bit words each."""
        addresses: tuple[int, int] | None = getattr(self._buffers, "at", None)
        if addresses is None:
            pair = self._buffers.pair = (np.empty(size, np.int32), np.empty(size, np.int32))
            addresses = self._buffers.at = MEMORY.address(pair[0]), MEMORY.address(pair[1])
        return addresses
