"""`zodiac stats`: facts and bytes of a store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_store import PREDICATE_COLUMNS, counts, predicate_rows, reading, show_counts
from zodiacedge.cli.options import EngineOptions, engine_options, store_argument

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("stats")
@store_argument
@engine_options
@common
def command(console: Console, *, store: str, on: EngineOptions) -> None:
    r"""Count facts per predicate, and the bytes of the store.

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
    if rows:
        console.table(PREDICATE_COLUMNS, rows)
    show_counts(console, kb)
    console.text(
        f"table {size.table:,} bytes, log {size.log:,} bytes, in use {size.files:,} files; "
        f"opened in {seconds:.3f} s"
    )
    if console.as_json:
        console.json(
            counts(kb)
            | {"explicit_per_predicate": explicit, "rules": len(kb.rules), "seconds": seconds}
            | {"table_bytes": size.table, "log_bytes": size.log, "files": size.files}
        )
