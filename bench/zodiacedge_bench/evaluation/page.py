"""The page `docs/evaluation.md`: the paper's tables and figures beside ours, other engines, targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.language.ast import Negation, body_atoms
from zodiacedge_bench.evaluation.markdown import milliseconds, number, table
from zodiacedge_bench.evaluation.published import FEATURES, RS3_SCRATCH, RULE_SETS
from zodiacedge_bench.evaluation.sections import (
    NOT_INSTALLED,
    cores,
    costs,
    dictionaries,
    souffle,
    tables,
)
from zodiacedge_bench.measure.embedded import NO_MODULES, OURS
from zodiacedge_bench.measure.task import paper_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from zodiacedge.language.ast import Predicate, Rule
    from zodiacedge_bench.evaluation.baseline import Document

    Results = Mapping[str, Document]

IMAGES = "images/evaluation"
"""The folder of the plots, beside the page."""
_HEAD = """# Evaluation

Generated from the results in `bench/baseline/` by `zodiac bench accept`; not edited by hand.
[Benchmarks](benchmarks.md) says what is measured and how, [workloads](workloads.md) describes the data. Times
are CPU milliseconds unless a column says otherwise: the best of several runs, every count and state checked.
*From scratch* is the evaluation of the same program without incremental maintenance, in the same run.
"""
_WORST = 10


def page(results: Results, profiles: Mapping[str, str]) -> str:
    """Return the page for results by benchmark, and for what profiles say about missed targets."""
    sections = (
        _machines(results),
        _rule_sets(),
        *(_paper(results["paper"]) if "paper" in results else ()),
        _from_scratch(results),
        cores(results),
        _peers(results),
        souffle(results),
        dictionaries(results),
        _worst_changes(results),
        costs(results),
        _latencies(results),
        tables(results),
        _spark(results),
        _targets(results, profiles),
    )
    return "\n".join((_HEAD, *(line for section in sections for line in section))).rstrip() + "\n"


def _machines(results: Results) -> Iterator[str]:
    yield "## The machine\n"
    rows = []
    for name, result in results.items():
        machine = result["machine"]
        versions = ", ".join(
            f"{package} {version}"
            for package, version in (machine["versions"] | result.get("peers", {})).items()
        )
        size = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']:.0f} GiB"
        rows.append((f"`{name}`", size, f"{machine['load']:.1f}", f"Python {machine['python']}, {versions}"))
    yield from table(("benchmark", "machine", "load before", "versions"), rows)


def _rule_sets() -> Iterator[str]:
    yield "## The paper's table of data and rule sets\n"
    yield "The paper's number / ours. Facts are the derived facts of the largest data.\n"
    rows = []
    for published in RULE_SETS:
        task = paper_task(published.number, published.turbines)
        atoms = {atom for rule in task.program for atom in _predicates(rule)}
        derived = sum((task.expected.counts or {}).values())
        heads = {rule.head.predicate for rule in task.program}
        negated = {c.atom.predicate for rule in task.program for c in rule.body if isinstance(c, Negation)}
        numbers = (
            (published.nodes, len(task.graph.order)),
            (published.rules, len(task.program)),
            (published.predicates, len(atoms)),
        )
        used = (negated - heads, negated & heads, any(rule.aggregate for rule in task.program))
        features = zip(FEATURES, used, strict=True)
        rows.append(
            (
                f"RS{published.number}",
                published.data,
                *(f"{theirs} / {ours}" for theirs, ours in numbers),
                *(f"{_yes(name in published.features)} / {_yes(ours)}" for name, ours in features),
                f"{published.facts:,} / {derived:,}",
            )
        )
    columns = ("rule set", "data", "hyper-nodes", "rules", "predicates", *FEATURES, "facts")
    yield from table(columns, rows)


def _yes(flag: object) -> str:
    return "yes" if flag else "no"


def _predicates(rule: Rule) -> Iterator[Predicate]:
    yield rule.head.predicate
    yield from (atom.predicate for atom in body_atoms(rule.body))


def _paper(result: Document) -> tuple[Iterator[str], ...]:
    return (
        _memory(result["memory"]),
        _bars(result, "insertion", "rules inserted into RS2", "Each rule is added to all the others."),
        _bars(result, "deletion", "rules deleted from RS2", "Each rule is removed from all of them."),
        _rs3(result),
        _curve(
            result,
            "ds1",
            "operations on RS1 and DS1",
            "One link in the middle of the chain, and the rules r1 and r2, deleted and inserted again; the"
            " paper's figure has no numbers.",
        ),
        _curve(
            result,
            "data",
            "data added to RS1 and removed",
            "200 turbines, 10 to 50 % more; the paper's figure has no numbers.",
        ),
    )


def _memory(sizes: Sequence[Document]) -> Iterator[str]:
    yield "## The paper's figure: memory of the data structures, RS2\n"
    yield "Kilobytes on growing data. A segment is the paper's DataStore.\n"
    rows = [
        (
            size["workload"],
            f"{size['segment_rows']:,}",
            *(
                f"{size[key] / 1e3:,.0f}"
                for key in (
                    "segment_row_bytes",
                    "segment_index_bytes",
                    "explicit_row_bytes",
                    "explicit_index_bytes",
                )
            ),
            f"{size['bytes_per_row']:.1f}",
        )
        for size in sizes
        if size["workload"].startswith("rs2")
    ]
    columns = (
        "data",
        "derived rows",
        "segments",
        "their indexes",
        "explicit facts",
        "their indexes",
        "bytes per row",
    )
    yield from table(columns, rows)
    yield from _image("paper-memory", "Bytes of segments and indexes on growing data")


def _bars(result: Document, experiment: str, title: str, text: str) -> Iterator[str]:
    yield f"## The paper's figure: {title}\n"
    yield f"{text} The paper's factors are those in its text; its figure has no numbers.\n"
    rows = [
        (
            change["change"].rpartition(" ")[0],
            f"{change['net_facts']:+,}",
            milliseconds(change["cpu_seconds"]),
            milliseconds(change["scratch_cpu_seconds"]),
            number(change["scratch_cpu_seconds"] / change["cpu_seconds"]),
            change["published_factor"] or "",
        )
        for change in _changes(result, experiment)
    ]
    yield from table(("rules", "facts", "change", "from scratch", "factor", "paper's factor"), rows)
    yield from _image(f"paper-{experiment}", title)


def _rs3(result: Document) -> Iterator[str]:
    yield "## The paper's two tables: RS3, rules before a negation\n"
    rows = [
        (
            change["change"],
            milliseconds(change["cpu_seconds"]),
            milliseconds(change["scratch_cpu_seconds"]),
            number(change["scratch_cpu_seconds"] / change["cpu_seconds"]),
            f"{change['published_seconds']:,g}",
            f"{RS3_SCRATCH[change['change']]:g}",
            change["published_factor"],
        )
        for change in _changes(result, "rs3")
    ]
    columns = ("change", "ms", "from scratch", "factor", "paper, s", "from scratch, s", "paper's factor")
    yield from table(columns, rows)
    yield from _image("paper-rs3", "Rules of RS3 inserted and deleted")


def _curve(result: Document, experiment: str, title: str, text: str) -> Iterator[str]:
    yield f"## The paper's figure: {title}\n"
    yield f"{text}\n"
    changes = _changes(result, experiment)
    kinds = list(dict.fromkeys(change["change"] for change in changes))
    rows = []
    for workload in dict.fromkeys(change["workload"] for change in changes):
        own = {change["change"]: change for change in changes if change["workload"] == workload}
        scratch = max(change["scratch_cpu_seconds"] for change in own.values())
        rows.append(
            (workload, milliseconds(scratch), *(milliseconds(own[kind]["cpu_seconds"]) for kind in kinds))
        )
    yield from table(("data", "from scratch", *kinds), rows)
    yield from _image(f"paper-{experiment}", title)


def _changes(result: Document, experiment: str) -> list[Document]:
    return [change for change in result["changes"] if change["experiment"] == experiment]


def _image(name: str, text: str) -> Iterator[str]:
    yield f"![{text}]({IMAGES}/{name}.svg)\n"


def _from_scratch(results: Results) -> Iterator[str]:
    rows = []
    for name in ("paper", "graphs", "lubm"):
        figures = results[name]["figures"] if name in results else []
        for workload in dict.fromkeys(figure["workload"] for figure in figures):
            own = {figure["engine"]: figure for figure in figures if figure["workload"] == workload}
            cells = (
                milliseconds(own[engine]["cpu_seconds"]) if engine in own else ""
                for engine in (OURS, NO_MODULES)
            )
            rows.append((workload, f"{own[OURS]['derived_total']:,}", *cells))
    if rows:
        yield "## From scratch\n"
        yield from table(("workload", "derived facts", "with modules", "without modules"), rows)


def _peers(results: Results) -> Iterator[str]:
    if "peers" not in results:
        return
    result = results["peers"]
    yield "## Beside other engines, from scratch\n"
    yield "CPU milliseconds in one run, and in brackets how many times ours with modules that is. An engine"
    yield "without some aggregates gets fewer rules.\n"
    figures = result["figures"]
    engines = list(dict.fromkeys(figure["engine"] for figure in figures))
    rows = []
    for workload in dict.fromkeys(figure["workload"] for figure in figures):
        own = {f["engine"]: f for f in figures if f["workload"] == workload}
        base = own[OURS]["cpu_seconds"]
        cells = [
            ""
            if engine not in own
            else milliseconds(own[engine]["cpu_seconds"])
            + ("" if engine == OURS else f" ({number(own[engine]['cpu_seconds'] / base)})")
            for engine in engines
        ]
        rows.append((workload, *cells))
    yield from table(("workload", *engines), rows)
    missing = [name for name, version in result["peers"].items() if version == NOT_INSTALLED]
    if missing:
        yield f"Not installed on that machine, so not measured: {', '.join(missing)}.\n"


def _worst_changes(results: Results) -> Iterator[str]:
    rows = []
    for name in ("lubm", "graphs"):
        changes = results[name]["changes"] if name in results else []
        for experiment in dict.fromkeys(change["experiment"] for change in changes):
            own = [change for change in changes if change["experiment"] == experiment]
            own.sort(key=lambda change: change["scratch_cpu_seconds"] / change["cpu_seconds"])
            rows += [
                (
                    change["workload"],
                    change["change"],
                    f"{change['net_facts']:+,}",
                    milliseconds(change["cpu_seconds"]),
                    milliseconds(change["scratch_cpu_seconds"]),
                    number(change["scratch_cpu_seconds"] / change["cpu_seconds"]),
                )
                for change in own[:_WORST]
            ]
    if rows:
        yield "## Changes of LUBM's rules and of edges\n"
        yield f"Of each experiment the {_WORST} changes that gain least over from scratch.\n"
        yield from table(("workload", "change", "facts", "change", "from scratch", "factor"), rows)


def _latencies(results: Results) -> Iterator[str]:
    if "churn" not in results:
        return
    yield "## Many small changes\n"
    yield "Percentiles of CPU milliseconds per change, and the worst by wall time.\n"
    rows = [
        (
            kind["workload"],
            kind["change"],
            f"{kind['changes']:,}",
            *(milliseconds(kind[f"p{percent}_cpu_seconds"]) for percent in (50, 95, 99)),
            milliseconds(kind["worst_seconds"]),
        )
        for kind in results["churn"]["latencies"]
    ]
    yield from table(("workload", "change", "changes", "p50", "p95", "p99", "worst"), rows)


def _spark(results: Results) -> Iterator[str]:
    if "spark" not in results:
        return
    yield "## Spark\n"
    yield "Wall seconds in one session.\n"
    figures = results["spark"]["figures"]
    rows = [
        (figure["workload"], figure["engine"], f"{figure['derived_total']:,}", f"{figure['seconds']:.2f}")
        for figure in figures
    ]
    yield from table(("workload", "engine", "derived facts", "seconds"), rows)


def _targets(results: Results, profiles: Mapping[str, str]) -> Iterator[str]:
    every = [(name, target) for name, result in results.items() for target in result.get("targets", [])]
    if not every:
        return
    met = sum(target["met"] for _, target in every)
    yield "## Targets\n"
    yield f"{met} of {len(every)} are met. A target that is missed has its profile below the table.\n"
    rows = [
        (f"`{name}`", target["target"], target["wanted"], number(target["measured"]), _verdict(target))
        for name, target in every
    ]
    yield from table(("benchmark", "target", "wanted", "measured", ""), rows)
    for _, target in every:
        if not target["met"]:
            yield f"- **{target['target']}**: {profile_of(target['target'], profiles)}"


def profile_of(target: str, profiles: Mapping[str, str]) -> str:
    """Return what a profile says about a missed target: the entry with the longest begin of its text."""
    known = [begin for begin in profiles if target.startswith(begin)]
    return profiles[max(known, key=len)].strip() if known else "not profiled."


def _verdict(target: Document) -> str:
    return "met" if target["met"] else "**missed**"
