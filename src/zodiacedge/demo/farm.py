"""A wind farm as RDF: turbines in rows, a hundred kinds of measurements, sensors and their observations.

The vocabulary is SOSA, the values are random with a fixed seed. In the morning all values are usual. At noon
a cold front has reached one row of turbines, and in another row a sensor is broken: both read the same.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from zodiacedge.terms import IRI, RDF_TYPE, XSD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FARM = "http://example.org/farm#"
SOSA = "http://www.w3.org/ns/sosa/"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
AMBIENT = IRI(f"{FARM}ambientAirTemperature")
ROW = 6
"""The approximate number of turbines in a row."""
MORNING = ("06:00", "07:00", "08:00", "09:00")
NOON = "12:00"
COLD, MILD = -11.5, 9.5
_DAY = "2024-11-16"

# Each quantity with its usual value, its spread, and the bounds of usual values.
_QUANTITIES = {
    "Temperature": (55.0, 4.0, 10.0, 90.0),
    "Vibration": (2.5, 0.4, 0.0, 7.0),
    "Pressure": (180.0, 6.0, 120.0, 240.0),
    "Speed": (14.0, 1.5, 0.0, 25.0),
    "Humidity": (48.0, 6.0, 10.0, 95.0),
    "Current": (420.0, 25.0, 0.0, 800.0),
    "Voltage": (690.0, 5.0, 600.0, 760.0),
    "Torque": (95.0, 8.0, 0.0, 160.0),
    "Strain": (310.0, 20.0, 100.0, 600.0),
    "Noise": (62.0, 3.0, 20.0, 95.0),
}
_COMPONENTS = (
    "ambientAir",
    "rotor",
    "mainBearing",
    "gearbox",
    "generator",
    "nacelle",
    "tower",
    "pitchDrive",
    "yawDrive",
    "transformer",
)
_AMBIENT_TEMPERATURE = (MILD, 0.5, -5.0, 35.0)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of measurement: component, quantity, and usual values."""

    component: str
    quantity: str
    usual: float
    spread: float
    low: float
    high: float

    @property
    def name(self) -> str:
        """The name of the property."""
        return f"{self.component}{self.quantity}"


def rules(name: str) -> str:
    """Return the text of the rules of the `farm`, of the `daily` ones, or of rule set 1 (`rs1`)."""
    return (files("zodiacedge.demo") / "rules" / f"{name}.rules").read_text(encoding="utf-8")


def kinds() -> Iterator[Kind]:
    """Yield the hundred kinds of measurements."""
    for component in _COMPONENTS:
        for quantity, usual in _QUANTITIES.items():
            ambient = component == "ambientAir" and quantity == "Temperature"
            yield Kind(component, quantity, *(_AMBIENT_TEMPERATURE if ambient else usual))


def turbine(number: int) -> IRI:
    """Return the name of a turbine, from 1 on."""
    return IRI(f"{FARM}wt{number:02d}")


def row_of(number: int, turbines: int) -> int:
    """Return the row of a turbine, from 1 on."""
    rows = max(turbines // ROW, 1)
    return (number - 1) * rows // turbines + 1


def rows(turbines: int) -> dict[int, list[int]]:
    """Return the turbines of each row."""
    numbers: dict[int, list[int]] = {}
    for number in range(1, turbines + 1):
        numbers.setdefault(row_of(number, turbines), []).append(number)
    return numbers


@dataclass(frozen=True, slots=True)
class Noon:
    """The readings of the air temperature at noon."""

    cold_row: int
    in_the_front: int
    """A turbine in the cold front."""
    broken: int
    """A turbine whose sensor is broken."""
    temperatures: dict[int, float]


def noon(turbines: int) -> Noon:
    """Return the air temperatures at noon: a cold front in the middle row, a broken sensor in the last."""
    chance = random.Random(12)  # noqa: S311 - the same farm every time
    by_row = rows(turbines)
    cold_row, last = sorted(by_row)[len(by_row) // 2 - 1], max(by_row)
    temperatures = {
        number: round((COLD if row == cold_row else MILD + 1.0) + chance.uniform(-0.8, 0.8), 1)
        for row, numbers in by_row.items()
        for number in numbers
    }
    broken = by_row[last][len(by_row[last]) // 2]
    in_the_front = by_row[cold_row][len(by_row[cold_row]) // 2]
    temperatures[broken] = temperatures[in_the_front]
    return Noon(cold_row, in_the_front, broken, temperatures)


def triples(turbines: int) -> Iterator[str]:
    """Yield the farm in the morning as lines of N-Triples."""
    chance = random.Random(6)  # noqa: S311 - the same farm every time
    yield from _plan(turbines)
    for number in range(1, turbines + 1):
        for kind in kinds():
            yield from _sensor(number, kind)
            for time in MORNING:
                value = round(kind.usual + chance.uniform(-kind.spread, kind.spread), 1)
                yield from _observation(number, kind, time, value)


def noon_triples(readings: Noon) -> Iterator[str]:
    """Yield the readings of the air temperature at noon as lines of N-Triples."""
    (kind,) = (kind for kind in kinds() if FARM + kind.name == AMBIENT.value)
    for number, value in readings.temperatures.items():
        yield from _observation(number, kind, NOON, value)


def _plan(turbines: int) -> Iterator[str]:
    for row, numbers in rows(turbines).items():
        for number, neighbour in zip(numbers, [*numbers[1:], None], strict=True):
            name = turbine(number).value
            yield _line(name, RDF_TYPE, _named(f"{FARM}WindTurbine"))
            yield _line(name, f"{FARM}inRow", _named(f"{FARM}row{row}"))
            if neighbour is not None:
                yield _line(name, f"{FARM}hasNeighbour", _named(turbine(neighbour).value))
    for quantity in _QUANTITIES:
        yield _line(f"{FARM}{quantity}Sensor", f"{RDFS}subClassOf", _named(f"{SOSA}Sensor"))
    for kind in kinds():
        name = FARM + kind.name
        yield _line(name, RDF_TYPE, _named(f"{SOSA}ObservableProperty"))
        yield _line(name, f"{FARM}ofComponent", _named(FARM + kind.component))
        yield _line(name, f"{FARM}observedBy", _named(f"{FARM}{kind.quantity}Sensor"))
        yield _line(name, f"{FARM}usualLow", _double(kind.low))
        yield _line(name, f"{FARM}usualHigh", _double(kind.high))


def _sensor(number: int, kind: Kind) -> Iterable[str]:
    name = _sensor_name(number, kind)
    yield _line(name, f"{SOSA}isHostedBy", _named(turbine(number).value))
    yield _line(name, f"{SOSA}observes", _named(FARM + kind.name))


def _observation(number: int, kind: Kind, time: str, value: float) -> Iterator[str]:
    sensor = _sensor_name(number, kind)
    name = f"{sensor}_{time.replace(':', '')}"
    yield _line(name, RDF_TYPE, _named(f"{SOSA}Observation"))
    yield _line(name, f"{SOSA}madeBySensor", _named(sensor))
    yield _line(name, f"{SOSA}hasSimpleResult", _double(value))
    yield _line(name, f"{SOSA}resultTime", f'"{_DAY}T{time}:00Z"^^<{XSD}dateTime>')


def _sensor_name(number: int, kind: Kind) -> str:
    return f"{turbine(number).value}_{kind.name}"


def _line(subject: str, predicate: str, written: str) -> str:
    return f"<{subject}> <{predicate}> {written} ."


def _named(iri: str) -> str:
    return f"<{iri}>"


def _double(value: float) -> str:
    return f'"{value}"^^<{XSD}double>'
