"""Which facts of a change really come and go: a task that compares them with the explicit facts there are.

Terms of the change that nobody knew yet are found here too, and compared with those that are known.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.spark.lookup.by_key import SliceReader, matching
from zodiacedge.engine.spark.partition.merge_terms import merged
from zodiacedge.engine.spark.partition.shuffle import (
    PartitionInput,
    PartitionReader,
    ShuffleInput,
    partition_count,
    shuffle,
)
from zodiacedge.engine.spark.storage.compaction import compact, small_parts
from zodiacedge.engine.spark.storage.embedded_tables import Reader, Translation
from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation, SignedFiles
from zodiacedge.engine.spark.storage.terms import SCHEMA, Hashing, TermFiles, unseen, write_terms
from zodiacedge.engine.yield_point import ALONE
from zodiacedge.language.ast import Fact
from zodiacedge.language.printer import format_atom

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.spark.lookup.by_key import Wants
    from zodiacedge.engine.spark.storage.embedded_tables import Read
    from zodiacedge.engine.spark.storage.workspace import Workspace


# How many facts that are not there an example is looked for among.
_MOST_EXAMPLES = 1000
# A relation of so many layers, and of so few rows, is written anew.
_LAYERS = 6
_REWRITTEN = 50_000
# So few facts are looked for among those there are, if those are many times as many.
FEW = 10_000
_SHARE = 8


@dataclass(frozen=True)
class DeltaTask:
    """Facts to add and to remove, and the explicit facts of their relations."""

    add: Mapping[Relation, tuple[DataFile, ...]]
    remove: Mapping[Relation, tuple[DataFile, ...]]
    explicit: Mapping[Relation, SignedFiles]
    new_terms: TermFiles
    terms: TermFiles
    folder: Folder
    hashing: Hashing = field(default_factory=Hashing)
    share: PartitionInput | None = None
    """What of the facts one of several parts has; it leaves the terms to others."""


@dataclass(frozen=True)
class ExplicitDelta:
    """What facts to add and to remove come to."""

    new: Mapping[Relation, tuple[DataFile, ...]]
    """The rows to add that are not there."""
    old: Mapping[Relation, tuple[DataFile, ...]]
    """The rows to remove that are there and are not added again."""
    idle: int
    missing: int
    example: Fact | None
    terms: tuple[DataFile, ...]
    """The terms that nobody knew."""
    small_terms: DataFile | None = None
    """The terms of many small files, in one."""
    whole: Mapping[Relation, DataFile] = field(default_factory=dict)
    """All rows that will be there, of relations that had become many small files."""


def run(sift: DeltaTask) -> ExplicitDelta:
    """Find out what comes and goes."""
    reads: dict[Relation, tuple[Read, list[Read], list[Read]]] = {}
    looked_up: set[Relation] = set()
    shared = None if sift.share is None else PartitionReader(sift.share)
    for relation in {**sift.add, **sift.remove}:
        reader = shared or Reader()
        added = [reader.read(relation, SignedFiles.of(part)) for part in sift.add.get(relation, ())]
        removed = [reader.read(relation, SignedFiles.of(part)) for part in sift.remove.get(relation, ())]
        content = sift.explicit.get(relation, SignedFiles())
        few = sum(len(columns[0]) for read in (*added, *removed) for _, columns in read.layers)
        if shared is None and few <= FEW and content.stored > max(few * _SHARE, _REWRITTEN):
            looked_up.add(relation)
            reads[relation] = (_matching(relation, content, (*added, *removed)), added, removed)
        else:
            reads[relation] = (reader.read(relation, content), added, removed)
    translation = Translation({}, sift.hashing)
    new: dict[Relation, tuple[DataFile, ...]] = {}
    old: dict[Relation, tuple[DataFile, ...]] = {}
    absent: dict[Relation, Ids] = {}
    whole: dict[Relation, DataFile] = {}
    idle = 0
    for relation, (there, added, removed) in reads.items():
        table = there.table(translation)
        coming, going = Table(relation.arity), Table(relation.arity)
        for target, given in ((coming, added), (going, removed)):
            for read in given:
                for _, columns in read.layers:
                    target.insert(translation.rows(columns, relation.arity))
        fresh = table.filter(coming.rows, present=False)
        idle += len(coming) - len(fresh)
        leaving = coming.filter(table.filter(going.rows, present=True), present=False)
        absent[relation] = table.filter(going.rows, present=False)
        for found, rows in ((new, fresh), (old, leaving)):
            if len(rows):
                part = sift.folder.write_rows(relation, _columns(translation, relation, rows))
                found[relation] = (part,)
        whole_read = shared is None and relation not in looked_up and len(table) <= _REWRITTEN
        if whole_read and len(there.layers) >= _LAYERS and (len(fresh) or len(leaving)):
            table.delete(leaving)
            table.insert(fresh)
            whole[relation] = sift.folder.write_rows(relation, _columns(translation, relation, table.rows))
    missing = sum(map(len, absent.values()))
    example = _example(sift, absent, translation)
    if shared is not None:
        return ExplicitDelta(new, old, idle, missing, example, ())
    fresh_terms = sift.new_terms.read() if sift.new_terms.parts else SCHEMA.empty_table()
    terms = write_terms(sift.folder, unseen(fresh_terms, sift.terms))
    small = small_parts(sift.terms)
    small_terms = compact(sift.folder, small) if small else None
    fresh_parts = (terms,) if terms.rows else ()
    return ExplicitDelta(new, old, idle, missing, example, fresh_parts, small_terms, whole)


def _matching(relation: Relation, content: SignedFiles, given: Sequence[Read]) -> Read:
    """Read of a content only what is given: where it is much, only that can matter."""
    rows = {
        row
        for read in given
        for _, columns in read.layers
        for row in zip(*(column.tolist() for column in columns), strict=True)
    }
    wants: Wants = {tuple(range(relation.arity)): rows}
    found = {}
    for part in content.parts:
        columns = matching(part.path, relation.width, wants, part.rows)
        if columns is not None:
            found[part.path] = columns
    return SliceReader(found).read(relation, content)


def _columns(translation: Translation, relation: Relation, rows: Ids) -> list[NDArray[np.int64]]:
    if not relation.arity:
        return [np.zeros(len(rows), np.int64)]
    return [translation.keys(rows[:, n]) for n in range(relation.arity)]


def _example(sift: DeltaTask, absent: Mapping[Relation, Ids], translation: Translation) -> Fact | None:
    some = {relation: rows[:_MOST_EXAMPLES] for relation, rows in absent.items() if len(rows)}
    if not some:
        return None
    keys = {relation: _columns(translation, relation, rows) for relation, rows in some.items()}
    return _first(sift, keys)


def _first(sift: DeltaTask, keys: Mapping[Relation, list[NDArray[np.int64]]]) -> Fact | None:
    known = TermFiles((*sift.terms.parts, *sift.new_terms.parts))
    asked = [column for relation, columns in keys.items() if relation.arity for column in columns]
    terms = known.decode(np.concatenate(asked)) if asked else {}
    facts = [
        Fact(relation.name, tuple(terms[key] for key in row))
        for relation, columns in keys.items()
        for row in (zip(*(c.tolist() for c in columns), strict=True) if relation.arity else [()])
    ]
    return min(facts, key=format_atom, default=None)


def in_parts(place: Workspace, sift: DeltaTask) -> ExplicitDelta:
    """Find out what comes and goes of facts that are dealt out by their first argument: three jobs."""
    units = [
        ShuffleInput(part, relation, 0)
        for relation in {**sift.add, **sift.remove}
        for parts in (
            sift.add.get(relation, ()),
            sift.remove.get(relation, ()),
            sift.explicit.get(relation, SignedFiles()).parts,
        )
        for part in parts
    ]
    count = partition_count(place, sum(unit.part.rows for unit in units))
    dealt = shuffle(place, units, count, ALONE)
    shares = [replace(sift, share=PartitionInput(blocks)) for blocks in dealt.blocks]
    found = place.jobs.each(run, shares, "comparing facts with those that are there")
    new, old = (_adopted(place, sides) for sides in ([one.new for one in found], [one.old for one in found]))
    known = merged(place, sift.new_terms, sift.terms, ALONE)
    examples = [one.example for one in found if one.example is not None]
    return ExplicitDelta(
        new,
        old,
        sum(one.idle for one in found),
        sum(one.missing for one in found),
        min(examples, key=format_atom, default=None),
        known.parts[len(sift.terms.parts) :],
    )


def _adopted(
    place: Workspace, sides: Iterable[Mapping[Relation, tuple[DataFile, ...]]]
) -> dict[Relation, tuple[DataFile, ...]]:
    """Return what several parts found."""
    found: dict[Relation, tuple[DataFile, ...]] = {}
    for side in sides:
        for relation, parts in side.items():
            found[relation] = (*found.get(relation, ()), *map(place.adopt, parts))
    return found
