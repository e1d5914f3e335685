"""Other engines on the same facts, where they are installed: the optional extra `peers`.

A peer gets a `Portable` program, facts as rows of ids, and nothing to load or parse while the clock runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from zodiacedge.benchmarks.peers.clingo import Clingo
from zodiacedge.benchmarks.peers.duckdb import DuckDB
from zodiacedge.benchmarks.peers.nemo import Nemo
from zodiacedge.benchmarks.peers.prolog import Prolog

if TYPE_CHECKING:
    from zodiacedge.benchmarks.harness import Trial
    from zodiacedge.benchmarks.peers.portable import Portable


class Peer(Protocol):
    """Another engine."""

    @property
    def name(self) -> str:
        """What it is called in tables."""

    @property
    def aggregates(self) -> frozenset[str]:
        """The aggregates it can do; rules with others are left out."""

    def version(self) -> str:
        """Return its version, or nothing where it is not installed."""

    def trial(self, program: Portable) -> Trial:
        """Return an evaluation from fresh state; everything that needs no rule is done here."""


PEERS: tuple[Peer, ...] = (Clingo(), DuckDB(), Nemo(), Prolog())
