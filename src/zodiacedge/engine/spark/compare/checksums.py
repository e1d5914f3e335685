"""Compares two versions that should have the same facts: by checksums of files, then row by row.

A task computes the number of rows of each file and class, and the sum of their hashes. The checksum of an
owner is that of its plus files less that of its minus files. Only a relation in which the checksums of an
owner differ can have a visible difference. Its rows are compared by tasks, partitioned where they are many;
a task returns the number of mismatches, and one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.api import Mismatch
from zodiacedge.engine.embedded.storage.row_algebra import row_hashes
from zodiacedge.engine.spark.ingest.batch import class_predicate
from zodiacedge.engine.spark.lookup.decode import Decoder
from zodiacedge.engine.spark.partition.shuffle import (
    PartitionInput,
    ShuffleInput,
    reader_of,
    shuffle,
)
from zodiacedge.engine.spark.storage.bin_packing import groups, tasks_for
from zodiacedge.engine.spark.storage.compaction import consolidated, signed_rows
from zodiacedge.engine.spark.storage.files import DataFile, Relation, Segment, SignedFiles, held, read_file
from zodiacedge.language.ast import Fact, Predicate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.embedded_tables import SignedColumns, SignedFileReader
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

    Sums = dict[int, tuple[int, int]]
    """Rows and the sum of their hashes: by class, or as a whole under 0."""

_WORD = 2**64
_WHY = "comparing with another version"


@dataclass(frozen=True)
class _Pair:
    """The files of a relation in two versions: those of a node, or those of all owners."""

    node: frozenset[str] | None
    relation: Relation
    ours: tuple[SignedFiles, ...]
    theirs: tuple[SignedFiles, ...]

    @property
    def contents(self) -> tuple[SignedFiles, ...]:
        return (*self.ours, *self.theirs)


class _Difference(NamedTuple):
    """The rows of a class or relation that only one of two versions has: how many, and one of them."""

    missing: int
    extra: int
    example: tuple[int, ...]

    def merged(self, other: _Difference) -> _Difference:
        return _Difference(
            self.missing + other.missing, self.extra + other.extra, min(self.example, other.example)
        )


def mismatches(
    ours: SparkVersion, theirs: SparkVersion, nodes: Sequence[frozenset[str]], yield_point: YieldPoint
) -> Iterator[Mismatch]:
    """Yield the differences of two versions of one workspace, in visible facts and in segments."""
    workspace = ours.workspace
    different = _different_owners(ours, theirs, yield_point)
    wanted = set(nodes)
    all_of_ours, all_of_theirs = (held(state.owners.values()) for state in (ours, theirs))
    visible = [
        _Pair(None, relation, tuple(all_of_ours.get(relation, ())), tuple(all_of_theirs.get(relation, ())))
        for relation in dict.fromkeys(pair.relation for pair in different)
    ]
    pairs = [*visible, *(pair for pair in different if pair.node in wanted)]
    lookup = Decoder(workspace, ours.terms.with_files(*theirs.terms.parts))
    for pair, differences in zip(pairs, _compare_rows(workspace, pairs, yield_point), strict=True):
        yield from _named(pair, differences, lookup)


def mismatched_relations(
    ours: SparkVersion, theirs: SparkVersion, yield_point: YieldPoint
) -> tuple[Relation, ...]:
    """Return the relations in which any owner differs: visible facts differ in no other relation."""
    different = _different_owners(ours, theirs, yield_point)
    return tuple(dict.fromkeys(pair.relation for pair in different))


def _different_owners(ours: SparkVersion, theirs: SparkVersion, yield_point: YieldPoint) -> list[_Pair]:
    """Return the owners and relations that differ between two versions."""
    mine, others = ours.owners, theirs.owners
    pairs = [
        _Pair(owner, relation, (has.content(relation),), (should.content(relation),))
        for owner in {**mine, **others}
        for has, should in [(mine.get(owner, Segment()), others.get(owner, Segment()))]
        for relation in {**has.contents, **should.contents}
    ]
    return _different(ours.workspace, pairs, yield_point)


def _named(pair: _Pair, differences: Mapping[int, _Difference], lookup: Decoder) -> Iterator[Mismatch]:
    """Yield differences by predicate: classes that are no IRIs are one predicate together."""
    predicates: dict[Predicate, _Difference] = {}
    names = lookup.decode(differences) if pair.relation.typed else {}
    for key, difference in differences.items():
        predicate = class_predicate(names[key]) if pair.relation.typed else Predicate(*pair.relation)
        known = predicates.get(predicate)
        predicates[predicate] = difference if known is None else known.merged(difference)
    for predicate, (missing, extra, example) in predicates.items():
        terms = lookup.decode(example)
        fact = Fact(pair.relation.name, tuple(terms[key] for key in example))
        yield Mismatch(pair.node, predicate, missing, extra, fact)


# Checksums of files.


def _different(workspace: Workspace, pairs: Iterable[_Pair], yield_point: YieldPoint) -> list[_Pair]:
    """Return the pairs whose sides have different checksums."""
    suspects = [pair for pair in pairs if pair.ours != pair.theirs]
    inputs = _inputs(suspects)
    rows = sum(read.file.rows for read in inputs)
    if rows <= workspace.options.driver_rows:
        sums = _sums(inputs)
    else:
        tasks = groups(inputs, lambda read: read.file.rows, tasks_for(workspace, rows))
        results = workspace.jobs.each(_sums, tasks, _WHY, yield_point)
        sums = {path: file_sums for result in results for path, file_sums in result.items()}
    return [pair for pair in suspects if _total(pair.ours, sums) != _total(pair.theirs, sums)]


def _inputs(pairs: Iterable[_Pair]) -> list[ShuffleInput]:
    """Return the files of pairs, each once, partitioned by the first argument: equal rows have the same."""
    inputs = {
        file.path: ShuffleInput(file, pair.relation, 0)
        for pair in pairs
        for content in pair.contents
        for file in content.parts
    }
    return list(inputs.values())


def _sums(inputs: Iterable[ShuffleInput]) -> dict[str, Sums]:
    return {read.file.path: _sum(read.file, read.relation) for read in inputs}


def _sum(file: DataFile, relation: Relation) -> Sums:
    columns = read_file(file, relation.width)
    hashes = row_hashes(columns, len(columns[0]), relation.width)
    if not relation.typed:
        return {0: (len(hashes), int(hashes.sum(dtype=np.uint64)))}
    order = np.argsort(columns[1], kind="stable")
    classes, starts, counts = np.unique(columns[1][order], return_index=True, return_counts=True)
    sums = np.add.reduceat(hashes[order], starts) if len(starts) else hashes
    pairs = zip(counts.tolist(), sums.tolist(), strict=True)
    return dict(zip(classes.tolist(), pairs, strict=True))


def _total(contents: Iterable[SignedFiles], sums: Mapping[str, Sums]) -> Sums:
    totals: Sums = {}
    for content in contents:
        for plus, file in content.layers:
            sign = 1 if plus else -1
            for key, (count, hashes) in sums[file.path].items():
                rows, total = totals.get(key, (0, 0))
                totals[key] = (rows + sign * count, (total + sign * hashes) % _WORD)
    return {key: total for key, total in totals.items() if total != (0, 0)}


# Rows compared.


@dataclass(frozen=True)
class _CompareTask:
    """A task: pairs to compare row by row."""

    pairs: tuple[_Pair, ...]
    partition: PartitionInput | None = None
    """The input of one partition, if not all rows are compared."""


def _compare_rows(
    workspace: Workspace, pairs: Sequence[_Pair], yield_point: YieldPoint
) -> list[dict[int, _Difference]]:
    """Return the difference of each pair, by class or as a whole under 0."""
    inputs = _inputs(pairs)
    rows = sum(read.file.rows for read in inputs)
    task = _CompareTask(tuple(pairs))
    if rows <= workspace.options.driver_rows:
        return _compare(task)
    if workspace.options.gathers(rows):
        return workspace.jobs.one(_compare, task, _WHY, yield_point)
    tasks = [replace(task, partition=part) for part in shuffle(workspace, inputs, rows, yield_point)]
    merged: list[dict[int, _Difference]] = [{} for _ in pairs]
    for result in workspace.jobs.each(_compare, tasks, _WHY, yield_point):
        for total, differences in zip(merged, result, strict=True):
            for key, difference in differences.items():
                total[key] = total[key].merged(difference) if key in total else difference
    return merged


def _compare(task: _CompareTask) -> list[dict[int, _Difference]]:
    reader = reader_of(task.partition)
    return [_compared(reader, pair) for pair in task.pairs]


def _compared(reader: SignedFileReader, pair: _Pair) -> dict[int, _Difference]:
    relation = pair.relation
    ours, theirs = (_signed(reader.read(relation, side)) for side in (pair.ours, pair.theirs))
    rows, counts = consolidated(np.concatenate((ours[0], theirs[0])), np.concatenate((ours[1], -theirs[1])))
    if not len(rows):
        return {}
    classes = rows[:, 1] if relation.typed else np.zeros(len(rows), np.int64)
    order = np.argsort(classes, kind="stable")
    keys, starts = np.unique(classes[order], return_index=True)
    differences = {}
    for key, positions in zip(keys.tolist(), np.split(order, starts[1:]), strict=True):
        net = counts[positions]
        example = tuple(rows[positions[0]][: relation.arity].tolist())
        differences[key] = _Difference(int(-net[net < 0].sum()), int(net[net > 0].sum()), example)
    return differences


def _signed(read: SignedColumns) -> tuple[Keys, Keys]:
    """Return rows and their counts; a row that several owners have counts once."""
    owners = [signed_rows(layers) for layers in read.owners if layers]
    if len(owners) == 1:
        return owners[0]
    empty = np.zeros((0, read.relation.width), np.int64)
    existing = [rows[counts > 0] for rows, counts in (consolidated(*owner) for owner in owners)]
    rows = np.unique(np.concatenate((empty, *existing)), axis=0)
    return rows, np.ones(len(rows), np.int64)
