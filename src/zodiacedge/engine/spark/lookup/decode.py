"""Decodes rows of fingerprints to facts: a relation at a time, each fact once.

The driver reads few rows from the files itself. Many rows Spark makes distinct and joins with the terms of
their fingerprints; the driver reads the result a batch at a time and holds no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.spark.lookup.count_distinct import count
from zodiacedge.engine.spark.lookup.row_filter import ALL, RowFilter
from zodiacedge.engine.spark.partition.merge_terms import terms_frame
from zodiacedge.engine.spark.storage.dataframes import Frames, in_tables
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader, Translation, union
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
    from pyspark.sql import DataFrame

    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.terms import Term


# So many rows are decoded at once.
_TOGETHER = 65_536
_ROWS_PER_FILE = 1 << 19
# So many decoded terms are cached.
_MOST_TERMS = 200_000


@dataclass(frozen=True)
class Lookup:
    """Reads rows and decodes their terms."""

    workspace: Workspace
    terms: TermFiles

    def facts(
        self,
        relation: Relation,
        contents: Iterable[SignedFiles],
        choice: RowFilter = ALL,
        most: int | None = None,
    ) -> Iterator[Fact]:
        """Yield the distinct facts of several owners that pass a filter, all or so many of them."""
        held = [content for content in contents if choice.held(content)]
        if sum(map(choice.stored, held)) > self.workspace.options.driver_rows and relation.arity:
            if most is None:
                yield from self._streamed(relation, held, choice)
            else:
                yield from self._named(relation, self._some(relation, held, choice, most))
            return
        translation = Translation({}, self.workspace.hashing)
        rows = self._rows(relation, held, translation, choice)[:most]
        for start in range(0, len(rows), _TOGETHER):
            piece = rows[start : start + _TOGETHER]
            keys = translation.keys(np.ascontiguousarray(piece).ravel())
            yield from self._named(relation, keys.reshape(len(piece), relation.arity).tolist())

    def _named(self, relation: Relation, rows: Sequence[Sequence[int]]) -> Iterator[Fact]:
        terms = self.decode(key for row in rows for key in row)
        for row in rows:
            yield Fact(relation.name, tuple(terms[key] for key in row))

    def count(self, relation: Relation, contents: Iterable[SignedFiles]) -> dict[int, int]:
        """Count the distinct rows of several owners: by class, or as a whole under 0."""
        return count(self.workspace, relation, tuple(contents))

    def holds(self, term: Term, segment: Segment) -> bool:
        """Whether some fact of a segment has a term as an argument."""
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
        asked = np.array([key for key in set(keys) if key not in known], np.int64)
        if len(asked):
            known |= self.terms.decode(asked)
        return known

    @cached_property
    def _known(self) -> dict[int, Term]:
        return {}

    def _rows(
        self,
        relation: Relation,
        contents: Sequence[SignedFiles],
        translation: Translation,
        choice: RowFilter = ALL,
    ) -> Ids:
        reader = SignedFileReader()
        reads = [reader.read(relation, content, choice.classes) for content in contents]
        rows = union([read.table(translation) for read in reads], relation.arity).rows
        return choice.among(rows, translation)

    def _has(self, relation: Relation, content: SignedFiles, key: int) -> bool:
        if content.stored > self.workspace.options.driver_rows:
            frame = Frames(self.workspace).content(relation, content)
            asked = " or ".join(f"c{n} = {key}" for n in range(relation.arity))
            return bool(self.workspace.jobs.run(frame.where(asked).limit(1).collect, "looking for a term"))
        translation = Translation({}, self.workspace.hashing)
        (number,) = translation.ids(np.array([key], np.int64))
        return bool((self._rows(relation, [content], translation) == number).any())

    # By Spark.

    def readable(
        self, relation: Relation, contents: Iterable[SignedFiles], choice: RowFilter = ALL
    ) -> DataFrame:
        """Return the distinct rows of several owners with the columns of terms that `facts_of` decodes."""
        workspace = self.workspace
        frame = self._distinct(relation, contents, choice)
        terms = terms_frame(workspace, self.terms).dropDuplicates(["id"])
        for n in range(relation.arity):
            named = terms.toDF(f"c{n}", f"k{n}", f"b{n}", f"t{n}")
            frame = frame.join(named, f"c{n}")
        return frame.select(*(f"{kind}{n}" for n in range(relation.arity) for kind in "kbt"))

    def _distinct(self, relation: Relation, contents: Iterable[SignedFiles], choice: RowFilter) -> DataFrame:
        frame = Frames(self.workspace).union(relation, contents)
        return (frame.where(choice.condition) if choice.condition else frame).distinct()

    def _some(
        self, relation: Relation, contents: Sequence[SignedFiles], choice: RowFilter, most: int
    ) -> Sequence[Sequence[int]]:
        frame = self._distinct(relation, contents, choice).limit(most)
        return self.workspace.jobs.run(frame.collect, "looking for facts")

    def _streamed(
        self, relation: Relation, contents: Sequence[SignedFiles], choice: RowFilter
    ) -> Iterator[Fact]:
        workspace = self.workspace
        frame = self.readable(relation, contents, choice)
        writer = _Writer(workspace.scratch.folder)
        written = workspace.jobs.each_partition(writer, frame, "looking up what facts say")
        for part in [workspace.adopt(file) for file in written]:
            for batch in read_batches(part.path, _TOGETHER):
                yield from facts_of(relation, batch)


@dataclass(frozen=True)
class _Writer:
    """Writes the rows of a partition as they come, so many to a file."""

    folder: Folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[DataFile]:
        for table in in_tables(batches, _ROWS_PER_FILE):
            yield DataFile(self.folder.write(table, "facts"), len(table))


def facts_of(relation: Relation, batch: pa.RecordBatch) -> Iterator[Fact]:
    """Yield the facts of a relation from rows of terms."""
    dictionary = Dictionary()
    columns = [column.tolist() for column in enter_rows(batch, relation.arity, dictionary)]
    terms = [dictionary.decode(number) for number in range(len(dictionary))]
    for row in zip(*columns, strict=True):
        yield Fact(relation.name, tuple(terms[number] for number in row))
