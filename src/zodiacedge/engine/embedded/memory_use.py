"""What a state holds in memory, and how much of it could be given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.api import MemoryUse
from zodiacedge.engine.embedded.expressions.host_functions import HostFunction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.storage.table import Table


def memory_use(store: Database, profiles: Iterable[NodeRules]) -> Iterator[MemoryUse]:
    """Yield what a database holds, and the programs that are kept for its changes."""
    dictionary, reclamation = store.dictionary, store.reclamation
    used = max(dictionary.used, 1)
    # Terms that may be unused, at the mean size of a term.
    unused = min(reclamation.unused, used) * (dictionary.nbytes - dictionary.wasted) // used
    yield MemoryUse("terms", dictionary.used, dictionary.nbytes, dictionary.wasted + unused)
    segments = (store.explicit, store.windows, *store.segments.values())
    tables = [table for segment in segments for table in segment.every_table()]
    yield _rows("rows", tables)
    yield MemoryUse("indexes", sum(_indexes(table) for table in tables), sum(t.nbytes[1] for t in tables), 0)
    moments = store.terms.moments
    yield MemoryUse("moments", len(moments), moments.nbytes, moments.unused_bytes)
    arranged = [one for segment in segments for one in segment.arrangements.values()]
    yield MemoryUse("arrangements", sum(map(len, arranged)), sum(one.nbytes for one in arranged), 0)
    overlays = [
        table
        for segment in segments
        for overlay in segment.overlays.values()
        for table in (overlay.plus, overlay.minus)
    ]
    yield _buffers("overlays", overlays)
    programs = [program for profile in profiles for program in profile.programs()]
    buffers = _buffers("kept plans", [table for one in programs for table in (one.delta, one.target)])
    yield buffers._replace(size=len(programs))
    functions = [one for one in store.terms.host_functions.values() if isinstance(one, HostFunction)]
    yield _buffers("results of functions", [table for one in functions for table in (one.known, one.wanted)])


def _rows(name: str, tables: Iterable[Table]) -> MemoryUse:
    """Return the rows of tables, and the room that they have for more."""
    tables = list(tables)
    rows = sum(map(len, tables))
    size = sum(table.nbytes[0] for table in tables)
    unused = sum((table.capacity - len(table)) * table.arity * 4 for table in tables)
    return MemoryUse(name, rows, size, unused)


def _buffers(name: str, tables: Iterable[Table]) -> MemoryUse:
    """Return tables that are empty between changes, or that could be."""
    tables = list(tables)
    size = sum(sum(table.nbytes) for table in tables)
    return MemoryUse(name, sum(map(len, tables)), size, size)


def _indexes(table: Table) -> int:
    return table.index_count + table.has_hash_set
