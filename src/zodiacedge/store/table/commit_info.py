"""The metadata of a commit: a JSON document with a checksum."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from zodiacedge.store.layout import FORMAT
from zodiacedge.store.problems import damaged_table, newer_format

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_CHECK = "check"
_CHAIN = re.compile(r"([0-9a-f]{32})?")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The metadata of a commit: everything except the facts."""

    version: int
    rules: tuple[str, ...]
    prefixes: dict[str, str]
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds that each segment took to evaluate from scratch, by its name."""
    dropped: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The number of bindings that evaluation errors dropped, and an example, by rule key."""
    explicit: int = 0
    derived: int = 0
    graph: str = ""
    """A digest of the hyper-nodes."""
    digest: str = ""
    """A digest of all files."""
    chain: str = ""
    """The chain of the last log record, which the next record continues."""
    moment: str = ""
    format: int = FORMAT
    streams: dict[str, int] = field(default_factory=dict)
    """The last applied batch of each stream."""
    packs: dict[str, object] = field(default_factory=dict)
    """The packs in force and what they own, as a document."""
    times: dict[str, int] = field(default_factory=dict)
    """The argument that is the time of each predicate, which the rules may need."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of the store: its number in Delta's log, and its metadata."""

    number: int
    snapshot: Snapshot


def digest_of(files: Iterable[str]) -> str:
    """Hash the names of files."""
    return sha256("\n".join(sorted(files)).encode()).hexdigest()


def digested(snapshot: Snapshot, files: Iterable[str]) -> dict[str, object]:
    """Return the document of a commit with the digest of its files."""
    return checked_document(asdict(snapshot) | {"digest": digest_of(files)})


def checked_document(document: Mapping[str, object]) -> dict[str, object]:
    """Return a document with its checksum, which detects damaged rules."""
    contents = {name: value for name, value in document.items() if name != _CHECK}
    return contents | {_CHECK: sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()}


def read_snapshot(path: str, text: str) -> Snapshot:
    """Decode the metadata of a commit, or raise if it is malformed."""
    document = json.loads(text)
    made = document["format"]
    if not isinstance(made, int) or made > FORMAT:
        raise newer_format(path, made, FORMAT)
    if checked_document(document)[_CHECK] != document[_CHECK]:
        raise damaged_table(path, "is damaged: what it says does not fit its checksum")
    chain, moment = str(document["chain"]), str(document["moment"])
    if not _CHAIN.fullmatch(chain) or int(document["version"]) < 0:
        raise damaged_table(path, "does not say what a commit says")
    datetime.fromisoformat(moment)
    return Snapshot(
        int(document["version"]),
        tuple(map(str, document["rules"])),
        {str(prefix): str(base) for prefix, base in document["prefixes"].items()},
        {str(name): float(taken) for name, taken in document["seconds"].items()},
        {str(key): (int(count), str(example)) for key, (count, example) in document["dropped"].items()},
        int(document["explicit"]),
        int(document["derived"]),
        str(document["graph"]),
        str(document["digest"]),
        chain,
        moment,
        made,
        {str(stream): int(batch) for stream, batch in document.get("streams", {}).items()},
        dict(document.get("packs", {})),
        {str(name): int(position) for name, position in document.get("times", {}).items()},
    )
