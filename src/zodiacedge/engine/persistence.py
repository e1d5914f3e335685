"""The interface between engines and stores: conversion of states to partitions, and back.

A store manages partitions, their files and counts; an engine manages rows. An engine in one process converts
rows to Arrow tables; the tasks of an engine on a cluster write the files, and the engine returns their paths.

A partition has the facts of one owner, predicate and arity. It is a table of readable terms with two columns
per argument: `a0` is the text of a term and `a0_type` its kind. Engines convert complete columns:

    a0                      a0_type
    http://e/wt1            iri
    b1                      blank
    cold front              string
    kalt                    @de
    -7                      integer (decimal, double, float, boolean, dateTime, date likewise)
    abc                     <http://www.w3.org/2001/XMLSchema#integer>

Any other literal has its datatype in angle brackets, so that an ill-formed number is not read as a number.
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
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.language.ast import Rule

Kind = Literal["explicit", "derived", "aggregate"]


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """The owner, predicate and arity of a partition.

    `owner` holds the keys of the rules of a hyper-node; it is empty for explicit facts. The rows of an
    aggregate, groups before results, are a partition too: its `predicate` is the key of the rule.
    """

    kind: Kind
    owner: frozenset[str]
    predicate: str
    arity: int


def column_names(arity: int) -> list[str]:
    """Return the column names of a partition."""
    return [name for n in range(arity) for name in (f"a{n}", f"a{n}_type")]


@dataclass(frozen=True, slots=True)
class PartitionFile:
    """A file of a partition: its path in the store, its bytes and its rows."""

    path: str
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """New files of a partition, which replace its files or, if `beside`, are added to them."""

    files: tuple[PartitionFile, ...]
    beside: bool = False


class BadPartitionError(ValueError):
    """A partition whose columns violate the format."""


class PartitionWriter(Protocol):
    """A writer of partitions as files of the store; it may be sent to another process."""

    def __call__(self, key: PartitionKey, table: pa.Table) -> PartitionFile:
        """Write a file; it is durable when this returns."""


class Partitions(Protocol):
    """Partitions of a store, checked when they are read; may be sent to another process."""

    @property
    def files(self) -> Sequence[str]:
        """The paths of the files."""

    def sizes(self) -> Sequence[int]:
        """Return the bytes of each file."""

    def chosen(self, files: Sequence[str]) -> Self:
        """Return the partitions of these files only."""

    def __iter__(self) -> Iterator[tuple[PartitionKey, pa.Table]]:
        """Yield the partitions file by file; a partition of several files is yielded several times."""


@dataclass(frozen=True, slots=True)
class RestoreInfo:
    """The data from which a state is restored, besides partitions."""

    rules: Mapping[str, Rule]
    graph: HyperGraph
    seconds: Mapping[frozenset[str], float]
    """Seconds of the last evaluation of a node from scratch, where known."""
    dropped: Mapping[str, Dropped]
    registry: Registry
    """The functions and aggregates that the host has registered in this process."""


_State = TypeVar("_State")
_Batch_contra = TypeVar("_Batch_contra", contravariant=True)
_FactDelta_contra = TypeVar("_FactDelta_contra", contravariant=True)
_Uncommitted_contra = TypeVar("_Uncommitted_contra", contravariant=True)
_Signature = TypeVar("_Signature")


class StatePersistence(Protocol[_State, _Batch_contra, _FactDelta_contra, _Uncommitted_contra, _Signature]):
    """A converter of the states, batches and changes of one engine to partitions, and back."""

    @property
    def captures(self) -> bool:
        """Whether `changed_partitions` captures rows first, so that the state may change during the write."""

    def restored(self, empty: _State, partitions: Partitions, info: RestoreInfo) -> _State:
        """Return an empty state filled with the facts of partitions, without evaluation."""

    def add_partition(self, batch: _Batch_contra, key: PartitionKey, table: pa.Table) -> None:
        """Add the facts of a partition to a batch."""

    def add_partitions(self, batch: _Batch_contra, partitions: Partitions) -> None:
        """Add the facts of files to a batch; raise BadPartitionError if a file violates the format.

        An engine with several processes accepts more facts than one process can hold.
        """

    def counts(self, state: _State) -> tuple[int, int]:
        """Return the number of explicit facts, and the total number of facts of all segments."""

    def counts_after(
        self, fact_delta: _FactDelta_contra, uncommitted: _Uncommitted_contra
    ) -> tuple[int, int]:
        """Return the counts of the state after a change."""

    def seconds(self, state: _State) -> Mapping[frozenset[str], float]:
        """Return the seconds of the last evaluation of nodes from scratch, where known."""

    def explicit_delta(
        self, fact_delta: _FactDelta_contra, write: PartitionWriter
    ) -> tuple[Iterable[tuple[PartitionKey, pa.Table | PartitionFile]], ...]:
        """Return the inserted and the deleted explicit facts: as tables, or as files if they are many."""

    def signatures(self, state: _State, rules: Mapping[str, Rule]) -> Mapping[PartitionKey, _Signature]:
        """Return a signature of each non-empty partition, which differs if the partition has changed."""

    def changed_partitions(
        self,
        state: _State,
        now: Mapping[PartitionKey, _Signature],
        before: Mapping[PartitionKey, _Signature | None],
        write: PartitionWriter,
        engine_lock: AbstractContextManager[object],
    ) -> Iterator[tuple[PartitionKey, pa.Table | PartitionFiles]]:
        """Yield the partitions whose signatures changed: as tables, or as written files.

        The engine's lock is held only while the state is read.
        """


# `engine.select` pairs a store with the adapter of its engine.
AnyPersistence: TypeAlias = StatePersistence[Any, Any, Any, Any, Any]
