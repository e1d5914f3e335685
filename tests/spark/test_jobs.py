"""What a change costs: jobs, rows that reach the driver, rounds, files."""

from __future__ import annotations

import gc
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from pyspark.core.rdd import RDD
from pyspark.sql.classic.dataframe import DataFrame

from zodiacedge.engine.api import Progress, Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.spark import columns, vocabulary
from zodiacedge.engine.spark.place import Options
from zodiacedge.knowledge import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from zodiacedge.engine.spark.engine import SparkEngine

RULES = "a: p(X, Y) :- e(X, Y) . b: p(X, Y) :- p(X, Z), e(Z, Y) . c: q(X) :- f(X, Y) .\n"
MOST_ROWS = 60


def changed(kb: KnowledgeBase, engine: SparkEngine, text: str) -> tuple[list[str], int]:
    """Make a change; return the rules of the nodes that were visited, and how many jobs it took."""
    before = engine.jobs.count()
    with kb.change() as change:
        change.add_rules(text)
    return [rule for node in change.report.nodes for rule in node.rules], engine.jobs.count() - before


def test_what_a_change_does_not_reach_costs_no_job(make_engine: Callable[[Options], SparkEngine]) -> None:
    engine = make_engine(Options())
    kb = KnowledgeBase(engine, Settings())
    # The first facts have nothing to be compared with: the rules are one job.
    assert changed(kb, engine, RULES + "e(a, b) . e(b, c) . f(a, 1) .") == (["a", "b", "c"], 1)
    # A fact that nobody reads is compared with those there are, and that is all.
    assert changed(kb, engine, "z(a, 1) .") == ([], 1)
    assert changed(kb, engine, "z(a, 1) .") == ([], 1)
    # One that a rule reads is two jobs, however many other rules there are.
    assert changed(kb, engine, "f(b, 2) .") == (["c"], 2)
    # A rule alone is one, and no other rule is looked at.
    assert changed(kb, engine, "d: r(X) :- q(X), p(X, Y) .") == (["d"], 1)
    before = engine.jobs.count()
    assert kb.derived() == {"p": 3, "q": 2, "r": 2}
    assert len(kb.facts()) == 12
    assert engine.jobs.count() == before


def test_no_relation_ever_comes_to_the_driver(
    tmp_path: Path, make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "edges.nt"
    lines = [f'<n{n}> <e> <n{n * 7 % 400}> .\n<n{n}> <w> "{n % 9}" .\n' for n in range(400)]
    path.write_text("".join(lines))
    rules = 'j: two(X, Z) :- <e>(X, Y), <e>(Y, Z) . k: Heavy(X) :- <w>(X, "8") . u: two(X, Y) :- <e>(X, Y) .'
    options = Options(gather_rows=0, driver_rows=MOST_ROWS, split_bytes=4096)
    engine = make_engine(options)
    expected, found = KnowledgeBase(EmbeddedEngine(), Settings()), KnowledgeBase(engine, Settings())

    def capped(call: Callable[..., Any], rows: Callable[[Any], int]) -> Callable[..., Any]:
        def checked(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - stands for any call
            result = call(*args, **options)
            assert rows(result) <= MOST_ROWS, call
            return result

        return checked

    for home, name, rows in (
        (RDD, "collect", len),
        (DataFrame, "collect", len),
        (DataFrame, "toArrow", len),
        (DataFrame, "toPandas", len),
        (DataFrame, "toLocalIterator", lambda _: MOST_ROWS + 1),
        (columns, "read_part", lambda found: len(found[0])),
        (vocabulary, "read_table", len),
    ):
        monkeypatch.setattr(home, name, capped(getattr(home, name), rows))
    for kb in (expected, found):
        with kb.change() as change:
            change.add_rules(rules)
            change.load(str(path))
    assert found.derived() == expected.derived()
    assert change.report.net_counts()[0]["two"] == expected.derived()["two"] > MOST_ROWS
    assert found.query("?- two(<n3>, X) .").rows == expected.query("?- two(<n3>, X) .").rows
    # Whoever asks for all facts gets them, a batch at a time.
    monkeypatch.undo()
    assert found.facts() == expected.facts()


def test_sixty_rounds_take_the_same_time_each(make_engine: Callable[[Options], SparkEngine]) -> None:
    moments: list[float] = []

    def note(progress: Progress) -> None:
        if progress.round:
            moments.append(time.perf_counter())

    engine = make_engine(Options(way="rounds"))
    kb = KnowledgeBase(engine, Settings(progress=note))
    with kb.change() as change:
        change.add_rules("r: At(Y) :- At(X), e(X, Y) . At(n0) .")
        change.add_facts(" ".join(f"e(n{n}, n{n + 1}) ." for n in range(60)))
    assert [node.rounds for node in change.report.nodes] == [60]
    seconds = [after - before for before, after in pairwise(moments)]
    assert len(seconds) >= 55
    assert median(seconds[-15:]) < 2.5 * median(seconds[10:25])


def test_files_go_when_nobody_needs_them(make_engine: Callable[[Options], SparkEngine]) -> None:
    engine = make_engine(Options())
    kb = KnowledgeBase(engine, Settings())
    changed(kb, engine, RULES + "e(a, b) . e(b, c) . f(a, 1) .")
    for n in range(8):
        changed(kb, engine, f"e(c, x{n}) .")
        kb.dry_run(remove_facts="e(a, b) .")
    folder = Path(engine.empty().place.scratch.folder.uri)
    gc.collect()
    state = kb.state
    held = {part.path for one in (state.stated, *state.segments.values()) for part in one.parts}  # type: ignore[attr-defined]
    held |= {part.path for part in state.terms.parts}  # type: ignore[attr-defined]
    assert {str(path) for path in folder.iterdir()} == held
    assert len(held) < 40
    del kb, state
    gc.collect()
    assert not list(folder.iterdir())
