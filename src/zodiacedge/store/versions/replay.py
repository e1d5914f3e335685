"""Converts log records to changes, to replay or to undo them.

To replay records, or to undo one, the engine loads the facts of files beside the log itself. To undo several
records, their facts are listed, because records may share facts.
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
from zodiacedge.store.log.record import facts_in, facts_of, malformed, needed_files, read_entry
from zodiacedge.store.versions.restore import rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from zodiacedge.engine.api import State
    from zodiacedge.engine.persistence import AnyPersistence, PartitionKey
    from zodiacedge.language.ast import Fact, Rule
    from zodiacedge.store.log.record import Entry
    from zodiacedge.store.log.record_format import Record

# Records of at most this size are combined.
_SMALL = 16 << 10


def replayed_changes(
    records: Iterable[Record], state: Callable[[], State], persistence: AnyPersistence
) -> Iterator[tuple[Change, list[Entry]]]:
    """Yield the changes of records with their entries; consecutive small records become one change.

    A state depends only on rules and explicit facts, not on their history, so combining saves time.

    Args:
        records: The records, in order.
        state: Returns the current state, to which the next change is applied.
        persistence: The persistence adapter of the engine.
    """
    small: list[tuple[Record, Entry]] = []
    for record in records:
        entry = read_entry(record)
        if _is_small(record, entry):
            small.append((record, entry))
            continue
        if small:
            yield _combined(small), [small_entry for _, small_entry in small]
            small = []
        yield _change(record, entry, state(), persistence), [entry]
    if small:
        yield _combined(small), [small_entry for _, small_entry in small]


def replayed_change(record: Record, state: State, persistence: AnyPersistence) -> tuple[Change, Entry]:
    """Return the change of one record, to be applied to a state, with its entry."""
    entry = read_entry(record)
    return _change(record, entry, state, persistence), entry


def _is_small(record: Record, entry: Entry) -> bool:
    """Return whether a record has no rules, no packs, few facts and no files beside the log."""
    if entry.rules_added or entry.rules_removed or entry.packs or len(record.payload) > _SMALL:
        return False
    return not needed_files(record)


def _combined(small: Iterable[tuple[Record, Entry]]) -> Change:
    """Return the change of several records, in which the last record of a fact wins."""
    is_inserted: dict[Fact, bool] = {}
    for record, _ in small:
        with _reading(record):
            for inserted, facts in listed_facts(record):
                is_inserted |= dict.fromkeys(facts, inserted)
    return Change(
        (),
        (),
        tuple(fact for fact, inserted in is_inserted.items() if inserted),
        tuple(fact for fact, inserted in is_inserted.items() if not inserted),
        accepted=True,
    )


def _change(
    record: Record, entry: Entry, state: State, persistence: AnyPersistence, *, undo: bool = False
) -> Change:
    """Return the change of a record, or the one that undoes it, with its facts in batches of the engine."""
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
    if undo:
        return Change(removed, added, loaded=unloaded, unloaded=loaded, accepted=True)
    return Change(added, removed, loaded=loaded, unloaded=unloaded, accepted=True, packs=entry.packs)


def change_back(records: Sequence[Record], state: State, persistence: AnyPersistence) -> Change:
    """Return the change that undoes the last records, but for the owners of rules.

    Args:
        records: The records, in order, up to that of the version in force.
        state: The state of that version.
        persistence: The persistence adapter of the engine.
    """
    if len(records) == 1:
        return _change(records[0], read_entry(records[0]), state, persistence, undo=True)
    rules: dict[str, tuple[Rule, bool]] = {}
    newest: dict[str, Rule] = {}
    facts_added: dict[Fact, bool] = {}
    is_present: dict[str | Fact, bool] = {}
    # The oldest record of a rule or fact says whether to add it again, the newest whether it is there now.
    for record in reversed(records):
        entry = read_entry(record)
        with _reading(record):
            # By key, because a rule may have been added again with other variable names or another label; a
            # record that gives it another label adds and removes it.
            for texts, inserted in ((entry.rules_added, True), (entry.rules_removed, False)):
                for rule in rules_of(texts):
                    key = rule_key(resolve(rule))
                    rules[key] = rule, not inserted
                    is_present.setdefault(key, inserted)
                    newest.setdefault(key, rule)
            for inserted, facts in listed_facts(record):
                for fact in facts:
                    facts_added[fact] = not inserted
                    is_present.setdefault(fact, inserted)
    stays = {key for key, (rule, add) in rules.items() if add and rule.label == newest[key].label}
    return Change(
        tuple(rule for key, (rule, add) in rules.items() if add and not (is_present[key] and key in stays)),
        tuple(rule for key, (rule, _) in rules.items() if is_present[key] and key not in stays),
        tuple(fact for fact, add in facts_added.items() if add and not is_present[fact]),
        tuple(fact for fact, add in facts_added.items() if not add and is_present[fact]),
        accepted=True,
    )


def listed_facts(record: Record) -> Iterator[tuple[bool, Iterator[Fact]]]:
    """Yield the facts of each partition of a record, with whether they are inserted."""
    for inserted, key, facts in facts_of(record.payload):
        if not isinstance(facts, str):
            yield inserted, facts_in(key, facts)
            continue
        for _, table in LogPartitions(record.location, ((key, facts),)):
            yield inserted, facts_in(key, table)


@contextmanager
def _reading(record: Record) -> Iterator[None]:
    """Raise problems of a record as damage of the log."""
    try:
        yield
    except (UsageProblem, LimitReached, EvaluationProblem):
        # The record is not damaged: Java may be missing, for example.
        raise
    except (ValueError, KeyError, pa.ArrowException, ZodiacError) as error:
        raise malformed(record, f"its facts cannot be read: {error}") from error
