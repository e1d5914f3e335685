"""Two versions that should have the same facts: tasks sum up files, and look closer only where sums differ.

A task tells of each file and class how many rows it has and the sum of their hashes. What an owner has is the
sum of the files that came less those that went. Only a relation that some owner has otherwise can be visible
otherwise. Of such relations rows are held side by side, in parts where they are many, and a task tells how
many are apart, and one of them.
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
from zodiacedge.engine.spark.storage.embedded_tables import Reader
from zodiacedge.engine.spark.storage.files import DataFile, Relation, Segment, SignedFiles, held, read_file
from zodiacedge.engine.spark.storage.terms import TermFiles
from zodiacedge.language.ast import Fact, Predicate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.evaluate.seminaive import Owners
    from zodiacedge.engine.spark.storage.embedded_tables import Read
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

    Sums = dict[int, tuple[int, int]]
    """Rows and the sum of their hashes: by class, or as a whole under 0."""

_WORD = 2**64
_WHY = "comparing with another version"


@dataclass(frozen=True)
class _Pair:
    """What a node has of a relation in two versions; what all owners have where there is no node."""

    node: frozenset[str] | None
    relation: Relation
    ours: tuple[SignedFiles, ...]
    theirs: tuple[SignedFiles, ...]

    @property
    def contents(self) -> tuple[SignedFiles, ...]:
        return (*self.ours, *self.theirs)


class _Unlike(NamedTuple):
    """Rows of a class, or of a relation, that two versions do not both have: how many, and one of them."""

    missing: int
    extra: int
    example: tuple[int, ...]

    def beside(self, other: _Unlike) -> _Unlike:
        return _Unlike(
            self.missing + other.missing, self.extra + other.extra, min(self.example, other.example)
        )


def mismatches(
    ours: SparkVersion, theirs: SparkVersion, nodes: Sequence[frozenset[str]], turn: YieldPoint
) -> Iterator[Mismatch]:
    """Yield where two versions of one place differ: in what is visible, and in what nodes have."""
    place = ours.workspace
    mine, others = (owners_of(state.explicit_files, state.segments) for state in (ours, theirs))
    unlike = _owners_apart(place, mine, others, turn)
    wanted = set(nodes)
    all_of_ours, all_of_theirs = (
        held((state.explicit_files, *state.segments.values())) for state in (ours, theirs)
    )
    visible = [
        _Pair(None, relation, tuple(all_of_ours.get(relation, ())), tuple(all_of_theirs.get(relation, ())))
        for relation in dict.fromkeys(pair.relation for pair in unlike)
    ]
    asked = [*visible, *(pair for pair in unlike if pair.node in wanted)]
    lookup = Lookup(place, TermFiles(tuple(dict.fromkeys((*ours.terms.parts, *theirs.terms.parts)))))
    for pair, found in zip(asked, _side_by_side(place, asked, turn), strict=True):
        yield from _named(pair, found, lookup)


def mismatched_relations(ours: SparkVersion, theirs: SparkVersion, turn: YieldPoint) -> tuple[Relation, ...]:
    """Return the relations of which some owner has other rows: no other can be visible otherwise."""
    mine, others = (owners_of(state.explicit_files, state.segments) for state in (ours, theirs))
    unlike = _owners_apart(ours.workspace, mine, others, turn)
    return tuple(dict.fromkeys(pair.relation for pair in unlike))


def _owners_apart(place: Workspace, mine: Owners, others: Owners, turn: YieldPoint) -> list[_Pair]:
    """Return what owners have otherwise in one version than in another."""
    pairs = [
        _Pair(owner, relation, (has.content(relation),), (should.content(relation),))
        for owner in {**mine, **others}
        for has, should in [(mine.get(owner, Segment()), others.get(owner, Segment()))]
        for relation in {**has.contents, **should.contents}
    ]
    return _unlike(place, pairs, turn)


def _named(pair: _Pair, found: Mapping[int, _Unlike], lookup: Lookup) -> Iterator[Mismatch]:
    """Yield what was found, by predicate: classes that are no IRIs are one together."""
    predicates: dict[Predicate, _Unlike] = {}
    names = lookup.decode(found) if pair.relation.typed else {}
    for one, unlike in found.items():
        predicate = class_predicate(names[one]) if pair.relation.typed else Predicate(*pair.relation)
        known = predicates.get(predicate)
        predicates[predicate] = unlike if known is None else known.beside(unlike)
    for predicate, (missing, extra, example) in predicates.items():
        terms = lookup.decode(example)
        fact = Fact(pair.relation.name, tuple(terms[key] for key in example))
        yield Mismatch(pair.node, predicate, missing, extra, fact)


# Sums of files.


def _unlike(place: Workspace, pairs: Iterable[_Pair], turn: YieldPoint) -> list[_Pair]:
    """Return the pairs of which both sides have different rows."""
    asked = [pair for pair in pairs if pair.ours != pair.theirs]
    units = _files(asked)
    rows = sum(unit.part.rows for unit in units)
    if rows <= place.options.driver_rows:
        found = [_sums(units)]
    else:
        work = groups(units, lambda unit: unit.part.rows, tasks_for(place, rows))
        found = place.jobs.each(_sums, work, _WHY, turn)
    sums = {path: one for some in found for path, one in some.items()}
    return [pair for pair in asked if _total(pair.ours, sums) != _total(pair.theirs, sums)]


def _files(pairs: Iterable[_Pair]) -> list[ShuffleInput]:
    """Return the files of some pairs, each once; the first argument tells which rows may be equal."""
    found = {
        part.path: ShuffleInput(part, pair.relation, 0)
        for pair in pairs
        for content in pair.contents
        for part in content.parts
    }
    return list(found.values())


def _sums(units: Iterable[ShuffleInput]) -> dict[str, Sums]:
    return {unit.part.path: _sum(unit.part, unit.relation) for unit in units}


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
        for came, part in content.layers:
            sign = 1 if came else -1
            for one, (count, total) in sums[part.path].items():
                rows, sum_of_rows = found.get(one, (0, 0))
                found[one] = (rows + sign * count, (sum_of_rows + sign * total) % _WORD)
    return {one: total for one, total in found.items() if total != (0, 0)}


# Rows side by side.


@dataclass(frozen=True)
class _Closer:
    """A task: pairs to be looked at row by row."""

    pairs: tuple[_Pair, ...]
    share: PartitionInput | None = None
    """What of them one part has, if not all."""


def _side_by_side(place: Workspace, pairs: Sequence[_Pair], turn: YieldPoint) -> list[dict[int, _Unlike]]:
    """Return of each pair what is apart, by class or as a whole under 0."""
    units = _files(pairs)
    rows = sum(unit.part.rows for unit in units)
    work = _Closer(tuple(pairs))
    if rows <= place.options.driver_rows:
        found = [_closer(work)]
    elif place.options.gathers(rows):
        found = [place.jobs.one(_closer, work, _WHY, turn)]
    else:
        dealt = shuffle(place, units, partition_count(place, rows), turn)
        shares = [replace(work, share=PartitionInput(blocks)) for blocks in dealt.blocks]
        found = place.jobs.each(_closer, shares, _WHY, turn)
    merged: list[dict[int, _Unlike]] = [{} for _ in pairs]
    for some in found:
        for into, more in zip(merged, some, strict=True):
            for one, unlike in more.items():
                into[one] = into[one].beside(unlike) if one in into else unlike
    return merged


def _closer(work: _Closer) -> list[dict[int, _Unlike]]:
    reader = Reader() if work.share is None else PartitionReader(work.share)
    return [_compared(reader, pair) for pair in work.pairs]


def _compared(reader: Reader, pair: _Pair) -> dict[int, _Unlike]:
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
        found[one] = _Unlike(int(-net[net < 0].sum()), int(net[net > 0].sum()), example)
    return found


def _signed(reads: Sequence[Read], relation: Relation) -> tuple[Keys, Keys]:
    """Return rows, and how often each stands there: what several owners have stands there once."""
    owners = [_layers(read, relation) for read in reads if read.layers]
    if len(owners) == 1:
        return owners[0]
    nothing = np.zeros((0, relation.width), np.int64)
    there = [rows[counts > 0] for rows, counts in (consolidated(*owner) for owner in owners)]
    rows = np.unique(np.concatenate((nothing, *there)), axis=0)
    return rows, np.ones(len(rows), np.int64)


def _layers(read: Read, relation: Relation) -> tuple[Keys, Keys]:
    rows = [np.stack(columns, axis=1) for _, columns in read.layers]
    signs = [1 if came else -1 for came, _ in read.layers]
    nothing = np.zeros((0, relation.width), np.int64)
    return np.concatenate((nothing, *rows)), np.repeat(signs, [len(one) for one in rows])
