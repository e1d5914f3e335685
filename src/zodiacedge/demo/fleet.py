"""Rules that travel: a hub and three agents as processes on this machine, one behind a neighbour.

Each process is a command that a user would start. The story waits for what the agents print, and leaves none
of them running.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from random import randint
from typing import IO, TYPE_CHECKING, NamedTuple

from zodiacedge.cli.output import write_text
from zodiacedge.errors import Diagnostic, LoadProblem, UsageProblem
from zodiacedge.fleet.hub.codes import Codes
from zodiacedge.fleet.trust.keys import make_keys
from zodiacedge.fleet.trust.repository import Repository
from zodiacedge.opening import open_kb
from zodiacedge.packs.source import pack_of_folder

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.cli.console import Console

_FIRST_LINE = "Made by zodiac demo --fleet, which removes it when it is played again into this folder."
_SECONDS = 120.0
_OPERATOR = """
wanted(D, "diagnosis") :- device(D) .
canary("wt1") .
"""
_DEVICE = """
reading("{name}", 60) .
alarm: alarm(T) :- hot(T), not muted(T) .
"""
_RULES = "r1: hot(T) :- reading(T, C), C > {limit} ."
# Nothing that stands still runs hot: a version that says so is wrong.
_CHECK = '[[checks]]\nnone = "?- hot(T), reading(T, 60) ."\n'


class _Process(NamedTuple):
    name: str
    process: subprocess.Popen[bytes]
    printed: Path

    def saw(self, text: str) -> None:
        """Wait until the process has printed a text."""
        end = time.monotonic() + _SECONDS
        while text not in self.printed.read_text("utf-8"):
            if time.monotonic() > end or self.process.poll() is not None:
                why = f"{self.name} has not printed {text!r}"
                raise UsageProblem(Diagnostic("F009", why, f"look into {self.printed}"))
            time.sleep(0.05)

    def end(self) -> None:
        """End the process, whatever it does."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class _Stage:
    # The folder of the story, and the processes that play in it.

    def __init__(self, console: Console, folder: Path, open_things: ExitStack) -> None:
        self.console, self.folder, self._open = console, folder, open_things
        self.keys = folder / "keys"
        self.repository = Repository(folder / "hub" / "repository")
        self.port = _free_port()
        self._started = time.monotonic()

    def tell(self, text: str) -> None:
        """Print what happens, and when."""
        self.console.text(f"{time.monotonic() - self._started:5.1f} s  {text}")

    def publish(self, version: int, limit: int, checks: str = "") -> None:
        """Make and publish a version of the pack."""
        source = self.folder / "source"
        manifest = f'name = "diagnosis"\nversion = {version}\n{checks}'
        write_text(source / "pack.toml", manifest)
        write_text(source / "diagnosis.rules", _RULES.format(limit=limit))
        self.repository.publish(pack_of_folder(source), self.keys)

    def start(self, name: str, *arguments: object) -> _Process:
        """Start a command; it ends with the story."""
        printed = self.folder / f"{name}.txt"
        output: IO[bytes] = self._open.enter_context(printed.open("ab"))
        command = [sys.executable, "-m", "zodiacedge", *map(str, arguments)]
        process = subprocess.Popen(  # noqa: S603 - a command of this package
            command, cwd=self.folder, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
        started = _Process(name, process, printed)
        self._open.callback(started.end)
        return started

    def hub(self) -> _Process:
        """Start the hub."""
        hub = self.start("hub", "hub", "hub", "--keys", "keys", "--port", self.port)
        hub.saw("hub hub on")
        return hub

    def agent(self, name: str, hub: int, *more: object) -> _Process:
        """Make the store of a device, and start its agent."""
        with open_kb(self.folder / f"{name}.zodiac", create=True) as kb, kb.change() as change:
            change.add_rules(_DEVICE.format(name=name))
        code = Codes(self.folder / "hub" / "codes").make(name, [], self.repository.root())
        options = ("--hub", f"http://127.0.0.1:{hub}", "--name", name, "--code", code)
        times = ("--probation", 1, "--interval", 0.1)
        return self.start(name, "agent", f"{name}.zodiac", *options, *times, *more)


def play_fleet(console: Console, folder: Path) -> dict[str, object]:
    """Play the story, and return its results as plain values for JSON."""
    _prepare(folder)
    started = time.monotonic()
    with ExitStack() as open_things:
        stage = _Stage(console, folder, open_things)
        make_keys(stage.keys)
        stage.repository.create(stage.keys)
        stage.publish(1, 90)
        write_text(folder / "hub" / "rules" / "operator.rules", _OPERATOR)
        hub = stage.hub()
        stage.tell("a hub has the pack diagnosis 1; wt1 is to run new versions first")
        relay = _free_port()
        first = stage.agent("wt1", stage.port)
        second = stage.agent("wt2", stage.port, "--serve", relay)
        second.saw("serving neighbours")
        third = stage.agent("wt3", relay)
        first.saw("active diagnosis 1")
        stage.tell("wt1 has it, in force after its probation")
        second.saw("active diagnosis 1")
        third.saw("active diagnosis 1")
        stage.tell("so have wt2, and wt3, which knows the hub only through wt2")
        stage.publish(2, 50, _CHECK)
        first.saw("refused diagnosis 2")
        stage.tell("version 2 is published: its check fails on wt1, so nobody else gets it")
        hub.end()
        first.saw("F003")
        stage.tell("the hub is stopped; the devices go on with what they have")
        stage.publish(3, 80, _CHECK)
        stage.hub()
        for agent in (first, second, third):
            agent.saw("active diagnosis 3")
        stage.tell("version 3 is published, the hub is back: all three have it")
    packs = {}
    for name in ("wt1", "wt2", "wt3"):
        with open_kb(folder / f"{name}.zodiac", read_only=True) as kb:
            packs[name] = [str(manifest) for manifest in kb.packs()]
    seconds = time.monotonic() - started
    console.text(f"\nAll of it took {seconds:.0f} s. What the hub knows is a store:")
    console.text(f"zodiac query {folder}/hub/store '?- halted(Pack, Version) .'")
    return {"packs": packs, "seconds": seconds}


def _prepare(folder: Path) -> None:
    """Make the folder, and remove what an earlier story left; raise if it holds anything else."""
    notes = folder / "README.txt"
    if folder.exists() and any(folder.iterdir()):
        if not notes.is_file() or not notes.read_bytes().startswith(_FIRST_LINE.encode()):
            problem = f"{folder} cannot be written: it holds other files than those of a demo"
            raise LoadProblem(Diagnostic("U005", problem, "name another folder with --out"))
        shutil.rmtree(folder)
    write_text(notes, f"{_FIRST_LINE}\n")


def _free_port() -> int:
    # None of those that the system gives out: nobody gets it by chance while the hub is away.
    while True:
        port = randint(20_000, 32_000)  # noqa: S311 - a port is no secret
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
