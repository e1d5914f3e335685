"""Enrols many devices, gives them a pack, changes one rule, stops the hub and lets all of them come back."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge_bench.fleet.devices import PACK, Reached
from zodiacedge_bench.fleet.hub import HubProcess
from zodiacedge_bench.fleet.large import one_changed_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from zodiacedge_bench.fleet.large import LargeFigures

OPERATOR = f"""
wanted(D, "{PACK}") :- device(D), D != "device-large" .
wanted("device-large", "large") .
"""
_RULES = """
hot: hot(T) :- reading(T, C), C > {limit} .
cold: cold(T) :- reading(T, C), C < 55 .
odd: odd(T) :- hot(T), cold(T) .
"""
_PROCESSES = 4


@dataclass(frozen=True, slots=True)
class FleetSize:
    """How many devices, and how many rules the large pack has."""

    devices: int = 1000
    rules: int = 10_000


@dataclass(frozen=True, slots=True)
class Phase:
    """What happened to all devices at once."""

    name: str
    p50_seconds: float
    p99_seconds: float
    hub_cpu_seconds: float
    devices_cpu_seconds: float
    received_bytes: float
    """Metadata and packs, for each device."""


@dataclass(frozen=True, slots=True)
class FleetFigures:
    """The figures of a fleet."""

    size: FleetSize
    phases: tuple[Phase, ...]
    large: LargeFigures


class _Devices:
    # Processes with agents; each is told a version and answers when its devices have it.

    def __init__(self, hub: HubProcess, folder: Path, size: FleetSize, open_things: ExitStack) -> None:
        names = [f"device-{n}" for n in range(size.devices)]
        self.processes = []
        for number in range(min(_PROCESSES, size.devices)):
            file = folder / f"codes-{number}.json"
            file.write_text(json.dumps(hub.codes(names[number::_PROCESSES])), "utf-8")
            command = (sys.executable, "-m", "zodiacedge_bench.fleet.devices", folder, hub.base, file)
            process = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            open_things.callback(_end, process)
            self.processes.append(process)

    def tell(self, version: int) -> None:
        for process in self.processes:
            assert process.stdin is not None  # noqa: S101 - it is a pipe
            process.stdin.write(f"{version}\n")
            process.stdin.flush()

    def reached(self) -> Reached:
        moments, received, cpu = [], 0, 0.0
        for process in self.processes:
            assert process.stdout is not None  # noqa: S101 - as above
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"devices ended with {process.wait()}")
            one = Reached(*json.loads(line))
            moments += one.moments
            received += one.received
            cpu += one.cpu_seconds
        return Reached(sorted(moments), received, cpu)


def fleet_figures(size: FleetSize, folder: Path, progress: Callable[[str], None]) -> FleetFigures:
    """Measure a fleet in a folder."""
    with ExitStack() as open_things:
        hub = HubProcess(folder, OPERATOR)
        open_things.callback(hub.kill)
        hub.start()
        phases = []
        for phase in _phases(hub, folder, size, open_things):
            progress(f"{phase.name}: p50 {phase.p50_seconds:.1f} s, p99 {phase.p99_seconds:.1f} s")
            phases.append(phase)
        large = one_changed_rule(hub, folder, size.rules)
        return FleetFigures(size, tuple(phases), large)


def _phases(hub: HubProcess, folder: Path, size: FleetSize, open_things: ExitStack) -> Iterator[Phase]:
    cpu, began = hub.cpu_seconds(), time.monotonic()
    devices = _Devices(hub, folder, size, open_things)
    enrolled = devices.reached()
    seconds = time.monotonic() - began
    yield Phase("enrol", seconds, seconds, hub.cpu_seconds() - cpu, enrolled.cpu_seconds, 0.0)

    def phase(name: str, began: float, cpu: float) -> Phase:
        reached = devices.reached()
        after = [moment - began for moment in reached.moments]
        p50, p99 = (after[min(int(share * len(after)), len(after) - 1)] for share in (0.5, 0.99))
        used = hub.cpu_seconds() - cpu
        return Phase(name, p50, p99, used, reached.cpu_seconds, reached.received / size.devices)

    for name, version in (("first pack", 1), ("one rule changed", 2), ("one rule changed again", 3)):
        cpu = hub.cpu_seconds()
        devices.tell(version)
        began = time.monotonic()
        hub.publish(PACK, version, _RULES.format(limit=90 - version))
        yield phase(name, began, cpu)
    hub.kill()
    devices.tell(4)
    hub.publish(PACK, 4, _RULES.format(limit=86))
    cpu = hub.cpu_seconds()
    hub.start()
    yield phase("all come back at once", time.monotonic(), cpu)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
