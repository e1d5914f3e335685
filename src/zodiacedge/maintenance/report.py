"""What a change did: the report that people, subscribers and machines get."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from zodiacedge.language.printer import format_rule
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.engine.api import Dropped, Materialisation, NodeRun
    from zodiacedge.errors import Diagnostic
    from zodiacedge.language.ast import Fact, Predicate, Rule


@dataclass(frozen=True)
class ChangeReport:
    """One commit: versions, what came and went, how each node was evaluated, and warnings."""

    version_before: int
    version_after: int
    rules_added: tuple[Rule, ...]
    rules_removed: tuple[Rule, ...]
    facts_added: int
    facts_removed: int
    before: Materialisation
    after: Materialisation
    nodes: tuple[NodeRun, ...]
    dropped: Mapping[str, Dropped]
    warnings: tuple[Diagnostic, ...]
    seconds: float

    @cached_property
    def inserted(self) -> frozenset[Fact]:
        """The facts that became visible."""
        return self.after.visible() - self.before.visible()

    @cached_property
    def deleted(self) -> frozenset[Fact]:
        """The facts that are visible no more."""
        return self.before.visible() - self.after.visible()

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain values for JSON."""
        return {
            "version_before": self.version_before,
            "version_after": self.version_after,
            "rules_added": [format_rule(r) for r in self.rules_added],
            "rules_removed": [format_rule(r) for r in self.rules_removed],
            "facts_added": self.facts_added,
            "facts_removed": self.facts_removed,
            "inserted": counted(self.inserted),
            "deleted": counted(self.deleted),
            "nodes": [
                {"rules": list(n.rules), "rounds": n.rounds, "facts": n.facts, "seconds": n.seconds}
                for n in self.nodes
            ],
            "dropped": {r: {"count": d.count, "example": d.example} for r, d in self.dropped.items()},
            "warnings": [w.to_dict() for w in self.warnings],
            "seconds": self.seconds,
        }


def per_predicate(
    counts: Mapping[Predicate, int], known: Iterable[Predicate] = (), beside: Iterable[Predicate] = ()
) -> dict[str, int]:
    """Name the counts of predicates, those in `known` even where there are none.

    The key is the bare name, `p/1` and `p/2` only where both exist, here or among those `beside`.
    """
    # rdf:type with a variable class is no predicate of its own: its facts belong to classes.
    found = {p: 0 for p in known if p.name != RDF_TYPE} | dict(counts)
    shared = {name for name, n in Counter(p.name for p in {*found, *beside}).items() if n > 1}
    return {f"{p.name}/{p.arity}" if p.name in shared else p.name: found[p] for p in sorted(found)}


def counted(facts: Iterable[Fact]) -> dict[str, int]:
    """Count facts per predicate, by name."""
    return per_predicate(Counter(fact.predicate for fact in facts))
