"""Writers of N-Triples and Turtle; without a library, so that relative IRIs are written unchanged.

Only facts of arity 1 and 2 whose subject is not a literal are triples; `check_rdf` checks this before
anything is written.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, LoadProblem
from zodiacedge.io.formats.cells import IRI_FORM, checked_iri, checked_label, quoted_literal, write_cell
from zodiacedge.io.problems import problem
from zodiacedge.terms import IRI, RDF_TYPE, XSD_STRING, BlankNode, Literal, Term

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from zodiacedge.language.ast import Predicate

# The part of Turtle's names that needs no escapes in any reader.
_PREFIX = re.compile(r"(?:[A-Za-z][A-Za-z0-9_-]*)?")
_LOCAL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TABULAR = "export to csv, tsv, jsonl, parquet or arrow, which hold any fact"


def check_rdf(relations: Mapping[Predicate, Iterable[tuple[Term, ...]]]) -> None:
    """Raise with a finding for each relation that RDF cannot express."""
    findings: list[Diagnostic] = []
    for predicate, rows in relations.items():
        if predicate.arity not in {1, 2}:
            why = f"{predicate.name} has arity {predicate.arity}, and a triple has one subject and one object"
        elif (counts := Counter(isinstance(row[0], Literal) for row in rows))[True]:
            of = f"{counts[True]} of {counts.total()}"
            why = f"{predicate.name} has a literal as subject in {of} facts"
        else:
            continue
        findings.append(Diagnostic("I014", f"no RDF for {predicate.name}/{predicate.arity}: {why}", _TABULAR))
    if findings:
        raise LoadProblem(findings)


def nt_term(term: Term) -> str:
    """Return a term in N-Triples."""
    match term:
        case IRI(value=value):
            return f"<{checked_iri(value)}>"
        case BlankNode(label=label):
            return f"_:{checked_label(label)}"
        case Literal():
            return quoted_literal(term, short=False)


def nt_lines(predicate: Predicate, rows: Iterable[tuple[Term, ...]]) -> Iterator[str]:
    """Yield a relation's facts as lines of N-Triples."""
    if predicate.arity == 1:
        ending = f"<{RDF_TYPE}> <{checked_iri(predicate.name)}> ."
        for (subject,) in rows:
            yield f"{nt_term(subject)} {ending}"
        return
    name = f"<{checked_iri(predicate.name)}>"
    for subject, value in rows:
        yield f"{nt_term(subject)} {name} {nt_term(value)} ."


class Turtle:
    """Facts as Turtle with prefixes and a base."""

    def __init__(self, prefixes: Mapping[str, str] | None = None, base: str = "") -> None:
        """Take the prefixes to declare, without those that Turtle does not allow, and the base, if any."""
        self._base = _absolute(base) if base else ""
        self._prefixes = {
            prefix: iri
            for prefix, iri in (prefixes or {}).items()
            if _PREFIX.fullmatch(prefix) and ":" in iri and IRI_FORM.fullmatch(iri)
        }

    def lines(self, predicate: Predicate, rows: Iterable[tuple[Term, ...]]) -> Iterator[str]:
        """Yield a relation's facts as lines of a file, one statement per subject."""
        if self._base:
            yield f"@base <{self._base}> ."
        for prefix, iri in self._prefixes.items():
            yield f"@prefix {prefix}: <{iri}> ."
        name = self._iri(predicate.name)
        if predicate.arity == 1:
            for (subject,) in rows:
                yield f"{self._term(subject)} a {name} ."
            return
        for subject, group in groupby(rows, itemgetter(0)):
            yield f"{self._term(subject)} {name} {', '.join(self._term(value) for _, value in group)} ."

    def _term(self, term: Term) -> str:
        # Numbers and booleans are written as in cells, other literals as in N-Triples.
        if isinstance(term, Literal) and term.datatype != XSD_STRING:
            cell = write_cell(term)
            if not cell.startswith('"'):
                return cell
        return self._iri(term.value) if isinstance(term, IRI) else nt_term(term)

    def _iri(self, value: str) -> str:
        for prefix, iri in self._prefixes.items():
            if value.startswith(iri) and _LOCAL.fullmatch(value, len(iri)):
                return f"{prefix}:{value[len(iri) :]}"
        return f"<{checked_iri(value)}>"


def _absolute(base: str) -> str:
    if ":" not in base:
        raise problem("I018", f"{base!r} is not a base IRI", "write it whole: http://example.org/")
    return checked_iri(base)
