"""The workspace of an engine: jobs, scratch folder, hash function of fingerprints, options."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.maintain.strategy import Policy
from zodiacedge.engine.spark.storage.files import DataFile, ScratchFolder, Segment
from zodiacedge.engine.spark.storage.terms import Hashing
from zodiacedge.errors import Diagnostic, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from zodiacedge.engine.spark.cluster.jobs import Jobs
    from zodiacedge.terms import Term


STRATEGIES = ("choose", "gathered", "partitioned", "rounds")


@dataclass(frozen=True)
class Options:
    """Options of evaluation."""

    strategy: str = "choose"
    """One of `STRATEGIES`: `choose` decides by shape and size, the others are used wherever possible."""
    gather_rows: int = 4_000_000
    """The maximum number of rows that one task reads and writes, over all relations."""
    driver_rows: int = 100_000
    """The maximum number of rows that the driver reads itself, and that a small change looks up."""
    look_up_from: int = 500_000
    """Where nodes read at least so many rows, a small change looks up the affected rows by key."""
    whole_rows: int = 10_000
    """A relation with at most so many rows is read completely instead of being looked up."""
    split_bytes: int = 32 << 20
    """The number of bytes of an N-Triples file that one task reads."""
    policy: Policy = field(default_factory=Policy)

    def __post_init__(self) -> None:
        """Refuse an unknown strategy."""
        if self.strategy not in STRATEGIES:
            raise UsageProblem(
                Diagnostic(
                    "U013",
                    f"there is no strategy {self.strategy!r}",
                    f"choose one of {', '.join(STRATEGIES)}",
                )
            )

    def gathers(self, rows: int) -> bool:
        """Whether a task may process so many rows; never if another strategy is requested."""
        return self.strategy == "gathered" or (self.strategy == "choose" and rows <= self.gather_rows)


@dataclass(frozen=True)
class Workspace:
    """The resources that all versions of a knowledge base share."""

    jobs: Jobs
    scratch_uri: str = ""
    hashing: Hashing = field(default_factory=Hashing)
    options: Options = field(default_factory=Options)
    frames: dict[tuple[object, ...], DataFrame] = field(default_factory=dict, init=False, compare=False)
    """A cache of DataFrames by the paths of their files."""
    _keys: dict[Term, int] = field(default_factory=dict, init=False, compare=False)

    @cached_property
    def scratch(self) -> ScratchFolder:
        """The folder of working files, created at first use."""
        scratch = ScratchFolder(self.scratch_uri)
        self.jobs.register_scratch(scratch)
        return scratch

    def keys(self, terms: Iterable[Term]) -> dict[Term, int]:
        """Return the fingerprints of the terms of rules; they are few, and cached."""
        wanted = list(terms)
        known = self._keys
        new = [term for term in wanted if term not in known]
        if new:
            known |= self.hashing.keys_of(new)
        return {term: known[term] for term in wanted}

    def adopt(self, file: DataFile) -> DataFile:
        """Take over a file that a task wrote: it is removed when its `DataFile` is garbage-collected."""
        return self.scratch.adopt(file)

    def adopt_segment(self, segment: Segment, kept: Iterable[DataFile] = ()) -> Segment:
        """Take over the files of a segment that a task returned; files in `kept` keep their `DataFile`."""
        known = {file.path: file for file in kept}

        def adopt(file: DataFile) -> DataFile:
            return known[file.path] if file.path in known else self.adopt(file)

        return Segment(
            {relation: content.adopted(adopt) for relation, content in segment.contents.items()},
            {key: content.adopted(adopt) for key, content in segment.aggregate_rows.items()},
        )
