"""Whether a node is maintained or evaluated anew, and when maintaining it is given up.

Every way to maintain a node has a rival: evaluating it. What that takes is known from the last time. A
change must never take much longer than evaluating everything, so all that its nodes may waste is limited.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.shape import NodeShape
    from zodiacedge.engine.embedded.store import Segment
    from zodiacedge.engine.embedded.versions import Draft

MEANS = ("choose", "maintain", "anew", "give up")

# So few rows that came or went are always worth a try.
_FEW = 32
# What maintaining a node costs at least, and what each row costs that came or went.
_LEAST_SECONDS = 0.0003
_SECONDS_PER_ROW = 3e-6
# What each row costs in a table without row-set.
_SECONDS_PER_UNREADY_ROW = 1e-7
# The share of an evaluation that this may come to.
_SHARE_TO_BEGIN = 0.6
# How long a change may maintain nodes in vain, all together: so many seconds, or such a share of what
# evaluating all nodes took the last time, if that is more. A node gets no more of it than it is worth.
_PATIENCE = 0.003
_SHARE_OF_ESTIMATE = 0.06


@dataclass(frozen=True, slots=True)
class Policy:
    """How nodes are evaluated: by modules or not, by which means, and how facts go.

    The means are chosen by what a change is like. To be sure that each is right, tests ask for one: to
    maintain whatever it takes, to evaluate anew, or to begin to maintain and give up as soon as possible.
    """

    modules: bool = True
    means: str = "choose"
    backward: bool = True


@dataclass(slots=True)
class Choice:
    """What a change knows about what its nodes cost."""

    policy: Policy
    estimate: float
    """Seconds that evaluating all nodes from nothing took the last time."""
    _wasted: float = 0.0
    _begun: float = 0.0

    def anew_because(self, draft: Draft, shape: NodeShape, before: Segment) -> str | None:
        """Return why a node should be evaluated anew, or None if it should be maintained."""
        if self.policy.means == "anew":
            return ""
        if self.policy.means != "choose":
            return None
        touched, seconds = _prospect(draft, shape, before)
        worth = before.seconds * _SHARE_TO_BEGIN
        if touched > _FEW and seconds > worth:
            return "much changed"
        return "quicker" if seconds > max(worth, _PATIENCE) else None

    def begin(self, draft: Draft, before: Segment) -> None:
        """Start the clock: from now on the node is maintained."""
        self._begun = time.thread_time()
        if self.policy.means == "choose":
            left = max(_PATIENCE, self.estimate * _SHARE_OF_ESTIMATE) - self._wasted
            worth = max(before.seconds, _PATIENCE / 2)
            draft.deadline = self._begun + max(min(left, worth), _LEAST_SECONDS)
        elif self.policy.means == "give up":
            draft.deadline = 0.0

    def end(self, draft: Draft, *, in_vain: bool) -> None:
        """Stop the clock."""
        draft.deadline = math.inf
        if in_vain:
            self._wasted += time.thread_time() - self._begun


def _prospect(draft: Draft, shape: NodeShape, before: Segment) -> tuple[int, float]:
    """Return about how many rows came or went of what a node reads, and the least that this costs."""
    read = [one for one in draft.touched_relations() if shape.spots(draft.store, one)]
    touched = sum(map(draft.touched_count, read))
    # Rows are looked up among those that the node reads, and among those that it derives.
    looked_at = [table for one in read for table in draft.bases_of((one,))]
    unready = sum(len(table) for table in (*looked_at, *before.tables.values()) if not table.has_row_set)
    return touched, _LEAST_SECONDS + touched * _SECONDS_PER_ROW + unready * _SECONDS_PER_UNREADY_ROW
