"""The elastic choice: whether a node is maintained or recomputed, and when maintaining it is given up.

Recomputing a node is the alternative to maintaining it, and its cost is known from the last evaluation. A
change must never take much longer than recomputing all nodes, so the time that maintenance may waste is
limited. The term is from D. Zhao, P. Subotic, M. Raghothaman, B. Scholz: Towards Elastic Incrementalization
for Datalog. PPDP 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.maintain.shapes.closure import is_closure
from zodiacedge.engine.embedded.versions.ownership import changes_input
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.language.ast import Atom

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.engine.embedded.versions.draft import Draft
    from zodiacedge.language.ast import Rule

STRATEGIES = ("choose", "maintain", "recompute", "give up")

# With so few rows inserted or deleted, a node is always maintained.
FEW = 32
# The least cost of maintaining a node, and the cost of each row inserted or deleted.
_LEAST_SECONDS = 0.0002
_SECONDS_PER_ROW = 1.5e-7
# The cost of each fact that a node gains or loses, and where the node is recursive: its proofs are searched.
_SECONDS_PER_FACT = 3e-7
_SECONDS_PER_OWN_FACT = 1e-6
# The cost of each derivation of a fact but the first.
_SECONDS_PER_DERIVATION = 1.5e-8
# The cost of planning the delta queries of a rule, and of a node. A node of few facts that is evaluated in
# less time is recomputed in its first changes: most nodes see no more, and new tables of few facts are soon
# ready.
_SECONDS_PER_PLAN = 0.0004
_SECONDS_TO_PLAN = 0.0012
_CHANGES_UNPLANNED = 2
_FACTS_UNPLANNED = 1000
# The cost of finding out about a changed row whether it is a change to the node.
_SECONDS_TO_COUNT = 1.5e-7
# The cost per row of building a table's hash set, and again of building its indexes.
SECONDS_PER_UNREADY_ROW = 1.6e-8
# The share of a node's evaluation that maintaining it may be expected to cost.
_SHARE_TO_BEGIN = 0.6
# The time that a change may waste on maintenance that is given up, for all nodes: so many seconds, or such a
# share of the last evaluation of all nodes, if that is more. A node gets at most the time of its evaluation.
_PATIENCE = 0.003
_SHARE_OF_ESTIMATE = 0.06
# The factor by which an expectation may be wrong.
_MOST_WRONG = 3
# The share of the evaluation of all nodes that hash sets and indexes may cost, which later changes use again.
_SHARE_TO_INVEST = 0.3
# The share of the evaluation of all nodes up to which a change still keeps the tables of a recomputed node.
_SHARE_TO_KEEP = 0.5

GIVEN_UP = "given up"
QUICKER = "quicker"
SMALL = "small"


@dataclass(frozen=True, slots=True)
class Policy:
    """How nodes are updated: with modules or not, by which strategy, and how facts are deleted.

    The strategy `choose` decides by costs. The others exist for tests: maintain without a deadline,
    recompute, or begin to maintain and give up as soon as possible, after `patience` looks at the clock.
    """

    modules: bool = True
    strategy: str = "choose"
    backward: bool = True
    patience: int = 0

    def __post_init__(self) -> None:
        """Refuse an unknown strategy."""
        if self.strategy not in STRATEGIES:
            raise unknown_strategy(self.strategy, STRATEGIES)


def expected_seconds(seconds: float, before: int, after: int) -> float:
    """Return the time that evaluating a node is expected to take, of which rules and facts came and went.

    The time per fact stays; that of a node without facts, or with few, says little of many.
    """
    same = seconds * (after + 1) / (before + 1)
    return min(same, seconds + max(after - before, 0) * _SECONDS_PER_OWN_FACT)


def unknown_strategy(name: str, known: Iterable[str]) -> UsageProblem:
    """Return the problem of a strategy that an engine does not have."""
    return UsageProblem(
        Diagnostic("U013", f"there is no strategy {name!r}", f"choose one of {', '.join(known)}")
    )


@dataclass(slots=True)
class ElasticChoice:
    """The costs of the nodes of one change, and the choices by them."""

    policy: Policy
    estimate: float
    """The time of the last evaluation of all nodes from scratch, in seconds."""
    expected: float = 0.0
    """The time that maintaining the current node is expected to take, in seconds."""
    _wasted: float = 0.0
    _begun: float = 0.0
    _worth: float = 0.0
    """The time that recomputing the current node costs it and the nodes that read it, in seconds."""
    _ready: float = 0.0
    """The time to build missing hash sets, indexes and plans that the current node needs, in seconds."""

    def recompute_reason(
        self,
        draft: Draft,
        node_rules: NodeRules,
        before: Segment,
        in_full: Collection[Rule] = (),
        *,
        is_read: Callable[[], bool],
    ) -> str | None:
        """Return why a node should be recomputed, or None if it should be maintained.

        Args:
            draft: The change under way.
            node_rules: The rules of the node.
            before: Its segment.
            in_full: The rules that maintaining the node evaluates in full: added rules and lost rules.
            is_read: Returns whether other nodes read the segment: if it is recomputed, they look rows up in
                new tables, which have no hash sets and no indexes.
        """
        self._worth = before.seconds
        self._ready = self.expected = 0.0
        if self.policy.strategy == "recompute":
            return ""
        if self.policy.strategy != "choose":
            return None
        if (
            not node_rules.is_planned
            and before.seconds < _SECONDS_TO_PLAN
            and before.tries < _CHANGES_UNPLANNED
            and len(before) < _FACTS_UNPLANNED
        ):
            return SMALL
        work = _work(draft, node_rules, before, in_full, draft.changed.count)
        if (work.is_large or work.unready) and is_read():
            self._worth += 2 * len(before) * SECONDS_PER_UNREADY_ROW
        worth = self._worth * _SHARE_TO_BEGIN
        if work.is_large and work.seconds > worth and work.changed * _SECONDS_TO_COUNT < worth:
            # Rows that other owners hold too are no change to the node.
            work = _work(draft, node_rules, before, in_full, lambda relation: _net(draft, relation, before))
        if work.is_large and work.seconds > worth:
            return "much changed"
        seconds, unready = work.seconds, work.unready
        planning = _SECONDS_PER_PLAN * work.unplanned
        # Hash sets and indexes serve later changes too, so the time that may be wasted may be spent on them,
        # and more where that was not enough in the last change.
        self._ready = unready * SECONDS_PER_UNREADY_ROW + planning
        self.expected = self._ready + seconds
        allowed = max(
            self._worth - seconds, self._left, self.estimate * _SHARE_TO_INVEST if before.tries else 0.0
        )
        return QUICKER if self._ready - planning > allowed else None

    def begin(self, draft: Draft, before: Segment) -> None:
        """Set the deadline of a node that is about to be maintained."""
        clock = draft.clock
        self._begun = clock.at_most()
        if self.policy.strategy == "choose":
            # Maintenance that was given up may have built a hash set or an index: the time limit doubles.
            worth = max(self._worth, _LEAST_SECONDS) * 2.0**before.tries
            # What was expected to take half as long as recomputing the node gets time to do so.
            expected = min(_MOST_WRONG * (self.expected - self._ready), worth / 2)
            patience = max(min(self._left, worth), expected, _LEAST_SECONDS)
            clock.deadline = self._begun + self._ready + patience
        elif self.policy.strategy == "give up":
            clock.deadline, clock.looks = 0.0, self.policy.patience

    @property
    def _left(self) -> float:
        return max(_PATIENCE, self.estimate * _SHARE_OF_ESTIMATE) - self._wasted

    def may_spend(self, draft: Draft, seconds: float) -> bool:
        """Whether the change may spend time to keep the tables of a recomputed node for later changes."""
        if self.policy.strategy != "choose":
            # Tests cover both outcomes.
            return self.policy.modules
        return draft.clock.worked() + seconds < max(_PATIENCE, self.estimate * _SHARE_TO_KEEP)

    def end(self, draft: Draft, *, in_vain: bool) -> None:
        """Remove the deadline; count the time as wasted if maintenance was in vain."""
        draft.clock.deadline, draft.clock.looks = math.inf, 0
        if in_vain:
            self._wasted += max(draft.clock.worked() - self._begun, 0.0)


class _Work(NamedTuple):
    # The changed rows that a node reads, the facts of its segment that they may concern and the seconds that
    # these take, the rows of tables whose hash sets or indexes are missing, and the rules to plan.
    changed: int
    facts: float
    cost: float
    unready: int
    unplanned: int

    @property
    def is_large(self) -> bool:
        return max(self.changed, self.facts) > FEW

    @property
    def seconds(self) -> float:
        return _LEAST_SECONDS + self.changed * _SECONDS_PER_ROW + self.cost


def _work(
    draft: Draft,
    node_rules: NodeRules,
    before: Segment,
    in_full: Collection[Rule],
    count: Callable[[Relation], int],
) -> _Work:
    """Estimate the work of maintaining a node, by the number of changed rows of each relation."""
    counts = {relation: count(relation) for relation in node_rules.read_of(draft.store, draft.changed)}
    changed = sum(counts.values())
    unready = 0
    keys: set[str] = set()
    for relation in counts:
        readers = node_rules.readers_of(draft.store, relation)
        keys |= readers.keys
        # Rows are looked up in the tables that the node reads, and joined with them.
        for table in draft.bases_of((relation,)):
            missing = (not table.has_hash_set) + (readers.join and not table.has_indexes)
            # The segment of a closure is not searched: it is counted below.
            if missing and not (is_closure(node_rules) and _is_own(table, before)):
                unready += missing * len(table)
    # In tables that it only fills they are looked up.
    if changed:
        for table in before.tables.values():
            if not table.has_hash_set:
                unready += len(table)
    # In a recursive node a change may reach all rules.
    unplanned = node_rules.unplanned(node_rules.rules if node_rules.recursive else keys) + len(in_full)
    if changed <= FEW and not in_full:
        # With few changed rows the node is maintained whatever they concern.
        return _Work(changed, 0.0, 0.0, unready, unplanned)
    # Most heads of an added rule are facts of the node already.
    added = {id(rule) for rule in node_rules.rules.values()}
    inserted = sum(_derived(draft, rule) for rule in in_full if id(rule) in added)
    facts: float = sum(_derived(draft, rule) for rule in in_full if id(rule) not in added)
    if changed > FEW:
        for key, share in _shares(draft, node_rules, before, counts).items():
            most = _derived(draft, node_rules.rules[key]) if len(node_rules.rules) > 1 else len(before)
            facts += share * min(most, len(before))
    per_fact = _SECONDS_PER_OWN_FACT if node_rules.recursive else _SECONDS_PER_FACT
    per_fact += (before.multiplicity - 1) * _SECONDS_PER_DERIVATION
    cost = facts * per_fact + inserted * _SECONDS_PER_FACT
    return _Work(changed, facts + inserted, cost, unready, unplanned)


def _shares(
    draft: Draft, node_rules: NodeRules, before: Segment, counts: Mapping[Relation, int]
) -> Mapping[str, float]:
    """Return the largest share of an input that changed, for each rule that reads changed rows."""
    shares: dict[str, float] = {}
    for relation, rows in counts.items():
        outside = sum(len(table) for table in draft.bases_of((relation,)) if not _is_own(table, before))
        share = min(rows / max(outside, 1), 1.0)
        for key in node_rules.readers_of(draft.store, relation).keys:
            shares[key] = max(share, shares.get(key, 0.0))
    return shares


def _is_own(table: Table, segment: Segment) -> bool:
    return any(table is own for own in segment.tables.values())


def _net(draft: Draft, relation: Relation, own: Segment) -> int:
    """Count the changed rows of a relation that are a change to a node, or estimate their number."""
    if not draft.changed.is_quickly_listed(relation):
        return draft.changed.count(relation)
    rows = draft.changed.rows(relation)
    bases = draft.bases_of((relation,), old=False)
    if any(len(table) > len(rows) and not table.has_hash_set for table in bases):
        return len(rows)
    return int(np.count_nonzero(changes_input(draft.flags(relation, rows, own))))


def _derived(draft: Draft, rule: Rule) -> int:
    """Estimate the heads that a rule derives: as many as the smallest relation that its body reads."""
    atoms = [conjunct for conjunct in rule.body if isinstance(conjunct, Atom)]
    sizes = (sum(map(len, draft.bases_of(draft.relations(atom)))) for atom in atoms)
    return min(sizes, default=0)
