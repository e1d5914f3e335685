"""A net change without the facts of hidden rules, which stand for negated windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.language.vocabulary import RECENT_BASE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zodiacedge.engine.api import NetChange
    from zodiacedge.language.ast import Fact, Predicate


class ShownNetChange(NamedTuple):
    """The net change of a commit, as users see it."""

    whole: NetChange

    def counts(self) -> tuple[Mapping[Predicate, int], Mapping[Predicate, int]]:
        """Count the inserted and the deleted facts, without listing them."""
        inserted, deleted = self.whole.counts()
        return shown(inserted), shown(deleted)

    def facts(
        self, wanted: Callable[[Predicate], bool] | None = None
    ) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Return the inserted and the deleted facts, of all predicates or of the wanted ones."""
        return self.whole.facts(lambda p: not is_hidden_name(p.name) and (wanted is None or wanted(p)))


def shown(counts: Mapping[Predicate, int]) -> Mapping[Predicate, int]:
    """Return counts without those of hidden predicates."""
    if not any(is_hidden_name(predicate.name) for predicate in counts):
        return counts
    return {predicate: n for predicate, n in counts.items() if not is_hidden_name(predicate.name)}


def is_hidden_name(name: str) -> bool:
    """Whether a predicate is that of a hidden rule."""
    return name.startswith(RECENT_BASE)
