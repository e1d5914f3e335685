"""A process with many agents, each with a knowledge base in memory and a thread that listens to the hub.

A line on standard input names a version of the pack: the process answers with one line of JSON when all its
devices have it in force and have said so.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from zodiacedge.errors import FleetProblem
from zodiacedge.fleet.agent.agent import Agent, AgentOptions
from zodiacedge.opening import open_kb

PACK = "bench"
_THREADS = 8
_PAUSE = 0.02
# A device without news takes a step now and then, as agents do.
_IDLE_SECONDS = 10.0
_TRIES = 20


class Reached(NamedTuple):
    """When the devices of a process had a version in force, and what that took."""

    moments: list[float]
    """On the clock of the machine that does not go back."""
    received: int
    """The bytes of metadata and packs."""
    cpu_seconds: float


class _Device:
    def __init__(self, folder: Path, base: str, name: str, code: str) -> None:
        self.kb = open_kb()
        with self.kb.change() as change:
            change.add_facts([("reading", f"{name}-{n}", 50 + n) for n in range(50)])
        options = AgentOptions(base, name, code, probation=0.0)
        self.agent = self._enrolled(folder / name, options)
        self.next_step = 0.0
        self.moment = 0.0

    def _enrolled(self, folder: Path, options: AgentOptions) -> Agent:
        """Return the agent; where the hub is too busy to answer, it enrols again, as a service would."""
        for _ in range(_TRIES):
            with suppress(FleetProblem):
                return Agent(self.kb, folder, options, lambda _: None)
        return Agent(self.kb, folder, options, lambda _: None)

    def lead(self, version: int) -> bool:
        """Take a step if there is something to do; return whether a version is in force and reported."""
        now = time.monotonic()
        if not self.agent.wait(0) and now < self.next_step:
            return False
        self.agent.step()
        self.next_step = now + _IDLE_SECONDS
        there = self.kb.installed.installed.get(PACK)
        if there is None or there.manifest.version != version:
            return False
        self.moment = self.moment or time.monotonic()
        self.agent.step()
        self.next_step = 0.0
        return self.agent.reported

    def reset(self) -> None:
        """Begin to wait for the next version."""
        self.moment, self.next_step = 0.0, 0.0


def main() -> None:
    """Enrol the devices of a file, and lead them to the versions that standard input names."""
    folder, base, codes = Path(sys.argv[1]), sys.argv[2], json.loads(Path(sys.argv[3]).read_bytes())
    with ThreadPoolExecutor(_THREADS) as pool:
        devices = list(pool.map(lambda item: _Device(folder, base, *item), codes.items()))
        print(json.dumps(Reached([], 0, time.process_time())), flush=True)
        for line in sys.stdin:
            version, cpu, received = int(line), time.process_time(), _received(devices)
            for device in devices:
                device.reset()
            waiting = devices
            while waiting:
                done = list(pool.map(_Device.lead, waiting, repeat(version)))
                waiting = [device for device, ready in zip(waiting, done, strict=True) if not ready]
                time.sleep(_PAUSE)
            moments = [device.moment for device in devices]
            reached = Reached(moments, _received(devices) - received, time.process_time() - cpu)
            print(json.dumps(reached), flush=True)
        for device in devices:
            device.agent.close()


def _received(devices: list[_Device]) -> int:
    return sum(device.agent.received for device in devices)


if __name__ == "__main__":
    main()
