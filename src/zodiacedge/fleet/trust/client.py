"""What a device believes: metadata that follows from the root it was given, and nothing else.

The folder of a client keeps the newest metadata, so that nothing older is taken later, also after a restart.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from tuf.api.exceptions import (
    DownloadError,
    DownloadLengthMismatchError,
    ExpiredMetadataError,
    RepositoryError,
)
from tuf.api.metadata import Root, Snapshot, Targets
from tuf.ngclient import Updater, UpdaterConfig

from zodiacedge.fleet.clock import now
from zodiacedge.fleet.problems import disagreed, expired, refused, unreachable
from zodiacedge.fleet.trust.metadata import (
    ASSIGNMENT,
    delta_path,
    device_path,
    pack_at,
    pack_path,
    pack_role,
    read_signed,
    write_file,
)
from zodiacedge.fleet.trust.wire import FirstThatAnswers, Wire
from zodiacedge.packs.delta import PackDelta
from zodiacedge.packs.file import MOST_BYTES, decoded
from zodiacedge.packs.pack import Pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tuf.api.metadata import TargetFile

    from zodiacedge.errors import FleetProblem

_MOST_ASSIGNMENT = 1 << 18
# Metadata of a repository with some hundred packs; an attacker gets no more memory than this.
_LIMITS = UpdaterConfig(
    root_max_length=1 << 18,
    snapshot_max_length=1 << 20,
    targets_max_length=1 << 20,
    max_root_rotations=64,
)
_TARGETS = f"{FirstThatAnswers.MARK}targets/"
_METADATA = f"{FirstThatAnswers.MARK}metadata/"


class Assigned(NamedTuple):
    """The packs that a device is to run, with their versions, as said at one time."""

    packs: Mapping[str, int]
    version: int


class Client:
    """A client of a repository, in a folder."""

    def __init__(self, folder: Path, root: bytes, bases: Sequence[str], *, seconds: float = 60.0) -> None:
        """Trust a root; metadata and blobs are asked for at some servers in turn."""
        self.folder = folder
        self.bases = list(bases)
        """The addresses of servers, each with a slash at its end."""
        self.wire = Wire(folder / "partial", seconds=seconds)
        self._root = root
        self._fetcher = FirstThatAnswers(self.wire, lambda: self.bases)
        self._updater: Updater | None = None
        (folder / "metadata").mkdir(parents=True, exist_ok=True)

    def close(self) -> None:
        """Close connections."""
        self.wire.close()

    @contextmanager
    def asking(self, base: str) -> Iterator[None]:
        """Ask one server instead; what is believed of it is what is believed of any."""
        usual, self.bases = self.bases, [base]
        try:
            yield
        finally:
            self.bases, self._updater = usual, None

    def refresh(self) -> None:
        """Bring the metadata up to date, or raise: it is refused, has expired, or no server answers."""
        self._updater = None
        try:
            updater = Updater(
                str(self.folder / "metadata"),
                _METADATA,
                target_base_url=_TARGETS,
                fetcher=self._fetcher,
                config=_LIMITS,
                bootstrap=self._root,
            )
            updater.refresh()
        except (DownloadError, RepositoryError, OSError, ValueError) as error:
            raise _problem("the metadata", self.bases, error) from error
        self._updater = updater

    def assigned(self, device: str) -> Assigned:
        """Return what this device is to run, or raise if nobody who may has said so lately."""
        trusted = self._trusted_targets()
        kept = self.folder / "assignment.json"
        before: Targets | None = None
        if kept.exists():
            try:
                before = _verified(kept.read_bytes(), trusted)
            except RepositoryError:
                # Its key is trusted no more: an attacker who had it may have counted up its version.
                before = None
        what = f"the assignment of {device}"
        try:
            data = self._fetcher.download_bytes(f"{_METADATA}{device_path(device)}", _MOST_ASSIGNMENT)
            signed = _verified(data, trusted)
        except (DownloadError, RepositoryError) as error:
            raise _problem(what, self.bases, error) from error
        named = signed.unrecognized_fields.get("device")
        if named != device:
            raise refused(what, f"it is that of the device {named}")
        if before and signed.version < before.version:
            raise refused(what, f"its version {signed.version} is older than {before.version}")
        if signed.is_expired(now()):
            raise expired(what, f"it lasted until {signed.expires:%Y-%m-%d %H:%M} UTC")
        packs = dict(self._agreed(what, signed))
        write_file(kept, data)
        return Assigned(packs, signed.version)

    def _agreed(self, what: str, signed: Targets) -> Iterator[tuple[str, int]]:
        """Yield the packs of an assignment that are published with the same contents."""
        for path, target in signed.targets.items():
            found = pack_at(path)
            if found is None:
                raise disagreed(what, f"{path} is no pack")
            published = self._target(path)
            if published is None:
                raise disagreed(what, f"{found[0]} {found[1]} is assigned and not published")
            if (published.hashes, published.length) != (target.hashes, target.length):
                raise disagreed(what, f"{found[0]} {found[1]} is assigned with other contents than published")
            yield found

    def newest(self, name: str) -> int | None:
        """Return the newest published version of a pack, whoever it is assigned to; None if there is none."""
        # Asking for one version loads what says which there are.
        self._target(pack_path(name, 1))
        signed = self._role(pack_role(name))
        found = [pack_at(path) for path in signed.targets] if signed else []
        return max((pack[1] for pack in found if pack), default=None)

    def fetch(self, name: str, version: int, base: tuple[int, str] | None = None) -> Pack | PackDelta:
        """Return a published pack, or the delta from the version and digest in force, if there is one."""
        if base is not None:
            target = self._target(delta_path(name, base[0], version))
            if target is not None:
                delta = self._blob(target)
                if isinstance(delta, PackDelta) and delta.before == base[1]:
                    return delta
        return self.fetch_whole(name, version)

    def fetch_whole(self, name: str, version: int) -> Pack:
        """Return a published pack."""
        target = self._target(pack_path(name, version))
        if target is None:
            raise disagreed(f"the pack {name} {version}", "it is not published")
        pack = self._blob(target)
        if not isinstance(pack, Pack) or (pack.name, pack.version) != (name, version):
            raise disagreed(f"the pack {name} {version}", f"its file holds {pack}")
        return pack

    def needed(self, packs: Mapping[str, int]) -> Iterator[str]:
        """Yield the paths of all that a device needs to run packs, if it trusts the same first root."""
        trusted = self._trusted()._trusted_set  # noqa: SLF001 - as in _role
        yield from (f"metadata/{number}.{Root.type}.json" for number in range(1, trusted.root.version + 1))
        yield f"metadata/{trusted.snapshot.version}.{Snapshot.type}.json"
        yield f"metadata/{trusted.targets.version}.{Targets.type}.json"
        for name, version in packs.items():
            target = self._target(pack_path(name, version))
            role = self._role(pack_role(name))
            if target is not None and role is not None:
                yield f"metadata/{role.version}.{pack_role(name)}.json"
                yield f"targets/{next(iter(target.get_prefixed_paths()))}"

    def ask(self, path: str) -> None:
        """Ask for a file, for the one that answers to keep it."""
        try:
            self._fetcher.download_bytes(f"{FirstThatAnswers.MARK}{path}", MOST_BYTES)
        except DownloadError as error:
            raise _problem(path, self.bases, error) from error
        finally:
            self.wire.forget()

    def _blob(self, target: TargetFile) -> Pack | PackDelta:
        """Download a blob; one that is not as published is asked for once more, from its beginning."""
        kept = self.folder / "blobs"
        kept.mkdir(parents=True, exist_ok=True)
        path = kept / target.path.replace("/", "_")
        if target.length > MOST_BYTES:
            raise refused(target.path, f"it has {target.length:,} bytes")
        updater = self._trusted()
        for attempt in range(2):
            try:
                if updater.find_cached_target(target, str(path)) is None:
                    updater.download_target(target, str(path))
            except DownloadLengthMismatchError as error:
                self.wire.forget()
                raise refused(target.path, error) from error
            except RepositoryError as error:
                self.wire.forget()
                if attempt:
                    raise refused(target.path, error) from error
            except (DownloadError, OSError) as error:
                raise _problem(target.path, self.bases, error) from error
            else:
                break
        self.wire.forget()
        return decoded(path.read_bytes(), target.path)

    def _target(self, path: str) -> TargetFile | None:
        try:
            return self._trusted().get_targetinfo(path)
        except (DownloadError, RepositoryError, OSError, ValueError) as error:
            raise _problem(path, self.bases, error) from error

    def _trusted(self) -> Updater:
        if self._updater is None:
            self.refresh()
        assert self._updater is not None  # noqa: S101 - refresh raises otherwise
        return self._updater

    def _role(self, name: str) -> Targets | None:
        """Return a role that was loaded and verified; None if it was not."""
        try:
            # python-tuf has no public way to look at a verified role.
            role = self._trusted()._trusted_set[name]  # noqa: SLF001 - as said above
        except KeyError:
            return None
        return role if isinstance(role, Targets) else None

    def _trusted_targets(self) -> Targets:
        role = self._role(Targets.type)
        assert role is not None  # noqa: S101 - a refresh loads it
        return role


def _verified(data: bytes, trusted: Targets) -> Targets:
    """Return signed metadata if the role of assignments signed it; raise RepositoryError otherwise."""
    metadata = read_signed(data, Targets)
    trusted.verify_delegate(ASSIGNMENT, metadata.signed_bytes, metadata.signatures)
    return metadata.signed


def _problem(what: str, bases: Sequence[str], error: Exception) -> FleetProblem:
    match error:
        case ExpiredMetadataError():
            return expired(what, error)
        case DownloadLengthMismatchError():
            return refused(what, error)
        case DownloadError() | OSError():
            return unreachable(" or ".join(bases) or "no server", error)
        case _:
            return refused(what, error)
