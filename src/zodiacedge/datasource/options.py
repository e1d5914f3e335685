"""The options of the data source `zodiac`, and the columns that they name.

`columns` has an entry for each argument: `sensor=<http://farm/{sensor}>, value, at=time`. An entry is a
column as it is, another column, an IRI in angle brackets, or a literal in quotes with a datatype or a
language; both have columns in braces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.opening import open_kb
from zodiacedge.terms import given_literal, iri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.store.knowledge_base import StoredKnowledgeBase

_ENTRY = re.compile(
    r"""\s*(?P<name>[^=,<>"\s][^=,<>"]*?)\s*
    (?:=\s*(?:<(?P<iri>[^<>]*)>
      |"(?P<text>(?:[^"\\]|\\.)*)"(?:@(?P<language>[A-Za-z0-9-]+)|\^\^(?P<datatype>[^,\s]+))?
      |(?P<column>[^,<>"]+?)))?\s*(?:,|$)""",
    re.VERBOSE,
)


def wrong(message: str, note: str) -> UsageProblem:
    """Return the problem of an option."""
    return UsageProblem(Diagnostic("U032", message, note))


@dataclass(frozen=True)
class SourceOptions:
    """The store, the predicate and its columns, and the versions."""

    store: str
    predicate: str
    columns: str = ""
    version: int | None = None
    starting_version: int = 0
    checkpoint: str = ""
    stream: str = ""
    create: bool = False
    pushdown: bool = False
    wait: float = 60.0

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """Return the options of a user; raise if one is missing or wrong."""
        store, predicate = options.get("path", ""), options.get("predicate", "")
        if not store:
            raise wrong("no store is named", 'name its folder or address: .load("farm.zodiac")')
        if not predicate:
            raise wrong(f"no predicate of {store} is named", 'name it: .option("predicate", "alarm")')
        version = options.get("version", "")
        return cls(
            store,
            predicate,
            options.get("columns", ""),
            _number("version", version) if version else None,
            _number("startingVersion", options.get("startingVersion", "0")),
            options.get("checkpointLocation", ""),
            options.get("stream", ""),
            options.get("create", "").lower() == "true",
            options.get("pushdown", "").lower() == "true",
            float(_number("wait", options.get("wait", "60"))),
        )

    def named_columns(self) -> dict[str, Any]:
        """Return the columns as keywords of `add_facts` and `kb.table`."""
        columns: dict[str, Any] = {}
        at = 0
        while at < len(self.columns.rstrip()):
            entry = _ENTRY.match(self.columns, at)
            if entry is None:
                hint = 'write name, name=column, name=<http://farm/{column}> or name="{column}"^^xsd:decimal'
                raise wrong(f"the option columns has {self.columns[at:].strip()!r}, which is no column", hint)
            columns[entry["name"]] = _column(entry)
            at = entry.end()
        return columns

    def reading(self, version: int | None = None) -> StoredKnowledgeBase:
        """Open a version of the store, by default the last."""
        return open_kb(self.store, read_only=True, at=version)

    def writing(self) -> StoredKnowledgeBase:
        """Open the store for writing, as soon as nobody else does."""
        return open_kb(self.store, create=self.create, wait=self.wait)


def _column(entry: re.Match[str]) -> object:
    if entry["iri"] is not None:
        return iri(entry["iri"])
    if entry["text"] is not None:
        return given_literal(entry["text"], entry["datatype"] or "", language=entry["language"] or "")
    return entry["column"] or ...


def _number(name: str, text: str) -> int:
    if text.isdecimal():
        return int(text)
    raise wrong(f"the option {name} is a number, not {text!r}", f'write .option("{name}", 3)')
