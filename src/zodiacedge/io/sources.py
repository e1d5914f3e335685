"""The files of a load: `p=edges.csv`, folders, globs, URIs; formats and compression by extension.

Formats are never guessed from content, which is left to the readers.
"""

from __future__ import annotations

import glob
import json
import os
import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import unquote

from zodiacedge.errors import LoadProblem, nearest
from zodiacedge.io.paths import AnyPath, glob_paths, is_uri, path_of
from zodiacedge.io.problems import missing, problem, reading
from zodiacedge.io.streams import COMPRESSIONS
from zodiacedge.language.names import checked_name, full_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

MANIFEST = "predicates.json"
_IRI_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Format(Enum):
    """A file format; the value is its usual extension."""

    NTRIPLES = "nt"
    NQUADS = "nq"
    TURTLE = "ttl"
    TRIG = "trig"
    RDFXML = "rdf"
    JSONLD = "jsonld"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"


EXTENSIONS: Mapping[str, Format] = {form.value: form for form in Format} | {
    "turtle": Format.TURTLE,
    "xml": Format.RDFXML,
    "owl": Format.RDFXML,
    "ndjson": Format.JSONL,
    "pq": Format.PARQUET,
    "feather": Format.ARROW,
    "ipc": Format.ARROW,
    "arrows": Format.ARROW,
}
RDF_FORMATS = frozenset(
    {Format.NTRIPLES, Format.NQUADS, Format.TURTLE, Format.TRIG, Format.RDFXML, Format.JSONLD}
)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to load: its format, and for tabular formats its relation.

    `arity` is known if an export's `predicates.json` lists the file. `document` is the scope of the
    file's blank nodes: the file itself, or the export that it belongs to. `shown` is the user's name for the
    file, if its path is another one.
    """

    path: AnyPath
    format: Format
    compression: str = ""
    relation: str = ""
    named: bool = False
    arity: int | None = None
    document: str = ""
    shown: str = ""

    @property
    def name(self) -> str:
        """The name in messages."""
        return self.shown or str(self.path)

    @property
    def size(self) -> int:
        """The size in bytes as stored, 0 if unknown."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


@dataclass(frozen=True, slots=True)
class NamedFile(os.PathLike[str]):
    """A path with the relation of its rows and the user's name for it, such as a copy of standard input."""

    path: Path
    relation: str
    shown: str

    def __fspath__(self) -> str:
        """Return the path."""
        return str(self.path)


def expand(
    specs: Iterable[str | os.PathLike[str]], prefixes: Mapping[str, str] | None = None
) -> tuple[SourceFile, ...]:
    """Return the files of paths, URIs, folders, globs and `relation=path`, without duplicates.

    A relation that is given may have a prefix. A file's name is a full name, as an export writes it.
    """
    files: dict[tuple[str, str], SourceFile] = {}
    for spec in specs:
        for file in _expand_spec(spec, prefixes or {}):
            files.setdefault((str(file.path), file.relation), file)
    return tuple(files.values())


def listed_files(folder: AnyPath) -> dict[str, tuple[str, int]]:
    """Return file → (predicate, arity) of an export's `predicates.json`."""
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    with reading(path):
        data = path.read_bytes()
    listed: dict[str, tuple[str, int]] = {}
    try:
        for entry in json.loads(data)["predicates"]:
            name, arity, file = entry["predicate"], entry["arity"], entry["file"]
            listed[str(file)] = (checked_name(str(name)), int(arity))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise problem(
            "I020",
            f"{path} is not the list of predicates that an export writes",
            "remove or rename the file to load the folder without it",
        ) from error
    return listed


def _expand_spec(spec: str | os.PathLike[str], prefixes: Mapping[str, str]) -> Iterator[SourceFile]:
    text = os.fspath(spec)
    relation, path = ("", text) if isinstance(spec, os.PathLike) else _split(text)
    if isinstance(spec, NamedFile):
        name = full_name(spec.relation, prefixes) if spec.relation else ""
        yield replace(_file(spec.path, name, {}), shown=spec.shown)
        return
    name = full_name(relation, prefixes) if relation else ""
    if not path:
        raise problem("I001", "the name of a file is empty", "name a file; . is the current folder")
    with reading(path):
        location = path_of(path)
        if location.is_dir():
            yield from _folder(location, name)
        elif location.exists():
            yield _file(location, name, {})
        elif glob.has_magic(path):
            files = [m for m in glob_paths(location) if m.is_file() and m.name != MANIFEST]
            if not files:
                raise problem("I003", f"{path} matches no file", "check the pattern, and quote it in a shell")
            folders = dict.fromkeys(file.parent for file in files)
            manifests = {folder: listed_files(folder) for folder in folders}
            for file in files:
                yield _file(file, name, manifests[file.parent])
        else:
            raise missing(path)


def _split(text: str) -> tuple[str, str]:
    """Split `relation=path`; a path that exists, or that has a `=` in a folder's name, is a path."""
    if is_uri(text):
        return "", text
    if text.startswith("<") and ">=" in text:
        name, _, path = text.partition(">=")
        return name + ">", path
    name, equals, path = text.partition("=")
    if not equals or os.path.lexists(text):
        return "", text
    if not name or not path:
        raise problem("I006", f"{text!r} is neither a path nor name=path", "write --facts name=path")
    separators = {os.sep, os.altsep or os.sep}
    if any(s in name for s in separators) and not _IRI_SCHEME.match(name):
        return "", text
    return name, path


def _folder(folder: AnyPath, relation: str) -> Iterator[SourceFile]:
    manifest = listed_files(folder)
    visible = [p for p in folder.iterdir() if p.name[0] not in "._" and p.is_file()]
    files = sorted((p for p in visible if by_extension(p)), key=lambda p: p.name)
    if not files:
        raise problem(
            "I005",
            f"the folder {folder} holds no file to load",
            f"known extensions: {_extensions()}; subfolders are read through a pattern: '{folder}/**/*.nt'",
        )
    for path in files:
        yield _file(path, relation, manifest)


def _file(path: AnyPath, relation: str, manifest: Mapping[str, tuple[str, int]]) -> SourceFile:
    known = by_extension(path)
    if not known:
        near = nearest(path.name.rpartition(".")[2].lower(), tuple(EXTENSIONS), 0.6)
        hint = f"did you mean .{near}? " if near else ""
        raise problem(
            "I004",
            f"{path}: the extension does not say the format",
            f"{hint}known extensions: {_extensions()}, each also with .{', .'.join(COMPRESSIONS)}",
        )
    form, compression, stem = known
    listed = manifest.get(path.name)
    document = str(path.parent / MANIFEST) if listed else str(path)
    if form in RDF_FORMATS:
        if relation:
            raise problem(
                "I007",
                f"{path} is RDF, so it cannot be loaded as the relation {relation}",
                "RDF names its predicates itself: give the path alone",
            )
        return SourceFile(path, form, compression, document=document)
    name, arity = (relation, None) if relation or not listed else listed
    # JSON lines name their predicates, so only a name given by the user must be valid.
    name = name or (_valid_name(stem) if form is Format.JSONL else checked_name(stem))
    return SourceFile(path, form, compression, name, bool(relation), arity, document)


def _valid_name(stem: str) -> str:
    try:
        return checked_name(stem)
    except LoadProblem:
        return ""


def names_predicates(form: Format) -> bool:
    """Whether files of a format name their predicates, so that they need no relation."""
    return form in RDF_FORMATS or form is Format.JSONL


def by_extension(path: AnyPath) -> tuple[Format, str, str] | None:
    """Return format, compression and decoded stem of a path, or None if its format is unknown."""
    stem, _, last = path.name.rpartition(".")
    compression = last.lower() if last.lower() in COMPRESSIONS else ""
    if compression:
        stem, _, last = stem.rpartition(".")
    form = EXTENSIONS.get(last.lower())
    if form is None or not stem:
        return None
    # An export writes the empty name as %.
    return form, compression, "" if stem == "%" else unquote(stem)


def _extensions() -> str:
    return ", ".join(f".{e}" for e in EXTENSIONS)
