"""Input of commands: standard input, delimiters, names with a prefix, relations that nothing reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from zodiacedge.cli.app import zodiac as group

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

RULES = "hot: hot(T) :- reading(T, C), C > 80 .\n"
PREFIXED = "@prefix g: <http://e/> .\ng:way(X, Y) :- g:line(X, Y) .\n"


def piped(text: str | bytes, *args: str) -> tuple[int, str, str]:
    """Run a command with a text on standard input."""
    result = CliRunner().invoke(group, args, input=text, prog_name="zodiac")
    assert "Traceback" not in result.output
    return result.exit_code, result.stdout, result.stderr


# Standard input


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["run", "check", "plan", "graph"])
def test_rules_come_from_standard_input(command: str) -> None:
    code, out, err = piped(RULES, command, "-")
    assert (code, err) == (0, "")
    assert "hot" in out or "1 rule" in out


@pytest.mark.usefixtures("folder")
def test_mistakes_on_standard_input_are_named_so() -> None:
    code, _, err = piped("hot(T) :- reading(T, C) C > 80 .\n", "run", "-")
    assert code == 1
    assert err.startswith("<stdin>:1:25: error L001")
    code, _, err = piped(b"p(\xe9) .", "check", "-")
    assert code == 1
    assert "U004: <stdin> is not UTF-8 text: byte 2 is 0xe9" in err


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("reading=-", "<wt1>,93\n<wt2>\n<wt3>,81\n"),
        ("reading=-.tsv", "<wt1>\t93\n<wt2>\n<wt3>\t81\n"),
        (
            "-.nt",
            (
                '<wt1> <reading> "93"^^<http://www.w3.org/2001/XMLSchema#integer> .\nx\n'
                '<wt3> <reading> "81"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
            ),
        ),
        (
            "-.jsonl",
            (
                '{"predicate": "reading", "args": ["<wt1>", 93]}\n[\n'
                '{"predicate": "reading", "args": ["<wt3>", 81]}\n'
            ),
        ),
    ],
)
def test_facts_come_from_standard_input(save: Save, spec: str, text: str) -> None:
    save("farm.rules", RULES)
    code, out, err = piped(text, "run", "farm.rules", "--facts", spec, "--json")
    assert code == 0
    document = json.loads(out)
    assert document["derived"] == {"hot": 2}
    assert document["loads"][0]["files"][0]["file"] == "<stdin>"
    assert "1 bad line skipped:\nzodiac:   <stdin>:2: " in err


def test_facts_of_a_store_come_from_standard_input(save: Save) -> None:
    save("farm.rules", RULES)
    assert piped("wt1,93\n", "init", "s", "--rules", "farm.rules", "--facts", "reading=-")[0] == 0
    assert piped("wt2,94\n", "apply", "s", "--add-facts", "reading=-")[0] == 0
    assert piped("wt1,93\n", "apply", "s", "--remove-facts", "reading=-")[0] == 0
    assert piped("muted(wt1) .\n", "apply", "s", "--add-rules", "-")[0] == 0
    assert piped(RULES, "apply", "s", "--remove-rules", "-")[0] == 0
    _, out, _ = piped("", "query", "s", "?- reading(T, C) .")
    assert "wt2" in out
    assert "1 row" in out


@pytest.mark.parametrize(
    "args",
    [
        ("-", "--facts", "reading=-"),
        ("farm.rules", "--facts", "reading=-", "--facts", "other=-"),
        ("-", "--apply", "-"),
    ],
)
def test_standard_input_is_read_once(save: Save, args: tuple[str, ...]) -> None:
    save("farm.rules", RULES)
    code, _, err = piped(RULES, "run", *args)
    assert code == 2
    assert "Standard input can be read once: give `-` for one file." in err


@pytest.mark.parametrize("spec", ["-", "-.csv", "reading=-.txt", "-.gz"])
def test_standard_input_without_a_format_or_a_relation_is_refused(save: Save, spec: str) -> None:
    save("farm.rules", RULES)
    code, _, err = piped("a,1\n", "run", "farm.rules", "--facts", spec)
    assert code == 2
    assert f"{spec} does not say what standard input holds: write reading=-" in " ".join(err.split())


# Delimiters


def test_the_delimiter_is_an_option_of_all_commands_that_load(zodiac: Zodiac, save: Save) -> None:
    save("farm.rules", RULES)
    save("reading.csv", "wt1;93\nwt2;70\n")
    save("more.tsv", "wt3;95\n")
    loading = ("--delimiter", ";")
    assert '"hot": 1' in zodiac("run", "farm.rules", "--facts", "reading.csv", *loading, "--json").out
    assert zodiac("plan", "farm.rules", "--facts", "reading.csv", *loading).code == 0
    assert zodiac("init", "s", "--rules", "farm.rules", "--facts", "reading.csv", *loading).err == ""
    assert zodiac("apply", "s", "--add-facts", "reading=more.tsv", *loading).err == ""
    assert "2 rows" in zodiac("query", "s", "?- hot(T) .").out


def test_a_tab_is_written_as_an_escape(zodiac: Zodiac, save: Save) -> None:
    save("farm.rules", RULES)
    save("reading.csv", "wt1\t93\n")
    done = zodiac("run", "farm.rules", "--facts", "reading.csv", "--delimiter", r"\t", "--json")
    assert done.document["derived"] == {"hot": 1}


@pytest.mark.parametrize("command", ["run", "init", "apply", "plan"])
def test_another_delimiter_gets_a_warning_with_the_option(zodiac: Zodiac, save: Save, command: str) -> None:
    save("farm.rules", RULES)
    save("reading.csv", "wt1;93\nwt2;70\n")
    zodiac("init", "made", "--rules", "farm.rules")
    done = {
        "run": lambda: zodiac("run", "farm.rules", "--facts", "reading.csv"),
        "init": lambda: zodiac("init", "s", "--rules", "farm.rules", "--facts", "reading.csv"),
        "apply": lambda: zodiac("apply", "made", "--add-facts", "reading.csv"),
        "plan": lambda: zodiac("plan", "farm.rules", "--facts", "reading.csv"),
    }[command]()
    assert done.code == 0
    assert done.err.count("W017: reading.csv is read as one column") == 1
    assert "--delimiter ';'" in done.err


# Names


def test_a_relation_has_the_prefixes_of_the_program(zodiac: Zodiac, save: Save) -> None:
    save("net.rules", PREFIXED)
    save("line.csv", "a,b\n")
    done = zodiac("run", "net.rules", "--facts", "g:line=line.csv", "--json")
    assert (done.code, done.err, done.document["derived"]) == (0, "", {"http://e/way": 1})
    assert zodiac("init", "s", "--rules", "net.rules", "--facts", "g:line=line.csv").code == 0
    save("more.csv", "c,d\n")
    assert zodiac("apply", "s", "--add-facts", "g:line=more.csv").code == 0
    assert "2 rows" in zodiac("query", "s", "?- g:way(X, Y) .").out


def test_a_hint_has_the_prefixes_of_the_program(zodiac: Zodiac, save: Save) -> None:
    save("net.rules", PREFIXED)
    save("line.csv", "a,b\n")
    done = zodiac("run", "net.rules", "--facts", "g:liens=line.csv")
    assert "W018: loaded, and read by no rule and no query: g:liens/2\n  = did you mean g:line?" in done.err


def test_a_relation_with_an_unknown_prefix_is_refused(zodiac: Zodiac, save: Save) -> None:
    save("net.rules", PREFIXED)
    save("line.csv", "a,b\n")
    done = zodiac("run", "net.rules", "--facts", "h:line=line.csv")
    assert done.code == 1
    assert "U012: there is no prefix h: for the name h:line" in done.err


def test_the_count_of_a_session_has_the_prefixes_of_the_program(zodiac: Zodiac, save: Save) -> None:
    save("net.rules", PREFIXED)
    save("a.session", "begin\n+ g:line(a, b) .\ncommit\ncount g:way 1\ncount g:way/2 1\n")
    assert zodiac("run", "net.rules", "--apply", "a.session").code == 0
    save("a.session", "begin\n+ g:line(a, b) .\ncommit\ncount h:way 1\n")
    done = zodiac("run", "net.rules", "--apply", "a.session")
    assert "a.session:4:1: error S001: there is no prefix h: for the name h:way" in done.err


# Relations that nothing reads


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("readings", "wt1,93\n", "did you mean reading?"),
        ("reading", "wt1\n", "reading is read with 2 arguments, and loaded with 1"),
        ("weather", "wt1,93\n", "check the name of the file"),
    ],
)
def test_a_relation_that_nothing_reads_gets_a_hint(
    zodiac: Zodiac, save: Save, name: str, text: str, hint: str
) -> None:
    save("farm.rules", RULES)
    save(f"{name}.csv", text)
    done = zodiac("run", "farm.rules", "--facts", f"{name}.csv")
    assert done.code == 0
    assert f"hint W018: loaded, and read by no rule and no query: {name}/" in done.err
    assert hint in done.err
    warnings = zodiac("run", "farm.rules", "--facts", f"{name}.csv", "--json").document["warnings"]
    assert isinstance(warnings, list)
    assert [w["code"] for w in warnings].count("W018") == 1


def test_relations_that_nothing_reads_share_one_hint(zodiac: Zodiac, save: Save) -> None:
    save("farm.rules", RULES)
    for n in range(7):
        save(f"data/t{n}.csv", "1,2\n")
    done = zodiac("run", "farm.rules", "--facts", "data")
    assert done.err.count("W018") == 1
    assert "t0/2, t1/2, t2/2, t3/2, t4/2 and 2 more" in done.err


@pytest.mark.parametrize(
    "args",
    [
        ("--query", "?- weather(X, Y) ."),
        ("--apply", "a.session"),
        ("--out", "out", "--what", "all"),
    ],
)
def test_a_relation_that_is_used_gets_no_hint(zodiac: Zodiac, save: Save, args: tuple[str, ...]) -> None:
    save("farm.rules", RULES)
    save("weather.csv", "wt1,93\n")
    save("a.session", "begin\n+ w: warm(T) :- weather(T, C) .\ncommit\n")
    assert "W018" not in zodiac("run", "farm.rules", "--facts", "weather.csv", *args).err


def test_a_class_is_read_by_a_rule_over_all_classes(zodiac: Zodiac, save: Save) -> None:
    save("all.rules", "thing(X) :- rdf:type(X, C), kind(C) .\n")
    save("Turbine.csv", "<wt1>\n")
    assert zodiac("run", "all.rules", "--facts", "Turbine.csv").err == ""


def test_rdf_gets_no_hint(zodiac: Zodiac, save: Save) -> None:
    save("farm.rules", RULES)
    save("farm.nt", "<wt1> <weather> <a> .\n")
    assert zodiac("run", "farm.rules", "--facts", "farm.nt").err == ""
    assert zodiac("init", "s", "--rules", "farm.rules", "--facts", "farm.nt").err == ""


def test_a_store_hints_at_a_new_relation_that_no_rule_reads(zodiac: Zodiac, save: Save) -> None:
    save("farm.rules", f"{RULES}reading(wt0, 1) .\n")
    save("readings.csv", "wt1,93\n")
    hint = "hint W018: loaded, and read by no rule: readings/2\n  = did you mean reading?\n"
    init = ("init", "s", "--rules", "farm.rules", "--facts", "readings.csv")
    assert zodiac(*init, "--ignore", "W018").err == ""
    assert zodiac("init", "t", *init[2:]).err == hint
    document = zodiac("init", "u", *init[2:], "--json").document
    assert [w["code"] for w in document["warnings"]] == ["W018"]  # type: ignore[attr-defined]
    save("weather.csv", "wt1,93\n")
    apply = ("apply", "t", "--add-facts", "weather.csv", "--dry-run")
    assert "W018: loaded, and read by no rule: weather/2\n" in zodiac(*apply).err
    document = zodiac(*apply, "--json").document
    assert [w["code"] for w in document["warnings"]] == ["W018"]  # type: ignore[attr-defined]
    assert zodiac(*apply, "--json", "--ignore", "W018").document["warnings"] == []
    # A relation that the store has is there for queries.
    save("more.csv", "wt2,93\n")
    assert zodiac("apply", "t", "--add-facts", "readings=more.csv").err == ""
    # The change itself may bring the rule that reads it.
    save("warm.rules", "warm(T) :- weather(T, C) .\n")
    assert "W018" not in zodiac(*apply, "--add-rules", "warm.rules").err


def test_a_store_without_rules_gets_no_hint(zodiac: Zodiac, save: Save) -> None:
    save("weather.csv", "wt1,93\n")
    assert zodiac("init", "s", "--facts", "weather.csv").err == ""
    assert zodiac("apply", "s", "--add-facts", "air=weather.csv").err == ""
