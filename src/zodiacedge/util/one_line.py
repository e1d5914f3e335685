"""Texts of people on one line of a terminal."""

from __future__ import annotations


def on_one_line(text: str) -> str:
    """Return a text with escapes for newlines and control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
