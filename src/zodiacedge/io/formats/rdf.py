"""RDF readers, by pyoxigraph. Only this module imports it, and is itself imported at its first use.

A triple `s p o` is the fact `p(s, o)`, which for `rdf:type` is a class fact; graph names are ignored.
N-Triples and N-Quads are read leniently, so relative IRIs are kept, and line by line, so a bad line is
reported and skipped: many lines are parsed at once, and one by one only if that fails. In the other
formats IRIs are resolved against the base, or kept if there is none, and a file that does not parse is
refused. Triple terms and base directions of RDF 1.2 are refused.

Blank nodes keep their labels; nodes without a label are numbered in file order (`genid1`), so that
reading a file twice gives the same facts.
"""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING

import pyoxigraph as ox

from zodiacedge.errors import LoadProblem
from zodiacedge.io.formats.lines import BOM, FileReading, Line
from zodiacedge.io.problems import problem
from zodiacedge.io.sources import Format
from zodiacedge.io.streams import BLOCK
from zodiacedge.language.ast import Fact
from zodiacedge.terms import (
    IRI,
    RDF,
    RDF_LANGSTRING,
    XSD_STRING,
    BlankNode,
    Literal,
    Term,
    iri,
    literal,
    string,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FORMATS = {
    Format.NTRIPLES: ox.RdfFormat.N_TRIPLES,
    Format.NQUADS: ox.RdfFormat.N_QUADS,
    Format.TURTLE: ox.RdfFormat.TURTLE,
    Format.TRIG: ox.RdfFormat.TRIG,
    Format.RDFXML: ox.RdfFormat.RDF_XML,
    Format.JSONLD: ox.RdfFormat.JSON_LD,
}
_TAGGED = frozenset({RDF_LANGSTRING, RDF + "dirLangString"})
_CACHE = 1 << 17
# Blank lines and comments.
_NO_TRIPLE = re.compile(rb"^[ \t\r]*(?:#[^\n]*)?\n", re.MULTILINE)
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_POSITION = re.compile(r"Parser error at line \d+ (?:column |between columns )(\d+)(?: and \d+)?: ")
# pyoxigraph's label of a node without a label: a random 128-bit number that starts with a letter.
_ANONYMOUS = re.compile(r"[a-f][0-9a-f]{23,31}")
_GENERATED = re.compile(r"genid_*[0-9]+")


class _NotAFactError(Exception):
    """A parsed triple is not a fact; the message is the reason."""


def read_rdf(stream: IO[bytes], reading: FileReading) -> Iterator[list[Fact]]:
    """Yield the facts of an RDF file in batches."""
    if reading.source.format in {Format.NTRIPLES, Format.NQUADS}:
        return _read_lines(stream, reading)
    return _read_document(stream, reading)


def _read_document(stream: IO[bytes], reading: FileReading) -> Iterator[list[Fact]]:
    name, base = reading.source.name, reading.options.base
    form = _FORMATS[reading.source.format]
    try:
        # Only the lenient mode keeps relative IRIs; with a base there are none.
        quads = ox.parse(stream, form, base_iri=base or None, lenient=not base)
    except ValueError as error:
        raise problem("I018", f"{base!r} is not a base IRI", "write it whole: http://example.org/") from error
    converter = _Converter(reading.blank_prefix, rename=True)
    size = reading.options.batch_size
    pending: list[ox.Quad] = []
    try:
        for quad in quads:
            pending.append(quad)
            if len(pending) >= size:
                yield converter.of_all(pending)
                pending = []
        if pending:
            yield converter.of_all(pending)
    except SyntaxError as error:
        position = f":{error.lineno}:{error.offset}" if error.lineno else ""
        raise problem(
            "I009",
            f"{name}{position}: {_message(error, column=False)}",
            _advice(reading.source.format, error),
        ) from error
    except _NotAFactError as error:
        raise problem("I009", f"{name}: {error}", "nothing of the file was kept") from error


def _advice(form: Format, error: SyntaxError) -> str:
    if "LoadDocumentCallback" in str(error.msg):
        return "contexts are not fetched from the network: put the @context into the file"
    return f"a {form.value} file that does not parse is refused whole; nothing of it was kept"


def _read_lines(stream: IO[bytes], reading: FileReading) -> Iterator[list[Fact]]:
    form = _FORMATS[reading.source.format]
    converter = _Converter(reading.blank_prefix)
    number, offset = 1, 0
    for chunk in _chunks(stream):
        start = len(BOM) if not offset and chunk.startswith(BOM) else 0
        batch = _all_lines(chunk[start:], form, converter)
        if batch is None:
            lines = _lines(chunk, start, number, offset)
            batch = list(_line_by_line(lines, form, converter, reading))
        if batch:
            yield batch
        number += chunk.count(b"\n")
        offset += len(chunk)


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the stream in chunks that end with a line."""
    parts: list[bytes] = []
    while block := stream.read(BLOCK):
        cut = block.rfind(b"\n") + 1
        if not cut:
            parts.append(block)
            continue
        yield b"".join((*parts, block[:cut]))
        parts = [block[cut:]]
    rest = b"".join(parts)
    if rest:
        yield rest


def _all_lines(chunk: bytes, form: ox.RdfFormat, converter: _Converter) -> list[Fact] | None:
    """Return the facts of many lines, or None if a line is not exactly one triple."""
    # In lenient mode a string may span lines, and a carriage return ends a line. Without lone carriage
    # returns, there are as many triples as lines only if every line is a triple.
    if b"\r" in chunk and _LONE_RETURN.search(chunk):
        return None
    text = chunk if chunk.endswith(b"\n") else chunk + b"\n"
    try:
        facts = converter.of_all(ox.parse(text, form, lenient=True))
        if len(facts) != text.count(b"\n"):
            text = _NO_TRIPLE.sub(b"", text)
            facts = converter.of_all(ox.parse(text, form, lenient=True))
    except (SyntaxError, _NotAFactError):
        return None
    return facts if len(facts) == text.count(b"\n") else None


def _lines(chunk: bytes, start: int, number: int, offset: int) -> Iterator[Line]:
    for data in chunk.split(b"\n"):
        yield Line(number, offset, data[start:])
        start = 0
        number += 1
        offset += len(data) + 1


def _line_by_line(
    lines: Iterable[Line], form: ox.RdfFormat, converter: _Converter, reading: FileReading
) -> Iterator[Fact]:
    for number, offset, data, _ in lines:
        # A carriage return ends a line of N-Triples too.
        for part in filter(None, data.split(b"\r")):
            try:
                yield from converter.of_all(ox.parse(part, form, lenient=True))
            except SyntaxError as error:
                star = b"<<" in part
                reason = "triple terms (RDF-star) are not supported" if star else _message(error)
                reading.report(number, offset, reason, data)
            except _NotAFactError as error:
                reading.report(number, offset, str(error), data)


def _message(error: SyntaxError, *, column: bool = True) -> str:
    position = _POSITION.match(error.msg)
    if not position:
        return error.msg
    text = error.msg[position.end() :]
    return f"column {position.group(1)}: {text}" if column else text


class _Converter:
    """Converter from quads of one file to facts, with caches of terms and of generated labels."""

    def __init__(self, blank_prefix: str, *, rename: bool = False) -> None:
        self._prefix = blank_prefix
        self._rename = rename
        self._names: dict[str, str] = {}
        self._iris: dict[str, IRI] = {}
        self._checked: dict[str, str] = {}
        self._literals: dict[tuple[str, str], Literal] = {}

    def of_all(self, quads: Iterable[ox.Quad]) -> list[Fact]:
        """Return the facts of quads; raise if a quad is not a fact."""
        iris, checked, literals = self._iris, self._checked, self._literals
        if len(iris) + len(literals) > _CACHE:
            iris.clear()
            literals.clear()
        named, tagged = ox.NamedNode, ox.Literal
        facts: list[Fact] = []
        # The hot loop of every load: lookups instead of calls, and each getter once.
        for quad in quads:
            node = quad.subject
            s: Term | None = iris.get(node.value) if type(node) is named else None
            if s is None:
                s = self._node(node)
            value = quad.object
            if type(value) is tagged:
                text, datatype = value.value, value.datatype.value
                # Plain strings are seldom equal, so they are not cached.
                o: Term | None = Literal(text) if datatype == XSD_STRING else literals.get((text, datatype))
                if o is None:
                    o = self._literal(text, datatype, value)
            else:
                o = iris.get(value.value) if type(value) is named else None
                if o is None:
                    o = self._node(value)
            name = quad.predicate.value
            relation = checked.get(name)
            if relation is None:
                relation = checked[name] = _iri(name).value
            facts.append(Fact(relation, (s, o)))
        return facts

    def _node(self, node: object) -> IRI | BlankNode:
        if isinstance(node, ox.NamedNode):
            term = self._iris[node.value] = _iri(node.value)
            return term
        if isinstance(node, ox.BlankNode):
            return BlankNode(self._prefix + (self._label(node.value) if self._rename else node.value))
        raise _NotAFactError("triple terms (RDF-star) are not supported")

    def _literal(self, text: str, datatype: str, value: ox.Literal) -> Literal:
        if datatype in _TAGGED:
            # Not cached by text and datatype: the tag is a part of the term.
            return _tagged(value)
        known = self._checked.get(datatype)
        if known is None:
            known = self._checked[datatype] = _iri(datatype).value
        term = self._literals[text, datatype] = literal(text, known)
        return term

    def _label(self, label: str) -> str:
        if _ANONYMOUS.fullmatch(label):
            return self._names.setdefault(label, f"genid{len(self._names) + 1}")
        # Labels that look like generated ones get another underscore.
        return label.replace("genid", "genid_", 1) if _GENERATED.fullmatch(label) else label


def _iri(value: str) -> IRI:
    try:
        return iri(value)
    except LoadProblem as error:
        raise _NotAFactError(error.diagnostics[0].message) from error


def _tagged(value: ox.Literal) -> Literal:
    if value.direction:
        raise _NotAFactError("strings with a base direction (RDF 1.2) are not supported")
    if not value.language:
        raise _NotAFactError("an rdf:langString has no language tag")
    return string(value.value, value.language)
