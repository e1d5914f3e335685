"""The windows of the version after a change: the clock, the windows that rules read, and their rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.spark.partition.merge_terms import merged
from zodiacedge.engine.spark.storage.files import Relation, SignedFiles, read_file
from zodiacedge.engine.spark.storage.terms import TermFiles, entries_of, write_terms
from zodiacedge.engine.spark.storage.windows import WindowRows, Windows
from zodiacedge.engine.yield_point import ALONE
from zodiacedge.language.ast import Atom, Variable, conjuncts
from zodiacedge.language.vocabulary import NOW_RELATION, WINDOW_RELATION
from zodiacedge.language.windows import Window
from zodiacedge.terms import Literal, microseconds, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.engine.spark.ingest.batch import SparkFactDelta
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOW = Relation(NOW_RELATION, 2)
_ANY_WINDOW = Atom(WINDOW_RELATION, (Variable("moment"), Variable("window")))


def windows_after(
    before: SparkVersion,
    windows: Mapping[Literal, Window],
    fact_delta: SparkFactDelta,
    terms: TermFiles,
    yield_point: YieldPoint,
) -> Windows:
    """Return the windows that rules read after a change, given all terms before rules are evaluated."""
    old, delta = before.windows, fact_delta.effective_delta
    if delta.small_terms is not None:
        # Merged from files that the version before has.
        old = replace(old, seen=old.seen | {delta.small_terms.path})
    clock = old.clock
    if NOW in delta.deleted:
        clock = None
    if NOW in delta.inserted:
        clock = clock_of(delta.inserted[NOW], terms)
    return WindowRows(before.workspace, yield_point).moved(old, Windows(clock, windows), terms.parts)


def filled(version: SparkVersion, graph: HyperGraph) -> tuple[Windows, TermFiles]:
    """Return the windows of a version that was restored, and its terms with those of windows."""
    clock = clock_of(version.explicit_files.content(NOW), version.terms)
    new = Windows(clock, windows_of(version.rules, graph))
    terms = with_new_terms(version, new.windows, version.terms, ALONE)
    return WindowRows(version.workspace, ALONE).moved(Windows(), new, terms.parts), terms


def with_new_terms(
    before: SparkVersion, new: Iterable[Term], terms: TermFiles, yield_point: YieldPoint
) -> TermFiles:
    """Return the files of terms with those of windows, which rows have, and of moments that rules compute."""
    wanted = [term for term in new if term not in before.introduced]
    if not wanted:
        return terms
    workspace = before.workspace
    file = write_terms(workspace.scratch.folder, entries_of(wanted, workspace.hashing))
    return merged(workspace, TermFiles((workspace.adopt(file),)), terms, yield_point)


def windows_of(rules: Mapping[str, Rule], graph: HyperGraph) -> dict[Literal, Window]:
    """Return the windows that rules read."""
    bodies = (
        rules[key].body for number in graph.readers(_ANY_WINDOW).all for key in graph.nodes[number].rules
    )
    atoms = (c for body in bodies for c in conjuncts(body) if isinstance(c, Atom))
    terms = (atom.args[1] for atom in atoms if atom.relation == WINDOW_RELATION)
    return {term: Window.of(term) for term in terms if isinstance(term, Literal)}


def clock_of(content: SignedFiles, terms: TermFiles) -> int | None:
    """Return the latest moment of rows of the clock, in microseconds."""
    rows = [read_file(file, NOW.width)[1] for file in content.plus]
    keys = np.concatenate([np.zeros(0, np.int64), *rows])
    values = (value_of(term) for term in terms.decode(keys).values() if isinstance(term, Literal))
    moments = (value for value in values if isinstance(value, datetime))
    return max((microseconds(moment - EPOCH) for moment in moments), default=None)
