"""`zodiac bench spark`: what the event log tells, and targets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from zodiacedge_bench.command import command
from zodiacedge_bench.measure.harness import Expected, Measurement, Run, WrongCountError
from zodiacedge_bench.measure.machine import this_machine
from zodiacedge_bench.measure.task import lubm_task
from zodiacedge_bench.spark import measured
from zodiacedge_bench.spark.clock import Window, family_seconds, timed
from zodiacedge_bench.spark.events import read_log
from zodiacedge_bench.spark.growth import Size
from zodiacedge_bench.spark.leaf import LEAVES, LeafFigure
from zodiacedge_bench.spark.loops import NAIVE, TUNED
from zodiacedge_bench.spark.measured import SparkFigure, measure_on_spark
from zodiacedge_bench.spark.report import SparkReport
from zodiacedge_bench.spark.targets import SPARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

RUN = Run(2.0, 3.0)
BURN = "import time\nwhile time.process_time() < 0.6: pass\nprint('done', flush=True)\ntime.sleep(600)"


# The event log.


def task_event(start: int, end: int, run: int, cpu: int, written: int = 0) -> object:
    return {
        "Event": "SparkListenerTaskEnd",
        "Task Info": {"Launch Time": start, "Finish Time": end},
        "Task Metrics": {
            "Executor Run Time": run,
            "Executor CPU Time": cpu * 1_000_000,
            "JVM GC Time": cpu // 10,
            "Disk Bytes Spilled": 7,
            "Shuffle Write Metrics": {"Shuffle Bytes Written": written},
        },
    }


def log(folder: Path, events: Iterable[object]) -> Path:
    folder.mkdir()
    lines = (json.dumps(event, separators=(",", ":")) for event in events)
    (folder / "local-1").write_text("".join(f"{line}\n" for line in lines))
    return folder


EVENTS = (
    {"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"},
    {
        "Event": "SparkListenerJobStart",
        "Submission Time": 1_000,
        "Properties": {"spark.job.description": "a"},
    },
    {"Event": "SparkListenerJobStart", "Submission Time": 4_000, "Properties": {}},
    {"Event": "SparkListenerJobStart", "Submission Time": 99_000, "Properties": {}},
    {
        "Event": "SparkListenerStageCompleted",
        "Stage Info": {
            "Submission Time": 1_100,
            "Accumulables": [{"Name": "time to run Python workers", "Value": "1500"}],
        },
    },
    # One that was skipped was never submitted.
    {"Event": "SparkListenerStageCompleted", "Stage Info": {"Accumulables": []}},
    # Two at the same time, and one later: between them nothing runs for a second.
    task_event(1_200, 3_200, 1_800, 600, 1_000),
    task_event(2_200, 3_700, 1_400, 1_200),
    task_event(4_700, 5_000, 250, 50, 24),
    # A task that failed has no numbers.
    {
        "Event": "SparkListenerTaskEnd",
        "Task Info": {"Launch Time": 1, "Finish Time": 2},
        "Task Metrics": None,
    },
)


def test_a_log_tells_where_the_time_of_a_window_went(tmp_path: Path) -> None:
    found = read_log(log(tmp_path / "events", EVENTS)).within(Window(1.0, 6.0))
    assert found.seconds == pytest.approx(5.0)
    assert found.driver == pytest.approx(5.0 - 2.5 - 0.3)
    assert found.run == pytest.approx(3.45)
    assert found.cpu == pytest.approx(1.85)
    assert found.collecting == pytest.approx(0.185)
    assert found.waiting == pytest.approx(3.45 - 1.85 - 0.185)
    assert found.around == pytest.approx(0.2 + 0.1 + 0.05)
    assert found.python == pytest.approx(1.5)
    assert (found.jobs, found.stages, found.tasks) == (2, 1, 3)
    assert (found.shuffled, found.spilled) == (1024, 21)
    assert found.purposes == {"a": 1, "no description": 1}


def test_what_happened_at_another_time_does_not_count(tmp_path: Path) -> None:
    found = read_log(log(tmp_path / "events", EVENTS)).within(Window(98.0, 100.0))
    assert (found.jobs, found.tasks, found.run) == (1, 0, 0)
    assert found.driver == pytest.approx(2.0)


# The clock.


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="the system does not tell")  # noqa: PTH110
def test_processor_time_is_that_of_children_too() -> None:
    with subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE) as child:

        def burnt() -> bytes:
            # It says a word when it has burnt its share, and goes on living.
            return child.stdout.readline() if child.stdout else b""

        done = timed(burnt)
        assert child.pid in family_seconds()
        child.kill()
    assert done.result == b"done\n"
    assert done.run.cpu_seconds > 0.4
    assert done.window.end - done.window.start == pytest.approx(done.run.seconds)
    # Whoever is gone takes nothing away.
    assert timed(lambda: None).run.cpu_seconds >= 0


class Fixed:
    """A trial that has its result ready."""

    def __init__(self, found: int) -> None:
        self._found = found

    def work(self) -> None:
        pass

    def counts(self) -> Mapping[str, int]:
        return {"path": self._found}


def test_every_run_has_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    found, windows = measure_on_spark("test", lambda: Fixed(3), Expected(), 4)
    assert len(found.runs) == len(windows) == 4
    assert len(measure_on_spark("test", lambda: Fixed(3), Expected(), None)[1]) == 5
    monkeypatch.setattr(measured, "LONG", 0)
    assert len(measure_on_spark("test", lambda: Fixed(3), Expected(), None)[1]) == 1


def test_a_run_that_counts_something_else_is_an_error() -> None:
    with pytest.raises(WrongCountError, match="path: 3 instead of 4"):
        measure_on_spark("test", lambda: Fixed(3), Expected({"path": 4}), 1)
    results = iter((3, 3, 4))
    with pytest.raises(WrongCountError, match="path: 4 instead of 3"):
        measure_on_spark("test", lambda: Fixed(next(results)), Expected(), 3)


# The report.


def figure(engine: str, seconds: float, *windows: Window) -> SparkFigure:
    one = Measurement((Run(9 * seconds, 1.0), Run(seconds, 1.0)), {"path": 1})
    return SparkFigure("closure-dense", engine, one, windows=windows)


def size(factor: int, seconds: float) -> Size:
    one = Measurement((Run(seconds, seconds),), {"p": 1})
    window = Window(0, 1)
    return Size(factor, f"lubm-{factor}", 1, RUN, window, one, (window,), "", 1.0, factor)


def report(**parts: Any) -> SparkReport:  # noqa: ANN401 - fields of the report
    return SparkReport(this_machine(), {NAIVE: {"a": "1"}, TUNED: {"a": "2"}}, **parts)


def leaf(change: str, seconds: float) -> LeafFigure:
    again = Measurement((Run(10.0, 1.0),), {})
    return LeafFigure("lubm-10", change, (Run(seconds, 1.0),), (Window(0, 1),), 1, 5, again)


def test_targets_are_met_or_missed() -> None:
    found = report(
        figures=(figure(SPARK, 1.0), figure(NAIVE, 39.0)),
        changes=(leaf("r15 in", 2.0), leaf("r15 out", 2.1)),
        growth=(size(1, 2.0), size(8, 20.5)),
    )
    assert [(one.target.text, one.shown, one.word) for one in found.verdicts] == [
        ("closure-dense: zodiac on Spark against naive loop", "39.0x", "missed"),
        ("lubm-10: r15 in against materialising again", "5.0x", "met"),
        ("lubm-10: r15 out against materialising again", "4.8x", "missed"),
        ("lubm-8 after lubm-1: loading, zodiac on Spark", "1.0x", "met"),
        ("lubm-8 after lubm-1: materialising, zodiac on Spark", "10.2x", "missed"),
        ("lubm-8 after lubm-1: materialising, embedded", "8.0x", "met"),
    ]
    assert replace(found, figures=(figure(SPARK, 1.0),)).verdicts == found.verdicts[1:]


def test_the_best_run_is_looked_up_in_the_log(tmp_path: Path) -> None:
    events = read_log(log(tmp_path / "events", EVENTS))
    ours = figure(SPARK, 1.0, Window(98.0, 100.0), Window(1.0, 6.0))
    found = report(figures=(ours, figure(NAIVE, 40.0)), events=events)
    ((what, who, profile),) = found.profiles
    assert (what, who, profile.jobs) == ("closure-dense", SPARK, 2)
    settings, times, where, purposes, _ = found.tables()
    assert settings.rows == (("a", "1", "2"),)
    assert [row[-2] for row in times.rows] == ["1.00", "40.00"]
    assert len(where.rows[0]) == len(where.columns)
    assert purposes.rows == (("closure-dense", SPARK, "1 a, 1 no description"),)
    # Without a log there is nothing to tell of it.
    assert not replace(found, events=read_log(log(tmp_path / "empty", ()))).profiles


def test_no_rule_reads_what_a_leaf_derives() -> None:
    task = lubm_task(1, departments=1)
    for label in LEAVES:
        (key,) = (key for key, rule in task.rules.items() if rule.label == label)
        node = task.graph.node_of(key)
        assert not task.graph.successors(node.id).all


def test_it_has_a_help_page_with_an_example() -> None:
    done = CliRunner().invoke(command, ["spark", "--help"], prog_name="zodiac bench")
    assert done.exit_code == 0
    assert "zodiac bench spark" in done.stdout.partition("Example:")[2]
