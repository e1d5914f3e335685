"""Packs made from texts, and the codes of what is refused."""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from zodiacedge.errors import ZodiacError
from zodiacedge.packs.source import pack_of_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.packs.pack import Pack


def write_source(folder: Path, rules: str, version: int = 1, name: str = "diagnosis", more: str = "") -> Path:
    """Write the folder of a pack."""
    folder.mkdir(parents=True, exist_ok=True)
    head = f"name = {json.dumps(name)}\nversion = {version}\n"
    (folder / "pack.toml").write_text(head + more, encoding="utf-8")
    (folder / "all.rules").write_text(rules, encoding="utf-8")
    return folder


def made(rules: str, version: int = 1, name: str = "diagnosis", more: str = "") -> Pack:
    """Make a pack from a text of rules and lines of its pack.toml."""
    with tempfile.TemporaryDirectory() as folder:
        return pack_of_folder(write_source(Path(folder), rules, version, name, more))


@contextmanager
def refused(*codes: str) -> Iterator[list[str]]:
    """Expect a refusal with these codes; yields a list that gets its messages."""
    messages: list[str] = []
    with pytest.raises(ZodiacError) as problem:
        yield messages
    assert [d.code for d in problem.value.diagnostics] == list(codes)
    messages += [f"{d.message}\n{d.note}" for d in problem.value.diagnostics]
