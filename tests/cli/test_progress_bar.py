"""The progress bar: what it says of loads, changes and long steps, known or not how far they are."""

from __future__ import annotations

import pytest

from zodiacedge.cli.progress_bar import BarState, ProgressBar, evaluating_state, loading_state, size_text
from zodiacedge.engine.api import Progress
from zodiacedge.io import LoadProgress


@pytest.mark.parametrize(
    ("progress", "state"),
    [
        (
            LoadProgress("a.nt", 1_500_000, 6_000_000, 12_345, 0),
            BarState("loading", 0.25, "1.5 MB of 6.0 MB · 12,345 facts · a.nt"),
        ),
        (
            LoadProgress("a.nt", 10, 100, 0, 2),
            BarState("loading", 0.1, "10 bytes of 100 bytes · 2 bad lines · a.nt"),
        ),
        (LoadProgress("<stdin>", 1, 0, 1, 0), BarState("loading", None, "1 byte · 1 fact · <stdin>")),
    ],
)
def test_a_load_shows_bytes_and_facts(progress: LoadProgress, state: BarState) -> None:
    assert loading_state(progress) == state


@pytest.mark.parametrize(
    ("progress", "state"),
    [
        (
            Progress(1, 4, ("r1", "r2"), 4, 5000),
            BarState("evaluating", 0.25, "hyper-node 2 of 4 · round 4 · 5,000 facts · r1, r2"),
        ),
        (Progress(0, 4, ("r1",), 0, 0), BarState("evaluating", 0.0, "hyper-node 1 of 4 · r1")),
        (
            Progress(1, 4, ("r1",), 2, 1, "deriving facts", 3, 6, "task"),
            BarState("deriving facts", 0.375, "hyper-node 2 of 4 · round 2 · 1 fact · 3 of 6 tasks · r1"),
        ),
        (Progress.of_stage("answering a query"), BarState("answering a query", None, "")),
        (
            Progress.of_stage("writing the store", 3, 12, "partition"),
            BarState("writing the store", 0.25, "3 of 12 partitions"),
        ),
        (Progress.of_stage("copying", 3, 0, "file"), BarState("copying", None, "3 files")),
        (Progress(4, 4, (), 0, 7), BarState("evaluating", 1.0, "hyper-node 4 of 4 · 7 facts")),
    ],
)
def test_a_change_shows_its_node_and_a_step_its_units(progress: Progress, state: BarState) -> None:
    assert evaluating_state(progress, {}) == state


def test_rules_have_prefixes() -> None:
    rule = "<http://e/p>(X) :- <http://e/q>(X) ."
    detail = evaluating_state(Progress(0, 1, (rule,), 0, 0), {"ex": "http://e/"}).detail
    assert detail == "hyper-node 1 of 1 · ex:p(X) :- ex:q(X) ."


def test_what_does_not_fit_the_line_is_cut_off_the_detail(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar("starting")
    bar.show(BarState("bringing rules up to date", 0.5, "hyper-node 1 of 4 · " + "long " * 40))
    bar.progress.console.width = 80
    bar.progress.console.print(bar.progress.get_renderable())
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("bringing rules up to date ━━━━━━━━          50% 0:00:0")
    assert line.rstrip().endswith("…")
    assert len(line) <= 80


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.0 kB"), (25 * 10**14, "2,500.0 TB")],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert size_text(size) == text


def test_the_bar_moves_to_and_fro_where_nobody_knows_how_far_it_is() -> None:
    bar = ProgressBar("opening the store")
    (task,) = bar.progress.tasks
    assert (task.description, task.total) == ("opening the store", None)
    bar.show(BarState("loading", 0.5, "half"))
    assert (task.completed, task.total, task.fields["percent"]) == (0.5, 1.0, " 50%")
    bar.show(BarState("comparing", None, ""))
    assert (task.description, task.total, task.fields["percent"]) == ("comparing", None, "")


def test_a_warning_during_the_bar_is_written_above_it(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar("starting")
    bar.write(f"\x1b[33m\x1b[1mwarning W025:\x1b[0m {'long ' * 40}[b]\n  = a note")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"warning W025: {'long ' * 40}[b]", "  = a note"]
