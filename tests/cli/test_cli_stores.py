"""The commands on stores, from `init` to `vacuum`."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

RULES = """
r1: alarm(T) :- reading(T, V), V > 50 .
r2: calm(T) :- turbine(T), not alarm(T) .
turbine(wt1) .  turbine(wt2) .
"""


@pytest.fixture
def farm(zodiac: Zodiac, save: Save) -> str:
    """A store with two versions."""
    save("farm.rules", RULES)
    save("reading.csv", "<wt1>,60\n<wt2>,20\n")
    save("noon.csv", "<wt2>,70\n")
    done = zodiac("init", "farm", "--rules", "farm.rules", "--facts", "reading.csv")
    assert (done.code, done.err) == (0, "")
    assert done.out == "version 1: 2 rules, 4 explicit facts, 2 derived facts\n"
    done = zodiac("apply", "farm", "--add-facts", "reading=noon.csv", "-m", "noon")
    assert (done.code, done.err) == (0, "")
    return "farm"


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("zodiacedge.kb.knowledge_base.evaluate_change", ("apply", "--add-facts", "reading=noon.csv")),
        ("zodiacedge.kb.knowledge_base.evaluate_change", ("rollback", "1")),
        ("zodiacedge.kb.knowledge_base.verified", ("verify",)),
        ("zodiacedge.kb.knowledge_base.answerable", ("query", "?- alarm(T) .")),
    ],
)
def test_ctrl_c_ends_a_command_on_a_store_with_130_and_leaves_the_store_as_it_was(
    zodiac: Zodiac, farm: str, monkeypatch: pytest.MonkeyPatch, call: str, arguments: tuple[str, ...]
) -> None:
    before = zodiac("log", farm, "--json").document
    with monkeypatch.context() as patch:
        patch.setattr(call, lambda *_, **__: signal.raise_signal(signal.SIGINT))
        command, *rest = arguments
        done = zodiac(command, farm, *rest, "--json")
    assert (done.code, done.out, done.err) == (130, "", "zodiac: interrupted\n")
    assert zodiac("log", farm, "--json").document == before
    assert zodiac("verify", farm).code == 0


def test_init_makes_a_store_once(zodiac: Zodiac, farm: str) -> None:
    done = zodiac("init", farm)
    assert done.code == 1
    assert "D014" in done.err


def test_init_tells_machines_what_there_is(zodiac: Zodiac, save: Save) -> None:
    save("farm.rules", RULES)
    document = zodiac("init", "farm", "--rules", "farm.rules", "--json").document
    assert document["version"] == 1
    assert document["explicit"] == 2
    assert document["derived"] == {"alarm": 0, "calm": 2}
    assert document["derived_total"] == 2


def test_init_tells_what_evaluation_errors_dropped(zodiac: Zodiac, save: Save) -> None:
    save("farm.rules", "r1: part(T, I) :- reading(T, V), I := 1 / V .  reading(wt1, 0) .  reading(wt2, 1) .")
    done = zodiac("init", "farm", "--rules", "farm.rules")
    assert done.code == 0
    assert "rule r1 dropped 1 binding: division by zero" in done.err
    document = zodiac("init", "other", "--rules", "farm.rules", "--json").document
    assert isinstance(document["dropped"], dict)
    assert list(document["dropped"]) == ["r1"]


def test_init_makes_nothing_of_rules_with_errors(zodiac: Zodiac, save: Save, folder: Path) -> None:
    save("bad.rules", "p(X) :- q(Y) .")
    assert zodiac("init", "farm", "--rules", "bad.rules").code == 1
    assert not (folder / "farm").exists()


def test_apply_reports_and_lists_facts(zodiac: Zodiac, save: Save, farm: str) -> None:
    save("gone.csv", "<wt2>,70\n")
    done = zodiac("apply", farm, "--remove-facts", "reading=gone.csv", "--show-facts", "1")
    assert "version 2 to 3" in done.out
    assert "+ calm(wt2)\n" in done.out
    assert "- alarm(wt2)\n- … and 1 more\n" in done.out


def test_apply_tells_machines_what_changed(zodiac: Zodiac, save: Save, farm: str) -> None:
    save("more.rules", "r3: busy(T) :- alarm(T) .")
    document = zodiac(
        "apply", farm, "--add-rules", "more.rules", "--remove-rules", "r2", "--show-facts", "9", "--json"
    ).document
    assert (document["version_before"], document["version_after"]) == (2, 3)
    assert document["inserted"] == {"busy": 2}
    assert document["facts_inserted"] == ["busy(wt1)", "busy(wt2)"]
    assert document["derived"] == {"alarm": 2, "busy": 2}
    assert document["explicit"] == 5


def test_apply_tells_of_bad_lines_in_what_is_to_go(zodiac: Zodiac, save: Save, farm: str) -> None:
    save("gone.csv", "<wt2>,70\n<wt1>\n")
    done = zodiac("apply", farm, "--remove-facts", "reading=gone.csv", "--dry-run")
    assert "1 bad line skipped" in done.err
    assert "gone.csv:2: " in done.err
    document = zodiac("apply", farm, "--remove-facts", "reading=gone.csv", "--json").document
    assert isinstance(document["loads"], list)
    assert [(one["facts"], one["bad_lines"]) for one in document["loads"]] == [(1, 1)]


def test_apply_removes_rules_by_file(zodiac: Zodiac, save: Save, farm: str) -> None:
    save("r2.rules", "calm(X) :- turbine(X), not alarm(X) .")
    done = zodiac("apply", farm, "--remove-rules", "r2.rules")
    assert "1 removed (r2)" in done.out


def test_a_dry_run_commits_nothing(zodiac: Zodiac, farm: str) -> None:
    done = zodiac("apply", farm, "--remove-rules", "r1", "--dry-run")
    assert "dry run on version 2" in done.out
    assert "r1: " in zodiac("rules", farm).out


def test_apply_wants_something_to_do(zodiac: Zodiac, farm: str) -> None:
    assert zodiac("apply", farm).code == 2


@pytest.mark.parametrize(
    ("options", "out"),
    [
        ((), "T\nwt1\nwt2\n2 rows\n"),
        (("--at", "1"), "T\nwt1\n1 row\n"),
        (("--format", "csv"), "T\n<wt1>\n<wt2>\n"),
    ],
)
def test_query_answers(zodiac: Zodiac, farm: str, options: tuple[str, ...], out: str) -> None:
    done = zodiac("query", farm, "?- alarm(T) .", *options)
    assert (done.code, done.out) == (0, out)


@pytest.mark.parametrize(
    ("query", "out"),
    [
        (
            "?- reading(T, V), alarm(T) .",
            [
                "<wt1> <reading> 60",
                "<wt2> <reading> 20",
                "<wt2> <reading> 70",
                "<wt1> a <alarm>",
                "<wt2> a <alarm>",
            ],
        ),
        ("loud(T, V) :- reading(T, V), V > 60 .", ["<wt2> <loud> 70"]),
        ("<http://e/Loud>(T) :- alarm(T)", ["<wt1> a <http://e/Loud>", "<wt2> a <http://e/Loud>"]),
        (
            "rdf:type(T, <http://e/Loud>) :- alarm(T) .",
            ["<wt1> a <http://e/Loud>", "<wt2> a <http://e/Loud>"],
        ),
        ("rdf:type(T, T) :- alarm(T) .", ["<wt1> a <wt1>", "<wt2> a <wt2>"]),
        ("# all\n?- alarm(T) .", ["<wt1> a <alarm>", "<wt2> a <alarm>"]),
        ("// all\nloud(T) :- alarm(T) # said", ["<wt1> a <loud>", "<wt2> a <loud>"]),
    ],
)
def test_query_answers_in_triples(zodiac: Zodiac, farm: str, query: str, out: list[str]) -> None:
    done = zodiac("query", farm, query, "--format", "nt")
    assert (done.code, done.err) == (0, "")
    lines = done.out.replace("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "a")
    lines = lines.replace('"^^<http://www.w3.org/2001/XMLSchema#integer>', "").replace('"', "")
    assert sorted(lines.splitlines()) == sorted(f"{line} ." for line in out)


def test_what_is_no_triple_is_refused(zodiac: Zodiac, farm: str) -> None:
    done = zodiac("query", farm, "worst(V, T) :- reading(T, V) .", "--format", "nt")
    assert (done.code, done.out) == (1, "")
    assert "I014" in done.err


def test_query_tells_machines(zodiac: Zodiac, farm: str) -> None:
    for option in ("--json", "--format=json"):
        document = zodiac("query", farm, "?- alarm(T) .", option).document
        assert document["rows"] == [["<wt1>"], ["<wt2>"]]
        assert document["version"] == 2


def test_rows_of_json_lines_and_csv_load_again(zodiac: Zodiac, save: Save) -> None:
    terms = '<http://e.org/a>, 5, 2.5, 3e2, true, "5", "a,b"@en, "x", "2020-01-01T00:00:00Z"^^xsd:dateTime'
    save("t.rules", f"@prefix e: <http://e.org/> . e:t({terms}) .\n")
    assert zodiac("init", "t.zodiac", "--rules", "t.rules").code == 0
    query = "e:t(A, B, C, D, E, F, G, H, I)"
    for form, header in (("jsonl", ()), ("csv", ("--header",))):
        save(f"t.{form}", zodiac("query", "t.zodiac", query, "--format", form).out)
        save("empty.rules", "")
        same = f"?- t({terms}) ."
        done = zodiac("run", "empty.rules", "--facts", f"t=t.{form}", *header, "--query", same)
        assert done.out.endswith("yes\n"), form


def test_plain_rows_are_for_spreadsheets(zodiac: Zodiac, save: Save) -> None:
    save("t.rules", '@prefix e: <http://e.org/> . e:t(e:a, 3e2, "5", "a,b"@en, <http://f.org/c>, b) .\n')
    zodiac("init", "t.zodiac", "--rules", "t.rules")
    done = zodiac("query", "t.zodiac", "e:t(A, B, C, D, E, F)", "--format", "plain")
    assert done.out == 'A,B,C,D,E,F\ne:a,300.0,5,"a,b",http://f.org/c,b\n'


def test_lines_for_people_have_the_prefixes_of_the_store(zodiac: Zodiac, save: Save) -> None:
    save(
        "t.rules", '@prefix e: <http://e.org/> .\nr: e:q(X) :- e:p(X, Y) .\ne:p(e:a, "<http://e.org/a>") .\n'
    )
    zodiac("init", "t.zodiac", "--rules", "t.rules")
    assert zodiac("rules", "t.zodiac").out == "@prefix e: <http://e.org/> .\nr: e:q(X) :- e:p(X, Y) .\n"
    assert zodiac("query", "t.zodiac", "e:p(X, Y)").out == 'X    Y\ne:a  "<http://e.org/a>"\n1 row\n'
    assert "  + r: e:q(X) :- e:p(X, Y) .\n" in zodiac("log", "t.zodiac", "--full").out
    assert "\ne:q " in zodiac("stats", "t.zodiac").out
    assert "did you mean e:p?" in zodiac("query", "t.zodiac", "e:pp(X, Y)").err
    own = zodiac("query", "t.zodiac", "@prefix q: <http://q.org/> . q:p(X, Y)")
    assert "unknown predicate q:p with 2 arguments" in own.err
    zodiac("apply", "t.zodiac", "--add-rules", "t.rules")
    out = zodiac("export", "t.zodiac", "--out", "ttl", "--format", "ttl", "--what", "all")
    assert out.code == 0
    written = "".join(path.read_text() for path in sorted(Path("ttl").glob("*.ttl")))
    assert '@prefix e: <http://e.org/> .\ne:a e:p "<http://e.org/a>" .\n' in written


def test_query_of_a_version_that_is_not_there(zodiac: Zodiac, farm: str) -> None:
    done = zodiac("query", farm, "?- alarm(T) .", "--at", "9")
    assert done.code == 1
    assert "D008" in done.err


def test_log_lists_versions_newest_first(zodiac: Zodiac, farm: str) -> None:
    _, newest, oldest = zodiac("log", farm).out.splitlines()
    assert newest.split()[0] == "2"
    assert newest.endswith("  +0 -0  +1 -0         5  noon")
    assert oldest.endswith("  +2 -0  +4 -0         4  made")
    lines = zodiac("log", farm, "--full").out.splitlines()
    assert lines[0].startswith("version 2  ")
    assert lines[0].endswith("  noon")
    assert lines[1] == "  rules +0 -0, facts +1 -0, then 5 explicit facts"
    assert lines[-1] == "  + r2: calm(T) :- turbine(T), not alarm(T) ."
    document = zodiac("log", farm, "--last", "1", "--json").document
    assert isinstance(document["versions"], list)
    (only,) = document["versions"]
    assert only["message"] == "noon"


def test_diff_shows_what_tells_versions_apart(zodiac: Zodiac, farm: str) -> None:
    done = zodiac("diff", farm, "1", "2")
    assert "+ alarm(wt2)\n" in done.out
    assert "- calm(wt2)\n" in done.out
    document = zodiac("diff", farm, "2", "1", "--json").document
    assert document["inserted"] == {"calm": 1}
    assert document["facts_deleted"] == ["alarm(wt2)", "reading(wt2, 70)"]
    assert zodiac("diff", farm, "0", "1").out.startswith("+ r1: alarm(T)")
    assert zodiac("diff", farm, "2", "2").out == "no fact was inserted or deleted\n"


def test_diff_compares_the_last_two_versions_unless_told(zodiac: Zodiac, farm: str) -> None:
    assert zodiac("diff", farm).out == zodiac("diff", farm, "1", "2").out
    assert zodiac("diff", farm, "0").out == zodiac("diff", farm, "0", "2").out
    assert zodiac("init", "empty").code == 0
    assert zodiac("diff", "empty").out == "no fact was inserted or deleted\n"


def test_a_fact_of_two_segments_is_no_two_facts_in_the_log(zodiac: Zodiac, save: Save) -> None:
    save("two.rules", "p(X) :- q(X) . p(X) :- r(X) . q(a) . r(a) .")
    assert "2 explicit facts, 1 derived fact" in zodiac("init", "two", "--rules", "two.rules").out
    versions = zodiac("log", "two", "--json").document["versions"]
    assert isinstance(versions, list)
    (only,) = versions
    assert "derived" not in only
    assert (only["explicit"], only["segment_facts"]) == (2, 2)


def test_a_change_without_effect_makes_no_version(zodiac: Zodiac, farm: str) -> None:
    before = zodiac("log", farm, "--json").document
    done = zodiac("apply", farm, "--add-facts", "reading=noon.csv", "--add-rules", "farm.rules")
    assert done.out.startswith("version 2 (nothing changed) in ")
    document = zodiac("apply", farm, "--add-facts", "reading=noon.csv", "--json").document
    assert (document["version_before"], document["version_after"], document["dry_run"]) == (2, 2, False)
    assert zodiac("rollback", farm, "2").out.startswith("version 2 (nothing changed) in ")
    assert zodiac("log", farm, "--json").document == before


def test_a_warning_is_shown_once(zodiac: Zodiac, save: Save, farm: str) -> None:
    done = zodiac("apply", farm, "--add-facts", "reading=noon.csv")
    assert "W012" not in done.out
    assert done.err.count("W012") == 1
    save("again.session", "begin\n+ turbine(wt1) .\ncommit\n")
    done = zodiac("run", "farm.rules", "--apply", "again.session")
    assert "W012" not in done.out
    assert done.err.count("W012") == 1


def test_rollback_makes_a_new_version(zodiac: Zodiac, farm: str) -> None:
    document = zodiac("rollback", farm, "1", "-m", "a mistake", "--json").document
    assert document["version_after"] == 3
    assert zodiac("diff", farm, "1", "3").out == "no fact was inserted or deleted\n"
    assert "a mistake" in zodiac("log", farm).out


def test_rules_can_be_read_again(zodiac: Zodiac, save: Save, farm: str) -> None:
    save("again.rules", zodiac("rules", farm).out)
    assert zodiac("check", "again.rules").code == 0
    assert zodiac("rules", farm, "--at", "0", "--json").document["rules"] == []


def test_stats_counts(zodiac: Zodiac, farm: str) -> None:
    document = zodiac("stats", farm, "--json").document
    assert document["explicit"] == 5
    assert document["explicit_per_predicate"] == {"reading": 3, "turbine": 2}
    assert document["derived"] == {"alarm": 2, "calm": 0}
    assert int(str(document["table_bytes"])) > 0
    assert "version 2: 2 rules" in zodiac("stats", farm).out


def test_retain_says_and_sets_how_long_versions_are_kept(zodiac: Zodiac, farm: str) -> None:
    assert zodiac("retain", farm).out == f"versions of {farm} are kept for 7d\n"
    assert zodiac("retain", farm, "90min").out == f"versions of {farm} are kept for 90min\n"
    assert json.loads(zodiac("retain", farm, "--json").out) == {"seconds": 5400.0, "bytes": None}
    assert zodiac("retain", farm, "7d", "--size", "64 MB").out == (
        f"versions of {farm} are kept for 7d, within 64,000,000 bytes\n"
    )
    assert json.loads(zodiac("retain", farm, "--json").out) == {"seconds": 604800.0, "bytes": 64_000_000}
    assert "kept for 7d, within 64,000,000 bytes; " in zodiac("stats", farm).out
    for wrong in ("64", "MB", "0MB", "-1MB", "1TB"):
        assert zodiac("retain", farm, "7d", "--size", wrong).code == 2
    assert zodiac("retain", farm, "--size", "1MB").code == 2
    assert zodiac("retain", farm, "90min").out == f"versions of {farm} are kept for 90min\n"
    told = json.loads(zodiac("stats", farm, "--json").out)
    assert told["kept_seconds"] == 5400
    assert (told["unused_files"], told["unused_bytes"]) == (0, 0)
    assert {"terms", "rows", "indexes", "kept plans"} <= {one["part"] for one in told["held"]}
    for wrong in ("7", "x", "-1d", "1e9d", "40000d", "99999999999999w"):
        assert zodiac("retain", farm, "--", wrong).code == 2


def test_vacuum_keeps_the_last_version(zodiac: Zodiac, farm: str) -> None:
    done = zodiac("vacuum", farm, "--keep-days", "0")
    assert done.out.endswith("versions 2 to 2 are kept\n")
    assert zodiac("verify", farm).code == 0
    assert zodiac("query", farm, "?- alarm(T) .", "--at", "1").code == 1


def test_verify_compares_and_prints_a_digest(zodiac: Zodiac, farm: str) -> None:
    document = zodiac("verify", farm, "--against", "reference", "--json").document
    assert document["ok"] is True
    assert len(str(document["digest"])) == 64


@pytest.mark.parametrize(
    "command",
    [
        ("query", "none", "?- p(X) ."),
        ("log", "none"),
        ("diff", "none", "1", "2"),
        ("stats", "none"),
        ("rules", "none"),
        ("verify", "none"),
        ("vacuum", "none"),
        ("rollback", "none", "1"),
        ("apply", "none", "--remove-rules", "r1"),
    ],
    ids=lambda command: command[0],
)
def test_a_store_that_is_not_there_is_one_message(
    zodiac: Zodiac, folder: Path, command: tuple[str, ...]
) -> None:
    done = zodiac(*command)
    assert done.code == 1
    assert done.err.startswith("error D001: there is no store none")
    assert list(folder.iterdir()) == []


def test_a_second_writer_is_one_message_and_readers_go_on(zodiac: Zodiac, farm: str) -> None:
    with ze.open(farm):
        done = zodiac("apply", farm, "--remove-rules", "r1")
        assert done.code == 3
        assert "D003" in done.err
        assert zodiac("query", farm, "?- alarm(T) .").code == 0


def test_a_file_in_place_of_a_store_is_told_with_the_right_command(zodiac: Zodiac, save: Save) -> None:
    save("farm.rules", RULES)
    save("d/notes.txt", "")
    done = zodiac("init", "farm.rules")
    assert done.code == 1
    assert "error D002: farm.rules is a file, and a store is a folder\n" in done.err
    assert "zodiac init farm.zodiac --rules farm.rules" in done.err
    done = zodiac("query", "farm.rules", "alarm(T)")
    assert "error D002: farm.rules is a file, and a store is a folder\n" in done.err
    assert "zodiac run farm.rules --query" in done.err
    done = zodiac("query", "d", "alarm(T)")
    assert "error D002: d is not a store: it has no _zodiac.json\n" in done.err
    assert "name the folder that zodiac init" in done.err


def test_an_unknown_extension_has_the_nearest_one(zodiac: Zodiac, save: Save) -> None:
    save("reading.json", "{}")
    done = zodiac("init", "s", "--facts", "reading.json")
    assert "I004" in done.err
    assert "  = did you mean .jsonl? known extensions: " in done.err
