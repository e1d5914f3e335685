"""Packs without an assignment: those that the owner of a device allows, while no hub is heard.

They come from neighbours. The key of packs must have published them, and the metadata must be fresh. Where a
hub assigns the pack, its word counts instead. Neither packs nor neighbours can allow anything: the owner
names packs when the agent starts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from zodiacedge.errors import FleetProblem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from zodiacedge.fleet.agent.activation import Activation
    from zodiacedge.fleet.agent.memory import AgentMemory
    from zodiacedge.fleet.trust.client import Client


class OwnPolicy:
    """The packs that the owner of a device allows."""

    def __init__(
        self, allowed: Iterable[str], memory: AgentMemory, activation: Activation, client: Client
    ) -> None:
        """Set the names of the packs that may come without an assignment."""
        self._allowed = frozenset(allowed)
        self._memory, self._activation, self._client = memory, activation, client

    def lacking(self, assigned: AbstractSet[str]) -> list[str]:
        """Return the packs that are needed, allowed and not there, and that no hub assigns."""
        wanted = (self._allowed & self._memory.needed.keys()) - assigned
        return [name for name in sorted(wanted) if self._activation.installed(name) is None]

    def bring(self, assigned: AbstractSet[str], neighbours: Iterable[str]) -> None:
        """Bring the newest versions of packs that are lacking, from the first neighbour that has them.

        Raises the last problem with a neighbour, if none of them has all.
        """
        problem: FleetProblem | None = None
        for base in neighbours:
            lacking = self.lacking(assigned)
            if not lacking:
                return
            try:
                with self._client.asking(base):
                    self._bring_from_one(lacking)
            except FleetProblem as found:
                problem = found
            else:
                problem = None
        if problem is not None and self.lacking(assigned):
            raise problem

    def _bring_from_one(self, names: Iterable[str]) -> None:
        self._client.refresh()
        for name in names:
            version = self._client.newest(name)
            if version is None or self._memory.has_failed(name, version):
                continue
            # On disk before the pack: what is brought is noted, also after a kill.
            self._memory.own[name] = version
            self._memory.save()
            fetch = partial(self._client.fetch_whole, name, version)
            self._activation.bring(name, version, fetch, fetch)

    def keep(self, assigned: AbstractSet[str] | None) -> set[str]:
        """Return the packs that stay without an assignment; drop those that are needed or allowed no more.

        What a hub assigns by now is its matter.
        """
        own = self._memory.own
        for name in sorted(own.keys() & (assigned or set())):
            del own[name]
            self._memory.save()
        kept = own.keys() & self._allowed & self._memory.needed.keys()
        for name in sorted(own.keys() - kept):
            # What was installed by hand, though it is noted here, stays.
            if name in self._memory.managed and self._activation.installed(name) is not None:
                self._activation.drop(name)
            else:
                del own[name]
                self._memory.save()
        return set(kept)
