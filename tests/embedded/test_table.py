"""A table is the set of its rows, whatever was inserted, deleted and built in between.

A history is a list of steps on a few tables of one arity, drawn as plain data. Each step is also made on
Python sets; afterwards the rows, the row-set and every chain of every index must be those of the set.
Looking at a table builds nothing: whatever exists is read through the record, as kernels read it.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import Seeded, examples
from strategies.dice import Drawn
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.hashing import slot_of
from zodiacedge.engine.embedded.kernels.jit import MEMORY, words
from zodiacedge.engine.embedded.storage import table as table_module
from zodiacedge.engine.embedded.storage.hash_index import find_chain, find_row, hash_row
from zodiacedge.engine.embedded.storage.table import Table, count_distinct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hypothesis.strategies import DrawFn
    from numpy.typing import NDArray

    from strategies import Dice

TESTS = Path(__file__).resolve().parents[1]
TABLES = 3
VERBS = (
    *("insert", "delete") * 4,
    *("append", "need index", "forget rows", "trim") * 2,
    *("need rows", "reserve", "sift", "count present", "count pairs", "contains", "count distinct"),
    *("delete all", "clear"),
)

Row = tuple[int, ...]
KEY = words(L.MOST_COLUMNS)


# Histories


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do with one table; a verb takes what it needs of the rest."""

    verb: str
    table: int
    rows: tuple[Row, ...]
    number: int


@dataclass(frozen=True, slots=True)
class History:
    """Steps on tables of one arity."""

    arity: int
    steps: tuple[Step, ...]


def random_history(dice: Dice, *, steps: int, most_rows: int) -> History:
    """Few terms, so that rows come again, slots collide and chains are long."""
    arity = dice.number(0, 4)
    terms = dice.number(1, 6)
    stride = dice.pick((1, 8, 1 << 20))

    def row() -> Row:
        return tuple(stride * dice.number(0, terms) for _ in range(arity))

    def step() -> Step:
        rows = tuple(row() for _ in range(dice.number(0, most_rows)))
        return Step(dice.pick(VERBS), dice.number(0, TABLES - 1), rows, dice.number(0, 15))

    return History(arity, tuple(step() for _ in range(steps)))


@st.composite
def histories(draw: DrawFn) -> History:
    dice = Drawn(draw)
    return random_history(dice, steps=dice.number(1, 30), most_rows=8)


# The tables, and the sets that they should be


class Checked:
    """A table beside the set of its rows."""

    def __init__(self, arity: int) -> None:
        self.table = Table(arity)
        self.model: set[Row] = set()

    def array(self, rows: Iterable[Row]) -> NDArray[np.int32]:
        return as_array(rows, self.table.arity)

    def take(self, step: Step) -> None:
        """Make a step on both, and compare what they return."""
        table, model = self.table, self.model
        given = self.array(step.rows)
        here = [row for row in step.rows if row in model]
        match step.verb:
            case "insert":
                assert table.insert(given) == len(set(step.rows) - model)
                model |= set(step.rows)
            case "delete":
                assert table.delete(given) == len(set(here))
                model -= set(step.rows)
            case "delete all":
                assert table.delete(table.rows) == len(model)
                model.clear()
            case "append":
                new = sorted(set(step.rows) - model)
                table.append_distinct(self.array(new))
                model |= set(new)
            case "clear" if not table.record[L.T_INDEXES]:
                table.clear()
                model.clear()
            case "need index" if table.arity:
                self.ensure_index(1 + step.number % ((1 << table.arity) - 1))
            case "need rows":
                table.ensure_hash_set()
                assert table.has_hash_set
            case "forget rows":
                table.drop_hash_set()
                assert not table.has_hash_set
            case "trim":
                table.trim()
            case "reserve":
                table.reserve(step.number)
                assert table.capacity >= len(table) + step.number
            case "sift":
                absent = [row for row in step.rows if row not in model]
                assert as_rows(table.filter(given, present=True)) == here
                assert as_rows(table.filter(given, present=False)) == absent
            case "count present":
                assert table.count_present(given) == len(here)
            case "count pairs" if table.arity == 2:
                assert table.count_pairs_present(given) == len(here)
                together = sorted(step.rows)
                assert table.count_pairs_present(self.array(together)) == len(here)
            case "contains":
                assert [table.contains(row) for row in step.rows] == [row in model for row in step.rows]

    def ensure_index(self, mask: int) -> None:
        """Ask for an index; where they are used up, one on some of the columns must do."""
        room = self.table.record[L.T_INDEXES] < L.MOST_INDEXES
        number, columns = self.table.ensure_index(mask)
        assert columns & mask == columns
        if room:
            assert columns == mask
        if columns:
            assert self.table.record[index_at(number) + L.I_MASK] == columns

    def look(self) -> None:
        """Compare all there is with the set."""
        table = self.table
        rows = as_rows(table.rows)
        assert len(table) == len(rows) == len(self.model)
        assert set(rows) == self.model
        record = table.record
        assert record[L.T_LOW] == record[L.T_HIGH] == record[L.T_COUNT]
        assert record[L.T_CAPACITY] * max(table.arity, 1) == len(table._rows)
        assert record[L.T_ROWS] == table._rows.ctypes.data
        self._look_at_row_set(rows)
        assert record[L.T_INDEXES] == len(table._masks) == len(table._heads) == len(table._next)
        assert len(table._previous) <= len(table._next)
        for number in range(len(table._masks)):
            self._look_at_index(number, rows)

    def _look_at_row_set(self, rows: Sequence[Row]) -> None:
        table = self.table
        slots = table._slots
        if slots is None:
            assert table.record[L.T_SLOTS] == table.record[L.T_SLOT_COUNT] == 0
            return
        assert table.record[L.T_SLOTS] == slots.ctypes.data
        assert table.record[L.T_SLOT_COUNT] == len(slots)
        assert len(rows) * L.FULL_DENOMINATOR <= len(slots) * L.FULL_NUMERATOR
        assert sorted(slots[slots > 0].tolist()) == list(range(1, len(rows) + 1))
        for place, row in enumerate(rows):
            assert find_row(table.at, key_of(row)) == place
            other = (*row[:-1], row[-1] + 1) if row else row
            assert (find_row(table.at, key_of(other)) >= 0) == (other in self.model)

    def _look_at_index(self, number: int, rows: Sequence[Row]) -> None:
        table = self.table
        here = index_at(number)
        assert table.record[here + L.I_HEADS] == table._heads[number].ctypes.data
        assert table.record[here + L.I_HEAD_COUNT] == len(table._heads[number])
        assert table.record[here + L.I_NEXT] == table._next[number].ctypes.data
        mask = int(table.record[here + L.I_MASK])
        matches: dict[Row, list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            matches[masked(row, mask)].append(place)
        used = int(table.record[here + L.I_USED])
        assert used == len(matches) == np.count_nonzero(table._heads[number])
        assert used * L.FULL_DENOMINATOR <= len(table._heads[number]) * L.FULL_NUMERATOR
        for key, places in matches.items():
            chain = list(walk(table, number, key))
            assert sorted(chain) == places
            self._look_backwards(number, chain)
            other = masked(tuple(term + 1 for term in key), mask)
            if other not in matches:
                assert find_chain(table.at, number, key_of(other)) == -1

    def _look_backwards(self, number: int, chain: Sequence[int]) -> None:
        table = self.table
        address = table.record[index_at(number) + L.I_PREVIOUS]
        if number >= len(table._previous):
            assert address == 0
            return
        previous = table._previous[number]
        assert address == previous.ctypes.data
        assert previous[chain].tolist() == [-1, *chain[:-1]]


def play(history: History, *, every: int = 1) -> None:
    """Make the steps of a history, and look at the tables after every so many."""
    tables = [Checked(history.arity) for _ in range(TABLES)]
    for number, step in enumerate(history.steps):
        if step.verb == "count distinct":
            some = tables[step.table :]
            union = set().union(*(checked.model for checked in some))
            assert count_distinct([checked.table for checked in some]) == len(union)
        else:
            tables[step.table].take(step)
        if number % every == 0 or number == len(history.steps) - 1:
            for checked in tables:
                checked.look()


def as_array(rows: Iterable[Row], arity: int) -> NDArray[np.int32]:
    listed = list(rows)
    return np.array(listed, np.int32).reshape(len(listed), arity)


def as_rows(rows: NDArray[np.int32]) -> list[Row]:
    return [tuple(row) for row in rows.tolist()]


def key_of(row: Row) -> int:
    KEY[: len(row)] = row
    return MEMORY.address(KEY)


def masked(row: Row, mask: int) -> Row:
    return tuple(term if mask >> column & 1 else 0 for column, term in enumerate(row))


def index_at(number: int) -> int:
    return L.T_FIRST_INDEX + number * L.INDEX_WORDS


def walk(table: Table, number: int, key: Row) -> Iterator[int]:
    """Yield the rows of a chain; a chain that goes in a circle ends soon too."""
    row = find_chain(table.at, number, key_of(key))
    for _ in range(len(table) + 1):
        if row < 0:
            return
        yield row
        row = int(table._next[number][row])


@settings(max_examples=150)
@given(histories())
def test_a_table_is_the_set_of_its_rows(history: History) -> None:
    play(history)


def test_long_histories() -> None:
    for seed in range(15):
        play(random_history(Seeded(seed), steps=200, most_rows=40), every=10)


@pytest.mark.soak
def test_many_long_histories() -> None:
    for seed in range(1_000, 1_000 + examples(1_000, one_in=50)):
        play(random_history(Seeded(seed), steps=300, most_rows=60), every=15)


@pytest.mark.slow
def test_the_same_code_runs_without_a_compiler() -> None:
    script = (
        "from embedded.test_table import Seeded, play, random_history\n"
        "from zodiacedge.engine.embedded.kernels.jit import COMPILED\n"
        "assert not COMPILED\n"
        "for seed in range(5_000, 5_030):\n"
        "    play(random_history(Seeded(seed), steps=30, most_rows=8))\n"
    )
    environment = os.environ | {"ZODIAC_PURE_PYTHON": "1", "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# Corners


def rows_at_home_in(slot: int, slots: int) -> Iterator[Row]:
    """Yield rows of one column whose search starts in a slot."""
    term = np.zeros(1, np.int32)
    for number in itertools.count():
        term[0] = number
        if slot_of(hash_row(MEMORY.address(term), 0, 1, 1), slots) == slot:
            yield (number,)


def crowded(slots: int) -> list[Row]:
    """Return rows whose runs of slots meet, and go round the end of the row-set."""
    homes = (slots - 2, slots - 1, 0)
    return [row for home in homes for row in itertools.islice(rows_at_home_in(home, slots), 2)]


@pytest.mark.parametrize("masks", [(), (1,)], ids=["row-set", "row-set and index"])
def test_rows_whose_slots_run_into_each_other_go_in_any_order(masks: tuple[int, ...]) -> None:
    slots = len(Table(1).rows) + 8
    rows = crowded(slots)
    for number, order in enumerate(itertools.permutations(rows)):
        if number % 7:
            continue
        checked = Checked(1)
        for mask in masks:
            checked.ensure_index(mask)
        checked.take(Step("insert", 0, tuple(rows), 0))
        assert checked.table.record[L.T_SLOT_COUNT] == slots
        for row in order:
            checked.take(Step("delete", 0, (row,), 0))
            checked.look()


@pytest.mark.parametrize("chain", range(2 * L.SHORT_CHAIN + 2))
def test_pairs_are_counted_in_short_chains_and_in_long_ones(chain: int) -> None:
    table = Table(2)
    table.insert(as_array([(1, n) for n in range(chain)], 2))
    asked = [(1, n) for n in range(0, 40, 2)] + [(2, 0), (1, 1), (1, 1)]
    expected = sum(first == 1 and second < chain for first, second in asked)
    assert table.count_pairs_present(as_array(asked, 2)) == expected


@pytest.mark.parametrize("arity", range(5))
def test_deleting_from_an_empty_table_does_nothing(arity: int) -> None:
    checked = Checked(arity)
    if arity:
        checked.ensure_index(1)
    assert checked.table.delete(as_array([(0,) * arity], arity)) == 0
    assert checked.table.delete(as_array([], arity)) == 0
    checked.look()


def test_rows_in_any_layout_of_memory() -> None:
    pairs = np.array([[1, 2], [3, 4], [5, 6]], np.int32)
    table = Table(2)
    table.append_distinct(pairs[:, ::-1])
    table.insert(np.asfortranarray(pairs))
    assert set(as_rows(table.rows)) == {(1, 2), (3, 4), (5, 6), (2, 1), (4, 3), (6, 5)}
    table.delete(table.rows[::2, ::-1])
    table.delete(table.rows[1:3])
    assert len(table) == 1


def test_a_table_takes_few_indexes_and_then_the_best_one_it_has() -> None:
    table = Table(6)
    for mask in range(1, L.MOST_INDEXES + 1):
        assert table.ensure_index(mask) == (mask - 1, mask)
    # 1, 2, …, 32 are there: five columns at most serve six.
    assert table.ensure_index(0b111111) == (30, 0b011111)
    assert table.ensure_index(0b110000)[1] in {0b100000, 0b010000}
    assert table.ensure_index(0b000101) == (4, 0b000101)
    thin = Table(7)
    for mask in range(1, L.MOST_INDEXES + 1):
        thin.ensure_index(mask)
    assert thin.ensure_index(0b1000000) == (0, 0)


def test_a_table_has_an_index_for_every_pattern_of_four_columns() -> None:
    rows = np.arange(64, dtype=np.int32).reshape(-1, 4) % 5
    table = Table(4)
    table.insert(rows)
    found = [table.ensure_index(mask) for mask in range(1, 1 << 4)]
    assert [mask for _, mask in found] == list(range(1, 1 << 4))


# What a change costs

LARGE = 100_000


def large_table() -> Table:
    """Return a table with long chains, short ones, and one deletion and insertion behind it."""
    numbers = np.arange(LARGE, dtype=np.int32)
    table = Table(2)
    table.append_distinct(np.stack((numbers % 1000, numbers), axis=1))
    for mask in (1, 2, 3):
        table.ensure_index(mask)
    one = np.array([[500, 500]], np.int32)
    assert table.delete(one) == 1
    assert table.insert(one) == 1
    return table


def arrays(table: Table) -> list[NDArray[np.int32]]:
    assert table._slots is not None
    return [table._rows, table._slots, *table._heads, *table._next, *table._previous]


def refuse(name: str) -> Callable[..., None]:
    def called(*_: object) -> None:
        pytest.fail(f"{name} goes through the whole table")

    return called


@pytest.mark.parametrize("row", [(0, 0), (7, 50_007), (999, LARGE - 1)], ids=["first", "middle", "last"])
def test_a_deletion_and_an_insertion_touch_a_few_words_of_a_large_table(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = large_table()
    for name in ("build_hash_set", "fill_index", "fill_previous", "rehash_heads"):
        monkeypatch.setattr(table_module, name, refuse(name))
    kept = arrays(table)
    before = [array.copy() for array in kept]
    one = as_array([row], 2)
    assert table.delete(one) == 1
    assert table.insert(as_array([(row[0], LARGE)], 2)) == 1
    assert all(now is then for now, then in zip(arrays(table), kept, strict=True))
    changed = sum(int(np.count_nonzero(a != b)) for a, b in zip(kept, before, strict=True))
    assert 0 < changed < 200


def test_a_table_that_stays_as_large_is_never_allocated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = large_table()
    for name in ("build_hash_set", "fill_index", "fill_previous", "rehash_heads"):
        monkeypatch.setattr(table_module, name, refuse(name))
    kept = arrays(table)
    for n in range(500):
        assert table.delete(as_array([(n * 7 % 1000, n * 7)], 2)) == 1
        assert table.insert(as_array([(n % 1000, LARGE + n)], 2)) == 1
    assert all(now is then for now, then in zip(arrays(table), kept, strict=True))


def test_a_growing_table_is_seldom_allocated_again() -> None:
    table = Table(2)
    table.ensure_hash_set()
    table.ensure_index(1)
    seen: dict[int, NDArray[np.int32]] = {}
    for n in range(20_000):
        table.insert(np.array([[n, n % 50]], np.int32))
        seen |= {id(array): array for array in arrays(table)}
    # Rows, slots, heads and chains, each some twenty times on the way from 8 to 20,000.
    assert len(seen) < 100


def test_trimming_gives_back_what_deleted_rows_took() -> None:
    table = large_table()
    large = sum(table.nbytes)
    table.delete(table.rows[100:])
    assert sum(table.nbytes) == large
    table.trim()
    assert sum(table.nbytes) < large / 100
    assert len(table) == 100
