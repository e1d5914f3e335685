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
from zodiacedge.engine.spark.evaluate.seminaive import owners_of
from zodiacedge.engine.spark.ingest.batch import class_predicate
from zodiacedge.engine.spark.lookup.decode import Lookup
from zodiacedge.engine.spark.partition.shuffle import (
    PartitionInput,
    PartitionReader,
    ShuffleInput,
    partition_count,
    shuffle,
)
from zodiacedge.engine.spark.storage.bin_packing import groups, tasks_for
from zodiacedge.engine.spark.storage.compaction import consolidated
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader
from zodiacedge.engine.spark.storage.files import DataFile, Relation, Segment, SignedFiles, held, read_file
from zodiacedge.engine.spark.storage.terms import TermFiles
from zodiacedge.language.ast import Fact, Predicate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.evaluate.seminaive import Owners
    from zodiacedge.engine.spark.storage.embedded_tables import SignedColumns
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

    Sums = dict[int, tuple[int, int]]
    """Rows and the sum of their hashes: by class, or as a whole under 0."""

_WORD = 2**64
_WHY = "comparing with another version"


@dataclass(frozen=True)
class _Pair:
    """The files of a node in a relation in two versions; of all owners if there is no node."""

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
    mine, others = (owners_of(state.explicit_files, state.segments) for state in (ours, theirs))
    different = _different_owners(workspace, mine, others, yield_point)
    wanted = set(nodes)
    all_of_ours, all_of_theirs = (
        held((state.explicit_files, *state.segments.values())) for state in (ours, theirs)
    )
    visible = [
        _Pair(None, relation, tuple(all_of_ours.get(relation, ())), tuple(all_of_theirs.get(relation, ())))
        for relation in dict.fromkeys(pair.relation for pair in different)
    ]
    asked = [*visible, *(pair for pair in different if pair.node in wanted)]
    lookup = Lookup(workspace, TermFiles(tuple(dict.fromkeys((*ours.terms.parts, *theirs.terms.parts)))))
    for pair, found in zip(asked, _compare_rows(workspace, asked, yield_point), strict=True):
        yield from _named(pair, found, lookup)


def mismatched_relations(
    ours: SparkVersion, theirs: SparkVersion, yield_point: YieldPoint
) -> tuple[Relation, ...]:
    """Return the relations in which some owner differs: visible facts of no other can differ."""
    mine, others = (owners_of(state.explicit_files, state.segments) for state in (ours, theirs))
    different = _different_owners(ours.workspace, mine, others, yield_point)
    return tuple(dict.fromkeys(pair.relation for pair in different))


def _different_owners(
    workspace: Workspace, mine: Owners, others: Owners, yield_point: YieldPoint
) -> list[_Pair]:
    """Return the owners and relations that differ between two versions."""
    pairs = [
        _Pair(owner, relation, (has.content(relation),), (should.content(relation),))
        for owner in {**mine, **others}
        for has, should in [(mine.get(owner, Segment()), others.get(owner, Segment()))]
        for relation in {**has.contents, **should.contents}
    ]
    return _different(workspace, pairs, yield_point)


def _named(pair: _Pair, found: Mapping[int, _Difference], lookup: Lookup) -> Iterator[Mismatch]:
    """Yield differences by predicate: classes that are no IRIs are one predicate together."""
    predicates: dict[Predicate, _Difference] = {}
    names = lookup.decode(found) if pair.relation.typed else {}
    for one, difference in found.items():
        predicate = class_predicate(names[one]) if pair.relation.typed else Predicate(*pair.relation)
        known = predicates.get(predicate)
        predicates[predicate] = difference if known is None else known.merged(difference)
    for predicate, (missing, extra, example) in predicates.items():
        terms = lookup.decode(example)
        fact = Fact(pair.relation.name, tuple(terms[key] for key in example))
        yield Mismatch(pair.node, predicate, missing, extra, fact)


# Checksums of files.


def _different(workspace: Workspace, pairs: Iterable[_Pair], yield_point: YieldPoint) -> list[_Pair]:
    """Return the pairs whose sides have different checksums."""
    asked = [pair for pair in pairs if pair.ours != pair.theirs]
    inputs = _files(asked)
    rows = sum(file.part.rows for file in inputs)
    if rows <= workspace.options.driver_rows:
        found = [_sums(inputs)]
    else:
        work = groups(inputs, lambda file: file.part.rows, tasks_for(workspace, rows))
        found = workspace.jobs.each(_sums, work, _WHY, yield_point)
    sums = {path: one for some in found for path, one in some.items()}
    return [pair for pair in asked if _total(pair.ours, sums) != _total(pair.theirs, sums)]


def _files(pairs: Iterable[_Pair]) -> list[ShuffleInput]:
    """Return the files of pairs, each once; rows that may be equal have the same first argument."""
    found = {
        part.path: ShuffleInput(part, pair.relation, 0)
        for pair in pairs
        for content in pair.contents
        for part in content.parts
    }
    return list(found.values())


def _sums(inputs: Iterable[ShuffleInput]) -> dict[str, Sums]:
    return {file.part.path: _sum(file.part, file.relation) for file in inputs}


def _sum(part: DataFile, relation: Relation) -> Sums:
    columns = read_file(part, relation.width)
    hashes = row_hashes(columns, len(columns[0]), relation.width)
    if not relation.typed:
        return {0: (len(hashes), int(hashes.sum(dtype=np.uint64)))}
    order = np.argsort(columns[1], kind="stable")
    classes, starts, counts = np.unique(columns[1][order], return_index=True, return_counts=True)
    sums = np.add.reduceat(hashes[order], starts) if len(starts) else hashes
    pairs = zip(counts.tolist(), sums.tolist(), strict=True)
    return dict(zip(classes.tolist(), pairs, strict=True))


def _total(contents: Iterable[SignedFiles], sums: Mapping[str, Sums]) -> Sums:
    found: Sums = {}
    for content in contents:
        for plus, part in content.layers:
            sign = 1 if plus else -1
            for one, (count, total) in sums[part.path].items():
                rows, sum_of_rows = found.get(one, (0, 0))
                found[one] = (rows + sign * count, (sum_of_rows + sign * total) % _WORD)
    return {one: total for one, total in found.items() if total != (0, 0)}


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
    inputs = _files(pairs)
    rows = sum(file.part.rows for file in inputs)
    work = _CompareTask(tuple(pairs))
    if rows <= workspace.options.driver_rows:
        found = [_compare(work)]
    elif workspace.options.gathers(rows):
        found = [workspace.jobs.one(_compare, work, _WHY, yield_point)]
    else:
        shuffled = shuffle(workspace, inputs, partition_count(workspace, rows), yield_point)
        tasks = [replace(work, partition=PartitionInput(blocks)) for blocks in shuffled.blocks]
        found = workspace.jobs.each(_compare, tasks, _WHY, yield_point)
    merged: list[dict[int, _Difference]] = [{} for _ in pairs]
    for some in found:
        for into, more in zip(merged, some, strict=True):
            for one, difference in more.items():
                into[one] = into[one].merged(difference) if one in into else difference
    return merged


def _compare(work: _CompareTask) -> list[dict[int, _Difference]]:
    reader = SignedFileReader() if work.partition is None else PartitionReader(work.partition)
    return [_compared(reader, pair) for pair in work.pairs]


def _compared(reader: SignedFileReader, pair: _Pair) -> dict[int, _Difference]:
    relation = pair.relation
    mine, others = (
        _signed([reader.read(relation, content) for content in side], relation)
        for side in (pair.ours, pair.theirs)
    )
    rows, counts = consolidated(np.concatenate((mine[0], others[0])), np.concatenate((mine[1], -others[1])))
    if not len(rows):
        return {}
    classes = rows[:, 1] if relation.typed else np.zeros(len(rows), np.int64)
    order = np.argsort(classes, kind="stable")
    each, starts = np.unique(classes[order], return_index=True)
    found = {}
    for one, chosen in zip(each.tolist(), np.split(order, starts[1:]), strict=True):
        net = counts[chosen]
        example = tuple(rows[chosen[0]][: relation.arity].tolist())
        found[one] = _Difference(int(-net[net < 0].sum()), int(net[net > 0].sum()), example)
    return found


def _signed(reads: Sequence[SignedColumns], relation: Relation) -> tuple[Keys, Keys]:
    """Return rows and their counts; a row that several owners have counts once."""
    owners = [_layers(read, relation) for read in reads if read.layers]
    if len(owners) == 1:
        return owners[0]
    nothing = np.zeros((0, relation.width), np.int64)
    there = [rows[counts > 0] for rows, counts in (consolidated(*owner) for owner in owners)]
    rows = np.unique(np.concatenate((nothing, *there)), axis=0)
    return rows, np.ones(len(rows), np.int64)


def _layers(read: SignedColumns, relation: Relation) -> tuple[Keys, Keys]:
    rows = [np.stack(columns, axis=1) for _, columns in read.layers]
    signs = [1 if plus else -1 for plus, _ in read.layers]
    nothing = np.zeros((0, relation.width), np.int64)
    return np.concatenate((nothing, *rows)), np.repeat(signs, [len(piece) for piece in rows])
