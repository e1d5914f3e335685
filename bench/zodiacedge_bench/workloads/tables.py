"""Facts of a wind farm that are tables and triples alike: links, measurements and names, a third each.

Sensors are drawn at random, so that most terms are repeated as in exports of real data; half of the names are
distinct. The rows of a relation are distinct.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.terms import Value

FARM = "http://example.org/farm/"
LINK, READING, NAME = f"{FARM}linkedTo", f"{FARM}temperature", f"{FARM}serviceNote"
RELATIONS = (LINK, READING, NAME)
_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"
_WORDS = [
    "turbine",
    "rotor",
    "blade",
    "gearbox",
    "wind",
    "north",
    "sensor",
    "reading",
    "alarm",
    "grid",
    "yaw",
]


class Row(NamedTuple):
    """A row: an IRI, and an IRI, a number or a string; an IRI is in angle brackets."""

    first: str
    second: Value

    def triple(self, relation: str) -> str:
        """Return the row as a line of N-Triples."""
        return f"{self.first} <{relation}> {_object(self.second)} .\n"

    def csv(self) -> str:
        """Return the row as a line of CSV."""
        return f"{self.first},{f'{self.second:e}' if isinstance(self.second, float) else self.second}\n"


def farm_tables(total: int) -> dict[str, list[Row]]:
    """Return so many rows, those of each relation, the same ones each time."""
    dice = random.Random(11)
    return {relation: _distinct(_rows(relation, total, dice), total // 3) for relation in RELATIONS}


def _distinct(rows: Iterator[Row], count: int) -> list[Row]:
    found: dict[Row, None] = {}
    while len(found) < count:
        found[next(rows)] = None
    return list(found)


def _rows(relation: str, total: int, dice: random.Random) -> Iterator[Row]:
    sensors = total // 15 + 1
    number = 0
    while True:
        number += 1
        first = f"<{FARM}sensor/{dice.randrange(sensors)}>"
        second: Value = f"<{FARM}sensor/{dice.randrange(sensors)}>"
        if relation == READING:
            second = dice.randrange(-400_000, 900_000) / 10_000
        elif relation == NAME:
            text = " ".join(dice.choices(_WORDS, k=dice.randrange(2, 6)))
            second = f"{text} {number}" if number % 2 else text
        yield Row(first, second)


def _object(value: Value) -> str:
    if isinstance(value, float):
        return f'"{value:e}"^^<{_DOUBLE}>'
    text = str(value)
    return text if text.startswith("<") else f'"{text}"'
