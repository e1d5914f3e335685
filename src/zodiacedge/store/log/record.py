"""The payload of a log record: a change, its author and message, and the counts after it.

A payload consists of the length of a JSON document, the document, and the facts as Arrow streams, one for
each predicate with inserted or deleted facts, in the columns of `engine.persistence`. Facts that are too many
for one process are in files beside the log, which the document names (`large_facts`). Nothing is pickled.
"""

from __future__ import annotations

import io
import json
import re
import struct
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zodiacedge.engine.persistence import PartitionFile, PartitionKey, column_names
from zodiacedge.language.ast import Fact, fact
from zodiacedge.packs.owners import PacksDelta, packs_delta_of
from zodiacedge.store.problems import damaged_log
from zodiacedge.terms import XSD, BlankNode, Literal, Term, iri, literal, string

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zodiacedge.errors import StoreProblem
    from zodiacedge.store.log.record_format import Record

_LENGTH = struct.Struct("<I")
# More rows are worth compressing.
_MANY = 1000
_EXPLICIT: frozenset[str] = frozenset()
_VALUES = ("integer", "decimal", "double", "float", "boolean", "dateTime", "date")
_SAFE_NAME = re.compile(r"[0-9a-f]{64}\.parquet")


@dataclass(frozen=True, slots=True)
class Entry:
    """The log entry of a version: its change, time, author and message, and the counts after it."""

    version: int
    moment: str
    author: str
    message: str
    rules_added: tuple[str, ...]
    rules_removed: tuple[str, ...]
    facts_added: int
    facts_removed: int
    explicit: int
    """The number of explicit facts after the change."""
    derived: int
    """The number of facts in all segments after the change."""
    prefixes: dict[str, str] = field(default_factory=dict)
    stream: str = ""
    """The stream of the change, if any."""
    batch: int = -1
    """The batch number in the stream, by which a repeated batch is recognised."""
    packs: PacksDelta = field(default_factory=PacksDelta)
    """How the packs in force, and what they own, change."""

    def to_dict(self) -> dict[str, object]:
        """Return the entry as plain values for JSON."""
        document = {item.name: getattr(self, item.name) for item in fields(self)}
        return document | {"packs": self.packs.to_dict()}


@dataclass(frozen=True, slots=True)
class FactChange:
    """Inserted or deleted facts of a predicate: a table, or a file beside the log."""

    inserted: bool
    key: PartitionKey
    facts: pa.Table | PartitionFile


def encode_record(entry: Entry, changes: Iterable[FactChange]) -> bytes:
    """Encode the payload of a record."""
    streams: list[bytes] = []
    index: list[dict[str, object]] = []
    for change in changes:
        item = {"comes": change.inserted, "predicate": change.key.predicate, "arity": change.key.arity}
        if isinstance(change.facts, PartitionFile):
            index.append({**item, "file": change.facts.path, "bytes": 0})
            continue
        streams.append(_arrow_stream(change.facts))
        index.append({**item, "bytes": len(streams[-1])})
    document = json.dumps(entry.to_dict() | {"facts": index}, ensure_ascii=False).encode()
    return b"".join((_LENGTH.pack(len(document)), document, *streams))


def malformed(record: Record, why: str) -> StoreProblem:
    """Return the problem of a malformed record, whose checksum holds."""
    return damaged_log(record.path, record.number, record.offset, why, record.version - 1)


@contextmanager
def _decoding(record: Record) -> Iterator[dict[str, Any]]:
    """Yield the document of a record; raise if it is not what a record has."""
    try:
        yield _document(record.payload)
    except (KeyError, TypeError, AttributeError) as error:
        raise malformed(record, f"it does not say what a record says: the record lacks {error}") from error
    except ValueError as error:
        raise malformed(record, f"it does not say what a record says: {error}") from error


def read_entry(record: Record) -> Entry:
    """Decode the entry of a record, or raise if it is malformed."""
    with _decoding(record) as document:
        entry = Entry(
            _count(document["version"]),
            str(document["moment"]),
            str(document["author"]),
            str(document["message"]),
            tuple(map(str, document["rules_added"])),
            tuple(map(str, document["rules_removed"])),
            _count(document["facts_added"]),
            _count(document["facts_removed"]),
            _count(document["explicit"]),
            _count(document["derived"]),
            {str(prefix): str(base) for prefix, base in document["prefixes"].items()},
            str(document.get("stream", "")),
            int(document.get("batch", -1)),
            packs_delta_of(document.get("packs", {})),
        )
    if entry.version != record.version:
        raise malformed(record, f"it is of version {entry.version} instead of {record.version}")
    return entry


def needed_files(record: Record) -> set[str]:
    """Return the names of the files beside the log that a record needs."""
    with _decoding(record) as document:
        return {_file_name(item["file"]) for item in document["facts"] if "file" in item}


def facts_of(payload: bytes) -> Iterator[tuple[bool, PartitionKey, pa.Table | str]]:
    """Yield the facts of a payload: whether they are inserted, their partition, and a table or a file's name.

    Raise ValueError if the payload is malformed.
    """
    (start,) = _LENGTH.unpack_from(payload)
    start += _LENGTH.size
    try:
        for item in _document(payload)["facts"]:
            end = start + _count(item["bytes"])
            key = PartitionKey("explicit", _EXPLICIT, str(item["predicate"]), _count(item["arity"]))
            if "file" in item:
                yield bool(item["comes"]), key, _file_name(item["file"])
                continue
            if end > len(payload):
                raise ValueError("the record is too short")
            with pa.ipc.open_stream(pa.py_buffer(payload[start:end])) as stream:
                table = stream.read_all()
            # Arrow does not check the metadata of a stream when it reads it.
            table.validate(full=True)
            yield bool(item["comes"]), key, table
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


def _count(value: object) -> int:
    if isinstance(value, int) and value >= 0:
        return value
    raise ValueError(f"{value!r} is no count")


def _arrow_stream(table: pa.Table) -> bytes:
    options = pa.ipc.IpcWriteOptions(compression="zstd" if len(table) > _MANY else None)
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema, options=options) as stream:
        stream.write_table(table)
    return out.getvalue()


def facts_in(key: PartitionKey, table: pa.Table) -> Iterator[Fact]:
    """Yield the facts of a small partition; raise ValueError if a row is malformed."""
    columns = [table.column(name).to_pylist() for name in column_names(key.arity)]
    for row in zip(*columns, strict=True) if columns else [()] * len(table):
        yield fact(key.predicate, *(term(row[n], row[n + 1]) for n in range(0, len(row), 2)))


def term(text: object, kind: object) -> Term:
    """Return the term of a cell and its type."""
    if not isinstance(text, str) or not isinstance(kind, str):
        raise ValueError("an argument is missing")  # noqa: TRY004 - it is the value of a file
    if kind == "iri":
        return iri(text)
    if kind == "blank":
        return BlankNode(text)
    if kind == "string":
        return Literal(text)
    if kind in _VALUES:
        return literal(text, XSD + kind)
    if kind.startswith("@") and len(kind) > 1:
        return string(text, kind[1:])
    if kind.startswith("<") and kind.endswith(">"):
        return literal(text, kind[1:-1])
    raise ValueError(f"there is no type {kind!r}")
