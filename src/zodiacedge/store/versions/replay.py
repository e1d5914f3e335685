"""Turns records of the log into changes: to replay them, or to undo them.

Replaying never lists the facts of files beside the log: the engine loads the files itself. So it does to undo
one record. Several records may have the same facts, and are listed to undo them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from zodiacedge.errors import EvaluationProblem, LimitReached, UsageProblem, ZodiacError
from zodiacedge.kb.change import Change
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.safety import resolve
from zodiacedge.store.log.large_facts import LogPartitions
from zodiacedge.store.log.record import facts_in, facts_of, needed_files, read_entry
from zodiacedge.store.problems import damaged_log, not_reproduced
from zodiacedge.store.versions.restore import rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from zodiacedge.engine.api import State
    from zodiacedge.engine.persistence import AnyPersistence, PartitionKey
    from zodiacedge.language.ast import Fact, Rule
    from zodiacedge.store.location.base import Location
    from zodiacedge.store.log.record import Entry
    from zodiacedge.store.log.record_format import Record

# Facts of a larger record are loaded like those of a file, not one by one.
_SMALL = 16 << 10


def replayed_changes(
    records: Iterable[Record], state: Callable[[], State], persistence: AnyPersistence
) -> Iterator[tuple[Change, list[Entry]]]:
    """Yield the changes of records with their entries; small ones that follow each other become one change.

    A state depends on rules and explicit facts only, not on their history, and a thousand single changes take
    little longer than one.

    Args:
        records: The records, in order.
        state: Returns the state that the next change is made to.
        persistence: The adapter of the engine.
    """
    small: list[tuple[Record, Entry]] = []
    for record in records:
        entry = read_entry(record)
        if _is_small(record, entry):
            small.append((record, entry))
            continue
        if small:
            yield _together(small), [one for _, one in small]
            small = []
        yield _change(record, entry, state(), persistence), [entry]
    if small:
        yield _together(small), [one for _, one in small]


def _is_small(record: Record, entry: Entry) -> bool:
    """Whether a record has no rules and few facts; one that names files has many."""
    if entry.rules_added or entry.rules_removed or len(record.payload) > _SMALL:
        return False
    return not needed_files(record)


def _together(small: Iterable[tuple[Record, Entry]]) -> Change:
    """Return the change of several records: the last one decides about a fact."""
    facts: dict[Fact, bool] = {}
    for record, _ in small:
        with _reading(record):
            for inserted, some in _listed(record):
                facts |= dict.fromkeys(some, inserted)
    return Change(
        (),
        (),
        tuple(fact for fact, inserted in facts.items() if inserted),
        tuple(fact for fact, inserted in facts.items() if not inserted),
    )


def _change(
    record: Record, entry: Entry, state: State, persistence: AnyPersistence, *, back: bool = False
) -> Change:
    """Return the change of a record, or the one that undoes it, with facts loaded like those of a file."""
    batches = {True: state.batch(), False: state.batch()}
    beside: dict[bool, list[tuple[PartitionKey, str]]] = {True: [], False: []}
    with _reading(record):
        for inserted, key, facts in facts_of(record.payload):
            if isinstance(facts, str):
                beside[inserted].append((key, facts))
            else:
                persistence.add_partition(batches[inserted], key, facts)
        for inserted, named in beside.items():
            if named:
                persistence.add_partitions(batches[inserted], LogPartitions(record.location, tuple(named)))
        added, removed = rules_of(entry.rules_added), rules_of(entry.rules_removed)
    loaded, unloaded = ((batch,) if batch.predicates() else () for batch in batches.values())
    if back:
        return Change(removed, added, loaded=unloaded, unloaded=loaded)
    return Change(added, removed, loaded=loaded, unloaded=unloaded)


def check(location: Location, entry: Entry, counts: tuple[int, int]) -> None:
    """Raise if a state has other counts than a record has."""
    explicit, derived = counts
    if counts != (entry.explicit, entry.derived):
        why = f"{explicit:,} and {derived:,} facts instead of {entry.explicit:,} and {entry.derived:,}"
        raise not_reproduced(location, entry.version, why)


def change_back(records: Sequence[Record], state: State, persistence: AnyPersistence) -> Change:
    """Return the change that undoes records, given in order.

    Args:
        records: The records; the last one is that of the version in force.
        state: The state of that version.
        persistence: The adapter of the engine.
    """
    if len(records) == 1:
        return _change(records[0], read_entry(records[0]), state, persistence, back=True)
    rules: dict[str, tuple[Rule, bool]] = {}
    facts: dict[Fact, bool] = {}
    # The oldest comes last: what it deleted was there before all of them.
    for record in reversed(records):
        entry = read_entry(record)
        with _reading(record):
            # A rule that was added again may be written in another way.
            for texts, back in ((entry.rules_added, False), (entry.rules_removed, True)):
                rules |= {rule_key(resolve(rule)): (rule, back) for rule in rules_of(texts)}
            for inserted, some in _listed(record):
                facts |= dict.fromkeys(some, not inserted)
    return Change(
        tuple(rule for rule, back in rules.values() if back),
        tuple(rule for rule, back in rules.values() if not back),
        tuple(fact for fact, back in facts.items() if back),
        tuple(fact for fact, back in facts.items() if not back),
    )


def _listed(record: Record) -> Iterator[tuple[bool, Iterator[Fact]]]:
    """Yield the facts of a record one by one, with whether they are inserted."""
    for inserted, key, facts in facts_of(record.payload):
        if not isinstance(facts, str):
            yield inserted, facts_in(key, facts)
            continue
        for _, table in LogPartitions(record.location, ((key, facts),)):
            yield inserted, facts_in(key, table)


@contextmanager
def _reading(record: Record) -> Iterator[None]:
    """Raise what is wrong with a record as damage of the log."""
    try:
        yield
    except (UsageProblem, LimitReached, EvaluationProblem):
        # Not the fault of the record: no Java to read its files with, say.
        raise
    except (ValueError, KeyError, pa.ArrowException, ZodiacError) as error:
        why = f"its facts cannot be read: {error}"
        raise damaged_log(record.path, record.number, record.offset, why, record.version - 1) from error
