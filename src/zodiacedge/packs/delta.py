"""What turns one version of a pack into another: the rules added, and the ids of those removed.

A delta has the manifest of the later version, so that it says what the result must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.packs.pack import Pack, digest_of
from zodiacedge.packs.problems import does_not_fit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.language.ast import Rule
    from zodiacedge.packs.manifest import Manifest


@dataclass(frozen=True, slots=True)
class PackDelta:
    """The difference between two versions of a pack."""

    base: int
    """The version that it turns into that of the manifest."""
    before: str
    """The digest of that version."""
    manifest: Manifest
    added: Mapping[str, Rule]
    """Rules that are new or have another label, by id."""
    removed: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the pack."""
        return self.manifest.name

    def __str__(self) -> str:
        """Return the name and the two versions."""
        return f"{self.name} {self.base} to {self.manifest.version}"

    def labels(self, before: Mapping[str, str]) -> dict[str, str]:
        """Return the labels of the later version by id, given the earlier ones; raise if it does not fit."""
        if any(number not in before for number in self.removed):
            raise does_not_fit(self.name, "it removes a rule that is not there")
        gone = set(self.removed)
        after = {number: label for number, label in before.items() if number not in gone}
        after |= {number: rule.label for number, rule in self.added.items()}
        if digest_of(after) != self.manifest.digest:
            raise does_not_fit(self.name, "the rules that it leads to have another digest")
        return after

    def applied(self, pack: Pack) -> Pack:
        """Return the later version, or raise if the earlier one is not what the delta was made for."""
        if (pack.name, pack.version) != (self.name, self.base):
            raise does_not_fit(self.name, f"it starts at version {self.base}, this is {pack}")
        after = self.labels(pack.labels)
        rules = {number: self.added.get(number) or pack.rules[number] for number in after}
        return Pack(self.manifest, dict(sorted(rules.items(), key=lambda item: (item[1].label, item[0]))))


def delta_between(before: Pack, after: Pack) -> PackDelta:
    """Return the difference between two versions of a pack."""
    if before.name != after.name:
        raise does_not_fit(after.name, f"it cannot start at another pack, {before.name}")
    return PackDelta(
        before.version,
        before.manifest.digest,
        after.manifest,
        {
            number: rule
            for number, rule in after.rules.items()
            if number not in before.rules or before.rules[number].label != rule.label
        },
        tuple(sorted(number for number in before.rules if number not in after.rules)),
    )
