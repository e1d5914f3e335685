"""`zodiac graph`: draw the hyper rule dependency graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.console import many
from zodiacedge.cli.output import write_text
from zodiacedge.cli.rule_files import read_rules
from zodiacedge.errors import CheckProblem
from zodiacedge.graph.draw.show import to_dict, to_dot, to_json, to_text

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.graph import HyperGraph

_FORMATS = ("text", "dot", "svg", "json")


@click.command("graph")
@click.argument("rules", nargs=-1, required=True, metavar="RULES...")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="The format; text, or the extension of --out.",
)
@click.option("--out", metavar="FILE", help="Write to this file instead of standard output.")
@common
def command(console: Console, rules: tuple[str, ...], form: str | None, out: str | None) -> None:
    r"""Draw the hyper rule dependency graph (HRDG): which hyper-node feeds which.

    RULES are files, folders or globs. Mutually recursive rules are one hyper-node; a dashed edge is a
    negation or an aggregate. With --json, standard output gets the graph as JSON, and --out a picture.

    \b
    Example:
      zodiac graph farm.rules
      zodiac graph farm.rules --out farm.svg
      zodiac graph farm.rules --format dot | dot -Tpng > farm.png
    """
    if console.as_json and not out and form not in {None, "json"}:
        raise click.UsageError(f"--json and --format {form} both want standard output: add --out FILE.")
    ending = Path(out).suffix.removeprefix(".").lower() if out else ""
    if out and form is None and ending not in {*_FORMATS, "txt", ""}:
        raise click.UsageError(f"{out} ends in no known format: add --format, one of {', '.join(_FORMATS)}.")
    reading = read_rules(rules)
    if reading.errors:
        raise CheckProblem(reading.findings)
    console.findings(reading.findings)
    if out:
        write_text(Path(out), _drawn(reading.graph, form or (ending if ending in _FORMATS else "text")))
        nodes, members = many(len(reading.graph), "hyper-node"), many(len(reading.program.rules), "rule")
        console.text(f"wrote {out}: {nodes} of {members}")
    else:
        console.text(_drawn(reading.graph, form or "text").rstrip("\n"))
    if console.as_json:
        console.json(to_dict(reading.graph))


def _drawn(graph: HyperGraph, form: str) -> str:
    match form:
        case "svg":
            from zodiacedge.graph.draw.svg import to_svg  # noqa: PLC0415 - loads the layout library

            return to_svg(graph)
        case "dot":
            return to_dot(graph)
        case "json":
            return to_json(graph)
        case _:
            return to_text(graph)
