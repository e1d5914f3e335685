"""The rules in force, their graph, and what finds rules by the names that stand in them.

A program is a value. The next one shares what it can with it, so that one rule among ten thousand costs
nothing that looks at every rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.graph import HyperGraph
from zodiacedge.language.checks import body_atoms
from zodiacedge.util.cow_dict import CowDict

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from zodiacedge.language.ast import Atom, Rule


@dataclass(frozen=True, slots=True)
class RuleBase:
    """The rules in force by key, and their graph."""

    rules: CowDict[str, Rule] = field(default_factory=CowDict)
    graph: HyperGraph = field(default_factory=HyperGraph)
    labels: CowDict[str, str] = field(default_factory=CowDict)
    """The key of the rule that has a label."""
    mentions: CowDict[str, frozenset[str]] = field(default_factory=CowDict)
    """The keys of the rules that mention a predicate of some name."""
    defined: CowDict[str, int] = field(default_factory=CowDict)
    """How many rules define predicates of a name."""
    aggregated: CowDict[str, Rule] = field(default_factory=CowDict)
    """The rules with an aggregate."""

    def changed(self, added: Mapping[str, Rule], removed: Collection[str]) -> RuleBase:
        """Return the program with some rules, resolved, and without others; raise if it is not stratified."""
        graph, _ = self.graph.update(added, removed)
        rules, labels, aggregated = self.rules.copy(), self.labels.copy(), self.aggregated.copy()
        mentions, defined = self.mentions.copy(), self.defined.copy()
        for key in removed:
            rule = rules.pop(key)
            head = rule.head.predicate.name
            defined[head] -= 1
            if not defined[head]:
                del defined[head]
            labels.pop(rule.label, None)
            aggregated.pop(key, None)
            for name in names_in(rule):
                left = mentions[name] - {key}
                if left:
                    mentions[name] = left
                else:
                    del mentions[name]
        gained: dict[str, list[str]] = {}
        for key, rule in added.items():
            rules[key] = rule
            head = rule.head.predicate.name
            defined[head] = defined.get(head, 0) + 1
            if rule.label:
                labels[rule.label] = key
            if rule.aggregate:
                aggregated[key] = rule
            for name in names_in(rule):
                gained.setdefault(name, []).append(key)
        for name, keys in gained.items():
            mentions[name] = mentions.get(name, frozenset()).union(keys)
        return RuleBase(rules, graph, labels, mentions, defined, aggregated)

    def near(self, names: Collection[str], labels: Collection[str]) -> set[str]:
        """Return the keys of the rules that mention some name or have some label."""
        found = {key for name in names for key in self.mentions.get(name, ())}
        found.update(self.labels[label] for label in labels if label in self.labels)
        return found


def names_in(rule: Rule) -> set[str]:
    """Return the names of the predicates that a rule mentions."""
    atoms: list[Atom] = [rule.head, *body_atoms(rule.body)]
    return {atom.predicate.name for atom in atoms}
