"""What all versions share survives an interruption at any line: tables that get an index, the dictionary."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from zodiacedge.engine.embedded.storage import table
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.terms import dictionary
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.terms import IRI, integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, ModuleType

PAIRS = np.array([(n, m) for n in range(80) for m in range(0, n, 7)], np.int32)


def interrupted(work: Callable[[], object], module: ModuleType, line: int) -> bool:
    """Do some work, interrupted at the n-th line of a module; return whether it came that far."""
    lines = 0

    def here(frame: FrameType, event: str, argument: object) -> object:
        nonlocal lines
        del frame, argument
        if event == "line":
            lines += 1
            if lines == line:
                sys.settrace(None)
                raise KeyboardInterrupt
        return here

    def called(frame: FrameType, event: str, argument: object) -> object:
        del event, argument
        return here if frame.f_code.co_filename == module.__file__ else None

    before = sys.gettrace()
    sys.settrace(called)  # type: ignore[arg-type]
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def pairs() -> Table:
    found = Table(2)
    found.append_distinct(PAIRS)
    return found


def interruptions(work: Callable[[Table], object]) -> Iterator[Table]:
    """Yield tables that some work was interrupted on, once at each of its lines."""
    line = 0
    while True:
        line += 1
        shared = pairs()
        if not interrupted(lambda: work(shared), table, line):  # noqa: B023 - it is done at once
            return
        yield shared


def test_an_index_is_there_or_not() -> None:
    tables = list(interruptions(lambda shared: shared.ensure_index(1)))
    assert len(tables) > 20
    for shared in tables:
        assert shared.count_pairs_present(PAIRS) == len(PAIRS)
        assert shared.ensure_index(2)[1] == 2


def test_a_row_set_is_there_or_not() -> None:
    tables = list(interruptions(Table.ensure_hash_set))
    assert len(tables) > 5
    for shared in tables:
        assert shared.mask(PAIRS).all()


@pytest.mark.parametrize("known", [100, 120, 127, 255])
def test_the_dictionary_keeps_its_terms_and_takes_new_ones(known: int) -> None:
    old = [IRI(f"http://example.org/{n}") for n in range(known)]
    new = [IRI(f"http://example.org/new/{'x' * 30}/{n}") for n in range(200)]
    line = step = 1
    while True:
        shared = Dictionary()
        ids = shared.encode_all(old).tolist()
        if not interrupted(lambda: (shared.encode_all(new), shared.encode(integer(7))), dictionary, line):  # noqa: B023
            break
        assert [shared.find(term) for term in old] == ids
        numbers = shared.encode_all([*new, *old]).tolist()
        assert numbers[len(new) :] == ids
        assert len(set(numbers)) == len(numbers)
        assert [shared.decode(number) for number in numbers] == [*new, *old]
        # All lines at first, where the arrays grow; then most are the same one after the other.
        step += line > 60
        line += step
    assert line > 60
