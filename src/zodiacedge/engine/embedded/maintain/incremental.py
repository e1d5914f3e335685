"""The maintenance of one hyper-node: from the delta of its inputs to the delta of its segment.

Classify the delta, delete, insert. Deletion comes first: a fact is a candidate if an instance of it was lost,
and it stays if an instance on the next version derives it. In a recursive node facts may support each other
in a circle, so candidates are proved (`backward_forward`), or deleted with all that depends on them and
rederived where possible (`dred`). Insertion is semi-naive: the rules are evaluated with the inserted rows at
each position in turn, added rules once in full, and then in rounds from the new facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.expressions.aggregate import fold_rows
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.maintain.backward_forward import delete_unproved
from zodiacedge.engine.embedded.maintain.delta_query import evaluate_delta
from zodiacedge.engine.embedded.maintain.delta_sets import minus, union
from zodiacedge.engine.embedded.maintain.dred import delete_and_rederive
from zodiacedge.engine.embedded.maintain.node_facts import NodeFacts
from zodiacedge.engine.embedded.storage.relation import NO_CLASS
from zodiacedge.engine.embedded.storage.row_algebra import difference, distinct
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.versions.draft import Delta, Draft, GaveUpError
from zodiacedge.engine.embedded.versions.ownership import BEFORE, OUTSIDE, OUTSIDE_BEFORE, OWN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules, Occurrence
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.language.ast import Aggregate

    DeltaRows = list[tuple[Ids, int]]

# A recursive node is recomputed if more than one in so many of its facts are candidates for deletion.
_MOST_CANDIDATES = 4
_FEW = 1000
# A node is recomputed if more than one in so many groups of an aggregate are to be folded again.
_MOST_GROUPS = 4
_FEW_GROUPS = 32


class NodeChange:
    """The change of one node."""

    def __init__(
        self,
        draft: Draft,
        node_rules: NodeRules,
        own: Segment,
        *,
        backward: bool = True,
        suspects: Delta | None = None,
        added: Collection[str] = (),
    ) -> None:
        """Take the node and its segment.

        Args:
            draft: The change under way.
            node_rules: The rules of the node.
            own: Its segment in the old version, or the segment that it inherits from other nodes.
            backward: Whether a recursive node deletes by Backward/Forward or by DRed.
            suspects: Facts of the segment that were derived by rules which the node has lost.
            added: The keys of its rules that the old version did not have.
        """
        self._backward = backward
        self._draft = draft
        self._node_rules = node_rules
        self._own = own
        self._suspects = suspects or {}
        self._added = added
        self._facts = NodeFacts(draft, node_rules, own, added)
        self._deleted: dict[Occurrence, DeltaRows] = {}
        self._inserted: dict[Occurrence, DeltaRows] = {}
        self._unsupported: Delta = {}
        """Own facts of a recursive node that lost their support outside it."""

    def process(self) -> int | None:
        """Maintain the node; return by how many facts the segment grows or shrinks.

        Return None after an evaluation error: only recomputing the node counts the dropped bindings.
        """
        if self._node_rules.widest_binding > L.MOST_COLUMNS:
            return None
        self._draft.errors = False
        self._classify()
        for key, aggregate in self._node_rules.aggregates.items():
            self._fold_again(key, aggregate)
        self._delete()
        self._insert()
        return None if self._draft.errors else self._draft.settle(self._own)

    # The delta of its inputs.

    def _classify(self) -> None:
        draft, store = self._draft, self._draft.store
        for relation in self._node_rules.read_of(store, draft.changed):
            occurrences = self._node_rules.occurrences(store, relation)
            rows = draft.changed.rows(relation)
            deleted, inserted, unsupported = _classified(rows, draft.flags(relation, rows, self._own))
            # Only in a recursive node can facts support themselves.
            if self._node_rules.recursive and len(unsupported):
                self._unsupported[relation] = unsupported
            for occurrence in occurrences:
                if len(deleted):
                    self._deleted.setdefault(occurrence, []).append((deleted, relation.member_of))
                if len(inserted):
                    self._inserted.setdefault(occurrence, []).append((inserted, relation.member_of))
        draft.check_time()

    def _without_match(self, occurrence: Occurrence, delta_rows: DeltaRows, *, old: bool) -> Ids:
        """Return the values of a negated atom's outer variables in the delta rows that have no match."""
        keys = self._node_rules.keys_of(occurrence)
        if keys is not None and len(delta_rows) == 1 and delta_rows[0][1] == NO_CLASS:
            values = distinct(delta_rows[0][0][:, keys])
        else:
            values = evaluate_delta(
                self._draft, self._node_rules.projected(occurrence), delta_rows, None, old=old
            )
        if not len(values):
            return values
        matched = evaluate_delta(
            self._draft, self._node_rules.matched(occurrence), [(values, NO_CLASS)], None, old=old
        )
        return difference(values, matched)

    def _changes(self, *, lost: bool, within: str = "") -> Iterator[tuple[Occurrence, DeltaRows]]:
        """Yield the occurrences where instances of old rules were lost or gained, with their delta rows.

        Args:
            lost: Whether lost or gained instances are meant.
            within: The key of the rule whose aggregate is meant; otherwise the bodies of all rules are.
        """

        def is_meant(occurrence: Occurrence) -> bool:
            return (
                occurrence.key == within
                if occurrence.inner
                else not within and occurrence.key not in self._added
            )

        for occurrence, delta_rows in (self._deleted if lost else self._inserted).items():
            if not occurrence.negated and is_meant(occurrence):
                yield occurrence, delta_rows
        # A row inserted under a negation deletes instances where no row matched before; a row deleted under
        # it inserts instances where no row matches any more.
        for occurrence, delta_rows in (self._inserted if lost else self._deleted).items():
            if occurrence.negated and is_meant(occurrence):
                rows = self._without_match(occurrence, delta_rows, old=lost)
                if len(rows):
                    yield occurrence, [(rows, NO_CLASS)]

    # Heads.

    def _changed_heads(self, *, lost: bool) -> Delta:
        """Return the heads of instances that were lost on the old version, or gained on the next."""
        heads: Delta = {}
        for occurrence, delta_rows in self._changes(lost=lost):
            heads = union(
                heads, self._facts.heads_at(occurrence.key, occurrence.position, delta_rows, old=lost)
            )
        for key, aggregate in self._node_rules.aggregates.items():
            if key in self._added:
                continue
            for overlay in self._draft.aggregate_overlays_of(self._own, key):
                table = overlay.minus if lost else overlay.plus
                if len(table):
                    position = self._node_rules.rules[key].body.index(aggregate)
                    delta_rows = [(table.rows, NO_CLASS)]
                    heads = union(heads, self._facts.heads_at(key, position, delta_rows, old=lost))
        return heads

    # Aggregates.

    def _fold_again(self, key: str, aggregate: Aggregate) -> None:
        """Fold the groups again whose bindings may have changed, or all groups of an added rule."""
        draft, node_rules, own = self._draft, self._node_rules, self._own
        if key in self._added:
            bindings = evaluate_delta(draft, node_rules.all_bindings(key), (), None, old=False)
            draft.aggregate_overlay(own, key).add(self._folded(aggregate, bindings))
            return
        changed = [
            evaluate_delta(draft, node_rules.groups_at(key, occurrence.position), delta_rows, None, old=lost)
            for lost in (True, False)
            for occurrence, delta_rows in self._changes(lost=lost, within=key)
        ]
        groups = changed[0] if len(changed) == 1 else Table.union(len(aggregate.groups), changed).rows
        if not len(groups):
            return
        many = len(groups) > _FEW_GROUPS and len(groups) * _MOST_GROUPS > len(own.aggregate_rows[key])
        if draft.clock.is_set and many:
            # To look their bindings up costs more than to join all.
            raise GaveUpError
        delta_rows = [(groups, NO_CLASS)]
        before = evaluate_delta(draft, node_rules.rows_of_groups(key), delta_rows, own, old=True)
        after = self._folded(
            aggregate, evaluate_delta(draft, node_rules.bindings_of_groups(key), delta_rows, None, old=False)
        )
        overlay = draft.aggregate_overlay(own, key)
        overlay.remove(difference(before, after))
        overlay.add(difference(after, before))

    def _folded(self, aggregate: Aggregate, bindings: Ids) -> Ids:
        # Columns that only distinguish bindings are not folded.
        folded = bindings[:, : len(aggregate.groups) + len(aggregate.arguments)]
        rows, dropped, _ = fold_rows(self._draft.store, aggregate, folded, self._draft.registry)
        self._draft.errors = self._draft.errors or dropped > 0
        return rows

    # The segment.

    def _delete(self) -> None:
        lost = union(union(self._suspects, self._unsupported), self._changed_heads(lost=True))
        facts, candidates = self._facts, self._facts.held(lost)
        if not candidates:
            return
        if not self._node_rules.recursive:
            alone = self._node_rules.one_instance_each and not self._suspects
            facts.delete(candidates if alone else minus(candidates, facts.supported(candidates)))
            return
        self._refuse_many(candidates)
        if self._backward and self._node_rules.widest_instance <= L.MOST_COLUMNS:
            delete_unproved(facts, candidates)
        else:
            delete_and_rederive(facts, candidates)

    def _refuse_many(self, candidates: Delta) -> None:
        count = sum(map(len, candidates.values()))
        if self._draft.clock.is_set and count > _FEW and count * _MOST_CANDIDATES > len(self._own):
            raise GaveUpError

    def _insert(self) -> None:
        facts, heads = self._facts, self._changed_heads(lost=False)
        for key in self._added:
            rows = evaluate_delta(self._draft, self._node_rules.all_heads(key), (), self._own, old=False)
            heads = union(heads, facts.heads(key, rows))
        frontier = facts.lacking(heads)
        rounds = 0
        while frontier:
            self._draft.check_time()
            facts.insert(frontier)
            rounds += 1
            self._draft.count(rounds, len(self._own) + self._draft.grown(self._own))
            if not self._node_rules.recursive:
                break
            frontier = facts.lacking(facts.consequences(frontier, old=False))


def _classified(rows: Ids, marks: NDArray[np.int8]) -> tuple[Ids, Ids, Ids]:
    """Return the rows deleted, the rows inserted outside, and own rows that lost their last outside owner."""
    if len(rows) == 1:
        # The usual case, and much quicker without arrays.
        mark = int(marks[0])
        none = rows[:0]
        deleted = mark & BEFORE and not mark & (OUTSIDE | OWN)
        inserted = mark & OUTSIDE and not mark & BEFORE
        unsupported = mark & OWN and not mark & OUTSIDE and mark & OUTSIDE_BEFORE
        return rows if deleted else none, rows if inserted else none, rows if unsupported else none
    before, outside, own = marks & BEFORE != 0, marks & OUTSIDE != 0, marks & OWN != 0
    return (
        rows[before & ~outside & ~own],
        rows[outside & ~before],
        rows[own & ~outside & (marks & OUTSIDE_BEFORE != 0)],
    )
