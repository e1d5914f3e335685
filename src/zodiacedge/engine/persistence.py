"""The interface between engines and stores: states as partitions, into a store and out of it.

A store knows partitions, their files and counts; an engine knows its rows. An engine that works in one
process turns rows into Arrow tables, one that works on a cluster lets its tasks write the files and returns
their names.

A partition has the facts of one owner, predicate and arity. It is a table of readable terms, two columns per
argument: `a0` is what a person would write and `a0_type` the kind of term. Engines convert whole columns:

    a0                      a0_type
    http://e/wt1            iri
    b1                      blank
    cold front              string
    kalt                    @de
    -7                      integer (decimal, double, float, boolean, dateTime likewise)
    abc                     <http://www.w3.org/2001/XMLSchema#integer>

Any other literal has its datatype in angle brackets, so that no ill-formed number is taken for a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from zodiacedge.engine.api import Dropped
    from zodiacedge.engine.registry import Registry
    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Rule

Kind = Literal["explicit", "derived", "aggregate"]


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """The owner, predicate and arity of a partition.

    `owner` are the keys of the rules of a hyper-node, none for explicit facts. The rows of an aggregate,
    groups before results, are a partition too, whose `predicate` is the key of the rule.
    """

    kind: Kind
    owner: frozenset[str]
    predicate: str
    arity: int


def column_names(arity: int) -> list[str]:
    """Return the names of the columns of the arguments."""
    return [name for n in range(arity) for name in (f"a{n}", f"a{n}_type")]


@dataclass(frozen=True, slots=True)
class PartitionFile:
    """A file of a partition: its path in the store, its bytes and its rows."""

    path: str
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """Files that were written for a partition: they replace those it had, or are added to them."""

    files: tuple[PartitionFile, ...]
    beside: bool = False


class BadPartitionError(ValueError):
    """A partition whose columns are not what the format says."""


class PartitionWriter(Protocol):
    """Writes a partition as a file of the store; may be sent to another process."""

    def __call__(self, key: PartitionKey, table: pa.Table) -> PartitionFile:
        """Write a file that is on disk when this returns."""


class Partitions(Protocol):
    """Partitions of a store, each checked when it is read; may be sent to another process."""

    @property
    def files(self) -> Sequence[str]:
        """The paths of the files."""

    def sizes(self) -> Sequence[int]:
        """Return the bytes of each file."""

    def chosen(self, files: Sequence[str]) -> Self:
        """Return the partitions of some files only."""

    def __iter__(self) -> Iterator[tuple[PartitionKey, pa.Table]]:
        """Yield the partitions file by file; a partition of several files is yielded several times."""


@dataclass(frozen=True, slots=True)
class RestoreInfo:
    """What a state is restored from besides partitions."""

    rules: Mapping[str, Rule]
    graph: HyperGraph
    seconds: Mapping[frozenset[str], float]
    """Seconds of evaluating each node from scratch, as far as known."""
    dropped: Mapping[str, Dropped]
    registry: Registry
    """What the host has registered in this process."""


_State = TypeVar("_State")
_Batch_contra = TypeVar("_Batch_contra", contravariant=True)
_FactDelta_contra = TypeVar("_FactDelta_contra", contravariant=True)
_Uncommitted_contra = TypeVar("_Uncommitted_contra", contravariant=True)
_Signature = TypeVar("_Signature")


class StatePersistence(Protocol[_State, _Batch_contra, _FactDelta_contra, _Uncommitted_contra, _Signature]):
    """Converts the states, batches and changes of one engine to partitions, and back."""

    @property
    def captures(self) -> bool:
        """Whether `changed_partitions` captures rows at once, so that the state may change meanwhile."""

    def restored(self, empty: _State, partitions: Partitions, info: RestoreInfo) -> _State:
        """Return a state with the facts of partitions, from an empty one; nothing is evaluated."""

    def add_partition(self, batch: _Batch_contra, key: PartitionKey, table: pa.Table) -> None:
        """Add the facts of a partition to a batch."""

    def add_partitions(self, batch: _Batch_contra, partitions: Partitions) -> None:
        """Add the facts of files to a batch; raise BadPartitionError if a file is not what it should be.

        They may be more than one process should hold, if the engine has several.
        """

    def counts(self, state: _State) -> tuple[int, int]:
        """Return the number of explicit facts, and that of the facts of all segments together."""

    def counts_after(
        self, fact_delta: _FactDelta_contra, uncommitted: _Uncommitted_contra
    ) -> tuple[int, int]:
        """Return the same of the state that a change leads to."""

    def seconds(self, state: _State) -> Mapping[frozenset[str], float]:
        """Return the seconds of evaluating each node from scratch, as far as known."""

    def explicit_delta(
        self, fact_delta: _FactDelta_contra, write: PartitionWriter
    ) -> tuple[Iterable[tuple[PartitionKey, pa.Table | PartitionFile]], ...]:
        """Return the inserted and the deleted explicit facts: as tables, or as files if they are many."""

    def signatures(self, state: _State, rules: Mapping[str, Rule]) -> Mapping[PartitionKey, _Signature]:
        """Return a signature of each partition that has rows: it differs if the partition has changed."""

    def changed_partitions(
        self,
        state: _State,
        now: Mapping[PartitionKey, _Signature],
        before: Mapping[PartitionKey, _Signature | None],
        write: PartitionWriter,
        engine_lock: AbstractContextManager[object],
    ) -> Iterator[tuple[PartitionKey, pa.Table | PartitionFiles]]:
        """Yield the partitions whose signatures changed: as tables, or as files that were written.

        The turn in the engine is taken for a moment whenever the state is needed.
        """


# A store and its engine belong together: `engine.select` pairs them.
AnyPersistence: TypeAlias = StatePersistence[Any, Any, Any, Any, Any]
