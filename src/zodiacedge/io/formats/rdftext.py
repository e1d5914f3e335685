"""Writers of N-Triples and Turtle; without a library, so that relative IRIs are written unchanged.

Only facts of arity 1 and 2 whose subject is not a literal are triples; `check_rdf` checks this before
anything is written.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, LoadProblem
from zodiacedge.io.formats.cells import checked_iri, checked_label, quoted_literal, write_cell
from zodiacedge.io.problems import problem
from zodiacedge.terms import IRI, RDF_TYPE, XSD_STRING, BlankNode, Literal, Term

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from zodiacedge.language.ast import Predicate

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


def turtle_lines(predicate: Predicate, rows: Iterable[tuple[Term, ...]], base: str = "") -> Iterator[str]:
    """Yield a relation's facts as lines of Turtle, one statement per subject."""
    if base:
        yield f"@base <{_absolute(base)}> ."
    if predicate.arity == 1:
        name = f"<{checked_iri(predicate.name)}>"
        for (subject,) in rows:
            yield f"{nt_term(subject)} a {name} ."
        return
    name = f"<{checked_iri(predicate.name)}>"
    for subject, group in groupby(rows, itemgetter(0)):
        values = ", ".join(_turtle_term(value) for _, value in group)
        yield f"{nt_term(subject)} {name} {values} ."


def _turtle_term(term: Term) -> str:
    # Numbers and booleans are written as in cells, other terms as in N-Triples.
    if isinstance(term, Literal) and term.datatype != XSD_STRING:
        cell = write_cell(term)
        if not cell.startswith('"'):
            return cell
    return nt_term(term)


def _absolute(base: str) -> str:
    if ":" not in base:
        raise problem("I018", f"{base!r} is not a base IRI", "write it whole: http://example.org/")
    return checked_iri(base)
