"""The progress bar: what is happening, and how far it is or that nobody knows. Terminals only."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.errors import counted
from zodiacedge.language.printer import abbreviate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.api import Progress
    from zodiacedge.io import LoadProgress

_BETWEEN = " · "
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


class BarState(NamedTuple):
    """What the bar shows. The share is between 0 and 1; None moves the bar to and fro."""

    title: str
    share: float | None
    detail: str


def loading_state(progress: LoadProgress) -> BarState:
    """Return what the bar shows of a load: bytes on disk, of all files together."""
    read, total = progress.bytes_read, progress.bytes_total
    amount = f"{size_text(read)} of {size_text(total)}" if total else size_text(read)
    facts = counted(progress.facts, "fact") if progress.facts else ""
    bad = counted(progress.bad, "bad line") if progress.bad else ""
    return BarState("loading", read / total if total else None, _joined(amount, facts, bad, progress.file))


def evaluating_state(progress: Progress, prefixes: Mapping[str, str]) -> BarState:
    """Return what the bar shows of a change, or of a long step outside of changes."""
    within = progress.done / progress.total if progress.total else 0.0
    steps = ""
    if progress.unit and progress.total:
        steps = f"{progress.done:,} of {counted(progress.total, progress.unit)}"
    elif progress.unit and progress.done:
        steps = counted(progress.done, progress.unit)
    if not progress.nodes:
        return BarState(progress.stage or "evaluating", within if progress.total else None, steps)
    rules = ", ".join(abbreviate(rule, prefixes) for rule in progress.rules)
    node = f"hyper-node {min(progress.node + 1, progress.nodes):,} of {progress.nodes:,}"
    rounds = f"round {progress.round:,}" if progress.round else ""
    facts = counted(progress.facts, "fact") if progress.facts else ""
    return BarState(
        progress.stage or "evaluating",
        min((progress.node + within) / progress.nodes, 1.0),
        # Rules may be long, and what does not fit the line is cut off.
        _joined(node, rounds, facts, steps, rules),
    )


def size_text(size: int) -> str:
    """Return a number of bytes in a readable unit: `12.3 MB`."""
    amount, unit = float(size), 0
    while amount >= 1000 and unit + 1 < len(_UNITS):
        amount, unit = amount / 1000, unit + 1
    return f"{amount:,.1f} {_UNITS[unit]}" if unit else counted(size, "byte")


def _joined(*parts: str) -> str:
    return _BETWEEN.join(part for part in parts if part)


class ProgressBar:
    """A bar on standard error, while its `with` block lasts."""

    def __init__(self, title: str) -> None:
        """Show a title, and that nobody knows how long it takes."""
        from rich.console import Console as RichConsole  # noqa: PLC0415 - only for terminals
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415
        from rich.table import Column  # noqa: PLC0415 - as above

        # The detail gets the rest of the line, so that it never squeezes the others.
        rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        self.progress = Progress(
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[percent]}", table_column=Column(no_wrap=True)),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}", markup=False, table_column=rest),
            console=RichConsole(stderr=True),
            transient=True,
            expand=True,
        )
        self._task = self.progress.add_task(title, total=None, percent="", detail="")

    def write(self, line: str) -> None:
        """Write a line, or several, above the bar; colours are escape sequences."""
        from rich.text import Text  # noqa: PLC0415 - only for terminals

        self.progress.console.print(Text.from_ansi(line), soft_wrap=True)

    def show(self, state: BarState) -> None:
        """Show another state."""
        title, share, detail = state
        percent = "" if share is None else f"{share:>4.0%}"
        self.progress.update(
            self._task, description=title, completed=share or 0.0, total=1.0, percent=percent, detail=detail
        )
        if share is None:
            # `update` takes None for no change.
            (task,) = self.progress.tasks
            task.total = None
