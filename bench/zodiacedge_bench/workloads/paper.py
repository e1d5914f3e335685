"""The paper's rule sets and data sets.

Rule set 1 is the wind farm's, and in the files of the demo; it runs on data set 1: a chain of turbines, each
with an air temperature. Rule sets 2 and 3 are synthetic, on data set 2: four chains, one per relation.
"""

from __future__ import annotations

from zodiacedge.demo.farm import rules as demo_rules
from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import IRI, integer
from zodiacedge_bench.workloads.rule_files import rules

USUAL_TEMPERATURE = 25


def rule_set(number: int) -> str:
    """Return the text of rule set 1, 2 or 3."""
    return demo_rules("rs1") if number == 1 else rules(f"rs{number}")


def ds1(turbines: int) -> list[Fact]:
    """Return data set 1: neighbours in a row that all measure 25 degrees."""
    near = [fact("hasNeighbour", turbine(i), turbine(i + 1)) for i in range(1, turbines)]
    return near + [temperature(i, USUAL_TEMPERATURE) for i in range(1, turbines + 1)]


def ds2(turbines: int) -> list[Fact]:
    """Return data set 2: four chains of this length, `p1` to `p4`, over four times as many turbines."""
    return [
        fact(relation, turbine(i + k * turbines), turbine(i + k * turbines + 1))
        for i in range(turbines)
        for k, relation in enumerate(("p1", "p2", "p3", "p4"))
    ]


def data_set(number: int, turbines: int) -> list[Fact]:
    """Return the data that a rule set runs on."""
    return ds1(turbines) if number == 1 else ds2(turbines)


def turbine(number: int) -> IRI:
    """Return the name of a turbine."""
    return IRI(f"windTurbine_{number}")


def temperature(number: int, degrees: int) -> Fact:
    """Return a turbine's reading of the air temperature."""
    return fact("hasAirTemperatureMesurement", turbine(number), integer(degrees))
