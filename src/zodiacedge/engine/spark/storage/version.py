"""One version of a knowledge base on Spark: paths of files and counts, never rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.registry import Registry
from zodiacedge.engine.spark.storage.files import Owners, Relation, Segment
from zodiacedge.engine.spark.storage.terms import TermFiles
from zodiacedge.engine.spark.storage.windows import WINDOW_OWNER, Windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.engine.api import Dropped, NodeRun
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term


@dataclass(frozen=True)
class SparkVersion:
    """The data of one version; `state.SparkState` adds the interface of a state."""

    workspace: Workspace
    explicit_files: Segment = field(default_factory=Segment)
    segments: Mapping[frozenset[str], Segment] = field(default_factory=dict)
    terms: TermFiles = field(default_factory=TermFiles)
    names: Mapping[int, Term] = field(default_factory=dict)
    """The known names of classes, by fingerprint."""
    introduced: frozenset[Term] = frozenset()
    """Terms of rules that are known to be in the term files."""
    runs: tuple[NodeRun, ...] = ()
    dropped: Mapping[str, Dropped] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    rules: Mapping[str, Rule] = field(default_factory=dict)
    """The known rules by key: a change needs the old rules of a node for its successors."""
    seconds: Mapping[frozenset[str], float] = field(default_factory=dict)
    """Seconds of the last evaluation of a node from scratch, where known."""
    counted: Mapping[Relation, Mapping[int, int]] = field(default_factory=dict)
    """The number of distinct derived rows of a relation, by class or under 0, where a task counted them."""
    windows: Windows = field(default_factory=Windows)

    @property
    def owners(self) -> Owners:
        """The explicit facts and the segments, by owner."""
        return {None: self.explicit_files, **dict(self.segments.items())}

    @property
    def read_owners(self) -> Owners:
        """All owners that rules read: those of the facts, and the rows of windows."""
        return {**self.owners, WINDOW_OWNER: self.windows.segment}

    def named(self, keys: Iterable[int]) -> Mapping[int, Term]:
        """Return the names of classes."""
        missing = [key for key in keys if key not in self.names]
        return {**self.names, **self.terms.decode(np.array(missing, np.int64))} if missing else self.names
