"""Pages of HTML that are put together from files of a package, and tables for notebooks."""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_PLACE = re.compile(r"\{\{(\w+)\}\}")


def filled_page(package: str, **parts: str) -> str:
    """Return the file `page.html` of a package with texts in its places: `{{title}}`."""
    # In one pass: a text may look like a place.
    return _PLACE.sub(lambda place: parts[place[1]], web_file(package, "page.html"))


def web_file(package: str, name: str) -> str:
    """Return the text of a file in the folder `web` of a package."""
    return (files(package) / "web" / name).read_text(encoding="utf-8")


def html_table(columns: Iterable[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return a table of texts."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
