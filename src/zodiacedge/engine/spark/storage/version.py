"""One version of a knowledge base on Spark: names of files and counts, never rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.registry import Registry
from zodiacedge.engine.spark.storage.files import Relation, Segment
from zodiacedge.engine.spark.storage.terms import ClassNames, TermFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.engine.api import Dropped, NodeRun
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term


@dataclass(frozen=True)
class SparkVersion:
    """One version: files and counts; `state.SparkState` answers questions about it."""

    workspace: Workspace
    explicit_files: Segment = field(default_factory=Segment)
    segments: Mapping[frozenset[str], Segment] = field(default_factory=dict)
    terms: TermFiles = field(default_factory=TermFiles)
    names: ClassNames = field(default_factory=lambda: ClassNames({}))
    introduced: frozenset[Term] = frozenset()
    """Terms that rules mention, as far as the files of terms are known to have them."""
    runs: tuple[NodeRun, ...] = ()
    dropped: Mapping[str, Dropped] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    rules: Mapping[str, Rule] = field(default_factory=dict)
    """The rules by key, as far as they are known: a node's successors need those before a change."""
    seconds: Mapping[frozenset[str], float] = field(default_factory=dict)
    """How long the last evaluation of nodes from scratch took, as far as it is known."""
    counted: Mapping[Relation, Mapping[int, int]] = field(default_factory=dict)
    """How many distinct rows of a relation nodes derive, by class or under 0, where a task counted them."""

    def named(self, keys: Iterable[int]) -> Mapping[int, Term]:
        """Return the names of classes."""
        asked = self.names.missing(keys)
        if asked:
            terms = self.terms.decode(np.array(asked, np.int64))
            return self.names.with_terms(terms).known
        return self.names.known
