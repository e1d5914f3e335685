"""A small store to play with, and what a problem's code is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

import zodiacedge as ze
from store.objects_server import make_bucket, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAM = """
    r1: path(X, Y) :- edge(X, Y) .
    r2: path(X, Z) :- path(X, Y), edge(Y, Z) .
    r3: reach(X, N) :- AGGREGATE(path(X, Y)) ON X WITH COUNT(Y) AS N .
    r4: lonely(X) :- node(X), not path(X, _) .
    r5: rdf:type(X, C) :- kind(X, C) .
    edge(a, b) .  edge(b, c) .  node(a) .  node(z) .  kind(a, turbine) .  kind(b, "odd") .
    value(a, 5) .  value(a, 5.0) .  value(a, 5.0e0) .  value(a, -0.5e-7) .  value(a, true) .
    value(a, "5") .  value(a, "fünf"@de) .  value(a, "x"^^<http://e/t>) .  value(a, "x"^^xsd:integer) .
    value(a, "2.5"^^xsd:float) .  value(a, "2024-02-29T12:00:00.25Z"^^xsd:dateTime) .
    value(a, "2024-02-29"^^xsd:date) .  value(a, "2024-02-29+02:00"^^xsd:date) .
    value(_:b1, <http://e/ü%20x>) .  value(a, "") .  value(a, "two\\nlines \\"and\\" quotes") .
    quad(a, b, 3, 4) .  up() .
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a store may be made."""
    return tmp_path / "farm.zodiac"


def make_farm(where: Path | str) -> None:
    """Make a store with three versions, all flushed."""
    with ze.open(where, create=True) as kb:
        with kb.change("all there is") as c:
            c.add_rules(PROGRAM)
        with kb.change("one more") as c:
            c.add_facts("edge(c, d) .")
        with kb.change("a rule less") as c:
            c.remove_rules("r4")


def add_logged(where: Path | str) -> None:
    """Give that store two more versions that only the log has."""
    kb = ze.open(where)
    with kb.change("from the log") as c:
        c.add_facts("edge(d, e) .")
    with kb.change("from the log too") as c:
        c.remove_facts("edge(a, b) .")
    abandon(kb)


@pytest.fixture
def farm(place: Path) -> Path:
    """A store with three versions, all flushed."""
    make_farm(place)
    return place


@pytest.fixture
def logged(farm: Path) -> Path:
    """The same store with two more versions that only the log has."""
    add_logged(farm)
    return farm


def abandon(kb: ze.StoredKnowledgeBase) -> None:
    """Let go of a store as a killed process does: nothing is flushed."""
    kb._flusher.wait()
    kb._store.close()


def code(problem: ze.ZodiacError) -> str:
    """Return the code of the one finding of a problem."""
    (found,) = problem.diagnostics
    return found.code


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """A server of objects that all tests of a process share; the environment leads to it."""
    with serving() as found, pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_ENDPOINT_URL", found)
        patch.setenv("AWS_ACCESS_KEY_ID", "somebody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "whatever")
        yield found


@pytest.fixture
def bucket(endpoint: str) -> str:
    """A bucket that is empty."""
    name = f"bucket-{uuid4().hex}"
    make_bucket(endpoint, name)
    return f"s3://{name}"
