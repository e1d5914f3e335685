"""Runs agents in network namespaces: for each line on standard input, one in a process of its own.

A line names the namespace, which is the name of the device as well, the folder, the address of the hub, a
code and a number: the agent is killed at that event of an activation. It prints the id of each process. When
standard input ends, so do all agents.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

import zodiacedge as ze
from fleet.killed_agent import Dying
from fleet.running import NEED
from zodiacedge.fleet.agent.agent import Agent, AgentOptions

_NETWORK = 0x40000000


def run(name: str, folder: Path, base: str, code: str, at: int) -> None:
    """Run the agent of a device in its namespace, until somebody kills it."""
    with Path(f"/run/netns/{name}").open("rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _NETWORK):
            raise OSError(ctypes.get_errno(), f"cannot enter the namespace {name}")
    with (
        (folder / f"{name}.txt").open("a", buffering=1) as printed,
        ze.open(folder / f"{name}.zodiac", create=True, wait=60) as kb,
    ):
        if not kb.rules:
            with kb.change() as change:
                change.add_rules(NEED)
        options = AgentOptions(base, name, code, probation=0.0, interval=0.2)
        agent = Agent(kb, folder / f"{name}.agent", options, lambda text: printed.write(f"{text}\n"))
        Dying(at)
        agent.run()


def main() -> None:
    children = []
    for line in sys.stdin:
        name, folder, base, code, at = line.split()
        child = os.fork()
        if not child:
            try:
                run(name, Path(folder), base, code, int(at))
            finally:
                os._exit(1)
        children.append(child)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
    # Until they are waited for, children that ended keep their ids: no other process is killed.
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
