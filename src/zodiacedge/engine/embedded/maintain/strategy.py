"""The elastic choice: whether a node is maintained or recomputed, and when maintaining it is given up.

Recomputing a node is the alternative to maintaining it, and its cost is known from the last evaluation. A
change must never take much longer than recomputing all nodes, so the time that maintenance may waste is
limited. The term is from D. Zhao, P. Subotic, M. Raghothaman, B. Scholz: Towards Elastic Incrementalization
for Datalog. PPDP 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.versions.draft import Draft

STRATEGIES = ("choose", "maintain", "recompute", "give up")

# With so few rows inserted or deleted, a node is always maintained.
FEW = 32
# The least cost of maintaining a node, and the cost of each row inserted or deleted.
_LEAST_SECONDS = 0.0003
_SECONDS_PER_ROW = 3e-6
# The cost of planning a node's delta queries. A node of few facts that is evaluated in less time is
# recomputed in its first changes: most nodes see no more, and new tables of few facts are soon ready.
_SECONDS_TO_PLAN = 0.0012
_CHANGES_UNPLANNED = 2
_FACTS_UNPLANNED = 1000
# The cost per row of building a table's hash set, and again of building its indexes.
SECONDS_PER_UNREADY_ROW = 6e-8
# The share of a node's evaluation that maintaining it may be expected to cost.
_SHARE_TO_BEGIN = 0.6
# The time that a change may waste on maintenance that is given up, for all nodes: so many seconds, or such a
# share of the last evaluation of all nodes, if that is more. A node gets at most the time of its evaluation.
_PATIENCE = 0.003
_SHARE_OF_ESTIMATE = 0.06
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
    recompute, or begin to maintain and give up as soon as possible.
    """

    modules: bool = True
    strategy: str = "choose"
    backward: bool = True


@dataclass(slots=True)
class ElasticChoice:
    """The costs of the nodes of one change, and the choices by them."""

    policy: Policy
    estimate: float
    """The time of the last evaluation of all nodes from scratch, in seconds."""
    _wasted: float = 0.0
    _begun: float = 0.0
    _ready: float = 0.0
    """The time to build missing hash sets and indexes that the current node needs, in seconds."""

    def recompute_reason(self, draft: Draft, node_rules: NodeRules, before: Segment) -> str | None:
        """Return why a node should be recomputed, or None if it should be maintained."""
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
        changed, unready = _changed_and_unready(draft, node_rules, before)
        seconds = _LEAST_SECONDS + changed * _SECONDS_PER_ROW
        worth = before.seconds * _SHARE_TO_BEGIN
        if changed > FEW and seconds > worth:
            return "much changed"
        # Hash sets and indexes serve later changes too, so the time that may be wasted may be spent on them,
        # and more where that was not enough in the last change.
        self._ready = unready * SECONDS_PER_UNREADY_ROW
        allowed = max(worth - seconds, self._left, self.estimate * _SHARE_TO_INVEST if before.tries else 0.0)
        return QUICKER if self._ready > allowed else None

    def begin(self, draft: Draft, before: Segment) -> None:
        """Set the deadline of a node that is about to be maintained."""
        clock = draft.clock
        self._begun = clock.at_most()
        if self.policy.strategy == "choose":
            # Maintenance that was given up may have built a hash set or an index: the time limit doubles.
            worth = max(before.seconds, _LEAST_SECONDS) * 2.0**before.tries
            clock.deadline = self._begun + self._ready + max(min(self._left, worth), _LEAST_SECONDS)
        elif self.policy.strategy == "give up":
            clock.deadline = 0.0

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
        draft.clock.deadline = math.inf
        if in_vain:
            self._wasted += max(draft.clock.worked() - self._begun, 0.0)


def _changed_and_unready(draft: Draft, node_rules: NodeRules, before: Segment) -> tuple[int, int]:
    """Estimate the changed rows that a node reads, and the rows whose hash sets or indexes are missing."""
    read = node_rules.read_of(draft.store, draft.changed)
    changed = sum(map(draft.changed.count, read))
    # Rows are looked up in the tables that the node reads and in those that it fills.
    unready = 0
    for table in (*draft.bases_of(read), *before.tables.values()):
        lacking = 2 - table.has_hash_set - table.has_indexes
        if lacking:
            unready += lacking * len(table)
    return changed, unready
