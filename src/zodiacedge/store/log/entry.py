"""What a record of the log says: the change itself, who made it, and what it came to.

A payload is a JSON document behind its length, and the facts behind it as Arrow streams, one for each
predicate that comes or goes, in the columns of `engine.parts`. Facts that are too many for one process are in
files beside the log, which the document names and `log_parts` writes and reads. Nothing is pickled.
"""

from __future__ import annotations

import io
import json
import re
import struct
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zodiacedge.engine.persistence import PartitionFile, PartitionKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_LENGTH = struct.Struct("<I")
# More rows than this are worth packing.
_MANY = 1000
_NOBODY: frozenset[str] = frozenset()
_SAFE_NAME = re.compile(r"[0-9a-f]{64}\.parquet")


@dataclass(frozen=True, slots=True)
class Entry:
    """One version: what changed, when, by whom and why, and how much there is afterwards."""

    version: int
    moment: str
    author: str
    message: str
    rules_added: tuple[str, ...]
    rules_removed: tuple[str, ...]
    facts_added: int
    facts_removed: int
    explicit: int
    """The number of explicit facts afterwards."""
    derived: int
    """The number of facts in all segments afterwards."""
    prefixes: dict[str, str] = field(default_factory=dict)
    stream: str = ""
    """The stream that the change came from, if one."""
    batch: int = -1
    """Its number there: what a stream delivers again after a restart is known by it."""

    def to_dict(self) -> dict[str, object]:
        """Return the entry as plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Remarks:
    """What is said about a change: why it was made, prefixes that came with it, the stream it came from."""

    message: str = ""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    stream: str = ""
    batch: int = -1


@dataclass(frozen=True, slots=True)
class FactChange:
    """Facts of one predicate that come or go: here, or in a file beside the log."""

    comes: bool
    key: PartitionKey
    facts: pa.Table | PartitionFile


def packed(entry: Entry, facts: Iterable[FactChange]) -> bytes:
    """Return the payload of a record."""
    streams: list[bytes] = []
    listed: list[dict[str, object]] = []
    for one in facts:
        said = {"comes": one.comes, "predicate": one.key.predicate, "arity": one.key.arity}
        if isinstance(one.facts, PartitionFile):
            listed.append({**said, "file": one.facts.path, "bytes": 0})
            continue
        streams.append(_stream(one.facts))
        listed.append({**said, "bytes": len(streams[-1])})
    document = json.dumps(entry.to_dict() | {"facts": listed}, ensure_ascii=False).encode()
    return b"".join((_LENGTH.pack(len(document)), document, *streams))


def entry_of(payload: bytes) -> Entry:
    """Return what a payload says but for the facts; raise ValueError where it is none."""
    document = _document(payload)
    try:
        return Entry(
            _whole(document["version"]),
            str(document["moment"]),
            str(document["author"]),
            str(document["message"]),
            tuple(map(str, document["rules_added"])),
            tuple(map(str, document["rules_removed"])),
            _whole(document["facts_added"]),
            _whole(document["facts_removed"]),
            _whole(document["explicit"]),
            _whole(document["derived"]),
            {str(prefix): str(base) for prefix, base in document["prefixes"].items()},
            str(document.get("stream", "")),
            int(document.get("batch", -1)),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the record lacks {error}") from error


def files_of(payload: bytes) -> list[str]:
    """Return the files beside the log that a payload needs; raise ValueError where it is none."""
    try:
        return [_file_name(one["file"]) for one in _document(payload)["facts"] if "file" in one]
    except (KeyError, TypeError) as error:
        raise ValueError(f"the record lacks {error}") from error


def facts_of(payload: bytes) -> Iterator[tuple[bool, PartitionKey, pa.Table | str]]:
    """Yield the facts of a payload: whether they come, whose they are; raise ValueError where it is none.

    What is beside the log is told by the name of its file.
    """
    (start,) = _LENGTH.unpack_from(payload)
    start += _LENGTH.size
    try:
        for one in _document(payload)["facts"]:
            end = start + _whole(one["bytes"])
            key = PartitionKey("explicit", _NOBODY, str(one["predicate"]), _whole(one["arity"]))
            if "file" in one:
                yield bool(one["comes"]), key, _file_name(one["file"])
                continue
            if end > len(payload):
                raise ValueError("the record is too short")
            with pa.ipc.open_stream(pa.py_buffer(payload[start:end])) as stream:
                table = stream.read_all()
            # The library takes what a stream says about itself for true, until it is asked to look.
            table.validate(full=True)
            yield bool(one["comes"]), key, table
            start = end
    except (KeyError, TypeError) as error:
        raise ValueError(f"the record lacks {error}") from error
    except OSError as error:
        raise ValueError(f"a table of it is damaged: {error}") from error


def _file_name(name: object) -> str:
    if isinstance(name, str) and _SAFE_NAME.fullmatch(name):
        return name
    raise ValueError(f"{name!r} is no file of a log")


def _document(payload: bytes) -> dict[str, Any]:
    if len(payload) < _LENGTH.size:
        raise ValueError("the record is too short")
    (length,) = _LENGTH.unpack_from(payload)
    try:
        document = json.loads(payload[_LENGTH.size : _LENGTH.size + length])
    except RecursionError as error:
        raise ValueError("the record is nested too deeply") from error
    if not isinstance(document, dict):
        raise ValueError("the record is no document")  # noqa: TRY004 - it is the value of a file
    return document


def _whole(value: object) -> int:
    if isinstance(value, int) and value >= 0:
        return value
    raise ValueError(f"{value!r} is no count")


def _stream(table: pa.Table) -> bytes:
    options = pa.ipc.IpcWriteOptions(compression="zstd" if len(table) > _MANY else None)
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema, options=options) as stream:
        stream.write_table(table)
    return out.getvalue()
