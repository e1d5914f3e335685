"""`zodiac stats`: facts and bytes of a store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import reading
from zodiacedge.cli.options import EngineOptions, engine_options, store_argument
from zodiacedge.cli.show import PREDICATE_COLUMNS, counts, predicate_rows, show_counts
from zodiacedge.cli.store.retain import shown, within
from zodiacedge.errors import counted

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("stats")
@store_argument
@engine_options
@common
def command(console: Console, *, store: str, on: EngineOptions) -> None:
    r"""Count facts per predicate, the bytes of the store and in memory, and what could be given back.

    \b
    Example:
      zodiac stats farm.zodiac --json
    """
    started = time.perf_counter()
    with reading(console, store, on=on) as kb, console.progress("counting facts"):
        seconds = time.perf_counter() - started
        explicit = kb.explicit_counts()
        size = kb.store.sizes()
        rows = predicate_rows(kb)
        held = kb.held()
        unused = kb.store.unused()
    if rows:
        console.table(PREDICATE_COLUMNS, rows)
    show_counts(console, kb)
    console.text(
        f"table {size.table:,} bytes, log {size.log:,} bytes, in use {size.files:,} files; "
        f"opened in {seconds:.3f} s"
    )
    console.text(
        f"versions are kept for {shown(kb.retained)}{within(kb.retained_bytes)}; "
        f"older ones have {counted(unused.files, 'file')}, "
        f"{unused.bytes:,} bytes, which will be removed"
    )
    if held:
        console.table(
            ("in memory", "number", "bytes", "could be given back"),
            [(one.part, f"{one.size:,}", f"{one.bytes:,}", f"{one.unused_bytes:,}") for one in held],
        )
    if console.as_json:
        console.json(
            counts(kb)
            | {"explicit_per_predicate": explicit, "rules": len(kb.rules), "seconds": seconds}
            | {"table_bytes": size.table, "log_bytes": size.log, "files": size.files}
            | {"kept_seconds": kb.retained.total_seconds(), "kept_bytes": kb.retained_bytes}
            | {"unused_files": unused.files, "unused_bytes": unused.bytes}
            | {"held": [one._asdict() for one in held]}
        )
