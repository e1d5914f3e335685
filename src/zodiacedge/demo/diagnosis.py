"""The paper's scenario: a farm at the centre, a slice on each turbine, and diagnosis rules on two of them.

The centre collects the observations of the sensors. A turbine runs a few daily rules on its slice; when a
reading is odd, rule set 1 is inserted, queried, and deleted again. Printing is left to `story`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from zodiacedge.demo.farm import AMBIENT, FARM, rules, turbine
from zodiacedge.language.ast import fact
from zodiacedge.opening import open_kb
from zodiacedge.pipeline.publish_slices import Device
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from zodiacedge.explain.missing import WhyNot
    from zodiacedge.explain.proof import Proof
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport

# The slice of a turbine: its readings with their usual ranges, the turbines of its row, and the air there.
SLICES = (
    "?- farm:reading(T, P, V), farm:usualLow(P, L), farm:usualHigh(P, H), farm:ofComponent(P, C) .",
    "?- farm:inRow(T, R), farm:inRow(X, R), farm:hasNeighbour(X, Y) .",
    "?- farm:nearbyAirTemperature(T, N, V) .",
)
_NEARBY = f"{FARM}nearbyAirTemperature"
_READING = f"{FARM}reading"


@dataclass(frozen=True, slots=True)
class TurbineState:
    """The facts of a turbine: their number and digest."""

    version: int
    facts: int
    digest: str


@dataclass(frozen=True, slots=True)
class TurbineDiagnosis:
    """The diagnosis of one turbine."""

    number: int
    degrees: float
    """The air temperature that its sensor read at noon."""
    opened: float
    """The seconds for opening its slice."""
    rules: int
    facts: int
    noon: ChangeReport
    unusual: tuple[str, ...]
    """The properties that the daily rules find unusual."""
    before: TurbineState
    added: ChangeReport
    neighbours: int
    median: float
    broken: bool
    """Whether rule set 1 says that the sensor is off the median of its neighbours."""
    why: Proof | WhyNot
    """Why it says so, or why not."""
    dropped: ChangeReport
    after: TurbineState

    @property
    def restored(self) -> bool:
        """Whether the turbine has exactly the facts that it had before the rules were inserted."""
        return (self.before.facts, self.before.digest) == (self.after.facts, self.after.digest)


def load_farm(kb: KnowledgeBase, data: Path, message: str) -> ChangeReport:
    """Load the farm and its rules as the first version of a store."""
    with kb.change(message) as change:
        for name in ("farm", "daily"):
            change.add_rules(rules(name), f"{name}.rules")
        change.load(data)
    return change.report


def devices(turbines: int) -> list[Device]:
    """Return all turbines as devices, each with the values of its slice."""
    names = [turbine(number) for number in range(1, turbines + 1)]
    return [Device(short(name), {"T": name}) for name in names]


def short(name: IRI) -> str:
    """Return the local name of an IRI of the farm."""
    return name.value.removeprefix(FARM)


def air_nearby(kb: KnowledgeBase, number: int) -> dict[IRI, float]:
    """Return the air temperatures that a knowledge base has for the neighbours of a turbine."""
    query = kb.prepare(f"ans(N, V) :- <{_NEARBY}>(T, N, V) .", "T")
    return {name: float(str(value)) for name, value in query(T=turbine(number)) if isinstance(name, IRI)}


def diagnose(
    store: Path,
    number: int,
    degrees: float,
    nearby: Mapping[IRI, float],
    draw: Callable[[KnowledgeBase], None] | None = None,
) -> TurbineDiagnosis:
    """Play noon on a turbine: an odd reading; rule set 1 is inserted, queried, and deleted.

    Args:
        store: The slice of the turbine.
        number: The number of the turbine.
        degrees: The air temperature that its own sensor reads.
        nearby: The readings of its neighbours, as the centre sent them.
        draw: Called while the rules are in force.
    """
    started = time.perf_counter()
    with open_kb(store) as kb:
        opened = time.perf_counter() - started
        counted = len(kb.rules), sum(kb.explicit_counts().values())
        noon = _noon(kb, number, degrees, nearby)
        unusual = kb.query(f"ans(P) :- <{FARM}unusual>(T, P) .")
        before = _state(kb)
        with kb.change("insert rule set 1") as change:
            change.add_rules(rules("rs1"), "rs1.rules")
        added = change.report
        if draw:
            draw(kb)
        neighbours = _value(kb, "hasNeighbourAirTemperatureMeasurementNumber", number)
        median = _value(kb, "hasMedianAirTemperatureMeasurementNearby", number)
        anomaly = fact("SensorAnomalyWindTurbine", turbine(number))
        broken = bool(kb.prepare("?- SensorAnomalyWindTurbine(T) .", "T")(T=turbine(number)))
        why = kb.explain(anomaly) if broken else kb.why_not(anomaly)
        with kb.change("delete rule set 1") as change:
            change.remove_rules(rules("rs1"), "rs1.rules")
        return TurbineDiagnosis(
            number,
            degrees,
            opened,
            *counted,
            noon,
            tuple(short(name) for (name,) in unusual if isinstance(name, IRI)),
            before,
            added,
            round(neighbours),
            median,
            broken,
            why,
            change.report,
            _state(kb),
        )


def load_kernels() -> None:
    """Load the compiled kernels that rule set 1 needs, as a turbine's process did at its start."""
    kb = open_kb()
    with kb.change() as change:
        turbines = [turbine(number) for number in range(1, 7)]
        change.add_facts([("hasNeighbour", *neighbours) for neighbours in pairwise(turbines)])
        change.add_facts([("hasAirTemperatureMesurement", name, 25) for name in turbines])
    for _ in range(2):
        with kb.change() as change:
            change.add_rules(rules("rs1"), "rs1.rules")
        with kb.change() as change:
            change.remove_rules(rules("rs1"), "rs1.rules")


def _noon(kb: KnowledgeBase, number: int, degrees: float, nearby: Mapping[IRI, float]) -> ChangeReport:
    own = turbine(number)
    previous = kb.prepare(f"ans(V) :- <{_READING}>(T, P, V) .", "T", "P")(T=own, P=AMBIENT)
    old = [(_READING, own, AMBIENT, value) for (value,) in previous]
    old += [(_NEARBY, own, name, value) for name, value in air_nearby(kb, number).items()]
    with kb.change("noon") as change:
        change.remove_facts(old)
        change.add_facts([(_READING, own, AMBIENT, degrees)])
        change.add_facts([(_NEARBY, own, name, value) for name, value in nearby.items()])
    return change.report


def _value(kb: KnowledgeBase, relation: str, number: int) -> float:
    """Return the only value of a relation for a turbine."""
    ((value,),) = kb.prepare(f"ans(V) :- {relation}(T, V) .", "T")(T=turbine(number))
    return float(str(value))


def _state(kb: KnowledgeBase) -> TurbineState:
    verification = kb.verify()
    if not verification.ok:
        raise AssertionError(str(verification))
    return TurbineState(verification.version, verification.facts, verification.digest)
