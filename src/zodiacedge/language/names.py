"""Names that are given outside a program text: prefixes, angle brackets, full IRIs.

Predicates of facts, of files, of subscriptions and of session files are named by the same forms:

    reading                     a plain name
    ex:reading                  a prefix that is declared, and a local name
    <http://example.org/p>      any IRI, in brackets
    http://example.org/p        an absolute IRI: `//` after the colon, or a scheme such as `urn:`

A name with another prefix is refused, because it would silently be another predicate than that of the rules.
Names inside a program text are left to the parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, LoadProblem, UsageProblem, nearest
from zodiacedge.language.scanner import PREFIX_NAME
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.terms import is_iri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.language.ast import Predicate

# The schemes of absolute IRIs that have no `//`.
_SCHEMES = frozenset({"did", "info", "mailto", "tag", "urn"})


def full_name(given: str, prefixes: Mapping[str, str]) -> str:
    """Return the full name of a predicate or a constant; raise if it is not a name or has no such prefix."""
    prefix, colon, local = given.partition(":")
    # Other text in front of a colon than a program could declare belongs to the name.
    if local.startswith("//") or not PREFIX_NAME.fullmatch(prefix + colon):
        return _not_empty(checked_name(given))
    known = {**DEFAULT_PREFIXES, **prefixes}
    if prefix in known:
        return checked_name(known[prefix] + local)
    if prefix in _SCHEMES:
        return checked_name(given)
    near = nearest(prefix, tuple(known))
    declare = f"declare it first, in the rules: @prefix {prefix}: <…> . Or write the whole IRI: <http://…>"
    hint = f"did you mean {near}:?" if near else declare
    raise UsageProblem(Diagnostic("U012", f"there is no prefix {prefix}: for the name {given}", hint))


def spelled(given: str, prefixes: Mapping[str, str]) -> str:
    """Return the full name of a predicate that is given with or without its arity, for `is_named`.

    `ex:p/2` becomes `<http://e/p>/2`. A plain name and an absolute IRI without brackets stay as they are; a
    number at the end of such an IRI may be its own or the arity.
    """
    if given.startswith("<"):
        opened, closing, arity = given.rpartition(">")
        if not closing:
            raise _not_a_name(given, "close it with >")
        return f"<{full_name(opened + closing, prefixes)}>{arity}"
    full = full_name(given, prefixes)
    if full == given:
        return given
    # The number of `ex:2` is a local name, not an arity.
    _, slash, arity = given.partition(":")[2].rpartition("/")
    if not slash or not arity.isdigit():
        return f"<{full}>"
    return f"<{full.removesuffix(slash + arity)}>/{arity}"


def is_named(predicate: Predicate, name: str) -> bool:
    """Whether a name from `spelled` means a predicate; without an arity it means all arities."""
    bare, arity = predicate
    if name in {f"{bare}/{arity}", f"<{bare}>", f"<{bare}>/{arity}"}:
        return True
    return name == bare and (":" in name or not name.rpartition("/")[2].isdigit())


def checked_name(name: str) -> str:
    """Return a name without the brackets of an IRI; raise if it has a character that no IRI has."""
    bare = name[1:-1] if name.startswith("<") and name.endswith(">") else name
    if is_iri(bare):
        return bare
    note = 'a name holds no space and none of <>"{}|^`\\; give one as name=path'
    raise _not_a_name(bare, note)


def _not_empty(name: str) -> str:
    if name:
        return name
    raise _not_a_name(name, "a name has at least one character, such as reading or ex:reading")


def _not_a_name(name: str, note: str) -> LoadProblem:
    return LoadProblem(Diagnostic("I006", f"{name!r} cannot be the name of a relation", note))
