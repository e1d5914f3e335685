"""Names of rules and predicates in messages and drawings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from zodiacedge.language.printer import format_predicate, format_rule
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from zodiacedge.language.ast import Predicate, Rule

_MAX_LENGTH = 72


def rule_name(rule: Rule) -> str:
    """Return a rule's label or, without one, its text, clipped."""
    if rule.label:
        return rule.label
    text = format_rule(rule).removesuffix(".").rstrip()
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"


def predicate_name(predicate: Predicate) -> str:
    """Return a predicate's name and arity: `p/2`."""
    return f"{format_predicate(predicate.name)}/{predicate.arity}"


def short_name(predicate: Predicate) -> str:
    """Return the last component of a predicate's name: an IRI is too long for a drawing."""
    if predicate.name == RDF_TYPE:
        return "rdf:type"
    return re.split(r"[#/]", predicate.name.rstrip("#/"))[-1] or predicate.name
