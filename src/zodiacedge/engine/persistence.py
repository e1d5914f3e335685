"""How the states of an engine get into a store and out of it: what an engine offers to `store`.

A store knows parts, files of parts and counts. Which facts a part has, and how rows of an engine become terms
that a person can read, is the engine's own: one that works in this process makes tables, one that works on a
cluster lets its tasks write the files and tells only their names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from zodiacedge.engine.api import Batch, Dropped, FactDelta, State, UncommittedState
    from zodiacedge.engine.parts import PartitionKey
    from zodiacedge.engine.registry import Registry
    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Rule


@dataclass(frozen=True, slots=True)
class PartitionFile:
    """A file of a part that is on disk: its place in the store, its bytes and its rows."""

    path: str
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """Files that were written for a part: in the place of those it had, or beside them."""

    files: tuple[PartitionFile, ...]
    beside: bool = False


class BadPartitionError(ValueError):
    """A part whose columns are not what the format says."""


class PartitionWriter(Protocol):
    """Writes a part as a file of the store; may be sent to another process."""

    def __call__(self, key: PartitionKey, table: pa.Table) -> PartitionFile:
        """Write a file that is on disk when this returns."""


class Partitions(Protocol):
    """Parts of a store, each checked when it is read; may be sent to another process."""

    @property
    def files(self) -> Sequence[str]:
        """The places of the files."""

    def sizes(self) -> Sequence[int]:
        """How many bytes each file has."""

    def chosen(self, files: Sequence[str]) -> Self:
        """Return those of some files only."""

    def __iter__(self) -> Iterator[tuple[PartitionKey, pa.Table]]:
        """Yield the parts file by file; one of several files comes several times."""


@dataclass(frozen=True, slots=True)
class RestoreInfo:
    """What a commit tells beside its parts."""

    rules: Mapping[str, Rule]
    graph: HyperGraph
    seconds: Mapping[frozenset[str], float]
    """What evaluating each node from nothing took, as far as that is known."""
    dropped: Mapping[str, Dropped]
    registry: Registry
    """What the host registered now."""


class StatePersistence(Protocol):
    """How the states of one engine are kept."""

    def restored(self, empty: State, parts: Partitions, told: RestoreInfo) -> State:
        """Return a state with the facts of some parts, on an empty one; nothing is evaluated."""

    def add_part(self, batch: Batch, key: PartitionKey, table: pa.Table) -> None:
        """Add the facts of a part to a batch."""

    def add_parts(self, batch: Batch, parts: Partitions) -> None:
        """Add the facts of files to a batch; raise BadPartError where one is not what it should be.

        They are more than one process should hold, if the engine has others.
        """

    def counts(self, state: State) -> tuple[int, int]:
        """Return how many explicit facts there are, and how many facts all segments have together."""

    def counts_after(self, effect: FactDelta, attempt: UncommittedState) -> tuple[int, int]:
        """Return the same of what a change will come to."""

    def seconds(self, state: State) -> Mapping[frozenset[str], float]:
        """Return what evaluating each node from nothing took, as far as that is known."""

    def explicit_delta(
        self, effect: FactDelta, write: PartitionWriter
    ) -> tuple[Iterable[tuple[PartitionKey, pa.Table | PartitionFile]], ...]:
        """Return the explicit facts that come and those that go: as tables, or as files if they are many."""

    def signatures(self, state: State, rules: Mapping[str, Rule]) -> Mapping[PartitionKey, object]:
        """Return of each part what tells whether it changed in this process."""

    def changed_partitions(
        self,
        state: State,
        now: Mapping[PartitionKey, object],
        before: Mapping[PartitionKey, object],
        write: PartitionWriter,
    ) -> Iterator[tuple[PartitionKey, pa.Table | PartitionFiles]]:
        """Yield the parts whose signatures are not what they were."""


@runtime_checkable
class CapturingPersistence(Protocol):
    """A keeping that can take hold of parts at once, and write them while the state goes on to change."""

    def captured(
        self, state: State, now: Mapping[PartitionKey, object], before: Mapping[PartitionKey, object]
    ) -> Callable[[AbstractContextManager[object]], Iterator[tuple[PartitionKey, pa.Table]]]:
        """Return what yields the parts whose signatures are not what they were.

        It takes the turn in the engine for a moment each time that it needs it.
        """
