"""`zodiac pack build`: one file from the folder of a pack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.options import FILE, LOCAL_FILE
from zodiacedge.cli.output import write_bytes
from zodiacedge.errors import counted
from zodiacedge.packs.file import encoded, file_name
from zodiacedge.packs.source import pack_of_folder

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("build")
@click.argument("folder", type=FILE, metavar="DIR")
@click.option("--out", type=LOCAL_FILE, metavar="FILE", help="The file.  [default: NAME-VERSION.zpack]")
@click.option("--dry-run", is_flag=True, help="Check the pack; write nothing.")
@common
def build(console: Console, *, folder: str, out: str | None, dry_run: bool) -> None:
    r"""Make the file of a pack from a folder with pack.toml and .rules files.

    The same contents make the same file, byte for byte.

    \b
    Example:
      zodiac pack build diagnosis/
    """
    pack = pack_of_folder(folder)
    data = encoded(pack)
    path = Path(out or file_name(pack))
    if not dry_run:
        write_bytes(path, data, "name another file with --out")
    verb = "would write" if dry_run else "wrote"
    console.text(f"{verb} {path}: pack {pack}, {counted(len(pack.rules), 'rule')}, {len(data):,} bytes")
    if console.as_json:
        document = {"file": str(path), "bytes": len(data), "rules": len(pack.rules), "dry_run": dry_run}
        console.json(document | pack.manifest.to_dict())
