"""What a commit says beside the facts, as a document with a checksum of its own."""

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
    """What a commit says beside the facts."""

    version: int
    rules: tuple[str, ...]
    prefixes: dict[str, str]
    seconds: dict[str, float] = field(default_factory=dict)
    """What evaluating each segment, by its name, from nothing took."""
    dropped: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Bindings that evaluation errors dropped, by rule key: how many, and an example."""
    explicit: int = 0
    derived: int = 0
    graph: str = ""
    """A digest of the hyper-nodes."""
    digest: str = ""
    """A digest of all files."""
    chain: str = ""
    """The checksum of the log's last record, for the next one to go on from."""
    moment: str = ""
    format: int = FORMAT
    streams: dict[str, int] = field(default_factory=dict)
    """The last batch of each stream that is in."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of ours: its number in the table's log, and what it says."""

    number: int
    snapshot: Snapshot


def digest_of(files: Iterable[str]) -> str:
    """Return what tells some files from others."""
    return sha256("\n".join(sorted(files)).encode()).hexdigest()


def digested(snapshot: Snapshot, files: Iterable[str]) -> dict[str, object]:
    """Return what a commit of some files says."""
    return checked_document(asdict(snapshot) | {"digest": digest_of(files)})


def checked_document(document: Mapping[str, object]) -> dict[str, object]:
    """Return what a commit says with a checksum of it: a flipped bit in a rule would be another rule."""
    said = {name: value for name, value in document.items() if name != _CHECK}
    return said | {_CHECK: sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()}


def read_snapshot(path: str, said: str) -> Snapshot:
    """Return what the commit in a file says, if it says what one does."""
    document = json.loads(said)
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
    )
