"""Arrangements against sorted lists."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from zodiacedge.engine.embedded.storage.arrangement import Arrangement, Run

_Entry = tuple[int, int, int]


def _run(entries: list[tuple[_Entry, int]]) -> Run:
    columns = np.array([(*entry, weight) for entry, weight in entries], np.int64).reshape(-1, 4).T.copy()
    return Run.of(columns[0], columns[1], columns[2].astype(np.int32), columns[3].astype(np.int32))


@pytest.mark.parametrize("seed", range(12))
def test_an_arrangement_is_a_sorted_multiset(seed: int) -> None:
    draw, arrangement, model = Random(seed), Arrangement(), list[_Entry]()
    for _ in range(40):
        come = [
            (draw.randrange(4), draw.randrange(-5, 6), draw.randrange(3)) for _ in range(draw.randrange(12))
        ]
        gone = [model.pop(draw.randrange(len(model))) for _ in range(min(len(model), draw.randrange(12)))]
        model += come
        before = arrangement
        sizes = before.weights(np.arange(5)).tolist()
        arrangement = arrangement.changed(_run([(e, 1) for e in come] + [(e, -1) for e in gone]))
        # The old version is what it was.
        assert before.weights(np.arange(5)).tolist() == sizes
        found = arrangement.weights(np.arange(5)).tolist()
        assert found == [sum(entry[0] == group for entry in model) for group in range(5)]
        queries = [(group, rank + 1) for group in range(5) for rank in range(found[group])]
        if not queries:
            continue
        keys, ids, tied = arrangement.select(*np.array(queries, np.int64).T)
        for n, (group, rank) in enumerate(queries):
            key = sorted(entry[1] for entry in model if entry[0] == group)[rank - 1]
            there = sorted({entry[2] for entry in model if entry[:2] == (group, key)})
            assert keys[n] == key
            assert sorted(arrangement.ids_at(group, key)) == there
            # An id that was cancelled out may be that of another term by now.
            assert ids[n] in there
            assert tied[n] == (len(there) > 1)


def test_entries_that_cancel_each_other_out_take_no_room() -> None:
    arrangement = Arrangement()
    for n in range(1000):
        come = [((k % 5, n * 10 + k, k), 1) for k in range(10)]
        gone = [((k % 5, (n - 3) * 10 + k, k), -1) for k in range(10)] if n >= 3 else []
        arrangement = arrangement.changed(_run(come + gone))
    assert len(arrangement) < 120
    assert len(arrangement.runs) < 6
