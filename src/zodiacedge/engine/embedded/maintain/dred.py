"""DRed: delete and rederive.

All candidates for deletion and all facts of the node that were derived from them are deleted; then those that
still have an instance on what is left come back, and what follows from them. Deletes more than
Backward/Forward before it restores, but proves no fact one by one.

A. Gupta, I. S. Mumick, V. S. Subrahmanian: Maintaining Views Incrementally. SIGMOD 1993.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.maintain.delta_sets import intersection, minus, union

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.maintain.node_facts import NodeFacts
    from zodiacedge.engine.embedded.versions.draft import Delta


def delete_and_rederive(node: NodeFacts, candidates: Delta) -> None:
    """Delete the candidates that no other instance derives, and all that was derived from them only."""
    rederive(node, overdelete(node, candidates))


def overdelete(node: NodeFacts, candidates: Delta) -> Delta:
    """Delete the candidates and every fact with an old instance that needs one of them; return them all."""
    deleted = frontier = candidates
    while frontier:
        node.draft.check_time()
        frontier = minus(node.held(node.consequences(frontier, old=True)), deleted)
        deleted = union(deleted, frontier)
    node.delete(deleted)
    return deleted


def rederive(node: NodeFacts, deleted: Delta) -> None:
    """Insert the deleted facts again that have an instance on the next version."""
    frontier = node.supported(deleted)
    while frontier:
        node.draft.check_time()
        node.insert(frontier)
        deleted = minus(deleted, frontier)
        frontier = intersection(node.consequences(frontier, old=False), deleted)
