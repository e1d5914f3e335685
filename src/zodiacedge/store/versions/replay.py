"""From records of the log back to changes: to make them again, or to undo them.

Replaying never lists the facts of files beside the log: the engine takes the files, in its own form and by
its own means. So it does to undo one record. Several may speak of the same facts, and are listed for that.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from zodiacedge.errors import EvaluationProblem, LimitReached, UsageProblem, ZodiacError
from zodiacedge.kb.change import Change
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.safety import resolve
from zodiacedge.store.log.entry import facts_of
from zodiacedge.store.log.large_facts import LogParts
from zodiacedge.store.log.records import needed, said
from zodiacedge.store.log.terms import facts_in
from zodiacedge.store.problems import damaged_log, not_reproduced
from zodiacedge.store.versions.restore import rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from zodiacedge.engine.api import State
    from zodiacedge.engine.persistence import AnyPersistence, PartitionKey
    from zodiacedge.language.ast import Fact, Rule
    from zodiacedge.store.location.base import Location
    from zodiacedge.store.log.entry import Entry
    from zodiacedge.store.log.record_format import Record

# Facts of a record of more bytes than this are loaded as those of a file are, not one by one.
_SMALL = 16 << 10


def changes_again(
    records: Iterable[Record], state: Callable[[], State], persistence: AnyPersistence
) -> Iterator[tuple[Change, list[Entry]]]:
    """Yield the changes of records, with what each says; small ones that follow each other are one change.

    A state is what rules and explicit facts come to, so it is all the same how they came, and a thousand
    single changes take little longer than one.

    Args:
        records: The records, in their order.
        state: The state that the next change is made to.
        persistence: How facts get into it.
    """
    small: list[tuple[Record, Entry]] = []
    for record in records:
        entry = said(record)
        if _is_small(record, entry):
            small.append((record, entry))
            continue
        if small:
            yield _together(small), [one for _, one in small]
            small = []
        yield _again(record, entry, state(), persistence), [entry]
    if small:
        yield _together(small), [one for _, one in small]


def _is_small(record: Record, entry: Entry) -> bool:
    """Tell whether a record brings no rules and few facts; one that names files brings many."""
    if entry.rules_added or entry.rules_removed or len(record.payload) > _SMALL:
        return False
    return not needed(record)


def _together(small: Iterable[tuple[Record, Entry]]) -> Change:
    """Return what the facts of some records come to: of each fact, what was said last."""
    facts: dict[Fact, bool] = {}
    for record, _ in small:
        with _reading(record):
            for comes, some in _listed(record):
                facts |= dict.fromkeys(some, comes)
    return Change(
        (),
        (),
        tuple(fact for fact, comes in facts.items() if comes),
        tuple(fact for fact, comes in facts.items() if not comes),
    )


def _again(
    record: Record, entry: Entry, state: State, persistence: AnyPersistence, *, back: bool = False
) -> Change:
    """Return the change of a record, or the one that undoes it, its facts loaded as those of a file are."""
    batches = {True: state.batch(), False: state.batch()}
    beside: dict[bool, list[tuple[PartitionKey, str]]] = {True: [], False: []}
    with _reading(record):
        for comes, key, facts in facts_of(record.payload):
            if isinstance(facts, str):
                beside[comes].append((key, facts))
            else:
                persistence.add_partition(batches[comes], key, facts)
        for comes, named in beside.items():
            if named:
                persistence.add_partitions(batches[comes], LogParts(record.location, tuple(named)))
        added, removed = rules_of(entry.rules_added), rules_of(entry.rules_removed)
    come, go = ((batch,) if batch.predicates() else () for batch in batches.values())
    if back:
        return Change(removed, added, loaded=go, unloaded=come)
    return Change(added, removed, loaded=come, unloaded=go)


def check(location: Location, entry: Entry, found: tuple[int, int]) -> None:
    """Raise if a state has other counts than a record says that its change came to."""
    explicit, derived = found
    if found != (entry.explicit, entry.derived):
        why = f"{explicit:,} and {derived:,} facts instead of {entry.explicit:,} and {entry.derived:,}"
        raise not_reproduced(location, entry.version, why)


def change_back(records: Sequence[Record], state: State, persistence: AnyPersistence) -> Change:
    """Return the one change that undoes all of some records, given in their order.

    Args:
        records: The records, the last one that of the version in force.
        state: The state of that version.
        persistence: How facts get into a change of it.
    """
    if len(records) == 1:
        return _again(records[0], said(records[0]), state, persistence, back=True)
    rules: dict[str, tuple[Rule, bool]] = {}
    facts: dict[Fact, bool] = {}
    # The oldest speaks last: what it took away was there before all of them.
    for record in reversed(records):
        entry = said(record)
        with _reading(record):
            # A rule that came again may have come in other words.
            for texts, back in ((entry.rules_added, False), (entry.rules_removed, True)):
                rules |= {rule_key(resolve(rule)): (rule, back) for rule in rules_of(texts)}
            for comes, some in _listed(record):
                facts |= dict.fromkeys(some, not comes)
    return Change(
        tuple(rule for rule, back in rules.values() if back),
        tuple(rule for rule, back in rules.values() if not back),
        tuple(fact for fact, back in facts.items() if back),
        tuple(fact for fact, back in facts.items() if not back),
    )


def _listed(record: Record) -> Iterator[tuple[bool, Iterator[Fact]]]:
    """Yield the facts of a record one by one, with whether they come."""
    for comes, key, facts in facts_of(record.payload):
        if not isinstance(facts, str):
            yield comes, facts_in(key, facts)
            continue
        for _, table in LogParts(record.location, ((key, facts),)):
            yield comes, facts_in(key, table)


@contextmanager
def _reading(record: Record) -> Iterator[None]:
    """Tell what is wrong with a record as what it is: damage of the log."""
    try:
        yield
    except (UsageProblem, LimitReached, EvaluationProblem):
        # Not the record's fault: there is no Java to read its files with, say.
        raise
    except (ValueError, KeyError, pa.ArrowException, ZodiacError) as error:
        why = f"its facts cannot be read: {error}"
        raise damaged_log(record.path, record.number, record.offset, why, record.version - 1) from error
