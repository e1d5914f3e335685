"""`zodiac stream`: files that arrive in a folder, each batch one change of a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import writing
from zodiacedge.cli.options import (
    FILE,
    Amount,
    EngineOptions,
    delimiter_option,
    engine_options,
    header_option,
    ignore_option,
    limit_options,
    quarantine_option,
    store_argument,
    wait_option,
)
from zodiacedge.cli.show import show_counts
from zodiacedge.errors import Diagnostic, ZodiacError, counted
from zodiacedge.util.freed_memory import hold_little

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zodiacedge.cli.console import Console
    from zodiacedge.engine.limits import Limits
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.pipeline.stream import Applied

_FORMATS = ("nt", "nq", "csv", "tsv", "jsonl", "parquet", "arrow", "ttl", "trig", "rdf", "jsonld")


@click.command("stream")
@store_argument
@click.option(
    "--from", "folder", required=True, type=FILE, metavar="DIR", help="The folder that files arrive in."
)
@click.option("--once", is_flag=True, help="Apply the files that exist, then end.")
@click.option(
    "--trigger",
    type=Amount(min=0, min_open=True),
    metavar="SECONDS",
    help="How often to look for files.  [default: 1]",
)
@click.option("--format", "form", type=click.Choice(_FORMATS), help="Only files of this format.")
@click.option(
    "--relation",
    default="",
    metavar="NAME",
    help="The relation of rows in tables, not the file's name.",
)
@header_option
@delimiter_option
@click.option("--most-files", type=click.IntRange(min=1), metavar="N", help="Limit of files per change.")
@quarantine_option
@click.option(
    "--checkpoint",
    type=FILE,
    metavar="DIR",
    help="A folder to note the files taken in, if not the store's.",
)
@click.option(
    "--clock",
    type=click.Choice(("system",)),
    help="Move the clock to the time of the system with every change, and when something is due.",
)
@wait_option
@limit_options
@engine_options
@common
@ignore_option
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    folder: str,
    once: bool,
    trigger: float | None,
    form: str | None,
    relation: str,
    header: bool,
    delimiter: str,
    most_files: int | None,
    quarantine: str | None,
    checkpoint: str | None,
    clock: str | None,
    wait: float,
    limits: Limits,
    on: EngineOptions,
) -> None:
    r"""Follow a folder: the files that arrive together are one change of the store, exactly once.

    The files are found by Spark if that is the engine, and without it otherwise. Move files into the folder
    when they are complete. Ctrl-C ends the stream after the current change; started again, it continues with
    the next file, and applies no file twice.

    \b
    Example:
      zodiac stream farm.zodiac --from landing --once
      zodiac stream farm.zodiac --from landing --trigger 5 --quarantine bad-lines
    """
    if once and trigger is not None:
        raise click.UsageError("--trigger is for a stream that goes on: leave out --once.")
    hold_little()
    from zodiacedge.pipeline.stream import FileSelection, Stream, spark_cluster  # noqa: PLC0415 - loads the engine

    batches: list[Applied] = []

    def report(applied: Applied) -> None:
        batches.append(applied)
        console.text(_line(applied))
        for bad in applied.examples:
            console.note(f"  {bad}")
        console.findings(map(_missing_file, applied.gone))

    kb = writing(console, store, on, wait=wait, clock=clock or "", limits=limits)
    try:
        bad_lines, state = (Path(path) if path else None for path in (quarantine, checkpoint))
        reading = FileSelection(form or "", relation, header, most_files, bad_lines, state, delimiter)
        cluster = spark_cluster(on.master) if on.engine == "spark" else None
        stream = Stream(kb, folder, reading, report, cluster)
    except ZodiacError:
        kb.close()
        raise
    try:
        if not once:
            console.text(f"following {folder} into {store}; Ctrl-C ends it")
        stream.follow(None if once else trigger or 1.0)
    except ZodiacError:
        console.beside = _document(kb, batches)
        raise
    finally:
        kb.close()
        show_counts(console, kb)
        if console.as_json and not console.beside:
            console.json(_document(kb, batches))


def _document(kb: KnowledgeBase, batches: Sequence[Applied]) -> dict[str, object]:
    return {"version": kb.version, "batches": [batch.to_dict() for batch in batches]}


def _missing_file(path: str) -> Diagnostic:
    return Diagnostic(
        "W016",
        f"{path} arrived, and was removed before it could be read: its facts are not in the store",
        "move it into the folder again, under another name: a file is applied once, by its name",
        severity="warning",
    )


def _line(applied: Applied) -> str:
    if applied.again:
        return f"batch {applied.number}: {counted(applied.files, 'file')}, already applied"
    bad = f", {counted(applied.bad_lines, 'bad line')} skipped" if applied.bad_lines else ""
    bad += f", {counted(len(applied.gone), 'file')} gone" if applied.gone else ""
    return (
        f"batch {applied.number}: {counted(applied.files, 'file')}, "
        f"+{counted(applied.facts_added, 'fact')}{bad}, version {applied.version}, {applied.seconds:.2f} s"
    )
