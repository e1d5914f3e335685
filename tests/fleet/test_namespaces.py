"""A wind farm in network namespaces: cut and slow links, a hub that is killed, agents that are killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from fleet.running import Farm, diagnosis, until
from fleet.test_processes import Process
from zodiacedge.fleet.hub.codes import Codes

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.soak]
SCRIPT = Path(__file__).with_name("agents_in_namespaces.py")
AGENTS = 30
ROUNDS = 7
CUT_SECONDS = float(os.environ.get("ZODIAC_CUT_SECONDS", "120"))
SEED = int(os.environ.get("ZODIAC_SEED", "0"))
BRIDGE = "zfleet"
NAMES = tuple(f"{BRIDGE}{number}" for number in range(AGENTS))
# Every third link passes so many bits a second.
SLOW = "256kbit"
EVENTS = 30


def ip(*arguments: str, program: str = "ip") -> None:
    subprocess.run([program, *arguments], check=True, capture_output=True)


@pytest.fixture
def network() -> Iterator[str]:
    """A bridge with a namespace for each device; yields the address of the hub's side."""
    if os.geteuid() or not shutil.which("ip") or not shutil.which("tc"):
        pytest.skip("network namespaces are a matter of root, ip and tc")
    with ExitStack() as made:
        ip("link", "add", BRIDGE, "type", "bridge")
        made.callback(ip, "link", "del", BRIDGE)
        ip("addr", "add", "10.77.0.1/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for number, name in enumerate(NAMES):
            ip("netns", "add", name)
            made.callback(ip, "netns", "del", name)
            ip("link", "add", f"{name}h", "type", "veth", "peer", "name", "far", "netns", name)
            ip("link", "set", f"{name}h", "master", BRIDGE, "up")
            ip("-n", name, "addr", "add", f"10.77.0.{number + 2}/24", "dev", "far")
            ip("-n", name, "link", "set", "far", "up")
            if number % 3 == 0:
                slow = ("rate", SLOW, "burst", "8kb", "latency", "2s")
                ip("qdisc", "add", "dev", f"{name}h", "root", "tbf", *slow, program="tc")
        yield "10.77.0.1"


class Agents:
    """The agents of all devices, each in its namespace."""

    def __init__(self, farm: Farm, base: str, process: subprocess.Popen[str]) -> None:
        self._farm, self._base, self._process = farm, base, process
        self.codes = {name: self._code(name) for name in NAMES}
        self.ids: dict[str, int] = {}

    def _code(self, name: str) -> str:
        codes = Codes(self._farm.folder / "hub" / "codes")
        return codes.make(name, [], self._farm.repository.root())

    def start(self, name: str, at: int = 0) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin
        assert stdout
        stdin.write(f"{name} {self._farm.folder} {self._base} {self.codes[name]} {at}\n")
        stdin.flush()
        self.ids[name] = int(stdout.readline())

    def kill(self, name: str) -> None:
        if self.runs(name):
            os.kill(self.ids[name], signal.SIGKILL)
        until(lambda: not self.runs(name))

    def runs(self, name: str) -> bool:
        # An agent that ended is a zombie until the script ends, so that no other process gets its id.
        status = Path(f"/proc/{self.ids[name]}/stat").read_text("utf-8")
        state, parent = status.rpartition(")")[2].split()[:2]
        # If the script ended, ids of its agents may be those of others by now.
        assert int(parent) == self._process.pid
        return state != "Z"


def link(name: str, state: str) -> None:
    ip("link", "set", f"{name}h", state)


def test_a_farm_converges_whatever_is_cut_and_killed(tmp_path: Path, network: str) -> None:
    farm, dice, kills = Farm(tmp_path), Random(SEED), 0
    farm.publish(diagnosis(1))
    rules = tmp_path / "hub" / "rules"
    rules.mkdir(parents=True)
    (rules / "operator.rules").write_text('allowed(D, "diagnosis") :- device(D) .', "utf-8")
    command = ("hub", "hub", "--keys", "keys", "--host", network, "--port", farm.port)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with ExitStack() as running:
        hub = Process(tmp_path, "hub", *command)
        running.callback(lambda: hub.end(signal.SIGKILL))
        hub.saw("hub hub on")
        script = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        running.enter_context(script)
        agents = Agents(farm, f"http://{network}:{farm.port}/", script)
        for name in NAMES:
            agents.start(name)
        converged(tmp_path, 1)
        for version in range(2, 2 + ROUNDS):
            for name in NAMES:
                agents.kill(name)
                agents.start(name, dice.randint(1, EVENTS))
            cut = dice.sample(NAMES, AGENTS // 3)
            for name in cut:
                link(name, "down")
            farm.publish(diagnosis(version, 50 + version))
            time.sleep(CUT_SECONDS / ROUNDS)
            hub.end(signal.SIGKILL)
            hub = Process(tmp_path, "hub", *command)
            for name in cut:
                link(name, "up")
            # Agents that come back now are killed on their way; the others have been already.
            until(lambda: sum(agents.runs(name) for name in NAMES) <= AGENTS // 4, 600.0)
            for name in NAMES:
                kills += not agents.runs(name)
                agents.kill(name)
                assert packs_of(tmp_path, name) in {("diagnosis", version - 1), ("diagnosis", version)}
                agents.start(name)
            converged(tmp_path, version)
        for name in NAMES:
            agents.kill(name)
            assert packs_of(tmp_path, name) == ("diagnosis", ROUNDS + 1)
        assert kills >= AGENTS * ROUNDS * 3 // 4


def packs_of(folder: Path, name: str) -> tuple[str, int]:
    """Return the one pack in force on a device; its facts are what an evaluation from nothing gives."""
    # The locks of a process that was killed go with the last of its threads, which may be a little later.
    with ze.open(folder / f"{name}.zodiac", wait=60) as kb:
        assert kb.verify("reference").ok
        assert {rule.label for rule in kb.rules} == {"need", "diagnosis/r1"}
        (manifest,) = kb.packs()
        return manifest.name, manifest.version


def converged(folder: Path, version: int) -> None:
    """Wait until the hub knows that all devices run a version."""

    def all_worked() -> bool:
        with ze.open(folder / "hub" / "store", read_only=True) as kb:
            return len(kb.query(f'?- worked(D, "diagnosis", {version}) .').rows) == AGENTS

    end = time.monotonic() + 600
    while not all_worked():
        assert time.monotonic() < end, [(folder / f"{name}.txt").read_text("utf-8") for name in NAMES]
        time.sleep(2)
