"""Decoding of rows of fingerprints to distinct facts, one relation at a time.

The driver decodes a small number of rows itself. For more rows, a Spark job joins the distinct rows with the
term files, and the driver reads the result in batches, so that it never holds all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.spark.lookup.row_filter import ALL, RowFilter
from zodiacedge.engine.spark.partition.merge_terms import with_terms
from zodiacedge.engine.spark.storage.dataframes import Frames, in_tables
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader, Translation
from zodiacedge.engine.spark.storage.files import (
    DataFile,
    Folder,
    Relation,
    Segment,
    SignedFiles,
    read_batches,
)
from zodiacedge.engine.spark.storage.terms import TermFiles, enter_rows
from zodiacedge.language.ast import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.terms import Term


# The number of rows that are decoded at once.
_ROWS_AT_ONCE = 65_536
_ROWS_PER_FILE = 1 << 19
# The maximum size of the cache of decoded terms.
_MOST_TERMS = 200_000


@dataclass(frozen=True)
class Decoder:
    """A reader of rows that decodes their terms."""

    workspace: Workspace
    terms: TermFiles
    _known: dict[int, Term] = field(default_factory=dict, init=False, repr=False, compare=False)
    """A cache of decoded terms."""

    def facts(
        self,
        relation: Relation,
        contents: Iterable[SignedFiles],
        row_filter: RowFilter = ALL,
        most: int | None = None,
    ) -> Iterator[Fact]:
        """Yield the distinct facts of several owners that match a filter: all, or at most `most`."""
        matching = [content for content in contents if row_filter.held(content)]
        if sum(map(row_filter.stored, matching)) > self.workspace.options.driver_rows and relation.arity:
            if most is None:
                yield from self._facts_by_job(relation, matching, row_filter)
            else:
                frame = self._distinct(relation, matching, row_filter).limit(most)
                rows = self.workspace.jobs.run(frame.collect, "looking for facts")
                yield from self._decoded(relation, rows)
            return
        translation = Translation({}, self.workspace.hashing)
        ids = self._rows(relation, matching, translation, row_filter)[:most]
        for start in range(0, len(ids), _ROWS_AT_ONCE):
            piece = ids[start : start + _ROWS_AT_ONCE]
            keys = translation.keys(np.ascontiguousarray(piece).ravel())
            yield from self._decoded(relation, keys.reshape(len(piece), relation.arity).tolist())

    def rows(self, rows: Sequence[Sequence[int]]) -> list[tuple[Term, ...]]:
        """Return rows of fingerprints as rows of terms."""
        terms = self.decode(key for row in rows for key in row)
        return [tuple(terms[key] for key in row) for row in rows]

    def _decoded(self, relation: Relation, rows: Sequence[Sequence[int]]) -> Iterator[Fact]:
        return (Fact(relation.name, row) for row in self.rows(rows))

    def holds(self, term: Term, segment: Segment) -> bool:
        """Whether a fact of a segment has a term as an argument."""
        key = self.workspace.hashing.key(term)
        if self.terms.decode(np.array([key], np.int64)).get(key) != term:
            return False
        return any(
            self._has(relation, content, key)
            for relation, content in segment.contents.items()
            if relation.arity and content.rows
        )

    def decode(self, keys: Iterable[int]) -> Mapping[int, Term]:
        """Return the terms of fingerprints."""
        known = self._known
        if len(known) > _MOST_TERMS:
            known.clear()
        new = np.array([key for key in set(keys) if key not in known], np.int64)
        if len(new):
            known |= self.terms.decode(new)
        return known

    def _rows(
        self,
        relation: Relation,
        contents: Sequence[SignedFiles],
        translation: Translation,
        row_filter: RowFilter = ALL,
    ) -> Ids:
        read = SignedFileReader().read(relation, contents, row_filter.classes)
        return row_filter.among(read.table(translation).rows, translation)

    def _has(self, relation: Relation, content: SignedFiles, key: int) -> bool:
        if content.stored > self.workspace.options.driver_rows:
            frame = Frames(self.workspace).content(relation, content)
            condition = " or ".join(f"c{n} = {key}" for n in range(relation.arity))
            return bool(
                self.workspace.jobs.run(frame.where(condition).limit(1).collect, "looking for a term")
            )
        translation = Translation({}, self.workspace.hashing)
        (number,) = translation.ids(np.array([key], np.int64))
        return bool((self._rows(relation, [content], translation) == number).any())

    def readable(
        self,
        relation: Relation,
        contents: Iterable[SignedFiles],
        row_filter: RowFilter = ALL,
        session: SparkSession | None = None,
    ) -> DataFrame:
        """Return the distinct rows of several owners as columns of terms, which `facts_of` decodes.

        The frame is of the engine's own session, or of the given one.
        """
        frame = self._distinct(relation, contents, row_filter, session)
        return with_terms(frame, relation.arity, self.terms)

    def _distinct(
        self,
        relation: Relation,
        contents: Iterable[SignedFiles],
        row_filter: RowFilter,
        session: SparkSession | None = None,
    ) -> DataFrame:
        frame = Frames(self.workspace, session=session).union(relation, contents)
        return (frame.where(row_filter.condition) if row_filter.condition else frame).distinct()

    def _facts_by_job(
        self, relation: Relation, contents: Sequence[SignedFiles], row_filter: RowFilter
    ) -> Iterator[Fact]:
        workspace = self.workspace
        frame = self.readable(relation, contents, row_filter)
        writer = partial(_write_rows, workspace.scratch.folder)
        written = workspace.jobs.each_partition(writer, frame, "decoding facts")
        for file in [workspace.adopt(file) for file in written]:
            for batch in read_batches(file.path, _ROWS_AT_ONCE):
                yield from facts_of(relation, batch)


def _write_rows(folder: Folder, batches: Iterator[pa.RecordBatch]) -> Iterator[DataFile]:
    """Write rows to files of limited size: the last stage of a job."""
    for table in in_tables(batches, _ROWS_PER_FILE):
        yield DataFile(folder.write(table, "facts"), len(table))


def facts_of(relation: Relation, batch: pa.RecordBatch) -> Iterator[Fact]:
    """Decode the facts of a relation from rows of terms."""
    dictionary = Dictionary()
    columns = [column.tolist() for column in enter_rows(batch, relation.arity, dictionary)]
    terms = [dictionary.decode(number) for number in range(len(dictionary))]
    for row in zip(*columns, strict=True):
        yield Fact(relation.name, tuple(terms[number] for number in row))
