"""Functions that only the host can compute: text, dates, and what it registered.

The machine looks results up in a table, by arguments. Arguments that are not there yet are noted, the
host computes them all at once, and the machine makes its pass again. Functions are deterministic, so
results are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.table import Table
from zodiacedge.engine.novalue import NoValue
from zodiacedge.engine.values import evaluate
from zodiacedge.language.ast import Call

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.dictionary import Dictionary
    from zodiacedge.engine.registry import Registry
    from zodiacedge.terms import Term

_ROOM = 4096


class HostFunction:
    """One function of some arity: what it gave so far, and what it is asked for."""

    def __init__(self, function: str, arity: int, *, registered: bool) -> None:
        """Start with no results."""
        self.function = function
        self.arity = arity
        self.registered = registered
        self.known = Table(arity + 1)
        self.known.need_index((1 << arity) - 1)
        self.wanted = Table(arity)
        self.wanted.need_rows()
        self.wanted.reserve(_ROOM)

    def compute(self, dictionary: Dictionary, registry: Registry) -> None:
        """Compute what was asked for."""
        asked = self.wanted.rows.copy()
        if not len(asked):
            return
        terms = {number: dictionary.decode(number) for number in np.unique(asked).tolist()}
        results = [self._one([terms[n] for n in row], dictionary, registry) for row in asked.tolist()]
        rows = np.concatenate((asked, np.array(results, np.int32)[:, None]), axis=1)
        self.known.append_distinct(rows.astype(np.int32))
        self.wanted.clear()
        self.wanted.reserve(max(_ROOM, 2 * len(asked)))

    def _one(self, args: list[Term], dictionary: Dictionary, registry: Registry) -> int:
        call = Call(self.function, tuple(args), self.registered)
        try:
            return dictionary.encode(evaluate(call, {}, registry))
        except NoValue:
            return -1
