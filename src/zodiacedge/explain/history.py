"""Answers to "since when" as values: the versions that inserted or deleted a fact, and the edits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.explain.forms.explanation import Explanation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from zodiacedge.explain.proof import Proof
    from zodiacedge.language.ast import Fact, Rule


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of rules and explicit facts: what of it concerns the fact, and who made it.

    If it does not touch the proof directly, but through other facts that it derives or takes away, `direct`
    is false, and its rules and some of its facts are named.
    """

    version: int
    """The version that it made."""
    rules_added: tuple[Rule, ...] = ()
    """Rules that it added and the proof uses."""
    rules_removed: tuple[Rule, ...] = ()
    """Rules that it removed and the proof used."""
    facts_added: tuple[Fact, ...] = ()
    """Explicit facts that it added: those that the proof uses, or that its negated atoms forbid."""
    facts_removed: tuple[Fact, ...] = ()
    """Explicit facts that it removed, likewise."""
    direct: bool = True
    author: str = ""
    time: datetime | None = None
    message: str = ""
    stream: tuple[str, int] | None = None
    """The stream and the batch that the change is from."""
    all_facts_added: int = 0
    """The number of explicit facts that it added."""
    all_facts_removed: int = 0


@dataclass(frozen=True, slots=True)
class FactChange:
    """A version in which a fact became visible, or from which on it is not."""

    version: int
    inserted: bool
    """Whether the fact was inserted; otherwise it was deleted."""
    edit: Edit
    proof: Proof | None = None
    """The proof that the edit made, in this version; or the one that it broke, in the version before."""


@dataclass(frozen=True, slots=True, repr=False)
class History(Explanation):
    """The changes of a fact, the last first."""

    fact: Fact
    there: bool
    """Whether it is there now."""
    changes: tuple[FactChange, ...]
    since: int
    """The first version that is known: what was before it, the history does not say."""
    version: int
    """The version that was asked."""
    complete: bool = True
    """Whether all versions from `since` on were looked at; otherwise a limit or the budget ended."""
    note: str = ""
    """Where no rule and no fact has the predicate: the nearest name."""
    prefixes: Mapping[str, str] = field(default_factory=dict, compare=False)
