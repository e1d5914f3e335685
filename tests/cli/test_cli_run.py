"""`zodiac run`: load, materialise, answer, export; and everything that may be wrong with it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from zodiacedge.cli import rule_files
from zodiacedge.graph import HyperGraph
from zodiacedge.language import canonical, checks
from zodiacedge.language.checks import safe_variables
from zodiacedge_bench.workloads.paper import ds2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cli.conftest import Done
    from zodiacedge.errors import Diagnostic
    from zodiacedge.language.ast import Rule
    from zodiacedge.language.checks import Host

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

PAPER = Path(__file__).resolve().parents[2] / "bench" / "zodiacedge_bench" / "workloads" / "rules"
FARM = """\
near:  near(X, Y) :- near(Y, X) .
hot:   hot(T) :- reading(T, C), C > 80 .
alarm: alarm(T) :- hot(T), not muted(T) .
near(wt1, wt2) .
muted(wt3) .
"""
READINGS = "<wt1>,93\n<wt2>,55\n<wt3>,88.5\n"
# The exact counts of rule set 2 on data set 2 with 50 turbines in a row.
RS2_50 = {
    "p11": 2550,
    "p12": 1275,
    "p13": 100,
    "p14": 100,
    "p20": 3925,
    "p21": 3925,
    "p22": 3925,
    "p25": 2500,
    "p26": 50,
    "p30": 6525,
    "p31": 2450,
}


@pytest.fixture
def farm(save: Save) -> None:
    save("farm.rules", FARM)
    save("reading.csv", READINGS)


def without_seconds(text: str) -> str:
    return re.sub(r"[0-9]+\.[0-9]{3} s$", "0.000 s", text, flags=re.MULTILINE)


@pytest.mark.usefixtures("farm")
@pytest.mark.parametrize(
    "command",
    [
        ("run", "farm.rules", "--facts", "reading.csv"),
        ("init", "farm.zodiac", "--rules", "farm.rules", "--facts", "reading.csv"),
        ("check", "farm.rules", "--facts", "reading.csv"),
        ("plan", "farm.rules", "--facts", "reading.csv"),
    ],
    ids=lambda command: command[0],
)
def test_rules_are_read_checked_and_made_a_graph_once(
    zodiac: Zodiac, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    done: Counter[str] = Counter()

    def counting(owner: object, name: str) -> None:
        function = getattr(owner, name)

        def counted(*args: object) -> object:
            done[name] += 1
            return function(*args)

        monkeypatch.setattr(owner, name, counted)

    def checked(rule: Rule, host: Host) -> Iterator[Diagnostic]:
        done[f"check {rule.label}"] += 1
        return safe_variables(rule, host)

    def built(graph: HyperGraph, added: Mapping[str, Rule], removed: Iterable[str] = ()) -> object:
        done["update"] += bool(added)
        return update(graph, added, removed)

    update = HyperGraph.update
    monkeypatch.setattr(HyperGraph, "update", built)
    monkeypatch.setattr(checks, "RULE_CHECKS", (checked, *checks.RULE_CHECKS[1:]))
    counting(rule_files, "read_program")
    counting(canonical, "least_text")
    assert zodiac(*command).code == 0
    assert done.pop("least_text") == 3
    assert done == dict.fromkeys(("read_program", "check near", "check hot", "check alarm", "update"), 1)


@pytest.mark.usefixtures("farm")
def test_counts_and_answers(zodiac: Zodiac) -> None:
    done = zodiac("run", "farm.rules", "--facts", "reading.csv", "--query", "?- near(X, Y) .")
    assert (done.code, done.err) == (0, "")
    assert (
        without_seconds(done.out)
        == """\
predicate  derived
alarm            1
hot              2
near             2
5 explicit facts, 5 derived facts, 3 hyper-nodes, 0.000 s

?- near(X, Y) .
X    Y
wt1  wt2
wt2  wt1
2 rows
"""
    )


@pytest.mark.usefixtures("farm")
def test_the_json_document(zodiac: Zodiac) -> None:
    query = "?- alarm(T) ."
    done = zodiac("run", "farm.rules", "--facts", "reading=reading.csv", "--query", query, "--json")
    document = done.document
    assert document["explicit"] == 5
    assert document["derived"] == {"alarm": 1, "hot": 2, "near": 2}
    assert document["derived_total"] == 5
    assert isinstance(document["seconds"], float)
    assert document["queries"] == [{"query": query, "columns": ["T"], "rows": [["<wt1>"]]}]
    assert document["warnings"] == []
    assert done.err == ""
    assert set(document) == {
        *("explicit", "derived", "derived_total", "seconds", "hyper_nodes"),
        *("nodes", "dropped", "loads", "queries", "warnings"),
    }


def test_predicates_with_rules_and_no_facts_are_counted_as_none(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", "p(X) :- q(X) .\ns(X, Y) :- t(X, Y) .\ns(X) :- q(X) .\n")
    assert zodiac("run", "a.rules", "--json").document["derived"] == {"p": 0, "s/1": 0, "s/2": 0}


@pytest.mark.slow
def test_rule_set_2_has_the_exact_counts(zodiac: Zodiac, save: Save) -> None:
    lines = [f"<{f.args[0].value}> <{f.relation}> <{f.args[1].value}> .\n" for f in ds2(50)]  # type: ignore[union-attr]
    save("ds2.nt", "".join(lines))
    done = zodiac("run", str(PAPER / "rs2.rules"), "--facts", "ds2.nt", "--json")
    document = done.document
    assert document["explicit"] == 200
    assert document["derived"] == RS2_50
    assert document["derived_total"] == sum(RS2_50.values()) == 27325


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("?- near(wt1, wt2) .", "yes\n"),
        ("?- near(wt1, wt3)", "no\n"),
        ("?- near(wt1, X), not muted(X)", "X\nwt2\n1 row\n"),
        ("ans(N) :- AGGREGATE(near(X, Y)) WITH COUNT(X) AS N .", "N\n2\n1 row\n"),
        ("?- muted(T), near(T, X) .", "T  X\n0 rows\n"),
    ],
)
@pytest.mark.usefixtures("farm")
def test_queries(zodiac: Zodiac, query: str, answer: str) -> None:
    done = zodiac("run", "farm.rules", "--query", query)
    assert done.code == 0
    assert done.out.endswith(f"\n\n{query}\n{answer}")


@pytest.mark.usefixtures("farm")
def test_a_query_on_an_unknown_predicate_has_no_rows_and_a_warning(zodiac: Zodiac) -> None:
    done = zodiac("run", "farm.rules", "--query", "?- alrm(T) .")
    assert done.code == 0
    assert "warning W004: unknown predicate alrm with 1 argument" in done.err
    assert "did you mean alarm?" in done.err
    assert done.out.endswith("0 rows\n")


@pytest.mark.usefixtures("farm")
def test_bad_queries_are_all_reported_before_the_work_starts(zodiac: Zodiac) -> None:
    done = zodiac("run", "farm.rules", "--query", "?- hot(X", "--query", "?- hot(X), X > Limit .")
    assert (done.code, done.out) == (1, "")
    assert "<query 1>:1:9: error L001" in done.err
    assert "<query 2>:1:12: error C001" in done.err


@pytest.mark.usefixtures("farm")
def test_a_query_may_use_the_prefixes_of_the_rules(zodiac: Zodiac, save: Save) -> None:
    save("ex.rules", "@prefix ex: <http://example.org/> .\nex:p(ex:a) .\n")
    assert zodiac("run", "ex.rules", "--query", "?- ex:p(ex:a) .").out.endswith("yes\n")


def test_broken_rules_end_the_run(zodiac: Zodiac, save: Save) -> None:
    save("bad.rules", "p(X, Y) :- q(X) .\np(X) :- q(X .\n")
    done = zodiac("run", "bad.rules")
    assert (done.code, done.out) == (1, "")
    assert "error C001" in done.err
    assert "error L001" in done.err


@pytest.mark.parametrize("verb", ["run", "plan"])
def test_diagnostics_of_broken_rules_have_the_prefixes_of_the_file(
    zodiac: Zodiac, save: Save, verb: str
) -> None:
    save("bad.rules", "@prefix g: <http://grid/> .\ng:n(X) :- g:m(X) .\np(X, Y) :- g:n(X) .\n")
    done = zodiac(verb, "bad.rules")
    assert done.code == 1
    assert "no rule defines g:m and no fact uses it" in done.err


def test_an_empty_program_runs(zodiac: Zodiac, save: Save) -> None:
    save("empty.rules", "")
    done = zodiac("run", "empty.rules")
    assert (done.code, done.err) == (0, "")
    assert without_seconds(done.out) == "0 explicit facts, 0 derived facts, 0 hyper-nodes, 0.000 s\n"


@pytest.mark.usefixtures("farm")
def test_an_export(zodiac: Zodiac, folder: Path) -> None:
    done = zodiac("run", "farm.rules", "--facts", "reading.csv", "--out", "results")
    assert done.out.endswith("wrote 5 facts to 3 files in results\n")
    assert (folder / "results" / "near.csv").read_text() == "<wt1>,<wt2>\n<wt2>,<wt1>\n"
    listed = json.loads((folder / "results" / "predicates.json").read_text())["predicates"]
    assert [entry["file"] for entry in listed] == ["alarm.csv", "hot.csv", "near.csv"]


@pytest.mark.usefixtures("farm")
def test_an_export_of_everything_in_another_format(zodiac: Zodiac, folder: Path) -> None:
    done = zodiac(
        *("run", "farm.rules", "--facts", "reading.csv", "--json"),
        *("--out", "results", "--format", "nt", "--what", "all"),
    )
    export = done.document["export"]
    assert isinstance(export, dict)
    assert export["folder"] == "results"
    assert export["rows"] == 9
    assert (folder / "results" / "near.nt").read_text().startswith("<wt1> <near> <wt2> .\n")
    assert (folder / "results" / "reading.nt").exists()


@pytest.mark.usefixtures("farm")
def test_an_export_into_a_file_is_refused_before_the_work_starts(zodiac: Zodiac) -> None:
    for out in ("farm.rules", "farm.rules/deeper"):
        done = zodiac("run", "farm.rules", "--out", out)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith(f"error U005: {out} cannot be written: farm.rules is a file\n")


@pytest.mark.usefixtures("farm", "ordinary_user")
def test_an_export_into_a_locked_folder_is_refused(zodiac: Zodiac) -> None:
    Path("locked").mkdir(mode=0o500)
    done = zodiac("run", "farm.rules", "--out", "locked/results")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error U005: locked/results cannot be written: locked does not permit it")


@pytest.mark.usefixtures("farm")
def test_a_file_that_cannot_be_loaded_ends_the_run(zodiac: Zodiac, save: Save) -> None:
    save("facts.xyz", "p\n")
    assert (
        "error I001: nowhere.csv does not exist" in zodiac("run", "farm.rules", "--facts", "nowhere.csv").err
    )
    done = zodiac("run", "farm.rules", "--facts", "facts.xyz")
    assert (done.code, done.out) == (1, "")
    assert "error I004" in done.err


@pytest.mark.usefixtures("farm")
def test_bad_lines_are_skipped_and_reported(zodiac: Zodiac, save: Save) -> None:
    save("data.nt", "<wt4> <near> <wt5> .\nnonsense\n<wt6> <near> <wt7> .\n")
    done = zodiac("run", "farm.rules", "--facts", "data.nt")
    assert done.code == 0
    assert done.err.startswith("zodiac: 1 bad line skipped:\nzodiac:   data.nt:2: ")
    assert "near             6\n" in done.out


@pytest.mark.usefixtures("farm")
def test_many_bad_lines_are_counted_not_listed(zodiac: Zodiac, save: Save) -> None:
    save("data.nt", "nonsense\n" * 50)
    done = zodiac("run", "farm.rules", "--facts", "data.nt")
    assert done.err.startswith("zodiac: 50 bad lines skipped:\n")
    assert done.err.endswith("zodiac:   … and 30 more\n")


@pytest.mark.usefixtures("farm")
def test_bad_lines_fail_a_strict_run(zodiac: Zodiac, save: Save) -> None:
    save("data.nt", "nonsense\n")
    done = zodiac("run", "farm.rules", "--facts", "data.nt", "--strict", "--json")
    assert done.code == 1
    assert done.document["errors"] == 1
    assert "error I012: strict loading found 1 bad line" in done.err


def test_evaluation_errors_are_reported_and_fail_a_strict_run(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", "r1: p(Z) :- q(X, Y), Z := X / Y .\nq(1, 0) . q(1, 2) .\n")
    done = zodiac("run", "a.rules")
    assert done.code == 0
    assert "zodiac: rule r1 dropped 1 binding: " in done.err
    assert "p                1\n" in done.out
    done = zodiac("run", "a.rules", "--strict")
    assert (done.code, done.out) == (1, "")
    assert "error E002: rule r1 drops 1 bindings" in done.err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--max-facts", "50", "the limit of 50 derived facts was reached in rule count"),
        ("--max-rounds", "5", "the limit of 5 rounds was reached in rule count"),
        ("--max-seconds", "0", "the limit of 0 s"),
        ("--max-memory", "1", "the limit of 1 byte of memory was reached in rule count"),
    ],
)
def test_limits_end_a_run_without_end(
    zodiac: Zodiac, save: Save, option: str, value: str, message: str
) -> None:
    save("endless.rules", "count: n(Y) :- n(X), Y := X + 1 .\nn(0) .\n")
    done = zodiac("run", "endless.rules", option, value)
    assert (done.code, done.out) == (1, "")
    assert f"endless.rules:1:1: error E001: {message}" in done.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("run",), "Missing argument 'RULES...'"),
        (("run", "a.rules", "--max-facts", "-1"), "-1 is not in the range x>=0"),
        (("run", "a.rules", "--max-seconds", "soon"), "'soon' is not a valid float"),
        (("run", "a.rules", "--engine", "steam"), "'steam' is not"),
        (("run", "a.rules", "--format", "csv"), "--format and --what describe an export: add --out DIR."),
        (("run", "a.rules", "--out", "x", "--format", "docx"), "'docx' is not one of"),
        (("run", "a.rules", "--querry", "x"), "No such option"),
        (("grap", "a.rules"), "There is no command 'grap'. Did you mean graph?"),
        (
            ("frobnicate",),
            "There is no command 'frobnicate'. Commands: agent, apply, bench, check, completion, demo, ",
        ),
    ],
)
def test_wrong_usage_has_exit_code_2(zodiac: Zodiac, args: tuple[str, ...], message: str) -> None:
    done = zodiac(*args)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_mistake_of_ours_is_admitted_without_a_traceback(
    zodiac: Zodiac, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("wheels came off")

    monkeypatch.setattr("zodiacedge.cli.program.run.in_memory", broken)
    save("a.rules", "p(a) .\n")
    done = zodiac("run", "a.rules")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("zodiac: internal error: RuntimeError: wheels came off\n")
    assert "--debug" in done.err


def test_no_memory_is_said(zodiac: Zodiac, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("zodiacedge.cli.program.run.in_memory", full)
    save("a.rules", "p(a) .\n")
    done = zodiac("run", "a.rules")
    assert (done.code, done.err) == (1, "zodiac: there is not enough memory for this\n")


def test_an_interrupted_command_ends_with_130(
    zodiac: Zodiac, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("zodiacedge.cli.program.run.in_memory", interrupted)
    save("a.rules", "p(a) .\n")
    done = zodiac("run", "a.rules", "--json")
    assert (done.code, done.out, done.err) == (130, "", "zodiac: interrupted\n")
