"""Which files a load means: `p=edges.csv`, folders, globs, URIs, formats and compression by extension.

Names are never guessed from content. What the files hold is left to the readers.
"""

from __future__ import annotations

import glob
import json
import os
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import unquote

from zodiacedge.errors import LoadProblem
from zodiacedge.io.places import Place, is_uri, located, matching
from zodiacedge.io.problems import missing, problem, reading
from zodiacedge.io.streams import COMPRESSIONS
from zodiacedge.terms import iri

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
    """One file to load: its format, and for tabular formats the relation it states.

    `arity` is known where an export's `predicates.json` lists the file. `document` names the scope of
    the file's blank nodes: the file itself, or the export that it belongs to. `shown` is what the user called
    the file, where its path is another one.
    """

    path: Place
    format: Format
    compression: str = ""
    relation: str = ""
    named: bool = False
    arity: int | None = None
    document: str = ""
    shown: str = ""

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.shown or str(self.path)

    @property
    def size(self) -> int:
        """The bytes as they lie there, 0 where the system does not say."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


def expand(specs: Iterable[str | os.PathLike[str]]) -> tuple[SourceFile, ...]:
    """Return the files that paths, URIs, folders, globs and `relation=path` stand for, each once."""
    found: dict[tuple[str, str], SourceFile] = {}
    for spec in specs:
        for file in _expand_one(spec):
            found.setdefault((str(file.path), file.relation), file)
    return tuple(found.values())


def relation_name(name: str) -> str:
    """Return a relation's name, with or without the brackets of an IRI; refuse what cannot be one."""
    bare = name[1:-1] if name.startswith("<") and name.endswith(">") else name
    try:
        return iri(bare).value
    except LoadProblem as error:
        raise problem(
            "I006",
            f"{bare!r} cannot be the name of a relation",
            'a name holds no space and none of <>"{}|^`\\; give one as name=path',
        ) from error


def listed_files(folder: Place) -> dict[str, tuple[str, int]]:
    """Return file → (predicate, arity) as an export's `predicates.json` lists them."""
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    with reading(path):
        data = path.read_bytes()
    listed: dict[str, tuple[str, int]] = {}
    try:
        for entry in json.loads(data)["predicates"]:
            name, arity, file = entry["predicate"], entry["arity"], entry["file"]
            listed[str(file)] = (relation_name(str(name)), int(arity))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise problem(
            "I020",
            f"{path} is not the list of predicates that an export writes",
            "remove or rename the file to load the folder without it",
        ) from error
    return listed


def _expand_one(spec: str | os.PathLike[str]) -> Iterator[SourceFile]:
    text = os.fspath(spec)
    relation, path = ("", text) if isinstance(spec, os.PathLike) else _split(text)
    name = relation_name(relation) if relation else ""
    with reading(path):
        place = located(path)
        if place.is_dir():
            yield from _folder(place, name)
        elif place.exists():
            yield _file(place, name, {})
        elif glob.has_magic(path):
            files = [m for m in matching(place) if m.is_file() and m.name != MANIFEST]
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


def _folder(folder: Place, relation: str) -> Iterator[SourceFile]:
    manifest = listed_files(folder)
    shown = [p for p in folder.iterdir() if p.name[0] not in "._" and p.is_file()]
    files = sorted((p for p in shown if _by_extension(p)), key=lambda p: p.name)
    if not files:
        raise problem(
            "I005",
            f"the folder {folder} holds no file to load",
            f"known extensions: {_known()}; subfolders are read through a pattern: '{folder}/**/*.nt'",
        )
    for path in files:
        yield _file(path, relation, manifest)


def _file(path: Place, relation: str, manifest: Mapping[str, tuple[str, int]]) -> SourceFile:
    known = _by_extension(path)
    if not known:
        raise problem(
            "I004",
            f"{path}: the extension does not say the format",
            f"known extensions: {_known()}, each also with .{', .'.join(COMPRESSIONS)}",
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
    # JSON lines name their predicates, so only a name that someone gave has to be usable.
    name = name or (_usable(stem) if form is Format.JSONL else relation_name(stem))
    return SourceFile(path, form, compression, name, bool(relation), arity, document)


def _usable(stem: str) -> str:
    try:
        return relation_name(stem)
    except LoadProblem:
        return ""


def _by_extension(path: Place) -> tuple[Format, str, str] | None:
    """Return format, compression and the decoded name of a path, or None where it has no format."""
    stem, _, last = path.name.rpartition(".")
    compression = last.lower() if last.lower() in COMPRESSIONS else ""
    if compression:
        stem, _, last = stem.rpartition(".")
    form = EXTENSIONS.get(last.lower())
    if form is None or not stem:
        return None
    # A lone % is how an export writes the empty name.
    return form, compression, "" if stem == "%" else unquote(stem)


def _known() -> str:
    return ", ".join(f".{e}" for e in EXTENSIONS)
