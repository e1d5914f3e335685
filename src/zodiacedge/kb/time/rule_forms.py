"""The form of rules for an engine: resolved, with their windows as atoms or as comparisons with the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.language.canonical import keyed, rule_key
from zodiacedge.language.windows import by_clock, computed, has_windows, untimed_windows, with_atoms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zodiacedge.language.ast import Rule
    from zodiacedge.language.canonical import KeyedRule


class RuleForms:
    """Keys and forms of rules for an engine."""

    def __init__(
        self,
        times: Callable[[], Mapping[str, int]],
        *,
        by_rows: bool,
        known: Mapping[Rule, KeyedRule] | None = None,
    ) -> None:
        """Take a function that returns the time of each predicate, and whether the engine keeps windows.

        `known` are rules whose keys need not be computed again.
        """
        self.times = times
        self._by_rows = by_rows
        self._known = known or {}

    def resolved(self, rule: Rule) -> tuple[str, Rule, dict[str, Rule]]:
        """Return the key and the form of a rule, and the hidden rules that it needs by key."""
        key, plain = self._known.get(rule) or keyed(rule)
        if not has_windows(plain):
            return key, plain, {}
        times = self.times()
        if any(untimed_windows(plain, times)):
            return key, plain, {}
        whole, hidden = with_atoms(plain, times)
        return rule_key(whole), self._form(whole), {rule_key(each): self._form(each) for each in hidden}

    def _form(self, rule: Rule) -> Rule:
        return computed(rule) if self._by_rows else by_clock(rule)
