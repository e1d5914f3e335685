"""Samples of the facts that a dry run gains and loses, each with what it rests on or rested on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zodiacedge.explain.budget import Budget
from zodiacedge.explain.forms.words import Words
from zodiacedge.explain.instances import InstanceLookups
from zodiacedge.explain.proof import AbsentPremise, Explicit, Step
from zodiacedge.graph.draw.names import rule_name
from zodiacedge.language.ast import Atom, Variable, atom
from zodiacedge.language.printer import abbreviate, format_predicate, format_rule
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from zodiacedge.explain.proof import Proof
    from zodiacedge.graph import HyperGraph
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.language.ast import Fact, Predicate

# The facts of predicates that change more than this are not listed: samples of them are looked for among the
# first facts of the predicate.
_MOST_LISTED = 10_000
_MOST_TRIED = 200
_MOST_SAMPLES = 60
_LONGEST = 120
_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Sample:
    """A fact that a change gains or loses, why in one line, and its proof after or before the change."""

    fact: Fact
    reason: str
    """With all IRIs in full."""
    proof: Proof | None
    gained: bool

    def clipped_reason(self, prefixes: Mapping[str, str]) -> str:
        """Return the reason with abbreviated IRIs, clipped."""
        text = abbreviate(self.reason, prefixes)
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


@dataclass(frozen=True, slots=True)
class PredicateChange:
    """How many facts of a predicate a change gains and loses, and some of them."""

    name: str
    gained: int
    lost: int
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """A dry run: its report, the changes of predicates, and the rule graph with the nodes that it touches."""

    report: ChangeReport
    predicates: tuple[PredicateChange, ...]
    graph: HyperGraph
    touched: frozenset[int]

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The samples of all predicates."""
        return tuple(sample for change in self.predicates for sample in change.samples)


def preview_of(kb: KnowledgeBase, report: ChangeReport, most: int) -> Preview:
    """Return the preview of a dry run on the current version.

    Args:
        kb: The knowledge base.
        report: The report of the dry run.
        most: The most facts of a predicate to show that it gains, and that it loses.
    """
    gained, lost = report.net.counts()
    names = sorted({*gained, *lost})
    small = {p for p in names if gained.get(p, 0) + lost.get(p, 0) <= _MOST_LISTED}
    inserted, deleted = report.net.facts(small.__contains__) if most else (frozenset(), frozenset())
    words = Words({})
    if report.questions is None:
        raise TypeError("this is not the report of a dry run")
    with report.questions() as explainer:
        before = InstanceLookups(kb.state.lookups(kb.settings), kb.settings.registry)
        for predicate in (p for p in names if p not in small and most):
            inserted |= _found(predicate, explainer.instances, before)
            deleted |= _found(predicate, before, explainer.instances)
        chosen = _chosen(names, (inserted, deleted), most)
        coming = [fact for fact, came in chosen if came]
        after = explainer.prove(coming, Budget(seconds=_SECONDS)) if coming else None
        graph = explainer.version.graph
    why = _Reasons(report, words, inserted, deleted)
    samples: dict[Predicate, list[Sample]] = {}
    for fact, came in chosen:
        if came:
            proof = replace(after, facts=(fact,), prefixes=report.prefixes) if after else None
            sample = Sample(fact, why.gained(fact, proof), proof, gained=True)
        else:
            proof = kb.explain(fact, budget=Budget(seconds=_SECONDS))
            sample = Sample(fact, why.lost(fact, proof), proof, gained=False)
        samples.setdefault(fact.predicate, []).append(sample)
    shared = {p.name for p in names if sum(other.name == p.name for other in names) > 1}
    prefixes = {**DEFAULT_PREFIXES, **report.prefixes}
    changes = tuple(
        PredicateChange(
            f"{format_predicate(p.name, prefixes)}{f'/{p.arity}' if p.name in shared else ''}",
            gained.get(p, 0),
            lost.get(p, 0),
            tuple(samples.get(p, ())),
        )
        for p in names
    )
    return Preview(report, changes, graph, touched_nodes(report, graph))


def touched_nodes(report: ChangeReport, graph: HyperGraph) -> frozenset[int]:
    """Return the nodes of a graph that a change evaluates."""
    named = {rule for run in report.nodes for rule in run.rules}
    return frozenset(
        home
        for key, home in graph.homes.items()
        if (rule := graph.rule(key)).label in named or format_rule(rule) in named
    )


def _found(predicate: Predicate, there: InstanceLookups, missing: InstanceLookups) -> frozenset[Fact]:
    """Return some facts of a predicate that are there in one version and not in the other."""
    pattern = atom(predicate.name, tuple(Variable(f"X{n}") for n in range(predicate.arity)))
    tried, _ = there.visible(pattern, _MOST_TRIED)
    return frozenset(fact for fact in tried if not missing.visible(Atom(fact.relation, fact.args), 1)[0])


def _chosen(
    names: Sequence[Predicate], facts: tuple[Collection[Fact], Collection[Fact]], most: int
) -> list[tuple[Fact, bool]]:
    """Return the first facts of each predicate in the total order, those that come before those that go."""
    chosen: list[tuple[Fact, bool]] = []
    for predicate in names:
        for side, came in zip(facts, (True, False), strict=True):
            of_it = sorted((f for f in side if f.predicate == predicate), key=_order)
            chosen += [(fact, came) for fact in of_it[:most]]
    return chosen[:_MOST_SAMPLES]


def _order(fact: Fact) -> tuple[object, ...]:
    return tuple(map(order_key, fact.args))


class _Reasons:
    """Why facts come and go, in one line."""

    def __init__(
        self, report: ChangeReport, words: Words, inserted: Collection[Fact], deleted: Collection[Fact]
    ) -> None:
        self._words = words
        self._removed = set(report.rules_removed).difference(before for before, _ in report.relabelled)
        self._inserted = inserted
        self._deleted = deleted

    def gained(self, fact: Fact, proof: Proof | None) -> str:
        support = proof.supports.get(fact) if proof else None
        match support:
            case Explicit():
                return "a fact of the change"
            case Step() if support.rule.states_fact:
                return f"stated by {self._name(support)}"
            case Step():
                return f"by {self._name(support)} from {self._premises(support)}"
            case _:
                return ""

    def lost(self, fact: Fact, proof: Proof) -> str:
        support = proof.supports[fact]
        if isinstance(support, Explicit):
            return "a fact that the change removes"
        if not isinstance(support, Step):
            return ""
        name = self._name(support)
        if support.rule in self._removed:
            return f"was by {name}, which is removed"
        going = [self._words.atom(f) for f in support.facts if f in self._deleted]
        coming = [self._words.atom(f) for f in self._coming(support)]
        if going:
            return f"was by {name} from {', '.join(going)}, which {_goes(going)}"
        if coming:
            return f"was by {name}, and {', '.join(coming)} {_comes(coming)}"
        return f"was by {name} from {self._premises(support)}"

    def _name(self, step: Step) -> str:
        return rule_name(step.rule, self._words.prefixes)

    def _premises(self, step: Step) -> str:
        return ", ".join("".join(piece.text for piece in self._words.premise(p)) for p in step.premises)

    def _coming(self, step: Step) -> Iterable[Fact]:
        patterns = [p.pattern for p in step.premises if isinstance(p, AbsentPremise)]
        return [fact for fact in self._inserted if any(_matches(pattern, fact) for pattern in patterns)][:3]


def _matches(pattern: Atom, fact: Fact) -> bool:
    return pattern.relation == fact.relation and all(
        isinstance(asked, Variable) or asked == found
        for asked, found in zip(pattern.args, fact.args, strict=True)
    )


def _goes(facts: Sequence[str]) -> str:
    return "goes" if len(facts) == 1 else "go"


def _comes(facts: Sequence[str]) -> str:
    return "comes" if len(facts) == 1 else "come"
