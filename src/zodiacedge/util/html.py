"""Small pieces of HTML for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def html_table(columns: Iterable[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return a table of texts."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
