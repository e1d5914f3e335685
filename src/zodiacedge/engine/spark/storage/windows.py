"""Windows around the clock: the hidden relation of the moments in each, as files.

`language.windows` makes an atom of that relation, (moment, window), of each condition on `now`. A tick looks
up the moments that enter or leave a window (`moments`): they are the rows inserted and deleted, and rules
read them like any others. So a tick costs what is due, whatever a window holds. All known moments count,
whichever facts have them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.spark.storage.compaction import compacted
from zodiacedge.engine.spark.storage.files import Relation, Segment, SignedFiles
from zodiacedge.engine.spark.storage.moments import between, most_between
from zodiacedge.language.vocabulary import WINDOW_RELATION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.spark.storage.files import DataFile, Folder
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.language.windows import Window
    from zodiacedge.terms import Literal

WINDOWS = Relation(WINDOW_RELATION, 2)
WINDOW_OWNER = frozenset({WINDOW_RELATION})
"""The owner of the rows, beside the explicit facts and the nodes."""
_Span = tuple[int, int]  # after, up to: microseconds
_EMPTY: _Span = (0, 0)
_KeyedSpan = tuple[_Span, int]  # with the fingerprint of a window


@dataclass(frozen=True)
class Windows:
    """The windows of a version: the clock, in microseconds, the windows that rules read, and the rows."""

    clock: int | None = None
    windows: Mapping[Literal, Window] = field(default_factory=dict)
    content: SignedFiles = field(default_factory=SignedFiles)
    seen: frozenset[str] = frozenset()
    """The paths of the term files whose moments the rows take account of."""

    @property
    def segment(self) -> Segment:
        """The rows as a segment of their own."""
        return Segment({WINDOWS: self.content} if self.content.layers else {})

    def span(self, term: Literal) -> _Span:
        """Return the span of a window."""
        window = self.windows.get(term)
        return _EMPTY if window is None or self.clock is None else window.span(self.clock)

    def fresh(self, files: Iterable[DataFile]) -> dict[int, int]:
        """Return the moments in windows that the rows do not take account of: microseconds by fingerprint."""
        new = [file for file in files if file.path not in self.seen and file.span]
        spans = {self.span(term) for term in self.windows} if new else ()
        found = [between(new, *span) for span in spans]
        return {k: m for each in found for k, m in zip(each.keys.tolist(), each.micros.tolist(), strict=True)}


class _Task(NamedTuple):
    """The input of a task: writes the moments of files of terms that are in spans, as rows of windows."""

    files: tuple[DataFile, ...]
    spans: tuple[_KeyedSpan, ...]
    folder: Folder

    @property
    def most(self) -> int:
        """The most rows that it can write."""
        return sum(most_between(self.files, *span) for span, _ in self.spans)


class WindowRows(NamedTuple):
    """Writes the rows of windows."""

    workspace: Workspace
    yield_point: YieldPoint

    def moved(self, old: Windows, new: Windows, terms: Sequence[DataFile]) -> Windows:
        """Return windows with their rows: those of the version before, and what enters and leaves since.

        Args:
            old: The windows of the version before.
            new: The windows after a change, without rows.
            terms: The files of the terms that are known before rules are evaluated.
        """
        if not new.windows and not old.content.layers:
            return new
        workspace = self.workspace
        tasks = self._tasks(old, new, terms)
        if sum(task.most for task in tasks) <= workspace.options.driver_rows:
            written = [_write(task) for task in tasks]
        else:
            written = workspace.jobs.each(_write, tasks, "moving windows", self.yield_point)
        *plus, minus = map(workspace.adopt, written)
        content = compacted(workspace, WINDOWS, old.content.then(plus, (minus,)), self.yield_point)
        return replace(new, content=content, seen=frozenset(file.path for file in terms))

    def _tasks(self, old: Windows, new: Windows, terms: Sequence[DataFile]) -> tuple[_Task, ...]:
        """Return two tasks for the rows to insert, and one for those to delete."""
        folder = self.workspace.scratch.folder
        keys = self.workspace.keys([*old.windows, *new.windows])
        seen = tuple(file for file in terms if file.path in old.seen and file.span)
        fresh = tuple(file for file in terms if file.path not in old.seen and file.span)
        entering: list[_KeyedSpan] = []
        leaving: list[_KeyedSpan] = []
        now: list[_KeyedSpan] = []
        for term in {**old.windows, **new.windows}:
            before, after = old.span(term), new.span(term)
            entering += [(part, keys[term]) for part in _without(after, before)]
            leaving += [(part, keys[term]) for part in _without(before, after)]
            now.append((after, keys[term]))
        spans = (seen, entering), (fresh, now), (seen, leaving)
        return tuple(_Task(files, tuple(keyed), folder) for files, keyed in spans)


def _write(task: _Task) -> DataFile:
    pieces = [np.zeros((0, 2), np.int64)]
    for span, window in task.spans:
        moments = between(task.files, *span).keys
        pieces.append(np.stack((moments, np.full(len(moments), window, np.int64)), axis=1))
    return task.folder.write_indexed(WINDOWS, list(np.ascontiguousarray(np.concatenate(pieces).T)))


def _without(span: _Span, other: _Span) -> Iterator[_Span]:
    """Yield the parts of a span that are not in another."""
    if other[0] >= other[1]:
        parts = [span]
    else:
        parts = [(span[0], min(span[1], other[0])), (max(span[0], other[1]), span[1])]
    return (part for part in parts if part[0] < part[1])
