"""The report of a change, for people, subscribers and machines.

`str(report)` counts facts for people, `to_dict` does for machines; `inserted` and `deleted` list them.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, TypeVar

from zodiacedge.engine.api import NodeRun, SegmentChange
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.errors import counted as number_of
from zodiacedge.explain.explainer import MOST_FACTS
from zodiacedge.kb.arguments import given_limit
from zodiacedge.kb.tables.changed_facts import ChangedFacts
from zodiacedge.language.canonical import relabelled
from zodiacedge.language.printer import abbreviate, format_predicate, format_rule
from zodiacedge.packs.owners import PacksDelta, moves_for_people
from zodiacedge.util.html import html_table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from zodiacedge.engine.api import Dropped, NetChange, RanJob, State
    from zodiacedge.explain.budget import Budget
    from zodiacedge.explain.explainer import Explainer
    from zodiacedge.explain.missing import WhyNot
    from zodiacedge.explain.proof import Proof
    from zodiacedge.language.ast import Atom, Fact, Predicate, Rule


_Count = TypeVar("_Count")
# A report is a few lines for any change: further items are only counted.
_MOST = 6
_LONGEST_RULE = 60
# The strategy of a node is a text `how, where: why`; the last two are optional.
_AFTER_STRATEGY = re.compile("[,:] ")
_REASON = ": "


@dataclass(frozen=True, repr=False)
class ChangeReport:
    """The report of a commit: versions, net change, how each hyper-node was evaluated, and warnings.

    The report of a dry run says what a commit would do; its two versions are the same. So are those of a
    change without effect, which creates no version.
    """

    version_before: int
    version_after: int
    rules_added: tuple[Rule, ...]
    rules_removed: tuple[Rule, ...]
    """A rule that gets another label is removed with the old one, and added with the new one."""
    facts_added: int
    facts_removed: int
    net: NetChange
    nodes: tuple[NodeRun, ...]
    dropped: Mapping[str, Dropped]
    warnings: tuple[Diagnostic, ...]
    seconds: float
    prefixes: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Prefixes that abbreviate IRIs for people."""
    dry_run: bool = False
    """Whether the change was only evaluated."""
    jobs: tuple[RanJob, ...] = field(default=(), compare=False)
    """The jobs that the change ran on Spark, with their pages in its UI; none with other engines."""
    known: Callable[[], Collection[Predicate]] = field(default=tuple, compare=False, repr=False)
    """Lists the predicates of the rules."""
    packs: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    """The versions, before and after, of packs that come, go or change; None where there is none."""
    packs_delta: PacksDelta = field(default_factory=PacksDelta, repr=False)
    """How the owners of rules change, for the log."""
    questions: Callable[[], AbstractContextManager[Explainer]] | None = field(
        default=None, compare=False, repr=False
    )
    """Opens what explains the facts of a dry run."""

    @property
    def committed(self) -> bool:
        """Whether the change created a version: not after a dry run, nor without an effect."""
        return self.version_after != self.version_before

    @property
    def relabelled(self) -> tuple[tuple[Rule, Rule], ...]:
        """The rules that only get another label, or lose theirs: before and after."""
        return relabelled(self.rules_removed, self.rules_added)

    @cached_property
    def inserted(self) -> ChangedFacts:
        """The facts that became visible; `report.inserted("alarm")` is a table of those of a predicate."""
        return ChangedFacts(self.net, self.known, self.prefixes, inserted=True)

    @cached_property
    def deleted(self) -> ChangedFacts:
        """The facts that are no longer visible, likewise."""
        return ChangedFacts(self.net, self.known, self.prefixes, inserted=False)

    def explain(
        self, fact: str | Fact | Atom, *, limit: int = MOST_FACTS, budget: Budget | None = None
    ) -> Proof:
        """Explain why a fact would be there after a dry run, as `kb.explain` does."""
        with self._asked() as explainer:
            return explainer.explain(fact, given_limit(limit) or MOST_FACTS, budget)

    def why_not(self, fact: str | Fact | Atom, *, budget: Budget | None = None) -> WhyNot:
        """Explain why a fact would not be there after a dry run, as `kb.why_not` does."""
        with self._asked() as explainer:
            return explainer.why_not(fact, budget)

    def _asked(self) -> AbstractContextManager[Explainer]:
        if self.questions is None:
            note = "ask the knowledge base: kb.explain(…)"
            raise UsageProblem(Diagnostic("X006", "this is not the report of a dry run", note))
        return self.questions()

    def net_counts(self, show: Callable[[str], str] = str) -> tuple[dict[str, int], dict[str, int]]:
        """Count the facts that became visible and those that are no longer visible, per predicate.

        `show` writes the name of a predicate.
        """
        inserted, deleted = self.net.counts()
        beside = {*inserted, *deleted}
        return per_predicate(inserted, beside, show), per_predicate(deleted, beside, show)

    def net_change(self) -> dict[str, int]:
        """Return the growth of the number of visible facts per predicate, without listing facts."""
        inserted, deleted = self.net.counts()
        grown = {p: inserted.get(p, 0) - deleted.get(p, 0) for p in {*inserted, *deleted}}
        return per_predicate({p: n for p, n in grown.items() if n}, beside=grown)

    def __repr__(self) -> str:
        """Return the versions only: the net change may hold millions of facts."""
        return f"<{type(self).__name__} {self.versions}>"

    @property
    def versions(self) -> str:
        """The versions for people: `version 3 to 4`, or why there is no new one."""
        if self.dry_run:
            return f"dry run on version {self.version_before}"
        if not self.committed:
            return f"version {self.version_before} (nothing changed)"
        return f"version {self.version_before} to {self.version_after}"

    def __str__(self) -> str:
        """Return the report as a few lines for people."""
        warnings = (f"{warning.severity} {warning.code}: {warning.message}" for warning in self.warnings)
        return abbreviate("\n".join((self.summary(), *_first(warnings))), self.prefixes)

    def summary(self) -> str:
        """Return the report as a few lines for people, without the warnings."""
        counts = self._counts_for_people()
        predicates = _names(f"{name} {_signed(gained, lost)}" for name, gained, lost in counts)
        inserted, deleted = (sum(count.values()) for count in self.net.counts())
        lines = [
            f"{self.versions} in {self.seconds:.3f} s",
            f"rules: {', '.join(self._rules_for_people())}",
            f"explicit facts: {self.facts_added:,} added, {self.facts_removed:,} removed",
            f"visible facts: {_signed(inserted, deleted)}{predicates}",
            f"visited: {number_of(len(self.nodes), 'hyper-node')}{_names(_by_strategy(self.nodes))}",
        ]
        if self.packs:
            lines.insert(1, f"packs: {', '.join(moves_for_people(self.packs))}")
        lines += _first(_reasons(self.nodes))
        lines += _first(
            f"dropped: {number_of(lost.count, 'binding')} of rule {_cut(rule)}, for example {lost.example}"
            for rule, lost in self.dropped.items()
        )
        return abbreviate("\n".join(lines), self.prefixes)

    def _repr_html_(self) -> str:
        """Return the report for a notebook: its lines, and all predicates that changed."""
        rows = [
            (name, f"{inserted:,}", f"{deleted:,}") for name, inserted, deleted in self._counts_for_people()
        ]
        table = html_table(("predicate", "inserted", "deleted"), rows) if rows else ""
        return f"<pre>{escape(str(self))}</pre>{table}"

    def _rules_for_people(self) -> Iterator[str]:
        """Yield how many rules are added, removed and relabelled, and which."""
        pairs = self.relabelled
        same = {rule for pair in pairs for rule in pair}
        for rules, done in ((self.rules_added, "added"), (self.rules_removed, "removed")):
            others = [rule for rule in rules if rule not in same]
            yield f"{len(others):,} {done}{_names(map(_name, others))}"
        if pairs:
            names = _names(f"{_name(before)} is {_name(after)}" for before, after in pairs)
            yield f"{len(pairs):,} relabelled{names}"

    def _counts_for_people(self) -> list[tuple[str, int, int]]:
        """Return predicates as programs write them, with the facts that they gained and lost; most first."""
        inserted, deleted = self.net.counts()
        both = {p: (inserted.get(p, 0), deleted.get(p, 0)) for p in {*inserted, *deleted}}
        named = per_predicate(both, show=lambda name: format_predicate(name, self.prefixes))
        counts = [(name, *count) for name, count in named.items()]
        return sorted(counts, key=lambda row: (-row[1] - row[2], row[0]))

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain values for JSON."""
        inserted, deleted = self.net_counts()
        return {
            "version_before": self.version_before,
            "version_after": self.version_after,
            "dry_run": self.dry_run,
            "rules_added": [format_rule(r) for r in self.rules_added],
            "rules_removed": [format_rule(r) for r in self.rules_removed],
            "rules_relabelled": [[format_rule(r) for r in pair] for pair in self.relabelled],
            "packs": {name: list(versions) for name, versions in self.packs.items()},
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
                    "inserted": change and change.gained,
                    "deleted": change and change.lost,
                    "derivations": n.derivations,
                    "seconds": n.seconds,
                    "estimate": n.estimate,
                    "expected": n.expected,
                }
                for n in self.nodes
                for change in [n.counted()]
            ],
            "dropped": {r: {"count": d.count, "example": d.example} for r, d in self.dropped.items()},
            "warnings": [w.to_dict() for w in self.warnings],
            "seconds": self.seconds,
            "jobs": [job._asdict() for job in self.jobs],
        }


def per_predicate(
    counts: Mapping[Predicate, _Count],
    beside: Iterable[Predicate] = (),
    show: Callable[[str], str] = str,
) -> dict[str, _Count]:
    """Return counts by the names of predicates, in the order of the names.

    The key is the bare name, or `p/1` and `p/2` if both exist, here or in `beside`; `show` writes a name for
    people.
    """
    shared = {name for name, n in Counter(p.name for p in {*counts, *beside}).items() if n > 1}
    return {
        f"{show(p.name)}/{p.arity}" if p.name in shared else show(p.name): counts[p] for p in sorted(counts)
    }


def dropped_nodes(dropped: Iterable[Mapping[str, Rule]], before: State) -> Iterator[NodeRun]:
    """Report hyper-nodes that lost all their rules, like those that were visited."""
    for rules in dropped:
        labels = tuple(rule.label or format_rule(rule) for rule in rules.values())
        lost = before.segment_size(frozenset(rules))
        yield NodeRun(labels, 0, 0, 0.0, "dropped", derivations=0, moved=SegmentChange(0, lost))


def counted(facts: Iterable[Fact]) -> dict[str, int]:
    """Count facts per predicate, by name."""
    return per_predicate(Counter(fact.predicate for fact in facts))


def _signed(inserted: int, deleted: int) -> str:
    """Return the counts that are not zero, with their signs."""
    return " ".join([f"+{inserted:,}"] * bool(inserted) + [f"-{deleted:,}"] * bool(deleted)) or "none"


def _name(rule: Rule) -> str:
    return rule.label or _cut(format_rule(rule))


def _names(names: Iterable[str]) -> str:
    shown = ", ".join(_first(names))
    return f" ({shown})" if shown else ""


def _first(items: Iterable[str]) -> list[str]:
    listed = list(items)
    more = len(listed) - _MOST
    return [*listed[:_MOST], f"and {more:,} more"] if more > 0 else listed


def _by_strategy(nodes: Iterable[NodeRun]) -> Iterator[str]:
    for strategy, count in Counter(_AFTER_STRATEGY.split(node.strategy)[0] for node in nodes).most_common():
        yield f"{strategy} {count:,}"


def _reasons(nodes: Iterable[NodeRun]) -> Iterator[str]:
    """Yield each strategy that has a reason once, with the rules that it concerns."""
    rules: dict[str, list[str]] = {}
    for node in nodes:
        if _REASON in node.strategy:
            rules.setdefault(node.strategy, []).extend(map(_cut, node.rules))
    for strategy, names in rules.items():
        yield f"{strategy}{_names(names)}"


def _cut(rule: str) -> str:
    text = rule.removesuffix(" .")
    return text if len(text) <= _LONGEST_RULE else f"{text[: _LONGEST_RULE - 3]}..."
