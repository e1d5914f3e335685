"""DRed: delete and rederive.

All candidates for deletion and all facts of the node that were derived from them are deleted; then deleted
facts that still have an instance on the remaining facts are inserted again, and so are their consequences.
DRed deletes more facts than Backward/Forward, but searches for no proofs.

A. Gupta, I. S. Mumick, V. S. Subrahmanian: Maintaining Views Incrementally. SIGMOD 1993.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.maintain.delta_sets import intersection, minus, union

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.maintain.node_facts import NodeFacts
    from zodiacedge.engine.embedded.versions.draft import Delta


def delete_and_rederive(node: NodeFacts, candidates: Delta) -> None:
    """Delete the candidates that no other instance derives, and the facts derived from them only."""
    rederive(node, overdelete(node, candidates))


def overdelete(node: NodeFacts, candidates: Delta) -> Delta:
    """Delete the candidates and all facts of the node derived from them; return the deleted facts."""
    deleted = frontier = candidates
    while frontier:
        node.draft.check_time()
        frontier = minus(node.held(node.consequences(frontier, old=True)), deleted)
        deleted = union(deleted, frontier)
    node.delete(deleted)
    return deleted


def rederive(node: NodeFacts, deleted: Delta) -> None:
    """Insert those deleted facts again that have an instance on the next version."""
    frontier = node.supported(deleted)
    while frontier:
        node.draft.check_time()
        node.insert(frontier)
        deleted = minus(deleted, frontier)
        frontier = intersection(node.consequences(frontier, old=False), deleted)
