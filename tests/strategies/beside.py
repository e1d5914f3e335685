"""Engines beside the definition: changes are carried out on both, and all that can be seen is compared."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.maintain.strategy import STRATEGIES
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.engine.api import Engine
    from zodiacedge.kb.change import Change
    from zodiacedge.language.ast import Fact

# The embedded engine by every means, with modules and without, under names for messages; and maintained by
# deleting all that is in doubt and deriving it again, in the place of proofs.
EMBEDDED: dict[str, Engine] = {
    f"{strategy}, modules {name}": EmbeddedEngine(modules=modules, strategy=strategy)
    for strategy in STRATEGIES
    for name, modules in (("on", True), ("off", False))
}
EMBEDDED["maintain, no proofs"] = EmbeddedEngine(modules=False, strategy="maintain", backward=False)


@dataclass(frozen=True)
class Seen:
    """What can be seen of a knowledge base after a change."""

    facts: frozenset[Fact]
    explicit: frozenset[Fact]
    inserted: frozenset[Fact]
    deleted: frozenset[Fact]
    net_counts: tuple[dict[str, int], dict[str, int]]
    derived: dict[str, int]
    segments: dict[frozenset[str], frozenset[Fact]]

    def differences(self, other: Seen) -> list[str]:
        """Return the names of what is not the same."""
        return [one.name for one in fields(self) if getattr(self, one.name) != getattr(other, one.name)]


@dataclass(frozen=True)
class Expected:
    """Changes, and what the definition shows after each of them."""

    changes: tuple[Change, ...]

    @cached_property
    def seen(self) -> tuple[Seen, ...]:
        """Played once, however many engines are compared with it."""
        return played(ReferenceEngine(), self.changes)


def played(engine: Engine, changes: Iterable[Change]) -> tuple[Seen, ...]:
    """Return what an engine shows after each change."""
    kb = KnowledgeBase(engine, Settings())
    found: list[Seen] = []
    for change in changes:
        report = kb.apply(change)
        nodes = [frozenset(node.rules) for node in kb.graph().order]
        found.append(
            Seen(
                kb.facts(),
                kb.explicit,
                frozenset(report.inserted),
                frozenset(report.deleted),
                report.net_counts(),
                kb.derived(),
                {rules: kb.state.segment(rules) for rules in nodes},
            )
        )
    return tuple(found)
