"""Hub and agent as commands; a hub that is killed, another hub at its address, a disk that is full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import pytest

import zodiacedge as ze
from fleet.middle import World, between
from fleet.running import NEED, Farm, diagnosis, until
from packs.making import made

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fleet.running import Device

pytestmark = pytest.mark.slow


class Process:
    """A command that runs, and what it has printed.

    Where it does not print what a test waits for, the stacks of its threads stand in the message.
    """

    def __init__(self, folder: Path, name: str, *arguments: object) -> None:
        self._file: IO[bytes] = (folder / f"{name}.txt").open("ab")
        self.printed = folder / f"{name}.txt"
        command = [sys.executable, "-m", "zodiacedge", *map(str, arguments)]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONFAULTHANDLER": "1",
        }
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=self._file, stderr=subprocess.STDOUT, env=environment
        )

    def saw(self, text: str) -> None:
        def printed_or_ended() -> bool:
            ended = self.process.poll() is not None
            return text in str(self) or ended

        try:
            until(printed_or_ended, 300)
        except AssertionError:
            self.process.send_signal(signal.SIGABRT)
        if text not in str(self):
            code = self.process.wait(30)
            pytest.fail(f"{text!r} was not printed, the exit code is {code}:\n{self}")

    def __str__(self) -> str:
        return self.printed.read_text("utf-8")

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        code = self.process.wait(30)
        self._file.close()
        return code


@contextmanager
def ended(*processes: list[Process]) -> Iterator[None]:
    try:
        yield
    finally:
        for process in (p for some in processes for p in some):
            if process.process.poll() is None:
                process.end(signal.SIGKILL)


def test_a_hub_and_an_agent_as_commands_and_a_hub_that_is_killed(tmp_path: Path) -> None:
    farm = Farm(tmp_path)
    farm.publish(diagnosis(1))
    (tmp_path / "device.rules").write_text(NEED, "utf-8")
    running: list[Process] = []

    def start(name: str, *arguments: object) -> Process:
        running.append(Process(tmp_path, name, *arguments))
        return running[-1]

    hub_command = ("hub", "hub", "hub", "--keys", "keys", "--port", farm.port)
    with ended(running):
        hub = start(*hub_command)
        hub.saw("hub hub on http://127.0.0.1:")
        rules = tmp_path / "hub" / "rules"
        (rules / "operator.rules").write_text('allowed(D, "diagnosis") :- device(D) .', "utf-8")
        code = printed(tmp_path, "enrol", "hub", "wt1")
        printed(tmp_path, "init", "wt1.zodiac", "--rules", "device.rules")
        options = ("--hub", farm.base, "--probation", 0, "--hold-off", 0, "--interval", 0.1, "--http", 0)
        agent = start("agent", "agent", "wt1.zodiac", *options, "--name", "wt1", "--code", code)
        agent.saw("active diagnosis 1")
        assert hub.end(signal.SIGKILL) == -signal.SIGKILL
        agent.saw("F003")
        farm.publish(diagnosis(2))
        hub = start(*hub_command)
        agent.saw("active diagnosis 2")
        assert "enrolled as wt1" in agent.printed.read_text("utf-8")
        until(
            lambda: "worked" in printed(tmp_path, "query", "hub/store", '?- worked(D, P, 2), W = "worked" .')
        )
        # The agent still waits for news of the hub that ends.
        assert hub.end() in {0, 130, -signal.SIGINT}
        assert "Traceback" not in str(hub)
        assert agent.end() == 130
    with ze.open(tmp_path / "wt1.zodiac") as kb:
        assert [str(manifest) for manifest in kb.packs()] == ["diagnosis 2"]


def printed(folder: Path, *arguments: str) -> str:
    """Run a command, and return what it prints."""
    process = Process(folder, "-".join(arguments[:2]).replace("/", "-"), *arguments)
    with ended([process]):
        code = process.process.wait(300)
    process._file.close()
    text = process.printed.read_text("utf-8").strip()
    process.printed.unlink()
    assert code == 0, text
    return text


def test_another_hub_at_the_same_address_is_not_believed(
    farm: Farm, make_device: Callable[..., Device], tmp_path: Path
) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    farm.stop()
    (tmp_path / "evil").mkdir()
    other = Farm(tmp_path / "evil")
    other.port, other._was_there = farm.port, True
    for number in (1, 2):
        other.publish(diagnosis(number, 1))
    other.start()
    try:
        other.say('all: assigned(D, "diagnosis", 2) :- device(D) .', "assign")
        device.agent._news.set()
        # It knows no device of this key, and its metadata follows from another root.
        device.settle("F008")
        device.until(lambda: any(text.startswith(("F001", "F003")) for text in device.told))
        assert device.packs() == ["diagnosis 1"]
    finally:
        other.stop()
    farm.start()
    farm.publish(diagnosis(2))
    device.settle("on probation diagnosis 2")


def test_one_rule_that_changed_costs_little_on_the_wire(tmp_path: Path) -> None:
    rules = [f"r{n}: p(X) :- q{n}(X, Y), Y > {n} ." for n in range(400)]
    with between(tmp_path / "repository") as middle:
        world = World(tmp_path, middle)
        world.repository.publish(made("\n".join(rules), 3), world.keys)
        world.assign(3)
        client = world.client()
        client.refresh()
        before = client.fetch_whole("diagnosis", client.assigned("wt1").packs["diagnosis"])
        rules[7] = "r7: p(X) :- q7(X, Y), Y > 99 ."
        world.repository.publish(made("\n".join(rules), 4), world.keys)
        world.assign(4)
        sent = middle.sent
        client.refresh()
        client.assigned("wt1")
        delta = client.fetch("diagnosis", 4, (3, before.manifest.digest))
        assert str(delta) == "diagnosis 3 to 4"
        assert middle.sent - sent < 5_000
        world.close()
