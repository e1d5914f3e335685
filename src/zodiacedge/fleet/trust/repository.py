"""A repository of packs: a folder of signed metadata and of blobs, which any static server may serve.

    metadata/N.root.json, N.targets.json, N.pack-NAME.json, N.snapshot.json, timestamp.json
    metadata/devices/DEVICE.json       which packs a device is to run
    targets/packs/NAME/HASH.8.zpack    compressed packs and deltas: blobs, named by their contents

Publishing needs the key of packs. What needs the online key can be done later, by the hub.
"""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from securesystemslib.signer import CryptoSigner
from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import (
    DelegatedRole,
    Delegations,
    MetaFile,
    Root,
    Snapshot,
    TargetFile,
    Targets,
    Timestamp,
)

from zodiacedge.errors import Diagnostic, FleetProblem
from zodiacedge.fleet.clock import now
from zodiacedge.fleet.problems import bad_keys
from zodiacedge.fleet.trust.keys import NAMES, ONLINE, PACKS, ROOT, has_key, key_in, write_key
from zodiacedge.fleet.trust.metadata import (
    ASSIGNMENT,
    LIFETIMES,
    MetadataFolder,
    delta_path,
    device_path,
    pack_at,
    pack_of_role,
    pack_path,
    pack_role,
    read_signed,
    signed_bytes,
    write_file,
)
from zodiacedge.packs.delta import delta_between
from zodiacedge.packs.file import decoded, encoded
from zodiacedge.packs.pack import Pack
from zodiacedge.util.gzipped import gzipped

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from zodiacedge.packs.delta import PackDelta

Published = Mapping[str, Mapping[int, TargetFile]]
"""The versions of packs, with what identifies the contents of each."""
# So many versions of a pack can be assigned, and deltas to the newest start at them.
KEPT = 5
# The roles of the top level and the keys that sign them.
_KEYS = {Root.type: ROOT, Targets.type: PACKS, Snapshot.type: ONLINE, Timestamp.type: ONLINE}


class Repository:
    """A repository in a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Use a folder, which may not hold a repository yet."""
        self.path = Path(folder)
        self.metadata = MetadataFolder(self.path / "metadata")

    def refuse_if_there(self) -> None:
        """Raise if the folder holds a repository."""
        if self.metadata.version(Root.type):
            raise bad_keys(self.path, "is a repository already", "name a new folder")

    def create(self, keys: str | os.PathLike[str]) -> None:
        """Make an empty repository that trusts the keys of a folder."""
        self.refuse_if_there()
        signers = {name: key_in(keys, name) for name in NAMES}
        root = Root(version=1, consistent_snapshot=True)
        for role, name in _KEYS.items():
            root.add_key(signers[name].public_key, role)
        with self._exclusive():
            self.metadata.write(Root.type, 1, signed_bytes(root, [signers[ROOT]], LIFETIMES[Root.type]))
            online = signers[ONLINE].public_key
            delegated = DelegatedRole(ASSIGNMENT, [online.keyid], 1, terminating=True, paths=["devices/*"])
            delegations = Delegations({online.keyid: online}, {ASSIGNMENT: delegated})
            targets = Targets(version=1, delegations=delegations)
            self.metadata.write(
                Targets.type, 1, signed_bytes(targets, [signers[PACKS]], LIFETIMES[Targets.type])
            )
            self._renew(signers[ONLINE])

    def root(self) -> bytes:
        """Return the first root, which devices are given when they enrol."""
        try:
            return (self.metadata.path / "1.root.json").read_bytes()
        except OSError as error:
            note = "zodiac keys init --repo DIR makes one"
            raise bad_keys(self.path, "is no repository", note) from error

    def published(self) -> Published:
        """Return what can be assigned: what the snapshot lists that devices see by now."""
        timestamp = self.metadata.newest(Timestamp.type, Timestamp)
        snapshot = self.metadata.at(Snapshot.type, timestamp.snapshot_meta.version, Snapshot)
        found: dict[str, dict[int, TargetFile]] = {}
        for listed, meta in sorted(snapshot.meta.items()):
            role = listed.removesuffix(".json")
            if role != Targets.type:
                targets = self.metadata.at(role, meta.version, Targets).targets
                packs = ((pack_at(path), target) for path, target in targets.items())
                found[pack_of_role(role)] = {pack[1]: target for pack, target in packs if pack}
        return found

    def _names(self) -> list[str]:
        """Return the packs that have a role."""
        return sorted(
            {pack_of_role(p.name.split(".", 1)[1][:-5]) for p in self.metadata.path.glob("*.pack-*.json")}
        )

    def publish(self, pack: Pack, keys: str | os.PathLike[str]) -> list[str]:
        """Publish a pack, with deltas from versions before; return the paths of what is new.

        With the online key in the folder, devices can take it at once; else when the hub renews.
        """
        signer = key_in(keys, PACKS)
        self.root()
        with self._exclusive():
            role = self._delegated(pack.name, signer)
            versions = self._versions(role)
            if versions and pack.version <= max(versions):
                raise FleetProblem(
                    Diagnostic(
                        "F007",
                        f"version {max(versions)} of the pack {pack.name} is published, so {pack} is refused",
                        "versions rise: to go back, publish the old contents under a new version",
                    )
                )
            new = dict(self._blobs(pack, role))
            for path in list(role.targets):
                kept = pack_at(path)
                if kept is None or kept[1] in sorted(versions)[: 1 - KEPT]:
                    del role.targets[path]
            role.targets |= new
            name = pack_role(pack.name)
            role.version = self.metadata.version(name) + 1
            data = signed_bytes(role, [signer], LIFETIMES[Targets.type])
            self.metadata.write(name, role.version, data)
            if has_key(keys, ONLINE):
                self._renew(key_in(keys, ONLINE))
        return list(new)

    def _blobs(self, pack: Pack, role: Targets) -> Iterator[tuple[str, TargetFile]]:
        """Write the blobs of a new version and yield what the role says about them."""
        yield self._blob(pack_path(pack.name, pack.version), pack)
        for version in self._versions(role)[1 - KEPT :]:
            before = self.pack(pack.name, version)
            delta = delta_between(before, pack)
            yield self._blob(delta_path(pack.name, version, pack.version), delta)

    def _blob(self, path: str, contents: Pack | PackDelta) -> tuple[str, TargetFile]:
        data = gzipped(encoded(contents))
        target = TargetFile.from_data(path, data, ["sha256"])
        write_file(self.path / "targets" / next(iter(target.get_prefixed_paths())), data)
        return path, target

    def pack(self, name: str, version: int) -> Pack:
        """Return a published pack."""
        target = self._role(name).targets[pack_path(name, version)]
        path = self.path / "targets" / next(iter(target.get_prefixed_paths()))
        pack = decoded(path.read_bytes(), str(path))
        if isinstance(pack, Pack):
            return pack
        raise bad_keys(path, "is no pack", "restore it from a copy")

    def assign(
        self,
        device: str,
        packs: Mapping[str, int],
        online: CryptoSigner,
        published: Published | None = None,
    ) -> bool:
        """Say which packs a device is to run; return whether that is new, or was about to expire.

        What is published need not be read again, if the caller has it.
        """
        published = self.published() if published is None else published
        targets = {
            pack_path(name, version): published[name][version] for name, version in sorted(packs.items())
        }
        file = self.metadata.path / device_path(device)
        before: Targets | None = None
        if file.exists():
            metadata = read_signed(file.read_bytes(), Targets)
            before = metadata.signed
            fresh = before.expires - now() > LIFETIMES[ASSIGNMENT] / 2
            if before.targets == targets and fresh and online.public_key.keyid in metadata.signatures:
                return False
        version = before.version + 1 if before else 1
        signed = Targets(version=version, targets=targets, unrecognized_fields={"device": device})
        write_file(file, signed_bytes(signed, [online], LIFETIMES[ASSIGNMENT]))
        return True

    def renew(self, online: CryptoSigner, *, only_if_needed: bool = False) -> bool:
        """Sign a snapshot of what is there, and a timestamp; return whether anything changed."""
        with self._exclusive():
            trusted = self.metadata.newest(Root.type, Root).roles[Timestamp.type].keyids
            if online.public_key.keyid not in trusted:
                note = "give the hub the key online of the folder where zodiac keys rotate wrote a new one"
                raise bad_keys(self.path, "trusts another key online", note)
            if only_if_needed and not self._is_due():
                return False
            self._renew(online)
            return True

    def rotate(self, keys: str | os.PathLike[str], *names: str) -> None:
        """Replace keys by new ones, in the folder and in the metadata; a device follows from root to root."""
        folder = Path(keys)
        old_root = key_in(folder, ROOT)
        self.root()
        with self._exclusive():
            root = self.metadata.newest(Root.type, Root)
            signers = {name: key_in(folder, name) for name in NAMES}
            before = {name: signer.public_key.keyid for name, signer in signers.items()}
            for name in names:
                signers[name] = CryptoSigner.generate_ed25519()
            for role, name in _KEYS.items():
                if name in names:
                    root.revoke_key(before[name], role)
                    root.add_key(signers[name].public_key, role)
            root.version += 1
            both = [old_root, *([signers[ROOT]] if ROOT in names else [])]
            data = signed_bytes(root, both, LIFETIMES[Root.type])
            # The new keys are safe before anything trusts them.
            for name in names:
                write_key(folder, name, signers[name])
            self.metadata.write(Root.type, root.version, data)
            self._resign(before, signers)
            self._renew(signers[ONLINE], fresh=ONLINE in names)

    def _resign(self, before: Mapping[str, str], signers: Mapping[str, CryptoSigner]) -> None:
        """Sign the role of targets and those of packs with the keys in force."""
        targets = self.metadata.newest(Targets.type, Targets)
        names = {PACKS: [pack_role(name) for name in self._names()], ONLINE: [ASSIGNMENT]}
        for key, roles in names.items():
            for role in roles:
                if before[key] != signers[key].public_key.keyid:
                    targets.revoke_key(before[key], role)
                    targets.add_key(signers[key].public_key, role)
        lifetime = LIFETIMES[Targets.type]
        for role in names[PACKS]:
            signed = self.metadata.newest(role, Targets)
            signed.version += 1
            self.metadata.write(role, signed.version, signed_bytes(signed, [signers[PACKS]], lifetime))
        targets.version += 1
        self.metadata.write(Targets.type, targets.version, signed_bytes(targets, [signers[PACKS]], lifetime))

    def _delegated(self, name: str, signer: CryptoSigner) -> Targets:
        """Return the role of a pack; a new pack gets one."""
        role = pack_role(name)
        if self.metadata.version(role):
            return self.metadata.newest(role, Targets)
        targets = self.metadata.newest(Targets.type, Targets)
        assert targets.delegations is not None  # noqa: S101 - assignments are delegated from the start
        assert targets.delegations.roles is not None  # noqa: S101 - as above
        targets.delegations.roles[role] = DelegatedRole(
            role, [], 1, terminating=True, paths=[f"packs/{name}/*"]
        )
        targets.add_key(signer.public_key, role)
        targets.version += 1
        data = signed_bytes(targets, [signer], LIFETIMES[Targets.type])
        self.metadata.write(Targets.type, targets.version, data)
        return Targets()

    def _role(self, name: str) -> Targets:
        if not self.metadata.version(pack_role(name)):
            return Targets()
        return self.metadata.newest(pack_role(name), Targets)

    @staticmethod
    def _versions(role: Targets) -> list[int]:
        return sorted(found[1] for found in map(pack_at, role.targets) if found)

    def _current(self) -> dict[str, MetaFile]:
        """Return the newest versions of the roles that a snapshot lists."""
        roles = [Targets.type, *(pack_role(name) for name in self._names())]
        return {f"{role}.json": MetaFile(self.metadata.version(role)) for role in roles}

    def _is_due(self) -> bool:
        """Return whether one of the three is older than what it lists, or past half of its time."""
        timestamp = self.metadata.newest(Timestamp.type, Timestamp)
        snapshot = self.metadata.newest(Snapshot.type, Snapshot)
        half = {role: LIFETIMES[role] / 2 for role in (Timestamp.type, Snapshot.type)}
        return (
            snapshot.meta != self._current()
            or timestamp.snapshot_meta.version != snapshot.version
            or timestamp.expires - now() < half[Timestamp.type]
            or snapshot.expires - now() < half[Snapshot.type]
        )

    def _renew(self, online: CryptoSigner, *, fresh: bool = False) -> None:
        """Write a snapshot and a timestamp; with a new key their versions may start again."""
        number = max(self.metadata.version(Snapshot.type), 0) + 1
        snapshot = Snapshot(version=number, meta=self._current())
        data = signed_bytes(snapshot, [online], LIFETIMES[Snapshot.type])
        self.metadata.write(Snapshot.type, number, data)
        before = self._timestamp_version()
        timestamp = Timestamp(version=1 if fresh else before + 1, snapshot_meta=MetaFile(number))
        self.metadata.write(Timestamp.type, 0, signed_bytes(timestamp, [online], LIFETIMES[Timestamp.type]))

    def _timestamp_version(self) -> int:
        try:
            data = (self.metadata.path / "timestamp.json").read_bytes()
            return read_signed(data, Timestamp).signed.version
        except (OSError, RepositoryError):
            return 0

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Let one process at a time write metadata."""
        self.metadata.path.mkdir(parents=True, exist_ok=True)
        with (self.metadata.path / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
