"""Runs agents that kill themselves: for each line on standard input, one in a process of its own.

A line names a folder, the address of a hub, a number and a version: the agent is killed at that event of
those that `EVENTS` counts, just before the event or just after it, and ends when the version is active. It
prints whether the agent was killed, or how many events there were. A fifth word limits the sizes of files.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zodiacedge as ze
import zodiacedge.engine.embedded.engine
import zodiacedge.store.knowledge_base
from zodiacedge.fleet.agent import activation, memory
from zodiacedge.fleet.agent.agent import Agent, AgentOptions
from zodiacedge.fleet.trust import client
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.store.store import DurableStore

if TYPE_CHECKING:
    from collections.abc import Callable

# What an activation does, one after the other: files, the log of the store, the commit.
EVENTS: tuple[tuple[Any, str], ...] = (
    (activation, "write_file"),
    (memory, "write_file"),
    (client, "write_file"),
    (client.Client, "fetch"),
    (KnowledgeBase, "install"),
    (DurableStore, "record"),
    (DurableStore, "sync"),
)


class Dying:
    """Counts the events of a process, each twice, and kills the process at one of them."""

    def __init__(self, at: int) -> None:
        self.count, self._at = 0, at
        for owner, name in EVENTS:
            setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, call: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*args: object, **options: object) -> object:
            self._one_more()
            done = call(*args, **options)
            self._one_more()
            return done

        return wrapped

    def _one_more(self) -> None:
        self.count += 1
        if self.count == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


def run(folder: Path, base: str, at: int, version: int, room: int) -> None:
    """Run an agent until a version is active, and be killed at an event.

    With `room`, files may have so many bytes, as on a disk that is full.
    """
    told: list[str] = []
    with ze.open(folder / "wt1.zodiac") as kb:
        agent = Agent(kb, folder / "wt1.agent", AgentOptions(base, probation=0.0, interval=0.02), told.append)
        events = Dying(at)
        end = time.monotonic() + (4 if room else 200)
        if room:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        while time.monotonic() < end and agent.memory.active.get("diagnosis") != version:
            agent.step()
            time.sleep(0.02)
        active = agent.memory.active
        if room:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    sys.stdout.write(f"{events.count} events: {told} {active}\n")
    sys.stdout.flush()


def main() -> None:
    for line in sys.stdin:
        folder, base, at, version, room = line.split()
        child = os.fork()
        if not child:
            run(Path(folder), base, int(at), int(version), int(room))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            sys.stdout.write(f"killed by {os.WTERMSIG(status)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
