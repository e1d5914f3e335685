"""What arrives for a stream, and the store that it goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """Where files arrive."""
    folder = tmp_path / "landing place {1}"
    folder.mkdir()
    return folder


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    """A store with a rule."""
    place = tmp_path / "farm.zodiac"
    with ze.open(place, create=True) as kb, kb.change("rules") as change:
        change.add_rules("hot: hot(T) :- reading(T, V), V > 30 .")
    return place


def names(kb: ze.KnowledgeBase, query: str) -> list[str]:
    """Return the names that a query finds."""
    return [name.value for (name,) in kb.query(query) if isinstance(name, ze.IRI)]


def reading(turbine: int, value: int) -> str:
    """Return a line of N-Triples."""
    number = f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return f"<wt{turbine}> <reading> {number} .\n"
