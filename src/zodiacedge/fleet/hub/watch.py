"""Notices new packs, new rules and times to renew, and brings them into the store of a hub."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from zodiacedge.errors import FleetProblem, StoreProblem, ZodiacError
from zodiacedge.fleet.problems import bad_keys
from zodiacedge.fleet.trust.keys import ONLINE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zodiacedge.fleet.hub.assignments import HubState

_LOGGER = logging.getLogger(__name__)
_SECONDS = 0.5
_RENEW_SECONDS = 600.0


class Watch:
    """A thread that looks at the folders of a hub."""

    def __init__(self, state: HubState, notify: Callable[[ZodiacError], object]) -> None:
        """Start; `notify` is called with the problems of files that an operator wrote."""
        self._state = state
        self._notify = notify
        self._ended = threading.Event()
        self._looking = threading.Lock()
        self._seen: dict[Path, object] = {}
        self._renewed = 0.0
        self._problem = ""
        """What was notified last."""
        self.look()
        self._thread = threading.Thread(target=self._run, name="zodiac-hub-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    def look(self) -> None:
        """Take what is new; when this returns, it is in force, whoever took it."""
        with self._looking:
            for part in (self._look_at_key, self._look_at_rules, self._look_at_packs, self._look_at_times):
                try:
                    part()
                except ZodiacError as problem:
                    self._tell(problem)
                    if isinstance(problem, StoreProblem | FleetProblem):
                        self._seen.clear()
                except OSError as problem:
                    # Files come and go, disks are full: the next look may succeed.
                    if not isinstance(problem, FileNotFoundError):
                        note = "look at the disk, and whether the user of the hub may write all of its folder"
                        why = f"cannot be used: {problem.strerror or problem}"
                        self._tell(bad_keys(problem.filename or "the folder of the hub", why, note))
                    self._seen.clear()
                except Exception as problem:  # noqa: BLE001 - without this thread nothing new would ever come
                    _LOGGER.warning("%s", problem)
                    self._seen.clear()

    def _tell(self, problem: ZodiacError) -> None:
        """Tell a problem once."""
        _LOGGER.warning("%s", problem)
        if str(problem) != self._problem:
            self._notify(problem)
        self._problem = str(problem)

    def _look_at_key(self) -> None:
        if self._is_new(self._state.keys, f"{ONLINE}.pem"):
            self._state.take_key()

    def _look_at_rules(self) -> None:
        if self._is_new(self._state.rules, "**/*.rules"):
            self._state.take_rules()

    def _look_at_packs(self) -> None:
        if self._is_new(self._state.repository.metadata.path, "*.pack-*.json"):
            self._state.take_published()
            self._state.renew()

    def _look_at_times(self) -> None:
        if time.monotonic() > self._renewed + _RENEW_SECONDS or not self._renewed:
            self._state.renew()
            self._renewed = time.monotonic()

    def _run(self) -> None:
        while not self._ended.wait(_SECONDS):
            self.look()

    def _is_new(self, folder: Path, pattern: str) -> bool:
        """Return whether files of a folder differ from those of the last time."""
        now = sorted((p.name, p.stat().st_mtime_ns, p.stat().st_size) for p in folder.glob(pattern))
        if self._seen.get(folder) == now:
            return False
        self._seen[folder] = now
        return True
