"""Facts of files are removed by the road that adds them: `Transaction.unload`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze

if TYPE_CHECKING:
    from pathlib import Path

RULES = "hot: hot(T) :- reading(T, C), C > 80 ."


@pytest.mark.parametrize("engine", ["embedded", "reference"])
def test_facts_of_files_are_removed_as_they_are_added(engine: str, tmp_path: Path) -> None:
    day, noon = tmp_path / "day.csv", tmp_path / "noon.csv"
    day.write_text("<wt1>,93\n<wt2>,95\n<wt3>,20\n")
    noon.write_text("<wt2>,95\n<wt9>,1\n")
    kb = ze.open(engine=engine)
    with kb.change() as c:
        c.add_rules(RULES)
        c.load(f"reading={day}")
    with kb.change() as c:
        report = c.unload(f"reading={noon}")
    assert report.facts == 2
    assert c.loads == [report]
    assert c.report.facts_removed == 1
    assert [d.code for d in c.report.warnings] == ["W013"]
    assert [str(t) for (t,) in kb.query("?- hot(T) .").rows] == [str(ze.iri("wt1"))]


def test_a_fact_that_is_loaded_and_unloaded_stays(tmp_path: Path) -> None:
    file = tmp_path / "reading.csv"
    file.write_text("<wt1>,93\n")
    kb = ze.open()
    with kb.change() as c:
        c.load(file)
        c.unload(file)
    assert len(kb.facts()) == 1


def test_a_bad_line_of_a_file_to_unload_is_refused_in_strict_mode(tmp_path: Path) -> None:
    file = tmp_path / "reading.csv"
    file.write_text('<wt1>,93\n"torn\n')
    kb = ze.open()
    with kb.change() as c:
        c.load(file)
    with pytest.raises(ze.ZodiacError), kb.change() as c:
        c.unload(file, strict=True)
    assert len(kb.facts()) == 1
