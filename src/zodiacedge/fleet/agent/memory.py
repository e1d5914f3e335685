"""What an agent must not forget when it is killed, in one file that is replaced as a whole.

The store says which packs are in force. This file says what is thought of them; where the two differ, the
store is right and the agent goes on from there.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, FleetProblem
from zodiacedge.fleet.trust.metadata import write_file

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class AgentMemory:
    """The memory of an agent."""

    path: Path
    name: str = ""
    """The name that the device enrolled with."""
    sequence: int = 0
    """The number of the last status that was sent."""
    bringing: dict[str, int] = field(default_factory=dict)
    """The versions that are about to come into force."""
    active: dict[str, int] = field(default_factory=dict)
    """The versions that passed their probation."""
    probation: dict[str, float] = field(default_factory=dict)
    """When the probation of packs in force began, in seconds since 1970."""
    failed: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Versions that were refused or taken back, with the reasons."""
    returned: dict[str, int] = field(default_factory=dict)
    """The versions that were taken back last."""
    own: dict[str, int] = field(default_factory=dict)
    """The versions that came by the owner's policy, without an assignment."""
    needed: dict[str, float] = field(default_factory=dict)
    """When packs were needed last, in seconds since 1970."""
    stale: float = 0.0
    """Since when nothing new could be believed; 0 if it could."""

    @classmethod
    def load(cls, path: Path) -> AgentMemory:
        """Load the memory, empty if there is none."""
        try:
            document = json.loads(path.read_bytes())
            return cls(path, **document)
        except FileNotFoundError:
            return cls(path)
        except (ValueError, TypeError) as error:
            note = "remove it: the device enrols again then, and begins its probations again"
            raise FleetProblem(Diagnostic("F009", f"{path} is damaged: {error}", note)) from error

    def save(self) -> None:
        """Replace the file."""
        document = asdict(self)
        del document["path"]
        write_file(self.path, json.dumps(document).encode())

    @property
    def managed(self) -> set[str]:
        """The packs that the agent brought; others are left alone."""
        return {*self.active, *self.probation}

    def has_failed(self, pack: str, version: int) -> bool:
        """Return whether a version was refused or taken back."""
        return str(version) in self.failed.get(pack, {})

    def fail(self, pack: str, version: int, reasons: list[str]) -> None:
        """Note that a version was refused or taken back."""
        self.failed.setdefault(pack, {})[str(version)] = reasons
        self.save()
