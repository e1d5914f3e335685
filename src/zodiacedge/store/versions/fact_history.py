"""The history of single facts in the log: who stated explicit facts, and which versions changed a fact."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from zodiacedge.explain.history import FactChange
from zodiacedge.explain.proof import Statement
from zodiacedge.explain.why_changed import Touched, touching
from zodiacedge.store.log.record import read_entry
from zodiacedge.store.versions.replay import listed_facts
from zodiacedge.store.versions.restore import rules_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from zodiacedge.explain.proof import Proof
    from zodiacedge.language.ast import Fact
    from zodiacedge.store.log.record import Entry
    from zodiacedge.store.log.record_format import Record

# The statements of so many facts are kept, those of the newest records.
_MOST_FACTS = 200_000


class Statements:
    """Who stated explicit facts and when, as far as the log goes back."""

    def __init__(self) -> None:
        """Start with no record."""
        self._stated: dict[Fact, Statement] = {}
        self.version = 0

    def read(self, records: Iterable[Record]) -> None:
        """Read the records of later versions, in their order."""
        entries = [(record, read_entry(record)) for record in records]
        kept: list[tuple[Record, Entry]] = []
        left = _MOST_FACTS - len(self._stated)
        for record, entry in reversed(entries):
            left -= entry.facts_added
            if left < 0:
                break
            kept.append((record, entry))
        for record, entry in reversed(kept):
            statement = Statement(entry.version, entry.author, moment_of(entry), entry.message)
            for is_added, fact in _facts(record):
                if is_added:
                    self._stated[fact] = statement
                else:
                    self._stated.pop(fact, None)
        if entries:
            self.version = entries[-1][1].version

    def of(self, facts: Collection[Fact]) -> Mapping[Fact, Statement]:
        """Return the statements of explicit facts, where they are known."""
        return {fact: self._stated[fact] for fact in facts if fact in self._stated}


def fact_change(record: Record, proof: Proof, *, inserted: bool) -> FactChange:
    """Return what the change of a record is for a fact.

    Args:
        record: The record of the version.
        proof: The proof that it made, or the one that it broke.
        inserted: Whether the fact was inserted.
    """
    entry = read_entry(record)
    added, removed = rules_of(entry.rules_added), rules_of(entry.rules_removed)
    touched = Touched(added, removed, _facts(record))
    edit = touching(touched, proof, inserted=inserted)
    edit = replace(
        edit,
        version=entry.version,
        author=entry.author,
        time=moment_of(entry),
        message=entry.message,
        stream=(entry.stream, entry.batch) if entry.stream else None,
        all_facts_added=entry.facts_added,
        all_facts_removed=entry.facts_removed,
    )
    return FactChange(entry.version, inserted, edit, proof)


def moment_of(entry: Entry) -> datetime | None:
    """Return the time of a version, or None if the log has another form of it."""
    with suppress(ValueError):
        return datetime.fromisoformat(entry.moment)
    return None


def _facts(record: Record) -> Iterator[tuple[bool, Fact]]:
    for is_added, facts in listed_facts(record):
        for fact in facts:
            yield is_added, fact
