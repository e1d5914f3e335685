"""Sets of facts as rows by relation, and their algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.storage.row_algebra import difference, is_member

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.embedded.types import Flags, Ids
    from zodiacedge.engine.embedded.versions.draft import Delta


def select(delta: Delta, mask: Callable[[Relation, Ids], Flags]) -> Delta:
    """Return the facts that a mask selects."""
    selected = {relation: rows[mask(relation, rows)] for relation, rows in delta.items()}
    return {relation: rows for relation, rows in selected.items() if len(rows)}


def union(first: Delta, second: Delta) -> Delta:
    """Return the facts of either set."""
    if not first or not second:
        return first or second
    both = dict(first)
    for relation, rows in second.items():
        if relation in both:
            both[relation] = np.concatenate((both[relation], difference(rows, both[relation])))
        elif len(rows):
            both[relation] = rows
    return both


def minus(first: Delta, second: Delta) -> Delta:
    """Return the facts of the first set that are not in the second."""
    return select(first, lambda relation, rows: ~_is_in(second, relation, rows))


def intersection(first: Delta, second: Delta) -> Delta:
    """Return the facts of both sets."""
    return select(first, lambda relation, rows: _is_in(second, relation, rows))


def _is_in(delta: Delta, relation: Relation, rows: Ids) -> Flags:
    if relation not in delta:
        return np.zeros(len(rows), np.bool_)
    return is_member(rows, delta[relation])
