"""What a change did: the report that people, subscribers and machines get.

`str(report)` is for people and only counts, `to_dict` is for machines; who wants the facts asks for
`inserted` and `deleted`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from zodiacedge.engine.api import NodeRun, SegmentChange
from zodiacedge.errors import counted as number_of
from zodiacedge.language.printer import format_rule
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from zodiacedge.engine.api import Dropped, NetChange, State
    from zodiacedge.errors import Diagnostic
    from zodiacedge.language.ast import Fact, Predicate, Rule


# A report is a few lines, whatever the change: what goes beyond is counted.
_MOST = 6
_LONGEST_RULE = 60
# Means are told as `how, where: why`, as far as there is something to tell.
_AFTER_MEANS = re.compile("[,:] ")
_REASON = ": "


@dataclass(frozen=True, repr=False)
class ChangeReport:
    """One commit: versions, what came and went, how each node was evaluated, and warnings.

    That of a dry run says what a commit would have done; its two versions are the same.
    """

    version_before: int
    version_after: int
    rules_added: tuple[Rule, ...]
    rules_removed: tuple[Rule, ...]
    facts_added: int
    facts_removed: int
    net: NetChange
    nodes: tuple[NodeRun, ...]
    dropped: Mapping[str, Dropped]
    warnings: tuple[Diagnostic, ...]
    seconds: float

    @property
    def dry_run(self) -> bool:
        """Whether nothing was committed: every commit makes a version."""
        return self.version_after == self.version_before

    @cached_property
    def inserted(self) -> frozenset[Fact]:
        """The facts that became visible."""
        return self.net.facts()[0]

    @cached_property
    def deleted(self) -> frozenset[Fact]:
        """The facts that are visible no more."""
        return self.net.facts()[1]

    def net_counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many facts became visible and how many are visible no more, per predicate."""
        came, went = self.net.counts()
        beside = {*came, *went}
        return per_predicate(came, beside=beside), per_predicate(went, beside=beside)

    def net_change(self) -> dict[str, int]:
        """Return by how much the number of visible facts grew or shrank, per predicate; no fact is listed."""
        came, went = self.net.counts()
        grown = {p: came.get(p, 0) - went.get(p, 0) for p in {*came, *went}}
        return per_predicate({p: n for p, n in grown.items() if n}, beside=grown)

    def __repr__(self) -> str:
        """Return what tells this report from others: its states may hold millions of facts."""
        return f"<{type(self).__name__} {self._versions}>"

    @property
    def _versions(self) -> str:
        if self.dry_run:
            return f"dry run on version {self.version_before}"
        return f"version {self.version_before} to {self.version_after}"

    def __str__(self) -> str:
        """Return the report as a few lines for people."""
        came, went = self.net_counts()
        names = sorted({*came, *went}, key=lambda name: (-came.get(name, 0) - went.get(name, 0), name))
        predicates = _names(f"{name} {_signed(came.get(name, 0), went.get(name, 0))}" for name in names)
        added, removed = (_names(map(_name, rules)) for rules in (self.rules_added, self.rules_removed))
        lines = [
            f"{self._versions} in {self.seconds:.3f} s",
            f"rules: {len(self.rules_added):,} added{added}, {len(self.rules_removed):,} removed{removed}",
            f"explicit facts: {self.facts_added:,} added, {self.facts_removed:,} removed",
            f"visible facts: {_signed(sum(came.values()), sum(went.values()))}{predicates}",
            f"visited: {number_of(len(self.nodes), 'hyper-node')}{_names(_by_means(self.nodes))}",
        ]
        lines += _first(_reasons(self.nodes))
        lines += _first(
            f"dropped: {number_of(found.count, 'binding')} of rule {_cut(rule)}, for example {found.example}"
            for rule, found in self.dropped.items()
        )
        lines += _first(f"{found.severity} {found.code}: {found.message}" for found in self.warnings)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain values for JSON."""
        inserted, deleted = self.net_counts()
        return {
            "version_before": self.version_before,
            "version_after": self.version_after,
            "dry_run": self.dry_run,
            "rules_added": [format_rule(r) for r in self.rules_added],
            "rules_removed": [format_rule(r) for r in self.rules_removed],
            "facts_added": self.facts_added,
            "facts_removed": self.facts_removed,
            "inserted": inserted,
            "deleted": deleted,
            "nodes": [
                {
                    "rules": list(n.rules),
                    "strategy": n.strategy,
                    "rounds": n.rounds,
                    "facts": n.facts,
                    "inserted": moved and moved.gained,
                    "deleted": moved and moved.lost,
                    "derivations": n.derivations,
                    "seconds": n.seconds,
                    "estimate": n.estimate,
                }
                for n in self.nodes
                for moved in [n.counted()]
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


def dropped_nodes(dropped: Iterable[Mapping[str, Rule]], before: State) -> Iterator[NodeRun]:
    """Tell of nodes none of whose rules is left, as of those that were visited."""
    for rules in dropped:
        labels = tuple(rule.label or format_rule(rule) for rule in rules.values())
        lost = before.segment_size(frozenset(rules))
        yield NodeRun(labels, 0, 0, 0.0, "dropped", derivations=0, moved=SegmentChange(0, lost))


def counted(facts: Iterable[Fact]) -> dict[str, int]:
    """Count facts per predicate, by name."""
    return per_predicate(Counter(fact.predicate for fact in facts))


def _signed(came: int, went: int) -> str:
    """Return what came and what went, as far as something did."""
    return " ".join([f"+{came:,}"] * bool(came) + [f"-{went:,}"] * bool(went)) or "none"


def _name(rule: Rule) -> str:
    return rule.label or _cut(format_rule(rule))


def _names(names: Iterable[str]) -> str:
    shown = ", ".join(_first(names))
    return f" ({shown})" if shown else ""


def _first(items: Iterable[str]) -> list[str]:
    listed = list(items)
    more = len(listed) - _MOST
    return [*listed[:_MOST], f"and {more:,} more"] if more > 0 else listed


def _by_means(nodes: Iterable[NodeRun]) -> Iterator[str]:
    for strategy, count in Counter(_AFTER_MEANS.split(node.strategy)[0] for node in nodes).most_common():
        yield f"{strategy} {count:,}"


def _reasons(nodes: Iterable[NodeRun]) -> Iterator[str]:
    """Yield the means for which a reason is told, each once, with the rules that it is about."""
    rules: dict[str, list[str]] = {}
    for node in nodes:
        if _REASON in node.strategy:
            rules.setdefault(node.strategy, []).extend(map(_cut, node.rules))
    for strategy, names in rules.items():
        yield f"{strategy}{_names(names)}"


def _cut(rule: str) -> str:
    text = rule.removesuffix(" .")
    return text if len(text) <= _LONGEST_RULE else f"{text[: _LONGEST_RULE - 3]}..."
