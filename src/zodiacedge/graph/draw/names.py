"""Names of rules and predicates in messages and drawings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from zodiacedge.language.printer import format_predicate, format_rule
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.language.ast import Predicate, Rule

_MAX_LENGTH = 72


def rule_name(rule: Rule, prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return a rule's label or, without one, its text, clipped."""
    if rule.label:
        return rule.label
    text = format_rule(rule, prefixes).removesuffix(".").rstrip()
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"


def predicate_name(predicate: Predicate, prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return a predicate's name and arity: `p/2`."""
    return f"{format_predicate(predicate.name, prefixes)}/{predicate.arity}"


def short_name(predicate: Predicate, prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return a predicate's name; of an IRI without a prefix only the last component, to fit a drawing."""
    name = format_predicate(predicate.name, prefixes)
    if not name.startswith("<"):
        return name
    return re.split(r"[#/]", predicate.name.rstrip("#/"))[-1] or predicate.name
