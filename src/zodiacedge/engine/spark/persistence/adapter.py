"""The persistence adapter of the engine `spark`: tasks read and write the files of a store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.persistence.adapter import EmbeddedPersistence
from zodiacedge.engine.persistence import BadPartitionError, PartitionFiles, PartitionKey
from zodiacedge.engine.spark.ingest.batch import BatchFiles, class_predicate
from zodiacedge.engine.spark.maintain.window_delta import filled
from zodiacedge.engine.spark.partition.merge_terms import merged
from zodiacedge.engine.spark.persistence import files
from zodiacedge.engine.spark.persistence.files import Holder, HolderRows, Loaded, Loading, ReadableRows
from zodiacedge.engine.spark.state import SparkState
from zodiacedge.engine.spark.storage.bin_packing import groups
from zodiacedge.engine.spark.storage.files import Relation, Segment, SignedFiles
from zodiacedge.engine.spark.storage.terms import TermFiles
from zodiacedge.engine.yield_point import ALONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from zodiacedge.engine.persistence import Kind, PartitionFile, Partitions, PartitionWriter, RestoreInfo
    from zodiacedge.engine.spark.ingest.batch import SparkBatch, SparkFactDelta
    from zodiacedge.engine.spark.state import SparkUncommitted
    from zodiacedge.engine.spark.storage.files import DataFile
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

    Layers = tuple[tuple[bool, DataFile], ...]

_EXPLICIT: frozenset[str] = frozenset()
# The driver reads at most so many bytes itself; a task reads about as many.
_BYTES_PER_TASK = 8 << 20
# A partition of a holder with at most so many rows is rewritten when it changes.
_REWRITTEN = 50_000


@dataclass(frozen=True)
class Signature:
    """The rows of a holder, and its files that have rows of the partition."""

    held: HolderRows
    layers: Layers


class SparkPersistence:
    """The persistence adapter of the engine `spark`."""

    captures = False

    # Reading a store.

    def restored(self, empty: SparkState, partitions: Partitions, info: RestoreInfo) -> SparkState:
        """Return an empty state with the facts of partitions added; no rule is evaluated."""
        workspace = empty.workspace
        loaded = _checked(_loaded(workspace, partitions))
        contents: dict[frozenset[str], dict[Holder, list[DataFile]]] = {}
        names: dict[int, Term] = {}
        for result in loaded:
            names |= result.names
            for holder, file in result.rows.items():
                contents.setdefault(holder.owner, {}).setdefault(holder, []).append(workspace.adopt(file))
        terms = TermFiles().with_files(*(workspace.adopt(result.terms) for result in loaded))
        if len(terms.parts) > 1:
            terms = merged(workspace, terms, TermFiles(), ALONE)
        segments = {keys: _segment(keys, info.rules, contents.pop(keys, {})) for keys in _owners(info)}
        if contents:
            raise KeyError(next(holder for own in contents.values() for holder in own).relation.name)
        state = SparkState(
            workspace,
            segments.pop(_EXPLICIT),
            segments,
            terms,
            names,
            dropped=dict(info.dropped),
            registry=info.registry,
            rules=dict(info.rules),
        )
        windows, terms = filled(state, info.graph)
        return replace(state, windows=windows, terms=terms, introduced=frozenset(windows.windows))

    def add_partition(self, batch: SparkBatch, key: PartitionKey, table: pa.Table) -> None:
        """Add the facts of a partition to a batch."""
        EmbeddedPersistence().add_partition(batch.values, key, table)

    def add_partitions(self, batch: SparkBatch, partitions: Partitions) -> None:
        """Add the facts of files to a batch: tasks read them, however few they are."""
        for result in _checked(_loaded_by_tasks(batch.workspace, partitions)):
            rows = {holder.relation: (file,) for holder, file in result.rows.items()}
            batch.take(BatchFiles(rows, TermFiles().with_files(result.terms), result.names, by_tasks=True))

    # Counts.

    def counts(self, state: SparkState) -> tuple[int, int]:
        """Return the number of explicit facts, and the sum of the sizes of all segments."""
        return state.explicit_files.rows, sum(segment.rows for segment in state.segments.values())

    def counts_after(self, fact_delta: SparkFactDelta, uncommitted: SparkUncommitted) -> tuple[int, int]:
        """Return the counts of the state after a change."""
        del fact_delta
        return self.counts(uncommitted.after)

    def seconds(self, state: SparkState) -> dict[frozenset[str], float]:
        """Return no measurements: those of one cluster do not hold on another."""
        del state
        return {}

    # Writing a store.

    def explicit_delta(
        self, fact_delta: SparkFactDelta, write: PartitionWriter
    ) -> tuple[Iterable[tuple[PartitionKey, pa.Table | PartitionFile]], ...]:
        """Return the inserted and the deleted explicit facts: as tables, or as files if they are many."""
        sides = [
            [
                HolderRows(Holder("explicit", _EXPLICIT, relation), content)
                for relation, content in side.items()
            ]
            for side in (fact_delta.effective_delta.inserted, fact_delta.effective_delta.deleted)
        ]
        workspace, terms = fact_delta.workspace, fact_delta.terms
        if fact_delta.added + fact_delta.removed <= workspace.options.driver_rows:
            return tuple(list(ReadableRows(tuple(side), terms, workspace.hashing)) for side in sides)
        return tuple(_written(workspace, side, terms, write) for side in sides)

    def signatures(self, state: SparkState, rules: Mapping[str, Rule]) -> dict[PartitionKey, Signature]:
        """Return the files of each partition that has rows."""
        signatures: dict[PartitionKey, Signature] = {}
        for owner, segment in ((_EXPLICIT, state.explicit_files), *state.segments.items()):
            kind: Kind = "derived" if owner else "explicit"
            for relation, content in segment.contents.items():
                held = HolderRows(Holder(kind, owner, relation), content)
                signatures |= _by_class(state, held) if relation.typed else _single(held)
            for rule, content in segment.aggregate_rows.items():
                # A store names the rows of an aggregate after its rule.
                relation = Relation(rule, Relation.of_rows(rules[rule].aggregate).arity)
                signatures |= _single(HolderRows(Holder("aggregate", owner, relation), content))
        return signatures

    def changed_partitions(
        self,
        state: SparkState,
        now: Mapping[PartitionKey, Signature],
        before: Mapping[PartitionKey, Signature | None],
        write: PartitionWriter,
        engine_lock: AbstractContextManager[object],
    ) -> Iterator[tuple[PartitionKey, PartitionFiles]]:
        """Write the partitions whose signatures changed, and yield their files.

        A large partition that only gained rows keeps its files and gets another with those rows.
        """
        del engine_lock
        beside: dict[PartitionKey, bool] = {}
        # The classes of one holder are read together.
        wanted: dict[tuple[Holder, Layers], set[int] | None] = {}
        for key, signature in now.items():
            was = before.get(key)
            layers = was.layers if was is not None else ()
            if was is not None and layers == signature.layers:
                continue
            more = signature.layers[len(layers) :]
            held = signature.held
            gained = bool(layers) and signature.layers[: len(layers)] == layers
            beside[key] = gained and held.content.rows > _REWRITTEN and all(plus for plus, _ in more)
            source = held.holder, more if beside[key] else held.content.layers
            if held.classes is None:
                wanted[source] = None
            else:
                wanted[source] = (wanted.get(source) or set()) | held.classes
        wanted_rows = [
            HolderRows(holder, SignedFiles(layers), None if classes is None else frozenset(classes))
            for (holder, layers), classes in wanted.items()
        ]
        files: dict[PartitionKey, list[PartitionFile]] = {}
        for key, file in _written(state.workspace, wanted_rows, state.terms, write):
            files.setdefault(key, []).append(file)
        for key, written in files.items():
            yield key, PartitionFiles(tuple(written), beside[key])


def _loaded(workspace: Workspace, partitions: Partitions) -> list[Loaded]:
    """Read files: a few on the driver, many by tasks."""
    if sum(partitions.sizes()) > _BYTES_PER_TASK:
        return _loaded_by_tasks(workspace, partitions)
    if not partitions.files:
        return []
    return [files.load(Loading(partitions, workspace.scratch.folder, workspace.hashing))]


def _loaded_by_tasks(workspace: Workspace, partitions: Partitions) -> list[Loaded]:
    """Read files by tasks of about the same size."""
    sizes = dict(zip(partitions.files, partitions.sizes(), strict=True))
    most = max(1, min(len(sizes), -(-sum(sizes.values()) // _BYTES_PER_TASK)))
    tasks = [
        Loading(partitions.chosen(group), workspace.scratch.folder, workspace.hashing)
        for group in groups(sizes, sizes.__getitem__, most)
    ]
    return workspace.jobs.each(files.load, tasks, "reading a store")


def _checked(loaded: list[Loaded]) -> list[Loaded]:
    """Return the results of tasks; raise if a task read a bad partition."""
    for result in loaded:
        if result.bad:
            raise BadPartitionError(result.bad)
    return loaded


def _written(
    workspace: Workspace, held: Sequence[HolderRows], terms: TermFiles, write: PartitionWriter
) -> list[tuple[PartitionKey, PartitionFile]]:
    """Write rows as files: few on the driver, more by tasks, and too many for a task by a plan."""
    options = workspace.options
    small: list[HolderRows] = []
    large: list[HolderRows] = []
    for owned in held:
        # A proposition has no terms that a plan could join it with.
        fits = owned.rows <= options.gather_rows or not owned.holder.relation.arity
        (small if fits else large).append(owned)
    if sum(owned.rows for owned in small) <= options.driver_rows:
        written = files.write_partitions(write, ReadableRows(tuple(small), terms, workspace.hashing))
    else:
        tasks = [
            ReadableRows(tuple(group), terms, workspace.hashing)
            for group in groups(small, lambda owned: owned.rows, workspace.jobs.cores)
        ]
        results = workspace.jobs.each(partial(files.write_partitions, write), tasks, "writing a store")
        written = [file for result in results for file in result]
    for owned in large:
        written += files.write_by_plan(workspace, owned, terms, write)
    return written


def _owners(info: RestoreInfo) -> Iterator[frozenset[str]]:
    yield _EXPLICIT
    for node in info.graph.nodes.values():
        yield frozenset(node.rules)


def _segment(
    owner: frozenset[str], rules: Mapping[str, Rule], contents: Mapping[Holder, Sequence[DataFile]]
) -> Segment:
    """Return the segment of an owner."""
    own = {holder: SignedFiles.of(*files) for holder, files in contents.items()}
    aggregate_rows = {rule: SignedFiles() for rule in owner if rules[rule].aggregate}
    aggregate_rows |= {h.relation.name: content for h, content in own.items() if h.kind == "aggregate"}
    if not aggregate_rows.keys() <= owner:
        raise KeyError(next(iter(aggregate_rows.keys() - owner)))
    derived = {h.relation: content for h, content in own.items() if h.kind != "aggregate"}
    return Segment(derived, aggregate_rows)


def _single(held: HolderRows) -> dict[PartitionKey, Signature]:
    if not held.content.rows:
        return {}
    kind, owner, relation = held.holder
    return {PartitionKey(kind, owner, *relation): Signature(held, held.content.layers)}


def _by_class(state: SparkState, held: HolderRows) -> dict[PartitionKey, Signature]:
    """Return a partition for each class that is an IRI, and one for all other classes."""
    kind, owner, _ = held.holder
    content = held.content
    names = state.named(content.classes)
    grouped: dict[PartitionKey, set[int]] = {}
    for class_ in content.classes:
        grouped.setdefault(PartitionKey(kind, owner, *class_predicate(names[class_])), set()).add(class_)
    signatures = {}
    for key, classes in grouped.items():
        layers = tuple(layer for layer in content.layers if classes & layer[1].classes.keys())
        signatures[key] = Signature(HolderRows(held.holder, content, frozenset(classes)), layers)
    return signatures
