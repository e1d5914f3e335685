"""`zodiac pack diff`: the delta between two versions of a pack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.options import FILE, LOCAL_FILE
from zodiacedge.cli.output import write_bytes
from zodiacedge.cli.packs.show import written
from zodiacedge.errors import Diagnostic, PackProblem, counted
from zodiacedge.language.printer import format_rule
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.packs.delta import delta_between
from zodiacedge.packs.file import encoded, file_name, read_pack
from zodiacedge.packs.pack import Pack

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("diff")
@click.argument("before", type=FILE, metavar="OLD")
@click.argument("after", type=FILE, metavar="NEW")
@click.option(
    "--out", type=LOCAL_FILE, metavar="FILE", help="Write the delta to a file; `.` names it itself."
)
@common
def diff(console: Console, *, before: str, after: str, out: str | None) -> None:
    r"""Show the rules that only one of two versions of a pack has, and write the delta between them.

    A delta upgrades a store that has the old version: zodiac pack install STORE DELTA.

    \b
    Example:
      zodiac pack diff diagnosis-7.zpack diagnosis-8.zpack --out .
    """
    old, new = _pack(before), _pack(after)
    delta = delta_between(old, new)
    data = encoded(delta)
    for number in delta.removed:
        console.text(f"- {written(old.rules[number], {**DEFAULT_PREFIXES, **old.manifest.prefixes})}")
    for rule in delta.added.values():
        console.text(f"+ {written(rule, {**DEFAULT_PREFIXES, **new.manifest.prefixes})}")
    added, removed = counted(len(delta.added), "rule"), counted(len(delta.removed), "rule")
    console.text(f"delta {delta}: {added} added, {removed} removed, {len(data):,} bytes")
    if out:
        path = Path(file_name(delta)) if out == "." else Path(out)
        write_bytes(path, data, "name another file with --out")
        console.text(f"wrote {path}")
    if console.as_json:
        console.json(
            {
                "name": delta.name,
                "versions": [delta.base, delta.manifest.version],
                "added": [format_rule(rule, {}) for rule in delta.added.values()],
                "removed": [format_rule(old.rules[number], {}) for number in delta.removed],
                "bytes": len(data),
            }
        )


def _pack(file: str) -> Pack:
    pack = read_pack(file)
    if isinstance(pack, Pack):
        return pack
    why = f"{file} is the delta {pack}, not a pack"
    raise PackProblem(Diagnostic("P009", why, "name the files of two whole packs"))
