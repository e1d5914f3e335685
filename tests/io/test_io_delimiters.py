"""The delimiter of a table is an option, and a file that seems to have another one gets a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from zodiacedge.errors import CheckProblem, LoadProblem
from zodiacedge.io import LoadReport, read_all, write_facts
from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import integer, string

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [fact("p", string("a, b"), integer(1)), fact("p", string("c"), integer(2))]


def load(path: Path, text: str, **options: str) -> tuple[list[Fact], LoadReport]:
    path.write_text(text, encoding="utf-8")
    return read_all(path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("delimiter", [";", "|", "\t", "→", "\x1f"])
def test_a_delimiter_separates_cells_of_csv_and_tsv(tmp_path: Path, delimiter: str) -> None:
    text = f"a, b{delimiter}1\nc{delimiter}2\n"
    for name in ("p.csv", "p.tsv"):
        facts, report = load(tmp_path / name, text, delimiter=delimiter)
        assert (facts, report.bad, report.warnings) == (ROWS, 0, ())


@pytest.mark.parametrize("delimiter", [";", "→"])
def test_a_quoted_cell_of_csv_holds_the_delimiter(tmp_path: Path, delimiter: str) -> None:
    facts, report = load(tmp_path / "p.csv", f'"x{delimiter}""y"""{delimiter}"1"\n', delimiter=delimiter)
    assert (facts, report.bad) == ([fact("p", string(f'x{delimiter}"y"'), integer(1))], 0)


@pytest.mark.parametrize("delimiter", [";;", '"', "\n", "\r", "\ud800", 5, None])
def test_what_no_table_can_have_between_its_cells_is_refused(tmp_path: Path, delimiter: object) -> None:
    with pytest.raises(LoadProblem, match=r"I022: .* cannot be the delimiter of a table"):
        load(tmp_path / "p.csv", "a;b\n", delimiter=delimiter)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "text", "delimiter"),
    [
        ("p.csv", "name;value\na;1,5\nb;2,5\n", ";"),
        ("p.csv", '"a";"b"\n"c";"d"\n', ";"),
        ("p.csv", "a\tb\n\nc\td\n", r"\t"),
        ("p.csv", "a|b|c\n", "|"),
        ("p.tsv", "a,b\nc,d\n", ","),
    ],
)
def test_a_table_of_one_column_with_another_delimiter_gets_a_warning(
    tmp_path: Path, name: str, text: str, delimiter: str
) -> None:
    _, report = load(tmp_path / name, text)
    (warning,) = report.warnings
    assert (warning.code, warning.severity) == ("W017", "warning")
    assert f"{name} is read as one column, but its lines have the delimiter '{delimiter}'" in warning.message
    assert f"--delimiter '{delimiter}'" in warning.note
    assert f"delimiter='{delimiter}'" in warning.note


@pytest.mark.parametrize(
    ("name", "text"),
    [("p.csv", "turbine,air temp\nwt1,-3.5\nwt2,4\n"), ("p.tsv", "wt\tn\n<a>\t1e3\n")],
)
def test_a_first_row_that_looks_like_names_of_columns_gets_a_warning(
    tmp_path: Path, name: str, text: str
) -> None:
    rows, report = load(tmp_path / name, text)
    (warning,) = report.warnings
    assert (warning.code, warning.severity) == ("W027", "warning")
    assert f"{name} is read as a fact, and looks like names of columns" in warning.message
    assert len(rows) == len(text.splitlines())
    assert not read_all(tmp_path / name, header=True)[1].warnings


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.csv", ""),
        ("p.csv", "wt1,wt2\nwt2,wt3\n"),
        ("p.csv", "wt1,93\nwt2,55\n"),
        ("p.csv", "turbine,air\nwt1\n"),
        ("p.csv", "true\n"),
        ("p.csv", "a;b,c\n"),
        ("p.csv", "a;b\nc\n"),
        ("p.csv", "a;b\nc;d;e\n"),
        ("p.csv", '"a; b"\n"c; d"\n'),
        ("p.csv", "<http://e/a;b>\n<http://e/c;d>\n"),
        ("p.tsv", "a;b\tc\n"),
    ],
)
def test_other_tables_get_no_warning(tmp_path: Path, name: str, text: str) -> None:
    assert load(tmp_path / name, text)[1].warnings == ()


def test_an_export_of_texts_with_semicolons_gets_no_warning(tmp_path: Path) -> None:
    write_facts([fact("c", string("a;b"))], tmp_path)
    assert read_all(tmp_path)[1].warnings == ()


def test_a_change_that_is_refused_for_the_columns_names_the_delimiter(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("a;1\nb;2\n")
    change = ze.open().change()
    change.add_rules("q(X) :- p(X, Y, Z), Y > Z .")
    change.load(tmp_path / "p.csv")
    with pytest.raises(CheckProblem) as refused:
        change.dry_run()
    assert [(d.code, d.severity) for d in refused.value.diagnostics] == [
        ("C011", "error"),
        ("W017", "warning"),
    ]


def test_the_warning_is_in_the_report_of_the_change(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("a;1\nb;2\n")
    kb = ze.open()
    with kb.change() as c:
        c.load(tmp_path / "p.csv")
    assert [w.code for w in c.report.warnings] == ["W017"]
    with kb.change() as c:
        c.unload(tmp_path / "p.csv")
        c.load(f"q={tmp_path / 'p.csv'}", delimiter=";")
    assert [w.code for w in c.report.warnings] == ["W017"]
    assert list(kb.query("?- q(X, Y) .")) == [("a", 1), ("b", 2)]
