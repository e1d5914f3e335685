"""Which packs are in force, and which rules they own, as a value with deltas.

A rule that no pack owns belongs to the base program. One that a pack owns may belong to the base program too:
then `Packs.base` has it, with its label there. Logs hold deltas, checkpoints whole values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.packs.fields import Fields, document_of
from zodiacedge.packs.manifest import FIELDS, Manifest, manifest_of
from zodiacedge.packs.pack import shown_label
from zodiacedge.util.cow_dict import CowDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Installed:
    """A pack in force."""

    manifest: Manifest
    labels: CowDict[str, str]
    """The labels of its rules within the pack, by id."""

    def __str__(self) -> str:
        """Return the name and the version."""
        return str(self.manifest)


@dataclass(frozen=True, slots=True)
class OwnerDelta:
    """The rules that one owner gains and loses."""

    manifest: Manifest | None = None
    """The manifest of a pack afterwards; None if it is removed, and for the base program."""
    added: Mapping[str, str] = field(default_factory=dict)
    """Labels by id."""
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there is a difference."""
        return bool(self.manifest or self.added or self.removed)

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        manifest = self.manifest.to_dict() if self.manifest else {}
        return document_of({"manifest": manifest, "added": dict(self.added), "removed": list(self.removed)})


@dataclass(frozen=True, slots=True)
class PacksDelta:
    """The difference between the packs of two versions."""

    packs: Mapping[str, OwnerDelta] = field(default_factory=dict)
    base: OwnerDelta = field(default_factory=OwnerDelta)

    def __bool__(self) -> bool:
        """Return whether there is a difference."""
        return bool(self.packs or self.base)

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON, empty if there is no difference."""
        packs = {name: delta.to_dict() for name, delta in self.packs.items()}
        return document_of({"packs": packs, "base": self.base.to_dict()})


@dataclass(frozen=True, slots=True)
class Packs:
    """The packs in force."""

    installed: Mapping[str, Installed] = field(default_factory=dict)
    """By name, in alphabetical order."""
    base: CowDict[str, str] = field(default_factory=CowDict)
    """The labels in the base program of the rules that it has in common with packs, by id."""

    def __bool__(self) -> bool:
        """Return whether a pack is in force."""
        return bool(self.installed)

    def owners(self, number: str) -> tuple[Installed, ...]:
        """Return the packs that own a rule, given by its id."""
        return tuple(pack for pack in self.installed.values() if number in pack.labels)

    def label(self, number: str) -> str:
        """Return the label of a rule that a pack owns: that of the base program if it has one."""
        own = self.base.get(number)
        if own:
            return own
        return next(shown_label(p.manifest.name, p.labels[number]) for p in self.owners(number))

    def changed(self, delta: PacksDelta) -> Packs:
        """Return the packs after a change."""
        if not delta:
            return self
        installed = dict(self.installed)
        for name, difference in delta.packs.items():
            if difference.manifest is None:
                del installed[name]
                continue
            before = installed[name].labels if name in installed else CowDict[str, str]()
            installed[name] = Installed(difference.manifest, _changed(before, difference))
        return Packs(dict(sorted(installed.items())), _changed(self.base, delta.base))

    def delta_to(self, after: Packs) -> PacksDelta:
        """Return the difference from these packs to others."""
        packs: dict[str, OwnerDelta] = {}
        for name in {**self.installed, **after.installed}:
            old, new = self.installed.get(name), after.installed.get(name)
            if new is None:
                packs[name] = OwnerDelta()
            elif old != new:
                added, removed = _difference(old.labels if old else {}, new.labels)
                packs[name] = OwnerDelta(new.manifest, added, removed)
        return PacksDelta(packs, OwnerDelta(None, *_difference(self.base, after.base)))

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return Packs().delta_to(self).to_dict()


def packs_delta_of(document: object) -> PacksDelta:
    """Read a delta of packs; raise ValueError if it is none."""
    fields = Fields(document, "packs")
    fields.only(("packs", "base"))
    packs = {name: _owner_delta(inner) for name, inner in fields.inner("packs").named_documents().items()}
    if any(delta.manifest and delta.manifest.name != name for name, delta in packs.items()):
        raise ValueError("a pack has two names")
    return PacksDelta(packs, _owner_delta(fields.inner("base")))


def packs_of(document: object) -> Packs:
    """Read packs; raise ValueError if the document does not hold any."""
    delta = packs_delta_of(document)
    if any(not difference.manifest for difference in delta.packs.values()):
        raise ValueError("a pack has no manifest")
    return Packs().changed(delta)


def moves(before: Packs, after: Packs) -> dict[str, tuple[int | None, int | None]]:
    """Return the versions, before and after, of the packs that come, go or change their version."""
    names: Iterable[str] = {**before.installed, **after.installed}
    pairs = {name: (_version(before, name), _version(after, name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def moves_for_people(moved: Mapping[str, tuple[int | None, int | None]]) -> Iterator[str]:
    """Yield what happened to each pack: `install diagnosis 8`, `upgrade …`, `remove …`."""
    for name, (old, new) in moved.items():
        if old is None:
            yield f"install {name} {new}"
        elif new is None:
            yield f"remove {name} {old}"
        else:
            yield f"{'upgrade' if new > old else 'return'} {name} {old} to {new}"


def _version(packs: Packs, name: str) -> int | None:
    pack = packs.installed.get(name)
    return pack.manifest.version if pack else None


def _owner_delta(fields: Fields) -> OwnerDelta:
    fields.only(("manifest", "added", "removed"))
    manifest: Manifest | None = None
    if "manifest" in fields:
        inner = fields.inner("manifest")
        inner.only(FIELDS)
        manifest = manifest_of(inner)
    return OwnerDelta(manifest, fields.inner("added").named_texts(), fields.digests("removed"))


def _changed(before: CowDict[str, str], delta: OwnerDelta) -> CowDict[str, str]:
    after = before.copy()
    for number in delta.removed:
        after.pop(number, None)
    after.update(delta.added)
    return after


def _difference(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    added = {number: label for number, label in after.items() if before.get(number) != label}
    return added, tuple(sorted(number for number in before if number not in after))
