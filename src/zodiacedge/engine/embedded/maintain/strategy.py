"""The elastic choice: whether a node is maintained or recomputed, and when maintaining it is given up.

Recomputing a node is the rival of every maintenance algorithm, and its cost is known from the last time. A
change must never take much longer than recomputing everything, so the time that its nodes may waste is
limited. The term is that of D. Zhao, P. Subotic, M. Raghothaman, B. Scholz: Towards Elastic
Incrementalization for Datalog. PPDP 2021.
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

# So few rows that came or went are always worth a try.
FEW = 32
# What maintaining a node costs at least, and what each row costs that came or went.
_LEAST_SECONDS = 0.0003
_SECONDS_PER_ROW = 3e-6
# About what it costs to plan how a node is maintained, and for how many changes a node that is evaluated in
# less is evaluated instead: most nodes see no more. So few facts are soon made ready for those who read them.
_SECONDS_TO_PLAN = 0.0012
_CHANGES_UNPLANNED = 2
_FACTS_UNPLANNED = 1000
# What each row costs in a table without hash set, and once more in one without indexes.
SECONDS_PER_UNREADY_ROW = 6e-8
# The share of an evaluation that this may come to.
_SHARE_TO_BEGIN = 0.6
# How long a change may maintain nodes in vain, all together: so many seconds, or such a share of what
# evaluating all nodes took the last time, if that is more. A node gets no more of it than it is worth.
_PATIENCE = 0.003
_SHARE_OF_ESTIMATE = 0.06
# The share of an evaluation of everything that tables may cost which later changes will need again.
_SHARE_TO_INVEST = 0.3
# The share that a change may have come to when a node's tables are still kept for later ones.
_SHARE_TO_KEEP = 0.5

GIVEN_UP = "given up"
QUICKER = "quicker"
SMALL = "small"


@dataclass(frozen=True, slots=True)
class Policy:
    """How nodes are evaluated: by modules or not, by which means, and how facts go.

    The means are chosen by what a change is like. To be sure that each is right, tests ask for one: to
    maintain whatever it takes, to evaluate anew, or to begin to maintain and give up as soon as possible.
    """

    modules: bool = True
    strategy: str = "choose"
    backward: bool = True


@dataclass(slots=True)
class ElasticChoice:
    """What a change knows about what its nodes cost."""

    policy: Policy
    estimate: float
    """Seconds that evaluating all nodes from nothing took the last time."""
    _wasted: float = 0.0
    _begun: float = 0.0
    _ready: float = 0.0
    """Seconds to make the tables ready that the node at hand looks into."""

    def recompute_reason(self, draft: Draft, shape: NodeRules, before: Segment) -> str | None:
        """Return why a node should be evaluated anew, or None if it should be maintained."""
        if self.policy.strategy == "recompute":
            return ""
        if self.policy.strategy != "choose":
            return None
        if (
            not shape.is_planned
            and before.seconds < _SECONDS_TO_PLAN
            and before.tries < _CHANGES_UNPLANNED
            and len(before) < _FACTS_UNPLANNED
        ):
            return SMALL
        touched, unready = _prospect(draft, shape, before)
        seconds = _LEAST_SECONDS + touched * _SECONDS_PER_ROW
        worth = before.seconds * _SHARE_TO_BEGIN
        if touched > FEW and seconds > worth:
            return "much changed"
        # Tables that are ready serve later changes too, so this one may pay for them what it may waste; and
        # more where that was not enough the last time.
        self._ready = unready * SECONDS_PER_UNREADY_ROW
        allowed = max(worth - seconds, self._left, self.estimate * _SHARE_TO_INVEST if before.tries else 0.0)
        return QUICKER if self._ready > allowed else None

    def begin(self, draft: Draft, before: Segment) -> None:
        """Start the clock: from now on the node is maintained."""
        clock = draft.clock
        self._begun = clock.at_most()
        if self.policy.strategy == "choose":
            # What was given up may have lacked a table that is ready: each time it gets longer.
            worth = max(before.seconds, _LEAST_SECONDS) * 2.0**before.tries
            clock.deadline = self._begun + self._ready + max(min(self._left, worth), _LEAST_SECONDS)
        elif self.policy.strategy == "give up":
            clock.deadline = 0.0

    @property
    def _left(self) -> float:
        return max(_PATIENCE, self.estimate * _SHARE_OF_ESTIMATE) - self._wasted

    def may_spend(self, draft: Draft, seconds: float) -> bool:
        """Whether a change can afford to keep what a node has for later ones."""
        if self.policy.strategy != "choose":
            # Tests want to see both.
            return self.policy.modules
        return draft.clock.worked() + seconds < max(_PATIENCE, self.estimate * _SHARE_TO_KEEP)

    def end(self, draft: Draft, *, in_vain: bool) -> None:
        """Stop the clock."""
        draft.clock.deadline = math.inf
        if in_vain:
            self._wasted += max(draft.clock.worked() - self._begun, 0.0)


def _prospect(draft: Draft, shape: NodeRules, before: Segment) -> tuple[int, int]:
    """Return about how many rows came or went of what a node reads, and how many stand in unready tables."""
    read = shape.read_of(draft.store, draft.touched)
    touched = sum(map(draft.touched.count, read))
    # Rows are looked up among those that the node reads, and among those that it derives.
    unready = 0
    for table in (*draft.bases_of(read), *before.tables.values()):
        lacking = 2 - table.has_hash_set - table.has_indexes
        if lacking:
            unready += lacking * len(table)
    return touched, unready
