"""Sweeping: which files no version of the last time needs, and removing them.

Entries of Delta's log go first, the newest before the older that it builds on, then files of our log, facts
last: a sweep that is interrupted leaves files that nobody needs, never a version whose files are gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from zodiacedge.store import log
from zodiacedge.store.problems import unwritable
from zodiacedge.store.records import needed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta
    from pathlib import Path

    from zodiacedge.store.layout import Layout
    from zodiacedge.store.table import Commit, FactTable


@dataclass(frozen=True, slots=True)
class Swept:
    """What a vacuum removed, and the first version that is left."""

    files: int
    bytes: int
    first_version: int


@dataclass(frozen=True, slots=True)
class Doomed:
    """What is to be removed, in order, and the oldest commit that stays."""

    files: tuple[Path, ...]
    oldest: Commit


def doomed_files(layout: Layout, table: FactTable, kept: timedelta) -> Doomed:
    """Find what no version of the last time needs: old parts of both logs, and files that nobody names."""
    since = datetime.now(UTC) - kept
    commits = list(table.commits())
    stay = [commits[0]]
    for one in commits[1:]:
        # A version of the time that is kept may start from the last commit before it.
        if datetime.fromisoformat(stay[-1].snapshot.moment) <= since:
            break
        stay.append(one)
    oldest = stay[-1]
    used = {layout.root / name for one in stay for name in table.files(one)}
    entries = [path for path in layout.delta_log.glob("[0-9]*") if int(path.name[:20]) < oldest.number]
    entries.sort(reverse=True)
    logs = log.files(layout.log)
    following = [first for first, _ in logs[1:]]
    last = oldest.snapshot.version + 1
    old = [path for (_, path), after in zip(logs, following, strict=False) if after <= last]
    facts = [path for path in layout.root.glob("relation=*/segment=*/*") if path not in used]
    return Doomed((*entries, *old, *_beside(layout, logs[len(old) :]), *facts), oldest)


def tell(doomed: Doomed) -> Swept:
    """Return what sweeping would remove."""
    size = sum(path.stat().st_size for path in doomed.files)
    return Swept(len(doomed.files), size, doomed.oldest.snapshot.version)


def sweep(layout: Layout, table: FactTable, doomed: Doomed) -> Swept:
    """Remove it, and the folders that are empty then."""
    found = tell(doomed)
    try:
        # Delta can do without its older entries once it has a checkpoint.
        table.checkpoint(doomed.oldest)
        for path in doomed.files:
            path.unlink()
        for folder in (*layout.root.glob("relation=*/segment=*"), *layout.root.glob("relation=*")):
            if not any(folder.iterdir()):
                folder.rmdir()
    except OSError as error:
        raise unwritable(layout.root, error) from error
    return found


def _beside(layout: Layout, logs: list[tuple[int, Path]]) -> Iterator[Path]:
    """Yield the files beside the log that none of some of its files needs."""
    names: set[str] = set()
    for number, (first, path) in enumerate(logs):
        for record in log.read_file(path, first, log.Scan(), last=number == len(logs) - 1):
            names |= needed(record)
    yield from (path for path in layout.log.glob("*.parquet") if path.name not in names)
