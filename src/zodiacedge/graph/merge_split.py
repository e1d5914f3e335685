"""A draft of hyper-nodes: a dynamic topological order into which groups of rules are inserted.

Ranks are integers with wide gaps, unique, and lower at the tail of every edge than at its head. A new
group is inserted between the highest rank of its predecessors and the lowest of its successors. Only if
these cross is a search necessary, and only between the two (Pearce and Kelly's dynamic topological order):
nodes that both reach the new group and are reachable from it form a cycle and are merged with it, all
other nodes exchange ranks. A draft is made for one change and discarded; ids of nodes and their lineage are
left to `hyper_graph`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from zlib import crc32

from zodiacedge.graph.rule_graph import Walk
from zodiacedge.util.cow_dict import CowDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from zodiacedge.graph.rule_graph import RuleGraph

GAP = 1 << 64


@dataclass(frozen=True, slots=True)
class HyperNode:
    """A strongly connected component of the rule dependency graph.

    Rules are in insertion order. Edges go from lower to higher rank; ranks have gaps and no other meaning.
    """

    id: int
    rules: tuple[str, ...]
    rank: int

    @property
    def name(self) -> str:
        """The node's display name: `hn3`."""
        return f"hn{self.id}"


class GraphDraft:
    """A mutable copy of a graph's nodes. New nodes have negative ids until the change is complete."""

    def __init__(
        self, rules: RuleGraph, nodes: CowDict[int, HyperNode], homes: CowDict[str, int], ranks: list[int]
    ) -> None:
        """Take ownership of the three tables; `ranks` is sorted."""
        self.rules = rules
        self.nodes = nodes
        self.homes = homes
        self.ranks = ranks
        self.fresh: dict[int, None] = {}
        self._last_id = 0

    def drop(self, node: int) -> None:
        """Delete a node."""
        dropped = self.nodes.pop(node)
        self.fresh.pop(node, None)
        for key in dropped.rules:
            del self.homes[key]
        del self.ranks[bisect_left(self.ranks, dropped.rank)]

    def shrink(self, node: int, rest: tuple[str, ...]) -> None:
        """Delete rules of a node that stays one component; it keeps its rank."""
        old = self.nodes.pop(node)
        for key in old.rules:
            del self.homes[key]
        self._put(rest, old.rank)

    def insert(self, group: tuple[str, ...]) -> None:
        """Insert a group of rules as a node; merge it with the nodes with which it forms a cycle."""
        low = max(self._ranks_of(Walk(self.rules).backward(group)), default=None)
        high = min(self._ranks_of(Walk(self.rules).forward(group)), default=None)
        if low is None or high is None or low < high:
            self._put(group, self._slot(group, low, high))
            return
        reachable = self._reach(Walk(self.rules).forward, group, high, low, end=low)
        reaching = self._reach(Walk(self.rules).backward, group, high, low, end=high)
        cycle = reachable & reaching
        before = self._by_rank(reaching - cycle)
        after = self._by_rank(reachable - cycle)
        pool = sorted(self.nodes[node].rank for node in reachable | reaching)
        members = [key for node in cycle for key in self.nodes[node].rules]
        for node in cycle:
            self.drop(node)
        self._reassign(before, pool[: len(before)])
        self._reassign(after, pool[len(pool) - len(after) :])
        if cycle:
            rank = pool[len(before)]
            insort(self.ranks, rank)
        else:
            rank = self._between(group, before[-1], after[0])
        self._put(self.rules.in_order((*group, *members)), rank)

    def replace_all(self, groups: Iterable[tuple[tuple[str, ...], int | None]]) -> None:
        """Replace all nodes, given in topological order: rules, and the id if the node is unchanged."""
        nodes, self.nodes, self.homes, self.ranks, self.fresh = self.nodes, CowDict(), CowDict(), [], {}
        for index, (group, known) in enumerate(groups):
            rank = (index + 1) * GAP
            self.ranks.append(rank)
            if known is None:
                self._put(group, rank)
            else:
                self.nodes[known] = replace(nodes[known], rank=rank)
                self.homes.update(dict.fromkeys(group, known))

    def _put(self, group: tuple[str, ...], rank: int) -> None:
        self._last_id -= 1
        node = self._last_id
        self.nodes[node] = HyperNode(node, group, rank)
        self.fresh[node] = None
        self.homes.update(dict.fromkeys(group, node))

    def _ranks_of(self, keys: Iterable[str]) -> Iterator[int]:
        # Rules of the change without a node yet are visited when they are inserted.
        homes, nodes = self.homes, self.nodes
        for key in keys:
            home = homes.get(key)
            if home is not None:
                yield nodes[home].rank

    def _reach(
        self,
        step: Callable[[Iterable[str]], Iterator[str]],
        group: tuple[str, ...],
        lowest: int,
        highest: int,
        *,
        end: int,
    ) -> set[int]:
        seen: set[int] = set()
        waiting = [group]
        while waiting:
            for key in step(waiting.pop()):
                home = self.homes.get(key)
                if home is None or home in seen:
                    continue
                rank = self.nodes[home].rank
                if lowest <= rank <= highest:
                    seen.add(home)
                    # Nodes beyond the node at the end are out of range.
                    if rank != end:
                        waiting.append(self.nodes[home].rules)
        return seen

    def _by_rank(self, nodes: Iterable[int]) -> list[int]:
        return sorted(nodes, key=lambda node: self.nodes[node].rank)

    def _reassign(self, nodes: list[int], ranks: list[int]) -> None:
        # The ranks are those of the reordered nodes, so `self.ranks` is the same set afterwards, except
        # for those of merged nodes, which `drop` removed.
        for node in nodes:
            del self.ranks[bisect_left(self.ranks, self.nodes[node].rank)]
        for node, rank in zip(nodes, ranks, strict=True):
            self.nodes[node] = replace(self.nodes[node], rank=rank)
        for rank in ranks:
            insort(self.ranks, rank)

    def _slot(self, group: tuple[str, ...], low: int | None, high: int | None) -> int:
        # Without a bound on one side, the rank goes to that end of the order, where there is always room.
        if high is None:
            rank = (self.ranks[-1] if self.ranks else 0) + GAP
            self.ranks.append(rank)
        elif low is None:
            rank = self.ranks[0] - GAP
            self.ranks.insert(0, rank)
        else:
            free = self._free(group, low, high)
            if free is None:
                indexes = bisect_left(self.ranks, low), bisect_left(self.ranks, high)
                self._relabel()
                free = self._free(group, *(self.ranks[index] for index in indexes))
            if free is None:
                raise AssertionError("a fresh gap has room")
            rank = free
            insort(self.ranks, rank)
        return rank

    def _between(self, group: tuple[str, ...], before: int, after: int) -> int:
        return self._slot(group, self.nodes[before].rank, self.nodes[after].rank)

    def _free(self, group: tuple[str, ...], low: int, high: int) -> int | None:
        # A hash spreads ranks over the gap; repeated halving would fill it after 64 insertions.
        width = high - low - 1
        rank = low + 1 + (crc32(group[0].encode()) * width >> 32)
        index = bisect_left(self.ranks, rank)
        while rank < high and index < len(self.ranks) and self.ranks[index] == rank:
            rank, index = rank + 1, index + 1
        return rank if rank < high else None

    def _relabel(self) -> None:
        fresh = {node.rank: (index + 1) * GAP for index, node in enumerate(self._all_by_rank())}
        self.nodes = CowDict((id_, replace(node, rank=fresh[node.rank])) for id_, node in self.nodes.items())
        self.ranks = list(fresh.values())

    def _all_by_rank(self) -> list[HyperNode]:
        return sorted(self.nodes.values(), key=lambda node: node.rank)
