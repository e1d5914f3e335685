"""Kernels of arrangements: the merge of two sorted runs, and weights and order statistics over several.

A run is described by the addresses of its columns and its length, `RUN_WORDS` words. Its entries are sorted
by group, key and id; `sums` has the weights of all entries up to each.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels.jit import kernel, load32, store8, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put

RUN_WORDS = 5
R_GROUPS = 0
R_KEYS = 1
R_IDS = 2
R_SUMS = 3
R_COUNT = 4

# The state of a run while a rank is searched: the entries of the group, those among which the rank is still
# searched, and the weights before the group.
STATE_WORDS = 5
_LOW = 0
_HIGH = 1
_FROM = 2
_TO = 3
_BEFORE = 4


@kernel
def _precedes(first: int, i: int, second: int, j: int) -> int:
    """Return -1, 0 or 1: whether an entry of the first run is before, equal to or after one of the second."""
    one, other = get(get(first, R_GROUPS), i), get(get(second, R_GROUPS), j)
    if one == other:
        one, other = get(get(first, R_KEYS), i), get(get(second, R_KEYS), j)
        if one == other:
            one, other = load32(get(first, R_IDS), i), load32(get(second, R_IDS), j)
            if one == other:
                return 0
    return -1 if one < other else 1


@kernel
def merge_runs(first: int, second: int, out: int) -> int:
    """Merge two runs: add weights of equal entries, leave out those without weight. Return the length."""
    first_count, second_count = get(first, R_COUNT), get(second, R_COUNT)
    groups, keys, ids, sums = get(out, R_GROUPS), get(out, R_KEYS), get(out, R_IDS), get(out, R_SUMS)
    i, j, count, total, first_sum, second_sum = 0, 0, 0, 0, 0, 0
    while i < first_count or j < second_count:
        if j >= second_count:
            order = -1
        elif i >= first_count:
            order = 1
        else:
            order = _precedes(first, i, second, j)
        run, at = (first, i) if order <= 0 else (second, j)
        weight = 0
        if order <= 0:
            until = load32(get(first, R_SUMS), i)
            weight += until - first_sum
            first_sum = until
            i += 1
        if order >= 0:
            until = load32(get(second, R_SUMS), j)
            weight += until - second_sum
            second_sum = until
            j += 1
        if weight != 0:
            total += weight
            put(groups, count, get(get(run, R_GROUPS), at))
            put(keys, count, get(get(run, R_KEYS), at))
            store32(ids, count, load32(get(run, R_IDS), at))
            store32(sums, count, total)
            count += 1
    return count


@kernel
def _first_from(values: int, low: int, high: int, value: int) -> int:
    """Return the first position of ascending words from which on they are at least a value."""
    while low < high:
        middle = (low + high) >> 1
        if get(values, middle) < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _first_after(values: int, low: int, high: int, value: int) -> int:
    """Return the first position of ascending words from which on they are greater than a value."""
    while low < high:
        middle = (low + high) >> 1
        if get(values, middle) <= value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _sum_upto(sums: int, position: int) -> int:
    return load32(sums, position - 1) if position > 0 else 0


@kernel
def _open_group(runs: int, count: int, group: int, state: int) -> int:
    """Find the entries of a group in each run; return their total weight."""
    total = 0
    for n in range(count):
        run, here = runs + 8 * RUN_WORDS * n, state + 8 * STATE_WORDS * n
        groups, sums = get(run, R_GROUPS), get(run, R_SUMS)
        low = _first_from(groups, 0, get(run, R_COUNT), group)
        high = _first_after(groups, low, get(run, R_COUNT), group)
        before = _sum_upto(sums, low)
        put(here, _LOW, low)
        put(here, _HIGH, high)
        put(here, _FROM, low)
        put(here, _TO, high)
        put(here, _BEFORE, before)
        total += _sum_upto(sums, high) - before
    return total


@kernel
def group_weights(runs: int, count: int, groups: int, number: int, out: int, state: int) -> None:
    """Write the total weight of each of some groups."""
    for n in range(number):
        put(out, n, _open_group(runs, count, get(groups, n), state))


@kernel
def entry_weights(runs: int, count: int, entries: int, out: int) -> None:
    """Write the total weight of each entry of another run, which is described as these are."""
    for n in range(get(entries, R_COUNT)):
        group, key = get(get(entries, R_GROUPS), n), get(get(entries, R_KEYS), n)
        number, total = load32(get(entries, R_IDS), n), 0
        for k in range(count):
            run = runs + 8 * RUN_WORDS * k
            groups, keys, ids = get(run, R_GROUPS), get(run, R_KEYS), get(run, R_IDS)
            low = _first_from(groups, 0, get(run, R_COUNT), group)
            end = _first_after(groups, low, get(run, R_COUNT), group)
            low = _first_from(keys, low, end, key)
            end = _first_after(keys, low, end, key)
            high = end
            while low < high:
                middle = (low + high) >> 1
                if load32(ids, middle) < number:
                    low = middle + 1
                else:
                    high = middle
            if low < end and load32(ids, low) == number:
                total += _sum_upto(get(run, R_SUMS), low + 1) - _sum_upto(get(run, R_SUMS), low)
        put(out, n, total)


@kernel
def _key_of_rank(runs: int, count: int, rank: int, state: int) -> int:
    """Return the key that has a rank, from 1, in an opened group: by binary searches in all runs."""
    best = 0
    while True:
        widest, most = 0, 0
        for n in range(count):
            here = state + 8 * STATE_WORDS * n
            size = get(here, _TO) - get(here, _FROM)
            if size > most:
                widest, most = n, size
        if most == 0:
            return best
        here = state + 8 * STATE_WORDS * widest
        pivot = get(get(runs + 8 * RUN_WORDS * widest, R_KEYS), (get(here, _FROM) + get(here, _TO)) >> 1)
        reached = 0
        for n in range(count):
            run, here = runs + 8 * RUN_WORDS * n, state + 8 * STATE_WORDS * n
            after = _first_after(get(run, R_KEYS), get(here, _FROM), get(here, _TO), pivot)
            reached += _sum_upto(get(run, R_SUMS), after) - get(here, _BEFORE)
        for n in range(count):
            run, here = runs + 8 * RUN_WORDS * n, state + 8 * STATE_WORDS * n
            if reached >= rank:
                put(here, _TO, _first_from(get(run, R_KEYS), get(here, _FROM), get(here, _TO), pivot))
            else:
                put(here, _FROM, _first_after(get(run, R_KEYS), get(here, _FROM), get(here, _TO), pivot))
        if reached >= rank:
            best = pivot


@kernel
def select_ranks(runs: int, count: int, queries: int, number: int, out: int, tied: int, state: int) -> None:
    """Write the key and the id of the entry with a rank in a group, for pairs of a group and a rank from 1.

    `tied` gets 1 where entries of several ids have that key; then the id is any of them.
    """
    for n in range(number):
        _open_group(runs, count, get(queries, 2 * n), state)
        key = _key_of_rank(runs, count, get(queries, 2 * n + 1), state)
        found = -1
        for k in range(count):
            run, here = runs + 8 * RUN_WORDS * k, state + 8 * STATE_WORDS * k
            position = _first_from(get(run, R_KEYS), get(here, _LOW), get(here, _HIGH), key)
            while position < get(here, _HIGH) and get(get(run, R_KEYS), position) == key:
                number_of = load32(get(run, R_IDS), position)
                if found >= 0 and number_of != found:
                    store8(tied, n, 1)
                found = number_of
                position += 1
        put(out, 2 * n, key)
        put(out, 2 * n + 1, found)
