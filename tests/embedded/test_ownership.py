"""The flags of a row's owners, whatever their number and order."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from zodiacedge.engine.embedded.kernels.jit import MEMORY
from zodiacedge.engine.embedded.storage.table import SCRATCH, Table
from zodiacedge.engine.embedded.versions.ownership import (
    O_BASE,
    O_MINUS,
    O_PLUS,
    OUTSIDE,
    OUTSIDE_BEFORE,
    OWN,
    OWN_BEFORE,
    OWNER_WORDS,
    mark_owners,
)

# Whether an owner holds a row: not at all, in both versions, in the old one, in the next.
STATES = {"no": (False, False), "both": (True, True), "old": (True, False), "next": (False, True)}


@pytest.mark.parametrize("own", [-1, 0, 1, 2])
def test_every_combination_of_three_owners(own: int) -> None:
    combinations = list(product(STATES, repeat=3))
    rows = np.arange(len(combinations), dtype=np.int32)[:, None]
    entries = np.zeros(3 * OWNER_WORDS, np.int64)
    tables: list[Table] = []
    for owner in range(3):
        states = np.array([combination[owner] for combination in combinations])
        for word, chosen in (
            (O_BASE, ("both", "old")),
            (O_PLUS, ("next",)),
            (O_MINUS, ("old",)),
        ):
            table = Table.of(rows[np.isin(states, chosen)])
            table.ensure_hash_set()
            tables.append(table)
            entries[owner * OWNER_WORDS + word] = table.at
    marks = np.zeros(len(rows), np.int8)
    flat = rows.ravel()
    mark_owners(
        MEMORY.address(entries),
        3,
        own,
        MEMORY.address(flat),
        len(rows),
        1,
        MEMORY.address(marks),
        SCRATCH.address,
    )
    for combination, found in zip(combinations, marks.tolist(), strict=True):
        flags = 0
        for owner, state in enumerate(combination):
            before, after = STATES[state]
            flags |= before * (OWN_BEFORE if owner == own else OUTSIDE_BEFORE)
            flags |= after * (OWN if owner == own else OUTSIDE)
        assert found == flags, combination
