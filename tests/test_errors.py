"""Diagnostics: places, the rendered text, and the exception tree."""

from __future__ import annotations

import json
import pickle
import time

import pytest

from zodiacedge import errors
from zodiacedge.errors import (
    CheckProblem,
    Diagnostic,
    EvaluationProblem,
    LimitReached,
    LoadProblem,
    Source,
    Span,
    StratificationProblem,
    SyntaxProblem,
    UsageProblem,
    ZodiacError,
    counted,
    nearest,
)

SOURCE = Source("farm.rules", "p(a) .\n  q(X) :- r(X) .\r\n\tbad\tline\nlast")


def span(text: str) -> Span:
    start = SOURCE.text.index(text)
    return Span(SOURCE, start, start + len(text))


@pytest.mark.parametrize(
    ("text", "place"),
    [("p(a)", (1, 1)), ("q(X)", (2, 3)), ("r(X)", (2, 11)), ("bad", (3, 2)), ("last", (4, 1))],
)
def test_lines_and_columns_count_from_one(text: str, place: tuple[int, int]) -> None:
    assert SOURCE.position(span(text).start) == place
    assert repr(span(text)) == f"farm.rules:{place[0]}:{place[1]}"
    assert span(text).text == text


def test_the_end_of_a_text_has_a_place() -> None:
    assert SOURCE.position(len(SOURCE.text)) == (4, 5)
    assert Source("empty", "").position(0) == (1, 1)


def test_lines_come_without_their_ends() -> None:
    assert [SOURCE.line(n) for n in (1, 2, 4)] == ["p(a) .", "  q(X) :- r(X) .", "last"]
    assert SOURCE.line(5) == SOURCE.line(0) == ""


def test_a_span_up_to_another() -> None:
    assert span("q(X)").to(span("r(X)")).text == "q(X) :- r(X)"


def test_a_finding_is_shown_with_its_place_its_line_and_what_to_do() -> None:
    found = Diagnostic("X001", "r is unknown", "define it", span("r(X)"))
    assert found.render().split("\n") == [
        "farm.rules:2:11: error X001: r is unknown",
        "    2 |   q(X) :- r(X) .",
        "                  ^^^^",
        "  = define it",
    ]


def test_a_finding_without_a_place() -> None:
    assert Diagnostic("X001", "no").render() == "error X001: no"
    assert Diagnostic("X001", "no", "do", severity="hint").render() == "hint X001: no\n  = do"


def test_other_places_follow() -> None:
    found = Diagnostic(
        "X002", "twice", "drop one", span("r(X)"), "warning", related=(("first here", span("p(a)")),)
    )
    assert found.render().split("\n") == [
        "farm.rules:2:11: warning X002: twice",
        "    2 |   q(X) :- r(X) .",
        "                  ^^^^",
        "farm.rules:1:1: first here",
        "    1 | p(a) .",
        "        ^^^^",
        "  = drop one",
    ]


def test_a_tab_is_one_column_wide() -> None:
    lines = Diagnostic("X003", "bad", span=span("line")).render().split("\n")
    assert lines[1:] == ["    3 |  bad line", "             ^^^^"]


def test_the_marker_stays_on_its_line() -> None:
    long = Span(SOURCE, SOURCE.text.index("q(X)"), len(SOURCE.text))
    assert Diagnostic("X004", "long", span=long).render().split("\n")[2] == " " * 10 + "^" * 14


def test_the_marker_is_at_least_one_wide() -> None:
    end = Span(SOURCE, len(SOURCE.text), len(SOURCE.text))
    assert Diagnostic("X005", "end", span=end).render().endswith("    4 | last\n" + " " * 12 + "^")


def test_a_finding_as_plain_values() -> None:
    found = Diagnostic("X001", "r is unknown", "define it", span("r(X)")).to_dict()
    assert json.loads(json.dumps(found)) == {
        "code": "X001",
        "severity": "error",
        "message": "r is unknown",
        "note": "define it",
        "file": "farm.rules",
        "line": 2,
        "column": 11,
    }
    assert "file" not in Diagnostic("X001", "no").to_dict()


def test_an_error_carries_one_finding_or_several() -> None:
    one, two = Diagnostic("X001", "first"), Diagnostic("X002", "second")
    assert ZodiacError(one).diagnostics == (one,)
    assert SyntaxProblem([one, two]).diagnostics == (one, two)
    assert str(SyntaxProblem(iter([one, two]))) == "error X001: first\nerror X002: second"


def test_whatever_a_user_can_cause_is_a_zodiac_error() -> None:
    for kind in (
        SyntaxProblem,
        CheckProblem,
        StratificationProblem,
        LoadProblem,
        LimitReached,
        EvaluationProblem,
        UsageProblem,
    ):
        assert issubclass(kind, ZodiacError)
        assert kind.__name__ in str(errors.__doc__)


def test_the_nearest_name() -> None:
    assert nearest("tempreature", ("temperature", "pressure")) == "temperature"
    assert nearest("xyz", ("temperature", "pressure")) is None
    assert nearest("x", ()) is None


def test_an_error_is_rendered_only_when_somebody_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Diagnostic, "render", lambda _: pytest.fail("nobody asked"))
    problem = ZodiacError([Diagnostic("X001", "first"), Diagnostic("X002", "second")])
    monkeypatch.undo()
    assert str(problem) == "error X001: first\nerror X002: second"


def test_an_error_survives_the_way_to_another_process() -> None:
    problem = SyntaxProblem([Diagnostic("X001", "first", "do", span("r(X)")), Diagnostic("X002", "second")])
    again = pickle.loads(pickle.dumps(problem))  # noqa: S301 - our own bytes
    assert isinstance(again, SyntaxProblem)
    assert again.diagnostics == problem.diagnostics
    assert str(again) == str(problem)


@pytest.mark.parametrize("place", [0, 3, 40, 500, 960, 995])
@pytest.mark.parametrize("width", [1, 5, 300])
def test_of_a_long_line_only_the_stretch_around_the_marker_is_shown(place: int, width: int) -> None:
    text = "".join(chr(ord("a") + n % 26) for n in range(1000))
    found = Diagnostic("X006", "long", span=Span(Source("s", text), place, min(1000, place + width)))
    _, line, marker = found.render().split("\n")
    assert len(line) <= 120
    assert len(marker) <= len(line)
    first = marker.index("^")
    shown = line[first : first + marker.count("^")].rstrip("…")
    assert shown
    assert text[place:].startswith(shown)
    assert line[8:].startswith("…") == (place > 36)
    assert line.endswith("…") == (place < 900)


def test_positions_of_a_long_text_are_found_at_once() -> None:
    source = Source("s", "line\n" * 100_000)
    start = time.process_time()
    assert [source.position(offset) for offset in range(0, 500_000, 5)][-1] == (100_000, 1)
    assert source.line(100_000) == "line"
    assert time.process_time() - start < 2


def test_what_is_counted_is_singular_for_one() -> None:
    assert [counted(n, "argument") for n in (0, 1, 2, 1000)] == [
        "0 arguments",
        "1 argument",
        "2 arguments",
        "1,000 arguments",
    ]
