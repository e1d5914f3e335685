"""Predicates with the same local name: `temp` and `http://example.org/temp` are two predicates.

A rule that reads one where the facts have the other derives nothing. Two IRIs are taken for each other if
they differ only in scheme, case and punctuation: `http://schema.org/name` and `https://schema.org/name`.
Names of two vocabularies, `foaf:name` and `schema:name`, are not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic
from zodiacedge.language.printer import format_predicate
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from zodiacedge.language.ast import Atom

_SEPARATOR = re.compile(r"[#/:]")
_SCHEME = re.compile(r"^https?://(www\.)?")
_PUNCTUATION = re.compile(r"[\W_]+")
_MOST_SHOWN = 3
# Lookups that scan all names, before an index pays off.
_MAX_SCANS = 3


class Namesakes:
    """Known names, for `find`: after a few lookups, an index by their local names is built."""

    def __init__(self, names: Collection[str]) -> None:
        """Store the known names."""
        self._names = names
        self._lookups = 0
        self._by_local: dict[str, list[str]] = {}

    def find(self, name: str) -> list[str]:
        """Return the known names that a name may stand for, sorted."""
        return sorted(
            known
            for known in self._with_local(local_name(name))
            if known not in {name, RDF_TYPE} and _may_stand_for(name, known)
        )

    def _with_local(self, wanted: str) -> Iterable[str]:
        self._lookups += 1
        if self._lookups <= _MAX_SCANS:
            return (name for name in self._names if local_name(name) == wanted)
        if not self._by_local:
            for name in self._names:
                self._by_local.setdefault(local_name(name), []).append(name)
        return self._by_local.get(wanted, ())


@lru_cache(maxsize=1 << 16)
def local_name(name: str) -> str:
    """Return what follows the namespace of a name, in lower case."""
    return _SEPARATOR.split(name.rstrip("#/:"))[-1].lower()


def _may_stand_for(name: str, known: str) -> bool:
    if _is_plain(name) or _is_plain(known):
        return not (_is_plain(name) and _is_plain(known))
    return _letters(name) == _letters(known)


def _is_plain(name: str) -> bool:
    return not _SEPARATOR.search(name)


def _letters(iri: str) -> str:
    return _PUNCTUATION.sub("", _SCHEME.sub("", iri.lower()))


def namesake_finding(atom: Atom, namesakes: list[str]) -> Diagnostic:
    """Return the warning about an atom that nothing states or derives, where its namesakes are known."""
    name, arity = atom.predicate
    shown = " or ".join(map(format_predicate, namesakes[:_MOST_SHOWN]))
    return Diagnostic(
        "W026",
        f"no fact or rule has {format_predicate(name)}/{arity}; did you mean {shown}?",
        "names are compared whole: write the IRI in angle brackets, or with a declared prefix",
        atom.span,
        "warning",
    )
