"""Reclaims terms, and memory of tables, that nothing uses any more: a part of it after each commit.

A cycle marks the terms of all tables, of the rules in force, and of whatever else holds ids (a `TermHolder`),
then frees the terms that are not marked; their ids are used again. Changes go on between its parts: a term
that is found, added, or written to a table meanwhile counts as used. Rows are marked from the last one down,
because a deletion moves the last row to a lower place.

No id is freed while someone holds ids that no table and no holder has: the marking ends, and the freeing
begins, between changes only, and not while a file is loaded (`TermSpace.held`).
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from zodiacedge.terms import IRI, BlankNode, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

# A part of a cycle: so many ids, and for each id that the change wrote so many more. Thus a cycle ends before
# the terms have grown by more than a fraction.
_PART = 8192
_PER_WRITTEN = 8
# The cost of a freed term, and of a rule, in ids.
_PER_FREED = 16
_PER_RULE = 16
_SWEPT = 4096
# A cycle comes at most so many times as late as usual.
_LONGEST = 8
# A cycle begins when so many terms may be unused: at least these, a share of all terms, a share of all ids.
LEAST = 16_384
_SHARE_OF_TERMS = 2
_SHARE_OF_IDS = 16
# A table shrinks that has room for so many times its rows, and for more than a few.
_SPACIOUS = 4
_FEW_ROWS = 64


class Phase(Enum):
    """The phase of a cycle."""

    IDLE = "idle"
    MARKING = "marking"
    SWEEPING = "sweeping"


class Reclamation:
    """The cycles of one database."""

    def __init__(self, store: Database) -> None:
        """Start idle."""
        self.phase = Phase.IDLE
        self.cycles = 0
        """The number of cycles that have ended."""
        self.freed = 0
        """The number of terms freed so far."""
        self._store = store
        self._least, self._part = LEAST, _PART
        self._used = store.dictionary.used
        self._ids = 0
        self._held, self._wait = 0, 1
        # Ids written to tables and deleted from them, since the last cycle and since the last part.
        self._deleted = 0
        self._written = 0
        self._tables: list[Table] = []
        self._place = 0
        self._rules: list[tuple[str, Rule]] = []
        self._constants: dict[str, frozenset[Term]] = {}
        self._swept = self._sweep_end = 0

    @property
    def unused(self) -> int:
        """The number of terms that may be unused: those that came since the last cycle, and deleted ones."""
        return max(self._store.dictionary.used - self._used, 0) + min(self._deleted, self._used)

    def loaded(self) -> None:
        """Take all terms as used: those of a version that was restored."""
        self._used = self._store.dictionary.used

    def wrote(self, inserted: Ids, deleted: Ids) -> None:
        """Note the rows that a commit inserts into a table and deletes from it."""
        self._written += inserted.size + deleted.size
        self._deleted += deleted.size
        if self.phase is not Phase.IDLE:
            self._store.dictionary.mark(inserted)

    def step(
        self, rules: Mapping[str, Rule], forget: Callable[[], None], leave: Callable[[Ids], None]
    ) -> None:
        """Do the next part of a cycle, or begin one if it is time; only between changes.

        Args:
            rules: The rules in force, by key.
            forget: Drops what callers have cached about classes, whose ids may be used again.
            leave: Takes moments that will be freed out of the windows.
        """
        work = self._part + _PER_WRITTEN * self._written
        self._written = 0
        if self.phase is Phase.IDLE:
            if not self._is_worth_it:
                return
            self._begin(rules)
        while self.phase is Phase.MARKING and work > 0:
            if self._tables:
                work -= self._mark_rows(work)
            elif self._rules:
                work -= _PER_RULE
                key, rule = self._rules.pop()
                if key in rules:
                    self._mark_rule(key, rule)
            elif self._store.terms.is_held:
                return
            else:
                self._finish_marking(rules, forget)
        while self.phase is Phase.SWEEPING and work > 0:
            work -= self._sweep(leave)

    @property
    def _is_worth_it(self) -> bool:
        unused = self.unused
        least = self._least
        if len(self._store.dictionary) > _SPACIOUS * (self._used + least):
            # Terms that came since may be all that keeps the dictionary large.
            least //= _SHARE_OF_IDS
        enough = max(least, self._used // _SHARE_OF_TERMS, self._ids // _SHARE_OF_IDS)
        return unused >= enough * self._wait or not self._least

    def abandon(self) -> None:
        """Give a cycle up: no term is freed before the next one."""
        if self.phase is not Phase.IDLE:
            self._tables.clear()
            self._rules.clear()
            self._store.dictionary.end_marking()
            self.phase = Phase.IDLE

    def _begin(self, rules: Mapping[str, Rule]) -> None:
        self.phase = Phase.MARKING
        self.cycles += 1
        self._store.dictionary.begin_marking()
        for table in self._store.windows.every_table():
            if _is_spacious(table):
                table.trim()
        self._tables = self._unmarked_tables()
        self._place = len(self._tables[-1]) if self._tables else 0
        self._rules = list(rules.items())
        # What is deleted from now on may be marked already.
        self._ids = self._deleted = 0

    def _unmarked_tables(self) -> list[Table]:
        """Return the tables that this cycle has not marked, as far as it has come."""
        store = self._store
        return [
            table
            for segment in (store.explicit, *store.segments.values())
            for table in segment.every_table()
            if table.cycle != self.cycles
        ]

    def _mark_rows(self, most: int) -> int:
        """Mark rows of the last of the tables, from the last row that is not marked down."""
        table = self._tables[-1]
        end = min(self._place, len(table))
        width = max(table.arity, 1)
        first = max(end - max(most // width, 1), 0)
        self._store.dictionary.mark(table.rows[first:end])
        self._place = first
        done = (end - first) * width + 1
        self._ids += done
        if not first:
            table.cycle = self.cycles
            if _is_spacious(table):
                table.trim()
                done += len(table)
            self._tables.pop()
            self._place = len(self._tables[-1]) if self._tables else 0
        return done

    def _mark_rule(self, key: str, rule: Rule) -> None:
        # The key is the rule's text up to the names of variables.
        constants = self._constants.get(key)
        if constants is None:
            constants = self._constants[key] = frozenset(constants_of(rule))
        self._store.terms.mark_constants(constants)

    def _finish_marking(self, rules: Mapping[str, Rule], forget: Callable[[], None]) -> None:
        """Mark what is left, and begin to sweep; if there are new tables, these come first."""
        store = self._store
        self._tables = self._unmarked_tables()
        if self._tables:
            self._place = len(self._tables[-1])
            return
        # Reports and the like hold these for a while: the next cycle may free them.
        self._held = sum(store.dictionary.mark(ids) for ids in store.terms.held_ids())
        store.mark_classes()
        # What only caches hold is dropped from them.
        store.terms.forget_unmarked()
        store.forget_unowned()
        forget()
        self._constants = {key: known for key, known in self._constants.items() if key in rules}
        store.terms.moments.unlisted()
        self._swept, self._sweep_end = 0, store.dictionary.begin_sweep()
        self.phase = Phase.SWEEPING

    def _sweep(self, leave: Callable[[Ids], None]) -> int:
        dictionary, moments = self._store.dictionary, self._store.terms.moments
        first = self._swept
        end = self._swept = min(first + _SWEPT, self._sweep_end)
        gone = moments.leave(first, end)
        if len(gone):
            leave(gone)
        freed = dictionary.sweep(first, end)
        moments.listed(first, end)
        self.freed += freed
        if end == self._sweep_end:
            dictionary.end_marking()
            dictionary.trim()
            moments.listed_anew()
            # Where the holders of many stay, cycles become rarer.
            self._wait = min(2 * self._wait, _LONGEST) if self._held > LEAST else 1
            self._used = dictionary.used - self._held
            self.phase = Phase.IDLE
        return end - first + 1 + freed * _PER_FREED


def _is_spacious(table: Table) -> bool:
    return table.capacity > _FEW_ROWS and len(table) * _SPACIOUS < table.capacity


def constants_of(node: object) -> Iterator[Term]:
    """Yield the terms that a rule mentions."""
    pending: list[object] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, IRI | BlankNode | Literal):
            yield part
        elif isinstance(part, tuple):
            pending.extend(part)
        else:
            kind: type = type(part)
            pending.extend(getattr(part, name) for name in _compared_fields(kind))


@cache
def _compared_fields(kind: type) -> tuple[str, ...]:
    return tuple(part.name for part in fields(kind) if part.compare) if is_dataclass(kind) else ()
