"""From records of the log back to changes: to make them again, or to undo them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from zodiacedge.errors import ZodiacError
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.safety import resolve
from zodiacedge.maintenance.change import Change
from zodiacedge.store.entry import facts_of
from zodiacedge.store.problems import damaged_log, not_reproduced
from zodiacedge.store.records import said
from zodiacedge.store.restore import rules_of
from zodiacedge.store.terms import facts_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from zodiacedge.engine.api import State
    from zodiacedge.engine.keeping import Keeping
    from zodiacedge.errors import StoreProblem
    from zodiacedge.language.ast import Fact, Rule
    from zodiacedge.store.entry import Entry
    from zodiacedge.store.log import Record
    from zodiacedge.store.place import Place

# Facts of a record of more bytes than this are loaded as those of a file are, not one by one.
_SMALL = 16 << 10


def changes_again(
    records: Iterable[Record], state: Callable[[], State], keeping: Keeping
) -> Iterator[tuple[Change, list[Entry]]]:
    """Yield the changes of records, with what each says; small ones that follow each other are one change.

    A state is what rules and explicit facts come to, so it is all the same how they came, and a thousand
    single changes take little longer than one.

    Args:
        records: The records, in their order.
        state: The state that the next change is made to.
        keeping: How facts get into it.
    """
    small: list[tuple[Record, Entry]] = []
    for record in records:
        entry = said(record)
        if len(record.payload) <= _SMALL and not entry.rules_added and not entry.rules_removed:
            small.append((record, entry))
            continue
        if small:
            yield _together(small), [one for _, one in small]
            small = []
        yield _again(record, entry, state(), keeping), [entry]
    if small:
        yield _together(small), [one for _, one in small]


def _together(small: Iterable[tuple[Record, Entry]]) -> Change:
    """Return what the facts of some records come to: of each fact, what was said last."""
    facts: dict[Fact, bool] = {}
    for record, _ in small:
        try:
            for comes, key, table in facts_of(record.payload, record.place):
                facts |= dict.fromkeys(facts_in(key, table), comes)
        except (ValueError, KeyError, pa.ArrowException, ZodiacError) as error:
            raise _unreadable(record, error) from error
    return Change(
        (),
        (),
        tuple(fact for fact, comes in facts.items() if comes),
        tuple(fact for fact, comes in facts.items() if not comes),
    )


def _again(record: Record, entry: Entry, state: State, keeping: Keeping) -> Change:
    """Return the change of a record, its facts loaded as those of a file are."""
    batch = state.batch()
    gone: list[Fact] = []
    try:
        for comes, key, table in facts_of(record.payload, record.place):
            if comes:
                keeping.add_part(batch, key, table)
            else:
                gone += facts_in(key, table)
        added, removed = rules_of(entry.rules_added), rules_of(entry.rules_removed)
    except (ValueError, KeyError, pa.ArrowException, ZodiacError) as error:
        raise _unreadable(record, error) from error
    return Change(added, removed, (), tuple(gone), (batch,) if batch.predicates() else ())


def check(place: Place, entry: Entry, found: tuple[int, int]) -> None:
    """Raise if a state has other counts than a record says that its change came to."""
    explicit, derived = found
    if found != (entry.explicit, entry.derived):
        why = f"{explicit:,} and {derived:,} facts instead of {entry.explicit:,} and {entry.derived:,}"
        raise not_reproduced(place, entry.version, why)


def change_back(records: Iterable[Record]) -> Change:
    """Return the one change that undoes all of some records, given in their order."""
    rules: dict[str, tuple[Rule, bool]] = {}
    facts: dict[Fact, bool] = {}
    # The oldest speaks last: what it took away was there before all of them.
    for record in reversed(list(records)):
        entry = said(record)
        try:
            # A rule that came again may have come in other words.
            for texts, back in ((entry.rules_added, False), (entry.rules_removed, True)):
                rules |= {rule_key(resolve(rule)): (rule, back) for rule in rules_of(texts)}
            for comes, key, table in facts_of(record.payload, record.place):
                facts |= dict.fromkeys(facts_in(key, table), not comes)
        except (ValueError, KeyError, pa.ArrowException, ZodiacError) as error:
            raise _unreadable(record, error) from error
    return Change(
        tuple(rule for rule, back in rules.values() if back),
        tuple(rule for rule, back in rules.values() if not back),
        tuple(fact for fact, back in facts.items() if back),
        tuple(fact for fact, back in facts.items() if not back),
    )


def _unreadable(record: Record, error: Exception) -> StoreProblem:
    why = f"its facts cannot be read: {error}"
    return damaged_log(record.path, record.number, record.offset, why, record.version - 1)
