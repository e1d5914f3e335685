"""A hub as a process, its processor time, and a wire that counts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import randint
from typing import TYPE_CHECKING
from urllib.request import urlopen

from zodiacedge.fleet.hub.codes import Codes
from zodiacedge.fleet.trust.keys import make_keys
from zodiacedge.fleet.trust.repository import Repository
from zodiacedge.packs.source import pack_of_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

_CHUNK = 1 << 16
_START_SECONDS = 120.0


class HubProcess:
    """The folder of a hub, and the command that serves it."""

    def __init__(self, folder: Path, rules: str) -> None:
        """Make keys, a repository and the operator's rules."""
        self.folder, self._keys = folder, folder / "keys"
        make_keys(self._keys)
        self.repository = Repository(folder / "hub" / "repository")
        self.repository.create(self._keys)
        (folder / "hub" / "rules").mkdir(parents=True)
        (folder / "hub" / "rules" / "operator.rules").write_text(rules, "utf-8")
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}/"
        self._process: subprocess.Popen[bytes] | None = None
        self._cpu_before = 0.0

    def start(self) -> None:
        """Start the hub, and wait until it answers."""
        command = (
            sys.executable,
            "-m",
            "zodiacedge",
            "hub",
            "hub",
            "--keys",
            "keys",
            "--port",
            str(self.port),
        )
        with (self.folder / "hub.txt").open("ab") as printed:
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=printed, stderr=printed)
        end = time.monotonic() + _START_SECONDS
        while True:
            with suppress(OSError), urlopen(f"{self.base}healthz"):  # noqa: S310 - on this machine
                return
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError((self.folder / "hub.txt").read_text("utf-8"))
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill the hub, if it runs."""
        if self._process is not None:
            self._cpu_before = self.cpu_seconds()
            self._process.kill()
            self._process.wait()
            self._process = None

    def cpu_seconds(self) -> float:
        """Return the processor time of all hubs so far."""
        if self._process is None:
            return self._cpu_before
        fields = Path(f"/proc/{self._process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return self._cpu_before + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def codes(self, names: Iterable[str]) -> dict[str, str]:
        """Return codes that enrol devices."""
        codes, root = Codes(self.folder / "hub" / "codes"), self.repository.root()
        return {name: codes.make(name, [], root) for name in names}

    def publish(self, name: str, version: int, rules: str) -> None:
        """Make a pack of some rules and publish it."""
        source = self.folder / "source" / name
        source.mkdir(parents=True, exist_ok=True)
        (source / "pack.toml").write_text(f'name = "{name}"\nversion = {version}\n', "utf-8")
        (source / "all.rules").write_text(rules, "utf-8")
        self.repository.publish(pack_of_folder(source), self._keys)


class CountingWire:
    """Passes bytes on to a port of this machine, and counts them in both directions."""

    def __init__(self, port: int) -> None:
        """Listen on a port of its own."""
        self._to = port
        self.bytes = 0
        self._listens = socket.create_server(("127.0.0.1", 0))
        self.base = f"http://127.0.0.1:{self._listens.getsockname()[1]}/"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listens.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listens.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError), one, other:
            while data := one.recv(_CHUNK):
                self.bytes += len(data)
                other.sendall(data)


def free_port() -> int:
    """Return a port that the system gives to nobody while the hub is away."""
    while True:
        port = randint(20_000, 32_000)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
