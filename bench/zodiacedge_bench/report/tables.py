"""Text tables of figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge_bench.measure.embedded import OURS
from zodiacedge_bench.measure.latency import PERCENTILES
from zodiacedge_bench.report.targets import cost_limit, limit_seconds, word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from zodiacedge.engine.api import NodeRun
    from zodiacedge_bench.changes.experiment import ChangeFigure
    from zodiacedge_bench.measure.costs import Cost, StateSize
    from zodiacedge_bench.measure.embedded import Memory
    from zodiacedge_bench.measure.latency import Latencies
    from zodiacedge_bench.measure.tables import TableFigure
    from zodiacedge_bench.report.targets import Verdict

# An experiment with more changes than this shows only its worst ones; JSON has them all.
_MOST_CHANGES = 40
_WORST_CHANGES = 10
_MOST_RULES = 3


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table as text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def memory_table(sizes: Iterable[Memory]) -> TextTable:
    """Return the memory of each store: segments, explicit facts and dictionary."""
    rows: list[tuple[str, ...]] = []
    for size in sizes:
        segments = _cells(size.segment_rows, size.segment_row_bytes, size.segment_index_bytes)
        complete = _cells(size.segment_rows, size.segment_row_bytes, size.complete_index_bytes)
        explicit = _cells(size.explicit_rows, size.explicit_row_bytes, size.explicit_index_bytes)
        dictionary = _cells(size.terms, size.dictionary_bytes, 0)
        rows += [
            (size.workload, "segments", *segments),
            ("", "with all row-sets", *complete),
            ("", "explicit facts", *explicit),
            ("", "dictionary", *dictionary),
        ]
    columns = ("workload", "memory of", "rows", "bytes of rows", "of indexes", "bytes per row")
    return TextTable(columns, tuple(rows))


def read_table(costs: Iterable[Cost]) -> TextTable:
    """Return the jobs and the rows read of questions and changes on Spark."""
    rows = tuple(
        (
            cost.workload,
            cost.what,
            str(cost.jobs),
            f"{cost.rows_read:,}",
            f"{cost.seconds:.2f}",
            f"{cost.cpu_seconds:.2f}",
        )
        for cost in costs
    )
    return TextTable(("workload", "on Spark", "jobs", "rows read", "seconds", "CPU s"), rows)


def size_table(sizes: Iterable[StateSize]) -> TextTable:
    """Return the bytes per fact of states on Spark, and the processor time to get there."""
    rows = tuple(
        (
            size.workload,
            size.what,
            f"{size.facts:,}",
            *(
                f"{part / max(size.facts, 1):.2f}"
                for part in (size.file_bytes, size.index_bytes, size.term_bytes)
            ),
            f"{size.bytes_per_fact:.2f}",
            f"{size.load_cpu_seconds:.2f}",
            f"{size.rules_cpu_seconds:.2f}",
        )
        for size in sizes
    )
    columns = ("workload", "on Spark", "facts", "bytes per fact: files", "indexes", "terms", "all")
    return TextTable((*columns, "CPU s, loading", "rules"), rows)


def change_table(figures: Sequence[ChangeFigure]) -> TextTable:
    """Return changes beside from scratch; of an experiment with many changes, the worst ones."""
    engines = any(figure.engine != OURS for figure in figures)
    published = any(figure.published.seconds or figure.published.factor for figure in figures)
    columns = ("experiment", "workload", *("engine",) * engines, "change", "facts", "seconds", "CPU s")
    columns += ("scratch s", "its CPU s", "factor", *("paper s", "paper factor") * published, "verdict")
    rows: list[tuple[str, ...]] = []
    for experiment in dict.fromkeys(figure.experiment for figure in figures):
        own = [figure for figure in figures if figure.experiment == experiment]
        for figure in worst_changes(own):
            scratch = figure.scratch.best
            paper = (
                f"{figure.published.seconds:g}" if figure.published.seconds else "",
                figure.published.factor,
            )
            rows.append(
                (
                    figure.experiment,
                    figure.workload,
                    *(figure.engine,) * engines,
                    figure.change,
                    f"{figure.grown:+,}",
                    f"{figure.seconds:.4f}",
                    f"{figure.best.cpu_seconds:.4f}",
                    f"{scratch.seconds:.4f}",
                    f"{scratch.cpu_seconds:.4f}",
                    f"{figure.factor:,.3g}" if figure.factor < 1 else f"{figure.factor:,.1f}",
                    *paper * published,
                    word(met=figure.seconds <= limit_seconds(figure)),
                )
            )
    return TextTable(columns, tuple(rows))


def cost_table(figures: Sequence[ChangeFigure]) -> TextTable:
    """Return the changes that cost most beside what the facts that they change may cost, the worst first."""
    worst = sorted(figures, key=_cost_ratio, reverse=True)[:_MOST_CHANGES]
    columns = ("workload", "change", "facts moved", "CPU ms", "may cost", "ratio", "slowest hyper-node")
    rows = tuple(
        (
            figure.workload,
            figure.change,
            f"{figure.moved:,}",
            f"{1e3 * figure.cpu_seconds:.2f}",
            f"{1e3 * cost_limit(figure):.2f}",
            f"{_cost_ratio(figure):.2f}",
            _shown(figure.slowest),
        )
        for figure in worst
    )
    return TextTable(columns, rows)


def _cost_ratio(figure: ChangeFigure) -> float:
    return figure.cpu_seconds / cost_limit(figure)


def _shown(node: NodeRun | None) -> str:
    if node is None:
        return ""
    expected = f", expected {1e3 * node.expected:.2f}" if node.expected else ""
    return f"{', '.join(node.rules[:_MOST_RULES])}: {node.strategy}, {1e3 * node.seconds:.2f} ms{expected}"


def latency_table(latencies: Iterable[Latencies]) -> TextTable:
    """Return percentiles in milliseconds."""
    columns_ms = tuple(f"p{percent} ms" for percent in PERCENTILES)
    cpu_columns = tuple(f"CPU {name}" for name in columns_ms)
    columns = ("workload", "change", "changes", "left out", *columns_ms, "worst ms", *cpu_columns)
    rows = tuple(
        (
            kind.workload,
            kind.change,
            f"{len(kind.runs):,}",
            f"{kind.left_out:,}",
            *(f"{1e3 * kind.percentile(percent):.3f}" for percent in PERCENTILES),
            f"{1e3 * kind.worst:.3f}",
            *(f"{1e3 * kind.cpu_percentile(percent):.3f}" for percent in PERCENTILES),
        )
        for kind in latencies
    )
    return TextTable(columns, rows)


def way_table(figures: Iterable[TableFigure]) -> TextTable:
    """Return the ways in and out, with their times per row and their speed as a share of N-Triples'."""
    rows = tuple(
        (
            figure.way,
            f"{figure.rows:,}",
            f"{figure.cpu_seconds:.4f}",
            f"{1e6 * figure.cpu_seconds / figure.rows:.2f}",
            f"{figure.speed:.2f}",
        )
        for figure in figures
    )
    return TextTable(("way", "rows", "CPU s", "µs per row", "of N-Triples"), rows)


def target_table(verdicts: Iterable[Verdict]) -> TextTable:
    """Return targets, measurements and verdicts."""
    rows = tuple((v.target.text, v.shown, v.target.wanted, v.word) for v in verdicts)
    return TextTable(("target", "measured", "wanted", "verdict"), rows)


def worst_changes(figures: Sequence[ChangeFigure]) -> Sequence[ChangeFigure]:
    """Return the changes of an experiment, or only the worst ones of many."""
    if len(figures) <= _MOST_CHANGES:
        return figures
    return sorted(figures, key=lambda figure: limit_seconds(figure) / figure.seconds)[:_WORST_CHANGES]


def _cells(rows: int, row_bytes: int, index_bytes: int) -> tuple[str, str, str, str]:
    each = (row_bytes + index_bytes) / max(rows, 1)
    return f"{rows:,}", f"{row_bytes:,}", f"{index_bytes:,}", f"{each:.1f}"
