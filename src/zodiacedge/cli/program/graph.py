"""`zodiac graph`: draw the hyper rule dependency graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.options import LOCAL_FILE, DataOptions, EngineOptions, engine_options
from zodiacedge.cli.output import write_text
from zodiacedge.cli.program_source import details_of, open_source, source_arguments
from zodiacedge.errors import Diagnostic, UsageProblem, counted, nearest
from zodiacedge.graph.draw.names import short_name
from zodiacedge.graph.draw.page import to_html
from zodiacedge.graph.draw.part import around, concerned
from zodiacedge.graph.draw.show import to_dict, to_dot, to_json, to_text
from zodiacedge.graph.draw.sketch import Details
from zodiacedge.language.ast import body_atoms
from zodiacedge.language.names import is_named, spelled
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.cli.program_source import ProgramSource
    from zodiacedge.graph import HyperGraph
    from zodiacedge.language.ast import Predicate

_FORMATS = ("text", "dot", "svg", "html", "json")


@click.command("graph")
@source_arguments
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="The format; text, or the extension of --out.",
)
@click.option("--out", type=LOCAL_FILE, metavar="FILE", help="Write to this file instead of standard output.")
@click.option("--around", "centre", metavar="RULE", help="Only the node of a rule, and its neighbours.")
@click.option("--predicate", metavar="P", help="Only nodes that derive or read this predicate.")
@click.option(
    "--highlight",
    multiple=True,
    metavar="RULE|P",
    help="Mark the node of a rule, or the nodes that derive a predicate; may be repeated.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    metavar="N",
    help="Neighbours up to this distance.  [default: 1 with --around, 0 with --predicate]",
)
@engine_options
@common
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    programs: tuple[str, ...],
    data: DataOptions,
    at: int | None,
    form: str | None,
    out: str | None,
    centre: str | None,
    predicate: str | None,
    highlight: tuple[str, ...],
    depth: int | None,
    on: EngineOptions,
) -> None:
    r"""Draw the hyper rule dependency graph (HRDG): which hyper-node feeds which.

    RULES are files, folders or globs, - is standard input; STORE is a store's folder or URI. Mutually
    recursive rules are one hyper-node; a dashed edge is a negation or an aggregate. With a store or --facts,
    facts are counted per hyper-node and per predicate. With --json, standard output gets the graph as JSON,
    and --out a picture.

    \b
    Example:
      zodiac graph farm.rules
      zodiac graph farm.rules --out farm.svg
      zodiac graph farm.zodiac --out farm.html
      zodiac graph farm.zodiac --around alarm --depth 2
      zodiac graph farm.rules --facts readings.csv --predicate hot
      zodiac graph farm.rules --highlight alarm --highlight hot/1 --out farm.svg
      zodiac graph farm.rules --format dot | dot -Tpng > farm.png
    """
    if console.as_json and not out and form not in {None, "json"}:
        raise click.UsageError(f"--json and --format {form} both want standard output: add --out FILE.")
    ending = Path(out).suffix.removeprefix(".").lower() if out else ""
    if out and form is None and ending not in {*_FORMATS, "txt", ""}:
        raise click.UsageError(f"{out} ends in no known format: add --format, one of {', '.join(_FORMATS)}.")
    if depth is not None and not (centre or predicate):
        raise click.UsageError("--depth is a distance from --around RULE or --predicate P.")
    with open_source(console, programs, data, at, on) as source:
        details = details_of(source.kb) if source.kb else Details(prefixes=source.prefixes)
        graph = source.graph
    if centre or predicate:
        details = replace(details, only=_part(source, centre, predicate, depth))
    if highlight:
        marked = frozenset(node for name in highlight for node in _named_nodes(source, name))
        details = replace(details, highlight=marked)
    if out:
        write_text(Path(out), _drawn(graph, details, form or (ending if ending in _FORMATS else "text")))
        shown = [graph.nodes[node] for node in (graph.nodes if details.only is None else details.only)]
        members = counted(sum(len(node.rules) for node in shown), "rule")
        console.text(f"wrote {out}: {counted(len(shown), 'hyper-node')} of {members}")
    else:
        console.text(_drawn(graph, details, form or "text").rstrip("\n"))
    if console.as_json:
        console.json(to_dict(graph, _in_full(details)))


def _named_nodes(source: ProgramSource, name: str) -> frozenset[int]:
    """Return the node of a rule, or the nodes that derive a predicate; raise if there is neither."""
    graph = source.graph
    labelled = {home for key, home in graph.homes.items() if graph.rule(key).label == name}
    if labelled:
        return frozenset(labelled)
    wanted = _predicates(source, name)
    return frozenset(home for key, home in graph.homes.items() if graph.rule(key).head.predicate in wanted)


def _part(
    source: ProgramSource, centre: str | None, predicate: str | None, depth: int | None
) -> frozenset[int]:
    graph = source.graph
    part: frozenset[int] = frozenset()
    if centre:
        named = {node.id for node in graph.order if node.name == centre}
        chosen = () if named else source.labelled(centre)
        homes = {home for key, home in graph.homes.items() if graph.rule(key) in chosen}
        part |= around(graph, named or homes, 1 if depth is None else depth)
    if predicate:
        part |= around(graph, concerned(graph, _predicates(source, predicate)), depth or 0)
    return part


def _predicates(source: ProgramSource, predicate: str) -> list[Predicate]:
    """Return the predicates of rules with a name, or raise."""
    known = {a.predicate for rule in source.rules for a in (rule.head, *body_atoms(rule.body))}
    name = spelled(predicate, source.prefixes)
    wanted = [p for p in known if is_named(p, name)]
    if not wanted:
        near = nearest(predicate, sorted(short_name(p, source.prefixes) for p in known))
        hint = f"did you mean {near}?" if near else "write it as in the program: p, p/2, ex:p or <IRI>"
        raise UsageProblem(Diagnostic("U006", f"no rule has the predicate {predicate}", hint))
    return wanted


def _drawn(graph: HyperGraph, details: Details, form: str) -> str:
    match form:
        case "svg":
            from zodiacedge.graph.draw.svg import to_svg  # noqa: PLC0415 - loads the layout library

            return to_svg(graph, details)
        case "html":
            return to_html(graph, details)
        case "dot":
            return to_dot(graph, details)
        case "json":
            return to_json(graph, _in_full(details))
        case _:
            return to_text(graph, details)


def _in_full(details: Details) -> Details:
    """Return the details of a drawing for programs: IRIs without the prefixes of the rules."""
    return replace(details, prefixes=DEFAULT_PREFIXES)
