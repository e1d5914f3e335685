"""Other engines on the same facts, if installed (the extra `peers`).

A peer gets a `Portable` program with facts as rows of ids; it loads and parses before the clock starts.

    portable  a program and its facts in a form that every peer takes
    spelling  names and rules in the syntax of other engines
    clingo    the ASP solver
    duckdb    recursive SQL
    nemo      the rule engine
    prolog    SWI-Prolog with tabling
    souffle   Soufflé, compiled
    reference  Soufflé's time where it is not installed, estimated
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from zodiacedge_bench.peers.clingo import Clingo
from zodiacedge_bench.peers.duckdb import DuckDB
from zodiacedge_bench.peers.nemo import Nemo
from zodiacedge_bench.peers.prolog import Prolog
from zodiacedge_bench.peers.souffle import Souffle

if TYPE_CHECKING:
    from zodiacedge_bench.measure.harness import Trial
    from zodiacedge_bench.peers.portable import Portable


class Peer(Protocol):
    """Another engine."""

    @property
    def name(self) -> str:
        """Its name in tables."""

    @property
    def aggregates(self) -> frozenset[str]:
        """Its aggregates; rules with other aggregates are left out."""

    def version(self) -> str:
        """Return its version, or an empty text if it is not installed."""

    def trial(self, program: Portable) -> Trial:
        """Return a new evaluation, with rules and facts loaded."""


PEERS: tuple[Peer, ...] = (Clingo(), DuckDB(), Nemo(), Prolog(), Souffle(1), Souffle(2))
