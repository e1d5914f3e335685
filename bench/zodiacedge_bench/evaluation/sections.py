"""Sections of the page that the paper has no counterpart of: cores, Soufflé, memory, costs, tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge_bench.evaluation.markdown import milliseconds, number, table
from zodiacedge_bench.measure.embedded import NO_MODULES, ON_ONE_CORE, OURS
from zodiacedge_bench.peers.reference import REFERENCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zodiacedge_bench.evaluation.baseline import Document

    Results = Mapping[str, Document]

NOT_INSTALLED = "not installed"
_WORST = 5
_SOUFFLE_COLUMNS = (
    "workload",
    "Soufflé there",
    "ours there",
    "ours again",
    "DuckDB beside it",
    "DuckDB here",
    "Soufflé, estimated",
    "ours",
    "ours, no modules",
    "factor",
    "factor, no modules",
)


def cores(results: Results) -> Iterator[str]:
    """One core and two, from scratch."""
    figures = [f for name in ("paper", "graphs", "lubm") if name in results for f in results[name]["figures"]]
    seconds = {(figure["workload"], figure["engine"]): figure["seconds"] for figure in figures}
    rows = [
        (
            workload,
            engine,
            milliseconds(seconds[workload, one]),
            milliseconds(two),
            number(seconds[workload, one] / two),
        )
        for (workload, engine), two in seconds.items()
        if (one := ON_ONE_CORE.get(engine, "")) and (workload, one) in seconds
    ]
    if rows:
        yield "## One core and two\n"
        yield "Wall milliseconds from scratch. A second thread takes part only where it is expected to pay:"
        yield "in rules with a large scan, and in long fixpoints.\n"
        yield from table(("workload", "engine", "one core", "two cores", "factor"), rows)


def souffle(results: Results) -> Iterator[str]:
    """Soufflé's time as estimated by DuckDB's, unless it was measured."""
    # The last of these that has DuckDB's times.
    known = [results[name] for name in ("quick", "peers") if name in results]
    if any(result.get("peers", {}).get("souffle", NOT_INSTALLED) != NOT_INSTALLED for result in known):
        return
    seconds = {
        (f["workload"], f["engine"]): f["cpu_seconds"] for result in known for f in result.get("figures", ())
    }
    rows = []
    for workload, reference in REFERENCES.items():
        own = [seconds.get((workload, engine)) for engine in (OURS, NO_MODULES)]
        beside = seconds.get((workload, "duckdb"))
        if beside is None:
            continue
        here = reference.seconds(beside)
        there = (reference.souffle, reference.ours, reference.again, reference.duckdb)
        rows.append(
            (
                workload,
                *map(milliseconds, (*there, beside, here, *own)),
                *(number(here / one if one else None) for one in own),
            )
        )
    if rows:
        yield "## Compiled Soufflé, estimated\n"
        yield "Soufflé is not installed on that machine. On another, Soufflé 2.5 ran beside ours, compiled,"
        yield "in one thread, its input indexes filled before. The same commit of ours, without modules,"
        yield "set beside DuckDB, tells how the machines compare. CPU milliseconds; factors are"
        yield "Soufflé's estimated time divided by ours.\n"
        yield from table(_SOUFFLE_COLUMNS, rows)


def dictionaries(results: Results) -> Iterator[str]:
    """Bytes per row and per term of LUBM."""
    sizes = results["lubm"]["memory"] if "lubm" in results else []
    if sizes:
        yield "## Memory of LUBM\n"
        yield "Bytes of all arrays, spare room included; a derived row with its indexes and a row-set.\n"
        rows = [
            (
                size["workload"],
                f"{size['explicit_rows']:,}",
                f"{size['segment_rows']:,}",
                number(size["bytes_per_row"]),
                f"{size['terms']:,}",
                number(size["dictionary_bytes"] / size["terms"]),
            )
            for size in sizes
        ]
        columns = ("data", "explicit facts", "derived rows", "bytes per row", "terms", "bytes per term")
        yield from table(columns, rows)


def costs(results: Results) -> Iterator[str]:
    """The changes that cost most beside what the facts that they move may cost."""
    changes = [
        (change["cpu_seconds"] / change["cost_limit_seconds"], change)
        for result in results.values()
        for change in result.get("changes", ())
        if "cost_limit_seconds" in change
    ]
    if not changes:
        return
    yield "## What changes cost by the facts they move\n"
    yield "A change may cost 1 ms and 0.5 µs per fact that a segment gains or loses (three times that where"
    yield "it is the first of its kind), or 1.1 times from scratch where that is less. CPU milliseconds;"
    yield f"ratios above 1 miss. Of each experiment the {_WORST} worst.\n"
    rows = []
    for experiment, workload in dict.fromkeys((c["experiment"], c["workload"]) for _, c in changes):
        own = [one for one in changes if (one[1]["experiment"], one[1]["workload"]) == (experiment, workload)]
        missed = sum(ratio > 1 for ratio, _ in own)
        for ratio, change in sorted(own, key=lambda one: -one[0])[:_WORST]:
            rows.append(
                (
                    f"{experiment}, {workload}: {missed} of {len(own)} miss",
                    change["change"],
                    f"{change['moved_facts']:,}",
                    milliseconds(change["cpu_seconds"]),
                    milliseconds(change["cost_limit_seconds"]),
                    number(ratio),
                )
            )
    yield from table(("experiment", "change", "facts moved", "CPU", "may cost", "ratio"), rows)


def tables(results: Results) -> Iterator[str]:
    """The ways of tables in and of answers out."""
    if "tables" not in results:
        return
    yield "## Tables in, answers out\n"
    yield "CPU microseconds per row, and the speed as a share of that of loading N-Triples.\n"
    rows = [
        (way["way"], f"{way['rows']:,}", number(way["microseconds_per_row"]), number(way["speed"]))
        for way in results["tables"]["ways"]
    ]
    yield from table(("way", "rows", "µs per row", "of N-Triples"), rows)
