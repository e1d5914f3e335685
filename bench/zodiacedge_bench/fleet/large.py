"""One rule changed among many: bytes on the wire, and the processor time of putting the delta in force."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from zodiacedge.fleet.agent.agent import Agent, AgentOptions
from zodiacedge.opening import open_kb
from zodiacedge.packs.delta import delta_between
from zodiacedge_bench.fleet.hub import CountingWire

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge_bench.fleet.hub import HubProcess

LARGE = "large"
_UPGRADES = 5
_WAIT_SECONDS = 600.0
_PREDICATES = 20
# Long enough to be reported: a device sends a status when a pack is on probation, and one when it has passed.
_PROBATION = 0.5


@dataclass(frozen=True, slots=True)
class LargeFigures:
    """The costs of one changed rule."""

    rules: int
    body_bytes: int
    """Metadata and delta, compressed: the median of some upgrades."""
    wire_bytes: int
    """All bytes of the sockets in both directions: with what HTTP adds, the news and two statuses."""
    most_wire_bytes: int
    """The same, of the upgrade that cost most."""
    install_cpu_seconds: float
    """Putting the delta in force, its way back included."""
    change_cpu_seconds: float
    """The same change of rules, made by hand."""


def one_changed_rule(hub: HubProcess, folder: Path, rules: int) -> LargeFigures:
    """Let a device run a pack of many rules, and change one of them again and again."""
    name = "device-large"
    hub.publish(LARGE, 1, _text(rules, 1))
    wire = CountingWire(hub.port)
    kb = open_kb()
    with kb.change() as change:
        change.add_facts([(f"q{n}", k, n + k) for n in range(0, rules, 100) for k in range(3)])
    options = AgentOptions(wire.base, name, hub.codes([name])[name], probation=_PROBATION)
    agent = Agent(kb, folder / name, options, lambda _: None)
    _lead(agent, 1)
    wires, bodies = [], []
    for version in range(2, 2 + _UPGRADES):
        before = wire.bytes, agent.received
        hub.publish(LARGE, version, _text(rules, version))
        _lead(agent, version)
        wires.append(wire.bytes - before[0])
        bodies.append(agent.received - before[1])
    agent.close()
    wire.close()
    installs, changes = [], []
    for version in range(2, 2 + _UPGRADES):
        # Back and forth between the last two versions.
        ways = [hub.repository.pack(LARGE, number) for number in (_UPGRADES + 1, _UPGRADES)]
        started = time.process_time()
        delta = delta_between(*(ways if version % 2 == 0 else ways[::-1]))
        started = time.process_time()
        kb.way_back(delta)
        kb.install(delta, older=True)
        installs.append(time.process_time() - started)
        started = time.process_time()
        with kb.change() as change:
            change.add_rules(f"own{version}: p(X) :- q7(X, Y), Y > {-version} .")
        changes.append(time.process_time() - started)
    return LargeFigures(
        rules, int(median(bodies)), int(median(wires)), max(wires), median(installs), median(changes)
    )


def _lead(agent: Agent, version: int) -> None:
    end = time.monotonic() + _WAIT_SECONDS
    while True:
        agent.step()
        if agent.memory.active.get(LARGE) == version and agent.reported:
            return
        if time.monotonic() > end:
            raise RuntimeError(f"{LARGE} {version} does not arrive")
        agent.wait(0.05)


def _text(rules: int, version: int) -> str:
    lines = [f"r{n}: p{n % _PREDICATES}(X) :- q{n}(X, Y), Y > {n} ." for n in range(rules)]
    lines[7] = f"r7: p7(X) :- q7(X, Y), Y > {1_000_000 + version} ."
    return "\n".join(lines)
