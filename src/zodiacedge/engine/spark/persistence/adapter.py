"""How the states of the engine `spark` are kept in a store: tasks read and write its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.persistence import columns as embedded
from zodiacedge.engine.parts import PartitionKey
from zodiacedge.engine.persistence import BadPartitionError, PartitionFiles
from zodiacedge.engine.spark.ingest.batch import SparkBatch, SparkFactDelta, class_predicate
from zodiacedge.engine.spark.partition.merge_terms import merged
from zodiacedge.engine.spark.persistence import files
from zodiacedge.engine.spark.persistence.files import Held, Holder, Loaded, Loading, Readable, Writing
from zodiacedge.engine.spark.state import SparkState, SparkUncommitted
from zodiacedge.engine.spark.storage.bin_packing import groups
from zodiacedge.engine.spark.storage.files import Relation, Segment, SignedFiles
from zodiacedge.engine.spark.storage.terms import ClassNames, TermFiles
from zodiacedge.engine.yield_point import ALONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from zodiacedge.engine.api import Batch, FactDelta, State, UncommittedState
    from zodiacedge.engine.parts import Kind
    from zodiacedge.engine.persistence import PartitionFile, Partitions, PartitionWriter, RestoreInfo
    from zodiacedge.engine.spark.storage.files import DataFile
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.language.ast import Rule

    Layers = tuple[tuple[bool, DataFile], ...]

_NOBODY: frozenset[str] = frozenset()
# Files of fewer bytes than this together are read by the driver; a task reads about as many.
_BYTES_PER_TASK = 8 << 20
# A part of a holder with at most so many rows is written as a whole when it changes.
_REWRITTEN = 50_000


@dataclass(frozen=True)
class Signature:
    """What a part is made of: the rows of somebody, and of them those files that have some of the part's."""

    held: Held
    layers: Layers


class SparkPersistence:
    """What the engine `spark` offers to a store."""

    # Out of a store.

    def restored(self, empty: State, parts: Partitions, told: RestoreInfo) -> SparkState:
        """Return a state with the facts of some parts, on an empty one; nothing is evaluated."""
        workspace = _state(empty).workspace
        pieces = _sound(_loaded(workspace, parts))
        contents: dict[frozenset[str], dict[Holder, list[DataFile]]] = {}
        names = ClassNames({})
        for piece in pieces:
            names = names.with_terms(piece.names)
            for holder, part in piece.rows.items():
                contents.setdefault(holder.owner, {}).setdefault(holder, []).append(workspace.adopt(part))
        terms = TermFiles(tuple(workspace.adopt(piece.terms) for piece in pieces if piece.terms.rows))
        if len(terms.parts) > 1:
            terms = merged(workspace, terms, TermFiles(), ALONE)
        segments = {keys: _segment(keys, told.rules, contents.pop(keys, {})) for keys in _nodes(told)}
        if contents:
            raise KeyError(next(holder for own in contents.values() for holder in own).relation.name)
        return SparkState(
            workspace,
            segments.pop(_NOBODY),
            segments,
            terms,
            names,
            dropped=dict(told.dropped),
            registry=told.registry,
            rules=dict(told.rules),
        )

    def add_part(self, batch: Batch, key: PartitionKey, table: pa.Table) -> None:
        """Add the facts of a part to a batch."""
        embedded.add_part(_batch(batch).given, key, table)

    def add_parts(self, batch: Batch, parts: Partitions) -> None:
        """Add the facts of files to a batch: tasks read them, however few there are."""
        into = _batch(batch)
        for piece in _sound(_loaded_by_tasks(into.workspace, parts)):
            rows = {holder.relation: part for holder, part in piece.rows.items()}
            into.take(rows, piece.terms, piece.names)

    # Counts.

    def counts(self, state: State) -> tuple[int, int]:
        """Return how many explicit facts there are, and how many facts all segments have together."""
        found = _state(state)
        return found.explicit_files.rows, sum(one.rows for one in found.segments.values())

    def counts_after(self, effect: FactDelta, attempt: UncommittedState) -> tuple[int, int]:
        """Return the same of what a change will come to."""
        del effect
        if not isinstance(attempt, SparkUncommitted):
            raise TypeError(attempt)
        return self.counts(attempt.after)

    def seconds(self, state: State) -> dict[frozenset[str], float]:
        """Return nothing: what a node takes on a cluster says nothing about it elsewhere."""
        del state
        return {}

    # Into a store.

    def explicit_delta(
        self, effect: FactDelta, write: PartitionWriter
    ) -> tuple[Iterable[tuple[PartitionKey, pa.Table | PartitionFile]], ...]:
        """Return the explicit facts that come and those that go: as tables, or as files if they are many."""
        if not isinstance(effect, SparkFactDelta):
            raise TypeError(effect)
        sides = [
            [
                Held(Holder("explicit", _NOBODY, relation), SignedFiles.of(*parts))
                for relation, parts in side.items()
            ]
            for side in (effect.effective_delta.inserted, effect.effective_delta.deleted)
        ]
        workspace, terms = effect.workspace, effect.terms
        if effect.added + effect.removed <= workspace.options.driver_rows:
            return tuple(list(Readable(tuple(side), terms, workspace.hashing)) for side in sides)
        return tuple(_written(workspace, side, terms, write) for side in sides)

    def signatures(self, state: State, rules: Mapping[str, Rule]) -> dict[PartitionKey, object]:
        """Return of each part what tells whether it changed in this process."""
        found: dict[PartitionKey, object] = {}
        one = _state(state)
        for owner, segment in ((_NOBODY, one.explicit_files), *one.segments.items()):
            kind: Kind = "derived" if owner else "explicit"
            for relation, content in segment.contents.items():
                held = Held(Holder(kind, owner, relation), content)
                found |= _members(one, held) if relation.typed else _whole(held)
            for rule, content in segment.aggregate_rows.items():
                found |= _whole(Held(Holder("aggregate", owner, _rows_of(rule, rules)), content))
        return found

    def changed_partitions(
        self,
        state: State,
        now: Mapping[PartitionKey, object],
        before: Mapping[PartitionKey, object],
        write: PartitionWriter,
    ) -> Iterator[tuple[PartitionKey, pa.Table | PartitionFiles]]:
        """Yield the parts whose signatures are not what they were.

        A large part that only gained rows gets a file of those beside the ones it has.
        """
        found = _state(state)
        beside: dict[PartitionKey, bool] = {}
        # Classes of one holder are read together.
        wanted: dict[tuple[Holder, Layers], set[int] | None] = {}
        for key, given in now.items():
            signature, was = _signature(given), before.get(key)
            layers = _signature(was).layers if was is not None else ()
            if was is not None and layers == signature.layers:
                continue
            more = signature.layers[len(layers) :]
            held = signature.held
            gained = bool(layers) and signature.layers[: len(layers)] == layers
            beside[key] = gained and held.content.rows > _REWRITTEN and all(came for came, _ in more)
            place = held.holder, more if beside[key] else held.content.layers
            if held.classes is None:
                wanted[place] = None
            else:
                wanted[place] = (wanted.get(place) or set()) | held.classes
        asked = [
            Held(holder, SignedFiles(layers), None if classes is None else frozenset(classes))
            for (holder, layers), classes in wanted.items()
        ]
        files: dict[PartitionKey, list[PartitionFile]] = {}
        for key, file in _written(found.workspace, asked, found.terms, write):
            files.setdefault(key, []).append(file)
        for key, some in files.items():
            yield key, PartitionFiles(tuple(some), beside[key])


def _loaded(workspace: Workspace, parts: Partitions) -> list[Loaded]:
    """Read files: a few here, many by tasks."""
    size = sum(parts.sizes())
    if size <= _BYTES_PER_TASK:
        return (
            [files.load(Loading(parts, workspace.scratch.folder, workspace.hashing))] if parts.files else []
        )
    return _loaded_by_tasks(workspace, parts)


def _loaded_by_tasks(workspace: Workspace, parts: Partitions) -> list[Loaded]:
    """Read files by tasks of about the same size."""
    sizes = dict(zip(parts.files, parts.sizes(), strict=True))
    most = max(1, min(len(sizes), -(-sum(sizes.values()) // _BYTES_PER_TASK)))
    work = [
        Loading(parts.chosen(files), workspace.scratch.folder, workspace.hashing)
        for files in groups(sizes, sizes.__getitem__, most)
    ]
    return workspace.jobs.each(files.load, work, "reading a store")


def _sound(pieces: list[Loaded]) -> list[Loaded]:
    """Return what tasks read, or raise if one of them met what is no part."""
    for piece in pieces:
        if piece.bad:
            raise BadPartitionError(piece.bad)
    return pieces


def _written(
    workspace: Workspace, held: Sequence[Held], terms: TermFiles, write: PartitionWriter
) -> list[tuple[PartitionKey, PartitionFile]]:
    """Write rows as files: few here, more by tasks, and what is too much for one by a plan."""
    options = workspace.options
    small: list[Held] = []
    large: list[Held] = []
    for one in held:
        # A proposition has no terms that a plan could join it with.
        fits = one.rows <= options.gather_rows or not one.holder.relation.arity
        (small if fits else large).append(one)
    rows = sum(one.rows for one in small)
    if rows <= options.driver_rows:
        found = files.write_parts(Writing(Readable(tuple(small), terms, workspace.hashing), write))
    else:
        grouped = groups(small, lambda one: one.rows, workspace.jobs.cores)
        work = [Writing(Readable(tuple(group), terms, workspace.hashing), write) for group in grouped]
        found = [
            one for some in workspace.jobs.each(files.write_parts, work, "writing a store") for one in some
        ]
    for one in large:
        found += files.write_by_plan(workspace, one, terms, write)
    return found


def _nodes(told: RestoreInfo) -> Iterator[frozenset[str]]:
    yield _NOBODY
    for node in told.graph.nodes.values():
        yield frozenset(node.rules)


def _segment(
    owner: frozenset[str], rules: Mapping[str, Rule], contents: Mapping[Holder, Sequence[DataFile]]
) -> Segment:
    """Return what an owner has."""
    own = {holder: SignedFiles.of(*parts) for holder, parts in contents.items()}
    hidden = {rule: SignedFiles() for rule in owner if rules[rule].aggregate}
    hidden |= {h.relation.name: content for h, content in own.items() if h.kind == "aggregate"}
    if not hidden.keys() <= owner:
        raise KeyError(next(iter(hidden.keys() - owner)))
    return Segment({h.relation: content for h, content in own.items() if h.kind != "aggregate"}, hidden)


def _rows_of(rule: str, rules: Mapping[str, Rule]) -> Relation:
    aggregate = rules[rule].aggregate
    if aggregate is None:
        raise AssertionError(rule)
    return Relation(rule, len(aggregate.groups) + len(aggregate.folds))


def _whole(held: Held) -> dict[PartitionKey, Signature]:
    if not held.content.rows:
        return {}
    kind, owner, relation = held.holder
    return {PartitionKey(kind, owner, *relation): Signature(held, held.content.layers)}


def _members(state: SparkState, held: Held) -> dict[PartitionKey, Signature]:
    """Return the parts that members are in: each class is one, those that are no IRIs are one together."""
    kind, owner, _ = held.holder
    content = held.content
    names = state.named(content.classes())
    grouped: dict[PartitionKey, set[int]] = {}
    for one in content.classes():
        grouped.setdefault(PartitionKey(kind, owner, *class_predicate(names[one])), set()).add(one)
    found = {}
    for key, classes in grouped.items():
        layers = tuple(layer for layer in content.layers if classes & layer[1].classes.keys())
        found[key] = Signature(Held(held.holder, content, frozenset(classes)), layers)
    return found


def _signature(given: object) -> Signature:
    if not isinstance(given, Signature):
        raise TypeError(given)
    return given


def _batch(batch: Batch) -> SparkBatch:
    if not isinstance(batch, SparkBatch):
        raise TypeError(batch)
    return batch


def _state(state: State) -> SparkState:
    if not isinstance(state, SparkState):
        raise TypeError(state)
    return state
