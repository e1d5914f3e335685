"""A pack on its way: staged, refused, on probation, active, returned.

A kill at any step leaves the version before or the one after, since the only step that changes the store is
one transaction. The way back is written before it: a delta to what was in force, which needs no network.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.errors import FleetProblem, PackProblem, StoreProblem, ZodiacError
from zodiacedge.fleet.trust.metadata import write_file
from zodiacedge.packs.delta import PackDelta
from zodiacedge.packs.file import encoded, read_pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from zodiacedge.fleet.agent.memory import AgentMemory
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.packs.pack import Pack

    Notify = Callable[[str], object]

_MOST_REASONS = 5
# Codes of packs: a delta that does not fit, and packs that are missing.
_MISFIT, _LACKS_PACKS = "P009", "P005"


class PackState(NamedTuple):
    """The state of a pack on a device."""

    version: int
    state: str
    reasons: tuple[str, ...] = ()


class Activation:
    """Brings packs into force in a store, watches their checks, and takes them back."""

    def __init__(
        self, kb: KnowledgeBase, memory: AgentMemory, folder: Path, probation: float, notify: Notify
    ) -> None:
        """Set the store, and the seconds that a pack is on probation."""
        self._kb, self._memory, self._folder = kb, memory, folder
        self._probation, self._notify = probation, notify
        self._staged: dict[str, PackState] = {}
        self._said: dict[str, str] = {}
        self._recover()

    def installed(self, name: str) -> int | None:
        """Return the version of a pack that is in force."""
        pack = self._kb.installed.installed.get(name)
        return pack.manifest.version if pack else None

    def bring(
        self,
        name: str,
        version: int,
        fetch: Callable[[], Pack | PackDelta],
        fetch_whole: Callable[[], Pack],
    ) -> None:
        """Bring a version of a pack into force, unless it is, or failed before.

        Raises FleetProblem, StoreProblem or OSError if that may succeed later.
        """
        if self.installed(name) == version or self._memory.has_failed(name, version):
            return
        if name not in self._staged:
            self._say(name, f"staged {name} {version}")
        self._staged[name] = PackState(version, "staged")
        try:
            try:
                self._install(fetch())
            except PackProblem as problem:
                if problem.diagnostics[0].code != _MISFIT:
                    raise
                self._install(fetch_whole())
        except (FleetProblem, StoreProblem, OSError) as problem:
            self._staged[name] = PackState(version, "staged", tuple(_reasons(problem)))
            raise
        except ZodiacError as problem:
            reasons = tuple(_reasons(problem))
            if {found.code for found in problem.diagnostics} == {_LACKS_PACKS}:
                # What it needs may come next.
                self._staged[name] = PackState(version, "staged", reasons)
                self._say(name, f"waiting {name} {version}: {'; '.join(reasons)}")
                return
            self._memory.fail(name, version, list(reasons))
            self._staged.pop(name)
            self._say(name, f"refused {name} {version}: {'; '.join(reasons)}")
            return
        self._staged.pop(name)
        self._begin_probation(name)
        self._say(name, f"on probation {name} {version}")

    def _install(self, pack: Pack | PackDelta) -> None:
        """Write the way back, and put a pack in force."""
        name = pack.name
        way_back, path = self._kb.way_back(pack), self._way_back(name)
        if way_back is None:
            path.unlink(missing_ok=True)
        else:
            write_file(path, encoded(way_back))
        self._memory.bringing[name] = pack.manifest.version
        self._memory.save()
        self._kb.install(pack, older=True)

    def _begin_probation(self, name: str) -> None:
        self._memory.probation[name] = time.time()
        self._memory.bringing.pop(name, None)
        self._memory.returned.pop(name, None)
        self._memory.save()

    def drop(self, name: str) -> None:
        """Remove a pack that is no longer to run."""
        try:
            self._kb.remove_pack(name)
        except ZodiacError as problem:
            self._say(name, f"cannot remove {name}: {'; '.join(_reasons(problem))}")
            return
        memory = self._memory
        for noted in (memory.active, memory.probation, memory.returned, memory.own):
            noted.pop(name, None)
        memory.save()
        self._say(name, f"removed {name}")

    def watch(self) -> None:
        """Look at the packs on probation: take back those whose checks fail, let the others pass in time."""
        if not self._memory.probation:
            return
        failing: dict[str, list[str]] = {}
        for manifest, check in self._kb.failing_checks():
            failing.setdefault(manifest.name, []).append(f"there must be {check}")
        for name, since in list(self._memory.probation.items()):
            version = self.installed(name)
            if version is None:
                del self._memory.probation[name]
                self._memory.save()
            elif name in failing:
                self._memory.fail(name, version, failing[name])
                self._return(name, version)
            # A clock that was set back must not make a probation endless.
            elif not 0 <= time.time() - since < self._probation:
                self._memory.active[name] = version
                del self._memory.probation[name]
                self._memory.save()
                self._say(name, f"active {name} {version}")

    def states(self) -> dict[str, PackState]:
        """Return the state of each pack."""
        memory = self._memory
        states = {}
        for name, pack in self._kb.installed.installed.items():
            version = pack.manifest.version
            states[name] = PackState(version, "probation" if name in memory.probation else "active")
        for name, version in memory.returned.items():
            states[name] = PackState(version, "returned", tuple(memory.failed[name][str(version)]))
        for name, versions in memory.failed.items():
            newest = max(map(int, versions))
            there = states.get(name)
            if there is None or (there.state != "returned" and newest > there.version):
                states[name] = PackState(newest, "refused", tuple(versions[str(newest)]))
        return states | self._staged

    def _return(self, name: str, version: int) -> None:
        """Take a version back to what was in force before it."""
        path = self._way_back(name)
        try:
            back = read_pack(path) if path.exists() else None
            if isinstance(back, PackDelta) and back.base == version:
                # It was in force: its checks may fail as well by now, and are not asked.
                self._kb.install(back, older=True, checked=False)
                self._memory.active[name] = back.manifest.version
            else:
                self._kb.remove_pack(name)
                self._memory.active.pop(name, None)
        except ZodiacError as problem:
            self._say(name, f"cannot take {name} {version} back: {'; '.join(_reasons(problem))}")
            return
        self._memory.probation.pop(name, None)
        self._memory.returned[name] = version
        self._memory.save()
        self._say(name, f"returned {name} {version}: {'; '.join(self._memory.failed[name][str(version)])}")

    def _recover(self) -> None:
        """Go on where the agent was killed."""
        memory = self._memory
        for name in {*memory.managed, *memory.bringing}:
            version = self.installed(name)
            if version is None:
                memory.active.pop(name, None)
                memory.probation.pop(name, None)
            elif memory.has_failed(name, version):
                self._return(name, version)
            elif memory.bringing.get(name) == version:
                self._begin_probation(name)
        memory.bringing.clear()
        memory.save()

    def _say(self, name: str, text: str) -> None:
        """Tell what happens to a pack, once."""
        if self._said.get(name) != text:
            self._said[name] = text
            self._notify(text)

    def _way_back(self, name: str) -> Path:
        return self._folder / "way-back" / f"{name}.zdelta"


def _reasons(problem: Exception) -> Iterator[str]:
    if isinstance(problem, ZodiacError):
        for found in problem.diagnostics[:_MOST_REASONS]:
            yield f"{found.code}: {found.message}"
    else:
        yield str(problem)
