"""The rules in force, their owners and their graph, and an index of rules by label and predicate name.

A rule base is immutable. Its successor shares data with it, so that the change of one rule among ten thousand
visits only the rules that it concerns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.graph import HyperGraph
from zodiacedge.language.ast import body_atoms
from zodiacedge.language.unify import pattern_of
from zodiacedge.packs.owners import Packs
from zodiacedge.util.cow_dict import CowDict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from zodiacedge.errors import Diagnostic
    from zodiacedge.language.ast import Atom, Rule
    from zodiacedge.language.canonical import KeyedRule
    from zodiacedge.language.unify import Pattern


@dataclass(frozen=True, slots=True, eq=False)
class CheckedRules:
    """Rules of a program that was checked before it is added, and what the change need not find out again."""

    keyed: Mapping[Rule, KeyedRule] = field(default_factory=dict)
    """The rules, each without an error by itself."""
    warnings: tuple[Diagnostic, ...] = ()
    """The warnings about each rule by itself."""
    graph: HyperGraph = field(default_factory=HyperGraph)

    def graph_of(self, rules: Mapping[str, Rule]) -> HyperGraph:
        """Return the graph of resolved rules; it is built unless they are these."""
        shapes = self.graph.rules.shapes
        same = shapes.keys() == rules.keys() and all(shapes[key].rule is rule for key, rule in rules.items())
        return self.graph if same else HyperGraph.build(rules)


NOTHING_CHECKED = CheckedRules()


@dataclass(frozen=True, slots=True)
class RuleBase:
    """The rules in force by key (the program, IDB rules in the paper's terms), and their graph."""

    rules: CowDict[str, Rule] = field(default_factory=CowDict)
    graph: HyperGraph = field(default_factory=HyperGraph)
    labels: CowDict[str, str] = field(default_factory=CowDict)
    """The key of the rule that has a label."""
    mentions: CowDict[str, frozenset[str]] = field(default_factory=CowDict)
    """The keys of the rules that mention a predicate name."""
    defined: CowDict[str, int] = field(default_factory=CowDict)
    """The number of rules that define predicates of a name."""
    aggregated: CowDict[str, Rule] = field(default_factory=CowDict)
    """The rules with an aggregate."""
    packs: Packs = field(default_factory=Packs)
    """The packs in force, which own rules; the other rules belong to the base program."""

    def changed(
        self, added: Mapping[str, Rule], removed: Collection[str], checked: CheckedRules = NOTHING_CHECKED
    ) -> RuleBase:
        """Return the rule base with and without given rules (resolved); raise if it is not stratified.

        An added rule whose key is there, and stays, replaces the label of the rule in force. The graph of
        rules that were checked is used if they are the first.
        """
        graph = self.graph.update(added, removed)[0] if self.rules else checked.graph_of(added)
        rules, labels, aggregated = self.rules.copy(), self.labels.copy(), self.aggregated.copy()
        mentions, defined = self.mentions.copy(), self.defined.copy()
        # Not `&` of the keys, which would visit all rules in force.
        for key in added:
            if key in rules:
                labels.pop(rules[key].label, None)
        for key in removed:
            rule = rules.pop(key)
            head = rule.head.predicate.name
            defined[head] -= 1
            if not defined[head]:
                del defined[head]
            labels.pop(rule.label, None)
            aggregated.pop(key, None)
            for name in names_in(rule):
                remaining = mentions[name] - {key}
                if remaining:
                    mentions[name] = remaining
                else:
                    del mentions[name]
        mentioned_by: dict[str, list[str]] = {}
        for key, rule in added.items():
            if rule.label:
                labels[rule.label] = key
            if rule.aggregate:
                aggregated[key] = rule
            is_relabelled = key in rules
            rules[key] = rule
            if is_relabelled:
                continue
            head = rule.head.predicate.name
            defined[head] = defined.get(head, 0) + 1
            for name in names_in(rule):
                mentioned_by.setdefault(name, []).append(key)
        for name, keys in mentioned_by.items():
            mentions[name] = mentions.get(name, frozenset()).union(keys)
        return RuleBase(rules, graph, labels, mentions, defined, aggregated, self.packs)

    def near(self, names: Collection[str], labels: Collection[str]) -> set[str]:
        """Return the keys of the rules that mention one of the names or have one of the labels."""
        keys = {key for name in names for key in self.mentions.get(name, ())}
        keys.update(self.labels[label] for label in labels if label in self.labels)
        return keys

    def rivals(self, rules: Iterable[Rule]) -> set[str]:
        """Return the keys of the rules that derive a fact of a given rule, one of the two by an aggregate.

        Their names may differ: `rdf:type(X, C)` derives members of every class.
        """
        heads: dict[Pattern, bool] = {}
        for rule in rules:
            head = pattern_of(rule.head)
            heads[head] = heads.get(head, False) or rule.aggregate is not None
        return {
            key
            for head, aggregated in heads.items()
            for key in self.graph.rules.deriving(head)
            if aggregated or key in self.aggregated
        }


def names_in(rule: Rule) -> set[str]:
    """Return the names of the predicates that a rule mentions."""
    atoms: list[Atom] = [rule.head, *body_atoms(rule.body)]
    return {atom.predicate.name for atom in atoms}
