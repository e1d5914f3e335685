"""Compares two versions: rules and visible facts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.kb.report import per_predicate
from zodiacedge.language.printer import format_atom, format_rule
from zodiacedge.packs.owners import moves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.language.ast import Fact, Rule


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """The net change from one version to another."""

    version_before: int
    version_after: int
    rules_added: tuple[Rule, ...]
    rules_removed: tuple[Rule, ...]
    inserted: frozenset[Fact]
    """The facts that are visible in the second version only."""
    deleted: frozenset[Fact]
    """The facts that are visible in the first version only."""
    prefixes: tuple[tuple[str, str | None, str | None], ...] = ()
    """Prefixes with another meaning: the name, and what it means in each version, None if undeclared."""
    packs: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    """The versions of packs that differ, in the first version and in the second."""

    @classmethod
    def between(cls, before: KnowledgeBase, after: KnowledgeBase) -> VersionDiff:
        """Compare two versions."""
        old, new = set(before.rules), set(after.rules)
        return cls(
            before.version,
            after.version,
            tuple(rule for rule in after.rules if rule not in old),
            tuple(rule for rule in before.rules if rule not in new),
            *after.state.diff(before.state),
            prefixes=tuple(
                (name, before.prefixes.get(name), after.prefixes.get(name))
                for name in sorted({*before.prefixes, *after.prefixes})
                if before.prefixes.get(name) != after.prefixes.get(name)
            ),
            packs=moves(before.installed, after.installed),
        )

    def counts(self, show: Callable[[str], str] = str) -> tuple[dict[str, int], dict[str, int]]:
        """Count the inserted and the deleted facts per predicate; `show` writes a name for people."""
        inserted, deleted = (
            Counter(fact.predicate for fact in side) for side in (self.inserted, self.deleted)
        )
        beside = {*inserted, *deleted}
        return per_predicate(inserted, beside, show), per_predicate(deleted, beside, show)

    def to_dict(self, most: int | None = None) -> dict[str, object]:
        """Return plain values for JSON, with at most `most` inserted and deleted facts; all if not given."""
        inserted, deleted = self.counts()
        return {
            "version_before": self.version_before,
            "version_after": self.version_after,
            "rules_added": [format_rule(rule) for rule in self.rules_added],
            "rules_removed": [format_rule(rule) for rule in self.rules_removed],
            "prefixes": {name: {"before": old, "after": new} for name, old, new in self.prefixes},
            "packs": {name: list(versions) for name, versions in self.packs.items()},
            "inserted": inserted,
            "deleted": deleted,
            "facts_inserted": listed(self.inserted)[:most],
            "facts_deleted": listed(self.deleted)[:most],
        }


def listed(facts: Iterable[Fact]) -> list[str]:
    """Return facts as text, in order."""
    return sorted(map(format_atom, facts))
