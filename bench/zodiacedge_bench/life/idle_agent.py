"""The memory of an agent that has nothing to do, by part.

A hub and an agent are started as the processes that a user would start, with what an installation brings.
The agent opens a store, gets a pack, which passes its probation, and readings; then it is left alone and its
memory map is read. Linux only.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.fleet.hub.codes import Codes
from zodiacedge.fleet.trust.keys import make_keys
from zodiacedge.fleet.trust.repository import Repository
from zodiacedge.opening import open_kb
from zodiacedge.packs.source import pack_of_folder
from zodiacedge_bench.life.footprint import libraries

if TYPE_CHECKING:
    from collections.abc import Mapping

_OPERATOR = 'wanted(D, "diagnosis") :- device(D) .\n'
_DEVICE = "alarm: alarm(T) :- hot(T), not muted(T) .\nturbine(wt1) .  turbine(wt2) .\n"
_PACK = "hot: hot(T) :- reading(T, C, N), turbine(T), C > 80 .\n"
_READINGS = 200
_PAUSE, _SETTLED, _PATIENCE = 0.02, 5.0, 120.0
_MAPPED = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+\s*(.*)")
# The folder of a distribution, and what is beside those.
_LIBRARY = re.compile(r".*/site-packages/([A-Za-z0-9_]+?)(?:\.libs)?/")


@dataclass(frozen=True, slots=True)
class IdleAgent:
    """The resident memory of an agent that has nothing to do."""

    resident_bytes: int
    anonymous_bytes: int
    """What is the process's own; the rest are pages of files, which processes share."""
    libraries: tuple[tuple[str, int], ...]
    """The pages of files by library, the largest first."""

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return asdict(self)


def idle_agent() -> IdleAgent:
    """Start a hub and an agent, wait until the agent has nothing to do, and measure it."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as open_things:
        folder = Path(name)
        environment = open_things.enter_context(libraries("fleet"))
        keys, repository = folder / "keys", Repository(folder / "hub" / "repository")
        make_keys(keys)
        repository.create(keys)
        source, rules = folder / "source", folder / "hub" / "rules"
        source.mkdir()
        rules.mkdir(parents=True)
        (source / "pack.toml").write_text('name = "diagnosis"\nversion = 1\n', encoding="utf-8")
        (source / "diagnosis.rules").write_text(_PACK, encoding="utf-8")
        (rules / "operator.rules").write_text(_OPERATOR, encoding="utf-8")
        repository.publish(pack_of_folder(source), keys)
        with open_kb(folder / "wt1.zodiac", create=True) as kb, kb.change() as change:
            change.add_rules(_DEVICE)
        code = Codes(folder / "hub" / "codes").make("wt1", [], repository.root())
        port = _free_port()
        hub = _start(folder, environment, open_things, "hub", "hub", "--keys", "keys", "--port", port)
        _wait(folder / "hub.txt", "hub hub on", hub)
        options = ("--name", "wt1", "--code", code, "--probation", 1, "--lines")
        address = f"http://127.0.0.1:{port}"
        agent = _start(folder, environment, open_things, "agent", "wt1.zodiac", "--hub", address, *options)
        if agent.stdin is None:
            raise AssertionError
        _wait(folder / "agent.txt", "active diagnosis 1", agent)
        for n in range(_READINGS):
            agent.stdin.write(f"reading(wt{1 + n % 2}, {60 + n % 30}, {n}) .\n".encode())
            agent.stdin.flush()
            time.sleep(_PAUSE)
        time.sleep(_SETTLED)
        return memory_of(agent.pid)


def memory_of(pid: int) -> IdleAgent:
    """Read the memory map of a process."""
    resident = anonymous = here = 0
    files: Counter[str] = Counter()
    library = ""
    for line in Path(f"/proc/{pid}/smaps").read_text("utf-8").splitlines():
        mapped = _MAPPED.fullmatch(line)
        if mapped:
            library = _library_of(mapped[1])
            continue
        field, _, value = line.partition(":")
        if field == "Rss":
            here = 1024 * int(value.split()[0])
            resident += here
        elif field == "Anonymous":
            own = 1024 * int(value.split()[0])
            anonymous += own
            files[library] += here - own
    return IdleAgent(resident, anonymous, tuple((name, size) for name, size in files.most_common() if size))


def _library_of(path: str) -> str:
    found = _LIBRARY.match(path)
    if found:
        return found[1]
    return "zodiacedge" if "/linked-" in path else "Python and the system"


def _start(
    folder: Path, environment: Mapping[str, str], open_things: ExitStack, command: str, *arguments: object
) -> subprocess.Popen[bytes]:
    output = open_things.enter_context((folder / f"{command}.txt").open("wb"))
    process = subprocess.Popen(
        [sys.executable, "-S", "-m", "zodiacedge", command, *map(str, arguments)],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
    )
    open_things.callback(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()


def _wait(printed: Path, text: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _PATIENCE
    while text not in printed.read_text("utf-8"):
        if time.monotonic() > end or process.poll() is not None:
            raise RuntimeError(f"{printed.stem} has not printed {text!r}: {printed.read_text('utf-8')}")
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
