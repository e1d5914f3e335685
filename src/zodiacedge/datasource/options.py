"""The options of the data source `zodiac`, and the columns that they name.

`columns` has an entry for each argument: `sensor=<http://farm/{sensor}>, value, at=time`. An entry is a
column as it is, another column, an IRI in angle brackets, or a literal in quotes with a datatype or a
language; both have columns in braces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zodiacedge.errors import Diagnostic, UsageProblem, nearest
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

_NAMES = (
    "predicate",
    "columns",
    "version",
    "pushdown",
    "startingVersion",
    "stream",
    "create",
    "wait",
    "path",
    "checkpointLocation",
)
# Spark adds the name of a stream.
_SPARKS = {"queryname"}
# So Spark calls what a table of the catalog is of.
_PROVIDER = "provider"


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
        """Return the options of a user; raise if one is missing, unknown or wrong."""
        options = _known(options)
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
            _number("startingVersion", options.get("startingversion", "0")),
            options.get("checkpointlocation", ""),
            options.get("stream", ""),
            _truth("create", options.get("create", "false")),
            _truth("pushdown", options.get("pushdown", "false")),
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


def _known(options: Mapping[str, str]) -> dict[str, str]:
    """Return options by names in lower case, as Spark writes them; raise if one has no meaning here."""
    given = {name.lower(): value for name, value in options.items()}
    if "paths" in given:
        raise wrong("several stores are named", "load one, and unite what they give: first.union(second)")
    if _PROVIDER in given:
        hint = "make a view: create temporary view alarms using zodiac options (path '…', predicate 'alarm')"
        raise wrong("a store cannot be a table of the catalog: Spark does not pass its options on", hint)
    names = {name.lower(): name for name in _NAMES}
    for name in given:
        if name not in names and name not in _SPARKS:
            near = nearest(name, tuple(names), 0.6)
            hint = f"did you mean {names[near]}?" if near else f"choose one of: {', '.join(_NAMES[:-2])}"
            raise wrong(f"there is no option {name}", hint)
    return given


def _truth(name: str, text: str) -> bool:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    raise wrong(f"the option {name} is true or false, not {text!r}", f'write .option("{name}", True)')


def _number(name: str, text: str) -> int:
    if text.isdecimal():
        return int(text)
    raise wrong(f"the option {name} is a number, not {text!r}", f'write .option("{name}", 3)')
