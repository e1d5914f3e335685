"""The workspace of an engine: jobs, scratch folder, hash function of fingerprints, options."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from zodiacedge.engine.embedded.maintain.strategy import Policy, unknown_strategy
from zodiacedge.engine.spark.storage.files import DataFile, ScratchFolder, Segment
from zodiacedge.engine.spark.storage.terms import Hashing
from zodiacedge.errors import Diagnostic, UsageProblem, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame

    from zodiacedge.engine.spark.cluster.jobs import Jobs
    from zodiacedge.terms import Term


STRATEGIES = ("choose", "gathered", "partitioned", "rounds")


# Those that are numbers, and those that a text can set.
_NUMBERS = ("gather_rows", "driver_rows", "look_up_from", "whole_rows", "split_bytes")
SETTABLE = ("strategy", *_NUMBERS, "ship")


@dataclass(frozen=True)
class Options:
    """Options of the engine `spark`; users know them as `ze.SparkOptions`."""

    strategy: str = "choose"
    """One of `STRATEGIES`: `choose` decides by shape and size, the others are used wherever possible."""
    gather_rows: int = 4_000_000
    """The maximum number of rows that one task reads and writes, over all relations."""
    driver_rows: int = 100_000
    """The maximum number of rows that the driver reads itself, and that a small change looks up."""
    look_up_from: int = 500_000
    """Where nodes read at least so many rows, a small change looks up the affected rows by key."""
    whole_rows: int = 25_000
    """A relation with at most so many rows is read completely instead of being looked up."""
    split_bytes: int = 32 << 20
    """The number of bytes of an N-Triples file that one task reads."""
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Settings of Spark, for a session that the engine starts."""
    ship: bool = True
    """Whether such a session sends the package to executors on other machines."""
    policy: Policy = field(default_factory=Policy)

    def __post_init__(self) -> None:
        """Refuse an unknown strategy, and numbers that are none."""
        for name in _NUMBERS:
            value = getattr(self, name)
            if not isinstance(value, int) or value < 0:
                message = f"{name} is a number of at least 0, not {value!r}"
                raise UsageProblem(Diagnostic("U013", message, f"its default is {getattr(Options, name):,}"))
        if self.strategy not in STRATEGIES:
            raise unknown_strategy(self.strategy, STRATEGIES)

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> Self:
        """Return the options of texts `name=value`; settings of Spark have names that begin with `spark.`."""
        given: dict[str, str] = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if not equals:
                hint = "write name=value: gather_rows=1000000, or spark.executor.memory=8g"
                raise UsageProblem(Diagnostic("U013", f"{text} is no option of Spark", hint))
            given[name.strip()] = value.strip()
        ours = {name: value for name, value in given.items() if not name.startswith("spark.")}
        theirs = {name: value for name, value in given.items() if name.startswith("spark.")}
        return cls(settings=theirs).updated(ours)

    def updated(self, texts: Mapping[str, str]) -> Self:
        """Return these options with those of texts by name."""
        values: dict[str, Any] = {}
        for name, text in texts.items():
            if name not in SETTABLE:
                near = nearest(name, SETTABLE)
                hint = f"did you mean {near}?" if near else f"choose one of: {', '.join(SETTABLE)}"
                raise UsageProblem(Diagnostic("U013", f"there is no option {name}", hint))
            values[name] = _value(name, text)
        return replace(self, **values)

    def gathers(self, rows: int) -> bool:
        """Whether a task may process so many rows; never if another strategy is requested."""
        return self.strategy == "gathered" or (self.strategy == "choose" and rows <= self.gather_rows)


def _value(name: str, text: str) -> str | int | bool:
    if name in _NUMBERS and text.replace("_", "").isdecimal():
        return int(text)
    if name == "ship" and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if name == "strategy":
        return text
    kind = "true or false" if name == "ship" else "a number"
    default = f"its default is {getattr(Options, name)}"
    raise UsageProblem(Diagnostic("U013", f"the option {name} is {kind}, not {text!r}", default))


@dataclass(frozen=True)
class Workspace:
    """The resources that all versions of a knowledge base share."""

    jobs: Jobs
    scratch_uri: str = ""
    hashing: Hashing = field(default_factory=Hashing)
    options: Options = field(default_factory=Options)
    frames: dict[tuple[object, ...], DataFrame] = field(default_factory=dict, init=False, compare=False)
    """A cache of DataFrames by the paths of their files."""
    _kept: list[object] = field(default_factory=list, init=False, compare=False, repr=False)
    """Files that DataFrames of users may still read."""
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

    def keep(self, *files: object) -> None:
        """Keep files as long as the workspace."""
        self._kept.extend(files)

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
