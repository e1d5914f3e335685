"""Tables and numbers in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table, and an empty line."""
    return [_line(columns), _line(["---"] * len(columns)), *map(_line, rows), ""]


def milliseconds(seconds: float | None) -> str:
    """Return a time in milliseconds with three digits."""
    return "" if seconds is None else number(1e3 * seconds)


def number(value: float | None) -> str:
    """Return a number with three digits."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
