"""Data files of every format, harmed: lines are bad or a file is refused, and both loaders agree on it."""

from __future__ import annotations

import bz2
import gzip
import shutil
from functools import cache
from typing import TYPE_CHECKING

import zstandard

import zodiacedge as ze
from fuzz.mutate import harmed
from zodiacedge.errors import ZodiacError
from zodiacedge.io import read_all, write_facts
from zodiacedge.terms import BlankNode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

_TURTLE = """@prefix ex: <http://e/> .  @base <http://b/> .
ex:a a ex:Turbine ; ex:p "x"@en, "5"^^<http://www.w3.org/2001/XMLSchema#integer>, 5.5, [ ex:q ( 1 2 ) ] .
<r> ex:p '''long
text''' . _:b1 ex:p ex:a .
"""
_RDF_XML = """<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:ex="http://e/"><rdf:Description rdf:about="http://e/a"><ex:p xml:lang="en">x</ex:p>
 <ex:q rdf:resource="http://e/b"/></rdf:Description></rdf:RDF>
"""
_JSON_LD = (
    '{"@context":{"p":"http://e/p"},"@id":"http://e/a","@type":"http://e/C","p":[1,"x",{"@id":"http://e/b"}]}'
)
_ROWS = """
    p(<http://e/a>, <http://e/b>) .  p(<http://e/a>, "fünf"@de) .  p(<http://e/ü>, "a\\nb\\"c") .
    p(<http://e/a>, 5) .  p(_:x, 2.5) .  p(<http://e/a>, true) .
    p(<http://e/a>, "2024-02-29T12:00:00Z"^^xsd:dateTime) .  p(<http://e/a>, 1.0e300) .
    p(<http://e/a>, "x"^^<http://e/t>) .  p(<http://e/a>, "") .
"""
_PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@cache
def _sources(folder: Path) -> tuple[tuple[str, bytes], ...]:
    """Return names and contents of whole files, one of each format."""
    kb = ze.open()
    with kb.change() as c:
        c.add_facts(_ROWS)
    found: dict[str, bytes] = {}
    for form in ("nt", "ttl", "csv", "tsv", "jsonl", "parquet", "arrow"):
        place = folder / f"whole-{form}"
        write_facts(kb.explicit, place, form=form)
        found[f"p.{form}"] = next(place.glob(f"*.{form}")).read_bytes()
        shutil.rmtree(place)
    lines = found["p.nt"]
    found |= {"q.nq": lines.replace(b" .\n", b" <http://e/g> .\n"), "d.ttl": _TURTLE.encode()}
    found |= {"t.trig": f"{_TURTLE}<http://e/g> {{ <http://e/a> <http://e/p> 1 }}".encode()}
    found |= {"x.rdf": _RDF_XML.encode(), "j.jsonld": _JSON_LD.encode()}
    found |= {f"p.nt.{ending}": pack(lines * 20) for ending, pack in _PACKED.items()}
    return tuple(found.items())


def data(dice: Random, folder: Path) -> None:
    """Load a harmed file with the embedded engine and with the plain readers."""
    sources = _sources(folder)
    name, whole = dice.choice(sources)
    path = folder / name
    path.write_bytes(harmed(dice, whole, [other for _, other in sources]))
    options: dict[str, bool | str] = {
        "header": dice.random() < 0.2,
        "strict": dice.random() < 0.2,
        "base": "http://b/",
    }
    plain, loaded = _plain(path, options), _loaded(path, options)
    assert plain == loaded, f"{name}: {plain} by the plain readers, {loaded} by the engine"
    path.unlink()


def _plain(path: Path, options: dict[str, bool | str]) -> object:
    try:
        facts, report = read_all([str(path)], **options)  # type: ignore[arg-type]
    except ZodiacError as problem:
        return [one.code for one in problem.diagnostics]
    return _named(set(facts)), report.bad


def _loaded(path: Path, options: dict[str, bool | str]) -> object:
    kb = ze.open()
    try:
        with kb.change() as c:
            report = c.load(path, **options)  # type: ignore[arg-type]
    except ZodiacError as problem:
        return [one.code for one in problem.diagnostics]
    return _named(set(kb.explicit)), report.bad


def _named(facts: set[ze.Fact]) -> tuple[int, set[ze.Fact]]:
    # Blank nodes have other names each time.
    named = {one for one in facts if not any(isinstance(arg, BlankNode) for arg in one.args)}
    return len(facts), named
