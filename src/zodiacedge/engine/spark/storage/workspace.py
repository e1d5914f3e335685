"""The workspace of an engine: its cluster, its folder of working files, its fingerprints and options."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.maintain.strategy import Policy
from zodiacedge.engine.spark.storage.files import DataFile, ScratchFolder, Segment
from zodiacedge.engine.spark.storage.terms import Hashing
from zodiacedge.errors import Diagnostic, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame

    from zodiacedge.engine.spark.cluster.jobs import Jobs
    from zodiacedge.terms import Term


STRATEGIES = ("choose", "gathered", "partitioned", "rounds")


@dataclass(frozen=True)
class Options:
    """Options of evaluation."""

    strategy: str = "choose"
    """One of `STRATEGIES`: by shape and size, or always the same where it can be."""
    gather_rows: int = 4_000_000
    """How many rows one task may read and write, of all relations together."""
    driver_rows: int = 100_000
    """How many rows the driver reads from files itself, and how many a small change may look up."""
    look_up_from: int = 500_000
    """Where nodes read at least so many rows, the rows that a small change concerns are looked up by key."""
    whole_rows: int = 10_000
    """A relation of no more rows than this is read as a whole rather than looked up."""
    split_bytes: int = 32 << 20
    """How many bytes of a file of N-Triples one task reads."""
    policy: Policy = field(default_factory=Policy)

    def __post_init__(self) -> None:
        """Refuse an unknown strategy."""
        if self.strategy not in STRATEGIES:
            raise UsageProblem(
                Diagnostic(
                    "U013", f"there is no way {self.strategy!r}", f"choose one of {', '.join(STRATEGIES)}"
                )
            )

    def gathers(self, rows: int) -> bool:
        """Whether one task may have so many rows; none may if another strategy is asked for."""
        return self.strategy == "gathered" or (self.strategy == "choose" and rows <= self.gather_rows)


@dataclass(frozen=True)
class Workspace:
    """The resources that all versions of a knowledge base share."""

    jobs: Jobs
    scratch_uri: str = ""
    hashing: Hashing = field(default_factory=Hashing)
    options: Options = field(default_factory=Options)

    @cached_property
    def scratch(self) -> ScratchFolder:
        """The folder of working files, made when first needed."""
        scratch = ScratchFolder(self.scratch_uri)
        self.jobs.clean_up(scratch)
        return scratch

    def keys(self, terms: Iterable[Term]) -> dict[Term, int]:
        """Return the fingerprints of terms that rules mention; they are cached, being few."""
        given = list(terms)
        known = self._keys
        new = [term for term in given if term not in known]
        if new:
            known |= self.hashing.keys_of(new)
        return {term: known[term] for term in given}

    @cached_property
    def frames(self) -> dict[tuple[object, ...], DataFrame]:
        """The data frames that were used lately, by the names of their files."""
        return {}

    @cached_property
    def _keys(self) -> dict[Term, int]:
        return {}

    def adopt(self, part: DataFile) -> DataFile:
        """Keep a file that a task wrote until its `DataFile` is garbage."""
        return self.scratch.adopt(part)

    def adopt_segment(self, segment: Segment, kept: Iterable[DataFile] = ()) -> Segment:
        """Keep the files of a segment that a task returned; those of `kept` keep their `DataFile`."""
        adopt = _Adoption({part.path: part for part in kept}, self.scratch)
        return Segment(
            {relation: content.adopted(adopt) for relation, content in segment.contents.items()},
            {key: content.adopted(adopt) for key, content in segment.aggregate_rows.items()},
        )


@dataclass(frozen=True)
class _Adoption:
    known: Mapping[str, DataFile]
    scratch: ScratchFolder

    def __call__(self, part: DataFile) -> DataFile:
        known = self.known.get(part.path)
        return known if known is not None else self.scratch.adopt(part)
