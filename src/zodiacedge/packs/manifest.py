"""What a pack says about itself: its name and version, what it may define, what it needs, what must hold.

A namespace is a predicate, or the beginning of predicates with a star behind it. Names are full: prefixes
are resolved when a pack is made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, ZodiacError
from zodiacedge.language.parser import parse_query
from zodiacedge.language.printer import format_query
from zodiacedge.language.vocabulary import LANGUAGE_VERSION
from zodiacedge.language.windows import has_windows
from zodiacedge.packs.fields import Fields, document_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from zodiacedge.language.ast import Query, Rule

# Names of packs are parts of labels, of file names and of addresses.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_STAR = "*"


@dataclass(frozen=True, slots=True)
class Check:
    """A query that must have answers when the pack is in force, or must have none."""

    query: str
    answers: bool

    def parsed(self) -> Query:
        """Return the query."""
        return parse_query(self.query, "<check>", {})

    def __str__(self) -> str:
        """Return the check as people read it."""
        return f"{'some' if self.answers else 'no'} answer to {self.query}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a pack says about itself."""

    name: str
    version: int
    defines: tuple[str, ...]
    """The namespaces that the heads of its rules are in."""
    shares: tuple[str, ...] = ()
    """Namespaces in which other packs that share them may define predicates, too."""
    requires: Mapping[str, int] = field(default_factory=dict)
    """The packs that it needs, with their least versions."""
    functions: tuple[str, ...] = ()
    """The registered functions that its rules call."""
    aggregates: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    language: int = LANGUAGE_VERSION
    description: str = ""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """Prefixes for people who look at it."""
    digest: str = ""
    """The digest of its set of rules."""

    def __str__(self) -> str:
        """Return the name and the version."""
        return f"{self.name} {self.version}"

    def may_define(self, predicate: str) -> bool:
        """Return whether a predicate is in one of its namespaces."""
        return within(predicate, self.defines)

    def may_share(self, predicate: str) -> bool:
        """Return whether it lets other packs define a predicate."""
        return within(predicate, self.shares)

    def to_dict(self) -> dict[str, object]:
        """Return the manifest as plain values for JSON."""
        return document_of(
            {
                "name": self.name,
                "version": self.version,
                "language": self.language,
                "description": self.description,
                "defines": list(self.defines),
                "shares": list(self.shares),
                "requires": dict(self.requires),
                "functions": list(self.functions),
                "aggregates": list(self.aggregates),
                "checks": [{"some" if c.answers else "none": c.query} for c in self.checks],
                "prefixes": dict(self.prefixes),
                "digest": self.digest,
            }
        )


FIELDS = (
    *("name", "version", "language", "description", "defines", "shares", "requires"),
    *("functions", "aggregates", "checks", "prefixes", "digest"),
)


def manifest_of(fields: Fields) -> Manifest:
    """Read the manifest in a document; raise ValueError if it is none."""
    name, version = checked_name(fields.text("name")), fields.number("version")
    if not version:
        raise ValueError("versions of packs are numbered from 1")
    requires = fields.inner("requires").named_numbers()
    for required in requires:
        checked_name(required)
    return Manifest(
        name,
        version,
        fields.texts("defines"),
        fields.texts("shares"),
        requires,
        fields.texts("functions"),
        fields.texts("aggregates"),
        tuple(check_of(check) for check in fields.documents("checks")),
        fields.number("language"),
        fields.text("description", ""),
        fields.inner("prefixes").named_texts(),
        fields.digest("digest"),
    )


def check_of(fields: Fields, prefixes: Mapping[str, str] | None = None) -> Check:
    """Read a check, `none = query` or `some = query`; its query is written with full names."""
    fields.only(("none", "some"))
    answers = "some" in fields
    if answers == ("none" in fields):
        raise ValueError('a check is none = "?- query ." or some = "?- query ."')
    try:
        query = parse_query(fields.text("some" if answers else "none"), "<check>", prefixes or {})
    except ZodiacError as problem:
        raise ValueError(f"a check makes no sense: {problem.diagnostics[0].message}") from problem
    return Check(format_query(query, {}), answers)


def is_name(name: str) -> bool:
    """Return whether packs can have a name."""
    return _NAME.fullmatch(name) is not None


def checked_name(name: str) -> str:
    """Return the name of a pack; raise ValueError if packs cannot have it."""
    if is_name(name):
        return name
    raise ValueError(f"{name!r} is no name of a pack: letters, digits, - and _, at most 64, a letter first")


def within(predicate: str, namespaces: Iterable[str]) -> bool:
    """Return whether a predicate is in one of some namespaces."""
    return any(
        predicate.startswith(space[:-1]) if space.endswith(_STAR) else predicate == space
        for space in namespaces
    )


def outside_namespaces(manifest: Manifest, rules: Iterable[Rule]) -> Iterator[Diagnostic]:
    """Yield a finding for each predicate that rules of a pack define outside its namespaces."""
    seen: set[str] = set()
    for rule in rules:
        name = rule.head.predicate.name
        if name not in seen and not manifest.may_define(name):
            spaces = ", ".join(manifest.defines) or "none"
            yield Diagnostic(
                "P003",
                f"the pack {manifest} defines {name}, which is in none of its namespaces",
                f"add it to defines in pack.toml; they are: {spaces}",
                rule.span,
            )
        seen.add(name)


def windows_in(manifest: Manifest, rules: Iterable[Rule]) -> Iterator[Diagnostic]:
    """Yield a finding for each rule with a window, whose form depends on where the pack is installed."""
    for rule in rules:
        if has_windows(rule):
            yield Diagnostic(
                "P015",
                f"the rule {rule.label} of the pack {manifest} has a window on the clock",
                "state it in the base program, and let rules of the pack read what it derives",
                rule.span,
            )
